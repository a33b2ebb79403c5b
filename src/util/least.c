/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/least.h"

static unsigned int rank_of(uint64_t ns)
{
	return ns ? 64 - (unsigned int)__builtin_clzll(ns) : 0;
}

void least_note(struct least *l, uint64_t ns)
{
	l->of_rank[rank_of(ns)]++;
}

void least_cut(struct least *l, size_t wanted)
{
	l->left = wanted;
	for (l->last = 0; l->of_rank[l->last] < l->left; l->last++)
		l->left -= l->of_rank[l->last];
}

bool least_takes(struct least *l, uint64_t ns)
{
	const unsigned int rank = rank_of(ns);

	if (rank != l->last || l->left == 0)
		return rank < l->last;
	l->left--;
	return true;
}
