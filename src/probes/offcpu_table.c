/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/offcpu_table.h"

#include <stddef.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/sort.h"

void offcpu_table_reset(struct offcpu_table *t)
{
	t->count = t->texts_count = t->texts_used = 0;
	memset(t->index, 0, sizeof(t->index));
}

static bool is_same_key(const struct event_offcpu_key *a, const struct event_offcpu_key *b)
{
	return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

/* Where the key is in the index, or would be. */
static uint16_t *find_slot(struct offcpu_table *t, const struct event_offcpu_key *key)
{
	size_t slot = key->hash[0] % OFFCPU_INDEX_SLOTS;

	while (t->index[slot] && !is_same_key(&t->items[t->index[slot] - 1].key, key))
		slot = (slot + 1) % OFFCPU_INDEX_SLOTS;
	return &t->index[slot];
}

struct offcpu_item *offcpu_table_find(struct offcpu_table *t, const struct event_offcpu_key *key)
{
	const uint16_t *slot = find_slot(t, key);

	return *slot ? &t->items[*slot - 1] : NULL;
}

struct offcpu_item *offcpu_table_get(struct offcpu_table *t, const struct event_offcpu_key *key)
{
	uint16_t *slot = find_slot(t, key);

	if (!*slot && t->count < ARRAY_SIZE(t->items)) {
		t->items[t->count++] = (struct offcpu_item){ .key = *key };
		*slot = (uint16_t)t->count;
	}
	return *slot ? &t->items[*slot - 1] : NULL;
}

static void index_items(struct offcpu_table *t)
{
	memset(t->index, 0, sizeof(t->index));
	for (uint32_t i = 0; i < t->count; i++)
		*find_slot(t, &t->items[i].key) = (uint16_t)(i + 1);
}

void offcpu_table_drop_gone(struct offcpu_table *t)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->count; i++)
		if (t->items[i].is_there)
			t->items[kept++] = t->items[i];
	t->count = kept;
	index_items(t);
}

static int compare_gained(const void *a, const void *b)
{
	const uint64_t x = offcpu_item_gained_ns(a), y = offcpu_item_gained_ns(b);

	return (x < y) - (x > y);
}

void offcpu_table_sort(struct offcpu_table *t)
{
	sort_in_place(t->items, t->count, sizeof(t->items[0]), compare_gained);
	index_items(t);
}

void offcpu_table_note_told(struct offcpu_table *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (offcpu_item_gained_ns(&t->items[i]))
			t->items[i].told = t->items[i].now;
}

/* FNV-1a, from both halves of the key on. */
struct event_offcpu_key offcpu_table_key_of_text(const struct event_offcpu_key *key,
	const char *text)
{
	struct event_offcpu_key with = *key;

	for (; *text; text++)
		for (unsigned int i = 0; i < ARRAY_SIZE(with.hash); i++)
			with.hash[i] = (with.hash[i] ^ (unsigned char)*text) *
				(i == 0 ? 0x100000001b3ull : 0x9e3779b97f4a7c15ull);
	return with;
}

uint32_t offcpu_table_keep_text(struct offcpu_table *t, const char *text)
{
	const size_t size = strlen(text) + 1;

	for (uint32_t i = 0; i < t->texts_count; i++)
		if (strcmp(t->texts_buf + t->texts[i], text) == 0)
			return i + 1;
	if (t->texts_count == OFFCPU_TEXTS_MAX || size > OFFCPU_TEXTS_BYTES - t->texts_used)
		return 0;
	memcpy(t->texts_buf + t->texts_used, text, size);
	t->texts[t->texts_count++] = t->texts_used;
	t->texts_used += (uint32_t)size;
	return t->texts_count;
}

const char *offcpu_table_text(const struct offcpu_table *t, const struct offcpu_item *item)
{
	return item->text ? t->texts_buf + t->texts[item->text - 1] : NULL;
}
