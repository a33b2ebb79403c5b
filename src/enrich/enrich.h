/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds names for numbers: pid to process, descriptor to path, device to disk, address to symbol.
 * Called by the session for each operation; refreshed while no incident is open.
 * Never asks NSS, never opens a file on a watched disk while an incident is open; on the event loop
 * never opens cmdline, environ, maps or smaps.
 */
#ifndef IOSTALL_ENRICH_ENRICH_H
#define IOSTALL_ENRICH_ENRICH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "enrich/decode.h"
#include "record/record.h"

struct enrich;
struct watch;

/* procfs: "/proc" or a fixture. Names of disks are looked up in the watch, which is borrowed. */
int enrich_new(const char *procfs, const struct watch *watch, struct enrich **ret_enrich);
struct enrich *enrich_free(struct enrich *enrich);

/*
 * Reads /etc/passwd, which may hang with its disk. It is read in enrich_new() and at a reload only.
 */
void enrich_reload_users(struct enrich *enrich);

/* Call it each second while no incident is open: reads the mounts when they have changed. */
void enrich_refresh(struct enrich *enrich);

/*
 * Call it each second while no incident is open: looks up the units of a few watched processes.
 * During an incident it would be too late, because /proc/PID/cgroup takes a lock that a stalled
 * host may hold for long.
 */
void enrich_learn_processes(struct enrich *enrich);

/*
 * Call it each second while no incident is open: learns now and then which disks stand on which,
 * and when the generation has changed, see watch_disks_generation(). In an incident a lock of the
 * device mapper may be held for long.
 */
void enrich_learn_disks(struct enrich *enrich, const char *sysfs, uint32_t generation);
/* Those disks; their number goes to ret_count. */
const struct record_stacked *enrich_stack(const struct enrich *enrich, uint32_t *ret_count);

/*
 * Completes `op` with executable, user, unit, device name, whole path, and the kernel stack of the
 * event's addresses. The unit comes from the cgroup names of the event, or from
 * enrich_learn_processes().
 */
void enrich_operation(struct enrich *enrich, const struct decoded_operation *decoded,
	struct record_operation *op);

/* The name of the disk; without a disk, the source that is mounted; empty: neither is known. */
void enrich_device(const struct enrich *enrich, uint32_t major, uint32_t minor, char *ret_name,
	size_t size);

/*
 * The names of the devices that a disk stands on, with a newline between them; empty: it stands on
 * none, or it is not known. `sysfs` is "/sys" or a fixture.
 */
void enrich_below(const struct enrich *enrich, const char *sysfs, uint32_t major, uint32_t minor,
	char *ret_names, size_t size);

/*
 * Who writes on the file system that is mounted there, as far as another thread has found out by
 * now. Call it when the incident begins, and about once a second while it is open.
 */
void enrich_find_writer(struct enrich *enrich, const char *mount, uint64_t incident_ns,
	struct record_writer *ret_writer);

/*
 * Who serves that file system, on which a thread waits for a FUSE or NFS server, as far as another
 * thread has found out by now. Call it about once a second while threads wait.
 */
void enrich_find_file_server(struct enrich *enrich, uint32_t major, uint32_t minor,
	enum record_cause waits_for, uint64_t incident_ns, struct record_file_server *ret_found);

/* The unit or container of a cgroup, from its name and its parent's; empty: they tell neither. */
void enrich_unit(const char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE],
	char *ret_unit, size_t size);

/*
 * Replaces the "..." in front of a path that begins at the root of its file system
 * (EVENT_PATH_IN_FS) by the mount point. False, and the path is unchanged, when that file system is
 * not mounted here.
 */
bool enrich_path_in_fs(const struct enrich *enrich, uint32_t major, uint32_t minor, char *path,
	size_t size);

#endif
