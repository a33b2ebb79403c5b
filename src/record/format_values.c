/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names, numbers and times of a record as a person reads them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/fields.h"
#include "record/format.h"
#include "util/clock.h"

void record_add_printable(struct text *t, const char *s)
{
	const char *replaced;

	/*
	 * A record keeps a byte that was not UTF-8 as 0xff; which byte it was nobody knows any
	 * more.
	 */
	while ((replaced = strchr(s, '\xff'))) {
		text_add_printable(t, s, (size_t)(replaced - s));
		text_add(t, "\xef\xbf\xbd");
		s = replaced + 1;
	}
	text_add_printable(t, s, strlen(s));
}

void format_add_known(struct text *t, const char *before, const char *s)
{
	if (*s == '\0')
		return;
	text_add(t, before);
	record_add_printable(t, s);
}

void format_add_or_unknown(struct text *t, const char *s)
{
	record_add_printable(t, *s ? s : "?");
}

/* Rounded, as the page with scripts does, to the last digit that is shown. */
static uint64_t round_to(uint64_t ns, uint64_t unit_ns)
{
	return ns > UINT64_MAX - unit_ns ? ns : (ns + unit_ns / 2) / unit_ns * unit_ns;
}

void record_add_duration(struct text *t, uint64_t duration_ns)
{
	uint64_t sec;

	if (duration_ns >= 3600 * NSEC_PER_SEC)
		duration_ns = round_to(duration_ns, 60 * NSEC_PER_SEC);
	else if (duration_ns >= 60 * NSEC_PER_SEC)
		duration_ns = round_to(duration_ns, NSEC_PER_SEC);
	else if (duration_ns >= NSEC_PER_SEC)
		duration_ns = round_to(duration_ns, 10 * NSEC_PER_MSEC);
	else if (duration_ns >= 10 * NSEC_PER_MSEC)
		duration_ns = round_to(duration_ns, NSEC_PER_MSEC);
	sec = duration_ns / NSEC_PER_SEC;
	if (duration_ns < NSEC_PER_MSEC)
		text_addf(t, "%llu us", duration_ns / NSEC_PER_USEC);
	else if (duration_ns < 10 * NSEC_PER_MSEC)
		text_addf(t, "%.1f ms", (double)duration_ns / NSEC_PER_MSEC);
	else if (sec < 1)
		text_addf(t, "%llu ms", duration_ns / NSEC_PER_MSEC);
	else if (sec < 60)
		text_addf(t, "%" PRIu64 ".%02u s", sec,
			(unsigned int)(duration_ns % NSEC_PER_SEC / (10 * NSEC_PER_MSEC)));
	else if (sec < 3600)
		text_addf(t, "%" PRIu64 "m%02us", sec / 60, (unsigned int)(sec % 60));
	else
		text_addf(t, "%" PRIu64 "h%02um", sec / 3600, (unsigned int)(sec / 60 % 60));
}

void record_add_size(struct text *t, uint64_t bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	text_addf(t, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void format_add_real(struct text *t, double value, const char *unit)
{
	if (isfinite(value))
		text_addf(t, "%.4g%s", value, unit);
	else
		text_add(t, "-");
}

/* "  +12.345s  ": behind the open, or before it for the samples that led up to it. */
void format_add_time(struct text *t, const struct record *r, uint64_t opened_mono_ns)
{
	uint64_t mono_ns = record_line_mono_ns(r);
	bool before = mono_ns < opened_mono_ns;
	uint64_t distance_ns = before ? opened_mono_ns - mono_ns : mono_ns - opened_mono_ns;
	uint64_t ms = distance_ns / NSEC_PER_MSEC;
	char number[32];

	snprintf(number, sizeof(number), "%c%" PRIu64 ".%03u", before ? '-' : '+', ms / 1000,
		(unsigned int)(ms % 1000));
	text_addf(t, "%9ss  ", number);
}

void record_add_io_limit(struct text *t, enum record_io_limit kind, uint64_t per_s)
{
	bool is_read = kind == RECORD_IO_LIMIT_read_bytes || kind == RECORD_IO_LIMIT_reads;

	if (kind == RECORD_IO_LIMIT_reads || kind == RECORD_IO_LIMIT_writes) {
		text_addf(t, "%" PRIu64 " ", per_s);
	} else {
		record_add_size(t, per_s);
		text_add(t, " of ");
	}
	text_add(t, is_read ? "reads a second" : "writes a second");
}
