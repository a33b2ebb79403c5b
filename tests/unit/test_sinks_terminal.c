/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The terminal: what a reader gets, and that none makes the writer wait. */
#include "test_sinks_dirs.h"

#include <sys/socket.h>

/* Limit for two thousand lines that are never read, with a sanitizer on a loaded machine. */
#define LINES_NS (10 * NSEC_PER_SEC)

/* Reads until the other end is closed. */
static char *read_all(int fd, size_t *ret_len)
{
	char *all = calloc(1, 8 << 20);
	ssize_t n;

	*ret_len = 0;
	while ((n = read(fd, all + *ret_len, (8 << 20) - 1 - *ret_len)) > 0)
		*ret_len += (size_t)n;
	return all;
}

static void test_a_terminal_that_does_not_read_costs_no_time(void **state)
{
	const struct dirs *d = *state;
	const unsigned int count = 2000;
	uint64_t lost[RECORD_LOST_COUNT], begin_ns, newlines = 0;
	_cleanup_free_ char *all = NULL;
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	struct sinks *sinks;
	int ends[2];
	size_t len;
	ssize_t n;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	sinks = dirs_start(d, SINK_BIT(terminal), ends[1], true);
	/* The descriptor stays blocking for other processes that share it. */
	assert_false(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	dirs_record(r, RECORD_STALL, 0);
	/* Longer than PIPE_BUF, which a pipe accepts completely or not at all. */
	memset(r->operation.path, 'p', sizeof(r->operation.path) - 1);
	begin_ns = clock_mono_ns();
	for (unsigned int i = 0; i < count; i++)
		sinks_write(sinks, r);
	sinks_tick(sinks, 0);
	assert_true(clock_mono_ns() - begin_ns < LINES_NS);
	sinks_dropped(sinks, lost);
	assert_in_range(lost[RECORD_LOST_sink_dropped], count / 2, count - 1);
	/* The rest of a line that was accepted in part follows. */
	all = malloc(65536);
	n = read(ends[0], all, 65536);
	assert_true(n > 0);
	for (ssize_t i = 0; i < n; i++)
		newlines += all[i] == '\n';
	assert_true(all[n - 1] != '\n');
	dirs_flush(sinks);
	sinks_free(sinks);
	close(ends[1]);
	free(all);
	all = read_all(ends[0], &len);
	for (size_t i = 0; i < len; i++)
		newlines += all[i] == '\n';
	assert_true(len > 0);
	assert_int_equal(all[len - 1], '\n');
	assert_int_equal(newlines, 1 + count - lost[RECORD_LOST_sink_dropped]);
	close(ends[0]);
}

static void test_a_stopped_pty(void **state)
{
	const struct dirs *d = *state;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	uint64_t lost[RECORD_LOST_COUNT], begin_ns;
	struct sinks *sinks;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) {
		print_message("no pseudo terminal here: %s\n", strerror(errno));
		skip();
	}
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	sinks = dirs_start(d, SINK_BIT(terminal), slave, true);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	begin_ns = clock_mono_ns();
	for (unsigned int i = 0; i < 2000; i++)
		dirs_write_record(sinks, RECORD_STALL, 0);
	assert_true(clock_mono_ns() - begin_ns < LINES_NS);
	sinks_dropped(sinks, lost);
	assert_true(lost[RECORD_LOST_sink_dropped] > 1000);
	sinks_free(sinks);
	close(slave);
	close(master);
}

static void test_a_file_gets_everything(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *buf = malloc(1 << 20);
	_cleanup_close_ int fd = -1;
	struct sinks *sinks;
	char path[128];

	snprintf(path, sizeof(path), "%s/out", d->root);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	sinks = dirs_start(d, SINK_BIT(terminal), fd, false);
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		dirs_write_record(sinks, type, 0);
	dirs_flush(sinks);
	sinks_free(sinks);
	file_read_fd(fd, buf, 1 << 20);
	assert_non_null(strstr(buf, "  incident 20261120T031207Z-0000: utilisation 97.25 %"));
	assert_non_null(strstr(buf, "\nVERDICT: saturated"));
	assert_non_null(strstr(buf, " of CPU, 20.0 MiB\n"));
}

/* The page is what the reader waits for, so it waits for the reader. */
static void test_a_slow_reader_gets_the_page_and_the_summary(void **state)
{
	const struct dirs *d = *state;
	char summary_buf[] = "1 incident\n";
	struct text summary = TEXT_ON(summary_buf);
	_cleanup_free_ char *all = calloc(1, 8 << 20);
	uint64_t lost[RECORD_LOST_COUNT], before;
	struct sinks *sinks;
	size_t len = 0;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	sinks = dirs_start(d, SINK_BIT(terminal), ends[1], false);
	while (write(ends[1], all, 4096) > 0)
		;
	dirs_write_record(sinks, RECORD_OPEN, 0);
	sinks_dropped(sinks, lost);
	before = lost[RECORD_LOST_sink_dropped];
	assert_true(before > 0);
	dirs_write_record(sinks, RECORD_VERDICT, 0);
	dirs_write_record(sinks, RECORD_CLOSE, 0);
	summary.len = strlen(summary_buf);
	sinks_print(sinks, &summary);
	sinks_dropped(sinks, lost);
	assert_in_range(lost[RECORD_LOST_sink_dropped], before, before + 2);
	/* A reader that has stopped is not waited for, however much time there is: an hour. */
	assert_true(sinks_flush(sinks, 3600 * NSEC_PER_SEC));
	for (unsigned int tick = 0; tick < 1000; tick++) {
		ssize_t n = read(ends[0], all + len, (8 << 20) - 1 - len);

		len += n > 0 ? (size_t)n : 0;
		sinks_tick(sinks, clock_mono_ns());
	}
	assert_non_null(memmem(all, len, "\nVERDICT: saturated", 19));
	assert_string_equal(all + len - strlen(summary_buf), summary_buf);
	sinks_free(sinks);
	close(ends[0]);
	close(ends[1]);
}

/* A socket cannot be opened again through /proc. */
static void test_a_socket_as_output(void **state)
{
	const struct dirs *d = *state;
	uint64_t lost[RECORD_LOST_COUNT];
	struct sinks *sinks;
	int ends[2];
	char buf[65536];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	sinks = dirs_start(d, SINK_BIT(terminal), ends[0], true);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	for (unsigned int i = 0; i < 3000; i++)
		dirs_write_record(sinks, RECORD_STALL, 0);
	sinks_dropped(sinks, lost);
	assert_true(lost[RECORD_LOST_sink_dropped] > 0);
	assert_true(read(ends[1], buf, sizeof(buf)) > 0);
	assert_memory_equal(buf, "{\"v\":1,\"type\":\"open\"", 20);
	sinks_free(sinks);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_a_terminal_that_does_not_read_costs_no_time),
		WITH_DIRS(test_a_stopped_pty),
		WITH_DIRS(test_a_file_gets_everything),
		WITH_DIRS(test_a_slow_reader_gets_the_page_and_the_summary),
		WITH_DIRS(test_a_socket_as_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
