/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/type_names.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The length without the flavour, by the rule of bpf_core_essential_name_len() in libbpf. */
static size_t essential_len(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = len < 5 ? 0 : len - 4; i-- > 0;)
		if (name[i] != '_' && memcmp(name + i + 1, "___", 3) == 0 && name[i + 4] != '_')
			return i + 1;
	return len;
}

/* The slot that has the name, or the free slot for it. */
static uint32_t find_slot(const struct type_names *names, const char *name, size_t len)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619u;
	for (uint32_t slot = hash % TYPE_NAMES_MAX;; slot = (slot + 1) % TYPE_NAMES_MAX) {
		const char *known = names->text + names->slots[slot];

		if (names->slots[slot] == 0 ||
			(strncmp(known, name, len) == 0 && known[len] == '\0'))
			return slot;
	}
}

int type_names_add(struct type_names *names, const char *name)
{
	size_t len = essential_len(name);
	uint32_t slot = find_slot(names, name, len);

	if (names->slots[slot] != 0)
		return 0;
	/* Half of the slots stay free, so that a search is short and ends. */
	if (names->count == TYPE_NAMES_MAX / 2 || names->used + len + 2 > TYPE_NAMES_BYTES)
		return -E2BIG;
	/* The first byte stays unused, since the offset 0 means that a slot is free. */
	names->count++;
	names->slots[slot] = names->used + 1;
	memcpy(names->text + names->slots[slot], name, len);
	names->used += (uint32_t)len + 1;
	return 0;
}

bool type_names_has(const struct type_names *names, const char *name)
{
	return names->slots[find_slot(names, name, essential_len(name))] != 0;
}
