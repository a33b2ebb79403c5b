/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* `iostall list`: its table, its choice of incidents, and files that are no records. */
#include "test_record_files.h"

#include <errno.h>

#include "cli/commands.h"
#include "cli/list.h"
#include "cli/since.h"
#include "util/exit.h"

static int run_list_with(const struct fixture *f, const struct list_options *options, char *buf,
	size_t size)
{
	FILE *out = fmemopen(buf, size, "w");
	int code = list_records(out, &f->config, options);

	fclose(out);
	return code;
}

static int run_list(const struct fixture *f, bool json, char *buf, size_t size)
{
	return run_list_with(f, &(struct list_options){ .json = json }, buf, size);
}

static void test_list(void **state)
{
	const struct fixture *f = *state;
	char buf[8192];

	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_OK);
	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("cut-off.jsonl", f->config.record.spool_dir, OTHER_ID);
	assert_int_equal(run_list(f, false, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_string_equal(buf,
		"INCIDENT               OPENED                       DURATION  CLASS       WHERE       "
		"CULPRIT                    STALLS  STUCK    LONGEST  LOST  STATE\n"
		"20261120T031207Z-3f9c  2026-11-20 04:12:07 +01:00    23.40 s  saturated   sdb         "
		"mariadbd[2211/2230] 92 %       12      3     4.20 s     2  closed\n"
		"20261121T000000Z-0001  2026-11-20 04:12:07 +01:00    12.35 s  -           sdb         "
		"-                               1   some     512 ms     0  cut off\n");
	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf,
		"{\"incident\":\"20261120T031207Z-3f9c\","
		"\"opened\":\"2026-11-20T03:12:07.123456Z\","
		"\"state\":\"closed\",\"host\":\"db1\","
		"\"rule\":\"utilisation\",\"continues\":null,\"device\":\"sdb\",\"subject\":null,"
		"\"pid\":null,"));
	assert_non_null(strstr(buf,
		"\"class\":\"saturated\",\"culprit\":{\"comm\":\"mariadbd\",\"pid\":2211,"
		"\"tid\":2230,\"path\":\"/var/lib/mysql/shop/orders.ibd\",\"share_pct\":92.50},"));
	assert_non_null(strstr(buf, "\"class\":null,\"culprit\":null,"));
}

static void test_list_of_some(void **state)
{
	const struct fixture *f = *state;
	struct list_options options = { .class = RECORD_CLASS_saturated };
	char buf[8192];

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("cut-off.jsonl", f->config.record.spool_dir, OTHER_ID);
	assert_int_equal(run_list_with(f, &options, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, DATA_ID));
	assert_null(strstr(buf, OTHER_ID));
	options.class = RECORD_CLASS_hung;
	assert_int_equal(run_list_with(f, &options, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_null(strstr(buf, DATA_ID));
	options = (struct list_options){ .since_real_ns = DATA_REAL_NS };
	assert_int_equal(run_list_with(f, &options, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, DATA_ID));
	options.since_real_ns++;
	assert_int_equal(run_list_with(f, &options, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_null(strstr(buf, DATA_ID));
	options.since_real_ns += 365 * 24 * 3600 * NSEC_PER_SEC;
	assert_int_equal(run_list_with(f, &options, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_null(strstr(buf, OTHER_ID));
}

static int run_list_command(char *option, char *value)
{
	char name[] = "list", config[] = "--config", file[] = "/nonexistent/x.conf";
	char *argv[] = { name, option, value, config, file, NULL };
	char error[OPTIONS_ERROR_SIZE];
	struct options o;

	assert_int_equal(options_parse(&command_list, 5, argv, &o, error), 0);
	return command_list.run(&o);
}

/* What is wrong with them is said before any file is read. */
static void test_options_of_list(void **state)
{
	char since[] = "--since", class[] = "--class", ago[] = "2h", never[] = "2 moons";
	char hung[] = "hung", none[] = "none", empty[] = "";

	(void)state;
	assert_int_equal(run_list_command(since, ago), EXIT_CODE_CONFIG);
	assert_int_equal(run_list_command(since, never), EXIT_CODE_USAGE);
	assert_int_equal(run_list_command(class, hung), EXIT_CODE_CONFIG);
	assert_int_equal(run_list_command(class, none), EXIT_CODE_USAGE);
	assert_int_equal(run_list_command(class, empty), EXIT_CODE_USAGE);
}

static void test_since(void **state)
{
	static const struct {
		const char *text;
		uint64_t real_s;
	} cases[] = {
		{ "0", 1795144327 },
		{ "90m", 1795144327 - 5400 },
		{ "2h", 1795144327 - 7200 },
		{ "1d", 1795144327 - 86400 },
		{ "2026-11-20", 1795129200 },
		{ "2026-11-20 04:12", 1795144320 },
		{ "2026-11-20T04:12", 1795144320 },
		{ "2026-11-20 04:12:07", 1795144327 },
		/* Summer. */
		{ "2026-07-01 00:00:00", 1782856800 },
		{ "99999d", 0 },
	};
	static const char *const wrong[] = { "", "2", "d", "-1d", "1w", "99999999999999999999d",
		"2026-02-31", "2026-11-20 25:00", "2026-11-20 04:12:07 x", "20.11.2026" };
	uint64_t real_ns;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(since_parse(cases[i].text, 1795144327 * NSEC_PER_SEC, &real_ns),
			0);
		assert_int_equal(real_ns / NSEC_PER_SEC, cases[i].real_s);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(since_parse(wrong[i], DATA_REAL_NS, &real_ns), -EINVAL);
}

/* How long it was is not known, and it was not 0 us. */
static void test_list_of_an_open_line_alone(void **state)
{
	const struct fixture *f = *state;
	char buf[8192], command[PATH_MAX + 128];

	snprintf(command, sizeof(command),
		"head -n 1 " FIXTURES "cut-off.jsonl >'%s/" DATA_ID ".jsonl'",
		f->config.record.spool_dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(run_list(f, false, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, DATA_ID "  2026-11-20 04:12:07 +01:00          ?  - "));
	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, ",\"duration_ns\":null,"));
}

static void test_list_goes_on_after_a_broken_file(void **state)
{
	const struct fixture *f = *state;
	char buf[8192], path[PATH_MAX];

	place("no-open.jsonl", f->config.record.dir, DATA_ID);
	path_of(f, "log/20261120T031208Z-0000.jsonl", path);
	assert_int_equal(mkdir(path, 0700), 0);
	path_of(f, "log/20261120T031209Z-0000.jsonl", path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	path_of(f, "log/20261120T031210Z-0000.jsonl", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	place("closed.jsonl", f->config.record.dir, OTHER_ID);
	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_RECORD);
	assert_non_null(strstr(buf, OTHER_ID));
	assert_null(strstr(buf, DATA_ID));
	assert_ptr_equal(strchr(buf, '\n'), buf + strlen(buf) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_list),
		WITH_DIRS(test_list_of_some),
		cmocka_unit_test(test_options_of_list),
		cmocka_unit_test(test_since),
		WITH_DIRS(test_list_of_an_open_line_alone),
		WITH_DIRS(test_list_goes_on_after_a_broken_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
