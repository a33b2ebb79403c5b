/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one reading of the host says: plain data, filled by the watchdog.
 * Read by rules, the session and the record.
 * Never owns memory.
 */
#ifndef IOSTALL_WATCH_SAMPLE_H
#define IOSTALL_WATCH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#define WATCH_DISK_NAME_SIZE 32
/* What a rule's value is of, when it is no disk: a mount point, a cgroup; of a longer one the end. */
#define WATCH_SUBJECT_SIZE 96
#define WATCH_MOUNT_SIZE 64
#define WATCH_SQL_TARGET_SIZE 32
/* Whole disks that are judged; what a host has beyond is counted as left out. */
#define WATCH_DISKS_MAX 256
/* What a stored sample keeps: the devices with the most to say. */
#define WATCH_SAMPLE_DISKS_MAX 8
/* The fullest, in struct watch_limits. */
#define WATCH_LIMITS_FILESYSTEMS_MAX 4
#define WATCH_LIMITS_CGROUPS_MAX 2

struct watch_psi {
	bool present;
	double some_pct;
	double full_pct;
};

struct watch_disk {
	char name[WATCH_DISK_NAME_SIZE];
	uint32_t major;
	uint32_t minor;
	double util_pct;
	uint64_t inflight;	 /* requests, now */
	double read_await_ms;	 /* 0 when none finished in the interval */
	double write_await_ms;
	double queue;		 /* mean queue depth over the interval */
	uint64_t read_bytes;	 /* in the interval */
	uint64_t write_bytes;
	uint64_t no_completion_ns; /* requests in flight and nothing finished for this long */
};

struct watch_threads {
	uint32_t scanned;     /* threads whose state was read for this sample */
	uint32_t blocked;     /* in D over two scans with the same context-switch counts */
	int32_t blocked_pid;  /* one of them, 0 when none */
	int32_t blocked_tid;
	bool complete;	      /* false when the scan stopped at its time budget */
};

/* What the sessions with the databases last said; filled from outside, see watch_set_sql(). */
struct watch_sql {
	bool present;	     /* else there is nothing to say of now */
	int32_t active;	     /* statements running now; -1: not known, nor is what follows */
	double longest_s;    /* the one that has run longest */
	int32_t in_state;    /* statements in one of the states of watch.sql_state */
	double unanswered_s; /* how long a question has been open; 0: none is */
};

/* Which target has the highest value of each; "": none has any. */
struct watch_sql_targets {
	char active[WATCH_SQL_TARGET_SIZE];
	char longest[WATCH_SQL_TARGET_SIZE];
	char in_state[WATCH_SQL_TARGET_SIZE];
	char unanswered[WATCH_SQL_TARGET_SIZE];
};

/* The user's own check, see health.h; filled from outside, see watch_set_health(). */
struct watch_health {
	bool present;	  /* else there is none */
	/* No answer since then; 0: the last check was good; NAN: none so far, or nothing asks. */
	double failing_s;
	double answer_ms; /* how long the last good one took */
	uint32_t serial;  /* another one when another check took its place */
};

struct watch_filesystem {
	char mount[WATCH_MOUNT_SIZE]; /* where; of a longer path "..." and its end */
	uint32_t major;
	uint32_t minor;
	double used_pct;     /* as df(1) has it; NAN: not known */
	double inodes_pct;   /* NAN also where they are made as needed */
	uint64_t free_bytes; /* for others than root */
};

/* A control group with a memory limit. */
struct watch_cgroup {
	char path[WATCH_SUBJECT_SIZE]; /* of a longer one "..." and its end */
	uint64_t limit_bytes;
	uint64_t current_bytes;
	uint64_t held_bytes; /* of current: what is left when file pages and slabs are given back */
	double used_pct;     /* held of the limit */
	double growth_pct;   /* of the limit, by which held grew in a minute; NAN: not known yet */
};

/*
 * What is near its end, as of the newest sample. Beside it, because 60 of them in the history would be
 * 50 KB of locked memory for what changes slowly.
 */
struct watch_limits {
	uint32_t filesystems_count;
	struct watch_filesystem filesystems[WATCH_LIMITS_FILESYSTEMS_MAX];
	uint32_t cgroups_count;
	struct watch_cgroup cgroups[WATCH_LIMITS_CGROUPS_MAX];
};

struct watch_sample {
	uint64_t mono_ns;
	uint64_t real_ns;
	uint64_t interval_ns; /* measured, since the sample before; 0 in the first */
	double iowait_pct;
	double busy_pct;
	double iowait_cpus; /* CPU-seconds per second */
	uint64_t procs_running;
	uint64_t procs_blocked;
	struct watch_psi psi_io;
	struct watch_psi psi_memory;
	struct watch_psi psi_cpu;
	struct watch_threads threads;
	struct watch_sql sql;
	struct watch_health health;
	uint32_t disks_count;
	uint32_t disks_left_out; /* judged by the rules, but not kept here */
	struct watch_disk disks[WATCH_SAMPLE_DISKS_MAX];
};

#endif
