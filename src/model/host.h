/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an incident says of the host beside disks and threads: memory, CPUs, limits of control
 * groups, stopped processes, full file systems, who serves a file system, the kernel's log, errors,
 * locks, journals.
 * Part of struct model; filled by model_add(), read by the verdict.
 * Never judges.
 */
#ifndef IOSTALL_MODEL_HOST_H
#define IOSTALL_MODEL_HOST_H

#include "model/servers.h"
#include "model/who.h"
#include "record/record.h"
#include "watch/kmsg.h"

#define MODEL_GROUPS_OF_MEMORY_MAX 4
#define MODEL_IO_LIMITS_MAX 4
#define MODEL_CPU_LIMITS_MAX 4
#define MODEL_ERRORS_MAX 4
#define MODEL_LOCKS_MAX 8
#define MODEL_JOURNALS_MAX 8

/* What the host or a control group evicted and needed again, in the samples since the trigger. */
struct model_memory {
	char path[RECORD_SUBJECT_SIZE]; /* "": of the host */
	uint64_t cgroup;		/* 0: not known */
	uint64_t limit_bytes;
	uint64_t reread_bytes;
	uint64_t swapped_in_bytes;  /* of the host without zram, of a group with it */
	uint64_t swapped_out_bytes; /* only of the host */
	uint64_t active_bytes;
	uint64_t reclaimed_bytes; /* only of the host */
	uint64_t limit_hits;
	uint64_t oom_kills;
};

/* A control group that used as much of a disk as it may. */
struct model_io_limit {
	char path[RECORD_SUBJECT_SIZE];
	uint64_t cgroup; /* 0: not known */
	int disk;	 /* index */
	enum record_io_limit kind;
	uint64_t per_s;
	uint64_t at_limit_ns;
};

/* A control group that got less than half of the CPU time that it wanted, in such samples. */
struct model_cpu_limit {
	char path[RECORD_SUBJECT_SIZE];
	double limit_cpus;
	bool is_since; /* some of these are from after the trigger */
	uint64_t at_limit_ns;
	uint64_t held_back_ns; /* added up over all CPUs */
	double wanted_ns;      /* the same, with what its threads ran */
};

/* Samples with many times more threads that could run than CPUs. */
struct model_cpu_shortage {
	uint64_t ns;
	uint64_t running_max;
	uint32_t cpus;
};

/* A watched process that was stopped, of several the one that was for longest; pid 0: none was. */
struct model_stopped {
	struct model_who who;
	struct model_who tracer;	  /* the debugger; pid 0: there is none */
	char cgroup[RECORD_SUBJECT_SIZE]; /* that is frozen; "": none is */
	uint32_t threads;		  /* at most; 0: not counted */
	uint64_t longest_ns;
	uint64_t in_incident_ns; /* the part of it since MODEL_LEAD_NS before the trigger */
};

/* The file system that has become full; "": none has. */
struct model_full {
	char mount[MODEL_PATH_SIZE];
	bool is_later;	/* while the incident was open */
	bool is_inodes; /* it has no inodes left, rather than space */
	double used_pct;
	uint64_t free_bytes;
	int disk;		 /* index; -1: not known */
	struct model_who writer; /* pid 0: nobody is known */
	char path[MODEL_PATH_SIZE];
	char relation[RECORD_RELATION_SIZE];
	uint64_t bytes;	      /* the size of that file */
	uint64_t grown_bytes; /* by how much it grew; 0: none grew, and it is the largest */
	bool is_changed;      /* in the incident */
	enum record_search search;
};

struct model_error {
	int32_t number; /* of errno; 0: free */
	uint32_t count;
	bool is_at_least;     /* some have no line */
	struct model_who who; /* of the first */
	int disk;	      /* index; -1: not known */
	char path[MODEL_PATH_SIZE];
};

struct model_kernel_log {
	uint32_t lines;
	uint32_t errors;	      /* of them those that are warnings or worse */
	uint32_t failures;	      /* and those that say that a disk or file system failed */
	enum kmsg_stopped fs_stopped; /* what the kernel did to a file system, on this disk */
	char fs_stopped_disk[KMSG_DISK_SIZE];
	char text[MODEL_PATH_SIZE]; /* of the first error, else of the first line */
	uint32_t killed;	    /* processes, for want of memory */
	bool is_killed_in_group;    /* of the first: of memory in its control group */
	struct model_who killed_who;
};

/* A lock of the kernel or a mutex that threads waited for, and who held it for longest. */
struct model_lock {
	uint32_t id; /* of the record; 0: free */
	enum record_kernel_lock kind;
	struct model_who process; /* of the threads that waited */
	struct record_dev dev;	  /* of the file system of the inode */
	uint64_t inode;
	char path[MODEL_PATH_SIZE];	 /* of the inode */
	uint32_t file;			 /* its key; 0: it is of no file */
	char function[RECORD_NAME_SIZE]; /* that takes it; "" */
	uint64_t longest_ns;
	uint64_t longest_at_ns; /* when that was seen */
	uint64_t waited_ns;	/* about: all that waited at once, as long as the longest of them */
	uint32_t waiters;	/* at most */
	uint32_t readers;	/* that held it then; 0: a writer did */
	int32_t fd;		/* of a pipe; -1: not known */
	bool tries;		/* its waiters do not sleep, but try again and again */
	struct model_who holder; /* pid 0: not known */
	bool is_inferred;	 /* the holder */
	uint64_t held_ns;	 /* at least */
	uint64_t held_until_ns;	 /* when that was seen */
	int32_t syscall;
	char holder_state;
	enum record_cause holder_cause;
	int32_t deadlocked_with;
	uint64_t connection_id;
};

/* The commits of a file system's journal while probes were armed. */
struct model_journal {
	int disk; /* index */
	char name[RECORD_DISK_NAME_SIZE];
	uint64_t longest_ns;
	uint64_t at_least_ns; /* of one that had begun before, or had not ended */
	uint64_t blocks;      /* of metadata in the longest */
	uint64_t data_pct;    /* of its time, to write the data of files first */
	uint64_t commits;
	uint64_t commit_ns;
	/* Who changed at least half of the metadata; pid 0: several of that name, or nobody. */
	struct model_who who;
	uint32_t processes;
	double share_pct;
};

struct model_host {
	struct model_memory memory;
	uint32_t memory_groups_count;
	struct model_memory memory_groups[MODEL_GROUPS_OF_MEMORY_MAX];
	uint32_t blocked_most; /* threads of watched processes that stood still at one look */
	double memory_full_max_pct;
	double memory_full_ns; /* in which all tasks were stalled on memory (PSI full) */
	uint32_t io_limits_count;
	struct model_io_limit io_limits[MODEL_IO_LIMITS_MAX];
	uint32_t cpu_limits_count;
	struct model_cpu_limit cpu_limits[MODEL_CPU_LIMITS_MAX];
	struct model_cpu_shortage cpu_shortage;
	struct model_stopped stopped;
	struct record_process_io before; /* who moved most just before the trigger */
	double health_failing_s;	 /* at most; 0: that did not open the incident */
	struct model_full full;
	struct model_servers servers;
	struct model_error errors[MODEL_ERRORS_MAX];
	struct model_kernel_log kernel;
	struct model_lock locks[MODEL_LOCKS_MAX];
	uint32_t journals_count;
	struct model_journal journals[MODEL_JOURNALS_MAX];
};

struct model;

void model_host_add_trigger(struct model *model, const struct record_trigger *trigger,
	bool is_later);
void model_host_add_sample(struct model *model, const struct record_sample *sample, bool is_before);
void model_host_add_error(struct model *model, const struct record_operation *op);
void model_host_add_kernel(struct model *model, const struct record_kernel *line);
void model_host_add_lock(struct model *model, const struct record_lock_wait *line);
void model_host_add_journal(struct model *model, const struct record_journal *line);

/* Whether the one path is the other, or a group in it. */
bool model_is_group_line(const char *a, const char *b);

#endif
