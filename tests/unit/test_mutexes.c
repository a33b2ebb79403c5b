/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * Mutexes at which threads of watched programs stand still: what /proc and the words of a mutex
 * tell.
 */
#include "test_lock_looks.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "snapshot/lock_search.h"
#include "snapshot/mutexes.h"
#include "util/renewable_worker.h"

#define PID 100
#define OWNER 101
/* Which most tests do not have. */
#define OTHER_PID 300
#define ADDRESS 4096
#define OTHER_ADDRESS 8192

static void put_thread_of(struct fixture *f, int pid, int tid, const char *state,
	unsigned int switches, const char *syscall)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/task/%d/syscall", pid, tid);
	tree_put(f->t, name, "%s\n", syscall);
	snprintf(name, sizeof(name), "proc/%d/task/%d/status", pid, tid);
	tree_put(f->t, name,
		"Name:\tthread%d\nState:\t%s (x)\nTgid:\t%d\nPid:\t%d\nPPid:\t1\n"
		"voluntary_ctxt_switches:\t%u\nnonvoluntary_ctxt_switches:\t1\n",
		tid, state, pid, tid, switches);
}

static void put_thread(struct fixture *f, int tid, const char *state, unsigned int switches,
	const char *syscall)
{
	put_thread_of(f, PID, tid, state, switches, syscall);
}

static void put_waiter_of(struct fixture *f, int pid, int tid, unsigned int address,
	unsigned int switches)
{
	char line[128];

	snprintf(line, sizeof(line), "%d 0x%x 0x80 0x2 0x0 0x0 0x0 0x7ffc 0x7f00", SYS_futex,
		address);
	put_thread_of(f, pid, tid, "S", switches, line);
}

static void put_waiter(struct fixture *f, int tid, unsigned int address, unsigned int switches)
{
	put_waiter_of(f, PID, tid, address, switches);
}

/* With a mutex at ADDRESS and another at OTHER_ADDRESS. */
static void put_memory_of(struct fixture *f, int pid, uint32_t owner, uint32_t other_owner)
{
	char name[32];
	uint32_t memory[OTHER_ADDRESS / sizeof(uint32_t) + MUTEX_WORDS] = { 0 };
	const uint32_t words[MUTEX_WORDS] = { 2, 0, owner, 1, 0 };
	const uint32_t other[MUTEX_WORDS] = { 2, 0, other_owner, 1, 0 };

	memcpy(memory + ADDRESS / sizeof(uint32_t), words, sizeof(words));
	memcpy(memory + OTHER_ADDRESS / sizeof(uint32_t), other, sizeof(other));
	snprintf(name, sizeof(name), "proc/%d/mem", pid);
	tree_put_bytes(f->t, name, (const char *)memory, sizeof(memory));
}

static void put_memory(struct fixture *f, uint32_t owner, uint32_t other_owner)
{
	put_memory_of(f, PID, owner, other_owner);
}

/* Has another look made that much later, and waits so many ms for what it finds; NULL: nothing. */
static const struct held_locks_answer *look_after(struct fixture *f, uint64_t ns, bool armed,
	unsigned int patience)
{
	const struct watch_process processes[] = { { .pid = PID }, { .pid = OTHER_PID } };
	const struct held_locks_answer *answer;
	uint64_t before_ns;

	f->now_ns += ns;
	before_ns = held_locks_find(f->locks, processes, 2, armed, f->now_ns)->look_ns;
	for (unsigned int i = 0; i < patience; i++) {
		/* No other look begins: its time has not come. */
		answer = held_locks_find(f->locks, processes, 0, false, f->now_ns);
		if (answer->look_ns != before_ns)
			return answer;
		usleep(1000);
	}
	return NULL;
}

static const struct held_locks_answer *look_soon(struct fixture *f, uint64_t ns, bool armed)
{
	const struct held_locks_answer *answer = look_after(f, ns, armed, 10000);

	assert_non_null(answer);
	return answer;
}

static const struct held_locks_answer *look(struct fixture *f)
{
	return look_soon(f, 60 * NSEC_PER_SEC, true);
}

static bool looks_after(struct fixture *f, uint64_t ns, bool armed)
{
	return look_after(f, ns, armed, 300) != NULL;
}

static void test_parse_syscall(void **state)
{
	static const struct {
		const char *line;
		bool waits;
		int32_t number;
	} cases[] = {
		{ "running\n", false, -1 },
		{ "-1 0x7ffc 0x7f00\n", false, -1 },
		{ "0 0x3 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f00\n", false, 0 },
		{ "", false, -1 },
	};
	char line[128];
	uint64_t address = 0;
	uint32_t value = 0;
	int32_t number;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(mutexes_parse_syscall(cases[i].line, &number, &address, &value),
			cases[i].waits);
		assert_int_equal(number, cases[i].number);
	}
	snprintf(line, sizeof(line), "%d 0x55aa00 0x80 0x2 0x0", SYS_futex);
	assert_true(mutexes_parse_syscall(line, &number, &address, &value));
	assert_int_equal(address, 0x55aa00);
	assert_int_equal(value, 2);
	/* FUTEX_WAKE waits for nothing. */
	snprintf(line, sizeof(line), "%d 0x55aa00 0x81 0x1 0x0", SYS_futex);
	assert_false(mutexes_parse_syscall(line, &number, &address, &value));
}

static void test_owner(void **state)
{
	static const struct {
		uint32_t words[MUTEX_WORDS];
		uint32_t expected;
		int32_t owner;
	} cases[] = {
		{ { 2, 0, 42, 1, 0 }, 2, 42 },
		/* Adaptive, as those of MariaDB are. */
		{ { 2, 0, 42, 1, 3 }, 2, 42 },
		/* Nobody waits; it was let go; it is a condition; the kind is none. */
		{ { 1, 0, 42, 1, 0 }, 1, 0 },
		{ { 2, 0, 0, 0, 0 }, 2, 0 },
		{ { 2, 0, 42, 1, 0 }, 7, 0 },
		{ { 2, 0, 42, 1, 0x7f00 }, 2, 0 },
		/* With priority inheritance the word has the owner and that others wait. */
		{ { FUTEX_WAITERS | 42, 0, 42, 1, 0x20 }, 42, 42 },
		{ { FUTEX_WAITERS | 42, 0, 43, 1, 0x20 }, 42, 0 },
		{ { 42, 0, 42, 1, 0x20 }, 42, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mutexes_owner(cases[i].words, cases[i].expected), cases[i].owner);
}

static void test_a_mutex_is_held(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer;
	uint64_t let_go_ns;
	char sleeps[64];

	tree_put(f->t, "proc/100/status",
		"Name:\tmysqld\nState:\tS (x)\nTgid:\t100\nPid:\t100\nPPid:\t1\n");

	snprintf(sleeps, sizeof(sleeps), "%d 0x0 0x0 0x7ffc 0x0 0x0 0x0 0x7ffc 0x7f00",
		SYS_clock_nanosleep);
	put_memory(f, OWNER, 0);
	put_thread(f, OWNER, "S", 5, sleeps);
	for (int tid = 102; tid < 106; tid++)
		put_waiter(f, tid, ADDRESS, 5);
	/* The first look does not know who stands still. */
	assert_int_equal(look(f)->count, 0);
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].pid, PID);
	assert_string_equal(answer->list[0].comm, "mysqld");
	assert_int_equal(answer->list[0].address, ADDRESS);
	assert_int_equal(answer->list[0].waiters, 4);
	assert_int_equal(answer->list[0].holder, OWNER);
	assert_string_equal(answer->list[0].holder_comm, "thread101");
	assert_int_equal(answer->list[0].holder_state, 'S');
	assert_int_equal(answer->list[0].holder_syscall, SYS_clock_nanosleep);
	assert_true(answer->list[0].since_ns < answer->look_ns);
	assert_true(answer->list[0].held_since_ns < answer->look_ns);
	/* One has had it meanwhile and waits again: who held it for how long is not known. */
	put_waiter(f, 105, ADDRESS, 6);
	let_go_ns = look(f)->look_ns;
	answer = look(f);
	assert_int_equal(answer->list[0].waiters, 4);
	assert_int_equal(answer->list[0].holder, OWNER);
	assert_int_equal(answer->list[0].held_since_ns, let_go_ns);
	/* Another thread has it now. */
	put_memory(f, 105, 0);
	put_thread(f, 105, "R", 9, "running");
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].waiters, 3);
	assert_int_equal(answer->list[0].holder, 0);
}

/* A thread that is stopped waits to go on, and so do all of a process that is frozen. */
static void test_what_is_stopped_waits_for_no_mutex(void **state)
{
	struct fixture *f = *state;
	const struct watch_process frozen = { .pid = PID, .is_frozen = true };
	const struct held_locks_answer *answer = NULL;
	uint64_t asked_ns;
	char call[64];

	snprintf(call, sizeof(call), "%d 0x%x 0x80 0x2 0x0 0x0 0x0 0x7ffc 0x7f00", SYS_futex,
		ADDRESS);
	put_memory(f, OWNER, 0);
	put_thread(f, OWNER, "R", 5, "running");
	put_thread(f, 102, "S", 5, call);
	put_thread(f, 103, "T", 5, call);
	put_thread(f, 104, "t", 5, call);
	look(f);
	assert_int_equal(look(f)->list[0].waiters, 1);
	asked_ns = clock_mono_ns();
	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		f->now_ns += 60 * NSEC_PER_SEC;
		answer = held_locks_find(f->locks, &frozen, 1, true, f->now_ns);
		if (answer->look_ns > asked_ns)
			break;
		usleep(1000);
	}
	assert_true(answer->look_ns > asked_ns);
	assert_int_equal(answer->count, 0);
}

/*
 * The owner has been at another mutex for a moment only: its own waiters are not charged to that.
 */
static void test_a_link_that_does_not_stand(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer;

	put_memory(f, 102, OWNER);
	put_thread(f, OWNER, "R", 5, "running");
	put_waiter(f, 102, OTHER_ADDRESS, 5);
	put_waiter(f, 103, ADDRESS, 5);
	look(f);
	put_waiter(f, 102, OTHER_ADDRESS, 6);
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].address, ADDRESS);
	assert_int_equal(answer->list[0].holder, 102);
}

/* In a container with ids of its own the owner's id is another thread's out here. */
static void test_a_container(void **state)
{
	struct fixture *f = *state;

	put_memory(f, OWNER, 0);
	put_thread(f, OWNER, "R", 5, "running");
	put_waiter(f, 102, ADDRESS, 5);
	tree_put(f->t, "proc/100/status",
		"Name:\tmysqld\nState:\tS\nTgid:\t100\nPid:\t100\nNSpid:\t100\t1\n");
	look(f);
	assert_int_equal(look(f)->count, 0);
	tree_put(f->t, "proc/100/status",
		"Name:\tmysqld\nState:\tS\nTgid:\t100\nPid:\t100\nNSpid:\t100\n");
	look(f);
	assert_int_equal(look(f)->count, 1);
}

/* The owner of one mutex waits for the other one: all wait for that. */
static void test_a_chain(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer;

	put_memory(f, 102, OWNER);
	put_thread(f, OWNER, "D", 5, "17 0x3 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f00");
	put_waiter(f, 102, OTHER_ADDRESS, 5);
	for (int tid = 103; tid < 106; tid++)
		put_waiter(f, tid, ADDRESS, 5);
	look(f);
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].address, OTHER_ADDRESS);
	assert_int_equal(answer->list[0].waiters, 4);
	assert_int_equal(answer->list[0].holder, OWNER);
	assert_int_equal(answer->list[0].holder_state, 'D');
}

/* Two threads have a mutex each and wait for that of the other one; a third waits behind them. */
static void test_a_deadlock(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer;

	put_memory(f, 102, 103);
	put_waiter(f, 102, OTHER_ADDRESS, 5);
	put_waiter(f, 103, ADDRESS, 5);
	put_waiter(f, 104, OTHER_ADDRESS, 5);
	look(f);
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].address, ADDRESS);
	assert_int_equal(answer->list[0].waiters, 3);
	assert_int_equal(answer->list[0].holder, 102);
	assert_int_equal(answer->list[0].deadlocked_with, 103);
	assert_ptr_equal(held_locks_worst_mutex(answer), &answer->list[0]);
	/* One gives up, so that the other one has both. */
	put_memory(f, 103, 103);
	put_thread(f, 102, "R", 6, "running");
	put_thread(f, 103, "R", 6, "running");
	look(f);
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].holder, 103);
	assert_int_equal(answer->list[0].deadlocked_with, 0);
}

/* A word that is stale names nobody: the owner is no thread of the process. */
static void test_no_owner(void **state)
{
	struct fixture *f = *state;

	put_waiter(f, 102, ADDRESS, 5);
	put_memory(f, 4711, 0);
	look(f);
	assert_int_equal(look(f)->count, 0);
}

/* As those of a library that all processes of a server have at the same place. */
static void test_the_same_address_in_two_processes(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer;

	put_memory(f, OWNER, 0);
	put_thread(f, OWNER, "R", 5, "running");
	put_waiter(f, 102, ADDRESS, 5);
	put_memory_of(f, OTHER_PID, OTHER_PID + 1, 0);
	put_thread_of(f, OTHER_PID, OTHER_PID + 1, "R", 5, "running");
	put_waiter_of(f, OTHER_PID, OTHER_PID + 2, ADDRESS, 5);
	look(f);
	answer = look(f);
	assert_int_equal(answer->count, 2);
	for (uint32_t i = 0; i < answer->count; i++) {
		assert_int_equal(answer->list[i].waiters, 1);
		assert_int_equal(answer->list[i].holder_pid, answer->list[i].pid);
		assert_int_equal(answer->list[i].holder, answer->list[i].pid + 1);
	}
	assert_int_equal(answer->list[0].pid + answer->list[1].pid, PID + OTHER_PID);
}

/* It ends when it has been found. */
static void test_the_owner_ends(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer;

	put_memory(f, OWNER, 0);
	put_thread(f, OWNER, "R", 5, "running");
	put_waiter(f, 102, ADDRESS, 5);
	look(f);
	assert_int_equal(look(f)->list[0].holder, OWNER);
	tree_remove(f->t, "proc/100/task/101/status");
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].waiters, 1);
	assert_int_equal(answer->list[0].holder_pid, 0);
	assert_int_equal(answer->list[0].holder, 0);
	assert_int_equal(answer->list[0].holder_state, '\0');
}

/* A thread wants a mutex that it has, and another one waits behind it. */
static void test_a_thread_waits_for_itself(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer;

	put_memory(f, 102, 0);
	put_waiter(f, 102, ADDRESS, 5);
	put_waiter(f, 103, ADDRESS, 5);
	look(f);
	answer = look(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].waiters, 2);
	assert_int_equal(answer->list[0].holder, 102);
	assert_int_equal(answer->list[0].deadlocked_with, 102);
}

/* Looks cost little while nothing has happened: who has begun to wait is looked at once more. */
static void test_looks_before_an_incident(void **state)
{
	const uint64_t soon = NSEC_PER_SEC, later = 60 * NSEC_PER_SEC;
	struct fixture *f = *state;
	const struct held_locks_answer *answer;

	put_memory(f, OWNER, 0);
	put_thread(f, OWNER, "R", 5, "running");
	assert_int_equal(look_soon(f, later, false)->count, 0);
	for (int tid = 102; tid < 106; tid++)
		put_waiter(f, tid, ADDRESS, 5);
	assert_false(looks_after(f, soon, false));
	assert_int_equal(look_soon(f, later, false)->count, 0);
	/* This one comes too late to be seen at the next look. */
	put_waiter(f, 106, ADDRESS, 5);
	/* Nobody stands still who has waited for less. */
	assert_false(looks_after(f, soon / 2, false));
	answer = look_soon(f, soon, false);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].waiters, 4);
	assert_int_equal(answer->list[0].holder, OWNER);
	/* These are looked at each second: they may have it soon. */
	assert_int_equal(look_soon(f, soon, false)->list[0].waiters, 4);
	look_soon(f, later, false);
	assert_int_equal(look_soon(f, later, false)->list[0].waiters, 5);
	for (int tid = 102; tid < 107; tid++)
		put_thread(f, tid, "S", 6, "-1 0x7ffc 0x7f00");
	assert_int_equal(look_soon(f, soon, false)->count, 0);
	assert_false(looks_after(f, soon, false));
	assert_true(looks_after(f, soon, true));
	assert_false(looks_after(f, soon / 2, true));
}

/* As one whose memory is on a file system that does not answer. The other one is looked at. */
static void test_a_process_that_hangs_is_left_out(void **state)
{
	const struct watch_process processes[] = { { .pid = 200 }, { .pid = PID } };
	const struct held_locks_answer *answer = NULL;
	struct fixture *f = *state;
	char path[PATH_MAX + 64];

	tree_put(f->t, "proc/200/task/202/syscall", "running\n");
	snprintf(path, sizeof(path), "%s/200/task/201", f->t->procfs);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/200/task/201/syscall", f->t->procfs);
	assert_int_equal(mkfifo(path, 0644), 0);
	put_memory(f, OWNER, 0);
	put_thread(f, OWNER, "R", 5, "running");
	for (int tid = 102; tid < 106; tid++)
		put_waiter(f, tid, ADDRESS, 5);
	f->now_ns += 60 * NSEC_PER_SEC;
	held_locks_find(f->locks, processes, 2, true, f->now_ns);
	usleep(200000);
	f->now_ns += HELD_LOCKS_LIMIT_NS;
	held_locks_replace_hung(f->locks, f->now_ns);
	for (unsigned int i = 0; i < WAITS_MAX && (!answer || answer->count == 0); i++) {
		f->now_ns += NSEC_PER_SEC / 50;
		answer = held_locks_find(f->locks, processes, 2, true, f->now_ns);
		usleep(1000);
	}
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].pid, PID);
	assert_int_equal(answer->list[0].holder, OWNER);
	close(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

/* A process of two threads; who looks at the first of them hangs until the descriptor is closed. */
static int put_hanging(struct fixture *f, int pid)
{
	char path[PATH_MAX + 64], name[64];
	int fd;

	for (int tid = pid; tid < pid + 2; tid++) {
		snprintf(name, sizeof(name), "proc/%d/task/%d/syscall", pid, tid);
		tree_put(f->t, name, "running\n");
	}
	snprintf(path, sizeof(path), "%s/%d/task/%d/syscall", f->t->procfs, pid, pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	signal(SIGIO, SIG_IGN);
	/* The kernel lets others wait for a lease, and tells its holder that somebody does. */
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	return fd;
}

/* How many lines the log has, which is caught meanwhile, when a thread hangs for too long. */
static unsigned int replace_hung(struct fixture *f)
{
	int log_fd = memfd_create("log", MFD_CLOEXEC), stderr_fd = dup(STDERR_FILENO);
	unsigned int lines = 0;
	char log[4096];
	ssize_t n;

	f->now_ns += HELD_LOCKS_LIMIT_NS;
	assert_int_equal(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
	for (unsigned int i = 0; i < 3; i++)
		held_locks_replace_hung(f->locks, f->now_ns);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	n = pread(log_fd, log, sizeof(log) - 1, 0);
	close(log_fd);
	assert_true(n >= 0);
	log[n] = '\0';
	print_message("%s", log);
	for (const char *p = log; (p = strchr(p, '\n')); p++)
		lines++;
	return lines;
}

/* More than can be replaced: nothing is found any more, and that is said. */
static void test_many_processes_hang(void **state)
{
	struct watch_process processes[RENEWABLE_WORKER_HUNG_MAX + 1] = { 0 };
	int fds[RENEWABLE_WORKER_HUNG_MAX + 1];
	struct fixture *f = *state;
	unsigned int count = 0;

	look(f);
	assert_false(held_locks_lacks(f->locks, f->now_ns));
	while (count <= RENEWABLE_WORKER_HUNG_MAX) {
		processes[count].pid = 200 + 100 * (int)count;
		fds[count] = put_hanging(f, processes[count].pid);
		count++;
		f->now_ns += 60 * NSEC_PER_SEC;
		held_locks_find(f->locks, processes, count, true, f->now_ns);
		for (unsigned int i = 0; i < WAITS_MAX; i++) {
			if (fcntl(fds[count - 1], F_GETLEASE) != F_WRLCK)
				break;
			usleep(500);
		}
		assert_int_not_equal(fcntl(fds[count - 1], F_GETLEASE), F_WRLCK);
		assert_int_equal(held_locks_lacks(f->locks, f->now_ns), count > 1);
		assert_int_equal(replace_hung(f), 1);
	}
	assert_int_equal(replace_hung(f), 0);
	assert_true(held_locks_lacks(f->locks, f->now_ns));
	while (count > 0)
		close(fds[--count]);
	for (unsigned int i = 0; i < WAITS_MAX && held_locks_lacks(f->locks, f->now_ns); i++) {
		usleep(500);
		f->now_ns += 60 * NSEC_PER_SEC;
		held_locks_find(f->locks, processes, RENEWABLE_WORKER_HUNG_MAX + 1, true,
			f->now_ns);
	}
	assert_false(held_locks_lacks(f->locks, f->now_ns));
}

#define MUTEX(waiting, tid, state, syscall)                                                        \
	{                                                                                          \
		.kind = RECORD_KERNEL_LOCK_mutex, .since_ns = since, .waiters = (waiting),         \
		.holder_pid = PID, .holder = (tid), .holder_state = (state),                       \
		.holder_syscall = (syscall)                                                        \
	}

static void test_worst(void **state)
{
	const int32_t futex = SYS_futex;
	const uint64_t now = 200 * NSEC_PER_SEC, since = 190 * NSEC_PER_SEC;
	const struct held_locks_answer answer = {
		.look_ns = now,
		.count = 4,
		.list = {
			/* Its holder is not known. */
			{ .kind = RECORD_KERNEL_LOCK_mutex, .since_ns = since, .waiters = 9 },
			MUTEX(8, 8, 'S', futex),
			MUTEX(3, 3, 'R', -1),
			MUTEX(4, 4, 'D', futex),
		},
	};
	struct held_locks_answer old = { .look_ns = now, .count = 1, .list = { answer.list[3] } };

	(void)state;
	assert_int_equal(held_locks_worst_mutex(&answer)->holder, 4);
	assert_non_null(held_locks_worst_mutex(&old));
	/* For minutes: that is no freeze. */
	old.list[0].since_ns = now - 130 * NSEC_PER_SEC;
	assert_null(held_locks_worst_mutex(&old));
	/* Threads wait for each other. */
	old.list[0] = answer.list[1];
	assert_null(held_locks_worst_mutex(&old));
	old.list[0].deadlocked_with = 9;
	assert_non_null(held_locks_worst_mutex(&old));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_syscall),
		cmocka_unit_test(test_worst),
		cmocka_unit_test_setup_teardown(test_looks_before_an_incident, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_process_that_hangs_is_left_out, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_many_processes_hang, setup, teardown),
		cmocka_unit_test(test_owner),
		cmocka_unit_test_setup_teardown(test_a_mutex_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_stopped_waits_for_no_mutex, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_a_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_deadlock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_thread_waits_for_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_link_that_does_not_stand, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_container, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_same_address_in_two_processes, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_the_owner_ends, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
