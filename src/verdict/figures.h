/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures about a device that the rules use and the sentences show.
 * Used inside this room only.
 * Pure; never changes the facts.
 */
#ifndef IOSTALL_VERDICT_FIGURES_H
#define IOSTALL_VERDICT_FIGURES_H

#include <stdbool.h>

#include "util/clock.h"
#include "verdict/facts.h"

/* Requests and bytes of all kinds, added up. */
uint64_t verdict_requests_of(const struct verdict_work *work);
uint64_t verdict_bytes_of(const struct verdict_work *work);

/* Requests and bytes per second of a device while it was busy. */
void verdict_device_rates(const struct verdict_device *d, double *ret_requests, double *ret_bytes);
/*
 * How long it was at work in what the verdict is about: while it was busy since VERDICT_LEAD_NS
 * before the trigger, which the samples say, or all that was traced if that is more.
 */
double verdict_work_ns(const struct verdict_device *d);
/* The part of that in percent. */
double verdict_share_pct(const struct verdict_device *d, uint64_t busy_ns);
/* Mean queue depth while it was busy; NAN: it never was. */
double verdict_queue_of(const struct verdict_device *d);
/* The mean time of a request while it was busy; NAN: none completed. */
double verdict_busy_await_ms(const struct verdict_device *d, enum verdict_kind kind);
/* The kind of request that took the most time while it was busy. */
enum verdict_kind verdict_main_kind(const struct verdict_device *d);
/* The larger of the greatest read and write awaits, in milliseconds. */
double verdict_await_of(const struct verdict_device *d);

/* Whether one of two control groups is in the other, or both are the same. */
bool verdict_is_group_line(const char *a, const char *b);

/* A device whose requests are passed on to another one: loop, device mapper, md. */
bool verdict_is_stacked(const struct verdict_device *d);
/* Whether a kernel thread waits for a frozen file system, which may be the one below the device. */
bool verdict_is_frozen_below(const struct verdict_facts *f, const struct verdict_device *d);

#endif
