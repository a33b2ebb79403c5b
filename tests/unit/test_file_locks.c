/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Locks of files that processes of this test hold and wait for, as the kernel tells them. */
#include "test_waits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "snapshot/held_locks.h"
#include "util/clock.h"
#include "util/syscalls.h"

#define MORE_MAX 120
#define PATH_SIZE 80
#define FILES (2 * HELD_LOCKS_OF_KIND + 1)

struct fixture {
	int procfs_fd;
	struct held_locks *locks;
	uint64_t now_ns;
	char path[64];
	int fd;
	pid_t holder;
	pid_t waiter;
	bool serves; /* whoever has a lock then waits for work */
	struct watch_process asked;
	unsigned int asked_count;
	unsigned int more_count;
	pid_t more[MORE_MAX];
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

/* More files than locks are remembered. */
static void name_file(const struct fixture *f, int i, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "%s.%d", f->path, i);
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
	char path[PATH_SIZE];

	for (unsigned int i = 0; i < f->more_count; i++)
		end(f->more[i]);
	end(f->waiter);
	end(f->holder);
	assert_null(held_locks_free(f->locks));
	for (int i = 0; i < FILES; i++) {
		name_file(f, i, path);
		unlink(path);
	}
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

static int take_shared(int fd)
{
	return flock(fd, LOCK_SH);
}

static int take_range(int fd, off_t begin)
{
	struct flock range = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = begin,
		.l_len = 10 };

	return fcntl(fd, F_SETLKW, &range);
}

static int take_posix(int fd)
{
	return take_range(fd, 0);
}

static int take_second_range(int fd)
{
	return take_range(fd, 20);
}

static int take_both_ranges(int fd)
{
	return take_posix(fd) < 0 ? -1 : take_second_range(fd);
}

/* Of the range that a lock of flock(2) has, too. */
static int take_ofd(int fd)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLKW, &range);
}

static int read_range(int fd, off_t len)
{
	struct flock range = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = len };

	return fcntl(fd, F_SETLKW, &range);
}

static int read_first(int fd)
{
	return read_range(fd, 10);
}

static int read_both(int fd)
{
	return read_range(fd, 30);
}

/* What fdinfo says of them is longer than a page. */
static int take_flock_and_many_ranges(int fd)
{
	for (off_t i = 0; i < 100; i++)
		if (take_range(fd, 1000 + 20 * i) < 0)
			return -1;
	return take_flock(fd);
}

static int take_again_and_again(int fd)
{
	while (flock(fd, LOCK_EX) == 0)
		if (flock(fd, LOCK_UN) < 0)
			break;
	return -1;
}

/* A process that takes the lock by a descriptor of its own, says so, and keeps it. */
static pid_t start_at(const struct fixture *f, const char *path, int (*take)(int fd), int told_fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Else it would have what the test has locked, too. */
	close(f->fd);
	if (take(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0 || write(told_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		if (f->serves)
			poll(NULL, 0, -1);
		else
			pause();
}

static pid_t start(const struct fixture *f, int (*take)(int fd), int told_fd)
{
	return start_at(f, f->path, take, told_fd);
}

/* Another process; one that holds something says so. */
static pid_t start_more(struct fixture *f, const char *path, int (*take)(int fd), bool waits)
{
	int told[2];
	char byte;
	pid_t pid;

	assert_true(f->more_count < MORE_MAX);
	assert_int_equal(pipe(told), 0);
	pid = f->more[f->more_count++] = start_at(f, path, take, told[1]);
	if (!waits)
		assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	close(told[1]);
	return pid;
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

static void wait_for_waiter(const struct fixture *f)
{
	char path[48], line[64];
	int number = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", f->waiter);
	for (unsigned int i = 0; i < WAITS_MAX && number != SYS_flock; i++) {
		FILE *file = fopen(path, "re");

		assert_non_null(file);
		if (!fgets(line, sizeof(line), file) || sscanf(line, "%d ", &number) != 1)
			number = -1;
		fclose(file);
	}
	assert_int_equal(number, SYS_flock);
}

/* The same process waits in each look, and has run between them. */
static void test_a_lock_that_goes_round(void **state)
{
	struct fixture *f = *state;
	uint64_t given_ns = clock_mono_ns(), before_ns = 0;

	assert_int_equal(flock(f->fd, LOCK_EX), 0);
	f->waiter = start(f, take_again_and_again, -1);
	for (unsigned int turn = 0; turn < 20; turn++) {
		const struct held_locks_answer *answer;
		const struct held_lock *lock;

		wait_for_waiter(f);
		do {
			f->now_ns += 60 * NSEC_PER_SEC;
			answer = held_locks_find(f->locks, NULL, 0, true, f->now_ns);
			usleep(1000);
		} while (answer->look_ns < given_ns);
		lock = find(f, answer);
		/* The look before may have been under way when it was given away. */
		assert_true(!lock || lock->since_ns >= before_ns);
		before_ns = given_ns;
		assert_int_equal(flock(f->fd, LOCK_UN), 0);
		assert_int_equal(flock(f->fd, LOCK_EX), 0);
		given_ns = clock_mono_ns();
	}
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

/* The lock with so many waiters, of which this one waits longest (0: whichever); NULL: none. */
static const struct held_lock *find_with(const struct held_locks_answer *answer, uint32_t waiters,
	pid_t waiter)
{
	for (uint32_t i = 0; i < answer->count; i++)
		if (answer->list[i].kind == RECORD_KERNEL_LOCK_file &&
			answer->list[i].waiters == waiters &&
			(!waiter || answer->list[i].pid == waiter))
			return &answer->list[i];
	return NULL;
}

static const struct held_lock *look_for(struct fixture *f, uint32_t waiters, pid_t waiter)
{
	const struct held_lock *lock = NULL;

	for (unsigned int i = 0; i < WAITS_MAX && !lock; i++) {
		f->now_ns += 60 * NSEC_PER_SEC;
		lock = find_with(held_locks_find(f->locks, NULL, 0, true, f->now_ns), waiters,
			waiter);
		usleep(1000);
	}
	assert_non_null(lock);
	return lock;
}

/*
 * A look that was under way has what was said before, though its thread may begin it only now: the
 * second answer from now on is of a look that was asked with these.
 */
static const struct held_lock *look_with(struct fixture *f,
	const struct held_locks_refusal *refusals, unsigned int count)
{
	const struct held_locks_answer *answer;
	uint64_t after_ns = clock_mono_ns();

	held_locks_clear_refusals(f->locks);
	for (unsigned int i = 0; i < count; i++)
		held_locks_add_refusal(f->locks, &refusals[i]);
	for (unsigned int looks = 0; looks < 2; looks++) {
		do {
			f->now_ns += 60 * NSEC_PER_SEC;
			answer = held_locks_find(f->locks, &f->asked, f->asked_count, true,
				f->now_ns);
			usleep(1000);
		} while (answer->look_ns <= after_ns);
		after_ns = answer->look_ns;
	}
	return find(f, answer);
}

/* As the kernel lists the file, which is not as stat(2) has it on each file system. */
static struct record_dev find_dev(pid_t holder)
{
	struct record_dev dev = { 0 };
	char line[256];
	FILE *file = fopen("/proc/locks", "re");
	int pid;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %*s %*s %*s %d %x:%x:", &pid, &dev.major, &dev.minor) == 3 &&
			pid == holder)
			break;
	fclose(file);
	return dev;
}

/* Who tries for a lock again and again does not wait in the kernel, as SQLite does. */
static void test_who_tries_again(void **state)
{
	struct fixture *f = *state;
	struct held_locks_refusal refusal, wrong, both[2];
	const struct held_lock *lock;
	struct stat st;

	assert_int_equal(fstat(f->fd, &st), 0);
	f->holder = start_more(f, f->path, take_posix, false);
	f->more_count--;
	refusal = (struct held_locks_refusal){ .pid = getpid(),
		.tid = getpid(),
		.dev = find_dev(f->holder),
		.inode = st.st_ino,
		.begin = 9,
		.end = UINT64_MAX,
		.tries_ns = 10 * NSEC_PER_SEC,
		.is_read = true };
	f->asked = (struct watch_process){ .pid = getpid() };
	f->asked_count = 1;
	lock = look_with(f, &refusal, 1);
	assert_non_null(lock);
	assert_true(lock->tries);
	/* Whoever tries may do something else in between, so this opens no incident. */
	assert_null(held_locks_longest_lock(f->locks));
	assert_int_equal(lock->waiters, 1);
	assert_int_equal(lock->pid, getpid());
	assert_int_equal(lock->holder_pid, f->holder);
	assert_true(lock->since_ns + 10 * NSEC_PER_SEC <= clock_mono_ns());
	assert_string_equal(lock->path, f->path);

	both[0] = both[1] = refusal;
	both[1].tries_ns++;
	both[1].tid++;
	lock = look_with(f, both, 2);
	assert_non_null(lock);
	assert_int_equal(lock->waiters, 2);
	assert_int_equal(lock->waiter, both[1].tid);

	wrong = refusal;
	wrong.begin = 10;
	assert_null(look_with(f, &wrong, 1));
	wrong = refusal;
	wrong.is_flock = true;
	assert_null(look_with(f, &wrong, 1));
	wrong = refusal;
	wrong.inode++;
	assert_null(look_with(f, &wrong, 1));
	wrong = refusal;
	wrong.dev.minor++;
	assert_null(look_with(f, &wrong, 1));
	wrong = refusal;
	wrong.dev.major++;
	assert_null(look_with(f, &wrong, 1));
	wrong = refusal;
	wrong.pid = f->holder;
	assert_null(look_with(f, &wrong, 1));
}

/* Those who read share a lock, so none of them keeps another one from it. */
static void test_who_reads_tries(void **state)
{
	struct fixture *f = *state;
	struct held_locks_refusal refusal;
	struct stat st;

	assert_int_equal(fstat(f->fd, &st), 0);
	f->holder = start_more(f, f->path, take_shared, false);
	f->more_count--;
	refusal = (struct held_locks_refusal){ .pid = getpid(),
		.tid = getpid(),
		.dev = find_dev(f->holder),
		.inode = st.st_ino,
		.end = UINT64_MAX,
		.tries_ns = NSEC_PER_SEC,
		.is_flock = true,
		.is_read = true };
	assert_null(look_with(f, &refusal, 1));
	refusal.is_read = false;
	assert_non_null(look_with(f, &refusal, 1));
}

/* Ranges of a file are locks of their own, and so is what flock(2) takes. */
static void test_locks_of_one_file(void **state)
{
	struct fixture *f = *state;
	pid_t first, second, third, other;

	f->holder = start_more(f, f->path, take_both_ranges, false);
	f->more_count--;
	other = start_more(f, f->path, take_flock, false);
	first = start_more(f, f->path, take_posix, true);
	second = start_more(f, f->path, take_second_range, true);
	third = start_more(f, f->path, take_flock, true);
	assert_int_equal(look_for(f, 1, first)->holder_pid, f->holder);
	assert_int_equal(look_for(f, 1, second)->holder_pid, f->holder);
	assert_int_equal(look_for(f, 1, third)->holder_pid, other);
}

static void test_kinds_of_locks(void **state)
{
	struct fixture *f = *state;
	pid_t of_flock, first, second;

	f->holder = start_more(f, f->path, take_ofd, false);
	f->more_count--;
	of_flock = start_more(f, f->path, take_flock, false);
	first = start_more(f, f->path, take_posix, true);
	second = start_more(f, f->path, take_flock, true);
	assert_int_equal(look_for(f, 1, first)->holder_pid, f->holder);
	assert_int_equal(look_for(f, 1, second)->holder_pid, of_flock);
}

static void test_ranges_that_begin_together(void **state)
{
	struct fixture *f = *state;
	pid_t both, first, second;

	f->holder = start_more(f, f->path, read_first, false);
	f->more_count--;
	both = start_more(f, f->path, read_both, false);
	second = start_more(f, f->path, take_second_range, true);
	first = start_more(f, f->path, take_posix, true);
	assert_int_equal(look_for(f, 1, second)->holder_pid, both);
	assert_int_equal(look_for(f, 1, first)->holder_pid, f->holder);
}

/* The kernel gives all of them with one lock, more than a page. */
static void test_many_waiters(void **state)
{
	struct fixture *f = *state;

	hold_and_wait(f, take_flock);
	assert_int_equal(look(f)->holder_pid, f->holder);
	while (f->more_count < 100)
		start_more(f, f->path, take_flock, true);
	assert_int_equal(look_for(f, 101, f->waiter)->holder_pid, f->holder);
}

/* Of many locks, those at which most wait, whatever their order. */
static void test_many_locks(void **state)
{
	struct fixture *f = *state;
	char path[PATH_SIZE];

	for (int i = 0; i < FILES; i++) {
		name_file(f, i, path);
		start_more(f, path, take_flock, false);
		if (i == HELD_LOCKS_OF_KIND)
			start_more(f, path, take_flock, true);
		start_more(f, path, take_flock, true);
		start_more(f, path, take_flock, true);
	}
	look_for(f, 3, 0);
}

/* The lock is among many in what the kernel says of its file, and a child took it. */
static void test_holder_of_many_ranges(void **state)
{
	struct fixture *f = *state;

	hold_and_wait(f, take_flock_and_many_ranges);
	check(f, look(f), f->holder);
}

/*
 * How long threads have waited is known when an incident begins: with those of idle services nobody
 * is worse off by it. Who holds a lock is not searched for before that.
 */
static void test_before_an_incident(void **state)
{
	struct fixture *f = *state;
	struct watch_process asked = { .pid = getpid() };
	const struct held_lock *lock = NULL;
	uint64_t since_ns;

	hold_and_wait(f, take_flock);
	for (unsigned int i = 0; i < WAITS_MAX && !lock; i++) {
		f->now_ns += 60 * NSEC_PER_SEC;
		lock = find(f, held_locks_find(f->locks, &asked, 1, false, f->now_ns));
		usleep(1000);
	}
	assert_non_null(lock);
	/* It is a reason for an incident only where somebody waits who is watched. */
	assert_null(held_locks_longest_lock(f->locks));
	assert_string_equal(lock->holder_comm, "");
	asked.pid = f->waiter;
	for (unsigned int i = 0; i < WAITS_MAX && !held_locks_longest_lock(f->locks); i++) {
		f->now_ns += 60 * NSEC_PER_SEC;
		lock = find(f, held_locks_find(f->locks, &asked, 1, false, f->now_ns));
		usleep(1000);
	}
	assert_ptr_equal(held_locks_longest_lock(f->locks), lock);
	assert_string_equal(lock->path, "");
	since_ns = lock->since_ns;
	while (!*look(f)->path)
		;
	assert_int_equal(look(f)->since_ns, since_ns);
	check(f, look(f), f->holder);
}

/* Whoever has no work wants no lock, but to be the one that works, as a standby does. */
static void test_a_holder_without_work(void **state)
{
	struct fixture *f = *state;
	const struct held_lock *lock = NULL;
	struct watch_process asked;
	bool serves = false;

	f->serves = true;
	hold_and_wait(f, take_flock);
	asked = (struct watch_process){ .pid = f->waiter };
	for (unsigned int i = 0; i < WAITS_MAX && !serves; i++) {
		f->now_ns += 60 * NSEC_PER_SEC;
		lock = find(f, held_locks_find(f->locks, &asked, 1, false, f->now_ns));
		serves =
			lock && syscall_may_wait_for_work(lock->holder_state, lock->holder_syscall);
		usleep(1000);
	}
	assert_true(serves);
	assert_int_equal(lock->holder_pid, f->holder);
	assert_null(held_locks_longest_lock(f->locks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_range_of_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_took_it_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_since_when, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lock_that_goes_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_tries_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_reads_tries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_locks_of_one_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kinds_of_locks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranges_that_begin_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_waiters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_locks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holder_of_many_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_an_incident, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_holder_without_work, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
