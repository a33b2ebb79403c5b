/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page/stuck.h"

#include <string.h>

#define MASK (PAGE_STUCK_SLOTS - 1)

_Static_assert((PAGE_STUCK_SLOTS & MASK) == 0, "a mask wraps around");
_Static_assert(PAGE_STUCK_MAX < UINT16_MAX, "a slot has an index + 1");

/* Threads that were stopped together have starts and ids that differ in few bits. */
static uint32_t home_of(int32_t tid, uint64_t start_ns)
{
	uint64_t hash = (start_ns ^ (uint64_t)(uint32_t)tid << 32) * 0x9e3779b97f4a7c15ULL;

	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ULL;
	return (uint32_t)(hash >> 32) & MASK;
}

static uint32_t home_of_item(const struct page_stuck *s)
{
	return home_of(s->operation.tid, s->operation.start_ns);
}

struct page_stuck *page_stuck_find(struct page_stuck_table *t, int32_t tid, uint64_t start_ns)
{
	if (start_ns == 0)
		return NULL;
	/* At least half of the slots are free, so the search ends. */
	for (uint32_t i = home_of(tid, start_ns); t->slots[i]; i = (i + 1) & MASK) {
		struct page_stuck *s = &t->items[t->slots[i] - 1];

		if (s->operation.start_ns == start_ns && s->operation.tid == tid)
			return s;
	}
	return NULL;
}

struct page_stuck *page_stuck_add(struct page_stuck_table *t, int32_t tid, uint64_t start_ns)
{
	uint32_t i = home_of(tid, start_ns);
	struct page_stuck *s;

	if (start_ns == 0 || t->count == PAGE_STUCK_MAX)
		return NULL;
	while (t->slots[i])
		i = (i + 1) & MASK;
	s = &t->items[t->count++];
	t->slots[i] = (uint16_t)t->count;
	memset(s, 0, sizeof(*s));
	s->operation.tid = tid;
	s->operation.start_ns = start_ns;
	return s;
}

static uint32_t slot_of(const struct page_stuck_table *t, uint32_t index)
{
	uint32_t i = home_of_item(&t->items[index]);

	while (t->slots[i] != index + 1)
		i = (i + 1) & MASK;
	return i;
}

/* Moves up what a search would no longer find behind a free slot. */
static void free_slot(struct page_stuck_table *t, uint32_t hole)
{
	for (uint32_t i = (hole + 1) & MASK; t->slots[i]; i = (i + 1) & MASK) {
		uint32_t home = home_of_item(&t->items[t->slots[i] - 1]);

		/* Its home lies behind the hole: the search does not pass the hole. */
		if (((i - home) & MASK) < ((i - hole) & MASK))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole] = 0;
}

void page_stuck_remove(struct page_stuck_table *t, struct page_stuck *s)
{
	uint32_t index = (uint32_t)(s - t->items), last = t->count - 1;

	free_slot(t, slot_of(t, index));
	t->count--;
	if (index == last)
		return;
	t->slots[slot_of(t, last)] = (uint16_t)(index + 1);
	t->items[index] = t->items[last];
}
