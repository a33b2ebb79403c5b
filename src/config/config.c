/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf */
#endif

#include "config/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/dir.h"
#include "config/table.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"

/* Room for the longest sensible line: a full list, or a path of PATH_MAX. */
#define LINE_SIZE 8192
/* The generated file with every default has 10 KB. */
#define FILE_SIZE_MAX (256 * 1024)

#define QUOTED_VALUE_MAX 60
#define QUOTED_NAME_MAX 100

/* Where a value was written. In line 0, the command line, name is the whole argument. */
struct place {
	const char *name; /* NULL: the value is the default */
	unsigned int line;
	unsigned int order; /* number of the assignment, to know the later of two */
};

struct loader {
	struct config *config;
	struct text error;
	struct place places[CONFIG_SETTINGS_MAX];
	struct place named_places[CONFIG_NAMED_MAX][CONFIG_SETTINGS_MAX];
	unsigned int assignments;
	char line[LINE_SIZE];
};

static void loader_setup(struct loader *l, struct config *c, char *error)
{
	memset(l, 0, sizeof(*l));
	l->config = c;
	l->error = (struct text){ .buf = error, .size = CONFIG_ERROR_SIZE };
	text_reset(&l->error);
}

/* Long names are cut at the beginning, since their end says more. */
static void add_name(struct text *t, const char *name)
{
	size_t len = strlen(name);

	if (len > QUOTED_NAME_MAX) {
		text_add(t, "...");
		name += len - QUOTED_NAME_MAX;
	}
	config_add_quoted(t, name, QUOTED_NAME_MAX);
}

static void begin_error(struct loader *l, const struct place *at)
{
	text_reset(&l->error);
	if (at->line == 0)
		text_add(&l->error, "--set ");
	add_name(&l->error, at->name);
	if (at->line > 0)
		text_addf(&l->error, ":%u", at->line);
	text_add(&l->error, ": ");
}

static void add_quoted_value(struct text *t, const char *value)
{
	text_add(t, "\"");
	config_add_quoted(t, value, QUOTED_VALUE_MAX);
	text_add(t, "\" ");
}

/* "rule" for "rule.anything"; NULL when the name does not begin with that of a group. */
static const char *find_group(const char *section)
{
	for (unsigned int i = 0; i < config_sections_count; i++) {
		const char *group = config_sections[i].group;

		if (group && strncmp(group, section, strlen(group)) == 0 &&
			section[strlen(group)] == '.')
			return group;
	}
	return NULL;
}

/* Adds the members of the group that was meant, or else all sections and groups. */
static void add_section_names(struct text *t, const char *section)
{
	const char *meant = find_group(section), *last_group = "", *comma = "";

	for (unsigned int i = 0; i < config_sections_count; i++) {
		const struct config_section *s = &config_sections[i];
		const char *group = s->group ? s->group : "";

		if (meant ? strcmp(group, meant) != 0 : *group && strcmp(group, last_group) == 0)
			continue;
		last_group = group;
		if (*group && !meant)
			text_addf(t, "%s[%s.NAME]", comma, group);
		else
			text_addf(t, "%s[%s]", comma, s->name);
		comma = ", ";
	}
}

static int fail_section(struct loader *l, const struct place *at, const char *section)
{
	const struct config_named *named = config_find_named(section);
	struct config_nearest nearest = { .name = section };

	for (unsigned int i = 0; i < config_sections_count; i++)
		config_nearest_try(&nearest, config_sections[i].name);
	begin_error(l, at);
	text_add(&l->error, "[");
	config_add_quoted(&l->error, section, QUOTED_VALUE_MAX);
	text_add(&l->error, "] is not a known section; expected ");
	if (named)
		text_addf(&l->error, "e.g. [%s], at most 31 of a-z, 0-9, _ and -", named->example);
	else if (nearest.found)
		text_addf(&l->error, "e.g. [%s]", nearest.found);
	else
		add_section_names(&l->error, section);
	return -EINVAL;
}

static void add_key_names(struct text *t, const char *section)
{
	const char *comma = "";

	for (unsigned int i = 0; i < config_settings_count; i++) {
		if (!config_section_is(config_settings[i].section, section))
			continue;
		text_addf(t, "%s%s", comma, config_settings[i].key);
		comma = ", ";
	}
}

static int fail_key(struct loader *l, const struct place *at, const char *section, const char *key)
{
	struct config_nearest nearest = { .name = key };
	const char *elsewhere = NULL;

	for (unsigned int i = 0; i < config_settings_count; i++) {
		if (config_section_is(config_settings[i].section, section))
			config_nearest_try(&nearest, config_settings[i].key);
		else if (!elsewhere && strcmp(config_settings[i].key, key) == 0)
			elsewhere = config_settings[i].section;
	}
	begin_error(l, at);
	text_addf(&l->error, "%s.", section);
	config_add_quoted(&l->error, key, QUOTED_VALUE_MAX);
	text_add(&l->error, " is not a known key; expected ");
	if (nearest.found)
		text_addf(&l->error, "e.g. %s.%s", section, nearest.found);
	else if (elsewhere)
		text_addf(&l->error, "e.g. %s.%s", elsewhere, key);
	else
		add_key_names(&l->error, section);
	return -EINVAL;
}

/* A section adds what it names, even when it is empty. -EINVAL: it is none of these. */
static int get_named(struct loader *l, const struct place *at, const char *section)
{
	const struct config_named *named = config_find_named(section);
	int index = named ? config_named_get(named, l->config, section) : -EINVAL;

	if (index != -ENOSPC)
		return index;
	begin_error(l, at);
	text_addf(&l->error, "[%s] is one %s too many; expected at most %u", section, named->what,
		named->max);
	return index;
}

/* Where the setting of the section was written. */
static struct place *place_of(struct loader *l, const char *section, const struct config_setting *s)
{
	const struct config_named *named = config_find_named(section);
	int index = named ? config_named_find(named, l->config, section) : -1;

	if (index < 0)
		return &l->places[s - config_settings];
	for (const struct config_named *before = config_named; before < named; before++)
		index += (int)before->max;
	return &l->named_places[index][s - config_settings];
}

static int assign(struct loader *l, const struct place *at, const char *section, const char *key,
	const char *value)
{
	const struct config_setting *s = config_find_setting(section, key);
	char buf[256];
	struct text reason = TEXT_ON(buf);
	struct config_setting own;
	struct place *place;
	int index;

	if (!s)
		return fail_key(l, at, section, key);
	index = get_named(l, at, section);
	if (index == -ENOSPC)
		return -EINVAL;
	place = place_of(l, section, s);
	own = index < 0 ? *s
			: config_named_setting(config_find_named(section), s, (unsigned int)index);
	text_reset(&reason);
	if (config_value_parse(&own, value, l->config, &reason) < 0) {
		begin_error(l, at);
		text_addf(&l->error, "%s.%s: ", section, key);
		add_quoted_value(&l->error, value);
		text_add(&l->error, reason.buf);
		return -EINVAL;
	}
	*place = *at;
	place->order = ++l->assignments;
	return 0;
}

static void add_value(struct loader *l, const struct config_setting *s)
{
	char buf[PATH_MAX];
	struct text value = TEXT_ON(buf);

	text_reset(&value);
	config_value_format(s, l->config, &value);
	config_add_quoted(&l->error, buf, QUOTED_VALUE_MAX);
}

/* The blame goes to the setting that was written later; the other one is named with its value. */
static int check_relations(struct loader *l)
{
	struct config_conflict conflict;
	const struct config_setting *blamed, *other;
	const struct place *low, *high, *other_place;

	if (config_check_relations(l->config, &conflict) == 0)
		return 0;
	low = &l->places[conflict.low - config_settings];
	high = &l->places[conflict.high - config_settings];
	blamed = low->order > high->order ? conflict.low : conflict.high;
	other = blamed == conflict.low ? conflict.high : conflict.low;
	other_place = blamed == conflict.low ? high : low;

	begin_error(l, blamed == conflict.low ? low : high);
	text_addf(&l->error, "%s.%s: ", blamed->section, blamed->key);
	add_value(l, blamed);
	text_addf(&l->error, " is %s %s.%s (",
		conflict.same			 ? "the same as"
			: blamed == conflict.low ? "over"
						 : "under",
		other->section, other->key);
	add_value(l, other);
	text_addf(&l->error, "%s); expected ", other_place->name ? "" : ", the default");
	if (conflict.same) {
		text_add(&l->error, "two different directories");
		return -EINVAL;
	}
	text_add(&l->error, blamed == conflict.low ? "at most " : "at least ");
	add_value(l, other);
	text_addf(&l->error, ", or a %s %s.%s", blamed == conflict.low ? "larger" : "smaller",
		other->section, other->key);
	return -EINVAL;
}

static int check_keys(struct loader *l)
{
	struct config_key_conflict conflict;

	if (config_check_keys(l->config, &conflict) == 0)
		return 0;
	begin_error(l,
		place_of(l, conflict.section, config_find_setting(conflict.section, conflict.key)));
	text_addf(&l->error, "%s.%s: %s.%s %s", conflict.section, conflict.key, conflict.section,
		conflict.other, conflict.reason);
	return -EINVAL;
}

static int check_all(struct loader *l)
{
	int r = check_relations(l);

	return r < 0 ? r : check_keys(l);
}

/* Cuts blanks at both ends, and the CR of a CRLF with them. */
static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t");
	len = strlen(s);
	while (len > 0 && strchr(" \t\r", s[len - 1]))
		len--;
	s[len] = '\0';
	return s;
}

static int fail_line(struct loader *l, const struct place *at, const char *what)
{
	begin_error(l, at);
	text_add(&l->error, what);
	return -EINVAL;
}

static int parse_section_line(struct loader *l, const struct place *at, char *line,
	const char **section)
{
	size_t len = strlen(line);
	const struct config_section *s;
	int r;

	if (line[len - 1] != ']') {
		begin_error(l, at);
		add_quoted_value(&l->error, line);
		text_add(&l->error,
			"has no ] at its end; expected e.g. [watch], and comments on "
			"lines of their own");
		return -EINVAL;
	}
	line[len - 1] = '\0';
	line = trim(line + 1);
	s = config_find_section(line);
	if (!s || config_is_placeholder(line))
		return fail_section(l, at, line);
	/* A name that the user chose is kept with what it names. */
	r = get_named(l, at, line);
	if (r == -ENOSPC)
		return -EINVAL;
	*section = r < 0
		? s->name
		: config_named_section(config_find_named(line), l->config, (unsigned int)r);
	return 0;
}

static int parse_setting_line(struct loader *l, const struct place *at, char *line,
	const char *section)
{
	char *equals = strchr(line, '='), *value, *comment;

	if (!equals || equals == line) {
		begin_error(l, at);
		add_quoted_value(&l->error, line);
		text_add(&l->error,
			"is neither a section nor a setting; expected e.g. [watch] or "
			"interval = 1s");
		return -EINVAL;
	}
	*equals = '\0';
	value = trim(equals + 1);
	line = trim(line);
	if (!section) {
		begin_error(l, at);
		add_quoted_value(&l->error, line);
		text_add(&l->error,
			"stands before the first section; expected a section, e.g. [watch], "
			"in a line above");
		return -EINVAL;
	}
	/* A comment would silently become part of a path or a list. */
	comment = strpbrk(value, "#;");
	if (comment && (comment == value || comment[-1] == ' ' || comment[-1] == '\t')) {
		begin_error(l, at);
		text_addf(&l->error, "%s.", section);
		config_add_quoted(&l->error, line, QUOTED_VALUE_MAX);
		text_add(&l->error, ": ");
		add_quoted_value(&l->error, value);
		text_add(&l->error,
			"has a comment behind it; expected the comment on a line of its own");
		return -EINVAL;
	}
	return assign(l, at, section, line, value);
}

/* Relations are checked later: another file may still resolve a conflict. */
static int parse_text(struct loader *l, const char *name, const char *text, size_t len)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct cursor all = { text, text + len }, line;
	struct place at = { .name = name };
	const char *section = NULL;
	int r = 0;

	if (len >= 3 && memcmp(text, byte_order_mark, 3) == 0)
		all.p += 3;
	while (r == 0 && cursor_line(&all, &line)) {
		size_t line_len = (size_t)(line.end - line.p);
		char *start;

		at.line++;
		if (line_len >= sizeof(l->line))
			return fail_line(l, &at,
				"the line is too long; expected at most 8191 bytes");
		if (memchr(line.p, '\0', line_len))
			return fail_line(l, &at, "the line has a NUL byte; expected plain text");
		memcpy(l->line, line.p, line_len);
		l->line[line_len] = '\0';
		start = trim(l->line);
		if (*start == '\0' || *start == '#' || *start == ';')
			continue;
		if (*start == '[')
			r = parse_section_line(l, &at, start, &section);
		else
			r = parse_setting_line(l, &at, start, section);
	}
	return r;
}

static int parse_set(struct loader *l, const char *argument)
{
	const struct place at = { .name = argument };
	const char *equals = strchr(argument, '=');
	char *name, *dot, *value;

	if (!equals || equals == argument || strlen(argument) >= sizeof(l->line))
		return fail_line(l, &at, "not a setting; expected e.g. watch.interval=1s");
	text_copy(l->line, sizeof(l->line), argument);
	l->line[equals - argument] = '\0';
	value = trim(l->line + (equals - argument) + 1);
	name = trim(l->line);
	/* The last dot: the name of a rule's section contains a dot, too. */
	dot = strrchr(name, '.');
	if (!dot) {
		const struct config_setting *found = NULL;

		for (unsigned int i = 0; i < config_settings_count && !found; i++)
			if (strcmp(config_settings[i].key, name) == 0)
				found = &config_settings[i];
		begin_error(l, &at);
		add_quoted_value(&l->error, name);
		text_addf(&l->error, "has no section; expected e.g. %s.%s=VALUE",
			found ? found->section : "watch", found ? found->key : "interval");
		return -EINVAL;
	}
	*dot = '\0';
	if (!config_find_section(name) || config_is_placeholder(name))
		return fail_section(l, &at, name);
	return assign(l, &at, name, dot + 1, value);
}

static int fail_file(struct loader *l, const char *path, const char *why, int r)
{
	text_reset(&l->error);
	add_name(&l->error, path);
	text_addf(&l->error, ": %s%s", why, r == -EINVAL ? "" : strerror(-r));
	return r;
}

/*
 * Reads regular files and /dev/null only: a reload must not wait for a pipe that nobody writes to.
 * O_NONBLOCK keeps open() itself from waiting.
 */
static int read_file(struct loader *l, const char *path, char **ret_text, size_t *ret_len)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t len;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return fail_file(l, path, "is not a regular file", -EINVAL);
	text = malloc(FILE_SIZE_MAX + 1);
	if (!text)
		return -ENOMEM;
	len = file_read_fd(fd, text, FILE_SIZE_MAX + 1);
	if (len == -ENOBUFS)
		return fail_file(l, path, "is too large; expected at most 256K", -EINVAL);
	if (len < 0)
		return (int)len;
	*ret_text = TAKE_PTR(text);
	*ret_len = (size_t)len;
	return 0;
}

static int load_file(struct loader *l, const char *path, bool may_be_missing)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r = read_file(l, path, &text, &len);

	if (r == -ENOENT && may_be_missing)
		return 0; /* nothing was read */
	if (r == -EINVAL && l->error.len > 0)
		return r;
	if (r < 0)
		return fail_file(l, path, "cannot be read: ", r);
	r = parse_text(l, path, text, len);
	return r < 0 ? r : 1;
}

static void add_origin(struct loader *l, const char *what)
{
	struct text t = { .buf = l->config->origin, .size = CONFIG_ORIGIN_SIZE };

	t.len = strlen(t.buf);
	if (t.len + strlen(what) + sizeof(", ...") < t.size)
		text_addf(&t, "%s%s", t.len ? ", " : "", what);
	else if (t.len < 4 || strcmp(t.buf + t.len - 3, "...") != 0)
		text_add(&t, ", ...");
}

static int load_all(struct loader *l, const struct config_source *source,
	struct config_dir *drop_ins)
{
	const char *file = source->file ? source->file : CONFIG_DEFAULT_FILE;
	const char *slash = strrchr(file, '/');
	_cleanup_free_ char *dir = NULL;
	int r = load_file(l, file, !source->file);

	if (r < 0)
		return r;
	add_origin(l, r > 0 ? file : "the defaults");
	if (asprintf(&dir, "%.*sconf.d", slash ? (int)(slash - file) + 1 : 0, file) < 0) {
		dir = NULL;
		return fail_file(l, file, "cannot be read: ", -ENOMEM);
	}
	r = config_dir_read(dir, drop_ins);
	if (r < 0)
		return fail_file(l, dir, "cannot be read: ", r);
	for (unsigned int i = 0; i < drop_ins->count && r >= 0; i++) {
		r = load_file(l, drop_ins->paths[i], false);
		add_origin(l, drop_ins->paths[i]);
	}
	for (unsigned int i = 0; i < source->sets_count && r >= 0; i++) {
		char argument[128];

		r = parse_set(l, source->sets[i]);
		snprintf(argument, sizeof(argument), "--set %s", source->sets[i]);
		add_origin(l, argument);
	}
	return r < 0 ? r : check_all(l);
}

void config_set_defaults(struct config *c)
{
	char buf[256];
	struct text reason = TEXT_ON(buf);

	memset(c, 0, sizeof(*c));
	text_reset(&reason);
	for (unsigned int i = 0; i < config_settings_count; i++) {
		int r = config_value_parse(&config_settings[i], config_settings[i].standard, c,
			&reason);

		assert(r == 0);
		(void)r;
	}
}

int config_parse_text(struct config *c, const char *name, const char *text, size_t len,
	char ret_error[static CONFIG_ERROR_SIZE])
{
	_cleanup_free_ struct loader *l = malloc(sizeof(*l));
	int r;

	if (!l) {
		text_copy(ret_error, CONFIG_ERROR_SIZE, "out of memory");
		return -ENOMEM;
	}
	loader_setup(l, c, ret_error);
	r = parse_text(l, name, text, len);
	return r < 0 ? r : check_all(l);
}

int config_load(struct config *c, const struct config_source *source,
	char ret_error[static CONFIG_ERROR_SIZE])
{
	_cleanup_free_ struct loader *l = malloc(sizeof(*l));
	_cleanup_free_ struct config *loaded = malloc(sizeof(*loaded));
	_cleanup_(config_dir_done) struct config_dir drop_ins = { 0 };
	int r;

	if (!l || !loaded) {
		text_copy(ret_error, CONFIG_ERROR_SIZE, "out of memory");
		return -ENOMEM;
	}
	config_set_defaults(loaded);
	loader_setup(l, loaded, ret_error);
	r = load_all(l, source, &drop_ins);
	if (r < 0)
		return r;
	*c = *loaded;
	return 0;
}
