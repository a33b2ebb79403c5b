/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What a killed daemon and a reset of the host leave: no line is lost that was written. */
#include "test_sinks_dirs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sinks/lock.h"
#include "sinks/preallocator.h"
#include "sinks/writer.h"

/* Writes for ever and reports how many lines it has finished. */
static void write_until_killed(const struct dirs *d, volatile uint64_t *finished)
{
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));

	dirs_write_record(sinks, RECORD_OPEN, 0);
	*finished = 1;
	data_operation(r, RECORD_STALL);
	memset(r->operation.kstack, 'k', sizeof(r->operation.kstack) - 1);
	record_make_id(DATA_REAL_NS, 0, r->incident);
	for (unsigned int i = 0; i < 400; i++) {
		sinks_write(sinks, r);
		*finished += 1;
	}
	pause();
}

static void kill_at(const struct dirs *d, unsigned int delay_us)
{
	volatile uint64_t *finished =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct record_summary s;
	struct sinks *sinks;
	uint64_t written;
	pid_t child;

	dirs_wait_threads();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		write_until_killed(d, finished);
		_exit(1);
	}
	while (*finished == 0 && waitpid(child, NULL, WNOHANG) == 0)
		;
	for (uint64_t begin = clock_mono_ns(); clock_mono_ns() - begin < delay_us * NSEC_PER_USEC;)
		;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	written = *finished;
	/* It may have been killed before the file had its name. */
	if (dirs_count(d->config.record.spool_dir, FIRST) > 0) {
		s = dirs_summary(d->config.record.spool_dir, FIRST_ID);
		assert_false(s.being_written);
		/* The last line may have been finished but not counted yet. */
		assert_in_range(s.counts.records, written, written + 1);
		assert_int_equal(s.counts.garbage, 0);
	}

	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_in_range(s.counts.records, written, written + 1);
	assert_false(s.counts.torn);
	assert_int_equal(s.counts.garbage, 0);
	dirs_wait_count(d->config.record.spool_dir, "", 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
	munmap((void *)(uintptr_t)finished, 4096);
}

static void test_a_record_survives_a_kill_at_any_time(void **state)
{
	struct dirs *d = *state;
	char path[2 * PATH_MAX];

	d->config.record.spool_bytes = 4 << 20;
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	for (unsigned int i = 0; i < 40; i++) {
		kill_at(d, i * 97 % 1300);
		assert_int_equal(unlink(path), 0);
	}
}

/* Its thread that gives the file its name was kept waiting. */
static void test_a_record_without_its_name_is_filed(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536), *filed = malloc(65536);
	size_t len = dirs_take_record(d, 2, bytes, 65536);
	struct sinks *sinks;

	memset(bytes + len, '\n', 1000);
	dirs_write(d->config.record.spool_dir, ".preallocated-1.1", bytes, len + 1000);
	dirs_write(d->config.record.spool_dir, ".preallocated-1.2", bytes + len, 1000);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	assert_int_equal(dirs_read(d->config.record.dir, FIRST, filed, 65536), len);
	assert_memory_equal(filed, bytes, len);
	dirs_wait_count(d->config.record.spool_dir, "", 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
}

/* Another daemon, again and again: as src/sinks/preallocator.c, it makes a file in advance. */
struct maker {
	int spool_fd;
	bool done;
	unsigned int made;
	unsigned int lost; /* they were there when they had been locked, and not afterwards */
};

static void *make_files(void *userdata)
{
	static const char name[] = PREALLOCATOR_PREFIX "4194306";
	struct maker *m = userdata;
	int lock_fd = lock_open(m->spool_fd);

	while (!__atomic_load_n(&m->done, __ATOMIC_ACQUIRE)) {
		_cleanup_close_ int fd = openat(m->spool_fd, name, O_RDWR | O_CREAT | O_EXCL, 0600);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0 || lock_take(lock_fd, st.st_ino) < 0)
			continue;
		if (fstat(fd, &st) == 0 && st.st_nlink > 0) {
			m->made++;
			usleep(100);
			m->lost += fstat(fd, &st) == 0 && st.st_nlink == 0;
			unlinkat(m->spool_fd, name, 0);
		}
		lock_drop(lock_fd, st.st_ino);
	}
	close(lock_fd);
	return NULL;
}

/* The writer looks at the file while it is about to be locked. */
static void test_a_file_that_is_being_made_is_left_alone(void **state)
{
	const struct dirs *d = *state;
	const struct writer_options options = { .spool_dir = d->config.record.spool_dir,
		.dir = d->config.record.dir,
		.group = FILE_NO_GROUP,
		.retry_ns = NSEC_PER_SEC,
		.save_ns = NSEC_PER_SEC };
	struct maker m = { 0 };
	uint64_t begin_ns = clock_mono_ns();
	struct writer *writer;
	pthread_t thread;
	unsigned int passes = 0;

	assert_int_equal(mkdir(d->config.record.spool_dir, 0700), 0);
	m.spool_fd = open(d->config.record.spool_dir, O_RDONLY | O_DIRECTORY);
	assert_true(m.spool_fd >= 0);
	assert_int_equal(writer_new(&options, &writer), 0);
	assert_int_equal(pthread_create(&thread, NULL, make_files, &m), 0);
	for (; clock_mono_ns() - begin_ns < 2 * NSEC_PER_SEC; passes++) {
		writer_end(writer, FIRST_ID);
		while (!writer_is_flushed(writer) && clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS)
			usleep(1);
	}
	__atomic_store_n(&m.done, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close(m.spool_fd);
	writer_free(writer);
	print_message("%u passes, %u files made, %u lost\n", passes, m.made, m.lost);
	assert_true(passes > 0 && m.made > 0);
	assert_int_equal(m.lost, 0);
}

static void test_the_record_of_a_killed_daemon_is_truncated_and_moved(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536), *stored = malloc(65536);
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	size_t len, whole;

	dirs_write_incident(d, sinks, 0, 3);
	dirs_flush(sinks);
	sinks_free(sinks);
	len = dirs_read(d->config.record.dir, FIRST, bytes, 65536);
	/* Four lines, the beginning of the fifth, then padding. */
	whole = (size_t)((char *)memrchr(bytes, '\n', len - 1) - bytes) + 1;
	memset(bytes + whole + 100, '\n', 4096);
	dirs_write(d->config.record.spool_dir, FIRST, bytes, whole + 100 + 4096);
	dirs_write(d->config.record.spool_dir, "20261120T031208Z-0001.jsonl", bytes, 60);
	dirs_write(d->config.record.spool_dir, "20261120T031209Z-0002.jsonl", "\n\n\n", 3);
	dirs_write(d->config.record.spool_dir, "20261120T031210Z-0003.jsonl", "my own {}\n", 10);
	dirs_write(d->config.record.spool_dir, ".preallocated-4194305", "\n\n", 2);
	dirs_write(d->config.record.spool_dir, "notes.txt", "x", 1);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	assert_int_equal(dirs_read(d->config.record.dir, FIRST, stored, 65536), whole);
	assert_memory_equal(stored, bytes, whole);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	sinks_free(sinks);
	/* Other files stay: notes.txt and a file that merely has the name of a record. */
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 2);
	assert_int_equal(dirs_count(d->config.record.spool_dir, "-0003.jsonl"), 1);
}

static void test_a_copy_that_a_reboot_interrupted_is_kept(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	struct record_summary s;
	struct sinks *sinks;
	size_t len, last;

	len = dirs_take_record(d, 3, bytes, 65536);
	/* Three lines of five, and most of the fourth. */
	last = (size_t)((char *)memrchr(bytes, '\n', len - 1) - bytes);
	dirs_write(d->config.record.dir, "." FIRST ".part", bytes, last - 10);
	dirs_write(d->config.record.dir, ".20261120T031208Z-0001.jsonl.part", bytes, 10);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_int_equal(s.counts.records, 3);
	assert_false(s.counts.torn);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	sinks_free(sinks);
}

/* The old process was killed, but a thread of it hangs in the kernel with its copy. */
static void test_a_copy_that_another_process_has_open_is_no_obstacle(void **state)
{
	static const char part[] = "." FIRST ".4194304.part";
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	struct sinks *sinks;
	char path[2 * PATH_MAX];
	int fd;
	size_t len;

	len = dirs_take_record(d, 3, bytes, 65536);
	dirs_write(d->config.record.spool_dir, FIRST, bytes, len);
	dirs_write(d->config.record.dir, part, bytes, 700);
	snprintf(path, sizeof(path), "%s/%s", d->config.record.dir, part);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 5);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 0);
	assert_int_equal(dirs_count(d->config.record.dir, ".part"), 1);
	/* It can be removed when that process is gone. */
	close(fd);
	dirs_write_incident(d, sinks, 1, 1);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".part"), 0);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 5);
	sinks_free(sinks);
}

/*
 * Hosts are reset in the middle of freezes: then the spool is gone, and what has been saved until
 * then is the record.
 */
static void test_an_open_incident_is_saved_and_survives_a_reset(void **state)
{
	struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	struct record_summary s;
	struct writer *writer;
	struct sinks *sinks;
	char path[2 * PATH_MAX];
	size_t len, first;
	int lock_fd;

	len = dirs_take_record(d, 3, bytes, 65536);
	first = (size_t)((char *)memchr(bytes, '\n', len) - bytes) + 1;
	/* The same record while it is being written, with the beginning of its last line. */
	lock_fd = dirs_hold(d, FIRST);
	dirs_write(d->config.record.spool_dir, FIRST, bytes, len - 10);
	writer = dirs_writer(d);
	writer_note_bytes(writer, first);
	writer_begin(writer, FIRST_ID);
	dirs_wait_part_bytes(d, first);
	while (bytes[--len - 1] != '\n')
		;
	writer_note_bytes(writer, len);
	dirs_wait_part_bytes(d, len);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	/* The reset. */
	close(lock_fd);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.spool_dir);
	assert_int_equal(unlink(path), 0);
	writer_free(writer);
	dirs_wait_threads();
	/* The next boot. */
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	dirs_write_incident(d, sinks, 1, 1);
	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_int_equal(s.counts.records, 4);
	assert_false(s.closed);
	assert_false(s.being_written);
	assert_false(s.counts.torn);
	assert_int_equal(dirs_count(d->config.record.dir, ".part"), 0);
	sinks_free(sinks);
}

enum failing { FAILING_NOTHING, FAILING_TRUNCATE, FAILING_READ, FAILING_RENAME };

/* What fails for files that are parts; threads of the writer read it. */
static volatile enum failing failing;

static bool is_part(int fd)
{
	char link[64], path[2 * PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, ".part");
}

/* These stand for the functions of the C library in the whole program. */
int ftruncate(int fd, off_t length)
{
	if (failing == FAILING_TRUNCATE && is_part(fd)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_ftruncate, fd, length);
}

/* The end of a part can be read, and its beginning cannot. */
ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	if (failing == FAILING_READ && offset == 0 && is_part(fd)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, size, offset);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	if (failing == FAILING_RENAME && strstr(from, ".part")) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

static void wait_flushed(const struct writer *writer)
{
	uint64_t begin_ns = clock_mono_ns();

	for (; !writer_is_flushed(writer); dirs_pause())
		if (clock_mono_ns() - begin_ns > DIRS_PATIENCE_NS)
			fail_msg("the writer does not end its pass");
}

static void finish_later(const struct dirs *d, enum failing first, const char *bytes, size_t len)
{
	struct writer *writer;
	char path[2 * PATH_MAX];
	unsigned int parts;

	dirs_write(d->config.record.dir, "." FIRST ".4194304.part", bytes, len);
	failing = first;
	writer = dirs_writer(d);
	wait_flushed(writer);
	parts = dirs_count(d->config.record.dir, ".part");
	failing = FAILING_NOTHING;
	assert_int_equal(parts, 1);
	/* By itself. */
	dirs_wait_count(d->config.record.dir, ".part", 0);
	writer_free(writer);
	dirs_wait_threads();
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 4);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	assert_int_equal(unlink(path), 0);
}

/* It is the only copy: an error that passes must not remove it. */
static void test_a_saved_part_is_finished_later_when_the_disk_fails(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	size_t len = dirs_take_record(d, 3, bytes, 65536), whole;

	whole = (size_t)((char *)memrchr(bytes, '\n', len - 1) - bytes) + 1;
	finish_later(d, FAILING_TRUNCATE, bytes, len - 3);
	finish_later(d, FAILING_READ, bytes, len - 3);
	finish_later(d, FAILING_READ, bytes, whole);
	finish_later(d, FAILING_RENAME, bytes, whole);
}

/* It is complete already, so it stays, and nobody but root may open it. */
static void test_a_copy_that_cannot_be_renamed_stays(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	size_t len = dirs_take_record(d, 3, bytes, 65536);
	struct writer *writer;
	struct stat st;

	dirs_write(d->config.record.spool_dir, FIRST, bytes, len);
	failing = FAILING_RENAME;
	writer = dirs_writer(d);
	dirs_wait_count(d->config.record.dir, ".part", 1);
	writer_free(writer);
	dirs_wait_threads();
	failing = FAILING_NOTHING;
	assert_true(dirs_stat_part(d, &st));
	assert_int_equal(st.st_size, len);
	writer = dirs_writer(d);
	dirs_wait_count(d->config.record.dir, ".part", 0);
	writer_free(writer);
	dirs_wait_threads();
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 5);
}

/* Two daemons copied the record one after the other; the reset came during the second copy. */
static void test_of_two_saved_parts_the_longer_one_is_kept(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	struct sinks *sinks;
	char path[2 * PATH_MAX];
	size_t len;

	len = dirs_take_record(d, 3, bytes, 65536);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	for (unsigned int swapped = 0; swapped < 2; swapped++) {
		dirs_write(d->config.record.dir, "." FIRST ".4194302.part", bytes,
			swapped ? len - 3 : len / 2);
		dirs_write(d->config.record.dir, "." FIRST ".4194303.part", bytes,
			swapped ? len / 2 : len - 3);
		sinks = dirs_start(d, SINK_BIT(spool), -1, false);
		dirs_flush(sinks);
		assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 4);
		assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
		sinks_free(sinks);
		assert_int_equal(unlink(path), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_a_record_survives_a_kill_at_any_time),
		WITH_DIRS(test_a_record_without_its_name_is_filed),
		WITH_DIRS(test_a_file_that_is_being_made_is_left_alone),
		WITH_DIRS(test_the_record_of_a_killed_daemon_is_truncated_and_moved),
		WITH_DIRS(test_a_copy_that_a_reboot_interrupted_is_kept),
		WITH_DIRS(test_a_copy_that_another_process_has_open_is_no_obstacle),
		WITH_DIRS(test_an_open_incident_is_saved_and_survives_a_reset),
		WITH_DIRS(test_a_saved_part_is_finished_later_when_the_disk_fails),
		WITH_DIRS(test_a_copy_that_cannot_be_renamed_stays),
		WITH_DIRS(test_of_two_saved_parts_the_longer_one_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
