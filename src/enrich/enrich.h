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
#include "util/passwd.h"

#define ENRICH_USERS_MAX 512

struct enrich;
struct watch;

/* The users of this host, as the file had them. */
struct enrich_users {
	unsigned int count; /* 0: the file could not be read */
	struct passwd_user users[ENRICH_USERS_MAX];
};

/* procfs: "/proc" or a fixture. Names of disks are looked up in the watch, which is borrowed. */
int enrich_new(const char *procfs, const struct watch *watch, struct enrich **ret_enrich);
struct enrich *enrich_free(struct enrich *enrich);

/* Reads a file like /etc/passwd, which may hang with its disk: not on the event loop. */
void enrich_read_users(const char *path, struct enrich_users *ret_users);
/* Takes them into use instead of those that enrich_new() has read, unless there are none. */
void enrich_set_users(struct enrich *enrich, const struct enrich_users *users);

/*
 * Call it each second while no incident is open: reads the mounts when they have changed, and the
 * symbols of the kernel when its modules have.
 */
void enrich_refresh(struct enrich *enrich);

/*
 * Call it each second while no incident is open: looks up the units of a few watched processes.
 * During an incident it would be too late, because /proc/PID/cgroup takes a lock that a stalled
 * host may hold for long.
 */
void enrich_learn_processes(struct enrich *enrich);

/*
 * Call it each second while no incident is open: learns now and then which disks stand on which,
 * and when the generation has changed, see watch_disks_generation(). In an incident a lock of sysfs
 * or the device mapper may be held for long. `sysfs` is "/sys" or a fixture, `udev` the directory
 * of udev's database ("/run/udev/data").
 */
void enrich_learn_disks(struct enrich *enrich, const char *sysfs, const char *udev,
	uint32_t generation);
/* Of those disks the ones that a record should have, and how many that leaves out. */
void enrich_choose_stack(const struct enrich *enrich,
	struct record_stacked ret_stack[static RECORD_STACKED_MAX], uint32_t *ret_count,
	uint32_t *ret_left_out);

/*
 * Completes `op` with executable, user, unit, device name, whole path, and the kernel stack of the
 * event's addresses. The unit comes from the cgroup names of the event, or from
 * enrich_learn_processes().
 */
void enrich_operation(struct enrich *enrich, const struct decoded_operation *decoded,
	struct record_operation *op);

/* Executable and unit of a process, as far as they are known; start_ns is CLOCK_BOOTTIME. */
void enrich_process(struct enrich *enrich, int32_t pid, uint64_t start_ns,
	char ret_exe[RECORD_LIST_SIZE], char ret_unit[RECORD_LIST_SIZE]);

/*
 * What the thread waits for by the stack of `op`; on a mount of a file server that server, if it
 * waits for no lock, memory or journal. NONE: not known.
 */
enum record_cause enrich_cause(const struct enrich *enrich, const struct record_operation *op);

/*
 * Where threads sleep for file servers. False: some of it is not known, because the kernel tells no
 * symbols, or none of the function in which threads wait for a FUSE file system that is mounted.
 */
bool enrich_find_server_waits(const struct enrich *enrich, struct event_server_waits *ret_waits);

/*
 * The functions of kernel addresses as lines of "symbol+0xoff", from the first one on, up to an
 * address of 0. `asleep`: it was taken in the scheduler, whose functions are left out.
 */
void enrich_kernel_stack(const struct enrich *enrich, const uint64_t *addresses, uint32_t count,
	bool asleep, char ret_stack[RECORD_STACK_SIZE]);

/* The name of the disk; without a disk, the source that is mounted; empty: neither is known. */
void enrich_device(const struct enrich *enrich, uint32_t major, uint32_t minor, char *ret_name,
	size_t size);

/*
 * The numbers of what belongs to a disk or partition, and is not below it in sysfs: hidden paths of
 * NVMe, which the requests have, and file systems whose number is that of no disk. `disk` is a name
 * or major:minor. Returns how many there are, at most `max`. Call it while no incident is open.
 */
uint32_t enrich_numbers_of_disk(const struct enrich *enrich, const char *disk,
	struct record_dev *ret_numbers, uint32_t max);

/*
 * The names of the devices that a disk stands on, with a newline between them, as
 * enrich_learn_disks() has learned them; empty: it stands on none, or there were more stacked disks
 * than that has room for.
 */
void enrich_below(const struct enrich *enrich, uint32_t major, uint32_t minor, char *ret_names,
	size_t size);

/*
 * Who writes on the file system that is mounted there, as far as another thread has found out by
 * now. Call it when the incident begins, and about once a second while it is open.
 */
void enrich_find_writer(struct enrich *enrich, const char *mount, uint64_t incident_ns,
	struct record_writer *ret_writer);

/*
 * Has another thread look for who has to answer those who wait so on that file system. Call it
 * about once a second while they wait, and not when they have gone on: whoever serves then may be
 * another one.
 */
void enrich_find_file_server(struct enrich *enrich, uint32_t major, uint32_t minor,
	enum record_cause waits_for, uint64_t incident_ns);
/* What it has found by now; not filled in: nobody has asked in this incident. */
void enrich_get_file_server(struct enrich *enrich, uint64_t incident_ns,
	struct record_file_server *ret_found);

/*
 * What a process of PostgreSQL is for that serves no client, as far as another thread has found out
 * by now; "" also for all others. Call it about once a second while an incident is open.
 */
const char *enrich_find_role(struct enrich *enrich, int32_t pid, uint64_t incident_ns);

/* Executables and paths that could not be read from /proc in time, in this incident so far. */
uint64_t enrich_names_unread(const struct enrich *enrich);

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
