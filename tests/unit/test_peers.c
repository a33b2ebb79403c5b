/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Pipes between processes of this test that are full, as the kernel tells of them. */
#include "test_waits.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "snapshot/held_locks.h"
#include "util/clock.h"
#include "util/text.h"

#define PROCESSES_MAX 12
/* Looks in which somebody could be named wrongly. */
#define LOOKS 5

struct fixture {
	int procfs_fd;
	struct held_locks *locks;
	uint64_t now_ns;
	int ends[2];
	unsigned int count;
	pid_t pids[PROCESSES_MAX];
	struct watch_process writers[PROCESSES_MAX];
	unsigned int writers_count;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->procfs_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->procfs_fd >= 0);
	assert_int_equal(held_locks_new(f->procfs_fd, &f->locks), 0);
	assert_int_equal(pipe(f->ends), 0);
	f->now_ns = NSEC_PER_SEC;
	*state = f;
	return 0;
}

static void close_end(struct fixture *f, int end)
{
	if (f->ends[end] >= 0)
		close(f->ends[end]);
	f->ends[end] = -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < f->count; i++) {
		kill(f->pids[i], SIGKILL);
		assert_int_equal(waitpid(f->pids[i], NULL, 0), f->pids[i]);
	}
	assert_null(held_locks_free(f->locks));
	close_end(f, 0);
	close_end(f, 1);
	close(f->procfs_fd);
	free(f);
	return 0;
}

static pid_t begin(struct fixture *f)
{
	pid_t pid;

	assert_true(f->count < PROCESSES_MAX);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		f->pids[f->count++] = pid;
	return pid;
}

/*
 * A process that has the reading end. Whenever it is asked by the socket it reads all, and says so.
 */
static pid_t start_reader(struct fixture *f, const int asks[2])
{
	pid_t pid = begin(f);
	char buf[4096];

	if (pid)
		return pid;
	close_end(f, 1);
	while (asks && read(asks[0], buf, 1) == 1) {
		for (int left = 16; left > 0; left--)
			if (read(f->ends[0], buf, sizeof(buf)) <= 0)
				_exit(1);
		if (write(asks[0], buf, 1) != 1)
			_exit(1);
	}
	for (;;)
		pause();
}

static void *write_on(void *userdata)
{
	static const char text[4096];
	const struct fixture *f = userdata;

	while (write(f->ends[1], text, sizeof(text)) > 0)
		;
	_exit(1);
}

/* A watched process that writes for ever. */
static pid_t start_writer(struct fixture *f, bool may_read)
{
	pid_t pid = begin(f);

	if (pid) {
		f->writers[f->writers_count++].pid = pid;
		return pid;
	}
	if (!may_read)
		close_end(f, 0);
	write_on(f);
	return pid;
}

/* Others on the host may wait for locks of files. */
static const struct held_lock *find_pipe(struct fixture *f, bool armed, uint64_t *ret_look_ns)
{
	const struct held_locks_answer *answer;

	f->now_ns += 60 * NSEC_PER_SEC;
	answer = held_locks_find(f->locks, f->writers, f->writers_count, armed, f->now_ns);
	*ret_look_ns = answer->look_ns;
	for (uint32_t i = 0; i < answer->count; i++)
		if (answer->list[i].kind == RECORD_KERNEL_LOCK_pipe)
			return &answer->list[i];
	return NULL;
}

static const struct held_lock *find(struct fixture *f, uint64_t *ret_look_ns)
{
	return find_pipe(f, true, ret_look_ns);
}

/* Until as many stand still, and somebody is named. */
static const struct held_lock *look(struct fixture *f, uint32_t waiters)
{
	const struct held_lock *lock = NULL;
	uint64_t look_ns;

	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		lock = find(f, &look_ns);
		if (lock && lock->waiters == waiters && lock->holder_pid)
			return lock;
		usleep(1000);
	}
	fail_msg("nobody was named");
	return NULL;
}

/* Nobody is named in any look after the first that finds the pipe. */
static void check_nobody(struct fixture *f)
{
	const struct held_lock *lock = NULL;
	uint64_t look_ns, last_ns = 0;
	unsigned int looks = 0;

	for (unsigned int i = 0; i < WAITS_MAX && looks < LOOKS; i++) {
		lock = find(f, &look_ns);
		if (lock && look_ns != last_ns) {
			looks++;
			last_ns = look_ns;
			assert_int_equal(lock->holder_pid, 0);
		}
		usleep(1000);
	}
	assert_int_equal(looks, LOOKS);
}

static void test_reader(void **state)
{
	struct fixture *f = *state;
	const pid_t reader = start_reader(f, NULL), writer = start_writer(f, false);
	const struct held_lock *lock;
	char comm[WATCH_COMM_SIZE];
	uint64_t since_ns;

	close_end(f, 0);
	lock = look(f, 1);
	assert_int_equal(lock->holder_pid, reader);
	assert_false(lock->is_inferred);
	assert_int_equal(lock->pid, writer);
	assert_int_equal(lock->fd, f->ends[1]);
	assert_int_equal(lock->holder, 0);
	assert_int_equal(lock->holder_state, 'S');
	assert_int_equal(prctl(PR_GET_NAME, comm), 0);
	assert_string_equal(lock->comm, comm);
	assert_string_equal(lock->holder_comm, comm);
	/* The writer has one thread, which is one session. */
	assert_true(lock->is_alone);
	assert_null(held_locks_longest_lock(f->locks));
	since_ns = lock->since_ns;
	assert_int_equal(lock->held_since_ns, since_ns);
	assert_int_equal(look(f, 1)->since_ns, since_ns);
	assert_int_equal(kill(reader, SIGSTOP), 0);
	while (look(f, 1)->holder_state != 'T')
		;
}

/* Each session of PostgreSQL is a process. */
static void test_several_writers(void **state)
{
	struct fixture *f = *state;
	const pid_t reader = start_reader(f, NULL);

	for (int i = 0; i < 4; i++)
		start_writer(f, false);
	close_end(f, 0);
	assert_int_equal(look(f, 4)->holder_pid, reader);
}

/* As the postmaster, which starts another logger when that one has ended. */
static void test_parent_has_the_end_too(void **state)
{
	struct fixture *f = *state;
	const pid_t reader = start_reader(f, NULL);
	const struct held_lock *lock;

	start_writer(f, false);
	lock = look(f, 1);
	assert_int_equal(lock->holder_pid, reader);
	assert_true(lock->is_inferred);
	assert_int_equal(look(f, 1)->holder_pid, reader);
}

static void test_two_readers(void **state)
{
	struct fixture *f = *state;

	start_reader(f, NULL);
	start_reader(f, NULL);
	start_writer(f, false);
	check_nobody(f);
}

/* As a program that reads, and has begun another one that has the end by chance. */
static void test_child_of_the_reader(void **state)
{
	struct fixture *f = *state;
	pid_t reader = begin(f);

	if (reader == 0) {
		close_end(f, 1);
		if (fork() == 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	start_writer(f, false);
	close_end(f, 0);
	check_nobody(f);
}

static void test_many_readers(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 9; i++)
		start_reader(f, NULL);
	start_writer(f, false);
	close_end(f, 0);
	check_nobody(f);
}

/* Who writes could read what it writes, and so could another one. */
static void test_writer_has_both_ends(void **state)
{
	struct fixture *f = *state;
	const pid_t reader = start_reader(f, NULL);

	start_writer(f, true);
	close_end(f, 0);
	assert_int_equal(look(f, 1)->holder_pid, reader);
}

/* As a program whose event loop does not come back to the pipe by which it wakes itself. */
static void test_nobody_else(void **state)
{
	struct fixture *f = *state;
	const pid_t writer = start_writer(f, true);

	close_end(f, 0);
	assert_int_equal(look(f, 1)->holder_pid, writer);
}

/* The other reader goes away: then it is the one that is left. */
static void test_reader_goes(void **state)
{
	struct fixture *f = *state;
	const pid_t reader = start_reader(f, NULL), other = start_reader(f, NULL);

	start_writer(f, false);
	close_end(f, 0);
	check_nobody(f);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(look(f, 1)->holder_pid, reader);
}

/* The one that was named goes away: whoever could read now is named, as a postmaster is. */
static void test_named_reader_goes(void **state)
{
	struct fixture *f = *state;
	const pid_t reader = start_reader(f, NULL);
	const struct held_lock *lock;
	uint64_t look_ns, ended_ns;
	siginfo_t ended;

	start_writer(f, false);
	assert_int_equal(look(f, 1)->holder_pid, reader);
	assert_int_equal(kill(reader, SIGKILL), 0);
	/* It is left to be collected, and has closed its files. */
	assert_int_equal(waitid(P_PID, (id_t)reader, &ended, WEXITED | WNOWAIT), 0);
	ended_ns = clock_mono_ns();
	do {
		lock = find(f, &look_ns);
		usleep(1000);
	} while (!lock || look_ns < ended_ns || !lock->holder_pid);
	assert_int_equal(lock->holder_pid, getpid());
}

static unsigned long count_sleeps(pid_t pid)
{
	char path[48], line[128];
	unsigned long count = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "voluntary_ctxt_switches: %lu", &count);
	fclose(status);
	return count;
}

/* A thread that is woken up on another CPU seems to sleep until that CPU takes notice. */
static void wait_for_sleep(pid_t pid, unsigned long before)
{
	for (unsigned int i = 0; i < WAITS_MAX && count_sleeps(pid) == before; i++)
		usleep(1000);
}

/* It is full all the time, and its writer waits in each look, but not since the one before. */
static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	const struct held_lock *lock;
	uint64_t look_ns, asked_ns, before_ns = 0;
	unsigned long sleeps;
	int asks[2];
	char byte = 0;
	pid_t writer;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, asks), 0);
	start_reader(f, asks);
	writer = start_writer(f, false);
	close_end(f, 0);
	for (unsigned int i = 0; i < LOOKS; i++) {
		look(f, 1);
		sleeps = count_sleeps(writer);
		assert_int_equal(write(asks[1], &byte, 1), 1);
		assert_int_equal(read(asks[1], &byte, 1), 1);
		wait_for_sleep(writer, sleeps);
		asked_ns = clock_mono_ns();
		do {
			lock = find(f, &look_ns);
			usleep(1000);
		} while (look_ns < asked_ns);
		/* The look before may have been under way when it read. */
		assert_true(!lock || lock->since_ns >= before_ns);
		before_ns = asked_ns;
	}
	close(asks[0]);
	close(asks[1]);
}

/* While no incident is open a process of one thread is not looked at, and nobody is named. */
static void test_idle(void **state)
{
	struct fixture *f = *state;
	uint64_t look_ns;

	start_reader(f, NULL);
	start_writer(f, false);
	close_end(f, 0);
	for (unsigned int i = 0; i < 200; i++) {
		assert_null(find_pipe(f, false, &look_ns));
		usleep(1000);
	}
}

/* Of a server with threads it is known, and a reason for an incident. */
static void test_idle_with_threads(void **state)
{
	struct fixture *f = *state;
	const struct held_lock *lock = NULL;
	uint64_t look_ns;
	pthread_t thread;
	pid_t pid;

	start_reader(f, NULL);
	pid = begin(f);
	if (pid == 0) {
		close_end(f, 0);
		if (pthread_create(&thread, NULL, write_on, f))
			_exit(1);
		write_on(f);
	}
	f->writers[f->writers_count++].pid = pid;
	close_end(f, 0);
	for (unsigned int i = 0; i < WAITS_MAX && !held_locks_longest_lock(f->locks); i++) {
		lock = find_pipe(f, false, &look_ns);
		usleep(1000);
	}
	assert_non_null(lock);
	assert_ptr_equal(held_locks_longest_lock(f->locks), lock);
	assert_int_equal(lock->pid, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parent_has_the_end_too, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_readers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child_of_the_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_readers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_writer_has_both_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_else, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reader_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_reader_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_with_threads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
