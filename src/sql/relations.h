/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which relation of PostgreSQL a file belongs to, since its name is only a number.
 * Owned by a target; filled while the server is idle, and kept for when it does not answer.
 * Never asks anybody: a file that was made since is not known.
 */
#ifndef IOSTALL_SQL_RELATIONS_H
#define IOSTALL_SQL_RELATIONS_H

#include <stdint.h>

#include "sql/protocol.h"

/* The data directory, and tablespaces. */
#define SQL_DIRECTORIES_MAX 8

struct sql_relation {
	uint32_t database; /* 0: of all databases */
	uint32_t file;
	char name[SQL_RELATION_SIZE];
};

struct sql_relations {
	uint32_t count;
	uint32_t oldest; /* replaced next when there is no room */
	uint32_t directories_count;
	uint32_t oldest_directory;
	char directories[SQL_DIRECTORIES_MAX][SQL_PATH_SIZE];
	struct sql_relation list[SQL_RELATIONS_MAX];
};

/* A file that is known gets its new name. */
void sql_relations_add(struct sql_relations *relations, const struct sql_frame_relation *frame);
void sql_relations_add_directory(struct sql_relations *relations,
	const struct sql_frame_directory *frame);

/*
 * The relation of an absolute path, "shop.public.orders" of
 * "/var/lib/postgresql/15/main/base/16384/16393.1"; "": not known. NULL is accepted.
 */
const char *sql_relations_find(const struct sql_relations *relations, const char *path);

#endif
