/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/mutexes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/renewable_worker.h"
#include "util/syscalls.h"
#include "util/text.h"
#include "watch/dents.h"
#include "watch/thread_status.h"

/* The deepest call has the file of a thread's status, 8 KB. */
#define THREAD_STACK_BYTES (32 * 1024)
/* A look is cut off then: a thread takes about 10 us. */
#define LOOK_NS (300 * NSEC_PER_MSEC)
/*
 * From the begin of a look to that of the next one: so many times its CPU time, but at least and at
 * most so long. Who has waited for less than the first of these does not stand still.
 */
#define LEAST_NS (NSEC_PER_SEC / 10 * 9)
#define IDLE_LEAST_NS (4 * NSEC_PER_SEC - NSEC_PER_SEC / 10)
#define MOST_NS (60 * NSEC_PER_SEC)
#define ARMED_TIMES 5
#define IDLE_TIMES 1000
/* Threads that have stood still for so long are no freeze any more. */
#define FREEZE_NS (120 * NSEC_PER_SEC)
/* Mutexes of a process whose owner waits for the next one. */
#define CHAIN_MAX 8
/*
 * pthread_mutex_t: a thread waits; and the bits of its kind, PTHREAD_MUTEX_KIND_MASK_NP and
 * flags.
 */
#define WORD_CONTENDED 2
#define KIND_KNOWN 0x3f3u

/* A thread that takes work from others may be seen between two system calls, but not for long. */
static const struct timespec again = { .tv_nsec = 50 * NSEC_PER_MSEC };

struct waiter {
	int32_t pid;
	int32_t tid;
	uint64_t address;
	uint64_t switches;
	uint64_t since_ns;
	uint64_t seen_ns;	/* the look that found it last */
	uint64_t held_since_ns; /* by that owner */
	uint64_t root;		/* address of the mutex at the end of its chain */
	int32_t owner;
};

/* Of the thread while it is busy. */
struct search {
	uint32_t pids_count;
	int32_t pids[WATCH_PROCESSES_MAX];
	bool only_known;    /* it looks at the threads that waited the last time */
	int32_t looking_at; /* the process; the loop reads it when the thread hangs */
	int32_t skip[RENEWABLE_WORKER_HUNG_MAX]; /* processes in which others hang; 0: none */
	int procfs_fd;
	uint64_t begin_ns;
	uint64_t deadline_ns;
	uint64_t cpu_ns; /* that it took */
	uint32_t count;
	bool has_new; /* some were not known to wait */
	struct waiter waiters[MUTEXES_WAITERS_MAX];
	struct mutexes_answer answer;
};

struct mutexes {
	struct renewable_worker worker;		 /* its state is a struct search */
	int32_t hung[RENEWABLE_WORKER_HUNG_MAX]; /* in which process, by its place in the worker */
	bool is_asked;
	bool is_skipping; /* a process, in which an earlier look hangs */
	bool has_told;	  /* that this look hangs and cannot be replaced */
	bool has_new;	  /* the last look was one at all, and has found new waiters */
	uint64_t last_ns; /* when it began */
	uint64_t all_ns;  /* when the last one at all began */
	uint64_t all_cpu_ns;
	struct mutexes_answer answer;
};

/* The words */

/* "202 0x55d0 0x80 0x2 ...", or "running", or "-1 ..." */
bool mutexes_parse_syscall(const char *line, int32_t *ret_number, uint64_t *ret_address,
	uint32_t *ret_value)
{
	unsigned long long address = 0, op = 0, value = 0;
	int number = -1,
	    n = sscanf(line, "%d 0x%llx 0x%llx 0x%llx", &number, &address, &op, &value);

	*ret_number = n >= 1 ? number : -1;
	if (n < 4 || number != SYS_futex)
		return false;
	*ret_address = address;
	*ret_value = (uint32_t)value;
	switch ((int)op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return true;
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		/* They expect no value: the kernel sets this bit for them. */
		*ret_value = FUTEX_WAITERS;
		return true;
	default:
		return false;
	}
}

/* lock, count, owner, nusers, kind: struct __pthread_mutex_s of 64-bit programs */
int32_t mutexes_owner(const uint32_t words[static MUTEX_WORDS], uint32_t expected)
{
	/* A robust mutex or one with priority inheritance has its owner in the word itself. */
	uint32_t owner = words[0] == WORD_CONTENDED ? words[2] : words[0] & FUTEX_TID_MASK;

	if (words[0] == WORD_CONTENDED ? expected != WORD_CONTENDED
				       : !(words[0] & FUTEX_WAITERS) || words[2] != owner)
		return 0;
	if ((words[4] & ~KIND_KNOWN) || words[3] == 0 || owner > INT32_MAX)
		return 0;
	return (int32_t)owner;
}

static int32_t read_owner(int procfs_fd, int32_t pid, uint64_t address, uint32_t expected)
{
	uint32_t words[MUTEX_WORDS];
	_cleanup_close_ int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "%d/mem", pid);
	fd = openat(procfs_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, words, sizeof(words), (off_t)address) != (ssize_t)sizeof(words))
		return 0;
	return mutexes_owner(words, expected);
}

/* A look, on the thread */

/* Mutexes of a container have the ids that its threads have there. */
static bool has_own_ids(const struct search *s, int32_t pid)
{
	struct watch_thread_status status;

	return thread_status_read(s->procfs_fd, pid, &status) == 0 && status.has_own_ids;
}

static struct waiter *find_waiter(struct search *s, int32_t tid)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].tid == tid)
			return &s->waiters[i];
	return NULL;
}

/* It waited in an earlier look, too. */
static bool stands(const struct search *s, const struct waiter *w)
{
	return w->since_ns < s->begin_ns;
}

/* Many wait for the same mutex, so the owner is mostly known. */
static int32_t find_owner(const struct search *s, int32_t pid, uint64_t address, uint32_t expected)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct waiter *w = &s->waiters[i];

		if (w->pid == pid && w->address == address && w->seen_ns == s->begin_ns)
			return w->owner;
	}
	return read_owner(s->procfs_fd, pid, address, expected);
}

static bool is_thread_of(const struct search *s, int32_t pid, int32_t tid)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/task/%d", pid, tid);
	return faccessat(s->procfs_fd, path, F_OK, 0) == 0;
}

/* Whoever lets a mutex go wakes one of its waiters: another thread may have had it since. */
static void note_let_go(struct search *s, int32_t pid, uint64_t address)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].pid == pid && s->waiters[i].address == address)
			s->waiters[i].held_since_ns = s->begin_ns;
}

/* Where the thread waits now, and of which times. */
static void note_waiter(struct search *s, const struct waiter *now)
{
	struct waiter *w = find_waiter(s, now->tid);

	if (!w && s->count == MUTEXES_WAITERS_MAX)
		return;
	if (!w) {
		s->waiters[s->count++] = *now;
		s->has_new = true;
		return;
	}
	if (w->pid != now->pid || w->address != now->address || w->switches != now->switches) {
		note_let_go(s, w->pid, w->address);
		*w = *now;
		s->has_new = true;
		return;
	}
	w->seen_ns = s->begin_ns;
	if (w->owner != now->owner)
		w->held_since_ns = s->begin_ns;
	w->owner = now->owner;
}

static void forget_who_left(struct search *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].seen_ns != s->begin_ns)
			note_let_go(s, s->waiters[i].pid, s->waiters[i].address);
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].seen_ns == s->begin_ns)
			s->waiters[kept++] = s->waiters[i];
	s->count = kept;
}

/* Another thread hangs in what it asks of this process. */
static bool is_skipped(const struct search *s, int32_t pid)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(s->skip); i++)
		if (s->skip[i] == pid)
			return true;
	return false;
}

static bool may_look_at(struct search *s, int32_t pid)
{
	if (is_skipped(s, pid))
		return false;
	__atomic_store_n(&s->looking_at, pid, __ATOMIC_RELEASE);
	return true;
}

static void look_at_thread(struct search *s, int32_t pid, int32_t tid)
{
	struct watch_thread_status status;
	struct waiter w = { .pid = pid,
		.tid = tid,
		.since_ns = s->begin_ns,
		.seen_ns = s->begin_ns,
		.held_since_ns = s->begin_ns };
	char path[48], line[256];
	uint32_t expected;
	int32_t number;

	snprintf(path, sizeof(path), "%d/task/%d/syscall", pid, tid);
	if (file_read_at(s->procfs_fd, path, line, sizeof(line)) <= 0 ||
		!mutexes_parse_syscall(line, &number, &w.address, &expected))
		return;
	/*
	 * Who waits for a condition or a semaphore expects another value. That memory may be
	 * swapped out, and reading it would keep the lock of the memory map while it is read.
	 */
	if (expected != WORD_CONTENDED && !(expected & FUTEX_WAITERS))
		return;
	w.owner = find_owner(s, pid, w.address, expected);
	if (w.owner <= 0 || !is_thread_of(s, pid, w.owner))
		return;
	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	if (thread_status_read_at(s->procfs_fd, path, &status) < 0 || !status.has_switches)
		return;
	w.switches = status.switches;
	note_waiter(s, &w);
}

static void look_at_process(struct search *s, int32_t pid)
{
	_cleanup_close_ int fd = -1;
	struct dents dents;
	const char *name;
	struct stat st;
	char path[32];
	int32_t tid;

	if (!may_look_at(s, pid))
		return;
	snprintf(path, sizeof(path), "%d/task", pid);
	fd = openat(s->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* A single thread, as a server of PostgreSQL has, waits for no other one. */
	if (fd < 0 || (fstat(fd, &st) == 0 && st.st_nlink == 2 + 1) || has_own_ids(s, pid))
		return;
	dents_reset(&dents);
	while (clock_mono_ns() < s->deadline_ns && dents_next_number(&dents, fd, &tid, &name) > 0)
		look_at_thread(s, pid, tid);
}

/* None is added to the list, since each is in it. */
static void look_at_waiters(struct search *s)
{
	for (uint32_t i = 0; i < s->count && clock_mono_ns() < s->deadline_ns; i++)
		if (may_look_at(s, s->waiters[i].pid))
			look_at_thread(s, s->waiters[i].pid, s->waiters[i].tid);
}

/* What was found */

/* Where the owner of its mutex stands; NULL: it does not wait for another one. */
static const struct waiter *find_next(struct search *s, const struct waiter *w)
{
	const struct waiter *next = find_waiter(s, w->owner);

	return next && stands(s, next) && next->pid == w->pid ? next : NULL;
}

/*
 * The mutex for which the owner of this one waits, and so on: the last one of the chain. In a
 * deadlock the chain is a circle, of which the mutex with the lowest address counts.
 */
static uint64_t find_root(struct search *s, const struct waiter *w)
{
	const struct waiter *next = find_next(s, w);
	uint64_t lowest;

	for (unsigned int i = 0; i < CHAIN_MAX && next; i++) {
		w = next;
		next = find_next(s, w);
	}
	lowest = w->address;
	for (unsigned int i = 0; i < CHAIN_MAX && next && next != w; i++) {
		if (next->address < lowest)
			lowest = next->address;
		next = find_next(s, next);
	}
	return next == w ? lowest : w->address;
}

/* A place for it; NULL: there are as many with as many waiters. */
static struct mutex_seen *find_place(struct mutexes_answer *answer, uint32_t waiters)
{
	struct mutex_seen *least = answer->list;

	if (answer->count < MUTEXES_MAX)
		return &answer->list[answer->count++];
	for (uint32_t i = 1; i < answer->count; i++)
		if (answer->list[i].waiters < least->waiters)
			least = &answer->list[i];
	return least->waiters < waiters ? least : NULL;
}

/* The holder is one of those that wait for this mutex in the end. */
static int32_t find_deadlock(struct search *s, const struct waiter *root, int32_t holder)
{
	const struct waiter *w = find_waiter(s, holder);

	return w && stands(s, w) && w->pid == root->pid && w->root == root->address ? w->owner : 0;
}

/* Those that wait for a mutex whose holder waits for this one wait for this one. */
static void take_mutex(struct search *s, const struct waiter *root)
{
	struct mutex_seen seen = { .pid = root->pid,
		.address = root->address,
		.held_since_ns = s->begin_ns };
	struct mutex_seen *place;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct waiter *w = &s->waiters[i];

		if (!stands(s, w) || w->pid != root->pid || w->root != root->address)
			continue;
		if (w->address == root->address && w->held_since_ns < seen.held_since_ns) {
			seen.held_since_ns = w->held_since_ns;
			seen.holder = w->owner;
		}
		if (seen.waiters++ == 0 || w->since_ns < seen.since_ns)
			seen.since_ns = w->since_ns;
	}
	seen.deadlocked_with = find_deadlock(s, root, seen.holder);
	place = find_place(&s->answer, seen.waiters);
	if (place)
		*place = seen;
}

/* The first of those that stand still at a mutex at which a chain ends. */
static bool is_first_at_root(const struct search *s, const struct waiter *w)
{
	if (!stands(s, w) || w->root != w->address)
		return false;
	for (const struct waiter *other = s->waiters; other < w; other++)
		if (stands(s, other) && other->pid == w->pid && other->address == w->address)
			return false;
	return true;
}

/* How long it takes is bounded by MUTEXES_WAITERS_MAX. */
static void take_mutexes(struct search *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		s->waiters[i].root = find_root(s, &s->waiters[i]);
	for (uint32_t i = 0; i < s->count; i++)
		if (is_first_at_root(s, &s->waiters[i]))
			take_mutex(s, &s->waiters[i]);
}

static bool is_at_fault(const struct mutex_seen *seen)
{
	return seen->holder &&
		(seen->deadlocked_with ||
			!syscall_may_wait_for_work(seen->holder_state, seen->holder_syscall));
}

static void describe_holder(struct search *s, struct mutex_seen *seen)
{
	struct watch_thread_status status;
	char path[48], line[256];
	uint64_t address;
	uint32_t value;

	snprintf(path, sizeof(path), "%d/task/%d/status", seen->pid, seen->holder);
	if (thread_status_read_at(s->procfs_fd, path, &status) == 0) {
		text_copy(seen->holder_comm, sizeof(seen->holder_comm), status.comm);
		seen->holder_state = status.state;
	}
	snprintf(path, sizeof(path), "%d/task/%d/syscall", seen->pid, seen->holder);
	if (file_read_at(s->procfs_fd, path, line, sizeof(line)) > 0)
		mutexes_parse_syscall(line, &seen->holder_syscall, &address, &value);
	seen->holder_stack[0] = '\0';
	if (seen->holder_state != 'R')
		thread_read_stack(s->procfs_fd, seen->holder, seen->holder_stack);
}

static void describe(struct search *s, struct mutex_seen *seen)
{
	struct watch_thread_status status;

	if (!may_look_at(s, seen->pid))
		return;
	if (thread_status_read(s->procfs_fd, seen->pid, &status) == 0)
		text_copy(seen->comm, sizeof(seen->comm), status.comm);
	seen->holder_syscall = -1;
	if (!seen->holder)
		return;
	describe_holder(s, seen);
	if (is_at_fault(seen) && !seen->deadlocked_with) {
		nanosleep(&again, NULL);
		describe_holder(s, seen);
	}
}

static void run(void *state, const int *fds)
{
	uint64_t cpu_ns = clock_thread_cpu_ns();
	struct search *s = state;

	s->procfs_fd = fds[0];
	s->begin_ns = clock_mono_ns();
	s->deadline_ns = s->begin_ns + LOOK_NS;
	s->has_new = false;
	s->answer = (struct mutexes_answer){ .look_ns = s->begin_ns };
	if (s->only_known)
		look_at_waiters(s);
	for (uint32_t i = 0; i < s->pids_count && !s->only_known; i++)
		look_at_process(s, s->pids[i]);
	forget_who_left(s);
	take_mutexes(s);
	for (uint32_t i = 0; i < s->answer.count; i++)
		describe(s, &s->answer.list[i]);
	s->cpu_ns = clock_thread_cpu_ns() - cpu_ns;
}

/* Questions and answers, on the event loop */

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct search),
	.limit_ns = MUTEXES_LIMIT_NS,
};

int mutexes_new(int procfs_fd, struct mutexes **ret_mutexes)
{
	struct mutexes *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	r = renewable_worker_init(&m->worker, &kind, procfs_fd);
	if (r < 0) {
		free(m);
		return r;
	}
	*ret_mutexes = m;
	return 0;
}

struct mutexes *mutexes_free(struct mutexes *m)
{
	if (m)
		renewable_worker_done(&m->worker);
	free(m);
	return NULL;
}

void mutexes_replace_hung(struct mutexes *m, uint64_t now_ns)
{
	struct search *hung = m->worker.state;
	int place = renewable_worker_renew(&m->worker, now_ns);

	if (place == -EBUSY && !m->has_told)
		log_warning(
			"watch: %d processes keep whoever asks about them waiting; the rule mutex is not "
			"checked, and records have no mutexes, until one of them answers",
			RENEWABLE_WORKER_HUNG_MAX + 1);
	m->has_told = m->has_told || place == -EBUSY;
	if (place < 0)
		return;
	m->is_asked = false;
	m->hung[place] = __atomic_load_n(&hung->looking_at, __ATOMIC_ACQUIRE);
	log_notice(
		"watch: process %d keeps whoever asks about it waiting; the rule mutex leaves it "
		"out until it answers",
		m->hung[place]);
}

bool mutexes_lacks(const struct mutexes *m, uint64_t now_ns)
{
	return m->is_skipping || renewable_worker_is_late(&m->worker, now_ns);
}

static void take_answer(struct mutexes *m, const struct search *s)
{
	m->answer = s->answer;
	m->last_ns = m->worker.started_ns;
	/* What stands still may have been released a moment later, and samples say it is so now. */
	m->has_new = (s->has_new && !s->only_known) || mutexes_worst(&m->answer);
	if (s->only_known)
		return;
	m->all_ns = m->last_ns;
	m->all_cpu_ns = s->cpu_ns;
}

/* Who has begun to wait, or stands still, is looked at once more soon. */
static void look(struct mutexes *m, const struct watch_process *processes, unsigned int count,
	bool armed, uint64_t now_ns)
{
	uint64_t interval_ns = m->all_cpu_ns * (armed ? ARMED_TIMES : IDLE_TIMES);
	uint64_t least_ns = armed ? LEAST_NS : IDLE_LEAST_NS;
	struct search *s = m->worker.state;

	interval_ns = interval_ns < least_ns ? least_ns : interval_ns;
	interval_ns = interval_ns > MOST_NS ? MOST_NS : interval_ns;
	s->only_known = m->all_ns && now_ns < m->all_ns + interval_ns;
	if (s->only_known && !m->has_new)
		return;
	if (m->last_ns && now_ns < m->last_ns + LEAST_NS)
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(s->skip); i++)
		s->skip[i] = renewable_worker_hangs_at(&m->worker, i) ? m->hung[i] : 0;
	s->pids_count = count < ARRAY_SIZE(s->pids) ? count : ARRAY_SIZE(s->pids);
	m->is_skipping = false;
	for (uint32_t i = 0; i < s->pids_count; i++) {
		s->pids[i] = processes[i].pid;
		m->is_skipping = m->is_skipping || is_skipped(s, s->pids[i]);
	}
	m->is_asked = true;
	m->has_told = false;
	renewable_worker_start(&m->worker, now_ns);
}

const struct mutexes_answer *mutexes_find(struct mutexes *m, const struct watch_process *processes,
	unsigned int count, bool armed, uint64_t now_ns)
{
	if (renewable_worker_is_busy(&m->worker)) {
		/* What was found may not be so any more, and must not keep an incident open. */
		if (now_ns - m->worker.started_ns >= MUTEXES_LIMIT_NS)
			m->answer.count = 0;
		return &m->answer;
	}
	if (m->is_asked)
		take_answer(m, m->worker.state);
	m->is_asked = false;
	look(m, processes, count, armed, now_ns);
	return &m->answer;
}

const struct mutex_seen *mutexes_worst(const struct mutexes_answer *answer)
{
	const struct mutex_seen *worst = NULL;

	for (uint32_t i = 0; i < answer->count; i++) {
		const struct mutex_seen *seen = &answer->list[i];

		if (!is_at_fault(seen) || answer->look_ns - seen->since_ns >= FREEZE_NS)
			continue;
		if (!worst || seen->waiters > worst->waiters)
			worst = seen;
	}
	return worst;
}
