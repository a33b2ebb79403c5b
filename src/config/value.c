/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/parse.h"

struct limits {
	double min;
	double max;
};

struct unit_scale {
	const char *name;
	uint64_t factor;
};

/* Thresholds by their unit in rules.def. */
static const struct {
	const char *unit;
	struct limits limits;
	double ns; /* one unit of a time, otherwise 0 */
} threshold_units[] = {
	/* Rules fire above it, and none of these values is above 100. */
	{ "%", { 0, 99.9 }, 0 },
	{ "cpus", { 0, 8192 }, 0 }, /* NR_CPUS of the largest configurations */
	{ "ms", { 0, 3600000 }, 1e6 }, { "s", { 0, 3600 }, 1e9 },
	{ "threads", { 0, 4194304 }, 0 }, /* PID_MAX_LIMIT */
	{ "processes", { 0, 4194304 }, 0 }, { "lines", { 0, 1000000 }, 0 },
	{ "statements", { 0, 100000 }, 0 }, /* max_connections of MariaDB and MySQL */
};

static void *field_of(const struct config_setting *s, struct config *c)
{
	return (char *)c + s->offset;
}

static const void *const_field_of(const struct config_setting *s, const struct config *c)
{
	return (const char *)c + s->offset;
}

void config_add_quoted(struct text *t, const char *s, size_t max)
{
	char buf[128];
	struct text quoted = TEXT_ON(buf);

	if (max < sizeof(buf))
		quoted.size = max + 1;
	text_reset(&quoted);
	text_add_printable(&quoted, s, strlen(s));
	text_add(t, quoted.buf);
	if (quoted.overflow)
		text_add(t, "...");
}

/* Writes the value in the largest unit that leaves a whole number. */
static void add_scaled(struct text *t, uint64_t value, const struct unit_scale *units, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (value == 0 || value % units[i].factor != 0)
			continue;
		text_addf(t, "%" PRIu64 "%s", value / units[i].factor, units[i].name);
		return;
	}
	text_addf(t, "%" PRIu64, value);
}

static void add_duration(struct text *t, uint64_t ns)
{
	static const struct unit_scale units[] = {
		{ "h", 3600 * NSEC_PER_SEC },
		{ "s", NSEC_PER_SEC },
		{ "ms", NSEC_PER_MSEC },
		{ "us", NSEC_PER_USEC },
		{ "ns", 1 },
	};

	add_scaled(t, ns, units, ARRAY_SIZE(units));
}

static void add_size(struct text *t, uint64_t bytes)
{
	static const struct unit_scale units[] = {
		{ "G", 1ULL << 30 },
		{ "M", 1ULL << 20 },
		{ "K", 1ULL << 10 },
	};

	add_scaled(t, bytes, units, ARRAY_SIZE(units));
}

static void add_number(const struct config_setting *s, struct text *t, uint64_t value)
{
	if (s->type == CONFIG_TYPE_DURATION)
		add_duration(t, value);
	else if (s->type == CONFIG_TYPE_COUNT)
		text_addf(t, "%" PRIu64, value);
	else
		add_size(t, value);
}

static unsigned int list_max(const struct config_setting *s)
{
	return s->max ? (unsigned int)s->max : CONFIG_LIST_MAX;
}

static void add_choices(const struct config_setting *s, struct text *t)
{
	for (const char *const *choice = s->choices; *choice; choice++)
		text_addf(t, "%s%s", choice == s->choices ? "" : ", ", *choice);
}

static struct limits threshold_limits(const struct config_setting *s)
{
	struct limits any = { 0, 1e9 };

	for (size_t i = 0; i < ARRAY_SIZE(threshold_units); i++)
		if (strcmp(threshold_units[i].unit, s->unit) == 0)
			return threshold_units[i].limits;
	return any;
}

static double threshold_unit_ns(const char *unit)
{
	for (size_t i = 0; i < ARRAY_SIZE(threshold_units); i++)
		if (strcmp(threshold_units[i].unit, unit) == 0)
			return threshold_units[i].ns;
	return 0;
}

void config_value_describe(const struct config_setting *s, struct text *t)
{
	struct limits limits;

	switch (s->type) {
	case CONFIG_TYPE_BOOL:
		text_add(t, "yes or no");
		break;
	case CONFIG_TYPE_RING_SIZE:
		text_add(t, "a power of two, ");
		/* fall through */
	case CONFIG_TYPE_DURATION:
	case CONFIG_TYPE_SIZE:
	case CONFIG_TYPE_COUNT:
		add_number(s, t, s->min);
		text_add(t, " to ");
		add_number(s, t, s->max);
		break;
	case CONFIG_TYPE_THRESHOLD:
		limits = threshold_limits(s);
		text_addf(t, "%.0f to %.10g %s", limits.min, limits.max, s->unit);
		break;
	case CONFIG_TYPE_CHOICE:
		text_add(t, "one of ");
		add_choices(s, t);
		break;
	case CONFIG_TYPE_LIST:
		text_addf(t, "at most %u items, separated by commas or blanks", list_max(s));
		break;
	case CONFIG_TYPE_PATH:
		text_addf(t, "an absolute path of at most %zu bytes", s->size - 1);
		break;
	case CONFIG_TYPE_TEXT:
		text_addf(t, "at most %zu bytes", s->size - 1);
		break;
	}
}

const char *config_type_name(enum config_type type)
{
	static const char *const names[] = {
		[CONFIG_TYPE_BOOL] = "yes|no",
		[CONFIG_TYPE_DURATION] = "duration",
		[CONFIG_TYPE_SIZE] = "size",
		[CONFIG_TYPE_RING_SIZE] = "size",
		[CONFIG_TYPE_COUNT] = "number",
		[CONFIG_TYPE_THRESHOLD] = "threshold",
		[CONFIG_TYPE_CHOICE] = "choice",
		[CONFIG_TYPE_LIST] = "list",
		[CONFIG_TYPE_PATH] = "path",
		[CONFIG_TYPE_TEXT] = "text",
	};

	return names[type];
}

static const char *example_of(const struct config_setting *s)
{
	return s->example ? s->example : s->standard;
}

static int fail_kind(const struct config_setting *s, struct text *ret_reason, const char *kind)
{
	text_addf(ret_reason, "is %s; expected e.g. %s", kind, example_of(s));
	return -EINVAL;
}

static int fail_range(const struct config_setting *s, struct text *ret_reason)
{
	text_add(ret_reason, "is out of range; expected ");
	config_value_describe(s, ret_reason);
	return -EINVAL;
}

static int parse_bool_value(const struct config_setting *s, const char *value, void *field,
	struct text *ret_reason)
{
	bool b;

	if (parse_bool(value, &b) < 0)
		return fail_kind(s, ret_reason, "neither yes nor no");
	*(bool *)field = b;
	return 0;
}

static int parse_whole_value(const struct config_setting *s, const char *value, void *field,
	struct text *ret_reason)
{
	const char *kind;
	uint64_t number;
	int r;

	if (s->type == CONFIG_TYPE_DURATION) {
		r = parse_duration_ns(value, &number);
		kind = "not a number with a unit of time (ns, us, ms, s, m, h)";
	} else if (s->type == CONFIG_TYPE_COUNT) {
		r = parse_unsigned(value, &number);
		kind = "not a whole number";
	} else {
		r = parse_size_bytes(value, &number);
		kind = "not a number of bytes (K, M or G may follow)";
	}
	if (r == -EINVAL)
		return fail_kind(s, ret_reason, kind);
	if (r < 0 || number < s->min || number > s->max)
		return fail_range(s, ret_reason);
	if (s->type == CONFIG_TYPE_RING_SIZE && (number & (number - 1)) != 0)
		return fail_kind(s, ret_reason, "not a power of two");
	*(uint64_t *)field = number;
	return 0;
}

/* A number, alone or with the rule's unit. Where that is a unit of time, others are taken, too. */
static int threshold_from(const char *value, const char *unit, double *ret_value)
{
	size_t digits = strspn(value, "0123456789.");
	double unit_ns = threshold_unit_ns(unit);
	const char *suffix = value + digits;
	char number[32];
	uint64_t ns;
	int r;

	if (digits == 0)
		return -EINVAL;
	while (*suffix == ' ')
		suffix++;
	if (*suffix == '\0' || strcmp(suffix, unit) == 0) {
		if (digits >= sizeof(number))
			return -ERANGE;
		memcpy(number, value, digits);
		number[digits] = '\0';
		return parse_real(number, ret_value);
	}
	if (unit_ns == 0)
		return -EINVAL;
	r = parse_duration_ns(value, &ns);
	if (r < 0)
		return r;
	*ret_value = (double)ns / unit_ns;
	return 0;
}

static int parse_threshold_value(const struct config_setting *s, const char *value, void *field,
	struct text *ret_reason)
{
	struct limits limits = threshold_limits(s);
	double number;
	int r = threshold_from(value, s->unit, &number);

	if (r == -EINVAL) {
		text_addf(ret_reason, "is not a number of %s; expected e.g. %s or %s %s", s->unit,
			s->standard, s->standard, s->unit);
		return r;
	}
	if (r < 0 || number < limits.min || number > limits.max)
		return fail_range(s, ret_reason);
	*(double *)field = number;
	return 0;
}

static int parse_choice_value(const struct config_setting *s, const char *value, void *field,
	struct text *ret_reason)
{
	for (unsigned int i = 0; s->choices[i]; i++) {
		if (strcmp(s->choices[i], value) == 0) {
			*(unsigned int *)field = i;
			return 0;
		}
	}
	text_add(ret_reason, "is not one of ");
	add_choices(s, ret_reason);
	text_addf(ret_reason, "; expected e.g. %s", example_of(s));
	return -EINVAL;
}

/* whole_len is the length of the whole list: an item as long as that need not be quoted again. */
static int add_list_item(const struct config_setting *s, const char *item, size_t len,
	size_t whole_len, struct config_list *list, struct text *ret_reason)
{
	const char *problem = NULL;
	char *slot;

	if (list->count == list_max(s)) {
		text_addf(ret_reason, "has too many items; expected at most %u", list_max(s));
		return -EINVAL;
	}
	slot = list->items[list->count];
	if (len >= CONFIG_ITEM_SIZE) {
		text_addf(ret_reason, "has an item of %zu bytes; expected at most %d", len,
			CONFIG_ITEM_SIZE - 1);
		return -EINVAL;
	}
	memcpy(slot, item, len);
	slot[len] = '\0';
	if (slot[0] == '"' || slot[0] == '\'')
		problem = "is in quotes, which are part of the value";
	else if (s->check_item)
		problem = s->check_item(slot);
	if (problem) {
		if (len < whole_len) {
			text_add(ret_reason, "cannot be taken: \"");
			config_add_quoted(ret_reason, slot, 40);
			text_add(ret_reason, "\" ");
		}
		text_addf(ret_reason, "%s; expected e.g. %s", problem, example_of(s));
		return -EINVAL;
	}
	list->count++;
	return 0;
}

static int parse_list_value(const struct config_setting *s, const char *value, void *field,
	struct text *ret_reason)
{
	static const char separators[] = ", \t";
	size_t whole_len = strlen(value);
	struct config_list list;
	int r;

	memset(&list, 0, sizeof(list));
	for (;;) {
		size_t len;

		value += strspn(value, separators);
		len = strcspn(value, separators);
		if (len == 0)
			break;
		r = add_list_item(s, value, len, whole_len, &list, ret_reason);
		if (r < 0)
			return r;
		value += len;
	}
	memcpy(field, &list, sizeof(list));
	return 0;
}

static int parse_path_value(const struct config_setting *s, const char *value, void *field,
	struct text *ret_reason)
{
	size_t len = strlen(value);

	if (value[0] == '"' || value[0] == '\'')
		return fail_kind(s, ret_reason, "in quotes, which are part of the value");
	/* A path may be empty if its default is. */
	if (value[0] != '/' && (len > 0 || *s->standard))
		return fail_kind(s, ret_reason, "not an absolute path");
	if (len >= s->size) {
		text_addf(ret_reason, "is a path of %zu bytes; expected at most %zu", len,
			s->size - 1);
		return -EINVAL;
	}
	memset(field, 0, s->size);
	memcpy(field, value, len);
	return 0;
}

static int parse_text_value(const struct config_setting *s, const char *value, void *field,
	struct text *ret_reason)
{
	const char *problem = *value && s->check_item ? s->check_item(value) : NULL;
	size_t len = strlen(value);

	if (len >= s->size) {
		text_addf(ret_reason, "has %zu bytes; expected at most %zu", len, s->size - 1);
		return -EINVAL;
	}
	if (problem)
		return fail_kind(s, ret_reason, problem + strlen("is "));
	if (len == 0 && *s->standard)
		return fail_kind(s, ret_reason, "empty");
	memset(field, 0, s->size);
	memcpy(field, value, len);
	return 0;
}

static bool has_control_character(const char *s)
{
	for (const unsigned char *p = (const unsigned char *)s; *p; p++)
		if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
			return true;
	return false;
}

int config_value_parse(const struct config_setting *s, const char *value, struct config *c,
	struct text *ret_reason)
{
	static int (*const parsers[])(const struct config_setting *, const char *, void *,
		struct text *) = {
		[CONFIG_TYPE_BOOL] = parse_bool_value,
		[CONFIG_TYPE_DURATION] = parse_whole_value,
		[CONFIG_TYPE_SIZE] = parse_whole_value,
		[CONFIG_TYPE_RING_SIZE] = parse_whole_value,
		[CONFIG_TYPE_COUNT] = parse_whole_value,
		[CONFIG_TYPE_THRESHOLD] = parse_threshold_value,
		[CONFIG_TYPE_CHOICE] = parse_choice_value,
		[CONFIG_TYPE_LIST] = parse_list_value,
		[CONFIG_TYPE_PATH] = parse_path_value,
		[CONFIG_TYPE_TEXT] = parse_text_value,
	};

	if (has_control_character(value))
		return fail_kind(s, ret_reason, "not plain text: it has a control character");
	return parsers[s->type](s, value, field_of(s, c), ret_reason);
}

/* Plain decimal, as the parser expects it: %g may write an exponent. */
static void format_threshold(double value, struct text *t)
{
	char digits[64];
	size_t len;

	snprintf(digits, sizeof(digits), "%.6f", value);
	len = strlen(digits);
	while (digits[len - 1] == '0')
		len--;
	if (digits[len - 1] == '.')
		len--;
	text_add_bytes(t, digits, len);
}

static void format_list(const struct config_list *list, struct text *t)
{
	for (unsigned int i = 0; i < list->count; i++)
		text_addf(t, "%s%s", i ? " " : "", list->items[i]);
}

void config_value_format(const struct config_setting *s, const struct config *c, struct text *t)
{
	const void *field = const_field_of(s, c);

	switch (s->type) {
	case CONFIG_TYPE_BOOL:
		text_add(t, *(const bool *)field ? "yes" : "no");
		break;
	case CONFIG_TYPE_DURATION:
	case CONFIG_TYPE_SIZE:
	case CONFIG_TYPE_RING_SIZE:
	case CONFIG_TYPE_COUNT:
		add_number(s, t, *(const uint64_t *)field);
		break;
	case CONFIG_TYPE_THRESHOLD:
		format_threshold(*(const double *)field, t);
		break;
	case CONFIG_TYPE_CHOICE:
		text_add(t, s->choices[*(const unsigned int *)field]);
		break;
	case CONFIG_TYPE_LIST:
		format_list(field, t);
		break;
	case CONFIG_TYPE_PATH:
	case CONFIG_TYPE_TEXT:
		text_add(t, field);
		break;
	}
}

double config_value_number(const struct config_setting *s, const struct config *c)
{
	const void *field = const_field_of(s, c);

	switch (s->type) {
	case CONFIG_TYPE_DURATION:
	case CONFIG_TYPE_SIZE:
	case CONFIG_TYPE_RING_SIZE:
	case CONFIG_TYPE_COUNT:
		return (double)*(const uint64_t *)field;
	case CONFIG_TYPE_THRESHOLD:
		return *(const double *)field;
	default:
		return 0;
	}
}
