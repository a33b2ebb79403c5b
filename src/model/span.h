/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A time in which somebody held something or waited, on CLOCK_MONOTONIC.
 * Used by the model and the verdict.
 * Plain data. Pure. Never knows whose it is.
 */
#ifndef IOSTALL_MODEL_SPAN_H
#define IOSTALL_MODEL_SPAN_H

#include <stdint.h>

struct model_span {
	uint64_t from_ns;
	uint64_t until_ns;
};

/* How much of the one lies in the other. */
static inline uint64_t model_span_overlap_ns(struct model_span a, struct model_span b)
{
	const uint64_t from_ns = a.from_ns > b.from_ns ? a.from_ns : b.from_ns;
	const uint64_t until_ns = a.until_ns < b.until_ns ? a.until_ns : b.until_ns;

	return until_ns > from_ns ? until_ns - from_ns : 0;
}

/* The `ns` that end at until_ns. */
static inline struct model_span model_span_to(uint64_t until_ns, uint64_t ns)
{
	return (struct model_span){ until_ns > ns ? until_ns - ns : 0, until_ns };
}

#endif
