/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of many times are the least, without sorting what they belong to: by their power of two.
 * Called where a table has to give up a part of what it has; depends on no room.
 * Never allocates. Of times with the same power of two it takes the first that are asked about.
 */
#ifndef IOSTALL_UTIL_LEAST_H
#define IOSTALL_UTIL_LEAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins with all zeros. */
struct least {
	size_t of_rank[65];
	unsigned int last; /* the highest rank that is taken, as far as `left` goes */
	size_t left;
};

/* Each of them, once. */
void least_note(struct least *least, uint64_t ns);

/* After the last one: so many are to be taken, at most as many as were noted. */
void least_cut(struct least *least, size_t wanted);

/* Each of them once more: whether it is taken. */
bool least_takes(struct least *least, uint64_t ns);

#endif
