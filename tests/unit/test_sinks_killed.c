/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a killed daemon and a reset of the host leave: no line is lost that was written. */
#include "test_sinks_dirs.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

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
	s = dirs_summary(d->config.record.spool_dir, FIRST_ID);
	assert_false(s.being_written);
	/* The last line may have been finished but not counted yet. */
	assert_in_range(s.counts.records, written, written + 1);
	assert_int_equal(s.counts.garbage, 0);

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

/* Writes an incident with three stalls and takes its record away. Returns its length. */
static size_t take_record(const struct dirs *d, char *bytes, size_t size)
{
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	char path[2 * PATH_MAX];
	size_t len;

	dirs_write_incident(d, sinks, 0, 3);
	dirs_flush(sinks);
	sinks_free(sinks);
	len = dirs_read(d->config.record.dir, FIRST, bytes, size);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	assert_int_equal(unlink(path), 0);
	return len;
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
	size_t len;

	len = take_record(d, bytes, 65536);
	dirs_write(d->config.record.dir, "." FIRST ".part", bytes, len - 700);
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

	len = take_record(d, bytes, 65536);
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

static size_t part_bytes(const struct dirs *d)
{
	char path[2 * PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/." FIRST ".%d.part", d->config.record.dir, (int)getpid());
	if (stat(path, &st) < 0)
		return 0;
	/* What is not complete is for nobody but root. */
	assert_int_equal(st.st_mode & 07777, 0600);
	return (size_t)st.st_size;
}

static void wait_part_bytes(const struct dirs *d, size_t bytes)
{
	for (uint64_t begin_ns = clock_mono_ns(); part_bytes(d) != bytes; dirs_pause())
		if (clock_mono_ns() - begin_ns > DIRS_PATIENCE_NS)
			fail_msg("%zu bytes have been saved instead of %zu", part_bytes(d), bytes);
}

/*
 * Hosts are reset in the middle of freezes: then the spool is gone, and what has been saved until
 * then is the record.
 */
static void test_an_open_incident_is_saved_and_survives_a_reset(void **state)
{
	struct dirs *d = *state;
	const struct writer_options options = { .spool_dir = d->config.record.spool_dir,
		.dir = d->config.record.dir,
		.group = FILE_NO_GROUP,
		.retry_ns = WRITER_RETRY_NS,
		.save_ns = 10 * NSEC_PER_MSEC,
		.age_check_ns = WRITER_AGE_CHECK_NS };
	_cleanup_free_ char *bytes = malloc(65536);
	struct record_summary s;
	struct writer *writer;
	struct sinks *sinks;
	char path[2 * PATH_MAX];
	size_t len, first;
	int lock_fd;

	len = take_record(d, bytes, 65536);
	first = (size_t)((char *)memchr(bytes, '\n', len) - bytes) + 1;
	/* The same record while it is being written, with the beginning of its last line. */
	lock_fd = dirs_hold(d, FIRST);
	dirs_write(d->config.record.spool_dir, FIRST, bytes, len - 10);
	assert_int_equal(writer_new(&options, &writer), 0);
	writer_note_bytes(writer, first);
	writer_begin(writer, FIRST_ID);
	wait_part_bytes(d, first);
	while (bytes[--len - 1] != '\n')
		;
	writer_note_bytes(writer, len);
	wait_part_bytes(d, len);
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

/* Two daemons copied the record one after the other; the reset came during the second copy. */
static void test_of_two_saved_parts_the_longer_one_is_kept(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	struct sinks *sinks;
	char path[2 * PATH_MAX];
	size_t len;

	len = take_record(d, bytes, 65536);
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
		WITH_DIRS(test_the_record_of_a_killed_daemon_is_truncated_and_moved),
		WITH_DIRS(test_a_copy_that_a_reboot_interrupted_is_kept),
		WITH_DIRS(test_a_copy_that_another_process_has_open_is_no_obstacle),
		WITH_DIRS(test_an_open_incident_is_saved_and_survives_a_reset),
		WITH_DIRS(test_of_two_saved_parts_the_longer_one_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
