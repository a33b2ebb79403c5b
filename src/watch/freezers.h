/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the control groups of watched processes are frozen (freezer.self_freezing,
 * cgroup.freeze), as by `docker pause`.
 * Used by the watch room only.
 * Never opens a file while an incident is open, and never reads freezer.state, for which the kernel
 * takes a lock that whoever freezes a group holds.
 */
#ifndef IOSTALL_WATCH_FREEZERS_H
#define IOSTALL_WATCH_FREEZERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/structs.h"
#include "watch/processes.h"

/*
 * The control groups of the processes, each counted once: what freezes one above them freezes them,
 * too.
 */
#define FREEZERS_GROUPS_MAX 16
#define FREEZERS_FILES 2

struct freezers_group {
	bool used;
	uint64_t path_hash;
	int fds[FREEZERS_FILES]; /* version 1: it and those above it are to freeze */
	uint64_t since_ns;	 /* 0: it is not frozen */
	uint64_t running_ns;	 /* when it was last seen running; 0: perhaps never */
	char path[RECORD_SUBJECT_SIZE];
};

struct freezers {
	uint32_t left_out; /* groups that found the table full */
	struct freezers_group groups[FREEZERS_GROUPS_MAX];
};

/* Forgets all control groups, because other processes are watched from now on. */
void freezers_reset(struct freezers *f);

/*
 * Adds the group of a process: buf is the text of its /proc/PID/cgroup. On a host with both
 * versions it is that of version 1, unless that is the root.
 */
void freezers_learn(struct freezers *f, int sysfs_fd, struct processes *processes, int32_t pid,
	const char *buf, size_t len);

/*
 * Reads the state of all, marks the processes in those that are frozen, and has cgroups_learn() ask
 * once more who is.
 * buf holds one file at a time.
 */
void freezers_update(struct freezers *f, struct processes *processes, uint64_t now_ns, char *buf,
	size_t size);

/*
 * The one that has been frozen for longest, and one of its processes; ret_stopped is left as it is
 * when none is. With `armed` nobody is asked, and who was in it before is taken to be still.
 */
void freezers_fill(const struct freezers *f, const struct processes *processes, bool armed,
	uint64_t now_ns, struct record_stopped *ret_stopped);

/*
 * Whether a thread of the process that has slept since then does so because it is frozen: the
 * kernel shows it in D. One that fell asleep before its group was frozen waits for something else.
 */
bool freezers_keep(const struct freezers *f, struct processes *processes, int32_t pid,
	uint64_t since_ns);

/* Whether the text of one of these files or of cgroup.events says that it is frozen. Pure. */
bool freezers_parse(const char *buf, size_t len);

#endif
