/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts an event together as event_emit() of bpf/common.bpf.h does.
 * Included by unit tests and by tests/replay/make-events.c.
 * Never checks a length: tests also make events that must be refused.
 */
#ifndef TESTS_EVENT_PACK_H
#define TESTS_EVENT_PACK_H

#include <stddef.h>
#include <string.h>

#include "iostall/event.h"

#define EVENT_FIXED_SIZE offsetof(struct event_operation, path)

/* Puts names and stack, where it has any, behind the path. Returns the size of the event. */
static inline uint32_t event_pack(struct event_operation *e)
{
	char *end = e->path + e->path_len;

	e->names_len = 0;
	for (unsigned int i = 0; i < EVENT_CGROUP_NAMES && e->cgroup_names[0][0]; i++) {
		size_t len = strlen(e->cgroup_names[i]) + 1;

		memcpy(end, e->cgroup_names[i], len);
		e->names_len = (uint16_t)(e->names_len + len);
		end += len;
	}
	memcpy(end, e->stack, e->stack_len * sizeof(e->stack[0]));
	end += e->stack_len * sizeof(e->stack[0]);
	e->header.size = (uint32_t)(end - (char *)e);
	return e->header.size;
}

#endif
