/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/statement.h"

#include <string.h>

#include "verdict/words.h"

/*
 * A statement that moved less is not the reason of what its server does. What it changes is written
 * by others, but what it wants to know it mostly reads itself.
 */
#define LIKELY_BYTES (1 << 20)
#define LIKELY_PART_WRITTEN 64
#define LIKELY_PART_READ 4
/*
 * What is written has to be read first, and again when old versions of rows are removed; others may
 * read that, too. An UPDATE of a whole table had two to six reads for each write.
 */
#define READS_FOR_A_WRITE 6

static bool only_reads(const struct verdict_statement *statement)
{
	const char *text = statement->text + strspn(statement->text, " \t\n(");

	return strncasecmp(text, "SELECT", strlen("SELECT")) == 0;
}

/*
 * How much a statement must have moved so that it is probably what the culprit worked for. The more
 * reads there are beyond what belongs to writes, the more it is.
 */
static uint64_t least_likely_bytes(const struct verdict_load *c,
	const struct verdict_statement *statement)
{
	uint64_t reads = c->requests[VERDICT_READ], of_writes = 0;
	uint64_t least = c->bytes / LIKELY_PART_WRITTEN, own = 0;

	if (!only_reads(statement))
		of_writes = READS_FOR_A_WRITE * c->requests[VERDICT_WRITE];
	if (reads > of_writes)
		own = (uint64_t)((double)c->read_bytes * (double)(reads - of_writes) /
			(double)reads);
	least = own / LIKELY_PART_READ > least ? own / LIKELY_PART_READ : least;
	return least > LIKELY_BYTES ? least : LIKELY_BYTES;
}

/* A thread of the server writes what statements have changed, or reads ahead for them. */
static bool find_likely(const struct verdict_load *c, const struct verdict_sql *sql,
	struct verdict_statement *ret_statement)
{
	if (!sql->find_busiest || !sql->find_busiest(sql->userdata, c->who.pid, ret_statement))
		return false;
	ret_statement->likely = ret_statement->moved_bytes >= least_likely_bytes(c, ret_statement);
	return ret_statement->likely;
}

/* Only a culprit that submitted its I/O itself, or for a statement, has one to blame. */
bool verdict_find_statement(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct verdict_statement *ret_statement)
{
	const struct verdict_load *c = v->culprit;

	if (!sql || !verdict_is_named(v) || c->inferred || v->culprit_by == VERDICT_BY_UNIT ||
		v->committers > 1)
		return false;
	return sql->find_statement(sql->userdata, c->who.pid,
		       v->culprit_by == VERDICT_BY_THREAD ? c->who.tid : 0, ret_statement) ||
		find_likely(c, sql, ret_statement);
}
