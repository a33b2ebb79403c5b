/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/since.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/parse.h"
#include "util/text.h"

#define NSEC_PER_DAY (24 * 3600 * NSEC_PER_SEC)

/* As parse_duration_ns(), and days. */
static int parse_ago(const char *s, uint64_t *ret_ns)
{
	size_t len = strlen(s);
	char days[24];
	uint64_t count;

	if (len == 0 || s[len - 1] != 'd' || len > sizeof(days))
		return parse_duration_ns(s, ret_ns);
	text_copy(days, len, s);
	if (parse_unsigned(days, &count) < 0 || count > UINT64_MAX / NSEC_PER_DAY)
		return -EINVAL;
	*ret_ns = count * NSEC_PER_DAY;
	return 0;
}

/* mktime() takes the 31st of February for the 3rd of March. */
static int parse_date(const char *s, uint64_t *ret_real_ns)
{
	static const char *const formats[] = { "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M",
		"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S" };

	for (unsigned int i = 0; i < ARRAY_SIZE(formats); i++) {
		struct tm tm = { .tm_isdst = -1 }, given;
		const char *end = strptime(s, formats[i], &tm);
		time_t sec;

		if (!end || *end)
			continue;
		given = tm;
		sec = mktime(&tm);
		if (sec < 0 || tm.tm_mday != given.tm_mday || tm.tm_mon != given.tm_mon)
			return -EINVAL;
		*ret_real_ns = (uint64_t)sec * NSEC_PER_SEC;
		return 0;
	}
	return -EINVAL;
}

int since_parse(const char *s, uint64_t now_real_ns, uint64_t *ret_real_ns)
{
	uint64_t ago_ns;

	if (parse_ago(s, &ago_ns) < 0)
		return parse_date(s, ret_real_ns);
	*ret_real_ns = ago_ns < now_real_ns ? now_real_ns - ago_ns : 0;
	return 0;
}
