/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the lines of the open incident say about devices, waiting threads and load, in fixed memory.
 * The session fills it with each line that it writes; the other files of this room read it.
 * Never allocates and never decides; what does not fit is counted.
 */
#ifndef IOSTALL_VERDICT_FACTS_H
#define IOSTALL_VERDICT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "record/record.h"
#include "util/clock.h"
#include "watch/kmsg.h"

/* The facts are locked into memory, 260 KB in all. What is beyond a limit is only counted. */
#define VERDICT_DEVICES_MAX 16
/*
 * A thread has an entry for each device and each kind of thing that it waited for. When the entries
 * of single threads are used up, one stands for a crowd: all further threads of the same name and
 * control group, or of the same process, that waited alike.
 */
#define VERDICT_WAITERS_MAX 320
#define VERDICT_CROWDS_MAX 31
#define VERDICT_SINGLES_MAX (VERDICT_WAITERS_MAX - VERDICT_CROWDS_MAX)
/* Threads in crowds: a power of two, of which three quarters are used. */
#define VERDICT_CROWD_THREADS 16384
/* Files with programs that were slowed down for their dirty pages, or that waited as they wrote. */
#define VERDICT_DIRTIERS_MAX 48
#define VERDICT_READERS_MAX 16
/* Processes with such a thread. */
#define VERDICT_MAP_HOLDERS_MAX 4
/* Locks of the kernel that threads waited for while it was asked who holds them. */
#define VERDICT_LOCKS_MAX 8
/* Control groups that were at their memory limit. */
#define VERDICT_GROUPS_MAX 4
/* CPU limits that control groups were at. */
#define VERDICT_CPU_LIMITS_MAX 4
/* I/O limits that a control group was at, for a device each. */
#define VERDICT_IO_LIMITS_MAX 4
#define VERDICT_ERRORS_MAX 4
/* File systems that were frozen. */
#define VERDICT_FROZEN_MAX 16
/* A snapshot freezes a file system for some ten milliseconds; only a longer freeze is a fault. */
#define VERDICT_FROZEN_NS NSEC_PER_SEC
/* Disks that stand on others. */
#define VERDICT_STACK_MAX 24
/* What a sentence says of a statement that holds a lock. */
#define VERDICT_LOCK_TEXT_SIZE 160
/*
 * Ten threads for each of the six busiest devices. On further devices the workers of one statement
 * are not added up.
 */
#define VERDICT_SHARES_MAX 64
/* Files that kernel threads write back. */
#define VERDICT_FILES_MAX 16
#define VERDICT_PATH_SIZE 160
#define VERDICT_UNIT_SIZE 96
/*
 * Samples of the last seconds before the trigger belong to the incident: its cause was at work
 * already.
 */
#define VERDICT_LEAD_NS 5000000000ULL
/* Utilisation from which a device counts as busy all the time, and below which as hardly used. */
#define VERDICT_BUSY_PCT 80
#define VERDICT_IDLE_PCT 50
/*
 * A device that serves requests in parallel is busy all the time long before it is at its limit,
 * and one whose requests come in bursts is at it without being busy all the time. A queue and long
 * waits in it prove a load in both cases.
 */
#define VERDICT_LOADED_QUEUE 2
#define VERDICT_LOADED_AWAIT_MS 20
/* Samples since the trigger that say how evenly a busy device works. */
#define VERDICT_RATES_MAX 16

enum verdict_wait {
#define CAUSE_KIND(id, text) VERDICT_WAIT_##id,
#include "record/causes.def"
#undef CAUSE_KIND
	VERDICT_WAIT_COUNT,
};

enum verdict_by {
	VERDICT_BY_PROCESS,
	VERDICT_BY_PROGRAM, /* the first process that is no kernel thread */
	VERDICT_BY_THREAD,
	VERDICT_BY_FILE,
	VERDICT_BY_UNIT, /* all processes of a systemd unit or container */
	VERDICT_BY_COUNT,
};

struct verdict_who {
	int32_t pid;
	int32_t tid;
	char comm[16];
};

enum verdict_kind {
	VERDICT_READ,
	VERDICT_WRITE,
	VERDICT_DISCARD,
	VERDICT_FLUSH,
	VERDICT_KINDS,
};

/*
 * The process, thread, file or unit that a device was busy with for longest, since it was traced.
 */
struct verdict_load {
	uint32_t count; /* how many shared the device, at most ten; 0: nobody is known */
	struct verdict_who who;
	uint64_t requests[VERDICT_KINDS];
	uint64_t bytes; /* read, written and discarded */
	uint64_t read_bytes;
	uint64_t busy_ns;
	/* Of a file: what had begun before, which is not in the others. */
	uint64_t before_requests;
	uint64_t before_bytes;
	uint64_t before_ns;
	bool inferred;
	bool uncertain;	  /* it is not certain that it had dirtied what was written back */
	const char *role; /* what its name tells, until it is the program's; NULL: nothing */
};

/* A process that is no kernel thread, and what the device was busy with for it. */
struct verdict_process {
	uint64_t busy_ns;
	int32_t pid;
	char comm[16];
};

/* Whoever used a device most, and who came next. */
#define VERDICT_PROCESSES_MAX 3

/*
 * Which file it is: by device and inode where both are known, else by its path. Numbers of inodes
 * may be those of several subvolumes where the device is anonymous (major 0): there the path
 * counts, too.
 */
struct verdict_file_id {
	struct record_dev dev; /* of its file system; 0:0: not known */
	uint64_t inode;	       /* 0: not known */
	uint64_t path_key;     /* 0: not known */
};

/* What was written back to a file. */
struct verdict_file {
	struct verdict_file_id id;
	uint64_t busy_ns;
	uint64_t bytes;
	uint64_t before_ns; /* with requests from before tracing, as in struct verdict_load */
	uint64_t before_bytes;
	uint32_t before_requests;
	uint32_t write_requests;
	int8_t device; /* index */
};

/* The share of one thread. The shares of a statement's workers are added up. */
struct verdict_share {
	uint64_t bytes;
	uint64_t read_bytes;
	uint64_t busy_ns;
	uint32_t requests[VERDICT_KINDS];
	int32_t pid;
	int32_t tid;
	int8_t device; /* index */
	bool kernel;   /* it is a thread of the kernel, with this name */
	char comm[16];
};

/* What a device did during some time, according to the samples. */
struct verdict_work {
	uint64_t ns;
	uint64_t bytes[VERDICT_KINDS];
	uint64_t requests[VERDICT_KINDS];
	uint64_t ticks_ns[VERDICT_KINDS]; /* what they took, added up */
	double queue_ns_sum;		  /* queue depth multiplied by time */
	double util_ns_sum;
	double pressure_ns; /* in which all tasks were stalled on I/O (PSI full) */
};

/* What a device moved in the samples since the trigger; struct verdict_memory is about the same. */
struct verdict_since {
	uint64_t ns;
	uint64_t read_bytes;
	uint64_t write_bytes;
};

struct verdict_device {
	uint32_t major;
	uint32_t minor;
	char name[RECORD_DISK_NAME_SIZE];
	char label[RECORD_DISK_NAME_SIZE]; /* the name that people know; empty: the same */
	bool sampled;			   /* it is a whole disk, which the watchdog samples */
	/* Since VERDICT_LEAD_NS before the trigger: samples that say how busy it was at most. */
	uint32_t samples;
	uint32_t newest_sample;	      /* that it is in, counted as verdict_facts.samples */
	double left_out_max_pct;      /* util at most, in samples that leave it out */
	struct verdict_work baseline; /* up to VERDICT_LEAD_NS before the trigger */
	struct verdict_work busy;     /* in samples at VERDICT_BUSY_PCT or with a queue */
	uint32_t rates_count;
	float rates[VERDICT_RATES_MAX]; /* requests a second in samples as of `busy` since it */
	struct verdict_since since;
	/* In the last VERDICT_LEAD_NS before the trigger. */
	uint64_t lead_read_bytes;
	uint64_t lead_write_bytes;
	/* Of the files that were read most, and what of it was more than they have. */
	uint64_t files_read_bytes;
	uint64_t files_again_bytes;
	uint64_t busy_ns;	/* time at work in all samples since */
	uint64_t busy_since_ns; /* of it in samples as of `busy`, since the trigger */
	uint64_t busiest_ns;	/* the most of it in one sample */
	double util_max_pct;
	double read_await_max_ms;
	double write_await_max_ms;
	uint64_t in_flight_max;
	/* The longest time without a completion, and the requests that were in flight then. */
	uint64_t no_completion_ns;
	uint64_t no_completion_in_flight;
	uint64_t suspended_ns; /* how long the device mapper held its requests back */
	/* From its final `device` line. */
	bool has_totals;
	uint64_t requests;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t traced_ns; /* how long it was busy with requests that began when it was traced */
	uint64_t flush_ns;  /* of it with flushes */
	uint64_t before_ns; /* and with those that had begun before */
	struct record_latency queue_time;
	struct record_latency device_time;
	struct verdict_load load[VERDICT_BY_COUNT];
	uint32_t processes_count;
	struct verdict_process processes[VERDICT_PROCESSES_MAX];
	char file
		[VERDICT_PATH_SIZE]; /* of load[VERDICT_BY_FILE]; a long path loses its beginning */
	struct verdict_file_id file_id;
	char unit[VERDICT_UNIT_SIZE]; /* of load[VERDICT_BY_UNIT] */
	uint64_t cgroup;
	/* Operations on its files. */
	uint64_t operations;
	uint64_t finished_ns; /* sum of those that have returned */
	uint64_t hanging_ns;  /* the longest of those that have not */
	uint64_t longest_ns;  /* the longest that waited for a device */
};

/* What one thread waited for one kind of thing on one device. */
struct verdict_waiter {
	uint64_t waited_ns; /* since VERDICT_LEAD_NS before the trigger, no time twice */
	uint64_t until_ns;  /* the end of what is in it */
	uint64_t longest_ns;
	uint64_t written_ns; /* the longest in a write or fsync */
	uint64_t cgroup;
	int32_t tid; /* 0: free; of a crowd, the one that waited longest */
	int32_t pid;
	uint32_t threads; /* 1, or how many are in the crowd */
	int8_t device;	  /* index, -1: none */
	uint8_t wait;
	bool kernel;
	bool processes; /* a crowd of several processes */
	/* It waited before the incident: a victim only of what others began to wait for, too. */
	bool early;
	char comm[16];
};

/* It has an entry of its own, too. */
#define VERDICT_IS_SINGLE (1U << VERDICT_CROWDS_MAX)

/* A thread that is in the entry of a crowd. */
struct verdict_crowd_thread {
	int32_t tid;	   /* 0: free */
	uint32_t crowds;   /* a bit for each that it is in, and VERDICT_IS_SINGLE */
	uint32_t until_ms; /* its waits count until then, from VERDICT_LEAD_NS before the trigger */
};

/* A disk, and the names of those that it stands on, with a newline between them. */
struct verdict_stack {
	char name[RECORD_DISK_NAME_SIZE];
	char label[RECORD_DISK_NAME_SIZE]; /* "vg0-mysql"; empty: it has none */
	char below[2 * RECORD_DISK_NAME_SIZE];
};

/* All threads that waited for one kind of thing. */
struct verdict_wait_facts {
	uint64_t longest_ns;
	uint64_t kernel_longest_ns;
	enum record_cause waits_for;  /* of the longest */
	struct verdict_who who;	      /* of the longest, no kernel thread */
	char path[VERDICT_PATH_SIZE]; /* of its file */
	struct verdict_who kernel;    /* of the longest kernel thread */
	int8_t device;		      /* of the longest, -1: none */
	struct record_dev dev;	      /* of its file */
};

/* A control group that used as much of a device as it may. */
struct verdict_io_limit {
	char path[RECORD_SUBJECT_SIZE];
	uint64_t cgroup; /* 0: not known */
	int8_t device;	 /* index */
	enum record_io_limit kind;
	uint64_t per_s;
	uint64_t at_limit_ns;
};

/*
 * A control group that got less than half of the CPU time that it wanted, in samples in which it
 * did.
 */
struct verdict_cpu_limit {
	char path[RECORD_SUBJECT_SIZE];
	double limit_cpus;
	uint64_t at_limit_ns;
	uint64_t held_back_ns; /* added up over all CPUs */
	double wanted_ns;      /* the same, with what its threads ran */
};

/* Samples with many times more threads that could run than CPUs. */
struct verdict_cpu_shortage {
	uint64_t ns;
	uint64_t running_max;
	uint32_t cpus;
};

/* A watched process that was stopped, of several the one that was for longest; pid 0: none was. */
struct verdict_stopped {
	struct verdict_who who;
	struct verdict_who tracer; /* the debugger; pid 0: there is none */
	uint32_t threads;	   /* at most; 0: not counted */
	uint64_t longest_ns;
	uint64_t in_incident_ns; /* the part of it since VERDICT_LEAD_NS before the trigger */
	char cgroup[RECORD_SUBJECT_SIZE]; /* that is frozen; "": none is */
};

/* What a watched process moved in the last seconds before the trigger, on all disks. */
struct verdict_process_io {
	struct verdict_who who; /* pid 0: nobody is known */
	uint64_t over_ns;
	uint64_t read_bytes;
	uint64_t write_bytes;
};

/* Of the file system on a device, the commits while probes were armed. */
struct verdict_journal {
	uint64_t longest_ns;		  /* of those that were seen whole */
	uint64_t at_least_ns;		  /* of one that had begun before, or had not ended */
	uint64_t blocks;		  /* of metadata in the longest */
	uint64_t data_pct;		  /* of its time, to write the data of files first */
	struct verdict_who who;		  /* changed most of the metadata; pid 0: nobody did half */
	char name[RECORD_DISK_NAME_SIZE]; /* of the disk or partition that it is on */
	uint64_t commits;
	uint64_t commit_ns; /* of all that were seen whole */
	/* The same however little it was; pid 0: so many processes of one name together. */
	struct verdict_who committer;
	uint32_t committers;
	double committer_pct;
	double share_pct;
};

/* Who serves the file system on which threads waited longest for a server. */
struct verdict_file_server {
	struct record_dev dev;	/* 0:0: there is none */
	struct verdict_who who; /* pid 0: not known */
	char state;		/* T if it was stopped at any time, else its last one */
	bool inferred;
	char mount[RECORD_MOUNT_SIZE];
	char source[RECORD_MOUNT_SIZE];
};

/*
 * Operations that hung all the time while the host was well, for example on a file server that is
 * gone for days.
 */
struct verdict_earlier {
	uint32_t threads;
	uint64_t longest_ns;
	struct verdict_who who;	      /* of the longest */
	char path[VERDICT_PATH_SIZE]; /* of its file */
	enum record_cause waits_for;
};

struct verdict_writer {
	struct verdict_who who; /* the first that was seen; pid 0: nobody was */
	bool several;		/* processes */
	bool threads;		/* several, of this process */
};

/* Who writes a file. */
struct verdict_dirtier {
	struct verdict_file_id id;
	struct verdict_writer slowed;  /* because too many of its pages were dirty */
	struct verdict_writer waiting; /* in a write for something else, or until it was written */
};

/* Who waits for reads of a file. */
struct verdict_reader {
	struct verdict_file_id id;
	struct verdict_writer by;
};

/* A thread that held the lock of its process's memory map while it waited for something else. */
struct verdict_map_holder {
	struct verdict_who who; /* tid 0: free */
	uint64_t longest_ns;
	enum record_cause waits_for;
	char function[RECORD_NAME_SIZE]; /* that it waited in; "" */
};

/* A lock of the kernel or a mutex that threads waited for, and who held it for longest. */
struct verdict_kernel_lock {
	uint32_t id; /* of the record; 0: free */
	enum record_kernel_lock kind;
	struct verdict_who process;   /* of the threads that waited */
	char path[VERDICT_PATH_SIZE]; /* of the inode */
	uint64_t longest_ns;
	uint64_t waited_ns; /* about: all that waited at once, as long as the longest of them */
	uint32_t waiters;   /* at most */
	uint32_t readers;   /* that held it then; 0: a writer did */
	struct verdict_who holder; /* tid 0: not known */
	uint64_t held_ns;	   /* at least */
	int32_t syscall;
	char holder_state;
	enum record_cause holder_waits_for;
	int32_t deadlocked_with; /* thread that the holder of a mutex waits for, and that for it */
	uint64_t connection_id;
};

/* Operations that returned an error which the disk or a full file system leads to. */
struct verdict_error {
	int32_t number; /* of errno; 0: free */
	uint32_t count;
	bool at_least;		/* some have no line */
	struct verdict_who who; /* of the first */
	int8_t device;		/* index, of the first; -1: not known */
	char path[VERDICT_PATH_SIZE];
};

/* The file system that opened the incident, or whose rule fired in it. */
struct verdict_full {
	char mount[VERDICT_PATH_SIZE]; /* empty: none did */
	bool later;		       /* it became full when the incident was open already */
	bool inodes;		       /* it has none left, rather than space */
	double used_pct;
	uint64_t free_bytes;
	int8_t device;		   /* index, -1: not known */
	struct verdict_who writer; /* pid 0: nobody is known */
	char path[VERDICT_PATH_SIZE];
	uint64_t written_bytes;	   /* the size of that file */
	uint64_t grown_bytes;	   /* by how much it grew; 0: none grew, and it is the largest */
	bool changed;		   /* in the incident */
	enum record_search search; /* the last one */
};

/* A question that a database has not answered. */
struct verdict_unresponsive {
	uint64_t ns;  /* 0: none */
	bool stopped; /* the server's process was stopped at some time during it */
};

struct verdict_database {
	char target[RECORD_NAME_SIZE]; /* "main" */
	struct verdict_who server;     /* pid 0: not known */
	struct verdict_unresponsive now;
	struct verdict_unresponsive longest;
};

/* The session at the end of a chain of sessions that wait for one another. */
struct verdict_holder {
	uint64_t connection_id; /* 0: not known */
	struct verdict_who
		who;	     /* its thread, or the server where that is not known; pid 0: unknown */
	bool idle;	     /* it has a transaction open, and no statement for elapsed_ns */
	uint64_t elapsed_ns; /* of its statement */
	uint64_t transaction_ns;
	uint32_t candidates; /* 0: the server says so; else it is the likeliest of so many */
	char user[RECORD_NAME_SIZE];
	char text[VERDICT_LOCK_TEXT_SIZE]; /* its statement, or when idle its last one; "" */
};

/* Sessions of a database that wait for a lock, in one answer. */
struct verdict_queue {
	char target[RECORD_NAME_SIZE];
	uint32_t waiters; /* 0: there was no such answer */
	uint64_t longest_ns;
	uint64_t waited_ns;   /* all together */
	uint64_t answered_ns; /* when the database said so; 0: not known */
	/* The part of waited_ns since VERDICT_LEAD_NS before the trigger: verdict_note_queue(). */
	uint64_t cost_ns;
	enum record_lock lock;
	char object[RECORD_NAME_SIZE]; /* "shop.orders"; "" */
	struct verdict_holder holder;
	/* The one of them that waits for the holder and has most others behind it; 0: none has. */
	uint32_t behind_first;
	uint64_t first_id;
	char first_text[VERDICT_LOCK_TEXT_SIZE];
};

/* What the host or a control group evicted and needed again, in the samples since the trigger. */
struct verdict_memory {
	char path[RECORD_SUBJECT_SIZE]; /* "" of the host */
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

struct verdict_facts {
	uint64_t trigger_ns;
	uint64_t min_stall_ns;
	/* Operations that began before this time are noted in `earlier`; 0: none are. */
	uint64_t earlier_than_ns;
	char rule[RECORD_NAME_SIZE]; /* that opened it, or "manual"; "" before its first line */
	double health_failing_s;     /* at most, if that is the health check */
	bool closing;		     /* each operation that hangs has its last line now */
	struct verdict_earlier earlier;
	struct verdict_full full;
	struct verdict_file_server file_server;
	uint32_t dirtiers_count;
	struct verdict_dirtier dirtiers[VERDICT_DIRTIERS_MAX];
	uint32_t readers_count;
	struct verdict_reader readers[VERDICT_READERS_MAX];
	uint32_t noted;	  /* lines of other operations of programs */
	uint32_t samples; /* since VERDICT_LEAD_NS before the trigger */
	uint64_t operations;
	uint64_t longest_ns;
	uint32_t waiters_left_out;
	struct verdict_map_holder map_holders[VERDICT_MAP_HOLDERS_MAX];
	struct verdict_kernel_lock locks[VERDICT_LOCKS_MAX];
	struct verdict_error errors[VERDICT_ERRORS_MAX];
	uint32_t kernel_lines;
	uint32_t kernel_errors;	      /* of them those that are warnings or worse */
	uint32_t kernel_failures;     /* and those that say that a disk or file system failed */
	enum kmsg_stopped fs_stopped; /* what the kernel did to a file system, on this disk */
	char fs_stopped_disk[KMSG_DISK_SIZE];
	char kernel_text[VERDICT_PATH_SIZE]; /* of the first of these, or else the first line */
	uint32_t killed;		     /* processes, by the kernel, for want of memory */
	bool killed_in_group;		     /* of the first: of memory in its control group */
	struct verdict_who killed_who;	     /* the first */
	double memory_full_max_pct;
	double memory_full_ns; /* in which all tasks were stalled on memory (PSI full) */
	struct verdict_memory host;
	uint32_t groups_count;
	struct verdict_memory groups[VERDICT_GROUPS_MAX];
	uint32_t io_limits_count;
	struct verdict_io_limit io_limits[VERDICT_IO_LIMITS_MAX];
	struct verdict_process_io before; /* whoever moved most */
	struct verdict_stopped stopped;
	uint32_t cpu_limits_count;
	struct verdict_cpu_limit cpu_limits[VERDICT_CPU_LIMITS_MAX];
	struct verdict_cpu_shortage cpu_shortage;
	uint32_t shares_count;
	struct verdict_share shares[VERDICT_SHARES_MAX];
	uint32_t frozen_count;
	struct record_dev frozen[VERDICT_FROZEN_MAX]; /* for VERDICT_FROZEN_NS or longer */
	uint32_t files_count;
	struct verdict_file files[VERDICT_FILES_MAX];
	uint32_t devices_count;
	struct verdict_device devices[VERDICT_DEVICES_MAX];
	struct verdict_journal journals[VERDICT_DEVICES_MAX]; /* of the same devices */
	struct verdict_wait_facts waits[VERDICT_WAIT_COUNT];
	struct verdict_waiter waiters[VERDICT_WAITERS_MAX]; /* the last ones are of crowds */
	uint32_t crowd_threads_count;
	struct verdict_crowd_thread crowd_threads[VERDICT_CROWD_THREADS];
	uint32_t stack_count;
	struct verdict_stack stack[VERDICT_STACK_MAX];
	struct verdict_database databases[CONFIG_SQL_TARGETS_MAX];
	struct verdict_queue queue; /* of all answers the one that had waited most */
};

void verdict_begin(struct verdict_facts *f, uint64_t trigger_ns, uint64_t min_stall_ns);

/*
 * Whether the operation hung all the time while the host was well, so that it neither explains the
 * incident nor keeps it open.
 */
bool verdict_is_earlier(const struct verdict_facts *f, uint64_t start_mono_ns);

/* dev 0:0, inode 0: not known. Of the path only a hash is kept. */
struct verdict_file_id verdict_file_id_of(const struct record_dev *dev, uint64_t inode,
	const char *path);
/* The end of a path is the name of the file: a long one loses its beginning. */
bool verdict_is_same_file(const struct verdict_file_id *a, const struct verdict_file_id *b);

void verdict_set_path(char to[static VERDICT_PATH_SIZE], const char *path);
void verdict_set_who(struct verdict_who *who, int32_t pid, int32_t tid, const char *comm);

/* Of lines without facts it notes nothing. */
void verdict_note_line(struct verdict_facts *f, const struct record *r);
/* What it calls, one function for each type of line that has facts. */
void verdict_note_open(struct verdict_facts *f, const struct record_open *open);
/*
 * A rule has opened the incident, or fires `later` in it. True: a file system becomes full, and is
 * the first one that does.
 */
bool verdict_note_full(struct verdict_facts *f, const struct record_trigger *trigger, bool later);
void verdict_note_sample(struct verdict_facts *f, const struct record_sample *sample);
void verdict_note_operation(struct verdict_facts *f, const struct record_operation *op,
	bool finished);
/* An operation that failed; others have no such number. */
void verdict_note_error(struct verdict_facts *f, const struct record_operation *op);
void verdict_note_device(struct verdict_facts *f, const struct record_device *device);
void verdict_note_io_by(struct verdict_facts *f, const struct record_io_by *by);
void verdict_note_journal(struct verdict_facts *f, const struct record_journal *line);
void verdict_note_kernel(struct verdict_facts *f, const struct record_kernel *line);
/* In kernel_lock.c. */
void verdict_note_lock(struct verdict_facts *f, const struct record_lock_wait *lock);

/* Called each second and at each answer: how long a database has been unresponsive by then. */
void verdict_note_unresponsive(struct verdict_facts *f, unsigned int target, const char *name,
	const struct verdict_who *server, const struct verdict_unresponsive *unresponsive);

/* Called for each answer of a database in which sessions wait for a lock. */
void verdict_note_queue(struct verdict_facts *f, const struct verdict_queue *queue);

/* The thread of the process that held the lock of its memory map; NULL: none was seen. */
const struct verdict_map_holder *verdict_find_map_holder(const struct verdict_facts *f,
	int32_t pid);

/* Whether both waited for the same thing: of the same device, or else in the same process. */
bool verdict_waits_alike(const struct verdict_waiter *a, const struct verdict_waiter *b);

/* How long threads waited for the device in total, as far as is known. */
uint64_t verdict_waited_ns(const struct verdict_device *d);

/* VERDICT_WAIT_device of RECORD_CAUSE_page; `none` of NONE. */
enum verdict_wait verdict_wait_of(enum record_cause cause);
const char *verdict_wait_name(enum verdict_wait wait);

#endif
