/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dynamic kprobe events in tracefs: make, remove, count misses, clear away those of dead processes.
 * Called by probe.c; the session calls the clearing once at start.
 * Never touches an event that is not iostall's.
 */
#ifndef IOSTALL_PROBES_TRACEFS_H
#define IOSTALL_PROBES_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

#define TRACEFS_GROUP "iostall"
#define TRACEFS_EVENT_SIZE 64

/* Mounts tracefs when nothing is mounted at its place; 0 when it is there afterwards. */
int tracefs_mount(void);

/* What an event is of. generation: two sets of probes may exist for a moment, at a reload. */
struct tracefs_event {
	const char *function;
	bool is_return;
	uint32_t generation;
};

/* "vfs_read_entry_0_1234" or "..._return_0_1234": names end with the pid, for whoever clears up. */
void tracefs_event_name(const struct tracefs_event *event, char ret_name[TRACEFS_EVENT_SIZE]);

/*
 * Makes (or keeps) the event TRACEFS_GROUP/<name>. A return event gets the most instances the kernel
 * allows, 4096: each thread blocked in the function holds one, and a return without one is lost.
 * -ENOENT: no such function or no kprobes; -EPERM and others from the kernel.
 */
int tracefs_create_event(const struct tracefs_event *event);
int tracefs_remove_event(const struct tracefs_event *event);

/* Hits the kernel missed since the event was made (kprobe_profile). */
uint64_t tracefs_event_misses(const struct tracefs_event *event);

/* Removes events whose process is gone or is no iostall; returns how many, or a negative errno. */
int tracefs_clear_stale(void);

#endif
