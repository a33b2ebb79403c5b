/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cache of what a process is: its executable and its unit or container, by pid and start time.
 * Called by enrich.c. A thread reads the files, since newer kernels (6.18) let the readers of exe,
 * fd and stat wait for the exec_update_lock of the process: see struct watch_thread_status.
 * Never uses an entry whose start time differs: the pid is another process's by now.
 */
#ifndef IOSTALL_ENRICH_PROCESS_H
#define IOSTALL_ENRICH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"
#include "util/renewable_worker.h"
#include "watch/processes.h"

/* Each watched process has a place; one that is not takes that of the one used least lately. */
#define PROCESS_CACHE_MAX WATCH_PROCESSES_MAX
/* The processes of a server share one: a host has few pairs of executable and unit. */
#define PROCESS_PROGRAMS_MAX 256
/* Watched processes that one call of process_learn() looks at. */
#define PROCESS_LEARN_MAX 8

struct process_program {
	uint64_t used; /* when it was used last, by the cache's clock; the oldest is replaced */
	char exe[RECORD_LIST_SIZE];
	char unit[RECORD_LIST_SIZE]; /* "": there is none, or it was not asked for */
};

struct process {
	uint64_t start_ticks;	    /* 0: it was asked for, and there is no answer */
	uint64_t used;		    /* as of a program */
	uint16_t program;	    /* its place, once there is an answer */
	bool is_learned;	    /* its unit was asked for, too */
	char comm[WATCH_COMM_SIZE]; /* when it was asked for */
};

struct process_cache {
	uint64_t clock;
	unsigned int learned; /* watched processes looked at so far */
	uint64_t waited_ns;   /* for answers, in this incident */
	uint64_t unread;      /* names that were asked for in this incident and not read in time */
	bool asked;	      /* there is a question under way */
	struct renewable_worker worker;
	int32_t pids
		[PROCESS_CACHE_MAX]; /* of the entries, apart since they are searched; 0: free */
	struct process entries[PROCESS_CACHE_MAX];
	struct process_program programs[PROCESS_PROGRAMS_MAX];
};

/* procfs_fd must stay open. 0 or a negative errno. */
int process_cache_init(struct process_cache *cache, int procfs_fd);
/* Returns at once. A cache of zeros is accepted. */
void process_cache_done(struct process_cache *cache);

/*
 * Has some of the watched processes read that are not known yet, each in its turn, and takes what
 * the last call asked for. Only while no incident is open.
 */
void process_learn(struct process_cache *cache, const struct watch_process *list,
	unsigned int count);

/*
 * NULL when the process has gone and was never seen, or when it cannot be read soon; start_ns is
 * CLOCK_BOOTTIME of its start. The unit is empty unless it was learned, since the kernel takes
 * cgroup_mutex for it. Valid until the next call. All calls of an incident wait for 20 ms at most,
 * together with process_read_fd().
 */
const struct process_program *process_lookup(struct process_cache *cache, int32_t pid,
	uint64_t start_ns);

/* The link /proc/TID/fd/FD. False: it cannot be read, or not soon. */
bool process_read_fd(struct process_cache *cache, int32_t tid, int32_t fd, char *ret_path,
	size_t size);

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
