/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dynamic kprobe events in tracefs: creates and removes them, counts misses, removes those of
 * processes that have ended.
 * Called by probe.c and, at load, by set.c.
 * Never touches an event that is not iostall's.
 */
#ifndef IOSTALL_PROBES_TRACEFS_H
#define IOSTALL_PROBES_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

#define TRACEFS_GROUP "iostall"
#define TRACEFS_EVENT_SIZE 64

/* Mounts tracefs if it is not mounted yet; 0 when it is mounted afterwards. */
int tracefs_mount(void);

/* `generation` differs between the two sets of probes that exist for a moment at a reload. */
struct tracefs_event {
	const char *function;
	bool is_return;
	uint32_t generation;
};

/*
 * "vfs_read_entry_0_1234" or "vfs_read_return_0_1234": function, side, generation and pid, by which
 * tracefs_clear_stale() knows whose it is.
 */
void tracefs_event_name(const struct tracefs_event *event, char ret_name[TRACEFS_EVENT_SIZE]);

/*
 * Creates the event TRACEFS_GROUP/<name> unless it exists. A return event gets 4096 instances, the
 * most that the kernel allows: each thread that is blocked in the function holds one, and a return
 * without one is missed. -ENOENT: the kernel has no such function or no kprobes; -EPERM and others
 * come from the kernel.
 */
int tracefs_create_event(const struct tracefs_event *event);
int tracefs_remove_event(const struct tracefs_event *event);

/*
 * Hits that the kernel has missed of this process's events of a generation, since they were
 * created. Reading the file takes a lock (event_mutex) that whoever detaches a tracepoint holds
 * while it waits for RCU.
 */
uint64_t tracefs_count_misses(unsigned int generation);

/*
 * Removes the events of processes that have ended, and those of this process's id that are not
 * older than `generation`, which are of a process that had the same id. Returns how many, or a
 * negative errno.
 */
int tracefs_clear_stale(unsigned int generation);

#endif
