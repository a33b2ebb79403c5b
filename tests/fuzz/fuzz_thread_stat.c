/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watch/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The per-thread files: stat, schedstat, status. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct watch_thread_stat stat = { .id = -7 };
	uint64_t value = 5;

	if (watch_parse_thread_stat(text, size, &stat) < 0) {
		if (stat.id != -7)
			abort();
	} else if (stat.id <= 0 || !memchr(stat.comm, '\0', sizeof(stat.comm))) {
		abort();
	}
	if (watch_parse_schedstat(text, size, &value) < 0 && value != 5)
		abort();
	value = 5;
	if (watch_parse_status_switches(text, size, &value) < 0 && value != 5)
		abort();
	return 0;
}
