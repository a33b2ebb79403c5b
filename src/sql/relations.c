/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/relations.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

/* The index of the file; r->count: it is not known. */
static uint32_t find(const struct sql_relations *r, uint32_t database, uint32_t file)
{
	uint32_t i = 0;

	while (i < r->count && (r->list[i].file != file || r->list[i].database != database))
		i++;
	return i;
}

void sql_relations_add(struct sql_relations *r, const struct sql_frame_relation *f)
{
	uint32_t i = find(r, f->database, f->file);
	struct sql_relation *relation;

	if (i == SQL_RELATIONS_MAX) {
		i = r->oldest;
		r->oldest = (r->oldest + 1) % SQL_RELATIONS_MAX;
	} else if (i == r->count) {
		r->count++;
	}
	relation = &r->list[i];
	relation->database = f->database;
	relation->file = f->file;
	text_copy(relation->name, sizeof(relation->name), f->name);
}

void sql_relations_add_directory(struct sql_relations *r, const struct sql_frame_directory *f)
{
	for (uint32_t i = 0; i < r->directories_count; i++)
		if (strcmp(r->directories[i], f->path) == 0)
			return;
	if (r->directories_count < SQL_DIRECTORIES_MAX) {
		text_copy(r->directories[r->directories_count++], SQL_PATH_SIZE, f->path);
		return;
	}
	text_copy(r->directories[r->oldest_directory], SQL_PATH_SIZE, f->path);
	r->oldest_directory = (r->oldest_directory + 1) % SQL_DIRECTORIES_MAX;
}

static bool has_directory(const struct sql_relations *r, const char *path, size_t length)
{
	for (uint32_t i = 0; i < r->directories_count; i++)
		if (strlen(r->directories[i]) == length &&
			memcmp(r->directories[i], path, length) == 0)
			return true;
	return false;
}

/* The number that the text begins with, and what follows it; false: none, or too large. */
static bool take_number(const char *s, uint32_t *ret_number, const char **ret_rest)
{
	char *end;
	unsigned long number;

	if (!isdigit((unsigned char)*s))
		return false;
	number = strtoul(s, &end, 10);
	if (number == 0 || number > UINT32_MAX)
		return false;
	*ret_number = (uint32_t)number;
	*ret_rest = end;
	return true;
}

/* "16393", "16393.1", "16393_vm": parts and companions of one file. */
static bool take_file(const char *name, uint32_t *ret_file)
{
	const char *rest;

	return take_number(name, ret_file, &rest) &&
		(*rest == '\0' || *rest == '.' || *rest == '_');
}

/* The part of a path before `end`, from the last slash on; NULL: there is none. */
static const char *find_name(const char *path, const char *end)
{
	while (end > path && end[-1] != '/')
		end--;
	return end > path ? end : NULL;
}

/*
 * <data directory>/base/<database>/<file>, <data directory>/global/<file>, or
 * <tablespace>/PG_<version>/<database>/<file>.
 */
static bool parse(const char *path, uint32_t *ret_database, uint32_t *ret_file,
	size_t *ret_directory_length)
{
	const char *name = find_name(path, path + strlen(path)), *parent, *rest;

	if (!name || !take_file(name, ret_file) || !(parent = find_name(path, name - 1)))
		return false;
	*ret_database = 0;
	*ret_directory_length = (size_t)(parent - 1 - path);
	if (strncmp(parent, "global/", strlen("global/")) == 0)
		return true;
	if (!take_number(parent, ret_database, &rest) || *rest != '/' ||
		!(parent = find_name(path, parent - 1)))
		return false;
	*ret_directory_length = (size_t)(parent - 1 - path);
	return strncmp(parent, "base/", strlen("base/")) == 0 ||
		strncmp(parent, "PG_", strlen("PG_")) == 0;
}

const char *sql_relations_find(const struct sql_relations *r, const char *path)
{
	uint32_t database, file, i;
	size_t length;

	if (!r || !parse(path, &database, &file, &length) || !has_directory(r, path, length))
		return "";
	i = find(r, database, file);
	return i < r->count ? r->list[i].name : "";
}
