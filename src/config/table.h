/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of settings, and how to find, parse and format one entry.
 * Used by src/config, and by src/cli/options.c to suggest names.
 * Never reads a file, never keeps state.
 */
#ifndef IOSTALL_CONFIG_TABLE_H
#define IOSTALL_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "util/text.h"

#define CONFIG_SETTINGS_MAX 256
#define CONFIG_FULL_NAME_SIZE 64

enum config_type {
	CONFIG_TYPE_BOOL,
	CONFIG_TYPE_DURATION,  /* uint64_t nanoseconds */
	CONFIG_TYPE_SIZE,      /* uint64_t bytes */
	CONFIG_TYPE_RING_SIZE, /* the same, but a power of two */
	CONFIG_TYPE_COUNT,     /* uint64_t */
	CONFIG_TYPE_THRESHOLD, /* double in the rule's unit, which has its own limits */
	CONFIG_TYPE_CHOICE,    /* an enum whose values are indices of the choices */
	CONFIG_TYPE_LIST,      /* struct config_list */
	CONFIG_TYPE_PATH,      /* char array of `size` bytes */
	CONFIG_TYPE_TEXT,      /* the same for any text */
};

struct config_setting {
	const char *section;
	const char *key;
	enum config_type type;
	size_t offset;
	size_t size;
	uint64_t min;
	uint64_t max;		    /* of a list: items, if not CONFIG_LIST_MAX */
	const char *unit;	    /* of a threshold */
	const char *const *choices; /* ends with NULL */
	/*
	 * Says what is wrong with an item of a list or with a text; it follows the quoted value.
	 * NULL: nothing.
	 */
	const char *(*check_item)(const char *item);
	const char *standard; /* the default, as a file would have it */
	const char *example;  /* for error messages, if the default is no good example */
	const char *help;
};

/* "NAME" in the name of a section is a placeholder for what the user chooses. */
#define CONFIG_SQL_ANY CONFIG_SQL_SECTION "NAME"
#define CONFIG_HOOK_ANY CONFIG_HOOK_SECTION "NAME"

/* Sections whose names the user chooses. Their settings are those of the first in the table. */
struct config_named {
	const char *any;     /* "sql.NAME" */
	const char *example; /* "sql.main" */
	const char *what;    /* "target" */
	unsigned int max;
	size_t count_offset; /* of an unsigned int */
	size_t offset;	     /* of the first, which begins with the name of its section */
	size_t size;	     /* of each */
};

#define CONFIG_NAMED_KINDS 2
extern const struct config_named config_named[CONFIG_NAMED_KINDS];
/* Of all kinds. */
#define CONFIG_NAMED_MAX (CONFIG_SQL_TARGETS_MAX + CONFIG_HOOKS_MAX)

struct config_section {
	const char *name;
	const char *group; /* "rule", "probe", "sql": sections with the same keys; else NULL */
	const char *help;
};

extern const struct config_setting config_settings[];
extern const unsigned int config_settings_count;
extern const struct config_section config_sections[];
extern const unsigned int config_sections_count;

/* Whether a section of the table has that name or is the placeholder for it. */
bool config_section_is(const char *of_table, const char *name);

/* NULL when there is none. */
const struct config_section *config_find_section(const char *name);
const struct config_setting *config_find_setting(const char *section, const char *key);

/* Explains a group of sections; "" for a name that is not a group. */
const char *config_group_help(const char *group);

bool config_is_placeholder(const char *section);
/* The kind whose names begin as that one does; NULL: none. */
const struct config_named *config_find_named(const char *section);
unsigned int config_named_count(const struct config_named *named, const struct config *c);
/* The name of the section of that index. */
const char *config_named_section(const struct config_named *named, const struct config *c,
	unsigned int index);
/* -1: there is none with that name. */
int config_named_find(const struct config_named *named, const struct config *c,
	const char *section);
/*
 * The same, and one that does not exist is added with its defaults. -EINVAL: not such a name.
 * -ENOSPC: there are `max` others.
 */
int config_named_get(const struct config_named *named, struct config *c, const char *section);
/* A setting of the table with the offset of its field in the section of that index. */
struct config_setting config_named_setting(const struct config_named *named,
	const struct config_setting *s, unsigned int index);

/* 0, or -EINVAL with ret_reason, which follows the quoted value; the field is then untouched. */
int config_value_parse(const struct config_setting *s, const char *value, struct config *c,
	struct text *ret_reason);

/* Writes the value as a file would have it. */
void config_value_format(const struct config_setting *s, const struct config *c, struct text *t);

/* For comparing two settings with the same unit; 0 for types that are not numbers. */
double config_value_number(const struct config_setting *s, const struct config *c);

/* "100ms to 60s", "yes or no", "one of auto, fentry ...". */
void config_value_describe(const struct config_setting *s, struct text *t);

/* "duration", "size" ...: the placeholder for the value in the manual page. */
const char *config_type_name(enum config_type type);

/* Adds at most max bytes of s in printable form, followed by "..." if that is not all. */
void config_add_quoted(struct text *t, const char *s, size_t max);

/* Two settings that contradict each other. */
struct config_conflict {
	const struct config_setting *low; /* must not be above high */
	const struct config_setting *high;
	bool same; /* the two are the same, but must differ */
};

int config_check_relations(const struct config *c, struct config_conflict *ret_conflict);

/* Two keys of a section that cannot be combined, and why. */
struct config_key_conflict {
	const char *section;
	const char *key;
	const char *other;
	const char *reason; /* follows the name of the other key */
};

int config_check_keys(const struct config *c, struct config_key_conflict *ret_conflict);

/*
 * Finds the candidate most similar to a mistyped name: start with { .name = ... }, try all
 * candidates, read `found` (NULL when none is similar).
 */
struct config_nearest {
	const char *name;
	const char *found;
	unsigned int distance;
};

void config_nearest_try(struct config_nearest *n, const char *candidate);

#endif
