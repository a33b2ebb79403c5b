/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of the open incident in fixed memory: counts, and what is known about each stuck
 * operation.
 * Used by the session only.
 * Never allocates and never writes; what does not fit is counted.
 */
#ifndef IOSTALL_INCIDENT_H
#define IOSTALL_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* A quarter of the slots stays free, so that a search ends after a few. 0.4 MB in all. */
#define INCIDENT_STUCK_SLOTS 16384
#define INCIDENT_STUCK_MAX (INCIDENT_STUCK_SLOTS / 4 * 3)
#define INCIDENT_STACKS_MAX 512
/* One has 300 to 500 bytes as a rule. */
#define INCIDENT_STACKS_BYTES (128 * 1024)

/* An operation that an in-flight scan found; thread and start identify it. */
struct incident_stuck {
	uint64_t start_ns; /* 0: free */
	uint64_t reported_age_ns;
	uint32_t tid;
	uint16_t stack;	     /* index + 1 in `stacks`; 0: none was seen */
	uint8_t lock;	     /* index + 1 in session_locks.list; 0: it waits for no such lock */
	bool is_request : 1; /* a request in flight: its thread need not wait for it */
	bool has_line : 1;  /* it has lines of its own, and does not only stand in that of others */
	bool is_proven : 1; /* see EVENT_UNPROVEN */
	/* Its device is not known, and trace.device wants some only. */
	bool may_be_elsewhere : 1;
	bool stack_left_out : 1; /* there was no room for it */
	bool lock_asked : 1;  /* for which lock it waits, of which the kernel keeps the address */
	bool stack_asked : 1; /* its stack is being read from /proc, or was, or cannot be */
};

#define INCIDENT_TRIGGERS_MAX 4

struct incident {
	char id[RECORD_ID_SIZE];
	uint64_t trigger_ns;
	uint64_t waited_ns;
	uint64_t armed_ns;
	uint64_t attach_ns;
	uint64_t cpu_start_ns;
	uint64_t lines; /* of the record so far */
	/* Rules that fired before the record had its first line; further ones are not told. */
	uint32_t triggers_count;
	struct record_trigger triggers[INCIDENT_TRIGGERS_MAX];
	uint64_t stalls;
	uint64_t stuck_lines;
	uint64_t stuck_operations;
	uint64_t longest_ns;
	uint64_t samples;
	uint64_t events_invalid;
	uint64_t events_unread; /* there was no time to read them before the end */
	uint64_t stuck_unreported;
	uint64_t account_full;	  /* beside what the BPF programs have counted */
	uint64_t not_visited;	  /* threads that the initial task scan had no time for */
	uint64_t new_not_visited; /* at least: processes found later, with such threads */
	uint64_t kernel_lines;	  /* lines of the kernel log in the record */
	uint64_t kernel_lines_left_out;
	uint64_t disks_left_out; /* at work, and without room in the watch, at most */
	uint64_t filter_full; /* processes of trace.process without room in the filter, at most */
	unsigned int stacks_count;
	uint32_t stuck_count;
	struct incident_stuck stuck[INCIDENT_STUCK_SLOTS];
	/* Threads that are stuck together mostly share a stack. */
	struct {
		uint32_t at; /* in stacks_text */
		uint32_t len;
	} stacks[INCIDENT_STACKS_MAX];
	uint64_t stacks_left_out; /* for want of room */
	uint32_t stacks_bytes;
	char stacks_text[INCIDENT_STACKS_BYTES];
};

void incident_begin(struct incident *incident, const char *id, uint64_t trigger_ns);

/*
 * Returns the entry, which it makes when there is none; NULL when the table is full. An entry is
 * valid until one is forgotten.
 */
struct incident_stuck *incident_note_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns);
/* Returns the entry; NULL when there is none. */
struct incident_stuck *incident_find_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns);

/* The operation has returned: frees its slot. Other entries may move. */
void incident_forget_stuck(struct incident *incident, struct incident_stuck *stuck);

/*
 * Whether a `stuck` line is due: each second up to an age of 5 s, then whenever the age has grown
 * by half. So 200 threads that are stuck for a minute have 10 lines each, 1.6 MB of record.
 */
bool incident_stuck_is_due(const struct incident_stuck *stuck, uint64_t age_ns);

/* "" changes nothing. What finds no room is counted. */
void incident_set_stack(struct incident *incident, struct incident_stuck *stuck, const char *stack);
/* "" when none was seen. */
const char *incident_get_stack(const struct incident *incident, const struct incident_stuck *stuck);

#endif
