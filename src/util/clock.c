/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

uint64_t clock_process_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_thread_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void clock_format_rfc3339(uint64_t real_ns, char *buf, size_t size)
{
	time_t sec = (time_t)(real_ns / NSEC_PER_SEC);
	unsigned int usec = (unsigned int)(real_ns % NSEC_PER_SEC / NSEC_PER_USEC);
	struct tm tm;
	size_t n;

	gmtime_r(&sec, &tm);
	n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, size - n, ".%06uZ", usec);
}

void clock_format_local(uint64_t real_ns, char *buf, size_t size)
{
	time_t sec = (time_t)(real_ns / NSEC_PER_SEC);
	unsigned int ms = (unsigned int)(real_ns % NSEC_PER_SEC / NSEC_PER_MSEC);
	struct tm tm;
	size_t n;
	long offset_min;

	localtime_r(&sec, &tm);
	n = strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
	offset_min = tm.tm_gmtoff / 60;
	snprintf(buf + n, size - n, ".%03u %c%02ld:%02ld", ms, offset_min < 0 ? '-' : '+',
		labs(offset_min) / 60, labs(offset_min) % 60);
}

void clock_format_compact(uint64_t real_ns, char *buf, size_t size)
{
	time_t sec = (time_t)(real_ns / NSEC_PER_SEC);
	struct tm tm;

	gmtime_r(&sec, &tm);
	strftime(buf, size, "%Y%m%dT%H%M%SZ", &tm);
}
