/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/refaults.h"

#include <string.h>

#include "util/cleanup.h"

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
#define COUNTER(name, member)                                                                      \
	{                                                                                          \
		name, offsetof(struct refaults, member)                                            \
	}
	COUNTER("workingset_refault_file", file),
	COUNTER("workingset_refault_anon", anon),
	COUNTER("workingset_restore_file", file_active),
	COUNTER("workingset_restore_anon", anon_active),
	COUNTER("pgmajfault", major_faults),
	COUNTER("pswpin", swapped_in),
	COUNTER("pswpout", swapped_out),
	COUNTER("pgpgin", read_kib),
	COUNTER("pgpgout", written_kib),
	COUNTER("pgsteal_kswapd", reclaimed_kswapd),
	COUNTER("pgsteal_direct", reclaimed_direct),
#undef COUNTER
};

static uint64_t *counter_of(struct refaults *r, unsigned int i)
{
	return (uint64_t *)((char *)r + counters[i].offset);
}

void refaults_take_line(struct cursor line, struct refaults *refaults)
{
	const char *word;
	uint64_t value;
	size_t len;

	if (cursor_word(&line, &word, &len) < 0 || cursor_u64(&line, &value) < 0)
		return;
	if (len > 6 && memcmp(word, "total_", 6) == 0) {
		word += 6;
		len -= 6;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(counters); i++)
		if (word_is(word, len, counters[i].name))
			*counter_of(refaults, i) = value;
}

struct refaults refaults_since(const struct refaults *now, const struct refaults *before)
{
	struct refaults a = *now, b = *before, since = { 0 };

	for (unsigned int i = 0; i < ARRAY_SIZE(counters); i++)
		if (*counter_of(&a, i) > *counter_of(&b, i))
			*counter_of(&since, i) = *counter_of(&a, i) - *counter_of(&b, i);
	return since;
}
