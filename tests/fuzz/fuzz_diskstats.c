/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "watch/disks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(const struct record_disk *view)
{
	if (!memchr(view->dev_name, '\0', sizeof(view->dev_name)) || view->dev_name[0] == '\0')
		abort();
	/* The negation, so that not-a-number is caught as well. */
	if (!(view->util_pct >= 0 && view->util_pct <= 100) || !(view->queue >= 0) ||
		!(view->read_await_ms >= 0) || !(view->write_await_ms >= 0))
		abort();
	if (view->inflight == 0 && view->no_completion_ns != 0)
		abort();
}

/* Readings one after the other, separated by NUL: deltas between whatever two texts say. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor text = { (const char *)data, (const char *)data + size };
	struct disks *disks = malloc(sizeof(*disks));
	uint64_t now_ns = NSEC_PER_SEC;

	if (!disks)
		return 0;
	if (disks_init(disks, -1, NULL, NULL) < 0)
		abort();
	while (text.p < text.end) {
		const char *end = memchr(text.p, '\0', (size_t)(text.end - text.p));
		struct cursor reading = { text.p, end ? end : text.end }, line;
		struct record_reading sample = { 0 };

		disks_begin_reading(disks, now_ns);
		while (cursor_line(&reading, &line))
			disks_take_line(disks, line);
		disks_end_reading(disks, true);
		disks_fill_sample(disks, &sample);
		if (sample.devices_count > RECORD_DEVICES_MAX)
			abort();
		for (uint32_t i = 0; i < sample.devices_count; i++)
			check_view(&sample.devices[i]);
		text.p = end ? end + 1 : text.end;
		now_ns += NSEC_PER_SEC;
	}
	disks_done(disks);
	free(disks);
	return 0;
}
