/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Each message of a configuration that is not taken, whether from a file or an argument. */
#include "test_config_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

struct error_case {
	const char *text;
	const char *error;
};

#define DURATION_KIND "is not a number with a unit of time (ns, us, ms, s, m, h); expected e.g. "

/* clang-format off */
static const struct error_case text_errors[] = {
	{ "[watch]\ninterval = 5\n",
	  "x.conf:2: watch.interval: \"5\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = 5 parsecs\n",
	  "x.conf:2: watch.interval: \"5 parsecs\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = -1s",
	  "x.conf:2: watch.interval: \"-1s\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = 1.5",
	  "x.conf:2: watch.interval: \"1.5\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = -0.5s",
	  "x.conf:2: watch.interval: \"-0.5s\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = 0.05s",
	  "x.conf:2: watch.interval: \"0.05s\" is out of range; expected 100ms to 60s" },
	{ "[watch]\ninterval =",
	  "x.conf:2: watch.interval: \"\" " DURATION_KIND "1s" },
	{ "[watch]\ninterval = 99ms",
	  "x.conf:2: watch.interval: \"99ms\" is out of range; expected 100ms to 60s" },
	{ "[watch]\ninterval = 99999999999999999999s",
	  "x.conf:2: watch.interval: \"99999999999999999999s\" is out of range; expected"
	  " 100ms to 60s" },
	{ "[watch]\ninterval = 1s # fast",
	  "x.conf:2: watch.interval: \"1s # fast\" has a comment behind it; expected the comment "
	  "on a line of its own" },
	{ "[record]\ndir = /srv ; here",
	  "x.conf:2: record.dir: \"/srv ; here\" has a comment behind it; expected the comment "
	  "on a line of its own" },
	{ "[health]\nrun_as = root",
	  "x.conf:2: health.run_as: \"root\" is root; expected e.g. iostall" },
	{ "[sql.x]\nrun_as = root",
	  "x.conf:2: sql.x.run_as: \"root\" is root; expected e.g. iostall" },
	{ "[watch]\nintervall = 1s",
	  "x.conf:2: watch.intervall is not a known key; expected e.g. watch.interval" },
	{ "[watch]\nmin_stall = 1s",
	  "x.conf:2: watch.min_stall is not a known key; expected e.g. trace.min_stall" },
	{ "[watch]\nzzzzzzzz = 1",
	  "x.conf:2: watch.zzzzzzzz is not a known key; expected interval, history, "
	  "process, device, device_ignore, filesystem, sql_state" },
	{ "\n[wacth]\n",
	  "x.conf:2: [wacth] is not a known section; expected e.g. [watch]" },
	{ "[rule.util]\n",
	  "x.conf:1: [rule.util] is not a known section; expected e.g. "
	  "[rule.utilisation]" },
	{ "[rule.utilization]\n",
	  "x.conf:1: [rule.utilization] is not a known section; expected e.g. "
	  "[rule.utilisation]" },
	{ "[probe.zzzzzz]\n",
	  "x.conf:1: [probe.zzzzzz] is not a known section; expected "
#define PROBE(name, ...) "[probe." #name "], "
#include "probes/probes.def"
#undef PROBE
	},
	{ "[zzzzzzzz]\n",
	  "x.conf:1: [zzzzzzzz] is not a known section; expected [watch], [rule.NAME], [health], "
	  "[trace], [probe.NAME], [incident], [record], [journal], [syslog], [sql], "
	  "[sql.NAME], [hook.NAME], [control]" },
	{ "[]\n",
	  "x.conf:1: [] is not a known section; expected [watch], [rule.NAME], [health], "
	  "[trace], [probe.NAME], [incident], [record], [journal], [syslog], [sql], "
	  "[sql.NAME], [hook.NAME], [control]" },
	{ "[watch\n",
	  "x.conf:1: \"[watch\" has no ] at its end; expected e.g. [watch], and "
	  "comments on lines of their own" },
	{ "[watch] # here\n",
	  "x.conf:1: \"[watch] # here\" has no ] at its end; expected e.g. [watch], "
	  "and comments on lines of their own" },
	{ "interval = 1s\n",
	  "x.conf:1: \"interval\" stands before the first section; expected a section, e.g. "
	  "[watch], in a line above" },
	{ "[watch]\ninterval 1s\n",
	  "x.conf:2: \"interval 1s\" is neither a section nor a setting; expected e.g. "
	  "[watch] or interval = 1s" },
	{ "[watch]\n= 1s\n",
	  "x.conf:2: \"= 1s\" is neither a section nor a setting; expected e.g. "
	  "[watch] or interval = 1s" },
	{ "[watch]\ninter\033val = 1s\n",
	  "x.conf:2: watch.inter\\x1bval is not a known key; expected e.g. "
	  "watch.interval" },
	{ "[record]\ndir = /a\001b",
	  "x.conf:2: record.dir: \"/a\\x01b\" is not plain text: it has a control character; "
	  "expected e.g. /var/log/iostall" },
	{ "[record]\ndir = log",
	  "x.conf:2: record.dir: \"log\" is not an absolute path; expected e.g. "
	  "/var/log/iostall" },
	{ "[journal]\nenabled = maybe",
	  "x.conf:2: journal.enabled: \"maybe\" is neither yes nor no; expected e.g. "
	  "yes" },
	{ "[trace]\nbackend = ebpf",
	  "x.conf:2: trace.backend: \"ebpf\" is not one of auto, fentry, kprobe, tracepoint; "
	  "expected e.g. auto" },
	{ "[trace]\nring_bytes = 100K",
	  "x.conf:2: trace.ring_bytes: \"100K\" is not a power of two; expected e.g. 1M" },
	{ "[trace]\nring_bytes = 32K",
	  "x.conf:2: trace.ring_bytes: \"32K\" is out of range; expected a power of "
	  "two, 64K to 64M" },
	{ "[record]\nspool_bytes = 4MB",
	  "x.conf:2: record.spool_bytes: \"4MB\" is not a number of bytes (K, M or G may "
	  "follow); expected e.g. 4M" },
	{ "[record]\nmax_count = 1K",
	  "x.conf:2: record.max_count: \"1K\" is not a whole number; expected e.g. 1000" },
	{ "[record]\nmax_count = 0",
	  "x.conf:2: record.max_count: \"0\" is out of range; expected 1 to 1000000" },
	{ "[rule.iowait]\nset = 101",
	  "x.conf:2: rule.iowait.set: \"101\" is out of range; expected 0 to 99.9 %" },
	{ "[rule.iowait]\nset = 20ms",
	  "x.conf:2: rule.iowait.set: \"20ms\" is not a number of %; expected e.g. 20 "
	  "or 20 %" },
	{ "[rule.iowait]\nset = -1",
	  "x.conf:2: rule.iowait.set: \"-1\" is not a number of %; expected e.g. 20 or "
	  "20 %" },
	{ "[rule.iowait]\nset = nan",
	  "x.conf:2: rule.iowait.set: \"nan\" is not a number of %; expected e.g. 20 "
	  "or 20 %" },
	{ "[rule.await]\nset = 50%",
	  "x.conf:2: rule.await.set: \"50%\" is not a number of ms; expected e.g. 500 "
	  "or 500 ms" },
	{ "[watch]\nprocess = clickhouse-server",
	  "x.conf:2: watch.process: \"clickhouse-server\" is longer than the 15 characters "
	  "that the kernel keeps of a command name; expected e.g. mariadbd, 4711 or "
	  "unit:mariadb.service" },
	{ "[watch]\nprocess = \"mariadbd\"",
	  "x.conf:2: watch.process: \"\"mariadbd\"\" is in quotes, which are part of the value; "
	  "expected e.g. mariadbd, 4711 or unit:mariadb.service" },
	{ "[watch]\nprocess = mariadb*",
	  "x.conf:2: watch.process: \"mariadb*\" is a pattern, and names are compared as a whole; "
	  "expected e.g. mariadbd, 4711 or unit:mariadb.service" },
	{ "[watch]\ndevice = 'sd*' nvme*",
	  "x.conf:2: watch.device: \"'sd*' nvme*\" cannot be taken: \"'sd*'\" is in quotes, which "
	  "are part of the value; expected e.g. sd* nvme*" },
	{ "[watch]\nprocess = mysqld 0",
	  "x.conf:2: watch.process: \"mysqld 0\" cannot be taken: \"0\" is not a process id; "
	  "expected e.g. mariadbd, 4711 or unit:mariadb.service" },
	{ "[watch]\nprocess = 4194305",
	  "x.conf:2: watch.process: \"4194305\" is not a process id; expected e.g. "
	  "mariadbd, 4711 or unit:mariadb.service" },
	{ "[watch]\nprocess = unit:mariadb",
	  "x.conf:2: watch.process: \"unit:mariadb\" is not \"unit:\" with the full name of a "
	  "unit; expected e.g. mariadbd, 4711 or "
	  "unit:mariadb.service" },
	{ "[watch]\ndevice = /dev/sda",
	  "x.conf:2: watch.device: \"/dev/sda\" is a path, not the name of a device in "
	  "/proc/diskstats; expected e.g. sd* nvme*" },
	{ "[trace]\ndevice = 8:x",
	  "x.conf:2: trace.device: \"8:x\" is neither the name of a device nor MAJOR:MINOR; "
	  "expected e.g. sdb" },
	{ "[trace]\ndevice = /dev/sdb",
	  "x.conf:2: trace.device: \"/dev/sdb\" is a path, not the name of a device in "
	  "/proc/diskstats; expected e.g. sdb" },
	{ "[trace]\ndevice = a/b",
	  "x.conf:2: trace.device: \"a/b\" is a path, not the name of a device in "
	  "/proc/diskstats; expected e.g. sdb" },
	{ "[trace]\ndevice = 8:",
	  "x.conf:2: trace.device: \"8:\" is neither the name of a device nor MAJOR:MINOR; "
	  "expected e.g. sdb" },
	{ "[trace]\ndevice = 8:99999999",
	  "x.conf:2: trace.device: \"8:99999999\" has a number that no device can have; "
	  "expected e.g. sdb" },
	{ "[trace]\ndevice = 4096:1",
	  "x.conf:2: trace.device: \"4096:1\" has a number that no device can have; "
	  "expected e.g. sdb" },
	{ "[trace]\ncgroup = a b c d e f g h i",
	  "x.conf:2: trace.cgroup: \"a b c d e f g h i\" has too many items; expected at most 8" },
	{ "[trace]\ncgroup = /a/../b",
	  "x.conf:2: trace.cgroup: \"/a/../b\" leads out of the cgroup tree with \"..\"; expected "
	  "e.g. /system.slice/mariadb.service" },
	{ "[rule.iowait]\nset = 5",
	  "x.conf:2: rule.iowait.set: 5 is under rule.iowait.clear (10, the default); "
	  "expected at least 10, or a smaller rule.iowait.clear" },
	{ "[rule.iowait]\nset = 5\nclear = 5.5",
	  "x.conf:3: rule.iowait.clear: 5.5 is over rule.iowait.set (5); expected at "
	  "most 5, or a larger rule.iowait.set" },
	{ "[watch]\ninterval = 10s\n[rule.hung]\n\n[watch]\nhistory = 9s",
	  "x.conf:6: watch.history: 9s is under watch.interval (10s); expected at "
	  "least 10s, or a smaller watch.interval" },
	{ "[incident]\nmax_time = 4s",
	  "x.conf:2: incident.max_time: 4s is under incident.clear_time (5s, the default); "
	  "expected at least 5s, or a smaller incident.clear_time" },
	{ "[incident]\nmax_time = 1s\nclear_time = 1s\n[trace]\nmin_stall = 1001ms",
	  "x.conf:5: trace.min_stall: 1001ms is over incident.max_time (1s); expected "
	  "at most 1s, or a larger incident.max_time" },
	{ "[record]\nmax_bytes = 1M",
	  "x.conf:2: record.max_bytes: 1M is under record.spool_bytes (4M, the default); "
	  "expected at least 4M, or a smaller record.spool_bytes" },
	{ "[record]\ndir = /run/iostall/",
	  "x.conf:2: record.dir: /run/iostall/ is the same as record.spool_dir "
	  "(/run/iostall, the default); expected two different directories" },
	{ "[sql.Main]",
	  "x.conf:1: [sql.Main] is not a known section; expected e.g. [sql.main], at "
	  "most 31 of a-z, 0-9, _ and -" },
	{ "[sql.NAME]",
	  "x.conf:1: [sql.NAME] is not a known section; expected e.g. [sql.main], at "
	  "most 31 of a-z, 0-9, _ and -" },
	{ "[sql.main]\nsokcet = /run/x",
	  "x.conf:2: sql.main.sokcet is not a known key; expected e.g. sql.main.socket" },
	{ "[sql.a]\nhost = h\n[sql.b]\nsocket = /run/x\n[watch]\n[sql.b]\nhost = h",
	  "x.conf:7: sql.b.host: sql.b.socket is set, too; expected only one of the two" },
	{ "[sql.main]\nsocket = \"/run/x\"",
	  "x.conf:2: sql.main.socket: \"\"/run/x\"\" is in quotes, which are part of the value; "
	  "expected e.g. /run/mysqld/mysqld.sock" },
	{ "[sql.main]\nport = 3306",
	  "x.conf:2: sql.main.port: sql.main.host is missing, and a socket has no port; expected"
	  " both or neither" },
	{ "[sql.main]\nhost = /run/mysqld/mysqld.sock",
	  "x.conf:2: sql.main.host: \"/run/mysqld/mysqld.sock\" is a path; paths belong to "
	  "socket; expected e.g. 127.0.0.1" },
	{ "[sql.a]\n[sql.b]\n[sql.c]\n[sql.d]\n[sql.e]\n[sql.f]\n[sql.g]\n[sql.h]\n[sql.i]",
	  "x.conf:9: [sql.i] is one target too many; expected at most 8" },
	{ "[hook.Mail]",
	  "x.conf:1: [hook.Mail] is not a known section; expected e.g. [hook.mail], at "
	  "most 31 of a-z, 0-9, _ and -" },
	{ "[hook.a]\ncommand = /bin/cat\n[hook.b]\nsocket = /run/x\n[hook.a]\nsocket = /run/x",
	  "x.conf:6: hook.a.socket: hook.a.command is set, too; expected only one of the two" },
	{ "[hook.a]\ncapabilities = CAP_KILL SYS_PTRACE",
	  "x.conf:2: hook.a.capabilities: \"CAP_KILL SYS_PTRACE\" is not a list of capabilities that are known; "
	  "expected e.g. CAP_SYS_PTRACE" },
	{ "[hook.a]\nrun_as = root",
	  "x.conf:2: hook.a.run_as: \"root\" is root; expected e.g. nobody" },
	{ "[hook.a]\n[hook.b]\n[hook.c]\n[hook.d]\n[hook.e]\n[hook.f]\n[hook.g]\n[hook.h]\n[hook.i]",
	  "x.conf:9: [hook.i] is one hook too many; expected at most 8" },
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

static void test_a_kind_of_database_that_is_not_known(void **state)
{
	static const char *const kinds[] = {
#define DATABASE(NAME, name, ...) #name,
#include "sql/databases.def"
#undef DATABASE
	};
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	assert_int_equal(parse(&c, "[sql.main]\ntype = oracle", error), -EINVAL);
	assert_non_null(strstr(error, "x.conf:2: sql.main.type: \"oracle\" is not one of "));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_non_null(strstr(error, kinds[i]));
}

/* clang-format off */
static const struct error_case set_errors[] = {
	{ "watch.interval=5",
	  "--set watch.interval=5: watch.interval: \"5\" " DURATION_KIND "1s" },
	{ "watch.interval",
	  "--set watch.interval: not a setting; expected e.g. watch.interval=1s" },
	{ "=1s",
	  "--set =1s: not a setting; expected e.g. watch.interval=1s" },
	{ "min_stall=1s",
	  "--set min_stall=1s: \"min_stall\" has no section; expected e.g. "
	  "trace.min_stall=VALUE" },
	{ "rule.iowait=1",
	  "--set rule.iowait=1: [rule] is not a known section; expected e.g. "
	  "[rule.iowait]" },
	{ "rule.iowait.sett=1",
	  "--set rule.iowait.sett=1: rule.iowait.sett is not a known key; expected "
	  "e.g. rule.iowait.set" },
	{ "rule.iowait.set=9",
	  "--set rule.iowait.set=9: rule.iowait.set: 9 is under rule.iowait.clear (10, the "
	  "default); expected at least 10, or a smaller rule.iowait.clear" },
	{ "record.dir=/a\nb",
	  "--set record.dir=/a\\x0ab: record.dir: \"/a\\x0ab\" is not plain text: it has a "
	  "control character; expected e.g. /var/log/iostall" },
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
	expect_failure("none.conf", -ENOENT,
		"none.conf: cannot be read: No such file or directory");
	expect_failure(dir, -EISDIR, ": cannot be read: Is a directory");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	expect_failure("fifo", -EINVAL, "fifo: is not a regular file");
	memset(large, '\n', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	write_file("large.conf", large);
	expect_failure("large.conf", -EINVAL, "large.conf: is too large; expected at most 256K");

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_errors),
		cmocka_unit_test(test_a_kind_of_database_that_is_not_known),
		cmocka_unit_test(test_set_errors),
		/* Changes the working directory: last. */
		cmocka_unit_test(test_unreadable_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
