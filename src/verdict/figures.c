/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/figures.h"

#include <math.h>
#include <string.h>

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static uint64_t sum(const uint64_t values[static VERDICT_KINDS])
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < VERDICT_KINDS; i++)
		total += values[i];
	return total;
}

uint64_t verdict_requests_of(const struct verdict_work *work)
{
	return sum(work->requests);
}

uint64_t verdict_bytes_of(const struct verdict_work *work)
{
	return sum(work->bytes);
}

double verdict_busy_await_ms(const struct verdict_device *d, enum verdict_kind kind)
{
	uint64_t requests = d->busy.requests[kind];

	return requests ? (double)d->busy.ticks_ns[kind] / (double)requests / NSEC_PER_MSEC : NAN;
}

enum verdict_kind verdict_main_kind(const struct verdict_device *d)
{
	enum verdict_kind most = VERDICT_READ;

	for (enum verdict_kind kind = 0; kind < VERDICT_KINDS; kind++)
		if (d->busy.ticks_ns[kind] > d->busy.ticks_ns[most])
			most = kind;
	return most;
}

void verdict_device_rates(const struct verdict_device *d, double *ret_requests, double *ret_bytes)
{
	double busy_s = (double)d->busy.ns / NSEC_PER_SEC,
	       all_s = (double)d->busy_ns / NSEC_PER_SEC;

	*ret_requests = busy_s > 0 ? (double)verdict_requests_of(&d->busy) / busy_s : 0;
	*ret_bytes = busy_s > 0 ? (double)verdict_bytes_of(&d->busy) / busy_s : 0;
	/*
	 * The probe counts exactly, but only since it was armed. The larger value is closer to the
	 * truth.
	 */
	if (!d->has_totals || !(all_s > 0))
		return;
	*ret_requests = larger(*ret_requests, (double)d->requests / all_s);
	*ret_bytes = larger(*ret_bytes, (double)(d->read_bytes + d->write_bytes) / all_s);
}

double verdict_work_ns(const struct verdict_device *d)
{
	return larger(d->busy.util_ns_sum, (double)d->traced_ns + (double)d->before_ns);
}

double verdict_share_pct(const struct verdict_device *d, uint64_t busy_ns)
{
	double work_ns = verdict_work_ns(d), pct = 100 * (double)busy_ns / work_ns;

	if (!(work_ns > 0))
		return 0;
	/* Two completions at the same time may both have counted the time before them. */
	return pct < 100 ? pct : 100;
}

bool verdict_is_stacked(const struct verdict_device *d)
{
	return strncmp(d->name, "loop", 4) == 0 || strncmp(d->name, "dm-", 3) == 0 ||
		strncmp(d->name, "md", 2) == 0;
}

bool verdict_is_frozen_below(const struct verdict_facts *f, const struct verdict_device *d)
{
	return d && verdict_is_stacked(d) &&
		f->waits[VERDICT_WAIT_frozen].kernel_longest_ns >= VERDICT_FROZEN_NS;
}

double verdict_queue_of(const struct verdict_device *d)
{
	return d->busy.ns > 0 ? d->busy.queue_ns_sum / (double)d->busy.ns : NAN;
}

double verdict_await_of(const struct verdict_device *d)
{
	return d->read_await_max_ms > d->write_await_max_ms ? d->read_await_max_ms
							    : d->write_await_max_ms;
}

bool verdict_is_group_line(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b), len = a_len < b_len ? a_len : b_len;
	const char *longer = a_len < b_len ? b : a;

	return strncmp(a, b, len) == 0 && (longer[len] == '\0' || longer[len] == '/');
}
