/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/incident.h"

#include <assert.h>
#include <string.h>

#include "util/clock.h"
#include "util/text.h"

void incident_begin(struct incident *incident, const char *id, uint64_t trigger_ns)
{
	memset(incident, 0, sizeof(*incident));
	text_copy(incident->id, sizeof(incident->id), id);
	incident->trigger_ns = trigger_ns;
	incident->cpu_start_ns = clock_process_cpu_ns();
}

#define MASK (INCIDENT_STUCK_SLOTS - 1)

static_assert((INCIDENT_STUCK_SLOTS & MASK) == 0, "a mask wraps around");
static_assert(INCIDENT_STUCK_MAX < INCIDENT_STUCK_SLOTS, "a search ends at a free slot");

/* Threads that hang together have starts and ids that differ in few bits. */
static uint32_t home_of(uint32_t tid, uint64_t start_ns)
{
	uint64_t hash = (start_ns ^ (uint64_t)tid << 32) * 0x9e3779b97f4a7c15ULL;

	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ULL;
	return (uint32_t)(hash >> 32) & MASK;
}

/* The slot of the entry, or the free one at which the search for it ends. */
static struct incident_stuck *find_slot(struct incident *incident, uint32_t tid, uint64_t start_ns)
{
	uint32_t i = home_of(tid, start_ns);

	while (incident->stuck[i].start_ns &&
		(incident->stuck[i].start_ns != start_ns || incident->stuck[i].tid != tid))
		i = (i + 1) & MASK;
	return &incident->stuck[i];
}

struct incident_stuck *incident_find_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns)
{
	struct incident_stuck *s = find_slot(incident, tid, start_ns);

	return s->start_ns ? s : NULL;
}

struct incident_stuck *incident_note_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns)
{
	struct incident_stuck *s = find_slot(incident, tid, start_ns);

	if (s->start_ns)
		return s;
	if (incident->stuck_count == INCIDENT_STUCK_MAX)
		return NULL;
	incident->stuck_count++;
	*s = (struct incident_stuck){ .start_ns = start_ns, .tid = tid };
	return s;
}

/* Moves up what a search would no longer find behind a free slot. */
void incident_forget_stuck(struct incident *incident, struct incident_stuck *stuck)
{
	uint32_t hole = (uint32_t)(stuck - incident->stuck);

	for (uint32_t i = (hole + 1) & MASK; incident->stuck[i].start_ns; i = (i + 1) & MASK) {
		uint32_t home = home_of(incident->stuck[i].tid, incident->stuck[i].start_ns);

		/* Its home lies behind the hole: the search does not pass the hole. */
		if (((i - home) & MASK) < ((i - hole) & MASK))
			continue;
		incident->stuck[hole] = incident->stuck[i];
		hole = i;
	}
	incident->stuck[hole] = (struct incident_stuck){ 0 };
	incident->stuck_count--;
}

bool incident_stuck_is_due(const struct incident_stuck *stuck, uint64_t age_ns)
{
	uint64_t grown = stuck->reported_age_ns / 2;

	if (stuck->reported_age_ns == 0)
		return true;
	if (stuck->reported_age_ns < 5 * NSEC_PER_SEC)
		/*
		 * Scans are about a second apart. Half a second is enough, or timer jitter would
		 * skip lines.
		 */
		grown = NSEC_PER_SEC / 2;
	return age_ns >= stuck->reported_age_ns + grown;
}

static bool has_room_for_stack(const struct incident *incident, uint32_t len)
{
	return incident->stacks_count < INCIDENT_STACKS_MAX &&
		incident->stacks_bytes + len < INCIDENT_STACKS_BYTES;
}

void incident_set_stack(struct incident *incident, struct incident_stuck *stuck, const char *stack)
{
	uint32_t len = (uint32_t)strnlen(stack, RECORD_STACK_SIZE - 1);
	char *text = incident->stacks_text;
	unsigned int i;

	if (len == 0)
		return;
	for (i = 0; i < incident->stacks_count; i++)
		if (incident->stacks[i].len == len &&
			memcmp(text + incident->stacks[i].at, stack, len) == 0)
			break;
	if (i == incident->stacks_count) {
		if (!has_room_for_stack(incident, len)) {
			incident->stacks_left_out += !stuck->stack_left_out;
			stuck->stack_left_out = true;
			return;
		}
		incident->stacks[i].at = incident->stacks_bytes;
		incident->stacks[i].len = len;
		text_copy(text + incident->stacks_bytes, len + 1, stack);
		incident->stacks_bytes += len + 1;
		incident->stacks_count++;
	}
	stuck->stack = (uint16_t)(i + 1);
}

const char *incident_get_stack(const struct incident *incident, const struct incident_stuck *stuck)
{
	return stuck->stack ? incident->stacks_text + incident->stacks[stuck->stack - 1].at : "";
}
