/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/condition.h"

#include <math.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/disk_name.h"
#include "util/number.h"

static const struct model_disk *get(const struct model *m, int disk)
{
	return &m->disks.list[disk];
}

uint64_t condition_waited_ns(const struct model *m, int disk, uint64_t *ret_longest_ns)
{
	uint64_t ns = 0;

	*ret_longest_ns = 0;
	for (uint32_t i = 0; i < m->waits.groups_count; i++) {
		const struct model_wait *w = &m->waits.groups[i];
		const enum record_wait kind = record_wait_of(w->cause);

		if (w->disk != disk || w->is_kernel || w->is_early)
			continue;
		/* A thread may wait for something else that has to do with a file on it. */
		if (kind == RECORD_WAIT_device || kind == RECORD_WAIT_journal ||
			kind == RECORD_WAIT_none)
			ns += model_wait_ns(w);
		if (kind == RECORD_WAIT_device && w->longest_ns > *ret_longest_ns)
			*ret_longest_ns = w->longest_ns;
	}
	return ns;
}

/*
 * How long threads waited for the disk and for what stands on it: who waits for a volume waits for
 * the disk that this is on.
 */
static uint64_t waited_above_ns(const struct model *m, int disk, uint64_t *ret_longest_ns)
{
	uint64_t ns = 0, longest_ns;

	*ret_longest_ns = 0;
	for (int i = 0; i < (int)m->disks.count; i++) {
		if (!model_disks_is_on(&m->disks, i, disk))
			continue;
		ns += condition_waited_ns(m, i, &longest_ns);
		*ret_longest_ns = longest_ns > *ret_longest_ns ? longest_ns : *ret_longest_ns;
	}
	return ns;
}

/* Slow */

double condition_times_slower(const struct model_disk *d)
{
	enum model_kind kind = model_disk_main_kind(d);
	const struct model_work *now = &d->busy, *before = &d->before;

	if (now->requests[kind] == 0 || before->requests[kind] == 0)
		return 0;
	/* The kernel counts whole milliseconds, perhaps none for a few quick requests. */
	return (double)now->ticks_ns[kind] / (double)now->requests[kind] /
		((double)(before->ticks_ns[kind] + NSEC_PER_MSEC) / (double)before->requests[kind]);
}

/*
 * How many times as long the disk is busy with as much work, counted in requests or in bytes: the
 * smaller one, since larger requests take longer, and small ones move less.
 */
static double times_busier(const struct model_disk *d)
{
	double busier = d->busy.util_ns / d->before.util_ns;
	double requests =
		(double)model_work_requests(&d->busy) / (double)model_work_requests(&d->before);
	double bytes = (double)model_work_bytes(&d->busy) / (double)model_work_bytes(&d->before);

	/* Without bytes on either side it is not a number, or infinite. */
	return busier / (bytes > requests && isfinite(bytes) ? bytes : requests);
}

/*
 * Whether it has no more to do of what it does most. A few large reads after many small writes are
 * fewer requests, and perhaps no more bytes; that they take longer says nothing of the disk.
 */
static bool does_no_more(const struct model_disk *d)
{
	enum model_kind kind = model_disk_main_kind(d);
	const struct model_work *now = &d->busy, *before = &d->before;
	double longer = (double)now->ns / (double)before->ns * SLOWER_LOAD;

	return (double)now->requests[kind] <= longer * (double)before->requests[kind] &&
		(double)now->bytes[kind] <= longer * (double)before->bytes[kind];
}

/* Three quarters of the samples are alike: the first and the last ones are of both times. */
static bool is_on_plateau(const struct model_disk *d)
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

/* A disk that was busy already and does less now: its credits have run out. */
static bool has_no_credits(const struct model_disk *d, double requests, double bytes,
	double requests_before, double bytes_before)
{
	return requests <= LESS_LOAD * requests_before && bytes <= LESS_LOAD * bytes_before &&
		is_on_plateau(d);
}

bool condition_is_slower_than_before(const struct model_disk *d)
{
	double before_s = (double)d->before.ns / NSEC_PER_SEC, requests, bytes;
	double requests_before = (double)model_work_requests(&d->before) / before_s;
	double bytes_before = (double)model_work_bytes(&d->before) / before_s;

	if (d->before.ns < BEFORE_NS ||
		(double)d->before.requests[model_disk_main_kind(d)] < BEFORE_REQUESTS * before_s ||
		condition_times_slower(d) < SLOWER_TIMES || times_busier(d) < SLOWER_WORK_TIMES ||
		!does_no_more(d))
		return false;
	model_disk_rates(d, &requests, &bytes);
	/* Large requests in a row that have become small ones at random places look the same. */
	if (bytes * requests_before < bytes_before * requests / 2)
		return false;
	if (d->before.util_ns >= (double)d->before.ns / 2)
		return has_no_credits(d, requests, bytes, requests_before, bytes_before);
	return requests <= SLOWER_LOAD * requests_before && bytes <= SLOWER_LOAD * bytes_before;
}

/*
 * A disk that takes long to write its cache to the medium, although nothing else loads it. What
 * waits behind a flush takes as long as it, so the disk's own time tells it, too.
 */
static bool is_slow_to_flush(const struct model_disk *d, double requests, double bytes)
{
	bool flushes = model_disk_main_kind(d) == MODEL_FLUSH ||
		(bytes < SLOW_BYTES && d->flush_ns > d->traced_ns / 2);

	return flushes && requests < SLOW_FLUSHES &&
		model_disk_await_ms(d, MODEL_FLUSH) >= SLOW_FLUSH_MS;
}

static bool is_slow_by_itself(const struct model_disk *d)
{
	double requests, bytes;

	/* One discard may be for the whole disk. */
	if (d->busy.ns < TROUBLE_NS || model_disk_main_kind(d) == MODEL_DISCARD)
		return false;
	model_disk_rates(d, &requests, &bytes);
	return (requests < SLOW_REQUESTS && bytes < SLOW_BYTES) ||
		is_slow_to_flush(d, requests, bytes) || condition_is_slower_than_before(d);
}

static bool is_saturated(const struct model *m, int disk)
{
	const struct model_disk *d = get(m, disk);
	uint64_t longest_ns;

	return d->busy.ns >= TROUBLE_NS &&
		(waited_above_ns(m, disk, &longest_ns) > 0 ||
			d->busy.queue_ns >= MODEL_LOADED_QUEUE * (double)d->busy.ns ||
			model_disk_await_max_ms(d) >= MODEL_LOADED_AWAIT_MS ||
			/* A reader that waits for each page has a queue of one. */
			d->busy.pressure_ns >= (NAMED_PCT / 100.0) * (double)d->busy.ns);
}

/* A volume is slow, too, while others load the disk below it: then it is about that disk. */
static bool is_slow(const struct model *m, int disk)
{
	if (!is_slow_by_itself(get(m, disk)))
		return false;
	for (int below = 0; below < (int)m->disks.count; below++)
		if (below != disk && model_disks_is_on(&m->disks, disk, below) &&
			is_saturated(m, below) && !is_slow_by_itself(get(m, below)))
			return false;
	return true;
}

/* The most that the disk itself can have contributed to the longest wait for it. */
static uint64_t part_of_disk_ns(const struct model_disk *d)
{
	uint64_t ns = to_u64(model_disk_await_max_ms(d) * NSEC_PER_MSEC);
	const uint64_t parts[] = { d->work_most_ns, d->queue.max_ns, d->device.max_ns };

	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		ns = parts[i] > ns ? parts[i] : ns;
	return ns;
}

/* The same, or what anybody waited for it who does not use that volume. */
static uint64_t longest_beside_ns(const struct model *m, int disk, int volume)
{
	uint64_t most_ns = part_of_disk_ns(get(m, disk)), longest_ns;

	for (int i = 0; i < (int)m->disks.count; i++) {
		if (!model_disks_is_on(&m->disks, i, disk) ||
			model_disks_is_on(&m->disks, i, volume))
			continue;
		condition_waited_ns(m, i, &longest_ns);
		most_ns = longest_ns > most_ns ? longest_ns : most_ns;
	}
	return most_ns;
}

static bool completes_nothing(const struct model_disk *d)
{
	/* For half of that when the disk did little else meanwhile. */
	return d->no_completion_ns >= HUNG_NS ||
		(d->no_completion_ns >= (HUNG_NS / 2) && d->no_completion_ns >= d->work_ns / 2);
}

/*
 * The few requests of a volume take as long as those of others where the disk below has many, and
 * is none that hangs or is slow.
 */
static bool is_explained_below(const struct model *m, int disk, uint64_t ns)
{
	for (int below = 0; below < (int)m->disks.count; below++)
		if (below != disk && model_disks_is_on(&m->disks, disk, below) &&
			is_saturated(m, below) && !is_slow_by_itself(get(m, below)) &&
			!completes_nothing(get(m, below)) &&
			ns / 2 <= longest_beside_ns(m, below, disk))
			return true;
	return false;
}

static bool is_hung(const struct model *m, int disk)
{
	const struct model_disk *d = get(m, disk);

	return completes_nothing(d) && !is_explained_below(m, disk, d->no_completion_ns);
}

/* Only then is it looked whether a volume is suspended. */
static uint64_t longest_while_armed_ns(const struct model *m, int disk)
{
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < m->waits.groups_count; i++) {
		const struct model_wait *w = &m->waits.groups[i];
		const uint64_t begin_ns = w->start_ns > m->armed_ns ? w->start_ns : m->armed_ns;
		const uint64_t ns = minus(w->start_ns + w->longest_ns, begin_ns);

		if (w->disk == disk && !w->is_kernel && !w->is_early &&
			record_wait_of(w->cause) == RECORD_WAIT_device && ns > longest_ns)
			longest_ns = ns;
	}
	return longest_ns;
}

/* A snapshot that is made or removed suspends it for a moment, beside whatever else there is. */
static bool is_suspended(const struct model *m, int disk)
{
	const uint64_t ns = get(m, disk)->suspended_ns;
	const uint64_t longest_ns = longest_while_armed_ns(m, disk);

	return ns >= NOTICED_NS && ns >= longest_ns / 2 &&
		!is_explained_below(m, disk, longest_ns > ns ? longest_ns : ns);
}

/* It took long for some requests, whatever it did in between. */
static bool is_slow_at_times(const struct model *m, int disk)
{
	const struct model_disk *d = get(m, disk);
	uint64_t longest_ns;

	waited_above_ns(m, disk, &longest_ns);
	return longest_ns >= NOTICED_NS && d->has_totals && d->device.max_ns >= longest_ns / 2;
}

/* Whoever waits for much longer than it was at work waits for something else. */
static bool may_explain(const struct model_disk *d, uint64_t longest_ns)
{
	return model_disk_util_pct(d) >= HALF_PCT && d->work_ns >= longest_ns / 2;
}

/* That neither the disk nor what it stands on had much to do with. */
static bool is_delayed(const struct model *m, int disk)
{
	const struct model_disk *d = get(m, disk);
	uint64_t longest_ns;

	condition_waited_ns(m, disk, &longest_ns);
	/* It is not known to be idle where all samples, or those with busy ones, left it out. */
	if (m->samples == 0 || (d->samples == 0 && m->disks.samples_leave_out) ||
		d->left_out_max_pct >= HALF_PCT || longest_ns < NOTICED_NS)
		return false;
	for (int i = 0; i < (int)m->disks.count; i++)
		if (model_disks_is_on(&m->disks, disk, i) &&
			(may_explain(get(m, i), longest_ns) ||
				longest_ns / 2 < part_of_disk_ns(get(m, i))))
			return false;
	return true;
}

/* Limits of control groups */

/* How long threads of the group waited for files on the disk. */
static uint64_t waited_at_limit_ns(const struct model *m, const struct model_io_limit *l)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; l->cgroup && i < m->waits.groups_count; i++) {
		const struct model_wait *w = &m->waits.groups[i];

		if (w->cgroup == l->cgroup && w->disk >= 0 &&
			model_disks_is_on(&m->disks, w->disk, l->disk))
			ns += model_wait_ns(w);
	}
	return ns;
}

/* The kernel holds requests back before the queue of the disk, which has time left meanwhile. */
static bool holds_back(const struct model *m, const struct model_io_limit *l, int disk)
{
	const struct model_disk *d = get(m, l->disk);
	uint64_t longest_ns;

	waited_above_ns(m, l->disk, &longest_ns);
	return longest_ns >= NOTICED_NS && l->at_limit_ns >= TROUBLE_NS &&
		model_disks_is_on(&m->disks, disk, l->disk) && 2 * d->busy.ns < l->at_limit_ns &&
		d->left_out_max_pct < MODEL_BUSY_PCT;
}

/* The one whose threads waited longest, or that was at its limit for longest. */
static bool is_more_limited(const struct model *m, const struct model_io_limit *a,
	const struct model_io_limit *b)
{
	uint64_t a_ns = waited_at_limit_ns(m, a), b_ns = waited_at_limit_ns(m, b);

	return a_ns != b_ns ? a_ns > b_ns : a->at_limit_ns > b->at_limit_ns;
}

const struct model_io_limit *condition_find_io_limit(const struct model *m, int disk)
{
	const struct model_io_limit *list = m->host.io_limits, *found = NULL;

	for (uint32_t i = 0; i < m->host.io_limits_count; i++)
		if (holds_back(m, &list[i], disk) &&
			(!found || is_more_limited(m, &list[i], found)))
			found = &list[i];
	/* Where no thread of it waited, it may be any of several. */
	for (uint32_t i = 0; found && i < m->host.io_limits_count; i++)
		if (holds_back(m, &list[i], disk) && waited_at_limit_ns(m, found) == 0 &&
			!model_is_group_line(list[i].path, found->path))
			return NULL;
	return found;
}

/* Memory */

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_half(uint64_t part, uint64_t of)
{
	return of > 0 && part >= of / 2;
}

static uint64_t read_again(const struct model_memory *memory)
{
	return memory->reread_bytes + memory->swapped_in_bytes;
}

/* Whether the files of the disk were read more than once while it was traced. */
static bool files_were_read_again(const struct model_disk *d)
{
	return d->files_read_bytes > 0 && d->files_again_bytes >= d->files_read_bytes / AGAIN_PART;
}

/* What of the disk's work was the exchange of memory; a counter says for no disk. */
static uint64_t exchanged(const struct model *m, int disk, const struct model_memory *memory)
{
	const struct model_disk *d = get(m, disk);
	uint64_t again = read_again(memory), out = memory->swapped_out_bytes;

	for (int i = 0; i < (int)m->disks.count; i++) {
		const struct model_disk *other = get(m, i);

		/* What zram moved is left out of what was swapped. */
		if (model_disks_is_on(&m->disks, i, disk) ||
			model_disks_is_on(&m->disks, disk, i) ||
			strncmp(other->name, "zram", strlen("zram")) == 0)
			continue;
		out -= less(out, other->since_write_bytes);
		if (!files_were_read_again(d))
			again -= less(again, other->since_read_bytes);
	}
	return less(again, d->since_read_bytes) + less(out, d->since_write_bytes);
}

static bool was_in_use(const struct model_memory *memory, const struct model_disk *d)
{
	return files_were_read_again(d) || is_half(memory->active_bytes, read_again(memory)) ||
		memory->swapped_in_bytes + memory->swapped_out_bytes > memory->reread_bytes;
}

/* What a control group evicts at its limit does not count as evicted by the host. */
bool condition_host_evicted(const struct model *m)
{
	return is_half(m->host.memory.reclaimed_bytes, read_again(&m->host.memory));
}

/* Nothing is swapped out but for want of memory; what is only swapped in may be a swapoff. */
static bool is_swap_storm(const struct model_memory *host)
{
	return host->swapped_out_bytes > 0 &&
		is_half(host->swapped_out_bytes, host->swapped_in_bytes) &&
		host->swapped_in_bytes + host->swapped_out_bytes > host->reread_bytes;
}

/* The host evicts for itself, a group at its limit; a group that is not watched swaps. */
static bool was_at_limit(const struct model *m, const struct model_memory *memory)
{
	if (*memory->path)
		return memory->limit_hits > 0;
	return condition_host_evicted(m) || is_swap_storm(memory);
}

/*
 * The kernel does not count what a group swapped out: where the host did not evict for itself, it
 * is the group that swapped in. As swapped in it counts what had not left memory yet, too.
 */
static struct model_memory with_swap(const struct model *m, const struct model_memory *memory)
{
	const struct model_memory *host = &m->host.memory;
	struct model_memory all = *memory;

	if (!*memory->path)
		return all;
	all.swapped_in_bytes = less(memory->swapped_in_bytes, host->swapped_in_bytes);
	if (!condition_host_evicted(m) && is_half(all.swapped_in_bytes, host->swapped_in_bytes))
		all.swapped_out_bytes = host->swapped_out_bytes;
	return all;
}

/* False: it does not explain most of what the disk did. */
static bool take_memory(const struct model *m, int disk, const struct model_memory *memory,
	struct model_memory *ret_memory)
{
	const struct model_disk *d = get(m, disk);
	const struct model_memory all = with_swap(m, memory);

	if (!was_at_limit(m, &all) || !was_in_use(&all, d) ||
		!is_half(exchanged(m, disk, &all), d->since_read_bytes + d->since_write_bytes))
		return false;
	*ret_memory = all;
	return true;
}

/* A group whose limit leads to it, the innermost of several, or else the host. */
bool condition_find_memory(const struct model *m, int disk, struct model_memory *ret_memory)
{
	struct model_memory found;
	bool any = false;

	for (uint32_t i = 0; i < m->host.memory_groups_count; i++) {
		if (!take_memory(m, disk, &m->host.memory_groups[i], &found))
			continue;
		if (any && read_again(&found) < read_again(ret_memory))
			continue;
		if (any && read_again(&found) == read_again(ret_memory) &&
			strlen(found.path) <= strlen(ret_memory->path))
			continue;
		*ret_memory = found;
		any = true;
	}
	return any || take_memory(m, disk, &m->host.memory, ret_memory);
}

double condition_evicted_pct(const struct model *m, int disk, const struct model_memory *memory)
{
	const struct model_disk *d = get(m, disk);
	uint64_t of = d->since_read_bytes + (memory->swapped_out_bytes ? d->since_write_bytes : 0);

	return of > 0 ? 100 * (double)exchanged(m, disk, memory) / (double)of : 0;
}

/* Which of them */

enum condition condition_of(const struct model *m, int disk)
{
	const struct model_disk *d = get(m, disk);
	struct model_memory memory;

	if (is_hung(m, disk))
		return CONDITION_HUNG;
	if (is_suspended(m, disk))
		return CONDITION_SUSPENDED;
	/* Before its load: more of it would only be read again faster. */
	if (d->busy.ns >= TROUBLE_NS && condition_find_memory(m, disk, &memory))
		return CONDITION_MEMORY;
	/* Before `slow`: a volume above the disk is busy all the time with what is held back. */
	if (condition_find_io_limit(m, disk))
		return CONDITION_LIMITED;
	/* Before `saturated`: a process that uses a slow disk is its victim, not the cause. */
	if (is_slow(m, disk))
		return CONDITION_SLOW;
	if (is_saturated(m, disk))
		return CONDITION_SATURATED;
	if (is_slow_at_times(m, disk))
		return CONDITION_AT_TIMES;
	return is_delayed(m, disk) ? CONDITION_DELAYED : CONDITION_NONE;
}

bool condition_is_any(const struct model *m)
{
	for (int i = 0; i < (int)m->disks.count; i++)
		if (is_hung(m, i) || is_slow(m, i) || is_saturated(m, i))
			return true;
	return false;
}

static bool has_load(const struct model *m, int disk)
{
	const struct model_loads_of *loads = model_loads_find(&m->loads, disk);

	return loads && loads->counts[RECORD_BY_process] + loads->counts[RECORD_BY_thread] > 0;
}

/*
 * Which of two disks with the same trouble is judged. A device mapper device has no requests of its
 * own in the block layer, so the disk below it is judged, whose requests have an owner. A loop
 * device and the disk below it both have requests: where somebody is to be blamed that is the upper
 * one, which knows the process that asked; else the lower one, where the trouble comes from.
 */
static bool is_better(const struct model *m, int a, int b, bool blames)
{
	const struct model_disk *x = get(m, a), *y = get(m, b);
	uint64_t longest_ns;
	const uint64_t x_ns = condition_waited_ns(m, a, &longest_ns),
		       y_ns = condition_waited_ns(m, b, &longest_ns);
	const uint64_t keys[][2] = {
		{ x->has_totals, y->has_totals },
		{ blames && has_load(m, a), blames && has_load(m, b) },
		{ blames ? x_ns : 0, blames ? y_ns : 0 },
		{ !disk_name_is_stacked(x->name), !disk_name_is_stacked(y->name) },
		{ x->no_completion_ns, y->no_completion_ns },
		{ x_ns, y_ns },
		{ x->busy.ns, y->busy.ns },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] > keys[i][1];
	return false;
}

int condition_fold(const struct model *m, const enum condition *conditions, int disk)
{
	uint64_t longest_ns;
	int found = disk;

	condition_waited_ns(m, disk, &longest_ns);
	for (int i = 0; i < (int)m->disks.count; i++) {
		const enum condition c = conditions[i];

		/* Who waits for one below waits for it only where both have the same trouble. */
		const bool is_of_stack = model_disks_is_on(&m->disks, disk, i) ||
			(conditions[disk] == c && model_disks_is_on(&m->disks, i, disk));

		if (c == CONDITION_NONE || c > conditions[found] || i == found || !is_of_stack)
			continue;
		if (c == CONDITION_SATURATED && i != disk && !may_explain(get(m, i), longest_ns))
			continue;
		if (c < conditions[found] ||
			is_better(m, i, found, c == CONDITION_SATURATED || c == CONDITION_LIMITED))
			found = i;
	}
	return found;
}
