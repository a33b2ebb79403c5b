/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/held_locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "snapshot/lock_search.h"
#include "snapshot/mutexes.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/syscalls.h"
#include "util/text.h"
#include "watch/thread_status.h"

/* The deepest call has the file of a thread's status, 8 KB. */
#define THREAD_STACK_BYTES (32 * 1024)
/* A look is cut off then: a thread takes about 10 us. */
#define LOOK_NS (300 * NSEC_PER_MSEC)
/* For what is not read of threads: all locks of files, above all. */
#define SOURCES_NS (100 * NSEC_PER_MSEC)
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

/* A thread that takes work from others may be seen between two system calls, but not for long. */
static const struct timespec again = { .tv_nsec = 50 * NSEC_PER_MSEC };

struct held_locks {
	struct renewable_worker worker;		 /* its state is a struct lock_search */
	int32_t hung[RENEWABLE_WORKER_HUNG_MAX]; /* in which process, by its place in the worker */
	int socket_program_fd;			 /* below 0: there is none */
	uint32_t refusals_count;
	struct held_locks_refusal refusals[HELD_LOCKS_REFUSALS_MAX];
	bool is_asked;
	bool is_skipping; /* a process, in which an earlier look hangs */
	bool has_told;	  /* that this look hangs and cannot be replaced */
	bool has_new;	  /* the last look was one at all, and has found new waiters */
	uint64_t last_ns; /* when it began */
	uint64_t all_ns;  /* when the last one at all began */
	uint64_t all_cpu_ns;
	struct held_locks_answer answer; /* what stands still by the last look */
	const struct held_lock *longest; /* of that; NULL: none, see held_locks_longest_lock() */
};

/* A look, on the thread */

/* It was found by an earlier look, too. */
static bool stands(const struct held_locks_answer *answer, const struct held_lock *seen)
{
	return seen->since_ns < answer->look_ns;
}

static bool is_at_fault(const struct held_lock *seen)
{
	return seen->holder_pid &&
		(seen->deadlocked_with ||
			!syscall_may_wait_for_work(seen->holder_state, seen->holder_syscall));
}

static void forget_holder(struct held_lock *seen)
{
	seen->holder_pid = seen->holder = seen->deadlocked_with = 0;
	seen->is_inferred = false;
	seen->holder_comm[0] = seen->holder_stack[0] = seen->holder_state = '\0';
	seen->holder_syscall = -1;
}

/* False: it has ended since it was found. */
static bool describe_holder(struct lock_search *s, struct held_lock *seen)
{
	const int32_t tid = seen->holder ? seen->holder : seen->holder_pid;
	struct watch_thread_status status;
	char path[48], line[256];
	uint64_t address;
	uint32_t value;
	int r;

	snprintf(path, sizeof(path), "%d/task/%d/status", seen->holder_pid, tid);
	r = thread_status_read_at(s->procfs_fd, path, &status);
	if (r == -ENOENT || r == -ESRCH)
		return false;
	if (r == 0) {
		text_copy(seen->holder_comm, sizeof(seen->holder_comm), status.comm);
		seen->holder_state = status.state;
	}
	snprintf(path, sizeof(path), "%d/task/%d/syscall", seen->holder_pid, tid);
	if (file_read_at(s->procfs_fd, path, line, sizeof(line)) > 0)
		mutexes_parse_syscall(line, &seen->holder_syscall, &address, &value);
	seen->holder_stack[0] = '\0';
	if (seen->holder_state != 'R')
		thread_read_stack(s->procfs_fd, tid, seen->holder_stack);
	return true;
}

static void describe(struct lock_search *s, struct held_lock *seen)
{
	struct watch_thread_status status;
	bool is_there;

	if (!lock_search_may_look_at(s, seen->pid))
		return;
	if (thread_status_read(s->procfs_fd, seen->pid, &status) == 0)
		text_copy(seen->comm, sizeof(seen->comm), status.comm);
	seen->holder_syscall = -1;
	if (!seen->holder_pid || !lock_search_may_look_at(s, seen->holder_pid))
		return;
	is_there = describe_holder(s, seen);
	if (is_there && is_at_fault(seen) && !seen->deadlocked_with) {
		nanosleep(&again, NULL);
		is_there = describe_holder(s, seen);
	}
	if (!is_there)
		forget_holder(seen);
}

static void run(void *state, const int *fds)
{
	static void (*const sources[])(struct lock_search *) = {
#define SOURCE(name) lock_search_##name,
#define CALL(name)
#include "snapshot/lock_sources.def"
#undef CALL
#undef SOURCE
	};
	uint64_t cpu_ns = clock_thread_cpu_ns();
	struct lock_search *s = state;

	s->procfs_fd = fds[0];
	s->begin_ns = clock_mono_ns();
	s->deadline_ns = s->begin_ns + LOOK_NS;
	s->has_new = false;
	/* What a look that was cut off has not found may stand all the same. */
	if (!s->was_cut_off)
		s->last = s->answer;
	s->answer = (struct held_locks_answer){ .look_ns = s->begin_ns };
	lock_search_look(s);
	if (s->deadline_ns < clock_mono_ns() + SOURCES_NS)
		s->deadline_ns = clock_mono_ns() + SOURCES_NS;
	for (unsigned int i = 0; i < ARRAY_SIZE(sources); i++)
		sources[i](s);
	for (uint32_t i = 0; i < s->answer.count; i++)
		if (stands(&s->answer, &s->answer.list[i]) &&
			(s->armed || s->answer.list[i].kind != RECORD_KERNEL_LOCK_file ||
				lock_search_is_about(s, s->answer.list[i].pid)))
			describe(s, &s->answer.list[i]);
	s->was_cut_off = clock_mono_ns() >= s->deadline_ns;
	s->cpu_ns = clock_thread_cpu_ns() - cpu_ns;
}

/* Questions and answers, on the event loop */

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct lock_search),
	.limit_ns = HELD_LOCKS_LIMIT_NS,
};

int held_locks_new(int procfs_fd, struct held_locks **ret_locks)
{
	struct held_locks *m = renewable_worker_new(sizeof(*m), &kind, procfs_fd);

	if (!m)
		return -errno;
	m->socket_program_fd = -1;
	*ret_locks = m;
	return 0;
}

void held_locks_set_socket_program(struct held_locks *m, int program_fd)
{
	m->socket_program_fd = program_fd;
}

void held_locks_clear_refusals(struct held_locks *m)
{
	m->refusals_count = 0;
}

void held_locks_add_refusal(struct held_locks *m, const struct held_locks_refusal *refusal)
{
	if (m->refusals_count < HELD_LOCKS_REFUSALS_MAX)
		m->refusals[m->refusals_count++] = *refusal;
}

struct held_locks *held_locks_free(struct held_locks *m)
{
	return renewable_worker_free(m);
}

void held_locks_replace_hung(struct held_locks *m, uint64_t now_ns)
{
	struct lock_search *hung = m->worker.state;
	int place = renewable_worker_renew(&m->worker, now_ns);

	if (place == -EBUSY && !m->has_told)
		log_warning(
			"watch: %d processes keep whoever asks about them waiting; the rules mutex and "
			"lock are not checked, and records have no locks of programs, until one of them answers",
			RENEWABLE_WORKER_HUNG_MAX + 1);
	m->has_told = m->has_told || place == -EBUSY;
	if (place < 0)
		return;
	m->is_asked = false;
	m->answer.count = 0;
	m->longest = NULL;
	m->hung[place] = __atomic_load_n(&hung->looking_at, __ATOMIC_ACQUIRE);
	log_notice(
		"watch: process %d keeps whoever asks about it waiting; the rules mutex and lock "
		"leave it out until it answers",
		m->hung[place]);
}

bool held_locks_lacks(const struct held_locks *m, uint64_t now_ns)
{
	return m->is_skipping || renewable_worker_is_late(&m->worker, now_ns);
}

/*
 * What is no reason for an incident: all locks of files are known, also those of other processes; a
 * server may wait for as long as it likes for a client that does something else before it reads
 * from its socket, and so may a process of a single thread, which is one session; and who waits for
 * the lock of somebody who has no work waits to take his place.
 */
static bool is_of_trouble(const struct lock_search *s, const struct held_lock *seen)
{
	if (seen->kind != RECORD_KERNEL_LOCK_file && seen->kind != RECORD_KERNEL_LOCK_pipe)
		return false;
	return lock_search_is_about(s, seen->pid) && !seen->tries && !seen->is_alone &&
		!(seen->holder_pid &&
			syscall_may_wait_for_work(seen->holder_state, seen->holder_syscall));
}

static const struct held_lock *find_longest(const struct held_locks_answer *answer,
	const struct lock_search *s)
{
	const struct held_lock *longest = NULL;

	for (uint32_t i = 0; i < answer->count; i++) {
		const struct held_lock *seen = &answer->list[i];

		if (!is_of_trouble(s, seen) || answer->look_ns - seen->since_ns >= FREEZE_NS)
			continue;
		if (!longest || seen->since_ns < longest->since_ns)
			longest = seen;
	}
	return longest;
}

static void take_answer(struct held_locks *m, const struct lock_search *s)
{
	m->answer = (struct held_locks_answer){ .look_ns = s->answer.look_ns };
	for (uint32_t i = 0; i < s->answer.count; i++)
		if (stands(&s->answer, &s->answer.list[i]))
			m->answer.list[m->answer.count++] = s->answer.list[i];
	m->last_ns = m->worker.started_ns;
	/* What stands still may have been released a moment later, and samples say it is so now. */
	m->longest = find_longest(&m->answer, s);
	m->has_new =
		(s->has_new && !s->only_known) || held_locks_worst_mutex(&m->answer) || m->longest;
	if (s->only_known)
		return;
	m->all_ns = m->last_ns;
	m->all_cpu_ns = s->cpu_ns;
}

/* Who has begun to wait, or stands still, is looked at once more soon. */
static void look(struct held_locks *m, const struct watch_process *processes, unsigned int count,
	bool armed, uint64_t now_ns)
{
	uint64_t interval_ns = m->all_cpu_ns * (armed ? ARMED_TIMES : IDLE_TIMES);
	uint64_t least_ns = armed ? LEAST_NS : IDLE_LEAST_NS;
	struct lock_search *s = m->worker.state;

	interval_ns = interval_ns < least_ns ? least_ns : interval_ns;
	interval_ns = interval_ns > MOST_NS ? MOST_NS : interval_ns;
	s->armed = armed;
	if (armed)
		lock_search_ask_sockets(s, m->socket_program_fd);
	s->only_known = m->all_ns && now_ns < m->all_ns + interval_ns;
	if (s->only_known && !m->has_new)
		return;
	if (m->last_ns && now_ns < m->last_ns + LEAST_NS)
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(s->skip); i++)
		s->skip[i] = renewable_worker_hangs_at(&m->worker, i) ? m->hung[i] : 0;
	s->refusals_count = armed ? m->refusals_count : 0;
	memcpy(s->refusals, m->refusals, s->refusals_count * sizeof(s->refusals[0]));
	s->pids_count = 0;
	m->is_skipping = false;
	for (uint32_t i = 0; i < count && s->pids_count < ARRAY_SIZE(s->pids); i++) {
		/* Its threads wait for nothing but to go on. */
		if (processes[i].is_frozen)
			continue;
		s->pids[s->pids_count++] = processes[i].pid;
		m->is_skipping = m->is_skipping || lock_search_skips(s, processes[i].pid);
	}
	m->is_asked = true;
	m->has_told = false;
	renewable_worker_start(&m->worker, now_ns);
}

const struct held_locks_answer *held_locks_find(struct held_locks *m,
	const struct watch_process *processes, unsigned int count, bool armed, uint64_t now_ns)
{
	if (renewable_worker_is_busy(&m->worker)) {
		/* What was found may not be so any more, and must not keep an incident open. */
		if (now_ns - m->worker.started_ns >= HELD_LOCKS_LIMIT_NS) {
			m->answer.count = 0;
			m->longest = NULL;
		}
		return &m->answer;
	}
	if (m->is_asked)
		take_answer(m, m->worker.state);
	m->is_asked = false;
	look(m, processes, count, armed, now_ns);
	return &m->answer;
}

const struct held_lock *held_locks_longest_lock(const struct held_locks *m)
{
	return m->longest;
}

const struct held_lock *held_locks_worst_mutex(const struct held_locks_answer *answer)
{
	const struct held_lock *worst = NULL;

	for (uint32_t i = 0; i < answer->count; i++) {
		const struct held_lock *seen = &answer->list[i];

		if (seen->kind != RECORD_KERNEL_LOCK_mutex || !is_at_fault(seen) ||
			answer->look_ns - seen->since_ns >= FREEZE_NS)
			continue;
		if (!worst || seen->waiters > worst->waiters)
			worst = seen;
	}
	return worst;
}
