/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers.
 * Used by every room; depends on no room.
 */
#ifndef IOSTALL_UTIL_NUMBER_H
#define IOSTALL_UTIL_NUMBER_H

#include <math.h>
#include <stdint.h>

static inline double larger(double a, double b)
{
	return a > b ? a : b;
}

/* The smaller one. NAN where one of them is. */
static inline double smaller(double a, double b)
{
	return a > b || isnan(b) ? b : a;
}

/* 0 where b is more: a counter that was set back, a clock that was read before. */
static inline uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Of a record that may be damaged; 0 where it is no number, or none that there can be. */
static inline uint64_t to_u64(double value)
{
	return value > 0 && value < (double)INT64_MAX ? (uint64_t)value : 0;
}

#endif
