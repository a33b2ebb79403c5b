/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk that is busy because memory was short: what a control group or the host had evicted is
 * read again. When that is the verdict, and how it is said.
 */
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/devices.h"
#include "verdict/figures.h"
#include "verdict/words.h"

/*
 * The kernel counts a page as read again however long ago it was evicted: the second dump of a
 * table that does not fit into memory counts in full (6.18: all 102400 pages of 400 MiB at a limit
 * of 48 MiB). So files count only where so much of what was read of them was read more than once
 * in this incident.
 */
#define AGAIN_SHARE 4
/* As the rule psi_memory_full takes it: a fifth of the time in two samples. */
#define PRESSED_PCT 20
#define PRESSED_NS (NSEC_PER_SEC / 5 * 2)

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t read_again(const struct verdict_memory *m)
{
	return m->reread_bytes + m->swapped_in_bytes;
}

static bool is_half(uint64_t part, uint64_t of)
{
	return of > 0 && part >= of / 2;
}

static struct verdict_since moved_by_others(const struct verdict_facts *f,
	const struct verdict_device *d)
{
	struct verdict_since sum = { 0 };

	for (uint32_t i = 0; i < f->devices_count; i++) {
		const struct verdict_device *other = &f->devices[i];

		/* What zram moved is left out of what was swapped. */
		if (verdict_stands_on(f, other, d) || verdict_stands_on(f, d, other) ||
			strncmp(other->name, "zram", 4) == 0)
			continue;
		sum.read_bytes += other->since.read_bytes;
		sum.write_bytes += other->since.write_bytes;
	}
	return sum;
}

/* Whether the files of the device were read more than once while it was traced. */
static bool files_were_read_again(const struct verdict_device *d)
{
	return d->files_read_bytes > 0 && d->files_again_bytes >= d->files_read_bytes / AGAIN_SHARE;
}

/* What of the device's work was the exchange of memory; a counter says for no device. */
static uint64_t exchanged(const struct verdict_facts *f, const struct verdict_memory *m,
	const struct verdict_device *d)
{
	const struct verdict_since others = moved_by_others(f, d);
	uint64_t again = read_again(m), out = m->swapped_out_bytes;

	out -= less(out, others.write_bytes);
	if (!files_were_read_again(d))
		again -= less(again, others.read_bytes);
	return less(again, d->since.read_bytes) + less(out, d->since.write_bytes);
}

static bool was_in_use(const struct verdict_memory *m, const struct verdict_device *d)
{
	return files_were_read_again(d) || is_half(m->active_bytes, read_again(m)) ||
		m->swapped_in_bytes + m->swapped_out_bytes > m->reread_bytes;
}

/* What a control group evicts at its limit does not count as evicted by the host. */
static bool host_evicted(const struct verdict_memory *host)
{
	return is_half(host->reclaimed_bytes, read_again(host));
}

/* Nothing is swapped out but for want of memory; what is only swapped in may be a swapoff. */
static bool is_swap_storm(const struct verdict_memory *host)
{
	return host->swapped_out_bytes > 0 &&
		is_half(host->swapped_out_bytes, host->swapped_in_bytes) &&
		host->swapped_in_bytes + host->swapped_out_bytes > host->reread_bytes;
}

/* The host evicts for itself, a group at its limit; a group that is not watched swaps. */
static bool was_at_limit(const struct verdict_memory *m)
{
	return *m->path ? m->limit_hits > 0 : host_evicted(m) || is_swap_storm(m);
}

/*
 * The kernel does not count what a group swapped out: where the host did not evict for itself, it
 * is the group that swapped in. As swapped in it counts what had not left memory yet, too.
 */
static struct verdict_memory with_swap(const struct verdict_facts *f,
	const struct verdict_memory *m)
{
	struct verdict_memory all = *m;

	if (!*m->path)
		return all;
	all.swapped_in_bytes = less(m->swapped_in_bytes, f->host.swapped_in_bytes);
	if (!host_evicted(&f->host) && is_half(all.swapped_in_bytes, f->host.swapped_in_bytes))
		all.swapped_out_bytes = f->host.swapped_out_bytes;
	return all;
}

static bool explains(const struct verdict_facts *f, const struct verdict_memory *m,
	const struct verdict_device *d)
{
	const struct verdict_memory all = with_swap(f, m);

	return was_at_limit(&all) && was_in_use(&all, d) &&
		is_half(exchanged(f, &all, d), d->since.read_bytes + d->since.write_bytes);
}

/* A group whose limit leads to it, the innermost of several, or else the host. */
static const struct verdict_memory *find_short(const struct verdict_facts *f,
	const struct verdict_device *d)
{
	const struct verdict_memory *most = NULL;

	for (uint32_t i = 0; i < f->groups_count; i++) {
		const struct verdict_memory *m = &f->groups[i];

		if (explains(f, m, d) &&
			(!most || read_again(m) > read_again(most) ||
				(read_again(m) == read_again(most) &&
					strlen(m->path) > strlen(most->path))))
			most = m;
	}
	return most || !explains(f, &f->host, d) ? most : &f->host;
}

bool verdict_is_short_of_memory(const struct verdict_facts *f, const struct verdict_device *d)
{
	return d->busy.ns >= NSEC_PER_SEC && find_short(f, d);
}

static void add_again(struct text *t, const struct verdict_memory *m)
{
	const char *separator = "";

	if (m->reread_bytes > 0) {
		text_add(t, "read ");
		record_add_size(t, m->reread_bytes);
		text_add(t, " again that had been evicted");
		separator = m->swapped_out_bytes > 0 ? ", " : " and ";
	}
	if (m->swapped_in_bytes > 0) {
		text_addf(t, "%sswapped in ", separator);
		record_add_size(t, m->swapped_in_bytes);
		separator = " and ";
	}
	if (m->swapped_out_bytes > 0) {
		text_addf(t, "%sswapped out ", separator);
		record_add_size(t, m->swapped_out_bytes);
	}
}

static void add_killed(const struct verdict_memory *m, struct text *t)
{
	if (m->oom_kills == 0)
		return;
	text_add(t, "; the kernel killed ");
	text_add_count(t, m->oom_kills, "process", "processes");
	text_add(t, " of it");
}

static double exchanged_pct(const struct verdict_facts *f, const struct verdict_memory *m,
	const struct verdict_device *d)
{
	uint64_t of = d->since.read_bytes + (m->swapped_out_bytes > 0 ? d->since.write_bytes : 0);

	return of > 0 ? 100 * (double)exchanged(f, m, d) / (double)of : 0;
}

/*
 * "control group /db was short of memory: at its limit of 48.0 MiB it read 95.1 MiB again that had
 * been evicted, 97 % of what was read from device sdb in 12.00 s"
 */
void verdict_say_memory(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_memory all = with_swap(v->f, find_short(v->f, v->device)), *m = &all;

	if (*m->path) {
		text_addf(t, "control group %s was short of memory: at its limit of ", m->path);
		record_add_size(t, m->limit_bytes);
		text_add(t, " it ");
	} else {
		text_add(t,
			host_evicted(m)
				? "the host was short of memory: it "
				: "a control group that is not watched was probably short of memory: the host ");
	}
	add_again(t, m);
	text_add(t, ", ");
	verdict_add_pct(t, exchanged_pct(v->f, m, v->device));
	text_add(t,
		m->swapped_out_bytes > 0 ? " of what was read from and written to device "
					 : " of what was read from device ");
	verdict_add_device(t, v->device);
	text_add(t, " in ");
	record_add_duration(t, v->device->since.ns);
	add_killed(m, t);
}

/* How long threads of the group waited for memory. */
static uint64_t waited_ns(const struct verdict_facts *f, const struct verdict_memory *m)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX && m->cgroup; i++)
		if (f->waiters[i].tid != 0 && f->waiters[i].wait == VERDICT_WAIT_memory &&
			f->waiters[i].cgroup == m->cgroup)
			ns += f->waiters[i].waited_ns;
	return ns;
}

/* The one whose threads waited longest, or that was at its limit most often; else the inner one. */
static bool is_more_at_limit(const struct verdict_facts *f, const struct verdict_memory *a,
	const struct verdict_memory *b)
{
	uint64_t a_ns = waited_ns(f, a), b_ns = waited_ns(f, b);

	if (a_ns != b_ns)
		return a_ns > b_ns;
	if (a->limit_hits != b->limit_hits)
		return a->limit_hits > b->limit_hits;
	return strlen(a->path) > strlen(b->path);
}

/*
 * The watched group that was at its limit and whose threads waited. NULL: none was, or it may be
 * one of several.
 */
static const struct verdict_memory *find_at_limit(const struct verdict_facts *f,
	bool *ret_is_one_of_several)
{
	const struct verdict_memory *most = NULL;

	*ret_is_one_of_several = false;
	for (uint32_t i = 0; i < f->groups_count; i++)
		if (f->groups[i].limit_hits > 0 &&
			(!most || is_more_at_limit(f, &f->groups[i], most)))
			most = &f->groups[i];
	for (uint32_t i = 0; most && i < f->groups_count; i++)
		if (f->groups[i].limit_hits > 0 && waited_ns(f, most) == 0 &&
			!verdict_is_group_line(f->groups[i].path, most->path))
			*ret_is_one_of_several = true;
	return *ret_is_one_of_several ? NULL : most;
}

bool verdict_is_group_memory(const struct verdict_finding *v)
{
	return v->rule->class == RECORD_CLASS_memory && !v->device;
}

/* "control group /db was short of memory: it was at its limit of 48.0 MiB 412 times, " */
static void add_at_limit(const struct verdict_memory *m, struct text *t)
{
	text_addf(t, "control group %s was short of memory: it was at its limit of ", m->path);
	record_add_size(t, m->limit_bytes);
	text_add(t, " ");
	text_add_count(t, m->limit_hits, "time", "times");
	text_add(t, ", ");
}

/*
 * "control group /db was short of memory: it was at its limit of 48.0 MiB 412 times, so 4 threads
 * waited up to 1.11 s for memory (mariadbd tid 7 the longest); no disk was at its limit"
 */
void verdict_say_group_memory(const struct verdict_finding *v, struct text *t)
{
	bool is_one_of_several;
	const struct verdict_memory *m = find_at_limit(v->f, &is_one_of_several);

	if (m) {
		add_at_limit(m, t);
		text_add(t, "so ");
	} else {
		text_addf(t, "%s was short of memory: ",
			is_one_of_several ? "one of several control groups at their limits"
					  : "a control group that is not watched");
	}
	if (v->victims > 0)
		verdict_add_victims(v, t);
	else
		text_add(t, "threads waited");
	text_add(t, " for memory (");
	verdict_add_who(t, &v->f->waits[VERDICT_WAIT_memory].who);
	text_add(t, v->victims == 1 ? ")" : " the longest)");
	if (m)
		add_killed(m, t);
	if (verdict_is_no_device_at_fault(v->f))
		text_add(t, "; no disk was at its limit");
}

bool verdict_is_pressed_for_memory(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_COUNT;
	return f->memory_full_max_pct >= PRESSED_PCT && f->memory_full_ns >= PRESSED_NS;
}

/*
 * "control group /db was short of memory: it was at its limit of 48.0 MiB 412 times, and all tasks
 * that could run waited for memory for up to 83 % of the time, each less than 100 ms at a time"
 */
void verdict_say_memory_pressure(const struct verdict_finding *v, struct text *t)
{
	bool is_one_of_several;
	const struct verdict_memory *m = find_at_limit(v->f, &is_one_of_several);

	if (m) {
		add_at_limit(m, t);
		text_add(t, "and ");
	} else {
		text_add(t,
			is_one_of_several
				? "one of several control groups at their limits was short of memory: "
				: host_evicted(&v->f->host) ? "the host was short of memory: "
							    : "memory was short: ");
	}
	text_add(t, "all tasks that could run waited for memory for up to ");
	verdict_add_pct(t, v->f->memory_full_max_pct);
	text_add(t, " of the time");
	if (v->f->longest_ns == 0) {
		text_add(t, ", each less than ");
		record_add_duration(t, v->f->min_stall_ns);
		text_add(t, " at a time");
	}
	if (m)
		add_killed(m, t);
	if (verdict_is_no_device_at_fault(v->f))
		text_add(t, "; no disk was at its limit");
}

void verdict_add_memory(const struct verdict_finding *v, struct text *t, uint64_t *ret_bytes,
	double *ret_share_pct)
{
	const struct verdict_memory all = with_swap(v->f, find_short(v->f, v->device)), *m = &all;

	text_add(t, *m->path ? m->path : "the host");
	text_add(t, ": ");
	add_again(t, m);
	if (*m->path) {
		text_add(t, ", at its limit ");
		text_add_count(t, m->limit_hits, "time", "times");
	} else {
		text_add(t, ", ");
		record_add_size(t, m->reclaimed_bytes);
		text_add(t, " were evicted");
	}
	text_add(t, ", ");
	record_add_size(t, m->active_bytes);
	text_add(t, " of it in active use when it was evicted");
	if (v->device->files_again_bytes > 0) {
		text_add(t, "; of the ");
		record_add_size(t, v->device->files_read_bytes);
		text_add(t, " that were read from the files that were read most, at least ");
		record_add_size(t, v->device->files_again_bytes);
		text_add(t, " had been read before since tracing began");
	}
	*ret_bytes = read_again(m) + m->swapped_out_bytes;
	*ret_share_pct = exchanged_pct(v->f, m, v->device);
}
