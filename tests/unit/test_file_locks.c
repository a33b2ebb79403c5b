/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Locks of files that processes of this test hold and wait for, as the kernel tells them. */
#include "test_waits.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "snapshot/held_locks.h"
#include "util/clock.h"

struct fixture {
	int procfs_fd;
	struct held_locks *locks;
	uint64_t now_ns;
	char path[64];
	int fd;
	pid_t holder;
	pid_t waiter;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->procfs_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->procfs_fd >= 0);
	assert_int_equal(held_locks_new(f->procfs_fd, &f->locks), 0);
	snprintf(f->path, sizeof(f->path), "/tmp/iostall-lock-XXXXXX");
	f->fd = mkstemp(f->path);
	assert_true(f->fd >= 0);
	f->now_ns = NSEC_PER_SEC;
	*state = f;
	return 0;
}

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	end(f->waiter);
	end(f->holder);
	assert_null(held_locks_free(f->locks));
	unlink(f->path);
	close(f->fd);
	close(f->procfs_fd);
	free(f);
	return 0;
}

static int take_flock(int fd)
{
	return flock(fd, LOCK_EX);
}

static int take_posix(int fd)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10 };

	return fcntl(fd, F_SETLKW, &range);
}

/* A process that takes the lock by a descriptor of its own, says so, and keeps it. */
static pid_t start(const struct fixture *f, int (*take)(int fd), int told_fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (take(open(f->path, O_RDWR | O_CLOEXEC)) < 0 || write(told_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void hold_and_wait(struct fixture *f, int (*take)(int fd))
{
	int told[2];
	char byte;

	assert_int_equal(pipe(told), 0);
	f->holder = start(f, take, told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	f->waiter = start(f, take, told[1]);
	close(told[0]);
	close(told[1]);
}

/* Other programs of the host may have locks that somebody waits for. */
static const struct held_lock *find(const struct fixture *f, const struct held_locks_answer *answer)
{
	struct stat st;

	assert_int_equal(fstat(f->fd, &st), 0);
	for (uint32_t i = 0; i < answer->count; i++)
		if (answer->list[i].kind == RECORD_KERNEL_LOCK_file &&
			answer->list[i].inode == st.st_ino)
			return &answer->list[i];
	return NULL;
}

/* Until threads stand still at the lock. */
static const struct held_lock *look(struct fixture *f)
{
	const struct held_lock *lock = NULL;

	for (unsigned int i = 0; i < WAITS_MAX && !lock; i++) {
		f->now_ns += 60 * NSEC_PER_SEC;
		lock = find(f, held_locks_find(f->locks, NULL, 0, true, f->now_ns));
		usleep(1000);
	}
	assert_non_null(lock);
	return lock;
}

static void check(const struct fixture *f, const struct held_lock *lock, pid_t holder)
{
	assert_string_equal(lock->path, f->path);
	assert_int_equal(lock->waiters, 1);
	assert_int_equal(lock->pid, f->waiter);
	assert_int_equal(lock->holder_pid, holder);
	assert_int_equal(lock->holder, 0);
	assert_string_equal(lock->comm, lock->holder_comm);
}

static void test_flock(void **state)
{
	struct fixture *f = *state;

	hold_and_wait(f, take_flock);
	check(f, look(f), f->holder);
}

static void test_range_of_a_file(void **state)
{
	struct fixture *f = *state;

	hold_and_wait(f, take_posix);
	check(f, look(f), f->holder);
}

/* As `exec 9>lock; flock 9` of a shell: a child takes the lock for it and ends. */
static void test_who_took_it_is_gone(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(take_flock(f->fd) < 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	f->waiter = start(f, take_flock, -1);
	check(f, look(f), getpid());
}

/* It has the lock for as long as it has been seen to hold it. */
static void test_since_when(void **state)
{
	struct fixture *f = *state;
	uint64_t since_ns, held_ns;

	hold_and_wait(f, take_flock);
	since_ns = look(f)->since_ns;
	held_ns = look(f)->held_since_ns;
	assert_int_equal(look(f)->since_ns, since_ns);
	assert_int_equal(look(f)->held_since_ns, held_ns);
	assert_true(held_ns >= since_ns);
}

/* A lock that nobody waits for is none of the answer. */
static void test_nobody_waits(void **state)
{
	struct fixture *f = *state;
	const struct held_lock *lock;

	hold_and_wait(f, take_flock);
	look(f);
	end(f->waiter);
	f->waiter = 0;
	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		f->now_ns += 60 * NSEC_PER_SEC;
		lock = find(f, held_locks_find(f->locks, NULL, 0, true, f->now_ns));
		if (!lock)
			return;
		usleep(1000);
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_range_of_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_took_it_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_since_when, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_waits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
