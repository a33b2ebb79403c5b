/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process of PostgreSQL is for that serves no client, by the title that it gives itself:
 * also while the server answers nobody, as during its start after a crash.
 * Called by enrich.c while an incident is open.
 * Never reads a title on the event loop: whoever does waits for the memory map of that process. Its
 * thread does, which may hang.
 */
#ifndef IOSTALL_ENRICH_TITLES_H
#define IOSTALL_ENRICH_TITLES_H

#include <stdint.h>

struct titles;

/* The role in a title, such as "checkpointer"; "" for what serves a client, and for other programs. */
const char *title_role(const char *title);

/* The descriptor must stay open as long as the owner lives. 0 or a negative errno. */
int titles_new(int procfs_fd, struct titles **ret_titles);
/* Returns at once. NULL is accepted; returns NULL. */
struct titles *titles_free(struct titles *titles);

/*
 * Makes another thread in place of one that hangs. Allocates: only while no incident is open. If it
 * cannot, the next call tries again.
 */
void titles_replace_hung(struct titles *titles, uint64_t now_ns);

/*
 * The role of a process, "" also when it is not known yet: then it is asked for. Call it about once
 * a second. `incident_ns` is when the incident began: roles of another one are forgotten.
 */
const char *titles_find(struct titles *titles, int32_t pid, uint64_t incident_ns, uint64_t now_ns);

#endif
