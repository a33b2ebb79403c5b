/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* `iostall show`: the page, the events and the lines of a record, and what cannot be shown. */
#include "test_record_files.h"

#include "cli/commands.h"
#include "cli/list.h"
#include "cli/show.h"
#include "util/exit.h"

static struct show_options options_of(enum show_as as)
{
	return (struct show_options){ .as = as,
		.style = { .columns = 100 },
		.folded = { .thread = true, .program = true, .kernel = true } };
}

static int run_show(const struct fixture *f, const char *name, enum show_as as, char *buf,
	size_t size)
{
	FILE *out = fmemopen(buf, size, "w");
	const struct show_options options = options_of(as);
	int code = show_record(out, &f->config, name, &options);

	fclose(out);
	return code;
}

static void test_show_events(void **state)
{
	const struct fixture *f = *state;
	char buf[8192];

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("cut-off.jsonl", f->config.record.spool_dir, OTHER_ID);
	assert_int_equal(run_show(f, "20261120", SHOW_EVENTS, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_memory_equal(buf, "incident " DATA_ID "\n  opened", 39);
	/* What it came to is said first, and with its parts at the end. */
	assert_non_null(strstr(buf, "\n  verdict   device sdb saturated (util 100 %): 92 % of "));
	assert_true(strstr(buf, "\n  verdict   ") < strstr(buf, "  sample  "));
	assert_non_null(strstr(buf, "\nverdict saturated, measured\n  device sdb saturated"));
	assert_non_null(strstr(buf, "\n  culprit   92 % of 204.1 MiB  measured\nincident "));
	assert_non_null(strstr(buf, "\n   -3.000s  sample  "));
	assert_non_null(strstr(buf, "\n  +12.345s  STUCK    >=512 ms  mariadbd[2211/2230] read"));
	assert_int_equal(run_show(f, "last", SHOW_EVENTS, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, "\nincomplete: the recorder was killed\n"));
}

static void test_show(void **state)
{
	const struct fixture *f = *state;
	char buf[8192], stored[8192];

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("cut-off.jsonl", f->config.record.spool_dir, OTHER_ID);
	assert_int_equal(run_show(f, "20261120", SHOW_PAGE, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_memory_equal(buf, "VERDICT: saturated (measured)\ndevice sdb saturated", 50);
	assert_non_null(strstr(buf, "\nincident  " DATA_ID " on db1\n"));
	assert_int_equal(run_show(f, DATA_ID, SHOW_JSON, buf, sizeof(buf)), EXIT_CODE_OK);
	read_file(FIXTURES "closed.jsonl", stored, sizeof(stored));
	assert_string_equal(buf, stored);
	assert_int_equal(run_show(f, "last", SHOW_PAGE, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, "\nincomplete: the recorder was killed\n"));
	assert_int_equal(run_show(f, "last-1", SHOW_PAGE, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, DATA_ID));
	assert_int_equal(run_show(f, "-3f9c", SHOW_PAGE, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, DATA_ID));
	assert_int_equal(run_show(f, FIXTURES "newer.jsonl", SHOW_PAGE, buf, sizeof(buf)),
		EXIT_CODE_OK);
	assert_int_equal(run_show(f, FIXTURES "newer.jsonl", SHOW_JSON, buf, sizeof(buf)),
		EXIT_CODE_OK);
	assert_non_null(strstr(buf, "\"of_tomorrow\""));
}

/* One stack for each line; an operation counts once, whether it hung, returned, or both. */
static void test_show_folded(void **state)
{
	const struct fixture *f = *state;
	char buf[8192];

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	assert_int_equal(run_show(f, DATA_ID, SHOW_FOLDED, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_string_equal(buf,
		"mariadbd;filemap_read;folio_wait_bit_common;io_schedule 512000\n");
}

static void assert_not_shown(const struct fixture *f, const char *name)
{
	char buf[8192] = "";

	assert_int_equal(run_show(f, name, SHOW_PAGE, buf, sizeof(buf)), EXIT_CODE_RECORD);
	assert_string_equal(buf, "");
}

static void test_show_says_what_is_wrong(void **state)
{
	const struct fixture *f = *state;
	char buf[8192];

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("closed.jsonl", f->config.record.dir, OTHER_ID);
	assert_not_shown(f, "2026112");
	assert_not_shown(f, "2031");
	assert_not_shown(f, "last-2");
	assert_not_shown(f, "lastly");
	assert_not_shown(f, "/nonexistent");
	assert_not_shown(f, "/etc/passwd");
	/* None of these ends by itself, or has anything to be read at an offset. */
	assert_not_shown(f, "/dev/zero");
	assert_not_shown(f, "/dev/null");
	assert_not_shown(f, f->root);
	assert_int_equal(run_show(f, FIXTURES "garbage.jsonl", SHOW_PAGE, buf, sizeof(buf)),
		EXIT_CODE_RECORD);
	assert_memory_equal(buf, "VERDICT: none\n", 14);
}

static void test_a_full_output_is_a_failure(void **state)
{
	const struct fixture *f = *state;
	const struct show_options options = options_of(SHOW_JSON);
	FILE *out = fopen("/dev/full", "we");

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	assert_int_equal(show_record(out, &f->config, "last", &options), EXIT_CODE_FAILURE);
	fclose(out);
	out = fopen("/dev/full", "we");
	assert_int_equal(list_records(out, &f->config, &(struct list_options){ .json = true }),
		EXIT_CODE_FAILURE);
	fclose(out);
}

/* With the defaults it might say that there are no incidents. */
static void test_without_the_configuration(void **state)
{
	char path[] = "/nonexistent/x.jsonl", last[] = "last", none[] = "";
	char *args[] = { last };
	struct options o = { .command = &command_list,
		.source.file = "/nonexistent/x.conf",
		.args = args,
		.args_count = 1 };

	(void)state;
	assert_int_equal(command_list.run(&o), EXIT_CODE_CONFIG);
	o.command = &command_show;
	assert_int_equal(command_show.run(&o), EXIT_CODE_CONFIG);
	args[0] = path;
	assert_int_equal(command_show.run(&o), EXIT_CODE_RECORD);
	args[0] = none;
	assert_int_equal(command_show.run(&o), EXIT_CODE_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_the_configuration),
		WITH_DIRS(test_show),
		WITH_DIRS(test_show_folded),
		WITH_DIRS(test_show_events),
		WITH_DIRS(test_show_says_what_is_wrong),
		WITH_DIRS(test_a_full_output_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
