/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/file.h"
#include "watch/lines.h"
#include "watch/parsers.h"

static struct cursor text_cursor(const char *text)
{
	return (struct cursor){ text, text + strlen(text) };
}

static int parse_stat(const char *text, struct watch_stat *stat)
{
	struct cursor c = text_cursor(text), line;
	int worst = 0;

	memset(stat, 0, sizeof(*stat));
	while (cursor_line(&c, &line)) {
		int r = watch_parse_stat_line(line, stat);

		worst = r < 0 ? r : worst;
	}
	return worst;
}

static void test_stat(void **state)
{
	struct watch_stat stat;

	(void)state;
	assert_int_equal(parse_stat("cpu  1 2 4 1000 50 8 16 32 7 7\n"
				    "cpu0 1 2 4 1000 50 8 16 32 7 7\n"
				    "cpu13 1 2 4 1000 50 8 16 32 7 7\n"
				    "intr 5 4 3\nctxt 9\n"
				    "procs_running 3\nprocs_blocked 2\nsoftirq 1 2 3\n",
				 &stat),
		0);
	assert_true(stat.has_cpu);
	/* guest and guest_nice are part of user and nice already. */
	assert_int_equal(stat.busy_ticks, 63);
	assert_int_equal(stat.idle_ticks, 1000);
	assert_int_equal(stat.iowait_ticks, 50);
	assert_int_equal(stat.cpus, 2);
	assert_int_equal(stat.cpus_end, 14);
	assert_int_equal(stat.procs_running, 3);
	assert_int_equal(stat.procs_blocked, 2);
}

static void test_stat_of_few_fields_and_none(void **state)
{
	struct watch_stat stat;

	(void)state;
	assert_int_equal(parse_stat("cpu  1 2 4 1000 50\n", &stat), 0);
	assert_int_equal(stat.busy_ticks, 7);
	assert_int_equal(parse_stat("cpu  1 2 4 1000\n", &stat), -EINVAL);
	assert_false(stat.has_cpu);
	assert_int_equal(parse_stat("cpu  1 2 4 1000 x\n", &stat), -EINVAL);
	assert_int_equal(parse_stat("cpux 1\n", &stat), -EINVAL);
	assert_int_equal(parse_stat("procs_running\n", &stat), 0);
	assert_int_equal(parse_stat("procs_blocked -1\n", &stat), -EINVAL);
	assert_int_equal(parse_stat("", &stat), 0);
	assert_false(stat.has_cpu);
	/* Only the first line of the sum counts. */
	assert_int_equal(parse_stat("cpu  1 1 1 1 1\ncpu  9 9 9 9 9\n", &stat), 0);
	assert_int_equal(stat.iowait_ticks, 1);
}

#define ROW14 " 8 0 sda 1 2 3 4 5 6 7 8 9 10 11"

static void test_diskstats_forms(void **state)
{
	struct watch_diskstats row;

	(void)state;
	assert_int_equal(watch_parse_diskstats_line(text_cursor(ROW14), &row), 0);
	assert_int_equal(row.major, 8);
	assert_int_equal(row.minor, 0);
	assert_string_equal(row.name, "sda");
	assert_int_equal(row.ios[WATCH_DISKSTATS_READ], 1);
	assert_int_equal(row.sectors[WATCH_DISKSTATS_READ], 3);
	assert_int_equal(row.ticks_ms[WATCH_DISKSTATS_READ], 4);
	assert_int_equal(row.ios[WATCH_DISKSTATS_WRITE], 5);
	assert_int_equal(row.sectors[WATCH_DISKSTATS_WRITE], 7);
	assert_int_equal(row.ticks_ms[WATCH_DISKSTATS_WRITE], 8);
	assert_int_equal(row.inflight, 9);
	assert_int_equal(row.io_ticks_ms, 10);
	assert_int_equal(row.weighted_ms, 11);
	assert_int_equal(row.ios[WATCH_DISKSTATS_DISCARD], 0);
	assert_int_equal(row.ios[WATCH_DISKSTATS_FLUSH], 0);

	assert_int_equal(watch_parse_diskstats_line(text_cursor(ROW14 " 12 13 14 15"), &row), 0);
	assert_int_equal(row.ios[WATCH_DISKSTATS_DISCARD], 12);
	assert_int_equal(row.sectors[WATCH_DISKSTATS_DISCARD], 14);
	assert_int_equal(row.ticks_ms[WATCH_DISKSTATS_DISCARD], 15);
	assert_int_equal(row.ios[WATCH_DISKSTATS_FLUSH], 0);

	assert_int_equal(watch_parse_diskstats_line(text_cursor(ROW14 " 12 13 14 15 16 17 18"),
				 &row),
		0);
	assert_int_equal(row.ios[WATCH_DISKSTATS_FLUSH], 16);
	assert_int_equal(row.ticks_ms[WATCH_DISKSTATS_FLUSH], 17);
	assert_int_equal(row.sectors[WATCH_DISKSTATS_FLUSH], 0);

	/* Half a group is no group. */
	assert_int_equal(watch_parse_diskstats_line(text_cursor(ROW14 " 12 13 14"), &row), 0);
	assert_int_equal(row.ios[WATCH_DISKSTATS_DISCARD], 0);
	assert_int_equal(watch_parse_diskstats_line(text_cursor(ROW14 " 12 13 14 15 16"), &row), 0);
	assert_int_equal(row.ios[WATCH_DISKSTATS_DISCARD], 12);
	assert_int_equal(row.ios[WATCH_DISKSTATS_FLUSH], 0);
}

static void test_diskstats_garbage(void **state)
{
	static const char *const bad[] = {
		"",
		"8",
		"8 0",
		"8 0 sda",
		"8 0 sda 1 2 3 4 5 6 7 8 9 10",
		("8 x sda" ROW14),
		"8 0 sda 1 2 3 4 5 6 7 8 -1 10 11", /* some kernels printed a negative in-flight */
		"4294967296 0 sda 1 2 3 4 5 6 7 8 9 10 11",
		"8 0 sda 18446744073709551616 2 3 4 5 6 7 8 9 10 11",
		"8 0 a_name_of_thirty_two_characters_ 1 2 3 4 5 6 7 8 9 10 11",
	};
	struct watch_diskstats row = { .major = 77 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(watch_parse_diskstats_line(text_cursor(bad[i]), &row), -EINVAL);
		assert_int_equal(row.major, 77);
	}
}

static void test_pressure(void **state)
{
	static const char both[] = "some avg10=1.50 avg60=0.50 avg300=0.29 total=4168958\n"
				   "full avg10=0.53 avg60=0.28 avg300=0.18 total=2755502\n";
	static const char only_some[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
	struct watch_pressure p = { .some_us = 5 };

	(void)state;
	assert_int_equal(watch_parse_pressure("", 0, &p), -EINVAL);
	assert_int_equal(watch_parse_pressure("some total=x\n", 13, &p), -EINVAL);
	assert_int_equal(watch_parse_pressure("some avg10=1\n", 13, &p), -EINVAL);
	assert_int_equal(watch_parse_pressure("full total=1\n", 13, &p), -EINVAL);
	assert_int_equal(p.some_us, 5);
	assert_int_equal(watch_parse_pressure(both, strlen(both), &p), 0);
	assert_int_equal(p.some_us, 4168958);
	assert_int_equal(p.full_us, 2755502);
	assert_true(p.has_full);
	assert_int_equal(watch_parse_pressure(only_some, strlen(only_some), &p), 0);
	assert_int_equal(p.some_us, 12);
	assert_false(p.has_full);
}

#define STAT_TAIL                                                                                  \
	" 1 5 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 87681 3133440 362 18446744073709551615"

static void test_start_ticks(void **state)
{
	static const char *const comms[] = { "mariadbd", "a b", ") R 1 (", "((x))", "a\nb", "",
		")" };
	uint64_t ticks = 0;
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
		snprintf(text, sizeof(text), "6283 (%s) D" STAT_TAIL "\n", comms[i]);
		assert_int_equal(watch_parse_start_ticks(text, strlen(text), &ticks), 0);
		assert_int_equal(ticks, 87681);
	}
}

static void test_start_ticks_garbage(void **state)
{
	static const char *const bad[] = {
		"",
		"1",
		"1 (x",
		")(",
		"1 (x)",
		"1 (x) D",
		"1 (x) D 1 2 3",
		"1 (x) D 1 5 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0",
		"1 (x) D 1 5 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 x",
	};
	uint64_t ticks = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(watch_parse_start_ticks(bad[i], strlen(bad[i]), &ticks), -EINVAL);
		assert_int_equal(ticks, 77);
	}
}

#define STATUS_HEAD "Name:\tx\nState:\tD (disk sleep)\nTgid:\t7\nNgid:\t0\nPid:\t9\n"

static int parse_status(const char *text, struct watch_thread_status *ret_status)
{
	return watch_parse_thread_status(text, strlen(text), ret_status);
}

static void test_thread_status(void **state)
{
	struct watch_thread_status status;

	(void)state;
	assert_int_equal(
		parse_status(STATUS_HEAD
			"PPid:\t3\nTracerPid:\t8\n"
			"voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n",
			&status),
		0);
	assert_int_equal(status.id, 9);
	assert_int_equal(status.process, 7);
	assert_int_equal(status.parent, 3);
	assert_string_equal(status.comm, "x");
	assert_int_equal(status.state, 'D');
	assert_true(status.has_switches);
	assert_int_equal(status.switches, 695);
	assert_false(status.has_own_ids);
	/* Of a container, and in it of another one. */
	assert_int_equal(parse_status(STATUS_HEAD "NSpid:\t7\n", &status), 0);
	assert_false(status.has_own_ids);
	assert_int_equal(parse_status(STATUS_HEAD "NSpid:\t7\t1\n", &status), 0);
	assert_true(status.has_own_ids);
	assert_int_equal(parse_status(STATUS_HEAD "NSpid:\t7\t44\t1\n", &status), 0);
	assert_true(status.has_own_ids);
	/* A list of groups that is longer than the buffer hides the rest. */
	assert_int_equal(parse_status(STATUS_HEAD "Groups:\t1 2 3", &status), 0);
	assert_false(status.has_switches);
	/* The kernel escapes newlines and backslashes of names. */
	assert_int_equal(parse_status("Name:\ta\\nState:\\\\b\nState:\tS (sleeping)\n"
				      "Tgid:\t7\nPid:\t7\n",
				 &status),
		0);
	assert_string_equal(status.comm, "a\nState:\\b");
	assert_int_equal(status.state, 'S');
	assert_int_equal(parse_status("Name:\tkworker/0:1-events_unbound\nState:\tI (idle)\n"
				      "Tgid:\t7\nPid:\t7\n",
				 &status),
		0);
	assert_string_equal(status.comm, "kworker/0:1-eve");
}

static void test_thread_status_garbage(void **state)
{
	static const char *const bad[] = {
		"",
		"Name:\tx\n",
		"State:\t\nTgid:\t7\nPid:\t9\n",
		"State:\tD\nTgid:\t7\n",
		"State:\tD\nPid:\t9\n",
		"State:\tD\nTgid:\tx\nPid:\t9\n",
		"State:\tD\nTgid:\t7\nPid:\t99999999999\n",
	};
	struct watch_thread_status status = { .id = 77 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse_status(bad[i], &status), -EINVAL);
		assert_int_equal(status.id, 77);
	}
}

static void test_real_thread(void **state)
{
	struct watch_thread_status status;
	char buf[8192];
	uint64_t ticks = 0;
	ssize_t n = file_read_at(AT_FDCWD, "/proc/self/stat", buf, sizeof(buf));

	(void)state;
	assert_true(n > 0);
	assert_int_equal(watch_parse_start_ticks(buf, (size_t)n, &ticks), 0);
	assert_true(ticks > 0);
	n = file_read_at(AT_FDCWD, "/proc/self/status", buf, sizeof(buf));
	assert_true(n > 0);
	assert_int_equal(watch_parse_thread_status(buf, (size_t)n, &status), 0);
	assert_int_equal(status.id, getpid());
	assert_int_equal(status.process, getpid());
	assert_int_equal(status.parent, getppid());
	assert_int_equal(status.state, 'R');
	assert_true(status.has_switches);
}

struct collected {
	char text[4096];
	size_t len;
};

static void collect_line(void *arg, struct cursor line)
{
	struct collected *c = arg;
	size_t len = (size_t)(line.end - line.p);

	assert_true(c->len + len + 1 < sizeof(c->text));
	memcpy(c->text + c->len, line.p, len);
	c->len += len;
	c->text[c->len++] = '|';
	c->text[c->len] = '\0';
}

static void read_lines(const char *text, size_t size, struct collected *c)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);
	/* Of exact size, so that a sanitizer sees one byte too many. */
	char *buf = malloc(size);

	memset(c, 0, sizeof(*c));
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(lines_read_fd(fd, buf, size, collect_line, c), 0);
	free(buf);
	close(fd);
}

static void test_lines_through_every_buffer_size(void **state)
{
	static const char text[] =
		"one\n\ntwo two\nintr 5 4 3 2 1 0 0 0 0 0 0 0 0 0 0\nthree\nlast";
	struct collected c;

	(void)state;
	for (size_t size = 64; size < 128; size++) {
		read_lines(text, size, &c);
		assert_string_equal(c.text,
			"one||two two|intr 5 4 3 2 1 0 0 0 0 0 0 0 0 0 0|"
			"three|last|");
	}
	/* Too small for one line: that line is missing, the lines around it are whole. */
	for (size_t size = 9; size < 35; size++) {
		read_lines(text, size, &c);
		assert_string_equal(c.text, "one||two two|three|last|");
	}
	read_lines("", 9, &c);
	assert_string_equal(c.text, "");
	read_lines("0123456789abcdef", 9, &c);
	assert_string_equal(c.text, "");
	assert_int_equal(lines_read_fd(-1, c.text, 9, collect_line, &c), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_stat_of_few_fields_and_none),
		cmocka_unit_test(test_diskstats_forms),
		cmocka_unit_test(test_diskstats_garbage),
		cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_start_ticks),
		cmocka_unit_test(test_start_ticks_garbage),
		cmocka_unit_test(test_thread_status),
		cmocka_unit_test(test_thread_status_garbage),
		cmocka_unit_test(test_real_thread),
		cmocka_unit_test(test_lines_through_every_buffer_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
