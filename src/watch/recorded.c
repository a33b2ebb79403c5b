/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/recorded.h"

#include <string.h>

#include "util/clock.h"
#include "util/text.h"

#define WAIT_MAX_NS (3600 * NSEC_PER_SEC)
/* As many as the rule blocked_many takes for a freeze by themselves. */
#define FREEZE_THREADS 4
/* So long has it to be over before it is over. */
#define CLEAR_NS (60 * NSEC_PER_SEC)

bool recorded_has(const struct recorded *r, double threads, const char *name)
{
	if (!*r->first || (threads >= FREEZE_THREADS && threads >= 2 * r->threads))
		return false;
	return !*name || !*r->name || strncmp(name, r->name, RECORDED_NAME_SIZE - 1) == 0;
}

void recorded_note(struct recorded *r, const char *incident, uint64_t number, double threads,
	const char *name)
{
	const bool again = *r->first && r->last == number;

	if (!again && !recorded_has(r, threads, name)) {
		*r = (struct recorded){ 0 };
		text_copy(r->first, sizeof(r->first), incident);
	}
	if (!again)
		r->incidents++;
	r->last = number;
	if (threads > r->threads)
		r->threads = threads;
	if (*name)
		text_copy(r->name, sizeof(r->name), name);
}

void recorded_follow(struct recorded *r, double threads, uint64_t now_ns)
{
	if (threads >= r->threads) {
		r->fewer_ns = 0;
	} else if (!r->fewer_ns) {
		r->fewer_ns = now_ns;
		r->fewer = threads;
	} else if (threads > r->fewer) {
		r->fewer = threads;
	}
	if (r->fewer_ns && now_ns - r->fewer_ns >= CLEAR_NS) {
		r->threads = r->fewer;
		r->fewer_ns = 0;
	}
}

void recorded_clear(struct recorded *r, uint64_t now_ns)
{
	r->cleared_ns = now_ns;
}

void recorded_begin(struct recorded *r, uint64_t now_ns)
{
	if (now_ns - r->cleared_ns >= CLEAR_NS)
		*r = (struct recorded){ 0 };
}

uint64_t recorded_wait_ns(uint32_t incidents, uint64_t cooldown_ns)
{
	uint64_t wait_ns = cooldown_ns;

	/* Whoever has set a longer cooldown gets that. */
	for (uint32_t i = 1; i < incidents && wait_ns > 0 && wait_ns < WAIT_MAX_NS; i++)
		wait_ns = 2 * wait_ns < WAIT_MAX_NS ? 2 * wait_ns : WAIT_MAX_NS;
	return wait_ns;
}
