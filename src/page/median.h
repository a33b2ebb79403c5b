/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The median of any number of lengths in fixed memory.
 * Used by src/page/ only.
 * Never further off than 1.6 % of the length, nor beyond the shortest and the longest.
 */
#ifndef IOSTALL_PAGE_MEDIAN_H
#define IOSTALL_PAGE_MEDIAN_H

#include <stdint.h>

/* 32 buckets for each power of two, from 65 us to 4.9 hours. */
#define MEDIAN_FIRST_POWER 16
#define MEDIAN_POWERS 28
#define MEDIAN_STEPS 32

struct median {
	uint64_t count;
	uint32_t buckets[MEDIAN_POWERS * MEDIAN_STEPS];
};

/* So many times the same length. */
void median_add(struct median *m, uint64_t ns, uint32_t times);
void median_merge(struct median *into, const struct median *m);
uint64_t median_get(const struct median *m, uint64_t min_ns, uint64_t max_ns);

#endif
