/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The watchdog: takes samples of the host, keeps the last of them, and finds the watched processes.
 * Owned by the daemon (or a command); read by the session, rules, databases and enrichment.
 * Never allocates while sampling, never opens a file of a process that takes its mmap_lock.
 */
#ifndef IOSTALL_WATCH_WATCH_H
#define IOSTALL_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "watch/cgroups.h"
#include "watch/clocks.h"
#include "watch/filesystems.h"
#include "watch/processes.h"
#include "record/structs.h"

/* A sample has 1.1 KB, locked from the start. This is 2 min at 100 ms, 20 min at 1 s. */
#define WATCH_HISTORY_MAX 1200

#define WATCH_SQL_TARGET_SIZE 32

struct watch;

/* Which target has the highest value of each; "": none has any. */
struct watch_sql_targets {
	char active[WATCH_SQL_TARGET_SIZE];
	char longest[WATCH_SQL_TARGET_SIZE];
	char in_state[WATCH_SQL_TARGET_SIZE];
	char unanswered[WATCH_SQL_TARGET_SIZE];
	char connections[WATCH_SQL_TARGET_SIZE];
};

/* Everything is copied. Lists may be NULL: no process, every device, no device ignored. */
struct watch_options {
	const char *procfs; /* NULL: /proc */
	const char *sysfs;  /* NULL: /sys */
	uint64_t interval_ns;
	uint64_t history_ns;
	const struct config_list *process;
	const struct config_list *device;
	const struct config_list *device_ignore;
	const struct config_list
		*filesystem; /* NULL: no file system is asked, and no thread is started for it */
	struct watch_clock clock; /* zero except in tests */
};

/* What did not fit into the fixed tables in the last sample, and what was not read in all. */
struct watch_left_out {
	uint32_t processes;   /* beyond WATCH_PROCESSES_MAX */
	uint32_t threads;     /* in D or stopped, beyond WATCH_THREADS_MAX */
	uint32_t disks;	      /* at work, beyond WATCH_DISKS_MAX: not judged */
	uint32_t filesystems; /* beyond WATCH_FILESYSTEMS_MAX */
	uint32_t cgroups;     /* once for each table of WATCH_CGROUPS_MAX that was full */
	uint64_t unread;      /* samples until now that were taken while a reader hung */
};

/* Copies what the watchdog needs from a configuration; roots and clock stay as they are. */
void watch_options_from_config(const struct config *config, struct watch_options *options);

/*
 * Allocates all memory that it will ever need, opens its files and finds the watched processes.
 * 0, -ENOMEM, or the error of opening the procfs root or its `stat`. Files that a kernel may lack
 * (pressure, diskstats) are not an error.
 */
int watch_new(const struct watch_options *options, struct watch **ret_watch);
struct watch *watch_free(struct watch *watch);

/*
 * Sets other patterns, interval and history; roots and clock stay. Samples and counters are kept;
 * with other patterns, watched processes are searched anew. 0, or -ENOMEM when nothing has changed.
 * May allocate.
 */
int watch_reload(struct watch *watch, const struct watch_options *options);

/*
 * Whether a thread is reading which control groups or units some processes belong to. The next
 * sample that is not armed will have them, and may have others read.
 */
bool watch_is_learning(const struct watch *watch);

/*
 * Whether a thread is reading the counters of control groups. The next sample will have them; one
 * that is taken before does not say how much of their limits the groups use.
 */
bool watch_is_reading(const struct watch *watch);

/*
 * Whether all tasks waited for memory for a good part of the newest interval. Whoever opens a file
 * of the kernel may then, too, and hold a lock of it meanwhile: who waits only for an incident to
 * end before doing so waits for the end of this as well.
 */
bool watch_lacks_memory(const struct watch *watch);

/*
 * Begins a sample: reads what the host says, and has a thread scan those of watched processes,
 * which may hang. `armed`: an incident is open, or the host lacks memory, so all of them are
 * scanned each time, and nothing is opened that can be left for later. 0, or a negative errno when
 * /proc/stat cannot be read; then there is no new sample.
 */
int watch_begin_sample(struct watch *watch, bool armed);
/* It can be read once the sample that was begun may be ready. */
int watch_sample_fd(const struct watch *watch);
/* Whether there is nothing more to wait for. Empties the descriptor. */
bool watch_sample_is_ready(struct watch *watch);
/*
 * The sample that was begun is the newest one from now on; see watch_has_threads(). False: none was
 * begun.
 */
bool watch_end_sample(struct watch *watch, bool armed);

/*
 * The same in one call, for those who may wait: as long as a scan may take, and 5 s if it hangs.
 */
int watch_take_sample(struct watch *watch, bool armed);

/*
 * Whether the threads of watched processes have been scanned for the newest sample. Else it says
 * what the scan before has found, and that it is not complete.
 */
bool watch_has_threads(const struct watch *watch);

/*
 * For how much of the newest interval threads may have waited for I/O, in percent: for as long as
 * disks were busy, where the kernel counted clearly more and no thread stays in D. What is beyond
 * that waited for a socket through io_uring. Else as long as the kernel says: INFINITY; NAN: there
 * was no time to look at all threads.
 */
double watch_io_pct(const struct watch *watch);

/* The highest number of a CPU that is on-line, plus 1; 0: not known. */
uint32_t watch_cpus_end(const struct watch *watch);

/* The name of a watched process; "": it is none, or no longer there. */
void watch_copy_comm(const struct watch *watch, int32_t pid, char *ret_comm, size_t size);
/* Whether a process is watched, or was under that name while it ran. */
bool watch_matches(const struct watch *watch, int32_t pid, const char *comm);

/*
 * Sets what the next samples say of the databases, until it is set again. Before the first call,
 * samples have no databases.
 */
void watch_set_sql(struct watch *watch, const struct record_sql_activity *sql,
	const struct watch_sql_targets *targets);
const struct watch_sql_targets *watch_sql_targets(const struct watch *watch);

/* Sets what the next samples say of mutexes of programs. */
void watch_set_mutex(struct watch *watch, const struct record_held_mutex *mutex);
/* The same of other locks, of which single threads wait for long. */
void watch_set_lock(struct watch *watch, const struct record_lock_stand *lock);
/* The next sample says less of them, because whoever looked for them hangs. */
void watch_count_unread(struct watch *watch);
/* Of the last one that was present; 0: there was none. */
int32_t watch_mutex_pid(const struct watch *watch);
int32_t watch_lock_pid(const struct watch *watch);

/* Of the last process that a sample says is stopped; 0: there was none. */
int32_t watch_stopped_pid(const struct watch *watch);

/* Sets what the next samples say of the health check. The target is copied. */
void watch_set_health(struct watch *watch, const struct record_health *health, const char *target);
/* "": there is no health check. */
const char *watch_health_target(const struct watch *watch);

/* Errors of storage in the kernel's log, without a quiet minute in between. */
struct watch_kernel_errors {
	uint32_t lines;
	/* Changes with each that names another disk, or a process that was killed. */
	uint32_t serial;
	uint64_t begun_ns; /* when it changed */
	uint64_t last_ns;
	char device[RECORD_DISK_NAME_SIZE]; /* the disk that the first of these names; "" */
	uint32_t named_count;
	char named[8][RECORD_DISK_NAME_SIZE];
};

/* The line has come since the newest sample. is_kill: it says that a watched process was killed. */
void watch_note_kernel_error(struct watch *watch, const char *text, bool is_kill);
const struct watch_kernel_errors *watch_kernel_errors(const struct watch *watch);

/* The newest sample; NULL before the first. Valid until the next is taken. */
const struct record_reading *watch_last(const struct watch *watch);

/* File systems and control groups near their limits in the newest sample, valid until the next. */
const struct record_limits *watch_limits(const struct watch *watch);

/* The samples kept, the newest included; index 0 is the oldest. NULL beyond the count. */
unsigned int watch_history_count(const struct watch *watch);
/* Whether it goes back for as long as it can. */
bool watch_history_is_full(const struct watch *watch);
const struct record_reading *watch_history_get(const struct watch *watch, unsigned int i);

/*
 * The whole disk in a slot, 0 to WATCH_DISKS_MAX - 1, in the newest sample; NULL: the slot is free.
 * The serial changes when the device has gone and come back, or when another one took the slot.
 */
const struct record_disk *watch_disk_in_slot(const struct watch *watch, unsigned int slot,
	uint32_t *ret_serial);
/* Changes with each disk that appears. */
uint32_t watch_disks_generation(const struct watch *watch);

/* The same for file systems, in slots 0 to WATCH_FILESYSTEMS_MAX - 1. */
const struct record_file_system *watch_filesystem_in_slot(const struct watch *watch,
	unsigned int slot, uint32_t *ret_serial);

/* The same for control groups that have a memory limit, in slots 0 to WATCH_CGROUPS_MAX - 1. */
const struct record_cgroup *watch_cgroup_in_slot(const struct watch *watch, unsigned int slot,
	uint32_t *ret_serial);

/* The same for those that have a CPU limit, in slots 0 to CPU_LIMITS_GROUPS_MAX - 1. */
const struct record_cpu_limited *watch_cpu_limit_in_slot(const struct watch *watch,
	unsigned int slot, uint32_t *ret_serial);

/*
 * Of the control groups that a watched process is in, the one whose CPU limit held its threads back
 * most in the last sample; NULL: none, or not known.
 */
const struct record_cpu_limited *watch_cpu_limit_of(const struct watch *watch, int32_t pid);

/* The name in the newest /proc/diskstats, also of partitions and ignored devices; NULL: unknown. */
const char *watch_disk_name(const struct watch *watch, uint32_t major, uint32_t minor);

/*
 * The next device of /proc/diskstats, of any kind: `at` begins as 0. The name is valid until the
 * next sample. False: there are no more.
 */
bool watch_next_disk(const struct watch *watch, uint32_t *at, struct record_dev *ret_dev,
	const char **ret_name);

/* Valid until the next sample or reload. */
const struct watch_process *watch_processes(const struct watch *watch, unsigned int *ret_count);

void watch_get_left_out(const struct watch *watch, struct watch_left_out *ret_left_out);

#endif
