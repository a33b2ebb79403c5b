/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The command line: what is taken, each message when it is not, and the usage made from the table.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "util/cleanup.h"

static const struct options_item watch_items[] = {
	{ "now", NULL, "arm at once instead of waiting for a trigger" },
	{ "count", "N", "leave after N incidents" },
};

static int run_nothing(const struct options *o)
{
	(void)o;
	return 0;
}

static const struct options_command commands[] = {
	{ "watch", NULL, "watch in the foreground", NULL, watch_items, ARRAY_SIZE(watch_items), 0,
		0, run_nothing, false },
	{ "show", "ID", "show one incident", "Show one incident.\nIn sentences.", NULL, 0, 1, 1,
		run_nothing, false },
	{ "not-for-people", NULL, "hidden", NULL, NULL, 0, 0, 0, run_nothing, true },
};
static const struct options_command *const list[] = { &commands[0], &commands[1], &commands[2] };

/* getopt_long() reorders argv: each call gets its own. */
static char *words[OPTIONS_SETS_MAX + 16];
static struct options options;

static int parse(const struct options_command *command, const char *line, char *ret_error)
{
	static char copy[2048];
	char *save = NULL;
	int argc = 0;

	ret_error[0] = '\0';
	assert_true(strlen(line) < sizeof(copy));
	strcpy(copy, line);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		words[argc++] = w;
	words[argc] = NULL;
	return options_parse(command, argc, words, &options, ret_error);
}

static void test_common(void **state)
{
	char error[OPTIONS_ERROR_SIZE];

	(void)state;
	assert_int_equal(parse(&commands[0], "watch", error), 0);
	assert_null(options.source.file);
	assert_int_equal(options.source.sets_count, 0);
	assert_string_equal(options.procfs, "/proc");
	assert_string_equal(options.sysfs, "/sys");
	assert_false(options.json || options.verbose || options.help || options.version);

	assert_int_equal(
		parse(&commands[1],
			"show --config a.conf --set=a.b=1 last --set c.d=2 --json --procfs p "
			"--sysfs=s --verbose",
			error),
		0);
	assert_string_equal(options.source.file, "a.conf");
	assert_int_equal(options.source.sets_count, 2);
	assert_string_equal(options.source.sets[0], "a.b=1");
	assert_string_equal(options.source.sets[1], "c.d=2");
	assert_string_equal(options.procfs, "p");
	assert_string_equal(options.sysfs, "s");
	assert_true(options.json && options.verbose);
	assert_int_equal(options.args_count, 1);
	assert_string_equal(options.args[0], "last");
}

static void test_own(void **state)
{
	char error[OPTIONS_ERROR_SIZE];

	(void)state;
	assert_int_equal(parse(&commands[0], "watch --now --count 3 --count=4", error), 0);
	assert_true(options_has(&options, "now"));
	assert_string_equal(options_get(&options, "count"), "4");
	/* A second call starts from nothing. */
	assert_int_equal(parse(&commands[0], "watch", error), 0);
	assert_false(options_has(&options, "now"));
	assert_null(options_get(&options, "count"));
	assert_int_equal(parse(&commands[1], "show -- --now", error), 0);
	assert_string_equal(options.args[0], "--now");
}

static void test_help(void **state)
{
	static const struct options_command top = { .summary = "" };
	char error[OPTIONS_ERROR_SIZE];

	(void)state;
	/* Asked for help, nobody is told that an argument is missing. */
	assert_int_equal(parse(&commands[1], "show --help", error), 0);
	assert_true(options.help);
	assert_int_equal(parse(&commands[1], "show -h a b c", error), 0);
	assert_true(options.help);
	assert_int_equal(parse(&top, "iostall --version", error), 0);
	assert_true(options.version);
	assert_int_equal(parse(&top, "iostall -V", error), 0);
	assert_true(options.version);
	assert_int_equal(parse(&top, "iostall --vresion", error), -EINVAL);
	assert_string_equal(error,
		"unknown option --vresion, did you mean --version; see iostall --help");
}

static void test_errors(void **state)
{
	static const struct {
		unsigned int command;
		const char *line, *error;
	} cases[] = {
		{ 0, "watch --nwo",
			"watch: unknown option --nwo, did you mean --now; see iostall "
			"watch --help" },
		{ 0, "watch --zzzzzz=1",
			"watch: unknown option --zzzzzz; see iostall watch --help" },
		{ 1, "show --now 1", "show: unknown option --now; see iostall show --help" },
		{ 0, "watch -z", "watch: unknown option -z; see iostall watch --help" },
		{ 0, "watch -\033", "watch: unknown option -\\x1b; see iostall watch --help" },
		{ 0, "watch --co",
			"watch: ambiguous option --co, did you mean --config; see iostall "
			"watch --help" },
		{ 0, "watch --config",
			"watch: --config needs an argument; expected --config "
			"FILE; see iostall watch --help" },
		{ 0, "watch --now --count",
			"watch: --count needs an argument; expected --count "
			"N; see iostall watch --help" },
		{ 0, "watch --json=yes",
			"watch: --json takes no argument; see iostall watch --help" },
		{ 0, "watch --now=yes",
			"watch: --now takes no argument; see iostall watch --help" },
		{ 0, "watch it", "watch: unexpected argument \"it\"; see iostall watch --help" },
		{ 1, "show a b", "show: unexpected argument \"b\"; see iostall show --help" },
		{ 1, "show",
			"show: an argument is missing; expected iostall show ID; see "
			"iostall show --help" },
	};
	char error[OPTIONS_ERROR_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse(&commands[cases[i].command], cases[i].line, error), -EINVAL);
		assert_string_equal(error, cases[i].error);
	}
}

static void test_too_many_sets(void **state)
{
	char line[2000] = "watch", error[OPTIONS_ERROR_SIZE];

	(void)state;
	for (unsigned int i = 0; i < OPTIONS_SETS_MAX; i++)
		strcat(line, " --set=a");
	assert_int_equal(parse(&commands[0], line, error), 0);
	assert_int_equal(options.source.sets_count, OPTIONS_SETS_MAX);
	strcat(line, " --set=a");
	assert_int_equal(parse(&commands[0], line, error), -EINVAL);
	assert_string_equal(error,
		"watch: --set is given more than 128 times; put the settings into a file "
		"and use --config; see iostall watch --help");
}

/* Options may come before the command: the command is found behind their arguments. */
static void test_take_command(void **state)
{
	static const struct {
		const char *line, *taken; /* NULL: there is no command */
	} cases[] = {
		{ "iostall list", "list" },
		{ "iostall --json list a", "list --json a" },
		{ "iostall --config a.conf --json list --now",
			"list --config a.conf --json --now" },
		{ "iostall --config=a.conf list", "list --config=a.conf" },
		{ "iostall --count 3 watch", "watch --count 3" },
		{ "iostall --conf a.conf -h show x", "show --conf a.conf -h x" },
		{ "iostall --unknown list", "list --unknown" },
		{ "iostall --json", NULL },
		{ "iostall --set list", NULL },
		{ "iostall -V", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char copy[128], joined[128] = "", *save = NULL, **argv = words;
		int argc = 0;

		strcpy(copy, cases[i].line);
		for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
			words[argc++] = w;
		words[argc] = NULL;
		assert_int_equal(options_take_command(list, 3, &argc, &argv),
			cases[i].taken != NULL);
		for (int j = 0; j < argc; j++) {
			strcat(joined, j ? " " : "");
			strcat(joined, argv[j]);
		}
		assert_string_equal(joined, cases[i].taken ? cases[i].taken : cases[i].line);
		assert_null(argv[argc]);
	}
}

static void test_find_command(void **state)
{
	const struct options_command *found = NULL;
	char error[OPTIONS_ERROR_SIZE] = "";

	(void)state;
	assert_int_equal(options_find_command(list, 2, "show", &found, error), 0);
	assert_ptr_equal(found, &commands[1]);
	assert_int_equal(options_find_command(list, 2, "wacth", &found, error), -EINVAL);
	assert_string_equal(error,
		"unknown command \"wacth\", did you mean watch; see iostall --help");
	assert_int_equal(options_find_command(list, 2, "\033zzz", &found, error), -EINVAL);
	assert_string_equal(error, "unknown command \"\\x1bzzz\"; see iostall --help");
	assert_ptr_equal(found, &commands[1]);
}

static void test_usage(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	options_print_usage(f, &commands[0]);
	options_print_usage(f, &commands[1]);
	options_print_commands(f, list, 3);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strncmp(text,
				 "Usage: iostall watch [OPTION...]\n\nwatch in the foreground\n",
				 57),
		0);
	assert_non_null(strstr(text, "show [OPTION...] ID\n\nShow one incident.\nIn sentences.\n"));
	assert_non_null(strstr(text, "\n  --now                    arm at once"));
	assert_non_null(strstr(text, "\n  --count N                leave after N"));
	assert_non_null(strstr(text, "\n  --set SECTION.KEY=VALUE  override one setting"));
	assert_non_null(strstr(text, "\n  show   show one incident\n"));
	assert_null(strstr(text, "not-for-people"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_common),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_too_many_sets),
		cmocka_unit_test(test_take_command),
		cmocka_unit_test(test_find_command),
		cmocka_unit_test(test_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
