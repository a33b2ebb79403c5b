/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What holds for every entry of the table of settings, and for all that is printed from it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/table.h"
#include "iostall/event.h"
#include "util/cleanup.h"

#define RANDOM_ROUNDS 20000

static struct config config;

static int parse_value(const struct config_setting *s, const char *value, char *ret_reason)
{
	struct text reason = { .buf = ret_reason, .size = 256 };
	int r;

	text_reset(&reason);
	r = config_value_parse(s, value, &config, &reason);
	/* A reason that does not fit would be cut in the error. */
	assert_false(reason.overflow);
	assert_true(r == 0 ? reason.len == 0 : r == -EINVAL && reason.len > 0);
	return r;
}

static void format_value(const struct config_setting *s, char *ret_value, size_t size)
{
	struct text value = { .buf = ret_value, .size = size };

	text_reset(&value);
	config_value_format(s, &config, &value);
	assert_false(value.overflow);
}

static void test_every_default(void **state)
{
	char value[1024], reason[256];

	(void)state;
	config_set_defaults(&config);
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];

		format_value(s, value, sizeof(value));
		assert_string_equal(value, s->standard);
		assert_int_equal(parse_value(s, s->standard, reason), 0);
		assert_ptr_equal(config_find_setting(s->section, s->key), s);
		assert_non_null(config_find_section(s->section));
		assert_true(strlen(s->help) > 0 && s->help[strlen(s->help) - 1] == '.');
	}
	struct config_conflict conflict;

	assert_int_equal(config_check_relations(&config, &conflict), 0);
}

static void test_stated_defaults(void **state)
{
	struct config c;

	(void)state;
	config_set_defaults(&c);
	assert_int_equal(c.watch.interval_ns, 1000000000);
	assert_int_equal(c.watch.history_ns, 60000000000);
	assert_string_equal(c.watch.process.items[0], "mariadbd");
	assert_int_equal(c.watch.device.count, 1);
	assert_string_equal(c.watch.device.items[0], "*");
	assert_int_equal(c.watch.device_ignore.count, 4);
	assert_true(c.rules[CONFIG_RULE_iowait].set == 20);
	assert_true(c.rules[CONFIG_RULE_utilisation].set == 90);
	assert_int_equal(c.rules[CONFIG_RULE_utilisation].hold_samples, 2);
	assert_true(c.rules[CONFIG_RULE_hung].set == 3);
	assert_true(c.rules[CONFIG_RULE_psi_io_full].set == 20);
	assert_int_equal(c.trace.min_stall_ns, 100000000);
	assert_int_equal(c.trace.backend, CONFIG_BACKEND_AUTO);
	assert_int_equal(c.incident.max_time_ns, 60000000000);
	assert_int_equal(c.incident.cooldown_ns, 60000000000);
	assert_string_equal(c.record.spool_dir, "/run/iostall");
	assert_string_equal(c.record.dir, "/var/log/iostall");
	assert_int_equal(c.record.max_age_ns, 90 * 86400ULL * 1000000000);
	assert_true(c.journal.enabled);
	assert_false(c.syslog.enabled);
	assert_false(c.journal.statements);
	assert_false(c.syslog.statements);
}

/* An entry of another section or key that is the same field would undo the first. */
static void test_every_field_is_its_own(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < config_settings_count; i++) {
		for (unsigned int j = 0; j < i; j++) {
			const struct config_setting *a = &config_settings[i];
			const struct config_setting *b = &config_settings[j];

			assert_int_not_equal(a->offset, b->offset);
			assert_false(
				strcmp(a->section, b->section) == 0 && strcmp(a->key, b->key) == 0);
		}
	}
}

static bool is_whole(const struct config_setting *s)
{
	return s->type == CONFIG_TYPE_DURATION || s->type == CONFIG_TYPE_SIZE ||
		s->type == CONFIG_TYPE_RING_SIZE || s->type == CONFIG_TYPE_COUNT;
}

static void check_whole(const struct config_setting *s, uint64_t number, bool right)
{
	char value[64], reason[256], expected[256], before[64], after[64];
	struct text limits = TEXT_ON(expected);

	snprintf(value, sizeof(value), "%" PRIu64 "%s", number,
		s->type == CONFIG_TYPE_DURATION ? "ns" : "");
	format_value(s, before, sizeof(before));
	assert_int_equal(parse_value(s, value, reason), right ? 0 : -EINVAL);
	if (right) {
		assert_true(config_value_number(s, &config) == (double)number);
		return;
	}
	text_reset(&limits);
	text_add(&limits, "is out of range; expected ");
	config_value_describe(s, &limits);
	assert_string_equal(reason, expected);
	format_value(s, after, sizeof(after));
	assert_string_equal(before, after);
}

static void test_limits_of_numbers(void **state)
{
	(void)state;
	config_set_defaults(&config);
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];

		if (!is_whole(s))
			continue;
		assert_true(s->min < s->max);
		check_whole(s, s->min, true);
		check_whole(s, s->max, true);
		check_whole(s, s->max + 1, false);
		check_whole(s, UINT64_MAX, false);
		if (s->min > 0) {
			check_whole(s, s->min - 1, false);
			check_whole(s, 0, false);
		}
	}
}

static void test_limits_of_thresholds(void **state)
{
	char limits[128], value[64], reason[256];

	(void)state;
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];
		struct text t = TEXT_ON(limits);
		double max;
		char *end;

		if (s->type != CONFIG_TYPE_THRESHOLD)
			continue;
		text_reset(&t);
		config_value_describe(s, &t);
		max = strtod(limits + strlen("0 to "), &end);
		/* What an unknown unit would get: add the rule's unit to the table of units. */
		assert_true(max < 1e9);
		assert_string_equal(end + 1, s->unit);
		assert_int_equal(parse_value(s, limits + strlen("0 to "), reason), 0);
		snprintf(value, sizeof(value), "%.3f", max + 0.001);
		assert_int_equal(parse_value(s, value, reason), -EINVAL);
		assert_int_equal(parse_value(s, "0", reason), 0);
		assert_int_equal(parse_value(s, "1e1", reason), -EINVAL);
		assert_int_equal(parse_value(s, "0x1", reason), -EINVAL);
		assert_int_equal(parse_value(s, "1..2", reason), -EINVAL);
		assert_int_equal(parse_value(s, ".", reason), -EINVAL);
		assert_int_equal(parse_value(s, "", reason), -EINVAL);
	}
}

static void test_limits_of_texts(void **state)
{
	char path[5000], reason[256], after[8];

	(void)state;
	config_set_defaults(&config);
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];

		if (s->type != CONFIG_TYPE_PATH && s->type != CONFIG_TYPE_TEXT)
			continue;
		path[0] = s->type == CONFIG_TYPE_PATH ? '/' : 'a';
		assert_int_equal(parse_value(s, "", reason), *s->standard ? -EINVAL : 0);
		if (!*s->standard) {
			format_value(s, after, sizeof(after));
			assert_string_equal(after, "");
		}
		assert_true(s->size > 0 && s->size < sizeof(path));
		path[s->size - 1] = '\0';
		assert_int_equal(parse_value(s, path, reason),
			s->type == CONFIG_TYPE_TEXT && s->check_item && s->check_item(path)
				? -EINVAL
				: 0);
		path[s->size - 1] = 'a';
		path[s->size] = '\0';
		assert_int_equal(parse_value(s, path, reason), -EINVAL);
		assert_non_null(strstr(reason, "expected at most "));
		path[s->size] = 'a';
	}
}

static void test_limits_of_lists(void **state)
{
	const struct config_setting *s = config_find_setting("trace", "process");
	const struct config_setting *cgroup = config_find_setting("trace", "cgroup");
	char item[CONFIG_ITEM_SIZE + 1], items[256] = "", reason[256];

	(void)state;
	assert_non_null(s);
	memset(item, 'c', sizeof(item));
	item[CONFIG_ITEM_SIZE - 1] = '\0';
	assert_int_equal(parse_value(cgroup, item, reason), 0);
	item[CONFIG_ITEM_SIZE - 1] = 'c';
	item[CONFIG_ITEM_SIZE] = '\0';
	assert_int_equal(parse_value(cgroup, item, reason), -EINVAL);
	assert_string_equal(reason, "has an item of 128 bytes; expected at most 127");
	for (unsigned int i = 0; i < CONFIG_LIST_MAX; i++)
		strcat(items, "a, ");
	assert_int_equal(parse_value(s, items, reason), 0);
	assert_int_equal(config.trace.process.count, CONFIG_LIST_MAX);
	strcat(items, "a");
	assert_int_equal(parse_value(s, items, reason), -EINVAL);
	assert_string_equal(reason, "has too many items; expected at most 32");
	/* Refused: the list is what it was. */
	assert_int_equal(config.trace.process.count, CONFIG_LIST_MAX);
	/* As many as the BPF programs look at, which is less. */
	items[3 * EVENT_FILTER_CGROUPS_MAX] = '\0';
	assert_int_equal(parse_value(cgroup, items, reason), 0);
	strcat(items, "a");
	assert_int_equal(parse_value(cgroup, items, reason), -EINVAL);
	assert_string_equal(reason, "has too many items; expected at most 8");
}

static char *print(void (*printer)(FILE *f), size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	assert_non_null(f);
	printer(f);
	assert_int_equal(fclose(f), 0);
	return text;
}

/* "#key = value" stands for a setting, "#[section]" for a section, "# words" for a comment. */
static unsigned int uncomment(char *text)
{
	unsigned int count = 0;

	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line[0] != '#' || (!islower((unsigned char)line[1]) && line[1] != '['))
			continue;
		count += line[1] != '[';
		line[0] = ' ';
	}
	return count;
}

static void test_printed_file(void **state)
{
	_cleanup_free_ char *text = NULL;
	char error[CONFIG_ERROR_SIZE];
	struct config printed, defaults;
	size_t len;

	(void)state;
	text = print(config_print_file, &len);
	config_set_defaults(&defaults);
	config_set_defaults(&printed);
	assert_int_equal(config_parse_text(&printed, "printed", text, len, error), 0);
	assert_memory_equal(&printed, &defaults, sizeof(printed));

	assert_int_equal(uncomment(text), config_settings_count);
	/* From nothing, so that a setting that is not in the file would show. */
	memset(&printed, 0, sizeof(printed));
	assert_int_equal(config_parse_text(&printed, "printed", text, len, error), 0);
	/* The one target and the one hook that are there for an example. */
	assert_int_equal(printed.sql.targets_count, 1);
	assert_string_equal(printed.sql.targets[0].section, "sql.main");
	printed.sql.targets_count = 0;
	memset(printed.sql.targets[0].section, 0, CONFIG_SECTION_SIZE);
	assert_int_equal(printed.hooks_count, 1);
	assert_string_equal(printed.hooks[0].section, "hook.mail");
	printed.hooks_count = 0;
	memset(printed.hooks[0].section, 0, CONFIG_SECTION_SIZE);
	assert_memory_equal(&printed, &defaults, sizeof(printed));
	for (const char *line = text; line; line = strchr(line + 1, '\n'))
		assert_true(strcspn(line + 1, "\n") <= 100 || strstr(line, "process = ") != NULL);
}

static void test_printed_lists(void **state)
{
	_cleanup_free_ char *man = NULL, *keys = NULL;
	size_t len;

	(void)state;
	man = print(config_print_man, &len);
	keys = print(config_print_keys, &len);
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];
		char name[128];

		snprintf(name, sizeof(name), "%s.%s\t%s\n", s->section, s->key, s->help);
		assert_non_null(strstr(keys, name));
		snprintf(name, sizeof(name), ".It Ic %s No = Ar %s\n", s->key,
			config_type_name(s->type));
		assert_non_null(strstr(man, name));
	}
	for (unsigned int i = 0; i < config_sections_count; i++)
		assert_non_null(strstr(man, config_sections[i].name));
	/* A line that begins like a request is one of those that were meant. */
	for (const char *line = man; *line; line = strchr(line, '\n') + 1)
		if (*line == '.')
			assert_true(strncmp(line, ".It ", 4) == 0 ||
				strncmp(line, ".Ss ", 4) == 0 || strncmp(line, ".Bl ", 4) == 0 ||
				strncmp(line, ".El\n", 4) == 0 || strncmp(line, ".Pp\n", 4) == 0 ||
				strncmp(line, ".Ql ", 4) == 0);
}

/* xorshift, so that a failure can be had again. */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void random_value(const struct config_setting *s, uint64_t *seed, char *value, size_t size)
{
	static const char alphabet[] = "0123456789.,: %nsmhKMG/=-+abyeo#;\"\\\t\x01\xff";
	size_t len = next_random(seed) % 40;

	if (is_whole(s) && next_random(seed) % 2) {
		uint64_t number = s->min + next_random(seed) % (s->max - s->min + 1);

		snprintf(value, size, "%" PRIu64 "%s", number,
			s->type == CONFIG_TYPE_DURATION ? "ns" : "");
		return;
	}
	if (s->type == CONFIG_TYPE_THRESHOLD && next_random(seed) % 2) {
		snprintf(value, size, "%u.%03u", (unsigned int)(next_random(seed) % 120),
			(unsigned int)(next_random(seed) % 1000));
		return;
	}
	for (size_t i = 0; i < len; i++)
		value[i] = alphabet[next_random(seed) % (sizeof(alphabet) - 1)];
	value[len] = '\0';
}

static void test_random_values(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;
	unsigned int taken = 0;

	(void)state;
	config_set_defaults(&config);
	for (unsigned int round = 0; round < RANDOM_ROUNDS; round++) {
		const struct config_setting *s =
			&config_settings[next_random(&seed) % config_settings_count];
		char value[64], reason[256], before[2048], after[2048], again[2048];

		random_value(s, &seed, value, sizeof(value));
		format_value(s, before, sizeof(before));
		if (parse_value(s, value, reason) < 0) {
			format_value(s, after, sizeof(after));
			assert_string_equal(before, after);
			assert_true(strstr(reason, "expected ") != NULL);
			continue;
		}
		taken++;
		format_value(s, after, sizeof(after));
		assert_int_equal(parse_value(s, after, reason), 0);
		format_value(s, again, sizeof(again));
		assert_string_equal(after, again);
	}
	assert_true(taken > RANDOM_ROUNDS / 10);
}

static void test_nearest(void **state)
{
	static const struct {
		const char *name, *candidate;
		bool near;
	} cases[] = {
		{ "interval", "interval", true },
		{ "intervall", "interval", true },
		{ "itnerval", "interval", true },
		{ "int", "interval", true },
		{ "hodl", "hold", true },
		{ "st", "set", true },
		{ "x", "set", false },
		{ "", "set", false },
		{ "backend", "inflight_max", false },
		{ "history", "interval", false },
	};
	char name[300];
	struct config_nearest longest = { .name = name };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config_nearest n = { .name = cases[i].name };

		config_nearest_try(&n, cases[i].candidate);
		assert_int_equal(n.found != NULL, cases[i].near);
	}
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	config_nearest_try(&longest, "aaaa");
	assert_null(longest.found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_default),
		cmocka_unit_test(test_stated_defaults),
		cmocka_unit_test(test_every_field_is_its_own),
		cmocka_unit_test(test_limits_of_numbers),
		cmocka_unit_test(test_limits_of_thresholds),
		cmocka_unit_test(test_limits_of_texts),
		cmocka_unit_test(test_limits_of_lists),
		cmocka_unit_test(test_printed_file),
		cmocka_unit_test(test_printed_lists),
		cmocka_unit_test(test_random_values),
		cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
