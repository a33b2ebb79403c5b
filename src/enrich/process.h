/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process is: executable, user, unit or container; a bounded cache keyed by pid and start.
 * Called by enrich.c.
 * Never believes an entry whose start time differs: the pid is another process's now.
 */
#ifndef IOSTALL_ENRICH_PROCESS_H
#define IOSTALL_ENRICH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

#define PROCESS_CACHE_MAX 256

struct process {
	int32_t pid; /* 0: free */
	uint64_t start_ticks;
	uint64_t used; /* the cache's clock, for choosing what to replace */
	char exe[RECORD_LIST_SIZE];
	char unit[RECORD_LIST_SIZE];
	bool unit_known; /* was asked for; it may have none */
};

struct process_cache {
	uint64_t clock;
	struct process entries[PROCESS_CACHE_MAX];
};

/*
 * NULL when the process is gone and was never seen. start_ns: CLOCK_BOOTTIME of its start. With
 * `armed` its unit is not asked for (cgroup_mutex), and is empty unless known before.
 */
const struct process *process_lookup(struct process_cache *cache, int procfs_fd, int32_t pid,
	uint64_t start_ns, bool armed);

/*
 * The unit or container of /proc/PID/cgroup: the last .service, .scope or .slice of the path;
 * "container:" and twelve digits when the path carries a 64-digit id. Empty when neither. Pure.
 */
void process_parse_cgroup(const char *buf, size_t len, char *ret_unit, size_t size);

/*
 * The same of a cgroup's own name and its parent's, each terminated, both empty on hosts without
 * cgroup2. Empty also when the own name fills EVENT_CGROUP_NAME_SIZE: its end, which says the most,
 * is cut off.
 */
void process_unit_of_names(const char *leaf, const char *parent, char *ret_unit, size_t size);

#endif
