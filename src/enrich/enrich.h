/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names for numbers: pid to process, descriptor to path, device to disk, address to symbol.
 * Called by the session on each operation while armed; refreshed only while nothing is.
 * Never opens cmdline, environ, maps or smaps, never asks NSS, never touches a file of a stalled disk.
 */
#ifndef IOSTALL_ENRICH_ENRICH_H
#define IOSTALL_ENRICH_ENRICH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/decode.h"
#include "record/record.h"

struct enrich;
struct watch;

/* procfs: "/proc" or a fixture. The watch lends the names of disks. */
int enrich_new(const char *procfs, const struct watch *watch, struct enrich **ret_enrich);
struct enrich *enrich_free(struct enrich *enrich);

/* Reads /etc/passwd, which may hang with its disk: at start, in enrich_new(), and at reload only. */
void enrich_reload_users(struct enrich *enrich);

/* For each second while nothing is armed: reads the mounts when the kernel says they changed. */
void enrich_refresh(struct enrich *enrich);

/*
 * For each second while nothing is armed: looks up units of watched processes, a few at a call,
 * because /proc/PID/cgroup takes a lock that a stalled host may hold for long.
 */
void enrich_learn_processes(struct enrich *enrich);

/*
 * Completes `op`: exe, user, unit, device name, whole path, kernel stack from the event's
 * addresses. The unit is that of the event's cgroup names, or what was learned of the process.
 */
void enrich_operation(struct enrich *enrich, const struct decoded_operation *decoded,
	struct record_operation *op);

/* The disk's name, or what is mounted from where there is no disk; empty when neither is known. */
void enrich_device(const struct enrich *enrich, uint32_t major, uint32_t minor, char *ret_name,
	size_t size);

/* The unit or container of a cgroup by its own name and its parent's; empty when they tell none. */
void enrich_unit(const char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE],
	char *ret_unit, size_t size);

/*
 * "..." and a path that begins at the root of its file system, as event_decode() makes it of
 * EVENT_PATH_IN_FS, into one from the root of the host's mounts. False, and the path as it was, when that
 * file system is not mounted here.
 */
bool enrich_path_in_fs(const struct enrich *enrich, uint32_t major, uint32_t minor, char *path,
	size_t size);

#endif
