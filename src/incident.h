/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The facts of the open incident in fixed memory: counts, and what is known of each stuck operation.
 * Owned and called by the session.
 * Never allocates, never writes; what does not fit is counted.
 */
#ifndef IOSTALL_INCIDENT_H
#define IOSTALL_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

#define INCIDENT_STUCK_MAX 4096
#define INCIDENT_STACKS_MAX 64

/* One operation that a walk found in flight; named by thread and start. */
struct incident_stuck {
	uint64_t start_ns; /* 0: free */
	uint64_t reported_age_ns;
	uint32_t tid;
	uint16_t stack;	    /* 1-based; 0: none seen */
	bool stale;	    /* the thread is elsewhere: the return was missed, never to be reported */
	bool is_request;    /* in flight, while its thread may be anywhere */
	bool was_used;	    /* of a free slot: the search goes on behind it */
};

struct incident {
	char id[RECORD_ID_SIZE];
	uint64_t trigger_ns;
	uint64_t armed_ns;
	uint64_t attach_ns;
	uint64_t cpu_start_ns;
	uint64_t stalls;
	uint64_t stuck_lines;
	uint64_t stuck_operations;
	uint64_t longest_ns;
	uint64_t samples;
	uint64_t events_invalid;
	uint64_t stuck_unreported;
	uint64_t not_visited;	 /* threads that the snapshot at arming had no time for */
	uint64_t kernel_lines; /* of the kernel's log, in the record */
	uint64_t kernel_lines_left_out;
	uint64_t returns_missed; /* found by the last walk; others are counted in the kernel */
	unsigned int stacks_count;
	struct incident_stuck stuck[INCIDENT_STUCK_MAX];
	/* Threads stuck together mostly share one stack, so few different ones are kept. */
	char stacks[INCIDENT_STACKS_MAX][RECORD_STACK_SIZE];
};

void incident_begin(struct incident *incident, const char *id, uint64_t trigger_ns);

/* The entry, made if need be; NULL when the table is full. */
struct incident_stuck *incident_note_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns);
/* The entry if there is one. */
struct incident_stuck *incident_find_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns);

/* It has returned; its slot is for others. */
void incident_forget_stuck(struct incident_stuck *stuck);

/*
 * Whether a line is due: each second up to an age of 5 s, then whenever the age has grown by half, so
 * that 200 threads stuck for a minute take 10 lines of 0.8 KB each, 1.6 MB of record.
 */
bool incident_stuck_is_due(const struct incident_stuck *stuck, uint64_t age_ns);

void incident_set_stack(struct incident *incident, struct incident_stuck *stuck, const char *stack);
/* "" when none was seen. */
const char *incident_get_stack(const struct incident *incident, const struct incident_stuck *stuck);

#endif
