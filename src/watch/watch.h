/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The watchdog: readings of the host, the last of them kept, and the processes it looks after.
 * Owned by the session (or a command); read by the rules, the record and enrichment.
 * Never allocates while sampling, never opens what a process's mmap_lock can block.
 */
#ifndef IOSTALL_WATCH_WATCH_H
#define IOSTALL_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "watch/cgroups.h"
#include "watch/clocks.h"
#include "watch/filesystems.h"
#include "watch/processes.h"
#include "watch/sample.h"

/* 1.1 KB each, locked from the start: 2 min at 100 ms, 20 min at 1 s. */
#define WATCH_HISTORY_MAX 1200

struct watch;

/* Everything is copied; lists may be NULL: no process, every device, none ignored. */
struct watch_options {
	const char *procfs; /* NULL: /proc */
	const char *sysfs;  /* NULL: /sys */
	uint64_t interval_ns;
	uint64_t history_ns;
	const struct config_list *process;
	const struct config_list *device;
	const struct config_list *device_ignore;
	const struct config_list *filesystem; /* NULL: none is asked, and there is no thread for it */
	struct watch_clock clock; /* zero but in tests */
};

/* What is beyond the fixed tables, as of the last sample. */
struct watch_left_out {
	uint32_t processes; /* beyond WATCH_PROCESSES_MAX */
	uint32_t threads;   /* in D, beyond WATCH_THREADS_MAX */
	uint32_t disks;	    /* beyond WATCH_DISKS_MAX: not judged */
	uint32_t filesystems; /* beyond WATCH_FILESYSTEMS_MAX */
	uint32_t cgroups; /* beyond WATCH_CGROUPS_MAX */
};

/* The parts of a configuration that the watchdog needs; roots and clock are left as they are. */
void watch_options_from_config(const struct config *config, struct watch_options *options);

/*
 * Allocates all it will ever need, opens what it reads and looks for the watched processes.
 * 0, -ENOMEM, or what opening the procfs root or its `stat` gave. Files that a kernel may lack
 * (pressure, diskstats) are not an error.
 */
int watch_new(const struct watch_options *options, struct watch **ret_watch);
struct watch *watch_free(struct watch *watch);

/*
 * Other patterns, interval and history; roots and clock stay. Samples and counters are kept,
 * watched processes are looked for anew. 0 or -ENOMEM, then nothing has changed. May allocate.
 */
int watch_reload(struct watch *watch, const struct watch_options *options);

/*
 * One reading of everything. `armed`: an incident is open, all threads are scanned each time. 0, or
 * a negative errno when /proc/stat cannot be read; then there is no new sample.
 */
int watch_take_sample(struct watch *watch, bool armed);

/* What the next samples say of the databases, until it is said anew; nothing before the first time. */
void watch_set_sql(
	struct watch *watch, const struct watch_sql *sql, const struct watch_sql_targets *targets);
const struct watch_sql_targets *watch_sql_targets(const struct watch *watch);

/* What the next sample says of the check of [health]. The target is copied. */
void watch_set_health(
	struct watch *watch, const struct watch_health *health, const char *target);
/* "": there is none. */
const char *watch_health_target(const struct watch *watch);

/* The newest sample; NULL before the first. Valid until the next is taken. */
const struct watch_sample *watch_last(const struct watch *watch);

/* What was near its end when the newest sample was taken. Valid until the next is. */
const struct watch_limits *watch_limits(const struct watch *watch);

/* The samples kept, the newest included; index 0 is the oldest. NULL beyond the count. */
unsigned int watch_history_count(const struct watch *watch);
const struct watch_sample *watch_history_get(const struct watch *watch, unsigned int i);

/*
 * Every whole disk of the newest sample, for slots 0 to WATCH_DISKS_MAX - 1; NULL for a free slot.
 * The serial is another one when a device has gone and come back, or another took the slot.
 */
const struct watch_disk *watch_disk_in_slot(
	const struct watch *watch, unsigned int slot, uint32_t *ret_serial);

/* The same of file systems, for slots 0 to WATCH_FILESYSTEMS_MAX - 1. */
const struct watch_filesystem *watch_filesystem_in_slot(
	const struct watch *watch, unsigned int slot, uint32_t *ret_serial);

/* And of control groups with a memory limit, for slots 0 to WATCH_CGROUPS_MAX - 1. */
const struct watch_cgroup *watch_cgroup_in_slot(
	const struct watch *watch, unsigned int slot, uint32_t *ret_serial);

/* From the newest /proc/diskstats, partitions and ignored devices too; NULL when unknown. */
const char *watch_disk_name(const struct watch *watch, uint32_t major, uint32_t minor);

/* Valid until the next sample or reload. */
const struct watch_process *watch_processes(const struct watch *watch, unsigned int *ret_count);

void watch_get_left_out(const struct watch *watch, struct watch_left_out *ret_left_out);

#endif
