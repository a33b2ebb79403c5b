/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The catalog that has the names of a database can only be read by a session with that database, so
 * each one is visited.
 */
#include "sql/helper/postgres_names.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

#define ROUND_NS (5 * 60 * NSEC_PER_SEC)
/* The server spends at most a thousandth of a CPU on it. */
#define COST_TIMES 1000
/* A server that takes longer has other worries. */
#define VISIT_NS NSEC_PER_SEC

/* Templates have no data, and of the others those matter that read most. */
#define PLACES_QUERY                                                                               \
	"(SELECT 'database', d.datname::text FROM pg_database AS d "                               \
	"LEFT JOIN pg_stat_database AS s ON s.datid = d.oid "                                      \
	"WHERE d.datallowconn AND NOT d.datistemplate AND "                                        \
	"has_database_privilege(d.oid, 'CONNECT') "                                                \
	"ORDER BY s.blks_read DESC NULLS LAST LIMIT %d) "                                          \
	"UNION ALL SELECT 'directory', setting FROM pg_settings WHERE name = 'data_directory' "    \
	"UNION ALL SELECT 'directory', pg_tablespace_location(oid) FROM pg_tablespace "            \
	"WHERE spcname NOT IN ('pg_default', 'pg_global')"

/*
 * The largest files by the last VACUUM or ANALYZE, then the newest. What is stored out of line, in
 * schema pg_toast (99), has the name of its table.
 */
#define FILES_QUERY                                                                                \
	"WITH f AS MATERIALIZED (SELECT c.oid, c.relname, c.relnamespace, c.relisshared, "         \
	"coalesce(i.indrelid, c.oid) AS toast FROM pg_class AS c "                                 \
	"LEFT JOIN pg_index AS i ON i.indexrelid = c.oid AND c.relnamespace = 99 "                 \
	"WHERE c.relkind IN ('r', 'i', 't', 'm', 'S') AND c.relpersistence <> 't' "                \
	"ORDER BY c.relpages DESC, c.oid DESC LIMIT %u) "                                          \
	"SELECT CASE WHEN f.relisshared THEN 0 ELSE d.oid END, pg_relation_filenode(f.oid), "      \
	"concat_ws('.', CASE WHEN NOT f.relisshared THEN d.datname END, n.nspname, "               \
	"coalesce(o.relname || ' (TOAST)', f.relname)) FROM f "                                    \
	"JOIN pg_database AS d ON d.datname = current_database() "                                 \
	"LEFT JOIN pg_class AS o ON f.relnamespace = 99 AND o.reltoastrelid = f.toast "            \
	"JOIN pg_namespace AS n ON n.oid = coalesce(o.relnamespace, f.relnamespace)"

struct round {
	struct postgres_names *names;
	int fd;
};

/*
 * The kernel tells paths without symbolic links. Each is resolved once: on a disk that hangs later
 * the helper would hang, too.
 */
static void add_directory(struct sql_link *link, int fd, const char *path)
{
	struct sql_frame_directory directory = { 0 };
	struct postgres_place *place = link->places;
	char resolved[PATH_MAX];

	while (place < link->places + POSTGRES_PLACES_MAX && *place->path &&
		strcmp(place->path, path) != 0)
		place++;
	if (place == link->places + POSTGRES_PLACES_MAX || strlen(path) >= sizeof(place->path))
		return;
	if (!*place->path) {
		text_copy(place->path, sizeof(place->path), path);
		path = realpath(path, resolved) ? resolved : path;
		if (strlen(path) < sizeof(place->resolved))
			text_copy(place->resolved, sizeof(place->resolved), path);
	}
	if (!*place->resolved)
		return;
	text_copy(directory.path, sizeof(directory.path), place->resolved);
	sql_helper_add_directory(fd, &directory);
}

static void take_place(struct sql_link *link, PGresult *row, void *userdata)
{
	const struct round *round = userdata;
	const char *kind = postgres_cell(link, row, 0, 0), *place = postgres_cell(link, row, 0, 1);
	struct postgres_names *names = round->names;

	if (!kind || !place)
		return;
	if (strcmp(kind, "directory") == 0)
		add_directory(link, round->fd, place);
	else if (names->count < POSTGRES_DATABASES_MAX)
		text_copy(names->databases[names->count++], SQL_NAME_SIZE, place);
}

static void list_places(struct sql_link *link, int fd, uint64_t now_ns)
{
	struct round round = { .names = &link->names, .fd = fd };
	const struct postgres_taker taker = { .take = take_place, .userdata = &round };
	char query[1024], message[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(message);

	text_reset(&error);
	link->names = (struct postgres_names){ .begin_ns = now_ns };
	snprintf(query, sizeof(query), PLACES_QUERY, POSTGRES_DATABASES_MAX);
	if (postgres_ask_rows(link, query, now_ns + VISIT_NS, &taker, &error) < 0)
		log_debug("sql.%s: no names of files: %s", link->setup->name, message);
}

static void take_file(struct sql_link *link, PGresult *row, void *userdata)
{
	const int *fd = userdata;
	const char *name = postgres_cell(link, row, 0, 2);
	struct sql_frame_relation relation = { 0 };
	uint64_t invalid = 0;

	relation.database =
		(uint32_t)sql_cell_up_to(postgres_cell(link, row, 0, 0), UINT32_MAX, &invalid);
	relation.file =
		(uint32_t)sql_cell_up_to(postgres_cell(link, row, 0, 1), UINT32_MAX, &invalid);
	if (invalid > 0 || relation.file == 0 || !name)
		return;
	text_copy(relation.name, sizeof(relation.name), name);
	sql_helper_add_relation(*fd, &relation);
}

/*
 * A visit that ends before its answer leaves a backend of the server to its statement_timeout. No
 * notice is a reason to end it.
 */
static int visit(struct sql_link *link, const char *database, const char *password, int fd)
{
	uint64_t deadline_ns = clock_mono_ns() + VISIT_NS;
	struct sql_link visit = *link;
	const struct postgres_taker taker = { .take = take_file, .userdata = &fd };
	char query[1536], message[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(message);
	int r;

	text_reset(&error);
	visit.stop_fd = &fd;
	visit.pending_since_ns = 0;
	r = postgres_open(&visit, password, database, VISIT_NS);
	if (r == 0) {
		snprintf(query, sizeof(query), FILES_QUERY,
			(unsigned int)SQL_RELATIONS_MAX / link->names.count);
		r = postgres_ask_rows(&visit, query, deadline_ns, &taker, &error);
	}
	if (visit.pg)
		visit.lib.PQfinish(visit.pg);
	return r;
}

/* False: the daemon has a question, so this database is visited again. */
static bool visit_next(struct sql_link *link, const char *password, int fd)
{
	struct postgres_names *names = &link->names;
	const char *database = names->databases[names->next];
	uint64_t begin_ns = clock_mono_ns();
	int r = visit(link, database, password, fd);

	names->cost_ns += clock_mono_ns() - begin_ns;
	if (r == -ECANCELED)
		return false;
	if (r < 0)
		log_debug("sql.%s: no names of the files of %s: %s", link->setup->name, database,
			strerror(-r));
	names->next++;
	/* What hangs would take one connection of the server after the other. */
	if (r == -ETIMEDOUT)
		names->next = names->count;
	return true;
}

static bool is_due(const struct postgres_names *names, uint64_t now_ns)
{
	uint64_t round_ns = names->cost_ns * COST_TIMES;

	if (round_ns < ROUND_NS)
		round_ns = ROUND_NS;
	return names->next == names->count &&
		(!names->begin_ns || now_ns >= names->begin_ns + round_ns);
}

void postgres_name_files(struct sql_link *link, const char *password, int fd)
{
	uint64_t now_ns = clock_mono_ns();

	if (postgres_is_network(link->setup))
		return;
	if (is_due(&link->names, now_ns))
		list_places(link, fd, now_ns);
	while (link->names.next < link->names.count && visit_next(link, password, fd))
		;
}
