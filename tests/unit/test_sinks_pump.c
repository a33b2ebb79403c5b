/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pump: whoever writes to it never waits, whatever the file behind it does. */
#include "test_sinks_dirs.h"

#include <poll.h>

#include "sinks/pump.h"
#include "util/log.h"

/* Longer than any wait that would be a bug, shorter than anybody's patience. */
#define SHORT_NS (50 * NSEC_PER_MSEC)

static int open_out(const struct dirs *d)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/out", d->root);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void test_everything_arrives_in_order(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *expected = malloc(1 << 20), *stored = malloc(1 << 20);
	_cleanup_close_ int fd = open_out(d);
	struct pump *pump;
	size_t len = 0;
	int write_fd;

	assert_int_equal(pump_new(fd, &write_fd, &pump), 0);
	assert_true(pump_flush(pump, 0));
	for (unsigned int i = 0; i < 2000; i++) {
		int n = snprintf(expected + len, 32, "line %u\n", i);

		assert_int_equal(write(write_fd, expected + len, (size_t)n), n);
		len += (size_t)n;
	}
	assert_true(pump_flush(pump, DIRS_PATIENCE_NS));
	/* The descriptor stays the caller's, and all of it is in the file, not only on its way. */
	assert_int_equal(file_read_fd(fd, stored, 1 << 20), len);
	assert_memory_equal(stored, expected, len);
	close(write_fd);
	assert_null(pump_free(pump));
	assert_null(pump_free(NULL));
}

static void test_what_was_taken_arrives_after_the_end(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = open_out(d);
	uint64_t begin_ns = clock_mono_ns();
	struct pump *pump;
	struct stat st;
	int write_fd;

	assert_int_equal(pump_new(fd, &write_fd, &pump), 0);
	assert_int_equal(write(write_fd, "last words\n", 11), 11);
	close(write_fd);
	pump_free(pump);
	for (; fstat(fd, &st) == 0 && st.st_size < 11; dirs_pause())
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
}

/* A pipe that nobody reads is as slow as a disk that is dead. */
static void test_a_file_that_hangs_costs_bytes_and_no_time(void **state)
{
	static const char piece[1000];
	_cleanup_free_ char *buf = malloc(65536);
	struct pollfd pfd = { .events = POLLOUT };
	uint64_t begin_ns, taken = 0, arrived = 0;
	struct pump *pump;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pump_new(ends[1], &pfd.fd, &pump), 0);
	close(ends[1]);
	/* Again while the thread still moves something: the log asks poll() before each line. */
	for (begin_ns = clock_mono_ns(); poll(&pfd, 1, 0) != 0; pump_flush(pump, SHORT_NS)) {
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
		while (taken < 16 << 20 && write(pfd.fd, piece, sizeof(piece)) > 0)
			taken += sizeof(piece);
		assert_int_equal(errno, EAGAIN);
	}
	/* Both pipes full, and no more than that. */
	assert_in_range(taken, PIPE_BUF, 4 << 20);
	assert_false(pump_is_settled(pump));
	assert_false(pump_flush(pump, SHORT_NS));
	/* And as soon as it lives again nothing of that is missing. */
	for (begin_ns = clock_mono_ns(); arrived < taken;) {
		ssize_t n = read(ends[0], buf, 65536);

		assert_true(n > 0);
		arrived += (uint64_t)n;
	}
	assert_int_equal(arrived, taken);
	assert_true(pump_flush(pump, DIRS_PATIENCE_NS));
	close(pfd.fd);
	pump_free(pump);
	assert_int_equal(read(ends[0], buf, 65536), 0);
	close(ends[0]);
}

static void test_a_file_that_fails_is_not_the_end(void **state)
{
	_cleanup_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct pump *pump;
	int write_fd;

	(void)state;
	assert_int_equal(pump_new(fd, &write_fd, &pump), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(write(write_fd, "x\n", 2), 2);
		assert_true(pump_flush(pump, DIRS_PATIENCE_NS));
	}
	close(write_fd);
	pump_free(pump);
	write_fd = -1;
	assert_int_equal(pump_new(-1, &write_fd, &pump), -EBADF);
	assert_int_equal(write_fd, -1);
}

/* No assertion while it is: it would speak into the pump. */
static void test_standard_error_through_a_pump(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = open_out(d), saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	uint64_t dropped = log_dropped_lines();
	struct pump *pump;
	char stored[256];
	bool flushed;
	int write_fd;

	assert_int_equal(pump_new(fd, &write_fd, &pump), 0);
	fflush(stderr);
	dup2(write_fd, STDERR_FILENO);
	close(write_fd);
	log_warning("the disk of %s hangs", "sdb");
	flushed = pump_flush(pump, DIRS_PATIENCE_NS);
	dup2(saved, STDERR_FILENO);
	pump_free(pump);
	assert_true(flushed);
	assert_true(file_read_fd(fd, stored, sizeof(stored)) > 0);
	assert_string_equal(stored, "iostall: the disk of sdb hangs\n");
	assert_int_equal(log_dropped_lines(), dropped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_everything_arrives_in_order),
		WITH_DIRS(test_what_was_taken_arrives_after_the_end),
		cmocka_unit_test(test_a_file_that_hangs_costs_bytes_and_no_time),
		cmocka_unit_test(test_a_file_that_fails_is_not_the_end),
		WITH_DIRS(test_standard_error_through_a_pump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
