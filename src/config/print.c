/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config.h"

#include <string.h>

#include "config/table.h"

#define COMMENT_WIDTH 88
#define ROFF_WIDTH 78

static void describe(const struct config_setting *s, char *buf, size_t size)
{
	struct text t = { .buf = buf, .size = size };

	text_reset(&t);
	config_value_describe(s, &t);
}

enum form {
	FORM_COMMENT,
	FORM_ROFF,
};

static void print_word(FILE *f, enum form form, const char *word, size_t len)
{
	if (form == FORM_COMMENT) {
		fprintf(f, "%.*s", (int)len, word);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		if (word[i] == '\\')
			fputs("\\e", f);
		else
			fputc(word[i], f);
	}
}

/*
 * Breaks the text into lines. roff wants a new line for each sentence, and none that looks like a
 * request.
 */
static void print_words(FILE *f, enum form form, const char *text)
{
	const size_t width = form == FORM_COMMENT ? COMMENT_WIDTH : ROFF_WIDTH;
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");
		bool ends = form == FORM_ROFF && text[len - 1] == '.';

		if (column > 0 && column + 1 + len > width) {
			fputc('\n', f);
			column = 0;
		}
		if (column > 0)
			fputc(' ', f);
		else if (form == FORM_COMMENT)
			fputs("# ", f);
		else if (*text == '.' || *text == '\'')
			fputs("\\&", f);
		print_word(f, form, text, len);
		column = ends ? width : column + 1 + len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

static void print_comment(FILE *f, const char *text)
{
	print_words(f, FORM_COMMENT, text);
}

static void print_roff(FILE *f, const char *text)
{
	print_words(f, FORM_ROFF, text);
}

static bool is_first_of_group(const struct config_section *s)
{
	return s->group &&
		(s == config_sections || !s[-1].group || strcmp(s[-1].group, s->group) != 0);
}

static bool is_in_group(const struct config_section *first, const char *name)
{
	for (unsigned int i = 0; i < config_sections_count; i++)
		if (strcmp(config_sections[i].name, name) == 0)
			return config_sections[i].group &&
				strcmp(config_sections[i].group, first->group) == 0;
	return false;
}

/* Whether it is the first setting of that group with its key: a key is explained once. */
static bool is_first_with_key(const struct config_section *first, unsigned int setting)
{
	const struct config_setting *s = &config_settings[setting];

	for (unsigned int i = 0; i < setting; i++)
		if (strcmp(config_settings[i].key, s->key) == 0 &&
			is_in_group(first, config_settings[i].section))
			return false;
	return is_in_group(first, s->section);
}

static void print_key_comment(FILE *f, const struct config_setting *s, bool with_name)
{
	char limits[128], line[1024];

	describe(s, limits, sizeof(limits));
	snprintf(line, sizeof(line), "%s%s%s Takes %s.", with_name ? s->key : "",
		with_name ? ": " : "", s->help, limits);
	print_comment(f, line);
}

/* The keys of a group are explained once, before its first section. */
static void print_group_comment(FILE *f, const struct config_section *section)
{
	char line[512];

	snprintf(line, sizeof(line), "%s", config_group_help(section->group));
	fputs("\n#\n", f);
	print_comment(f, line);
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];

		if (!is_first_with_key(section, i))
			continue;
		if (s->type == CONFIG_TYPE_THRESHOLD) {
			snprintf(line, sizeof(line), "%s: %s", s->key, s->help);
			print_comment(f, line);
		} else {
			print_key_comment(f, s, true);
		}
	}
	fputs("#\n", f);
}

void config_print_file(FILE *f)
{
	fputs("# iostall.conf: all settings with their defaults. Remove the # to change one.\n"
	      "# Files in conf.d/ beside this file (*.conf, in alphabetical order) override it, and\n"
	      "# --set section.key=value overrides both. A later assignment replaces an earlier one;\n"
	      "# a list is replaced as a whole. Comments need a line of their own. See\n"
	      "# iostall.conf(5).\n",
		f);
	for (unsigned int i = 0; i < config_sections_count; i++) {
		const struct config_section *section = &config_sections[i];
		const struct config_named *named;

		if (is_first_of_group(section))
			print_group_comment(f, section);
		fputc('\n', f);
		print_comment(f, section->help);
		/* A section line adds a target, so it is commented out. */
		named = config_find_named(section->name);
		if (named)
			fprintf(f, "#[%s]\n", named->example);
		else
			fprintf(f, "[%s]\n", section->name);
		for (unsigned int j = 0; j < config_settings_count; j++) {
			const struct config_setting *s = &config_settings[j];

			if (strcmp(s->section, section->name) != 0)
				continue;
			if (!section->group) {
				fputc('\n', f);
				print_key_comment(f, s, false);
			}
			fprintf(f, "#%s =%s%s\n", s->key, *s->standard ? " " : "", s->standard);
		}
	}
}

static void print_man_key(FILE *f, const struct config_setting *s, bool in_group)
{
	char limits[128];

	fprintf(f, ".It Ic %s No = Ar %s\n", s->key, config_type_name(s->type));
	print_roff(f, s->help);
	/* The limits of a threshold depend on the rule. */
	if (s->type != CONFIG_TYPE_THRESHOLD) {
		describe(s, limits, sizeof(limits));
		fprintf(f, "Takes %s.\n", limits);
	}
	if (in_group)
		return;
	if (*s->standard)
		fprintf(f, "The default is\n.Ql %s .\n", s->standard);
	else
		fputs("The default is empty.\n", f);
}

/* Of a group, those of all its sections. */
static void print_man_keys(FILE *f, const struct config_section *section)
{
	fputs(".Bl -tag -width Ds\n", f);
	for (unsigned int i = 0; i < config_settings_count; i++)
		if (section->group ? is_first_with_key(section, i)
				   : strcmp(config_settings[i].section, section->name) == 0)
			print_man_key(f, &config_settings[i], section->group != NULL);
	fputs(".El\n", f);
}

static void print_man_member(FILE *f, const struct config_section *section)
{
	const char *comma = "Defaults: ";
	bool empty = false;

	fprintf(f, ".It Bq Ic %s\n", section->name);
	print_roff(f, section->help);
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];

		if (strcmp(s->section, section->name) != 0)
			continue;
		empty = empty || !*s->standard;
		if (!*s->standard)
			continue;
		fprintf(f, "%s%s %s", comma, s->key, s->standard);
		comma = ", ";
	}
	fputs(empty ? "; the others are empty.\n" : ".\n", f);
}

static void print_man_group(FILE *f, const struct config_section *section)
{
	fprintf(f, ".Ss Sections %s.NAME\n", section->group);
	print_roff(f, config_group_help(section->group));
	print_man_keys(f, section);
	fputs(".Pp\nThese are:\n.Bl -tag -width Ds\n", f);
	for (unsigned int i = 0; i < config_sections_count; i++)
		if (config_sections[i].group &&
			strcmp(config_sections[i].group, section->group) == 0)
			print_man_member(f, &config_sections[i]);
	fputs(".El\n", f);
}

void config_print_man(FILE *f)
{
	for (unsigned int i = 0; i < config_sections_count; i++) {
		const struct config_section *section = &config_sections[i];

		if (is_first_of_group(section)) {
			print_man_group(f, section);
		} else if (!section->group) {
			fprintf(f, ".Ss Section %s\n", section->name);
			print_roff(f, section->help);
			print_man_keys(f, section);
		}
	}
}

void config_print_keys(FILE *f)
{
	for (unsigned int i = 0; i < config_settings_count; i++)
		fprintf(f, "%s.%s\t%s\n", config_settings[i].section, config_settings[i].key,
			config_settings[i].help);
}
