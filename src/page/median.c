/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page/median.h"

#include "util/cleanup.h"

#define STEP_BITS 5

_Static_assert(1 << STEP_BITS == MEDIAN_STEPS, "a bucket is named by bits of the length");

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int power, step;

	if (ns < 1ULL << MEDIAN_FIRST_POWER)
		return 0;
	power = 63 - (unsigned int)__builtin_clzll(ns);
	if (power >= MEDIAN_FIRST_POWER + MEDIAN_POWERS)
		return MEDIAN_POWERS * MEDIAN_STEPS - 1;
	step = (unsigned int)(ns >> (power - STEP_BITS)) & (MEDIAN_STEPS - 1);
	return (power - MEDIAN_FIRST_POWER) * MEDIAN_STEPS + step;
}

static uint64_t middle_of(unsigned int bucket)
{
	unsigned int power = MEDIAN_FIRST_POWER + bucket / MEDIAN_STEPS;
	uint64_t width = 1ULL << (power - STEP_BITS);

	return (1ULL << power) + bucket % MEDIAN_STEPS * width + width / 2;
}

void median_add(struct median *m, uint64_t ns, uint32_t times)
{
	m->buckets[bucket_of(ns)] += times;
	m->count += times;
}

void median_merge(struct median *into, const struct median *m)
{
	into->count += m->count;
	for (unsigned int i = 0; i < ARRAY_SIZE(m->buckets); i++)
		into->buckets[i] += m->buckets[i];
}

uint64_t median_get(const struct median *m, uint64_t min_ns, uint64_t max_ns)
{
	uint64_t seen = 0, ns = max_ns;

	for (unsigned int i = 0; i < ARRAY_SIZE(m->buckets); i++) {
		seen += m->buckets[i];
		if (seen > 0 && 2 * seen >= m->count) {
			ns = middle_of(i);
			break;
		}
	}
	if (ns > max_ns)
		ns = max_ns;
	return ns < min_ns ? min_ns : ns;
}
