/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/strings.h"
#include "util/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (32 * 1024 * 1024)
#define SLOTS_MIN 4096

static uint32_t *find_slot(const struct strings *s, const char *text)
{
	uint32_t i = (uint32_t)hash_text(HASH_BEGIN, text) & (s->slots_room - 1);

	while (s->slots[i] && strcmp(strings_get(s, s->slots[i] - 1), text) != 0)
		i = (i + 1) & (s->slots_room - 1);
	return &s->slots[i];
}

/* The table is at most half full, and there is a place in the list for each slot. */
static int grow_table(struct strings *s)
{
	uint32_t room = s->slots_room ? 2 * s->slots_room : SLOTS_MIN;
	struct strings_entry *list = realloc(s->list, room / 2 * sizeof(*list));
	uint32_t *order = realloc(s->order, room / 2 * sizeof(*order));
	uint32_t *slots = calloc(room, sizeof(*slots));

	if (list)
		s->list = list;
	if (order)
		s->order = order;
	if (!list || !order || !slots) {
		free(slots);
		return -ENOMEM;
	}
	free(s->slots);
	s->slots = slots;
	s->slots_room = room;
	for (uint32_t i = 0; i < s->count; i++)
		*find_slot(s, strings_get(s, i)) = i + 1;
	return 0;
}

static int make_room(struct strings *s, size_t size)
{
	uint32_t room = s->room ? s->room : 64 * 1024;
	char *bytes;

	if (size > BYTES_MAX - s->used)
		return -ENOSPC;
	while (room - s->used < size)
		room *= 2;
	if (room != s->room) {
		bytes = realloc(s->bytes, room);
		if (!bytes)
			return -ENOMEM;
		s->bytes = bytes;
		s->room = room;
	}
	return s->count < s->slots_room / 2 ? 0 : grow_table(s);
}

int strings_init(struct strings *s)
{
	int r = make_room(s, 1);

	/* It has the same number as on the page. */
	if (r == 0)
		strings_number(s, strings_add(s, ""));
	return r;
}

void strings_done(struct strings *s)
{
	free(s->bytes);
	free(s->list);
	free(s->slots);
	free(s->order);
}

uint32_t strings_add(struct strings *s, const char *text)
{
	const uint32_t *found = find_slot(s, text);
	size_t size = strlen(text) + 1;

	if (*found)
		return *found - 1;
	if (make_room(s, size) < 0) {
		s->left_out++;
		return 0;
	}
	memcpy(s->bytes + s->used, text, size);
	s->list[s->count] = (struct strings_entry){ s->used, -1 };
	s->used += (uint32_t)size;
	*find_slot(s, text) = ++s->count;
	return s->count - 1;
}

const char *strings_get(const struct strings *s, uint32_t index)
{
	return s->bytes + s->list[index].begin;
}

uint32_t strings_number(struct strings *s, uint32_t index)
{
	if (s->list[index].number < 0) {
		s->order[s->written] = index;
		s->list[index].number = (int32_t)s->written++;
	}
	return (uint32_t)s->list[index].number;
}

void strings_add_json(const struct strings *s, struct text *out)
{
	text_json_open(out, "strings", '[');
	for (uint32_t i = 0; i < s->written; i++)
		text_json_string(out, NULL, strings_get(s, s->order[i]));
	text_json_close(out, ']');
}
