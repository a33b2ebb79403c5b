/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cache of what a process is: its executable and its unit or container, by pid and start time.
 * Called by enrich.c.
 * Never uses an entry whose start time differs: the pid is another process's by now.
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
	uint64_t used; /* when it was used last, by the cache's clock; the oldest is replaced */
	char exe[RECORD_LIST_SIZE];
	char unit[RECORD_LIST_SIZE];
	bool unit_known; /* it was looked up; the process may have none */
};

struct process_cache {
	uint64_t clock;
	struct process entries[PROCESS_CACHE_MAX];
};

/*
 * NULL when the process has gone and was never seen. start_ns: CLOCK_BOOTTIME of its start. With
 * `armed` its unit is not looked up, since that takes cgroup_mutex; it is empty unless known
 * before.
 */
const struct process *process_lookup(struct process_cache *cache, int procfs_fd, int32_t pid,
	uint64_t start_ns, bool armed);

/*
 * The unit or container from the text of /proc/PID/cgroup: the last .service, .scope or .slice of
 * the path, or "container:" and twelve digits when the path has an id of 64 digits. Empty without
 * either. Pure.
 */
void process_parse_cgroup(const char *buf, size_t len, char *ret_unit, size_t size);

/*
 * The same from a cgroup's own name and its parent's, which are both empty on hosts without
 * cgroup2. Also empty when the own name fills EVENT_CGROUP_NAME_SIZE: then its end, which tells the
 * type of unit, is cut off.
 */
void process_unit_of_names(const char *leaf, const char *parent, char *ret_unit, size_t size);

#endif
