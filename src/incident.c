/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "incident.h"

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

/* The entry, or the free slot where it would stand; NULL when there is neither. */
static struct incident_stuck *find_slot(struct incident *incident, uint32_t tid, uint64_t start_ns)
{
	/* Fibonacci hashing; thread ids come in runs. */
	uint32_t slot = (tid ^ (uint32_t)start_ns) * 2654435769u % INCIDENT_STUCK_MAX;
	struct incident_stuck *free_slot = NULL;

	for (unsigned int i = 0; i < INCIDENT_STUCK_MAX; i++) {
		struct incident_stuck *s = &incident->stuck[(slot + i) % INCIDENT_STUCK_MAX];

		if (s->start_ns == start_ns && s->tid == tid)
			return s;
		if (s->start_ns == 0 && !free_slot)
			free_slot = s;
		if (s->start_ns == 0 && !s->was_used)
			break;
	}
	return free_slot;
}

struct incident_stuck *incident_find_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns)
{
	struct incident_stuck *s = find_slot(incident, tid, start_ns);

	return s && s->start_ns ? s : NULL;
}

struct incident_stuck *incident_note_stuck(struct incident *incident, uint32_t tid,
	uint64_t start_ns)
{
	struct incident_stuck *s = find_slot(incident, tid, start_ns);

	if (s && s->start_ns == 0)
		*s = (struct incident_stuck){ .start_ns = start_ns, .tid = tid };
	return s;
}

void incident_forget_stuck(struct incident_stuck *stuck)
{
	*stuck = (struct incident_stuck){ .was_used = true };
}

bool incident_stuck_is_due(const struct incident_stuck *stuck, uint64_t age_ns)
{
	uint64_t grown = stuck->reported_age_ns / 2;

	if (stuck->stale)
		return false;
	if (stuck->reported_age_ns == 0)
		return true;
	if (stuck->reported_age_ns < 5 * NSEC_PER_SEC)
		/* Walks are a second apart, more or less: a jittering timer must not skip a line. */
		grown = NSEC_PER_SEC / 2;
	return age_ns >= stuck->reported_age_ns + grown;
}

void incident_set_stack(struct incident *incident, struct incident_stuck *stuck, const char *stack)
{
	unsigned int i;

	if (*stack == '\0')
		return;
	for (i = 0; i < incident->stacks_count; i++)
		if (strcmp(incident->stacks[i], stack) == 0)
			break;
	if (i == INCIDENT_STACKS_MAX)
		return;
	if (i == incident->stacks_count)
		text_copy(incident->stacks[incident->stacks_count++], RECORD_STACK_SIZE, stack);
	stuck->stack = (uint16_t)(i + 1);
}

const char *incident_get_stack(const struct incident *incident, const struct incident_stuck *stuck)
{
	return stuck->stack ? incident->stacks[stuck->stack - 1] : "";
}
