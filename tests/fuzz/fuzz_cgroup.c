/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/PID/cgroup: a unit, a container, or nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "enrich/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len > n && strcmp(s + len - n, suffix) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char unit[RECORD_LIST_SIZE];
	const char *end;
	size_t len;

	memset(unit, 0x7f, sizeof(unit));
	process_parse_cgroup((const char *)data, size, unit, sizeof(unit));
	end = memchr(unit, '\0', sizeof(unit));
	if (!end)
		abort();
	len = (size_t)(end - unit);
	if (len == 0)
		return 0;
	if (strncmp(unit, "container:", 10) == 0 && len == 22 &&
		strspn(unit + 10, "0123456789abcdefABCDEF") == 12)
		return 0;
	/* A NUL byte of the input ends the text early; /proc has none. */
	if (memchr(data, '\0', size))
		return 0;
	if (memchr(unit, '/', len) || memchr(unit, '\n', len))
		abort();
	if (!ends_with(unit, len, ".service") && !ends_with(unit, len, ".scope") &&
		!ends_with(unit, len, ".slice"))
		abort();
	return 0;
}
