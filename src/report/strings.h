/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each text of a record once, and those of them that a page needs in the order in which it needs
 * them.
 * Used by src/report/.
 * Grows with the record up to a limit; beyond it a text is "".
 */
#ifndef IOSTALL_REPORT_STRINGS_H
#define IOSTALL_REPORT_STRINGS_H

#include <stdint.h>

#include "util/text.h"

struct strings {
	char *bytes;
	uint32_t used, room;
	struct strings_entry {
		uint32_t begin; /* in the bytes */
		int32_t number; /* on the page; -1: it does not need this one */
	} * list;		/* the first is "" */
	uint32_t count, slots_room;
	uint32_t *slots; /* a hash table of index + 1 */
	uint32_t written;
	uint32_t *order; /* those that the page needs */
	uint32_t left_out;
};

/* 0 or -ENOMEM. */
int strings_init(struct strings *strings);
void strings_done(struct strings *strings);

/* Its index; 0, that of "", also without memory or beyond the limit. */
uint32_t strings_add(struct strings *strings, const char *text);
/* Valid until the next is added. */
const char *strings_get(const struct strings *strings, uint32_t index);

/* The number that the page has for it. */
uint32_t strings_number(struct strings *strings, uint32_t index);
/* Adds the member `strings`: those that got a number. */
void strings_add_json(const struct strings *strings, struct text *out);

#endif
