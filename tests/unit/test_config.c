/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The configuration as files and arguments give it: what is taken, and what changes. */
#include "test_config_setup.h"

#include <errno.h>

#include "util/cleanup.h"
#include "util/clock.h"

#define FIXTURE(name) "tests/fixtures/config/" name

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
	assert_string_equal(error,
		"--set rule.iowait.clear=6: rule.iowait.clear: 6 is over "
		"rule.iowait.set (5); expected at most 5, or a larger "
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
	assert_string_equal(error, "x.conf:1: the line is too long; expected at most 8191 bytes");
	/* Also in a comment: the file is not what somebody meant to write. */
	assert_int_equal(config_parse_text(&c, "x.conf", "[watch]\n#\0\n", 11, error), -EINVAL);
	assert_string_equal(error, "x.conf:2: the line has a NUL byte; expected plain text");
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
	config_set_defaults(&c);
	memset(name, '\033', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "[watch]\n%s = %s\n", name, name);
	assert_int_equal(config_parse_text(&c, name, text, strlen(text), error), -EINVAL);
	assert_non_null(strstr(error, "is not a known key; expected interval, "));
	assert_null(strchr(error, '\033'));
	snprintf(text, sizeof(text), "[watch]\nprocess = %s\n", name);
	memset(text + 18, 'x', 2000);
	assert_int_equal(config_parse_text(&c, name, text, strlen(text), error), -EINVAL);
	assert_non_null(strstr(error, "expected "));
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
	assert_memory_equal(&c, &defaults, offsetof(struct config, origin));
	assert_string_equal(c.origin, "the defaults");
}

static void add_change(void *userdata, const char *change)
{
	text_addf(userdata, "%s\n", change);
}

static void test_compare(void **state)
{
	static const char *const sets[] = { "watch.interval=0.5s", "rule.iowait.set=33.5",
		"trace.process=mariadbd postgres", "sql.old.user=a", "sql.both.user=a",
		"record.dir=/srv/records" };
	static const char *const other_sets[] = { "watch.interval=0.5s", "rule.iowait.set=33.5",
		"sql.both.user=b", "sql.new.type=postgresql", "record.dir=/srv/other" };
	char error[CONFIG_ERROR_SIZE], buf[1024];
	struct text changes = TEXT_ON(buf);
	struct config a, b;

	(void)state;
	assert_int_equal(load(&a, "/dev/null", sets, ARRAY_SIZE(sets), error), 0);
	assert_int_equal(load(&b, "/dev/null", other_sets, ARRAY_SIZE(other_sets), error), 0);
	text_reset(&changes);
	assert_int_equal(config_compare(&a, &a, add_change, &changes), 0);
	assert_string_equal(buf, "");
	assert_int_equal(config_compare(&a, &b, add_change, &changes), 5);
	assert_string_equal(buf,
		"trace.process = \"\" (was mariadbd postgres)\n"
		"record.dir = /srv/other (was /srv/records)\n"
		"[sql.old] was removed\n"
		"sql.both.user = b (was a)\n"
		"[sql.new] was added\n");
	assert_string_equal(b.origin,
		"/dev/null, --set watch.interval=0.5s, --set rule.iowait.set=33.5, --set "
		"sql.both.user=b, --set sql.new.type=postgresql, --set record.dir=/srv/other");
}

/* The end of a long list counts, too, although a message has its beginning only. */
static void test_compare_long_lists(void **state)
{
	const char *set = "watch.process=";
	char before[640] = "", after[640], error[CONFIG_ERROR_SIZE], buf[1024];
	struct text changes = TEXT_ON(buf);
	struct config a, b;

	(void)state;
	strcpy(before, set);
	for (unsigned int i = 10; i < 40; i++)
		snprintf(before + strlen(before), sizeof(before) - strlen(before), "database-%u ",
			i);
	strcpy(after, before);
	after[strlen(after) - 2] = 'x';
	assert_int_equal(load(&a, "/dev/null", (const char *[]){ before }, 1, error), 0);
	assert_int_equal(load(&b, "/dev/null", (const char *[]){ after }, 1, error), 0);
	text_reset(&changes);
	assert_int_equal(config_compare(&a, &b, add_change, &changes), 1);
	assert_non_null(strstr(buf, "... (was database-10 "));
}

static void test_long_origin(void **state)
{
	const char *sets[30];
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		sets[i] = "record.dir=/srv/records";
	assert_int_equal(load(&c, "/dev/null", sets, ARRAY_SIZE(sets), error), 0);
	assert_true(strlen(c.origin) < sizeof(c.origin));
	assert_string_equal(c.origin + strlen(c.origin) - 12, "records, ...");
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

static void test_hooks(void **state)
{
	static const char text[] = "[hook.mail]\ncommand = /bin/cat\n[hook.gcore]\n"
				   "socket = /run/x.sock\ntime_limit = 3m\n"
				   "[hook.mail]\ncapabilities = CAP_KILL cap_sys_ptrace\n";
	char error[CONFIG_ERROR_SIZE];
	struct config c;

	(void)state;
	config_set_defaults(&c);
	assert_int_equal(config_parse_text(&c, "x.conf", text, strlen(text), error), 0);
	assert_int_equal(c.hooks_count, 2);
	assert_string_equal(c.hooks[0].section, "hook.mail");
	assert_string_equal(c.hooks[0].command, "/bin/cat");
	assert_string_equal(c.hooks[0].run_as, "nobody");
	assert_string_equal(c.hooks[0].capabilities, "CAP_KILL cap_sys_ptrace");
	assert_int_equal(c.hooks[0].time_limit_ns, 30 * NSEC_PER_SEC);
	assert_int_equal(c.hooks[0].output_bytes, 64 * 1024);
	assert_string_equal(c.hooks[1].section, "hook.gcore");
	assert_string_equal(c.hooks[1].socket, "/run/x.sock");
	assert_int_equal(c.hooks[1].time_limit_ns, 180 * NSEC_PER_SEC);
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
		cmocka_unit_test(test_hooks),
		cmocka_unit_test(test_set_values),
		cmocka_unit_test(test_set_against_file),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_crlf),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_drop_ins),
		cmocka_unit_test(test_missing_default_file),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_compare_long_lists),
		cmocka_unit_test(test_long_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
