/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/tally.h"

#include <string.h>

#include "watch/rules.h"

static unsigned int place_of(const char *rule)
{
	unsigned int i = 0;

	while (i < CONFIG_RULE_COUNT && strcmp(rules_name(i), rule) != 0)
		i++;
	return i;
}

void tally_open(struct tally *tally, const char *rule, uint64_t now_real_ns)
{
	unsigned int place = place_of(rule);

	tally->opened[place]++;
	tally->last_real_ns[place] = now_real_ns;
}

void tally_add_device(struct tally *tally, const struct record_device *device)
{
	if (!device->final)
		return;
	for (unsigned int i = 0; i < RECORD_HISTOGRAM_MAX; i++) {
		tally->queue[i] += device->queue_histogram[i];
		tally->device[i] += device->device_histogram[i];
	}
}

void tally_close(struct tally *tally, const char *rule, enum record_class class,
	const struct record_close *close)
{
	tally->closed[place_of(rule)][class]++;
	for (unsigned int i = 0; i < RECORD_LOST_COUNT; i++)
		tally->lost[i] += close->lost[i];
}
