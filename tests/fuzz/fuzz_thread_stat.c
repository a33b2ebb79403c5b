/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watch/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The per-thread files: stat and status. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct watch_thread_status status = { .id = -7 };
	uint64_t value = 5;

	if (watch_parse_start_ticks(text, size, &value) < 0 && value != 5)
		abort();
	if (watch_parse_thread_status(text, size, &status) < 0) {
		if (status.id != -7)
			abort();
	} else if (status.id <= 0 || !memchr(status.comm, '\0', sizeof(status.comm))) {
		abort();
	}
	return 0;
}
