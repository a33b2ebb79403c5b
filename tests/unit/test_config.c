/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration as files and arguments give it: what is taken, and each message when it is not.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "util/cleanup.h"
#include "util/clock.h"

#ifndef TEST_FIXTURES
#define TEST_FIXTURES "tests/fixtures"
#endif
#define FIXTURE(name) TEST_FIXTURES "/config/" name

static int parse(struct config *c, const char *text, char *ret_error)
{
	memset(ret_error, 0, CONFIG_ERROR_SIZE);
	config_set_defaults(c);
	return config_parse_text(c, "x.conf", text, strlen(text), ret_error);
}

static int load(struct config *c, const char *file, const char *const *sets, unsigned int count,
	char *ret_error)
{
	const struct config_source source = { .file = file, .sets = sets, .sets_count = count };

	memset(ret_error, 0, CONFIG_ERROR_SIZE);
	return config_load(c, &source, ret_error);
}

struct error_case {
	const char *text;
	const char *error;
};

#define DURATION_KIND                                                                              \
	"is not a whole number with a unit of time (ns, us, ms, s, m, h); right would be e.g. "

/* clang-format off */
static const struct error_case text_errors[] = {
	{ "[watch]\ninterval = 5\n",
	  "x.conf:2: watch.interval: \"5\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = 5 parsecs\n",
	  "x.conf:2: watch.interval: \"5 parsecs\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = -1s",
	  "x.conf:2: watch.interval: \"-1s\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = 1.5s",
	  "x.conf:2: watch.interval: \"1.5s\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval =",
	  "x.conf:2: watch.interval: \"\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = 99ms",
	  "x.conf:2: watch.interval: \"99ms\" is out of range; right would be 100ms to 60s" },
	{ "[watch]\ninterval = 99999999999999999999s",
	  "x.conf:2: watch.interval: \"99999999999999999999s\" is out of range; right would "
	  "be 100ms to 60s" },
	{ "[watch]\ninterval = 1s # fast",
	  "x.conf:2: watch.interval: \"1s # fast\" has a comment behind it; right would be a "
	  "line of its own for it" },
	{ "[record]\ndir = /srv ; here",
	  "x.conf:2: record.dir: \"/srv ; here\" has a comment behind it; right would be a "
	  "line of its own for it" },
	{ "[watch]\nintervall = 1s",
	  "x.conf:2: watch.intervall is not a known key; right would be e.g. watch.interval" },
	{ "[watch]\nmin_stall = 1s",
	  "x.conf:2: watch.min_stall is not a known key; right would be e.g. trace.min_stall" },
	{ "[watch]\nzzzzzzzz = 1",
	  "x.conf:2: watch.zzzzzzzz is not a known key; right would be interval, history, "
	  "process, device, device_ignore, filesystem, sql_state" },
	{ "\n[wacth]\n",
	  "x.conf:2: [wacth] is not a known section; right would be e.g. [watch]" },
	{ "[rule.util]\n",
	  "x.conf:1: [rule.util] is not a known section; right would be e.g. "
	  "[rule.utilisation]" },
	{ "[rule.utilization]\n",
	  "x.conf:1: [rule.utilization] is not a known section; right would be e.g. "
	  "[rule.utilisation]" },
	{ "[probe.zzzzzz]\n",
	  "x.conf:1: [probe.zzzzzz] is not a known section; right would be "
#define PROBE(name, help) "[probe." #name "], "
#include "probes/probes.def"
#undef PROBE
	},
	{ "[zzzzzzzz]\n",
	  "x.conf:1: [zzzzzzzz] is not a known section; right would be [watch], [rule.NAME], [health], "
	  "[trace], [probe.NAME], [incident], [record], [journal], [syslog], [sql], "
	  "[sql.NAME], [control]" },
	{ "[]\n",
	  "x.conf:1: [] is not a known section; right would be [watch], [rule.NAME], [health], "
	  "[trace], [probe.NAME], [incident], [record], [journal], [syslog], [sql], "
	  "[sql.NAME], [control]" },
	{ "[watch\n",
	  "x.conf:1: \"[watch\" has no ] at its end; right would be e.g. [watch], and "
	  "comments on lines of their own" },
	{ "[watch] # here\n",
	  "x.conf:1: \"[watch] # here\" has no ] at its end; right would be e.g. [watch], "
	  "and comments on lines of their own" },
	{ "interval = 1s\n",
	  "x.conf:1: \"interval\" stands before the first section; right would be e.g. "
	  "[watch] in a line above" },
	{ "[watch]\ninterval 1s\n",
	  "x.conf:2: \"interval 1s\" is neither a section nor a setting; right would be e.g. "
	  "[watch] or interval = 1s" },
	{ "[watch]\n= 1s\n",
	  "x.conf:2: \"= 1s\" is neither a section nor a setting; right would be e.g. "
	  "[watch] or interval = 1s" },
	{ "[watch]\ninter\033val = 1s\n",
	  "x.conf:2: watch.inter\\x1bval is not a known key; right would be e.g. "
	  "watch.interval" },
	{ "[record]\ndir = /a\001b",
	  "x.conf:2: record.dir: \"/a\\x01b\" is not plain text: it has a control character; "
	  "right would be e.g. /var/log/iostall" },
	{ "[record]\ndir = log",
	  "x.conf:2: record.dir: \"log\" is not an absolute path; right would be e.g. "
	  "/var/log/iostall" },
	{ "[journal]\nenabled = maybe",
	  "x.conf:2: journal.enabled: \"maybe\" is neither yes nor no; right would be e.g. "
	  "yes" },
	{ "[trace]\nbackend = ebpf",
	  "x.conf:2: trace.backend: \"ebpf\" is not one of auto, fentry, kprobe, tracepoint; "
	  "right would be e.g. auto" },
	{ "[trace]\nring_bytes = 100K",
	  "x.conf:2: trace.ring_bytes: \"100K\" is not a power of two; right would be e.g. 512K" },
	{ "[trace]\nring_bytes = 32K",
	  "x.conf:2: trace.ring_bytes: \"32K\" is out of range; right would be a power of "
	  "two, 64K to 64M" },
	{ "[record]\nspool_bytes = 4MB",
	  "x.conf:2: record.spool_bytes: \"4MB\" is not a number of bytes (K, M or G may "
	  "follow); right would be e.g. 4M" },
	{ "[record]\nmax_count = 1K",
	  "x.conf:2: record.max_count: \"1K\" is not a whole number; right would be e.g. 1000" },
	{ "[record]\nmax_count = 0",
	  "x.conf:2: record.max_count: \"0\" is out of range; right would be 1 to 1000000" },
	{ "[rule.iowait]\nset = 101",
	  "x.conf:2: rule.iowait.set: \"101\" is out of range; right would be 0 to 100 %" },
	{ "[rule.iowait]\nset = 20ms",
	  "x.conf:2: rule.iowait.set: \"20ms\" is not a number of %; right would be e.g. 20 "
	  "or 20 %" },
	{ "[rule.iowait]\nset = -1",
	  "x.conf:2: rule.iowait.set: \"-1\" is not a number of %; right would be e.g. 20 or "
	  "20 %" },
	{ "[rule.iowait]\nset = nan",
	  "x.conf:2: rule.iowait.set: \"nan\" is not a number of %; right would be e.g. 20 "
	  "or 20 %" },
	{ "[rule.await]\nset = 50%",
	  "x.conf:2: rule.await.set: \"50%\" is not a number of ms; right would be e.g. 500 "
	  "or 500 ms" },
	{ "[watch]\nprocess = clickhouse-server",
	  "x.conf:2: watch.process: \"clickhouse-server\" has more than the 15 characters "
	  "that a command name has in the kernel; right would be e.g. mariadbd, 4711 or "
	  "unit:mariadb.service" },
	{ "[watch]\nprocess = mysqld 0",
	  "x.conf:2: watch.process: \"mysqld 0\" cannot be taken: \"0\" is not a process id; "
	  "right would be e.g. mariadbd, 4711 or unit:mariadb.service" },
	{ "[watch]\nprocess = 4194305",
	  "x.conf:2: watch.process: \"4194305\" is not a process id; right would be e.g. "
	  "mariadbd, 4711 or unit:mariadb.service" },
	{ "[watch]\nprocess = unit:mariadb",
	  "x.conf:2: watch.process: \"unit:mariadb\" is not unit: and the full name of a "
	  "unit, like unit:mariadb.service; right would be e.g. mariadbd, 4711 or "
	  "unit:mariadb.service" },
	{ "[watch]\ndevice = /dev/sda",
	  "x.conf:2: watch.device: \"/dev/sda\" is a path, not the name of a device in "
	  "/proc/diskstats; right would be e.g. sd* nvme*" },
	{ "[trace]\ndevice = 8:x",
	  "x.conf:2: trace.device: \"8:x\" is neither the name of a device nor MAJOR:MINOR; "
	  "right would be e.g. sdb" },
	{ "[trace]\ncgroup = /a/../b",
	  "x.conf:2: trace.cgroup: \"/a/../b\" leads out of the cgroup tree; right would be "
	  "e.g. /system.slice/mariadb.service" },
	{ "[rule.iowait]\nset = 5",
	  "x.conf:2: rule.iowait.set: 5 is under rule.iowait.clear (10, the default); right "
	  "would be at least 10, or a smaller rule.iowait.clear" },
	{ "[rule.iowait]\nset = 5\nclear = 5.5",
	  "x.conf:3: rule.iowait.clear: 5.5 is over rule.iowait.set (5); right would be at "
	  "most 5, or a larger rule.iowait.set" },
	{ "[watch]\ninterval = 10s\n[rule.hung]\n\n[watch]\nhistory = 9s",
	  "x.conf:6: watch.history: 9s is under watch.interval (10s); right would be at "
	  "least 10s, or a smaller watch.interval" },
	{ "[incident]\nmax_time = 4s",
	  "x.conf:2: incident.max_time: 4s is under incident.clear_time (5s, the default); "
	  "right would be at least 5s, or a smaller incident.clear_time" },
	{ "[incident]\nmax_time = 1s\nclear_time = 1s\n[trace]\nmin_stall = 1001ms",
	  "x.conf:5: trace.min_stall: 1001ms is over incident.max_time (1s); right would be "
	  "at most 1s, or a larger incident.max_time" },
	{ "[record]\nmax_bytes = 1M",
	  "x.conf:2: record.max_bytes: 1M is under record.spool_bytes (4M, the default); "
	  "right would be at least 4M, or a smaller record.spool_bytes" },
	{ "[record]\ndir = /run/iostall/",
	  "x.conf:2: record.dir: /run/iostall/ is the same as record.spool_dir "
	  "(/run/iostall, the default); right would be two different directories" },
	{ "[sql.Main]",
	  "x.conf:1: [sql.Main] is not a known section; right would be e.g. [sql.main], at "
	  "most 31 of a-z, 0-9, _ and -" },
	{ "[sql.NAME]",
	  "x.conf:1: [sql.NAME] is not a known section; right would be e.g. [sql.main], at "
	  "most 31 of a-z, 0-9, _ and -" },
	{ "[sql.main]\nsokcet = /run/x",
	  "x.conf:2: sql.main.sokcet is not a known key; right would be e.g. sql.main.socket" },
	{ "[sql.main]\ntype = oracle",
	  "x.conf:2: sql.main.type: \"oracle\" is not one of mariadb, mysql, postgresql; "
	  "right would be e.g. mariadb" },
	{ "[sql.a]\nhost = h\n[sql.b]\nsocket = /run/x\n[watch]\n[sql.b]\nhost = h",
	  "x.conf:7: sql.b.host: sql.b.socket is set, too; right would be one of the two" },
	{ "[sql.main]\nsocket = \"/run/x\"",
	  "x.conf:2: sql.main.socket: \"\"/run/x\"\" is in quotes, which are part of the value; right "
	  "would be e.g. /run/mysqld/mysqld.sock" },
	{ "[sql.main]\nport = 3306",
	  "x.conf:2: sql.main.port: sql.main.host is missing: a socket has no port; right would "
	  "be both or neither" },
	{ "[sql.main]\nhost = /run/mysqld/mysqld.sock",
	  "x.conf:2: sql.main.host: \"/run/mysqld/mysqld.sock\" is a path, which belongs to "
	  "socket; right would be e.g. 127.0.0.1" },
	{ "[sql.a]\n[sql.b]\n[sql.c]\n[sql.d]\n[sql.e]\n[sql.f]\n[sql.g]\n[sql.h]\n[sql.i]",
	  "x.conf:9: [sql.i] is one target too many; right would be at most 8" },
};
/* clang-format on */

static void test_text_errors(void **state)
{
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text_errors); i++) {
		assert_int_equal(parse(&c, text_errors[i].text, error), -EINVAL);
		/* A list made by the preprocessor has a comma too many. */
		if (strcmp(text_errors[i].error + strlen(text_errors[i].error) - 2, ", ") == 0)
			strcat(error, ", ");
		assert_string_equal(error, text_errors[i].error);
	}
}

/* clang-format off */
static const struct error_case set_errors[] = {
	{ "watch.interval=5",
	  "--set watch.interval=5: watch.interval: \"5\" " DURATION_KIND "1s" },
	{ "watch.interval",
	  "--set watch.interval: not a setting; right would be e.g. watch.interval=1s" },
	{ "=1s",
	  "--set =1s: not a setting; right would be e.g. watch.interval=1s" },
	{ "min_stall=1s",
	  "--set min_stall=1s: \"min_stall\" has no section; right would be e.g. "
	  "trace.min_stall=VALUE" },
	{ "rule.iowait=1",
	  "--set rule.iowait=1: [rule] is not a known section; right would be e.g. "
	  "[rule.iowait]" },
	{ "rule.iowait.sett=1",
	  "--set rule.iowait.sett=1: rule.iowait.sett is not a known key; right would be "
	  "e.g. rule.iowait.set" },
	{ "rule.iowait.set=9",
	  "--set rule.iowait.set=9: rule.iowait.set: 9 is under rule.iowait.clear (10, the "
	  "default); right would be at least 10, or a smaller rule.iowait.clear" },
	{ "record.dir=/a\nb",
	  "--set record.dir=/a\\x0ab: record.dir: \"/a\\x0ab\" is not plain text: it has a "
	  "control character; right would be e.g. /var/log/iostall" },
};
/* clang-format on */

static void test_set_errors(void **state)
{
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(set_errors); i++) {
		assert_int_equal(load(&c, "/dev/null", &set_errors[i].text, 1, error), -EINVAL);
		assert_string_equal(error, set_errors[i].error);
	}
}

static void test_set_values(void **state)
{
	const char *const sets[] = { "watch.interval = 2s", "watch.interval=3s",
		"rule.iowait.set=50%", "trace.process=a=b", "watch.device=", "watch.process=x,y" };
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	assert_int_equal(load(&c, "/dev/null", sets, ARRAY_SIZE(sets), error), 0);
	assert_int_equal(c.watch.interval_ns, 3 * NSEC_PER_SEC);
	assert_true(
		c.rules[CONFIG_RULE_iowait].set > 49.9 && c.rules[CONFIG_RULE_iowait].set < 50.1);
	assert_string_equal(c.trace.process.items[0], "a=b");
	assert_int_equal(c.watch.device.count, 0);
	assert_int_equal(c.watch.process.count, 2);
}

/* The later of two conflicting settings is blamed, wherever each was written. */
static void test_set_against_file(void **state)
{
	const char *const conflict[] = { "rule.iowait.clear=6" };
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	assert_int_equal(load(&c, FIXTURE("dropins/iostall.conf"), conflict, 1, error), -EINVAL);
	assert_string_equal(error, "--set rule.iowait.clear=6: rule.iowait.clear: 6 is over "
				   "rule.iowait.set (5); right would be at most 5, or a larger "
				   "rule.iowait.set");
}

static void test_lines(void **state)
{
	char error[CONFIG_ERROR_SIZE], text[9000];
	struct config c;

	(void)state;
	/* 8191 bytes are a line, 8192 are not. */
	memset(text, '#', sizeof(text));
	config_set_defaults(&c);
	assert_int_equal(config_parse_text(&c, "x.conf", text, 8191, error), 0);
	assert_int_equal(config_parse_text(&c, "x.conf", text, 8192, error), -EINVAL);
	assert_string_equal(
		error, "x.conf:1: the line is too long; right would be at most 8191 bytes");
	/* Also in a comment: the file is not what somebody meant to write. */
	assert_int_equal(config_parse_text(&c, "x.conf", "[watch]\n#\0\n", 11, error), -EINVAL);
	assert_string_equal(error, "x.conf:2: the line has a NUL byte; right would be plain text");
	assert_int_equal(config_parse_text(&c, "x.conf", text, 0, error), 0);
	assert_int_equal(parse(&c, "[watch]\ninterval = 2s\ninterval = 3s", error), 0);
	assert_int_equal(c.watch.interval_ns, 3 * NSEC_PER_SEC);
	/* Within a word these are no comment. */
	assert_int_equal(parse(&c, "[record]\ndir = /a#b;c\n", error), 0);
	assert_string_equal(c.record.dir, "/a#b;c");
}

static void test_long_names(void **state)
{
	char error[CONFIG_ERROR_SIZE], name[3000], text[8192];
	struct config c;

	(void)state;
	memset(name, '\033', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "[watch]\n%s = %s\n", name, name);
	assert_int_equal(config_parse_text(&c, name, text, strlen(text), error), -EINVAL);
	assert_non_null(strstr(error, "is not a known key; right would be interval, "));
	assert_null(strchr(error, '\033'));
	snprintf(text, sizeof(text), "[watch]\nprocess = %s\n", name);
	memset(text + 18, 'x', 2000);
	assert_int_equal(config_parse_text(&c, name, text, strlen(text), error), -EINVAL);
	assert_non_null(strstr(error, "right would be "));
}

static void test_crlf(void **state)
{
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	assert_int_equal(load(&c, FIXTURE("crlf.conf"), NULL, 0, error), 0);
	assert_int_equal(c.watch.interval_ns, 500 * NSEC_PER_MSEC);
	assert_int_equal(c.trace.process.count, 0);
	assert_int_equal(c.trace.backend, CONFIG_BACKEND_KPROBE);
}

static void test_everything(void **state)
{
	const struct config_rule *iowait, *hung;
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	assert_int_equal(load(&c, FIXTURE("everything.conf"), NULL, 0, error), 0);
	iowait = &c.rules[CONFIG_RULE_iowait];
	hung = &c.rules[CONFIG_RULE_hung];
	assert_int_equal(c.watch.interval_ns, 300 * NSEC_PER_MSEC);
	assert_int_equal(c.watch.history_ns, 0);
	assert_int_equal(c.watch.process.count, 4);
	assert_string_equal(c.watch.process.items[2], "4711");
	assert_string_equal(c.watch.process.items[3], "unit:mysql@replica.service");
	assert_string_equal(c.watch.device.items[1], "nvme*n[0-9]");
	assert_int_equal(c.watch.device_ignore.count, 0);
	assert_false(iowait->enabled);
	assert_true(iowait->set == 30.5 && iowait->clear == 12);
	assert_int_equal(iowait->hold_samples, 5);
	assert_int_equal(iowait->cooldown_ns, 120 * NSEC_PER_SEC);
	assert_true(hung->enabled && hung->set == 2.5 && hung->clear == 0.25);
	assert_true(c.rules[CONFIG_RULE_blocked].set == 8);
	assert_int_equal(c.trace.backend, CONFIG_BACKEND_TRACEPOINT);
	assert_int_equal(c.trace.min_stall_ns, 1500 * NSEC_PER_USEC);
	assert_string_equal(c.trace.device.items[1], "253:0");
	assert_int_equal(c.trace.ring_bytes, 2 << 20);
	assert_int_equal(c.trace.inflight_max, 65536);
	assert_false(c.probes[CONFIG_PROBE_vfs].enabled);
	assert_int_equal(c.incident.max_time_ns, 3600 * NSEC_PER_SEC);
	assert_string_equal(c.record.spool_dir, "/run/iostall spool");
	assert_int_equal(c.record.spool_bytes, 1 << 20);
	assert_int_equal(c.record.max_bytes, 1 << 30);
	assert_int_equal(c.record.max_age_ns, 0);
	assert_false(c.journal.enabled);
	assert_true(c.syslog.enabled);
	assert_true(c.journal.statements);
	assert_true(c.syslog.statements);
	assert_string_equal(c.control.socket, "/run/c.sock");
}

static void test_drop_ins(void **state)
{
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	assert_int_equal(load(&c, FIXTURE("dropins/iostall.conf"), NULL, 0, error), 0);
	assert_int_equal(c.watch.interval_ns, 4 * NSEC_PER_SEC);
	assert_int_equal(c.watch.history_ns, 30 * NSEC_PER_SEC);
	assert_int_equal(c.watch.process.count, 1);
	assert_string_equal(c.watch.process.items[0], "mongod");
	assert_true(c.rules[CONFIG_RULE_iowait].clear == 2.5);
}

static void write_file(const char *path, const char *text)
{
	_cleanup_fclose_ FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void expect_failure(const char *file, int expected, const char *error_tail)
{
	char error[CONFIG_ERROR_SIZE];
	struct config c, before;

	memset(&c, 0x5a, sizeof(c));
	before = c;
	assert_int_equal(load(&c, file, NULL, 0, error), expected);
	assert_true(strlen(error) >= strlen(error_tail));
	assert_string_equal(error + strlen(error) - strlen(error_tail), error_tail);
	/* A reload that fails leaves what it was given alone. */
	assert_memory_equal(&c, &before, sizeof(c));
}

static void test_unreadable_files(void **state)
{
	char dir[] = "/tmp/iostall-test-config-XXXXXX", large[300 * 1024];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	expect_failure(
		"none.conf", -ENOENT, "none.conf: cannot be read: No such file or directory");
	expect_failure(dir, -EISDIR, ": cannot be read: Is a directory");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	expect_failure("fifo", -EINVAL, "fifo: is not a regular file");
	memset(large, '\n', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	write_file("large.conf", large);
	expect_failure(
		"large.conf", -EINVAL, "large.conf: is too large; right would be at most 256K");

	write_file("main.conf", "[watch]\ninterval = 2s\n");
	write_file("conf.d", "");
	expect_failure("main.conf", -ENOTDIR, "conf.d: cannot be read: Not a directory");
	assert_int_equal(unlink("conf.d"), 0);
	assert_int_equal(mkdir("conf.d", 0700), 0);
	assert_int_equal(symlink("nowhere", "conf.d/50-link.conf"), 0);
	expect_failure("main.conf", -ENOENT,
		"conf.d/50-link.conf: cannot be read: No such file or directory");
	assert_int_equal(unlink("conf.d/50-link.conf"), 0);
	write_file("conf.d/60.conf", "\n\n[watch]\ninterval = 1\n");
	expect_failure("main.conf", -EINVAL,
		"conf.d/60.conf:4: watch.interval: \"1\" " DURATION_KIND "1s");

	assert_int_equal(unlink("conf.d/60.conf") | rmdir("conf.d") | unlink("main.conf") |
				 unlink("large.conf") | unlink("fifo") | chdir("/") | rmdir(dir),
		0);
}

static void test_missing_default_file(void **state)
{
	char error[CONFIG_ERROR_SIZE];
	struct config c, defaults;

	(void)state;
	if (access("/etc/iostall", F_OK) == 0) {
		print_message("/etc/iostall exists on this host\n");
		skip();
	}
	config_set_defaults(&defaults);
	assert_int_equal(load(&c, NULL, NULL, 0, error), 0);
	assert_memory_equal(&c, &defaults, sizeof(c));
}

static void test_sql_targets(void **state)
{
	static const char text[] = "[sql.main]\n[sql.pg_2]\ntype = postgresql\nuser = watcher\n"
				   "[sql]\ntext = full\n[sql.main]\nhost = db1\nport = 3307\n";
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	config_set_defaults(&c);
	assert_int_equal(c.sql.targets_count, 0);
	assert_true(c.sql.enabled);
	assert_int_equal(c.sql.text, CONFIG_SQL_TEXT_REDACTED);
	assert_int_equal(config_parse_text(&c, "x.conf", text, strlen(text), error), 0);
	assert_int_equal(c.sql.text, CONFIG_SQL_TEXT_FULL);
	assert_int_equal(c.sql.targets_count, 2);
	assert_string_equal(c.sql.targets[0].section, "sql.main");
	assert_string_equal(c.sql.targets[0].host, "db1");
	assert_int_equal(c.sql.targets[0].port, 3307);
	assert_string_equal(c.sql.targets[0].user, "iostall");
	assert_int_equal(c.sql.targets[0].type, CONFIG_SQL_MARIADB);
	assert_string_equal(c.sql.targets[1].section, "sql.pg_2");
	assert_int_equal(c.sql.targets[1].type, CONFIG_SQL_POSTGRESQL);
	assert_string_equal(c.sql.targets[1].user, "watcher");
	assert_string_equal(c.sql.targets[1].run_as, "iostall");
	assert_true(c.sql.targets[1].enabled);
}

static void test_sql_target_by_set(void **state)
{
	static const char *const sets[] = { "sql.main.socket=/run/x.sock", "sql.enabled=no" };
	const struct config_source source = { .file = "/dev/null", .sets = sets, .sets_count = 2 };
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	assert_int_equal(config_load(&c, &source, error), 0);
	assert_int_equal(c.sql.targets_count, 1);
	assert_string_equal(c.sql.targets[0].section, "sql.main");
	assert_string_equal(c.sql.targets[0].socket, "/run/x.sock");
	assert_false(c.sql.enabled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sql_targets),
		cmocka_unit_test(test_sql_target_by_set),
		cmocka_unit_test(test_text_errors),
		cmocka_unit_test(test_set_errors),
		cmocka_unit_test(test_set_values),
		cmocka_unit_test(test_set_against_file),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_crlf),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_drop_ins),
		cmocka_unit_test(test_missing_default_file),
		/* Changes the working directory: last. */
		cmocka_unit_test(test_unreadable_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
