/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/programs.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/text.h"

#define COMM_SIZE sizeof(((struct verdict_who *)0)->comm)

/* NULL: the process is not known. */
static const char *find_program(const struct verdict_facts *f, int32_t pid)
{
	for (unsigned int i = 0; i < CONFIG_SQL_TARGETS_MAX; i++)
		if (f->databases[i].server.pid == pid && *f->databases[i].server.comm)
			return f->databases[i].server.comm;
	for (uint32_t i = 0; i < f->devices_count; i++) {
		const struct verdict_load *load = f->devices[i].load;

		if (load[VERDICT_BY_PROCESS].count > 0 && load[VERDICT_BY_PROCESS].who.pid == pid)
			return load[VERDICT_BY_PROCESS].who.comm;
		if (load[VERDICT_BY_PROGRAM].count > 0 && load[VERDICT_BY_PROGRAM].who.pid == pid)
			return load[VERDICT_BY_PROGRAM].who.comm;
	}
	return NULL;
}

/*
 * What a thread of MySQL (ib_...) or MariaDB does that serves no client. The readers and writers of
 * InnoDB (ib_io_rd, ib_io_wr) are not here: they work for statements.
 */
static const char *role_of(const char *comm)
{
	static const struct {
		const char *prefix;
		const char *role;
	} roles[] = {
		{ "ib_pg_flush", "page cleaner" },
		{ "page_cleaner", "page cleaner" },
		{ "ib_srv_purge", "purge" },
		{ "ib_srv_wkr", "purge" },
		{ "ib_log_", "redo log" },
		{ "ib_buf_dump", "dump or load of the buffer pool" },
		{ "ib_dict_stats", "statistics of tables" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(roles); i++)
		if (strncmp(comm, roles[i].prefix, strlen(roles[i].prefix)) == 0)
			return roles[i].role;
	return NULL;
}

static void rename_thread(const struct verdict_facts *f, int32_t pid, int32_t tid,
	char comm[static COMM_SIZE])
{
	const char *program = pid > 0 && tid > 0 && tid != pid ? find_program(f, pid) : NULL;

	if (program && *program)
		text_copy(comm, COMM_SIZE, program);
}

static void rename_who(const struct verdict_facts *f, struct verdict_who *who)
{
	rename_thread(f, who->pid, who->tid, who->comm);
}

void verdict_name_programs(struct verdict_facts *f)
{
	for (uint32_t i = 0; i < f->devices_count; i++) {
		struct verdict_load *thread = &f->devices[i].load[VERDICT_BY_THREAD];

		if (thread->who.tid != thread->who.pid)
			thread->role = role_of(thread->who.comm);
		rename_who(f, &thread->who);
	}
	for (uint32_t i = 0; i < f->shares_count; i++)
		rename_thread(f, f->shares[i].pid, f->shares[i].tid, f->shares[i].comm);
	for (uint32_t i = 0; i < f->dirtiers_count; i++) {
		rename_who(f, &f->dirtiers[i].slowed.who);
		rename_who(f, &f->dirtiers[i].waiting.who);
	}
	for (unsigned int i = 0; i < VERDICT_WAIT_COUNT; i++)
		rename_who(f, &f->waits[i].who);
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		rename_thread(f, f->waiters[i].pid, f->waiters[i].tid, f->waiters[i].comm);
	for (unsigned int i = 0; i < VERDICT_MAP_HOLDERS_MAX; i++)
		rename_who(f, &f->map_holders[i].who);
	for (unsigned int i = 0; i < VERDICT_ERRORS_MAX; i++)
		rename_who(f, &f->errors[i].who);
	rename_who(f, &f->earlier.who);
}
