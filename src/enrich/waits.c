/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/waits.h"

#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"

/* How far from a function that many reasons share one that tells the reason may be. */
#define WEAK_FRAMES 3

static const struct waits {
	const char *prefix;
	const char *waits_for;
	bool weak;
} table[] = {
#define WAITS(prefix, waits_for) { #prefix, waits_for, false },
#define WEAK(prefix, waits_for) { #prefix, waits_for, true },
#include "enrich/waits.def"
#undef WAITS
#undef WEAK
};

static const struct waits *find_frame(const char *frame)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++)
		if (strncmp(frame, table[i].prefix, strlen(table[i].prefix)) == 0)
			return &table[i];
	return NULL;
}

const char *waits_for(const char *kstack)
{
	const struct waits *weak = NULL;
	unsigned int since_weak = 0;

	while (*kstack && since_weak <= WEAK_FRAMES) {
		const struct waits *found = find_frame(kstack);

		if (found && !found->weak)
			return found->waits_for;
		if (found && !weak)
			weak = found;
		since_weak += weak != NULL;
		kstack += strcspn(kstack, "\n");
		kstack += *kstack == '\n' ? 1 : 0;
	}
	return weak ? weak->waits_for : "";
}
