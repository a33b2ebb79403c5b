/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/block_sum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "util/clock.h"
#include "util/hash.h"
#include "util/sort.h"
#include "util/text.h"

static_assert(EVENT_BLOCK_BUCKETS == RECORD_HISTOGRAM_MAX, "a record holds every bucket");

uint64_t block_load_bytes(const struct event_block_load *load)
{
	return load->kinds[EVENT_BLOCK_READ].bytes + load->kinds[EVENT_BLOCK_WRITE].bytes;
}

uint64_t block_load_requests(const struct event_block_load *load)
{
	uint64_t requests = 0;

	for (unsigned int i = 0; i < EVENT_BLOCK_KINDS; i++)
		requests += load->kinds[i].requests;
	return requests;
}

uint64_t block_load_busy_ns(const struct event_block_load *load)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < EVENT_BLOCK_KINDS; i++)
		ns += load->kinds[i].busy_ns;
	return ns;
}

uint64_t block_percentile(const uint64_t buckets[EVENT_BLOCK_BUCKETS], double share,
	uint64_t max_ns)
{
	double wanted, seen = 0;
	uint64_t total = 0;

	for (unsigned int i = 0; i < EVENT_BLOCK_BUCKETS; i++)
		total += buckets[i];
	wanted = share * (double)total;
	for (unsigned int i = 0; i < EVENT_BLOCK_BUCKETS && total > 0; i++) {
		double low = i > 0 ? ldexp(NSEC_PER_USEC, (int)i - 1) : 0;
		double high = ldexp(NSEC_PER_USEC, (int)i), value;

		if (buckets[i] == 0 || seen + (double)buckets[i] < wanted) {
			seen += (double)buckets[i];
			continue;
		}
		value = low + (high - low) * (wanted - seen) / (double)buckets[i];
		return value < (double)max_ns ? (uint64_t)value : max_ns;
	}
	return total > 0 ? max_ns : 0;
}

static void fill_latency(const uint64_t buckets[EVENT_BLOCK_BUCKETS], uint64_t max_ns,
	struct record_latency *ret_latency)
{
	ret_latency->p50_ns = block_percentile(buckets, 0.5, max_ns);
	ret_latency->p99_ns = block_percentile(buckets, 0.99, max_ns);
	ret_latency->max_ns = max_ns;
}

void block_fill_device(uint32_t dev, const struct event_block_device *device,
	struct record_device *ret_device)
{
	const struct event_block_work *kinds = device->load.kinds;

	ret_device->dev.major = dev >> 20;
	ret_device->dev.minor = dev & 0xfffff;
	text_copy(ret_device->dev_name, sizeof(ret_device->dev_name), device->name);
	ret_device->requests = block_load_requests(&device->load);
	ret_device->read_requests = kinds[EVENT_BLOCK_READ].requests;
	ret_device->write_requests = kinds[EVENT_BLOCK_WRITE].requests;
	ret_device->discard_requests = kinds[EVENT_BLOCK_DISCARD].requests;
	ret_device->flush_requests = kinds[EVENT_BLOCK_FLUSH].requests;
	ret_device->read_bytes = kinds[EVENT_BLOCK_READ].bytes;
	ret_device->write_bytes = kinds[EVENT_BLOCK_WRITE].bytes;
	ret_device->discard_bytes = kinds[EVENT_BLOCK_DISCARD].bytes;
	ret_device->read_busy_ns = kinds[EVENT_BLOCK_READ].busy_ns;
	ret_device->write_busy_ns = kinds[EVENT_BLOCK_WRITE].busy_ns;
	ret_device->discard_busy_ns = kinds[EVENT_BLOCK_DISCARD].busy_ns;
	ret_device->flush_busy_ns = kinds[EVENT_BLOCK_FLUSH].busy_ns;
	ret_device->before_requests = device->before.requests;
	ret_device->before_bytes = device->before.bytes;
	ret_device->before_busy_ns = device->before.busy_ns;
	fill_latency(device->queue, device->queue_max_ns, &ret_device->queue);
	fill_latency(device->device, device->device_max_ns, &ret_device->device);
	memcpy(ret_device->queue_histogram, device->queue, sizeof(device->queue));
	memcpy(ret_device->device_histogram, device->device, sizeof(device->device));
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_process(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;
	int r = compare(x->dev, y->dev);

	if (r == 0)
		r = compare(x->pid, y->pid);
	if (r == 0)
		r = compare(x->process_start_ns, y->process_start_ns);
	/* The first thread of the group names the process. */
	if (r == 0)
		r = compare(x->tid, y->tid);
	return r ? r : compare(x->start_ns, y->start_ns);
}

static int compare_statement(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;
	int r = compare(x->dev, y->dev);

	if (r == 0)
		r = compare(x->statement.key, y->statement.key);
	/* One session after the other. */
	return r ? r : compare((uint64_t)x->statement.leader, (uint64_t)y->statement.leader);
}

static int compare_cgroup(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;
	int r = compare(x->dev, y->dev);

	return r ? r : compare(x->cgroup_id, y->cgroup_id);
}

static int compare_file(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;
	int r = compare(x->dev, y->dev);

	if (r == 0)
		r = compare(x->file.fs_dev, y->file.fs_dev);
	if (r == 0)
		r = compare(x->file.ino, y->file.ino);
	if (r == 0)
		r = compare(x->file.generation, y->file.generation);
	return r ? r : compare(x->path_key, y->path_key);
}

uint64_t block_path_key(const struct event_block_file_key *key, const struct event_block_file *file)
{
	uint32_t len =
		file->path_len < EVENT_BLOCK_PATH_SIZE ? file->path_len : EVENT_BLOCK_PATH_SIZE;

	/* A file system on a disk gives each number once, under whichever path. */
	if (key->inode == 0 || key->fs_dev >> 20)
		return 0;
	if (len == 0 || !(file->flags & EVENT_PATH_COMPLETE))
		return key->inode;
	return hash_bytes(HASH_BEGIN, file->path, len);
}

uint64_t block_item_busy_ns(const struct block_item *item)
{
	return block_load_busy_ns(&item->load) + item->before.busy_ns;
}

static int compare_load(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;
	int r = compare(x->dev, y->dev);

	if (r == 0)
		r = compare(block_item_busy_ns(y), block_item_busy_ns(x));
	if (r == 0)
		r = compare(block_load_bytes(&y->load), block_load_bytes(&x->load));
	return r ? r : compare(block_load_requests(&y->load), block_load_requests(&x->load));
}

static bool is_same(enum record_by by, const struct block_item *a, const struct block_item *b)
{
	if (a->dev != b->dev)
		return false;
	if (by == RECORD_BY_cgroup)
		return a->cgroup_id == b->cgroup_id;
	if (by == RECORD_BY_file)
		return compare_file(a, b) == 0;
	if (by == RECORD_BY_statement)
		return a->statement.key == b->statement.key;
	if (a->pid != b->pid || a->process_start_ns != b->process_start_ns)
		return false;
	return by == RECORD_BY_process || (a->tid == b->tid && a->start_ns == b->start_ns);
}

void block_load_add(struct event_block_load *sum, const struct event_block_load *load)
{
	for (unsigned int i = 0; i < EVENT_BLOCK_KINDS; i++) {
		sum->kinds[i].requests += load->kinds[i].requests;
		sum->kinds[i].bytes += load->kinds[i].bytes;
		sum->kinds[i].busy_ns += load->kinds[i].busy_ns;
	}
	sum->device_ns += load->device_ns;
	sum->inferred_ns += load->inferred_ns;
	sum->uncertain_ns += load->uncertain_ns;
}

/* Which session, and which of its threads, did most; and how many there are. */
static void add_worker(struct block_item *sum, const struct block_item *item)
{
	const uint64_t ns = block_load_busy_ns(&item->load);
	const bool is_sum = item->tid == BLOCK_NO_TID;
	const bool is_leader = is_sum || item->statement.leader == (int32_t)item->tid;

	sum->has_leader |= is_leader;
	sum->io_workers += item->statement.is_io_worker;
	sum->workers += !is_leader && !item->statement.is_io_worker;
	sum->sessions += sum->statement.leader != item->statement.leader || sum->sessions == 0;
	sum->statement.leader = item->statement.leader;
	if (sum->tid == BLOCK_NO_TID)
		sum->tid = (uint32_t)sum->statement.leader;
	if (is_sum || ns < sum->most_ns)
		return;
	sum->most_ns = ns;
	sum->pid = item->pid;
	sum->tid = item->tid;
	sum->start_ns = item->start_ns;
	sum->process_start_ns = item->process_start_ns;
}

static void add_item(enum record_by by, struct block_item *sum, const struct block_item *item)
{
	block_load_add(&sum->load, &item->load);
	if (by == RECORD_BY_file) {
		sum->before.requests += item->before.requests;
		sum->before.bytes += item->before.bytes;
		sum->before.busy_ns += item->before.busy_ns;
		if (item->size > sum->size)
			sum->size = item->size;
		return;
	}
	if (sum->cgroup_id != item->cgroup_id)
		sum->cgroup_id = 0;
	if (by == RECORD_BY_statement)
		add_worker(sum, item);
}

static int (*comparison_of(enum record_by by))(const void *, const void *)
{
	if (by == RECORD_BY_file)
		return compare_file;
	if (by == RECORD_BY_statement)
		return compare_statement;
	return by == RECORD_BY_cgroup ? compare_cgroup : compare_process;
}

/* Which thread of the control group it was for is not known, but which group is, most probably. */
static void charge_to_owner(struct block_item *item)
{
	if (!item->owner)
		return;
	item->load.uncertain_ns += item->load.inferred_ns;
	item->load.inferred_ns = 0;
}

size_t block_find_statements(struct block_item *items, size_t count,
	const struct probe_report *report)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		struct probe_statement statement = { 0 };

		if (items[i].tid == BLOCK_NO_TID)
			statement = items[i].statement;
		else
			report->find_statement(report->userdata, (int32_t)items[i].pid,
				(int32_t)items[i].tid, &statement);
		if (!statement.key)
			continue;
		items[left] = items[i];
		items[left++].statement = statement;
	}
	return left;
}

size_t block_sum_items(enum record_by by, struct block_item *items, size_t count)
{
	size_t left = 0;

	for (size_t i = 0; by == RECORD_BY_cgroup && i < count; i++)
		charge_to_owner(&items[i]);
	sort_in_place(items, count, sizeof(items[0]), comparison_of(by));
	for (size_t i = 0; i < count; i++) {
		struct block_item *last = left > 0 ? &items[left - 1] : NULL;

		if (last && is_same(by, last, &items[i])) {
			add_item(by, last, &items[i]);
			continue;
		}
		items[left++] = items[i];
		if (by == RECORD_BY_statement)
			add_worker(&items[left - 1], &items[i]);
	}
	sort_in_place(items, left, sizeof(items[0]), compare_load);
	return left;
}

static double pct_of(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void fill_load(const struct event_block_load *load, const struct event_block_device *device,
	struct record_io_by *ret_io_by)
{
	const struct event_block_work *kinds = load->kinds;
	uint64_t traced_ns = block_load_busy_ns(&device->load) - device->before.busy_ns;
	struct record_io_by *b = ret_io_by;

	b->requests = block_load_requests(load);
	b->read_requests = kinds[EVENT_BLOCK_READ].requests;
	b->write_requests = kinds[EVENT_BLOCK_WRITE].requests;
	b->discard_requests = kinds[EVENT_BLOCK_DISCARD].requests;
	b->flush_requests = kinds[EVENT_BLOCK_FLUSH].requests;
	b->read_bytes = kinds[EVENT_BLOCK_READ].bytes;
	b->write_bytes = kinds[EVENT_BLOCK_WRITE].bytes;
	b->discard_bytes = kinds[EVENT_BLOCK_DISCARD].bytes;
	b->bytes = block_load_bytes(load);
	b->share_pct = pct_of(b->bytes, block_load_bytes(&device->load));
	b->read_busy_ns = kinds[EVENT_BLOCK_READ].busy_ns;
	b->write_busy_ns = kinds[EVENT_BLOCK_WRITE].busy_ns;
	b->discard_busy_ns = kinds[EVENT_BLOCK_DISCARD].busy_ns;
	b->flush_busy_ns = kinds[EVENT_BLOCK_FLUSH].busy_ns;
	b->busy_ns = block_load_busy_ns(load);
	b->busy_share_pct = pct_of(b->busy_ns, traced_ns);
	/* Two completions at the same time may both have counted the time before them. */
	if (b->busy_share_pct > 100)
		b->busy_share_pct = 100;
	b->device_ns = load->device_ns;
	b->inferred = load->inferred_ns > b->busy_ns / 2;
	b->uncertain = load->uncertain_ns > b->busy_ns / 2;
}

void block_fill_io_by(enum record_by by, uint32_t rank, const struct block_item *item,
	const struct event_block_device *device, struct record_io_by *ret_io_by)
{
	struct record_io_by *b = ret_io_by;

	b->by = by;
	b->rank = rank;
	b->dev.major = item->dev >> 20;
	b->dev.minor = item->dev & 0xfffff;
	text_copy(b->dev_name, sizeof(b->dev_name), device->name);
	if (by == RECORD_BY_process || by == RECORD_BY_thread || by == RECORD_BY_statement) {
		b->pid = (int32_t)item->pid;
		b->tid = by == RECORD_BY_process ? 0 : (int32_t)item->tid;
	}
	if (by == RECORD_BY_statement) {
		b->statement.present = true;
		b->statement.sessions = item->sessions;
		b->statement.workers = item->workers;
		b->statement.io_workers = item->io_workers;
		b->statement.leader = item->has_leader;
	}
	if (by == RECORD_BY_file) {
		b->fs_dev.major = item->file.fs_dev >> 20;
		b->fs_dev.minor = item->file.fs_dev & 0xfffff;
		b->inode = item->file.ino;
		b->file_bytes = item->size;
		b->before_requests = item->before.requests;
		b->before_bytes = item->before.bytes;
		b->before_busy_ns = item->before.busy_ns;
	} else {
		b->cgroup = item->cgroup_id;
	}
	fill_load(&item->load, device, b);
}
