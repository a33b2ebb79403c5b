/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the lines of an open incident say of devices, waiting threads and load, in fixed memory.
 * Filled by the session with each line it writes; read by verdict.c.
 * Never allocates, never decides; what does not fit is counted.
 */
#ifndef IOSTALL_VERDICT_FACTS_H
#define IOSTALL_VERDICT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "record/record.h"

/* Locked memory, 29 KB in all: further threads are counted. */
#define VERDICT_DEVICES_MAX 16
#define VERDICT_THREADS_MAX 256
/* Ten threads each of the busiest devices; without the others nothing is added up. */
#define VERDICT_SHARES_MAX 64
#define VERDICT_PATH_SIZE 160
/* Samples up to so long before the trigger are of the incident: what led to it was going on. */
#define VERDICT_LEAD_NS 5000000000ULL
/* A device is at work all the time, and one that hardly works. */
#define VERDICT_BUSY_PCT 80
#define VERDICT_IDLE_PCT 50

enum verdict_wait {
#define KIND(kind, name) VERDICT_WAIT_##kind,
#define WAIT(kind, prefix)
#include "verdict/waits.def"
#undef KIND
#undef WAIT
	VERDICT_WAIT_COUNT,
};

enum verdict_by {
	VERDICT_BY_PROCESS,
	VERDICT_BY_PROGRAM, /* the first process that is not the kernel's */
	VERDICT_BY_THREAD,
	VERDICT_BY_FILE,
	VERDICT_BY_COUNT,
};

struct verdict_who {
	int32_t pid;
	int32_t tid;
	char comm[16];
};

/* The first of its kind on a device. */
struct verdict_load {
	uint32_t count; /* lines: how many shared the device, ten at most; 0: nobody is known */
	struct verdict_who who;
	uint64_t requests;
	uint64_t bytes;
	double share_pct;
	bool inferred;
};

/* A thread's part of a device's bytes: those of one statement's workers are added up. */
struct verdict_share {
	uint64_t bytes;
	uint32_t requests;
	float share_pct;
	int32_t tid;
	int8_t device; /* index */
};

/* What a device did over some time, by the samples. */
struct verdict_work {
	uint64_t ns;
	uint64_t bytes;
	double finished;      /* requests: mean queue over mean await is their rate */
	double await_ns_sum;  /* await times requests */
	double queue_ns_sum;  /* queue times time */
	double util_ns_sum;
};

struct verdict_device {
	uint32_t major;
	uint32_t minor;
	char name[WATCH_DISK_NAME_SIZE];
	bool sampled; /* it is a whole disk: the watchdog judges it */
	struct verdict_work calm; /* up to VERDICT_LEAD_NS before the trigger */
	struct verdict_work busy; /* in samples at VERDICT_BUSY_PCT or more */
	uint64_t busy_ns; /* time it was at work, in all samples since */
	uint64_t busiest_ns; /* of that, in one sample at most */
	double util_max_pct;
	double read_await_max_ms;
	double write_await_max_ms;
	uint64_t in_flight_max;
	/* the longest time without an end, and what was in flight then */
	uint64_t silent_ns;
	uint64_t silent_in_flight;
	/* its last line */
	bool has_totals;
	uint64_t requests;
	uint64_t read_bytes;
	uint64_t write_bytes;
	struct record_latency queue_time;
	struct record_latency device_time;
	struct verdict_load load[VERDICT_BY_COUNT];
	char file[VERDICT_PATH_SIZE]; /* of load[VERDICT_BY_FILE]; a long one is cut at its beginning */
	/* operations on its files */
	uint64_t operations;
	uint64_t finished_ns; /* those that have returned, added up */
	uint64_t hanging_ns; /* the longest of those that have not */
	uint64_t longest_ns; /* of those that waited for a device */
};

struct verdict_thread {
	uint64_t longest_ns;
	uint64_t device_ns; /* the longest on the files of a device */
	int32_t tid;	    /* 0: free */
	int32_t pid;
	int8_t device;	     /* index, -1: none */
	uint8_t wait;	     /* of the longest */
	uint8_t device_wait; /* of that on a device */
	bool kernel;
	char comm[16];
};

/* All threads that waited for one kind of thing. */
struct verdict_wait_facts {
	uint64_t longest_ns;
	uint64_t kernel_longest_ns;
	char waits_for[RECORD_NAME_SIZE]; /* of the longest, as the record has it */
	struct verdict_who who;	    /* of the longest, no kernel thread */
	char path[VERDICT_PATH_SIZE]; /* of its file */
	struct verdict_who kernel;  /* of the longest kernel thread */
	int8_t device;		    /* of the longest, -1: none */
};

/* A question that a database left open. */
struct verdict_silence {
	uint64_t ns; /* 0: none */
	bool stopped; /* its server's process, by a signal or a debugger, at some time meanwhile */
};

struct verdict_database {
	char target[RECORD_NAME_SIZE]; /* "main" */
	struct verdict_who server; /* pid 0: not known */
	struct verdict_silence now;
	struct verdict_silence longest;
};

struct verdict_facts {
	uint64_t trigger_ns;
	uint64_t min_stall_ns;
	uint32_t samples; /* since the trigger, those of the lead among them */
	uint64_t operations;
	uint64_t longest_ns;
	uint32_t threads_left_out;
	uint32_t devices_left_out;
	uint32_t kernel_lines;
	char kernel_text[VERDICT_PATH_SIZE]; /* of the first */
	double memory_full_max_pct;
	uint32_t shares_count;
	struct verdict_share shares[VERDICT_SHARES_MAX];
	uint32_t devices_count;
	struct verdict_device devices[VERDICT_DEVICES_MAX];
	struct verdict_wait_facts waits[VERDICT_WAIT_COUNT];
	struct verdict_thread threads[VERDICT_THREADS_MAX];
	struct verdict_database databases[CONFIG_SQL_TARGETS_MAX];
};

void verdict_begin(struct verdict_facts *f, uint64_t trigger_ns, uint64_t min_stall_ns);

/* One for each kind of line that says something. */
void verdict_note_sample(struct verdict_facts *f, const struct record_sample *sample);
void verdict_note_operation(struct verdict_facts *f, const struct record_operation *op, bool finished);
void verdict_note_device(struct verdict_facts *f, const struct record_device *device);
void verdict_note_io_by(struct verdict_facts *f, const struct record_io_by *by);
void verdict_note_kernel(struct verdict_facts *f, const struct record_kernel *line);

/* How the silence of a target stands, each second and at each answer. */
void verdict_note_silence(struct verdict_facts *f, unsigned int target, const char *name,
	const struct verdict_who *server, const struct verdict_silence *silence);

/* How long threads waited for it, added up as far as that is known. */
uint64_t verdict_waited_ns(const struct verdict_device *d);

/* "page": VERDICT_WAIT_device. */
enum verdict_wait verdict_wait_of(const char *waits_for);
const char *verdict_wait_name(enum verdict_wait wait);

#endif
