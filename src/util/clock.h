/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clocks: monotonic nanoseconds everywhere, wall time only where something is printed.
 * Used by every room; depends on no room.
 * Never sleeps.
 */
#ifndef IOSTALL_UTIL_CLOCK_H
#define IOSTALL_UTIL_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

/* CLOCK_MONOTONIC, the clock of bpf_ktime_get_ns(). */
uint64_t clock_mono_ns(void);

/* CLOCK_REALTIME, nanoseconds since the epoch. */
uint64_t clock_real_ns(void);

/* CPU time of the whole process (CLOCK_PROCESS_CPUTIME_ID). */
uint64_t clock_process_cpu_ns(void);
/* Of the calling thread. */
uint64_t clock_thread_cpu_ns(void);

#define CLOCK_RFC3339_SIZE sizeof("2026-11-20T03:12:07.000000Z")

/* RFC 3339 in UTC with microseconds; buf holds CLOCK_RFC3339_SIZE bytes. */
void clock_format_rfc3339(uint64_t real_ns, char *buf, size_t size);

#define CLOCK_LOCAL_SIZE sizeof("2026-11-20 04:12:07.000 +01:00")

/* Local time with milliseconds and the offset beside; buf holds CLOCK_LOCAL_SIZE bytes. */
void clock_format_local(uint64_t real_ns, char *buf, size_t size);

/* "20261120T031207Z", the first part of an incident id; buf holds 17 bytes. */
void clock_format_compact(uint64_t real_ns, char *buf, size_t size);

#endif
