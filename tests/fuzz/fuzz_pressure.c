/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "watch/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct watch_pressure pressure = { .some_us = 1, .full_us = 2 };

	if (watch_parse_pressure((const char *)data, size, &pressure) < 0) {
		if (pressure.some_us != 1 || pressure.full_us != 2 || pressure.has_full)
			abort();
	} else if (!pressure.has_full && pressure.full_us != 0) {
		abort();
	}
	return 0;
}
