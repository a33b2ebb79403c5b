/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/recorded.h"

#include "util/clock.h"
#include "util/text.h"

#define WAIT_MAX_NS (3600 * NSEC_PER_SEC)
/* As many as the rule blocked_many takes for a freeze by themselves. */
#define FREEZE_THREADS 4

bool recorded_has(const struct recorded *r, double threads, int32_t pid)
{
	if (!*r->first || (threads >= FREEZE_THREADS && threads >= 2 * r->threads))
		return false;
	return !pid || !r->pid || pid == r->pid;
}

void recorded_note(struct recorded *r, const char *incident, uint64_t number, double threads,
	int32_t pid)
{
	const bool again = *r->first && r->last == number;

	if (!again && !recorded_has(r, threads, pid)) {
		*r = (struct recorded){ 0 };
		text_copy(r->first, sizeof(r->first), incident);
	}
	if (!again)
		r->incidents++;
	r->last = number;
	if (threads > r->threads)
		r->threads = threads;
	if (pid)
		r->pid = pid;
}

void recorded_follow(struct recorded *r, double threads)
{
	if (threads > 0 && threads < r->threads)
		r->threads = threads;
}

uint64_t recorded_wait_ns(uint32_t incidents, uint64_t cooldown_ns)
{
	uint64_t wait_ns = cooldown_ns;

	/* Whoever has set a longer cooldown gets that. */
	for (uint32_t i = 1; i < incidents && wait_ns > 0 && wait_ns < WAIT_MAX_NS; i++)
		wait_ns = 2 * wait_ns < WAIT_MAX_NS ? 2 * wait_ns : WAIT_MAX_NS;
	return wait_ns;
}
