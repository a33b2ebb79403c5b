/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The log relay: writing to it never blocks, whatever the file behind it does. */
#include "test_sinks_dirs.h"

#include <poll.h>

#include "util/log_relay.h"
#include "util/log.h"

/* Longer than any correct wait. */
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
	struct log_relay *relay;
	size_t len = 0;
	int write_fd;

	assert_int_equal(log_relay_new(fd, &write_fd, &relay), 0);
	assert_true(log_relay_flush(relay, 0));
	for (unsigned int i = 0; i < 2000; i++) {
		int n = snprintf(expected + len, 32, "line %u\n", i);

		assert_int_equal(write(write_fd, expected + len, (size_t)n), n);
		len += (size_t)n;
	}
	assert_true(log_relay_flush(relay, DIRS_PATIENCE_NS));
	/* The caller still owns the descriptor, and everything is in the file. */
	assert_int_equal(file_read_fd(fd, stored, 1 << 20), len);
	assert_memory_equal(stored, expected, len);
	close(write_fd);
	assert_null(log_relay_free(relay));
	assert_null(log_relay_free(NULL));
}

static void test_accepted_lines_arrive_after_the_relay_is_freed(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = open_out(d);
	uint64_t begin_ns = clock_mono_ns();
	struct log_relay *relay;
	struct stat st;
	int write_fd;

	assert_int_equal(log_relay_new(fd, &write_fd, &relay), 0);
	assert_int_equal(write(write_fd, "last words\n", 11), 11);
	close(write_fd);
	log_relay_free(relay);
	for (; fstat(fd, &st) == 0 && st.st_size < 11; dirs_pause())
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
}

/* A pipe that is not read blocks like a disk that does not respond. */
static void test_a_file_that_hangs_costs_no_time(void **state)
{
	static const char piece[1000];
	_cleanup_free_ char *buf = malloc(65536);
	struct pollfd pfd = { .events = POLLOUT };
	uint64_t begin_ns, taken = 0, arrived = 0;
	struct log_relay *relay;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(log_relay_new(ends[1], &pfd.fd, &relay), 0);
	close(ends[1]);
	/* Repeated while the thread still copies: the log calls poll() before each line. */
	for (begin_ns = clock_mono_ns(); poll(&pfd, 1, 0) != 0; log_relay_flush(relay, SHORT_NS)) {
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
		while (taken < 16 << 20 && write(pfd.fd, piece, sizeof(piece)) > 0)
			taken += sizeof(piece);
		assert_int_equal(errno, EAGAIN);
	}
	/* As much as both pipes hold. */
	assert_in_range(taken, PIPE_BUF, 4 << 20);
	assert_false(log_relay_is_drained(relay));
	assert_false(log_relay_flush(relay, SHORT_NS));
	/* When the file responds again, all of that arrives. */
	for (begin_ns = clock_mono_ns(); arrived < taken;) {
		ssize_t n = read(ends[0], buf, 65536);

		assert_true(n > 0);
		arrived += (uint64_t)n;
	}
	assert_int_equal(arrived, taken);
	assert_true(log_relay_flush(relay, DIRS_PATIENCE_NS));
	close(pfd.fd);
	log_relay_free(relay);
	assert_int_equal(read(ends[0], buf, 65536), 0);
	close(ends[0]);
}

static void test_the_relay_survives_a_write_error(void **state)
{
	_cleanup_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct log_relay *relay;
	int write_fd;

	(void)state;
	assert_int_equal(log_relay_new(fd, &write_fd, &relay), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(write(write_fd, "x\n", 2), 2);
		assert_true(log_relay_flush(relay, DIRS_PATIENCE_NS));
	}
	close(write_fd);
	log_relay_free(relay);
	write_fd = -1;
	assert_int_equal(log_relay_new(-1, &write_fd, &relay), -EBADF);
	assert_int_equal(write_fd, -1);
}

/* No assertion here while standard error is the relay: it would write to it. */
static void test_standard_error_through_a_relay(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = open_out(d), saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	uint64_t dropped = log_dropped_lines();
	struct log_relay *relay;
	char stored[256];
	bool flushed;
	int write_fd;

	assert_int_equal(log_relay_new(fd, &write_fd, &relay), 0);
	fflush(stderr);
	dup2(write_fd, STDERR_FILENO);
	close(write_fd);
	log_warning("the disk of %s hangs", "sdb");
	flushed = log_relay_flush(relay, DIRS_PATIENCE_NS);
	dup2(saved, STDERR_FILENO);
	log_relay_free(relay);
	assert_true(flushed);
	assert_true(file_read_fd(fd, stored, sizeof(stored)) > 0);
	assert_string_equal(stored, "iostall: the disk of sdb hangs\n");
	assert_int_equal(log_dropped_lines(), dropped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_everything_arrives_in_order),
		WITH_DIRS(test_accepted_lines_arrive_after_the_relay_is_freed),
		cmocka_unit_test(test_a_file_that_hangs_costs_no_time),
		cmocka_unit_test(test_the_relay_survives_a_write_error),
		WITH_DIRS(test_standard_error_through_a_relay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
