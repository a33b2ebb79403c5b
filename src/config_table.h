/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of settings and what is done with one entry: find, parse, format.
 * Used by config*.c, the command line's suggestions and the tests of both; no other room.
 * Never reads a file, never keeps state.
 */
#ifndef IOSTALL_CONFIG_TABLE_H
#define IOSTALL_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "util/text.h"

#define CONFIG_SETTINGS_MAX 192
#define CONFIG_FULL_NAME_SIZE 64

enum config_type {
	CONFIG_TYPE_BOOL,
	CONFIG_TYPE_DURATION,  /* uint64_t nanoseconds */
	CONFIG_TYPE_SIZE,      /* uint64_t bytes */
	CONFIG_TYPE_RING_SIZE, /* the same, a power of two */
	CONFIG_TYPE_COUNT,     /* uint64_t */
	CONFIG_TYPE_THRESHOLD, /* double in the rule's unit; limits come from the unit */
	CONFIG_TYPE_CHOICE,    /* an enum whose values count the choices */
	CONFIG_TYPE_LIST,      /* struct config_list */
	CONFIG_TYPE_PATH,      /* char array of `size` bytes */
	CONFIG_TYPE_TEXT,      /* the same, any text */
};

struct config_setting {
	const char *section;
	const char *key;
	enum config_type type;
	size_t offset;
	size_t size;
	uint64_t min;
	uint64_t max;
	const char *unit;	    /* of a threshold */
	const char *const *choices; /* ends with NULL */
	/* Why an item cannot be in this list, or a text be it; stands behind it in quotes. NULL: it can. */
	const char *(*check_item)(const char *item);
	const char *standard; /* the default, as it stands in the file */
	const char *example;  /* for errors, where the default is none */
	const char *help;
};

/* "NAME" in a section's name stands for what the user chooses. */
#define CONFIG_SQL_ANY CONFIG_SQL_SECTION "NAME"

struct config_section {
	const char *name;
	const char *group; /* sections that share their keys: "rule", "probe"; otherwise NULL */
	const char *help;
};

extern const struct config_setting config_settings[];
extern const unsigned int config_settings_count;
extern const struct config_section config_sections[];
extern const unsigned int config_sections_count;

/* Whether a section of the table is, or stands for, the one of that name. */
bool config_section_is(const char *of_table, const char *name);

/* NULL when there is none. */
const struct config_section *config_find_section(const char *name);
const struct config_setting *config_find_setting(const char *section, const char *key);

/* What a group of sections is, in one sentence; "" for a name that is no group. */
const char *config_group_help(const char *group);

/*
 * The target of a section "sql.NAME", made with its defaults if need be: its index, -EINVAL when the
 * name is none, -ENOSPC when there are CONFIG_SQL_TARGETS_MAX others.
 */
int config_sql_target_index(struct config *c, const char *section);

/* The setting of the table for the target of that index: its field is another one. */
struct config_setting config_sql_setting(const struct config_setting *s, unsigned int index);

/* 0, or -EINVAL with ret_reason to stand behind the quoted value; the field is then untouched. */
int config_value_parse(const struct config_setting *s, const char *value, struct config *c,
	struct text *ret_reason);

/* The value as a file would have it. */
void config_value_format(const struct config_setting *s, const struct config *c, struct text *t);

/* For comparing two settings of the same unit; 0 for types that are no number. */
double config_value_number(const struct config_setting *s, const struct config *c);

/* "100ms to 60s", "yes or no", "one of auto, fentry ...". */
void config_value_describe(const struct config_setting *s, struct text *t);

/* "duration", "size" ...: what stands for the value in the manual page. */
const char *config_type_name(enum config_type type);

/* At most max bytes of s for a person's eyes, "..." behind it when that is not all. */
void config_add_quoted(struct text *t, const char *s, size_t max);

/* The setting as a whole holds together: 0, or -EINVAL with the two settings that do not. */
struct config_conflict {
	const struct config_setting *low; /* must not be over high */
	const struct config_setting *high;
	bool same; /* the two must differ instead */
};

int config_check_relations(const struct config *c, struct config_conflict *ret_conflict);

/* 0, or -EINVAL with the target and two of its keys that do not go together, and why. */
struct config_sql_conflict {
	unsigned int target;
	const char *key;
	const char *other;
	const char *reason; /* stands between them */
};

int config_check_sql(const struct config *c, struct config_sql_conflict *ret_conflict);

/*
 * The candidate nearest to a mistyped name: start with { .name = ... }, try all, read `found` (NULL
 * when none is near).
 */
struct config_nearest {
	const char *name;
	const char *found;
	unsigned int distance;
};

void config_nearest_try(struct config_nearest *n, const char *candidate);

#endif
