/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/recorded.h"

#include <string.h>

#include "util/clock.h"
#include "util/hash.h"
#include "util/text.h"

#define WAIT_MAX_NS (3600 * NSEC_PER_SEC)
/* As many as the rule blocked_many takes for a freeze by themselves. */
#define FREEZE_THREADS 4
/* So long has it to be over before it is over. */
#define CLEAR_NS (60 * NSEC_PER_SEC)
#define CLEAR_SAMPLES 3
/* While it goes on, the incidents that record it are WAIT_MAX_NS apart. */
#define UNNAMED_NS (2 * WAIT_MAX_NS)

void recorded_sample(struct recorded_table *table, uint64_t now_ns)
{
	table->interval_ns = table->sampled_ns ? now_ns - table->sampled_ns : 0;
	table->sampled_ns = now_ns;
}

static uint64_t hash_of(unsigned int rule, const char *name)
{
	return hash_text(HASH_BEGIN ^ rule, name);
}

static uint64_t clear_ns(const struct recorded_table *table)
{
	const uint64_t samples_ns = CLEAR_SAMPLES * table->interval_ns;

	return samples_ns > CLEAR_NS ? samples_ns : CLEAR_NS;
}

static bool lasts(const struct recorded_table *table, const struct recorded *r, uint64_t now_ns)
{
	return *r->first && now_ns - r->active_ns < clear_ns(table);
}

const struct recorded *recorded_find(const struct recorded_table *table, unsigned int rule,
	const char *name, uint64_t now_ns)
{
	const uint64_t hash = hash_of(rule, name);

	for (uint32_t i = 0; i < table->max; i++)
		if (table->list[i].hash == hash && lasts(table, &table->list[i], now_ns))
			return &table->list[i];
	return NULL;
}

bool recorded_has(const struct recorded *r, double threads)
{
	return r && (threads < FREEZE_THREADS || threads < 2 * r->threads);
}

static struct recorded *find_oldest(struct recorded_table *table)
{
	struct recorded *oldest = &table->list[0];

	for (uint32_t i = 1; i < table->max; i++)
		if (table->list[i].active_ns < oldest->active_ns)
			oldest = &table->list[i];
	return oldest;
}

void recorded_note(struct recorded_table *table, unsigned int rule, const char *name,
	const char *incident, uint64_t number, double threads, uint64_t now_ns)
{
	const struct recorded *known = recorded_find(table, rule, name, now_ns);
	struct recorded *r = known ? &table->list[known - table->list] : find_oldest(table);
	bool again = known && r->last == number;

	if (!again && !recorded_has(known, threads)) {
		*r = (struct recorded){ .hash = hash_of(rule, name), .rule = rule };
		text_copy(r->first, sizeof(r->first), incident);
	}
	if (!again)
		r->incidents++;
	r->last = number;
	r->active_ns = r->noted_ns = now_ns;
	if (threads > r->threads)
		r->threads = threads;
}

static void follow_threads(struct recorded *r, double threads, uint64_t now_ns)
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

void recorded_follow(struct recorded_table *table, unsigned int rule, const char *name,
	double threads, uint64_t now_ns)
{
	const uint64_t hash = name ? hash_of(rule, name) : 0;

	for (uint32_t i = 0; i < table->max; i++) {
		struct recorded *r = &table->list[i];

		if (r->rule != rule || !lasts(table, r, now_ns) ||
			(name ? r->hash != hash : now_ns - r->noted_ns >= UNNAMED_NS))
			continue;
		r->active_ns = now_ns;
		follow_threads(r, threads, now_ns);
	}
}

uint64_t recorded_wait_ns(uint32_t incidents, uint64_t cooldown_ns)
{
	uint64_t wait_ns = cooldown_ns;

	/* Whoever has set a longer cooldown gets that. */
	for (uint32_t i = 1; i < incidents && wait_ns > 0 && wait_ns < WAIT_MAX_NS; i++)
		wait_ns = 2 * wait_ns < WAIT_MAX_NS ? 2 * wait_ns : WAIT_MAX_NS;
	return wait_ns;
}
