/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "watch/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* /proc/stat, line by line as the watchdog takes it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor text = { (const char *)data, (const char *)data + size }, line;
	struct watch_stat stat = { 0 };
	uint32_t lines = 0;

	while (cursor_line(&text, &line)) {
		(void)watch_parse_stat_line(line, &stat);
		lines++;
	}
	if (stat.cpus > lines)
		abort();
	if (!stat.has_cpu && (stat.busy_ticks || stat.idle_ticks || stat.iowait_ticks))
		abort();
	return 0;
}
