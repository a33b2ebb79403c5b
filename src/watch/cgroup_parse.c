/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/cgroup_parse.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"

const char *const cgroup_io_max_keys[RECORD_IO_LIMIT_COUNT] = {
	[RECORD_IO_LIMIT_read_bytes] = "rbps",
	[RECORD_IO_LIMIT_write_bytes] = "wbps",
	[RECORD_IO_LIMIT_reads] = "riops",
	[RECORD_IO_LIMIT_writes] = "wiops",
};

const char *const cgroup_io_stat_keys[RECORD_IO_LIMIT_COUNT] = {
	[RECORD_IO_LIMIT_read_bytes] = "rbytes",
	[RECORD_IO_LIMIT_write_bytes] = "wbytes",
	[RECORD_IO_LIMIT_reads] = "rios",
	[RECORD_IO_LIMIT_writes] = "wios",
};

uint64_t cgroup_parse_reclaimable(const char *buf, size_t len)
{
	static const char *const names[] = { "active_file", "inactive_file", "slab_reclaimable" };
	struct cursor c = { buf, buf + len }, line;
	uint64_t own = 0, total = 0;
	bool has_total = false;

	while (cursor_line(&c, &line)) {
		const char *word;
		size_t word_len;
		uint64_t value;
		bool is_total;

		if (cursor_word(&line, &word, &word_len) < 0 || cursor_u64(&line, &value) < 0)
			continue;
		/*
		 * v1 has each number twice: alone, and as total_ with its children, which the limit
		 * is for.
		 */
		is_total = word_len > 6 && memcmp(word, "total_", 6) == 0;
		word += is_total ? 6 : 0;
		word_len -= is_total ? 6 : 0;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			if (!word_is(word, word_len, names[i]))
				continue;
			has_total = has_total || is_total;
			*(is_total ? &total : &own) += value;
		}
	}
	return has_total ? total : own;
}

double cgroup_parse_cpu_max(struct cursor text)
{
	uint64_t quota_us, period_us;

	if (cursor_u64(&text, &quota_us) < 0 || cursor_u64(&text, &period_us) < 0 || period_us == 0)
		return 0;
	return (double)quota_us / (double)period_us;
}

void cgroup_parse_cpu_stat(struct cursor text, struct cgroup_cpu_counts *counts)
{
	static const struct {
		const char *name;
		size_t offset;
		uint64_t unit_ns;
	} keys[] = {
		{ "usage_usec", offsetof(struct cgroup_cpu_counts, used_ns), NSEC_PER_USEC },
		{ "throttled_usec", offsetof(struct cgroup_cpu_counts, throttled_ns),
			NSEC_PER_USEC },
		{ "throttled_time", offsetof(struct cgroup_cpu_counts, throttled_ns), 1 },
	};
	struct cursor line;

	while (cursor_line(&text, &line)) {
		const char *word;
		uint64_t value;
		size_t len;

		if (cursor_word(&line, &word, &len) < 0 || cursor_u64(&line, &value) < 0)
			continue;
		for (unsigned int i = 0; i < ARRAY_SIZE(keys); i++)
			if (word_is(word, len, keys[i].name))
				*(uint64_t *)((char *)counts + keys[i].offset) =
					value * keys[i].unit_ns;
	}
}

int cgroup_parse_device(struct cursor *line, uint32_t *ret_major, uint32_t *ret_minor)
{
	uint64_t major, minor;

	if (cursor_u64(line, &major) < 0 || line->p == line->end || *line->p++ != ':' ||
		cursor_u64(line, &minor) < 0 || major > UINT32_MAX || minor > UINT32_MAX)
		return -EINVAL;
	*ret_major = (uint32_t)major;
	*ret_minor = (uint32_t)minor;
	return 0;
}

int cgroup_parse_io_line(struct cursor line, const char *const keys[static RECORD_IO_LIMIT_COUNT],
	uint32_t *ret_major, uint32_t *ret_minor, struct cgroup_io_values *ret_values)
{
	const char *word;
	size_t len;

	if (cgroup_parse_device(&line, ret_major, ret_minor) < 0)
		return -EINVAL;
	memset(ret_values, 0, sizeof(*ret_values));
	while (cursor_word(&line, &word, &len) == 0) {
		const char *is = memchr(word, '=', len);
		struct cursor number;

		for (unsigned int i = 1; is && i < RECORD_IO_LIMIT_COUNT; i++) {
			if (!word_is(word, (size_t)(is - word), keys[i]))
				continue;
			number = (struct cursor){ is + 1, word + len };
			if (cursor_u64(&number, &ret_values->of[i]) < 0)
				ret_values->of[i] = 0;
		}
	}
	return 0;
}
