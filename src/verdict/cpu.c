/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that could run and got no CPU: a control group at its CPU limit, or a host with many
 * times more of them than it has CPUs. When that is the verdict, and how it is said.
 */
#include <inttypes.h>

#include "util/clock.h"
#include "verdict/figures.h"
#include "verdict/words.h"

/* Shorter than this it is a delay that nobody notices. */
#define HELD_BACK_NS NSEC_PER_SEC
#define SHORT_NS (2 * NSEC_PER_SEC)

/* The one that held back most; NULL: none did for long enough. */
static const struct verdict_cpu_limit *find_limit(const struct verdict_facts *f)
{
	const struct verdict_cpu_limit *most = NULL;

	for (uint32_t i = 0; i < f->cpu_limits_count; i++) {
		const struct verdict_cpu_limit *l = &f->cpu_limits[i];

		if (l->held_back_ns >= HELD_BACK_NS && l->at_limit_ns >= SHORT_NS &&
			(!most || l->held_back_ns > most->held_back_ns))
			most = l;
	}
	return most;
}

bool verdict_is_held_back(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_COUNT;
	return find_limit(f) != NULL;
}

uint64_t verdict_held_back_ns(const struct verdict_finding *v)
{
	const struct verdict_cpu_limit *l =
		v->rule->say == verdict_say_cpu_limit ? find_limit(v->f) : NULL;

	if (!l)
		return 0;
	/* As of one thread: how many could have run does not say how many had to. */
	return l->held_back_ns < l->at_limit_ns ? l->held_back_ns : l->at_limit_ns;
}

uint64_t verdict_cpu_ns(const struct verdict_finding *v)
{
	return v->rule->say == verdict_say_cpu_limit ? find_limit(v->f)->at_limit_ns
						     : v->f->cpu_shortage.ns;
}

/*
 * "control group /db was at its limit of 0.50 CPUs for 17.00 s: that kept its threads from running
 * for 94 % of the CPU time that they wanted; no disk was at its limit"
 */
void verdict_say_cpu_limit(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_cpu_limit *l = find_limit(v->f);

	text_addf(t, "control group %s was at its limit of %.2f CPUs for ", l->path, l->limit_cpus);
	record_add_duration(t, l->at_limit_ns);
	text_add(t, ": that kept its threads from running for ");
	verdict_add_pct(t, 100 * (double)l->held_back_ns / l->wanted_ns);
	text_add(t, " of the CPU time that they wanted");
	if (verdict_is_no_device_at_fault(v->f))
		text_add(t, "; no disk was at its limit");
}

bool verdict_is_short_of_cpus(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	enum verdict_wait wait;

	*ret_wait = VERDICT_WAIT_COUNT;
	return f->cpu_shortage.ns >= SHORT_NS && f->killed == 0 && !verdict_has_failed(f, &wait) &&
		!verdict_is_pressed_for_memory(f, &wait);
}

/*
 * "the CPUs were busy for 12.00 s: up to 62 threads could run on 2 CPUs, each for a part of the time
 * only; no disk was at its limit"
 */
void verdict_say_cpu_shortage(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_cpu_shortage *s = &v->f->cpu_shortage;

	text_add(t, "the CPUs were busy for ");
	record_add_duration(t, s->ns);
	text_addf(t, ": up to %" PRIu64 " threads could run on ", s->running_max);
	text_add_count(t, s->cpus, "CPU", "CPUs");
	text_add(t, ", each for a part of the time only");
	if (verdict_is_no_device_at_fault(v->f))
		text_add(t, "; no disk was at its limit");
}
