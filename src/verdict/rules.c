/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When each verdict holds. Checked in this order, the first that holds is it. */
#include "verdict/rules.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"

/* What rule `hung` calls hung, too; half of that when the device did little else meanwhile. */
#define HUNG_NS (3 * NSEC_PER_SEC)
#define HUNG_MOSTLY_NS (HUNG_NS / 2)
/* A snapshot freezes a file system for some ten milliseconds. */
#define FROZEN_NS NSEC_PER_SEC
#define BUSY_NS NSEC_PER_SEC
/* The slowest disks in use do more of one or the other under any load. */
#define SLOW_REQUESTS 30
#define SLOW_BYTES (1 << 20)
/* Against its own calm minute: five times the time for each request, without more of them. */
#define SLOWER_TIMES 5
#define SLOWER_LOAD 1.2
#define CALM_NS (5 * NSEC_PER_SEC)
#define CALM_REQUESTS 5
/* A device that serves requests in parallel is at work all the time long before it is at its limit. */
#define LOADED_QUEUE 2
#define LOADED_AWAIT_MS 20
/* Nobody notices a shorter wait. */
#define HELD_BACK_NS (NSEC_PER_SEC / 4)
#define WAITING_NS NSEC_PER_SEC
#define WAITING_THREADS 3
/* A shorter silence is a slow answer. */
#define SILENT_NS (2 * NSEC_PER_SEC)

static double larger(double a, double b)
{
	return a > b ? a : b;
}

void verdict_device_rates(const struct verdict_device *d, double *ret_requests, double *ret_bytes)
{
	double busy_s = (double)d->busy.ns / NSEC_PER_SEC, all_s = (double)d->busy_ns / NSEC_PER_SEC;

	*ret_requests = busy_s > 0 ? d->busy.finished / busy_s : 0;
	*ret_bytes = busy_s > 0 ? (double)d->busy.bytes / busy_s : 0;
	/* The probe counts exactly, but only since it is armed: the larger is nearer to the truth. */
	if (!d->has_totals || !(all_s > 0))
		return;
	*ret_requests = larger(*ret_requests, (double)d->requests / all_s);
	*ret_bytes = larger(*ret_bytes, (double)(d->read_bytes + d->write_bytes) / all_s);
}

static bool is_hung(const struct verdict_facts *f, const struct verdict_device *d)
{
	(void)f;
	return d->silent_ns >= HUNG_NS ||
		(d->silent_ns >= HUNG_MOSTLY_NS && d->silent_ns >= d->busy_ns / 2);
}

static bool is_frozen(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_frozen;
	return f->waits[VERDICT_WAIT_frozen].longest_ns >= FROZEN_NS;
}

bool verdict_is_stacked(const struct verdict_device *d)
{
	return strncmp(d->name, "loop", 4) == 0 || strncmp(d->name, "dm-", 3) == 0 ||
		strncmp(d->name, "md", 2) == 0;
}

bool verdict_is_frozen_below(const struct verdict_facts *f, const struct verdict_device *d)
{
	return d && verdict_is_stacked(d) && f->waits[VERDICT_WAIT_frozen].kernel_longest_ns >= FROZEN_NS;
}

static bool is_slower_than_before(const struct verdict_device *d, double requests, double bytes)
{
	double calm_s = (double)d->calm.ns / NSEC_PER_SEC;
	double calm_await_ns, await_ns;

	if (d->calm.ns < CALM_NS || d->calm.finished / calm_s < CALM_REQUESTS || !(d->busy.finished > 0))
		return false;
	calm_await_ns = d->calm.await_ns_sum / d->calm.finished;
	await_ns = d->busy.await_ns_sum / d->busy.finished;
	return d->calm.util_ns_sum < (double)d->calm.ns / 2 && await_ns >= SLOWER_TIMES * calm_await_ns &&
		requests <= SLOWER_LOAD * d->calm.finished / calm_s &&
		bytes <= SLOWER_LOAD * (double)d->calm.bytes / calm_s;
}

static bool is_slow(const struct verdict_facts *f, const struct verdict_device *d)
{
	double requests, bytes;

	(void)f;
	if (d->busy.ns < BUSY_NS)
		return false;
	verdict_device_rates(d, &requests, &bytes);
	return (requests < SLOW_REQUESTS && bytes < SLOW_BYTES) ||
		is_slower_than_before(d, requests, bytes);
}

static bool is_saturated(const struct verdict_facts *f, const struct verdict_device *d)
{
	(void)f;
	return d->busy.ns >= BUSY_NS && (verdict_waited_ns(d) > 0 ||
		d->busy.queue_ns_sum >= LOADED_QUEUE * (double)d->busy.ns ||
		larger(d->read_await_max_ms, d->write_await_max_ms) >= LOADED_AWAIT_MS);
}

/* What the device can have to do with the longest of the waits for it. */
static uint64_t device_part_ns(const struct verdict_device *d)
{
	uint64_t ns = (uint64_t)(larger(d->read_await_max_ms, d->write_await_max_ms) * NSEC_PER_MSEC);
	uint64_t parts[] = { d->busiest_ns, d->has_totals ? d->queue_time.max_ns : 0,
		d->has_totals ? d->device_time.max_ns : 0 };

	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		ns = parts[i] > ns ? parts[i] : ns;
	return ns;
}

static bool is_held_back(const struct verdict_facts *f, const struct verdict_device *d)
{
	/* Without a sample its idleness is not known. */
	return f->samples > 0 && d->util_max_pct < VERDICT_IDLE_PCT && d->longest_ns >= HELD_BACK_NS &&
		d->longest_ns / 2 >= device_part_ns(d);
}

static bool is_limited(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_cgroup;
	return f->waits[VERDICT_WAIT_cgroup].longest_ns >= HELD_BACK_NS;
}

static unsigned int count_threads(const struct verdict_facts *f, enum verdict_wait wait)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < VERDICT_THREADS_MAX; i++)
		count += f->threads[i].tid != 0 && !f->threads[i].kernel && f->threads[i].wait == wait;
	return count;
}

/* The longest waits are for something that is no device. */
static bool is_waiting(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	enum verdict_wait longest = VERDICT_WAIT_none;

	for (enum verdict_wait w = 0; w < VERDICT_WAIT_COUNT; w++)
		if (f->waits[w].longest_ns > f->waits[longest].longest_ns)
			longest = w;
	if (longest != VERDICT_WAIT_journal && longest != VERDICT_WAIT_lock &&
		longest != VERDICT_WAIT_memory && longest != VERDICT_WAIT_server)
		return false;
	*ret_wait = longest;
	return f->waits[longest].longest_ns >= WAITING_NS || count_threads(f, longest) >= WAITING_THREADS;
}

const struct verdict_database *verdict_silent_database(const struct verdict_facts *f)
{
	const struct verdict_database *silent = NULL;
	uint64_t longest_ns = SILENT_NS - 1;

	for (unsigned int i = 0; i < CONFIG_SQL_TARGETS_MAX; i++) {
		if (f->databases[i].longest.ns <= longest_ns)
			continue;
		silent = &f->databases[i];
		longest_ns = silent->longest.ns;
	}
	return silent;
}

bool verdict_is_of_server(const struct verdict_thread *t, const struct verdict_database *d)
{
	if (t->tid == 0 || t->kernel || d->server.pid == 0)
		return false;
	/* Each session of PostgreSQL is a process of the same name. */
	return t->pid == d->server.pid || strcmp(t->comm, d->server.comm) == 0;
}

static bool has_thread_that_waits(const struct verdict_facts *f, const struct verdict_database *d,
	enum verdict_wait wait)
{
	for (unsigned int i = 0; i < VERDICT_THREADS_MAX; i++)
		if (f->threads[i].wait == wait && verdict_is_of_server(&f->threads[i], d))
			return true;
	return false;
}

/*
 * A server whose own threads wait long for a lock, the journal, memory or a file server is silent because of
 * that: `waiting` is nearer to the reason, and its sentence has the silence, too. The wait of others explains
 * nothing. One that is stopped needs no other reason: whoever waits for it may wait for what it holds.
 */
static bool is_unanswered(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	const struct verdict_database *d = verdict_silent_database(f);
	enum verdict_wait wait;

	*ret_wait = VERDICT_WAIT_COUNT;
	return d && (d->longest.stopped || !is_waiting(f, &wait) || !has_thread_that_waits(f, d, wait));
}

static bool is_anything(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	(void)f;
	*ret_wait = VERDICT_WAIT_COUNT;
	return true;
}

const struct verdict_rule verdict_rules[] = {
	{ "hung", VERDICT_MEASURED, is_hung, NULL, false, verdict_say_hung },
	{ "frozen", VERDICT_MEASURED, NULL, is_frozen, false, verdict_say_frozen },
	/* Before `saturated`: who loads a device that is slow by itself is its victim. */
	{ "slow", VERDICT_MEASURED, is_slow, NULL, false, verdict_say_slow },
	{ "saturated", VERDICT_MEASURED, is_saturated, NULL, true, verdict_say_saturated },
	{ "throttled", VERDICT_MEASURED, NULL, is_limited, false, verdict_say_limited },
	/* Nobody sees the limit itself: only that the time was spent before the queue. */
	{ "throttled", VERDICT_INFERRED, is_held_back, NULL, false, verdict_say_held_back },
	{ "unanswered", VERDICT_MEASURED, NULL, is_unanswered, false, verdict_say_unanswered },
	{ "waiting", VERDICT_MEASURED, NULL, is_waiting, false, verdict_say_waiting },
	{ "unknown", VERDICT_INFERRED, NULL, is_anything, false, verdict_say_unknown },
};
