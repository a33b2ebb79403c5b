/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All targets together, which sql.c, discovery.c and targets.c share.
 * Included by these only.
 * Never passed to other rooms: they use sql.h.
 */
#ifndef IOSTALL_SQL_INTERNAL_H
#define IOSTALL_SQL_INTERNAL_H

#include <limits.h>

#include "sql/sql.h"
#include "util/renewable_worker.h"

/*
 * Killed helpers that still hang in the kernel and have to be waited for. If there are more, the
 * others stay zombies until the daemon ends.
 */
#define ORPHANS_MAX 16

struct sql {
	struct sql_target_options target_options;
	struct config_sql config;
	const struct watch *watch;
	char run_dir[PATH_MAX];
	uint64_t detect_ns;
	struct renewable_worker
		looker; /* for sockets of servers; its thread begins with the first look */
	bool is_looking;
	bool look_logged;  /* that it takes long */
	uint64_t begin_ns; /* of the incident; 0 before the first */
	unsigned int count;
	struct sql_target *targets[CONFIG_SQL_TARGETS_MAX];
	pid_t orphans[ORPHANS_MAX];
};

/* targets.c */
/* -ENOSPC: there is no room. */
int sql_add_target(struct sql *sql, const struct config_sql_target *config, bool detected);
/* The last one gets its place. */
void sql_remove_target(struct sql *sql, unsigned int index);
/* Waits for helpers that have ended meanwhile. */
void sql_reap_orphans(struct sql *sql);

/* discovery.c */
/*
 * Now and then: adds servers that run here and that no section names. A thread looks for their
 * sockets; what it has found is known at the next call.
 */
void sql_look_for_servers(struct sql *sql, uint64_t now_ns);
void sql_init_look(struct sql *sql);
/* Of two targets that are the same server one is asked, or its sessions would be counted twice. */
void sql_stop_duplicates(struct sql *sql);
/* Whether a section is about this server, also one with `enabled = no`. */
bool sql_is_named(const struct config_sql *config, enum config_sql_type type, const char *path);

#endif
