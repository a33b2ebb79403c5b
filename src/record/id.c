/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "record/record.h"
#include "util/clock.h"

/* "20261120T031207Z-3f9c": 0 stands for a digit, x for a lower-case hexadecimal one. */
static const char id_shape[RECORD_ID_SIZE] = "00000000T000000Z-xxxx";

void record_make_id(uint64_t real_ns, uint32_t random, char ret_id[static RECORD_ID_SIZE])
{
	char second[sizeof("20261120T031207Z")];

	clock_format_compact(real_ns, second, sizeof(second));
	snprintf(ret_id, RECORD_ID_SIZE, "%s-%04x", second, random & 0xffff);
}

bool record_id_is_valid(const char *s, size_t len)
{
	if (len != sizeof(id_shape) - 1)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool digit = s[i] >= '0' && s[i] <= '9';

		if (id_shape[i] == '0' && digit)
			continue;
		if (id_shape[i] == 'x' && (digit || (s[i] >= 'a' && s[i] <= 'f')))
			continue;
		if (s[i] != id_shape[i] || id_shape[i] == '0' || id_shape[i] == 'x')
			return false;
	}
	return true;
}

bool record_file_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len == RECORD_FILE_SIZE - 1 && record_id_is_valid(name, RECORD_ID_SIZE - 1) &&
		strcmp(name + RECORD_ID_SIZE - 1, RECORD_FILE_SUFFIX) == 0;
}

uint64_t record_id_real_ns(const char *id)
{
	struct tm tm = { 0 };
	time_t sec;

	if (!strptime(id, "%Y%m%dT%H%M%SZ", &tm))
		return 0;
	sec = timegm(&tm);
	/* Over that the nanoseconds would wrap. */
	if (sec < 0 || (uint64_t)sec > UINT64_MAX / NSEC_PER_SEC - 1)
		return 0;
	return (uint64_t)sec * NSEC_PER_SEC;
}
