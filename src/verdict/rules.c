/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When each verdict holds. The rules are checked in the order of the table; the first match wins.
 */
#include "verdict/rules.h"

#include <math.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/devices.h"
#include "verdict/figures.h"

/*
 * As long as the trigger rule `hung` takes, or half of that when the device did little else
 * meanwhile.
 */
#define HUNG_NS (3 * NSEC_PER_SEC)
#define HUNG_MOSTLY_NS (HUNG_NS / 2)
#define BUSY_NS NSEC_PER_SEC
/* Even the slowest disks in use exceed one of the two rates under load. */
#define SLOW_REQUESTS 30
#define SLOW_BYTES (1 << 20)
/* A flush of an SSD takes about 1 ms, of a disk a turn or two: 16 ms. */
#define SLOW_FLUSHES 200
#define SLOW_FLUSH_MS 20
/*
 * Compared with its own baseline minute: five times the time for each request, without more
 * requests.
 */
#define SLOWER_TIMES 5
#define SLOWER_LOAD 1.2
/* Requests wait behind one another, too: the device itself is busy for so much longer with each. */
#define SLOWER_WORK_TIMES 2
/* A disk without credits does less than before however busy it was, and always as much. */
#define LESS_LOAD 0.8
#define PLATEAU 1.3f
#define PLATEAU_SAMPLES 3
#define BASELINE_NS (5 * NSEC_PER_SEC)
#define BASELINE_REQUESTS 5
/*
 * One reader that waits for each of its pages keeps a disk busy with a queue of one and short
 * waits. It is at its limit if nothing else could run meanwhile: as the rule psi_io_full takes
 * it.
 */
#define PRESSED 0.2
/* A shorter wait is not noticed. */
#define DELAYED_NS (NSEC_PER_SEC / 4)
#define WAITING_NS NSEC_PER_SEC
#define WAITING_THREADS 3
/* Fuller than this, a file system has no room for what a database writes next. */
#define QUITE_FULL_PCT 99.5
/* A shorter time without an answer is merely a slow answer. */
#define UNRESPONSIVE_NS (2 * NSEC_PER_SEC)

static bool is_full(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_COUNT;
	return *f->full.mount;
}

bool verdict_is_quite_full(const struct verdict_facts *f)
{
	return f->full.used_pct >= QUITE_FULL_PCT;
}

/* What becomes full later is one finding among others. */
static bool is_opened_by_full(const struct verdict_facts *f)
{
	return !f->full.later && verdict_is_quite_full(f);
}

static bool is_hung(const struct verdict_facts *f, const struct verdict_device *d)
{
	(void)f;
	return d->no_completion_ns >= HUNG_NS ||
		(d->no_completion_ns >= HUNG_MOSTLY_NS && d->no_completion_ns >= d->busy_ns / 2);
}

static bool is_frozen(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_frozen;
	return f->waits[VERDICT_WAIT_frozen].longest_ns >= VERDICT_FROZEN_NS;
}

double verdict_times_slower(const struct verdict_device *d)
{
	enum verdict_kind kind = verdict_main_kind(d);
	const struct verdict_work *now = &d->busy, *before = &d->baseline;

	if (now->requests[kind] == 0 || before->requests[kind] == 0)
		return 0;
	/* The kernel counts whole milliseconds, perhaps none for a few quick requests. */
	return (double)now->ticks_ns[kind] / (double)now->requests[kind] /
		((double)(before->ticks_ns[kind] + NSEC_PER_MSEC) / (double)before->requests[kind]);
}

/*
 * How many times as long the device is busy with as much work, counted in requests or in bytes: the
 * smaller one, since larger requests take longer, and small ones move less.
 */
static double times_busier(const struct verdict_device *d)
{
	const struct verdict_work *now = &d->busy, *before = &d->baseline;
	double busier = now->util_ns_sum / before->util_ns_sum;
	double requests = (double)verdict_requests_of(now) / (double)verdict_requests_of(before);
	double bytes = (double)verdict_bytes_of(now) / (double)verdict_bytes_of(before);

	/* Without bytes on either side it is not a number, or infinite. */
	return busier / (bytes > requests && isfinite(bytes) ? bytes : requests);
}

/*
 * Whether it has no more to do of what it does most. A few large reads after many small writes are
 * fewer requests, and perhaps no more bytes; that they take longer says nothing of the device.
 */
static bool does_no_more(const struct verdict_device *d)
{
	enum verdict_kind kind = verdict_main_kind(d);
	const struct verdict_work *now = &d->busy, *before = &d->baseline;
	double longer = (double)now->ns / (double)before->ns * SLOWER_LOAD;

	return (double)now->requests[kind] <= longer * (double)before->requests[kind] &&
		(double)now->bytes[kind] <= longer * (double)before->bytes[kind];
}

/* Three quarters of the samples are alike: the first and the last ones are of both times. */
static bool is_on_plateau(const struct verdict_device *d)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < d->rates_count; i++) {
		uint32_t alike = 0;

		for (uint32_t j = 0; j < d->rates_count; j++)
			alike += d->rates[j] >= d->rates[i] && d->rates[j] < PLATEAU * d->rates[i];
		most = alike > most ? alike : most;
	}
	return most >= PLATEAU_SAMPLES && 4 * most >= 3 * d->rates_count;
}

/*
 * A disk that was busy already and does less now: its credits have run out. Large requests in a row
 * that have become small ones at random places would look the same, but for their size.
 */
static bool has_no_credits(const struct verdict_device *d, double requests, double bytes,
	double requests_before, double bytes_before)
{
	return requests <= LESS_LOAD * requests_before && bytes <= LESS_LOAD * bytes_before &&
		bytes * requests_before >= bytes_before * requests / 2 && is_on_plateau(d);
}

bool verdict_is_slower_than_before(const struct verdict_device *d, double requests, double bytes)
{
	double baseline_s = (double)d->baseline.ns / NSEC_PER_SEC;
	double requests_before = (double)verdict_requests_of(&d->baseline) / baseline_s;
	double bytes_before = (double)verdict_bytes_of(&d->baseline) / baseline_s;

	if (d->baseline.ns < BASELINE_NS ||
		(double)d->baseline.requests[verdict_main_kind(d)] <
			BASELINE_REQUESTS * baseline_s ||
		verdict_times_slower(d) < SLOWER_TIMES || times_busier(d) < SLOWER_WORK_TIMES ||
		!does_no_more(d))
		return false;
	if (d->baseline.util_ns_sum >= (double)d->baseline.ns / 2)
		return has_no_credits(d, requests, bytes, requests_before, bytes_before);
	return requests <= SLOWER_LOAD * requests_before && bytes <= SLOWER_LOAD * bytes_before;
}

/*
 * A disk that takes long to write its cache to the medium, although nothing else loads it. What
 * waits behind a flush takes as long as it, so the disk's own time tells it, too.
 */
static bool is_slow_to_flush(const struct verdict_device *d, double requests, double bytes)
{
	bool flushes = verdict_main_kind(d) == VERDICT_FLUSH ||
		(bytes < SLOW_BYTES && d->flush_ns > d->traced_ns / 2);

	return flushes && requests < SLOW_FLUSHES &&
		verdict_busy_await_ms(d, VERDICT_FLUSH) >= SLOW_FLUSH_MS;
}

static bool is_slow_by_itself(const struct verdict_device *d)
{
	double requests, bytes;

	if (d->busy.ns < BUSY_NS)
		return false;
	/* One discard may be for the whole disk. */
	if (verdict_main_kind(d) == VERDICT_DISCARD)
		return false;
	verdict_device_rates(d, &requests, &bytes);
	return (requests < SLOW_REQUESTS && bytes < SLOW_BYTES) ||
		is_slow_to_flush(d, requests, bytes) ||
		verdict_is_slower_than_before(d, requests, bytes);
}

static bool is_saturated(const struct verdict_facts *f, const struct verdict_device *d)
{
	(void)f;
	return d->busy.ns >= BUSY_NS &&
		(verdict_waited_ns(d) > 0 ||
			d->busy.queue_ns_sum >= VERDICT_LOADED_QUEUE * (double)d->busy.ns ||
			verdict_await_of(d) >= VERDICT_LOADED_AWAIT_MS ||
			d->busy.pressure_ns >= PRESSED * (double)d->busy.ns);
}

/* A volume is slow, too, while others load the disk below it: then it is about that disk. */
static bool is_slow(const struct verdict_facts *f, const struct verdict_device *d)
{
	if (!is_slow_by_itself(d))
		return false;
	for (uint32_t i = 0; i < f->devices_count; i++) {
		const struct verdict_device *below = &f->devices[i];

		if (below != d && verdict_stands_on(f, d, below) && is_saturated(f, below) &&
			!is_slow_by_itself(below))
			return false;
	}
	return true;
}

/* The most that the device itself can have contributed to the longest wait for it. */
static uint64_t device_part_ns(const struct verdict_device *d)
{
	uint64_t ns = (uint64_t)(verdict_await_of(d) * NSEC_PER_MSEC);
	uint64_t parts[] = { d->busiest_ns, d->has_totals ? d->queue_time.max_ns : 0,
		d->has_totals ? d->device_time.max_ns : 0 };

	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		ns = parts[i] > ns ? parts[i] : ns;
	return ns;
}

static bool is_delayed_before_queue(const struct verdict_facts *f, const struct verdict_device *d)
{
	/* Without a sample it is not known whether the device was idle. */
	return f->samples > 0 && verdict_util_at_most(d) < VERDICT_IDLE_PCT &&
		d->longest_ns >= DELAYED_NS && d->longest_ns / 2 >= device_part_ns(d);
}

/* It took long for some requests, whatever it did in between. */
static bool is_slow_at_times(const struct verdict_facts *f, const struct verdict_device *d)
{
	(void)f;
	return d->longest_ns >= DELAYED_NS && d->has_totals &&
		d->device_time.max_ns >= d->longest_ns / 2;
}

static bool is_suspended(const struct verdict_facts *f, const struct verdict_device *d)
{
	(void)f;
	return d->suspended_ns >= DELAYED_NS;
}

/* The longest wait for a device, or for one that stands on it. */
static uint64_t longest_above(const struct verdict_facts *f, const struct verdict_device *d)
{
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < f->devices_count; i++)
		if (f->devices[i].longest_ns > longest_ns &&
			verdict_stands_on(f, &f->devices[i], d))
			longest_ns = f->devices[i].longest_ns;
	return longest_ns;
}

/* How long threads of the group waited for files on the device. */
static uint64_t waited_at_limit_ns(const struct verdict_facts *f, const struct verdict_io_limit *l)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX && l->cgroup; i++) {
		const struct verdict_waiter *w = &f->waiters[i];

		if (w->tid != 0 && w->cgroup == l->cgroup && w->device >= 0 &&
			verdict_stands_on(f, &f->devices[w->device], &f->devices[l->device]))
			ns += w->waited_ns;
	}
	return ns;
}

static bool holds_back(const struct verdict_facts *f, const struct verdict_io_limit *l,
	const struct verdict_device *d)
{
	const struct verdict_device *limited = &f->devices[l->device];

	return l->at_limit_ns >= BUSY_NS && verdict_stands_on(f, d, limited) &&
		verdict_util_at_most(limited) < VERDICT_BUSY_PCT &&
		longest_above(f, limited) >= DELAYED_NS;
}

/* The one whose threads waited longest, or that was at its limit for longest. */
static bool is_more_limited(const struct verdict_facts *f, const struct verdict_io_limit *a,
	const struct verdict_io_limit *b)
{
	uint64_t a_ns = waited_at_limit_ns(f, a), b_ns = waited_at_limit_ns(f, b);

	return a_ns != b_ns ? a_ns > b_ns : a->at_limit_ns > b->at_limit_ns;
}

/* The kernel holds requests back before the queue of the device, which has time left. */
const struct verdict_io_limit *verdict_find_io_limit(const struct verdict_facts *f,
	const struct verdict_device *d)
{
	const struct verdict_io_limit *found = NULL;

	for (uint32_t i = 0; i < f->io_limits_count; i++) {
		const struct verdict_io_limit *l = &f->io_limits[i];

		if (holds_back(f, l, d) && (!found || is_more_limited(f, l, found)))
			found = l;
	}
	/* Where no thread of it waited, it may be any of several. */
	for (uint32_t i = 0; found && i < f->io_limits_count; i++)
		if (holds_back(f, &f->io_limits[i], d) && waited_at_limit_ns(f, found) == 0 &&
			!verdict_is_group_line(f->io_limits[i].path, found->path))
			return NULL;
	return found;
}

static bool is_at_io_limit(const struct verdict_facts *f, const struct verdict_device *d)
{
	return verdict_find_io_limit(f, d) != NULL;
}

static bool is_limited(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_cgroup;
	return f->waits[VERDICT_WAIT_cgroup].longest_ns >= DELAYED_NS;
}

static unsigned int count_threads(const struct verdict_facts *f, enum verdict_wait wait)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (f->waiters[i].tid != 0 && !f->waiters[i].kernel && f->waiters[i].wait == wait)
			count += f->waiters[i].threads;
	return count;
}

bool verdict_is_a_device_at_fault(const struct verdict_facts *f)
{
	for (uint32_t i = 0; i < f->devices_count; i++)
		if (is_hung(f, &f->devices[i]) || is_slow(f, &f->devices[i]) ||
			is_saturated(f, &f->devices[i]))
			return true;
	return false;
}

/* All threads of programs added up. */
static uint64_t total_ns(const struct verdict_facts *f, enum verdict_wait wait)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (f->waiters[i].tid != 0 && !f->waiters[i].kernel && f->waiters[i].wait == wait)
			ns += f->waiters[i].waited_ns;
	return ns;
}

/* Waits that took more time and that nothing explains are the reason more likely. */
static bool is_waiting(const struct verdict_facts *f, enum verdict_wait wait)
{
	uint64_t ns = total_ns(f, wait);

	if (ns == 0 || ns < total_ns(f, VERDICT_WAIT_none) ||
		(ns < total_ns(f, VERDICT_WAIT_device) && !verdict_is_a_device_at_fault(f)))
		return false;
	return ns >= WAITING_NS || count_threads(f, wait) >= WAITING_THREADS;
}

static bool is_waiting_for_server(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_server;
	return is_waiting(f, *ret_wait);
}

static bool is_waiting_for_memory(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_memory;
	return is_waiting(f, *ret_wait);
}

/* The stack says it: the kernel reclaims memory of the group, not of the host. */
static bool is_group_short_of_memory(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_memory;
	return f->waits[*ret_wait].waits_for == RECORD_CAUSE_group_memory &&
		is_waiting(f, *ret_wait);
}

static bool is_behind_holder(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_lock;
	return verdict_find_lock(f) && is_waiting(f, *ret_wait);
}

static bool is_waiting_for_lock(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_lock;
	return !verdict_find_lock(f) && is_waiting(f, *ret_wait);
}

static bool is_waiting_for_journal(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_journal;
	return is_waiting(f, *ret_wait);
}

static bool is_waiting_for_dirty(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_dirty;
	return is_waiting(f, *ret_wait);
}

static bool is_waiting_for_other(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_other;
	return is_waiting(f, *ret_wait);
}

const struct verdict_database *verdict_unresponsive_database(const struct verdict_facts *f)
{
	const struct verdict_database *unresponsive = NULL;
	uint64_t longest_ns = UNRESPONSIVE_NS - 1;

	for (unsigned int i = 0; i < CONFIG_SQL_TARGETS_MAX; i++) {
		if (f->databases[i].longest.ns <= longest_ns)
			continue;
		unresponsive = &f->databases[i];
		longest_ns = unresponsive->longest.ns;
	}
	return unresponsive;
}

bool verdict_is_of_server(const struct verdict_waiter *t, const struct verdict_database *d)
{
	if (t->tid == 0 || t->kernel || d->server.pid == 0)
		return false;
	/* Each PostgreSQL session is a process of the same name. */
	return t->pid == d->server.pid || strcmp(t->comm, d->server.comm) == 0;
}

static bool waits_explain(const struct verdict_facts *f, const struct verdict_database *d)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *w = &f->waiters[i];

		if ((w->wait == VERDICT_WAIT_server || w->wait == VERDICT_WAIT_memory ||
			    w->wait == VERDICT_WAIT_lock || w->wait == VERDICT_WAIT_journal ||
			    w->wait == VERDICT_WAIT_other) &&
			verdict_is_of_server(w, d) && is_waiting(f, w->wait))
			return true;
	}
	return false;
}

/*
 * A server whose own threads wait long for a lock, the journal, memory or a file server is
 * unresponsive because of that: `waiting` is closer to the cause, and its sentence names the
 * database, too. Waits of other processes explain nothing. A stopped server needs no other cause:
 * threads that wait may wait for what it holds.
 */
static bool is_unanswered(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	const struct verdict_database *d = verdict_unresponsive_database(f);

	*ret_wait = VERDICT_WAIT_COUNT;
	return d && (d->longest.stopped || !waits_explain(f, d));
}

static bool is_anything(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	(void)f;
	*ret_wait = VERDICT_WAIT_COUNT;
	return true;
}

/*
 * The first rule in this order that holds for a device says what was wrong with it. Of all
 * devices and of the rules about the host, that one becomes the verdict whose victims waited
 * longest, all their threads added up.
 */
const struct verdict_rule verdict_rules[] = {
	{ RECORD_CLASS_full, RECORD_BASIS_measured, .host_holds = is_full,
		.is_reason = is_opened_by_full, .blames = true, .say = verdict_say_full },
	{ RECORD_CLASS_hung, RECORD_BASIS_measured, .device_holds = is_hung,
		.say = verdict_say_hung },
	{ RECORD_CLASS_throttled, RECORD_BASIS_measured, .device_holds = is_suspended,
		.say = verdict_say_suspended },
	{ RECORD_CLASS_frozen, RECORD_BASIS_measured, .host_holds = is_frozen,
		.say = verdict_say_frozen },
	/* Whoever holds the lock does not wait for a device. */
	{ RECORD_CLASS_locked, RECORD_BASIS_measured, .host_holds = verdict_is_locked,
		.say = verdict_say_locked },
	{ RECORD_CLASS_locked, RECORD_BASIS_measured, .host_holds = is_behind_holder,
		.say = verdict_say_kernel_lock },
	{ RECORD_CLASS_locked, RECORD_BASIS_measured, .host_holds = verdict_is_mutex_held,
		.say = verdict_say_mutex },
	/* Before the disks: more of it would only be read again faster. */
	{ RECORD_CLASS_memory, RECORD_BASIS_measured, .device_holds = verdict_is_short_of_memory,
		.say = verdict_say_memory },
	/* Before `slow`: a volume above the disk is busy all the time with what is held back. */
	{ RECORD_CLASS_throttled, RECORD_BASIS_measured, .device_holds = is_at_io_limit,
		.blames = true, .say = verdict_say_io_limit },
	/* Before `saturated`: a process that uses a slow device is its victim, not the cause. */
	{ RECORD_CLASS_slow, RECORD_BASIS_measured, .device_holds = is_slow,
		.say = verdict_say_slow },
	{ RECORD_CLASS_saturated, RECORD_BASIS_measured, .device_holds = is_saturated,
		.blames = true, .say = verdict_say_saturated },
	{ RECORD_CLASS_slow, RECORD_BASIS_measured, .device_holds = is_slow_at_times,
		.say = verdict_say_slow_at_times },
	{ RECORD_CLASS_throttled, RECORD_BASIS_measured, .host_holds = is_limited,
		.say = verdict_say_limited },
	/* The limit itself is not visible, only that the time was spent before the device queue. */
	{ RECORD_CLASS_throttled, RECORD_BASIS_inferred, .device_holds = is_delayed_before_queue,
		.say = verdict_say_delayed },
	{ RECORD_CLASS_stopped, RECORD_BASIS_measured, .host_holds = verdict_is_stopped,
		.say = verdict_say_stopped },
	{ RECORD_CLASS_cpu, RECORD_BASIS_measured, .host_holds = verdict_is_held_back,
		.say = verdict_say_cpu_limit },
	/* Nothing shows for whom the CPUs were too few, so whatever has victims comes first. */
	{ RECORD_CLASS_cpu, RECORD_BASIS_inferred, .host_holds = verdict_is_short_of_cpus,
		.say = verdict_say_cpu_shortage },
	{ RECORD_CLASS_unanswered, RECORD_BASIS_measured, .host_holds = is_unanswered,
		.is_symptom = true, .say = verdict_say_unanswered },
	{ RECORD_CLASS_waiting, RECORD_BASIS_measured, .host_holds = is_waiting_for_server,
		.say = verdict_say_waiting },
	{ RECORD_CLASS_memory, RECORD_BASIS_measured, .host_holds = is_group_short_of_memory,
		.say = verdict_say_group_memory },
	{ RECORD_CLASS_waiting, RECORD_BASIS_measured, .host_holds = is_waiting_for_memory,
		.say = verdict_say_waiting },
	{ RECORD_CLASS_waiting, RECORD_BASIS_measured, .host_holds = is_waiting_for_lock,
		.say = verdict_say_waiting },
	{ RECORD_CLASS_waiting, RECORD_BASIS_measured, .host_holds = is_waiting_for_journal,
		.say = verdict_say_waiting },
	{ RECORD_CLASS_waiting, RECORD_BASIS_measured, .host_holds = is_waiting_for_dirty,
		.say = verdict_say_waiting },
	{ RECORD_CLASS_waiting, RECORD_BASIS_measured, .host_holds = is_waiting_for_other,
		.say = verdict_say_waiting },
	{ RECORD_CLASS_memory, RECORD_BASIS_measured, .host_holds = verdict_is_killed,
		.say = verdict_say_killed },
	{ RECORD_CLASS_failed, RECORD_BASIS_measured, .host_holds = verdict_has_failed,
		.say = verdict_say_failed },
	/* Many short waits, where nothing else was found. */
	{ RECORD_CLASS_memory, RECORD_BASIS_inferred, .host_holds = verdict_is_pressed_for_memory,
		.is_symptom = true, .say = verdict_say_memory_pressure },
	{ RECORD_CLASS_unknown, RECORD_BASIS_inferred, .host_holds = is_anything,
		.is_symptom = true, .say = verdict_say_unknown },
};
