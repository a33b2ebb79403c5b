/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/block_sum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "util/clock.h"
#include "util/sort.h"
#include "util/text.h"

static_assert(EVENT_BLOCK_BUCKETS == RECORD_HISTOGRAM_MAX, "a record holds every bucket");

const char *block_by_name(enum block_by by)
{
	static const char *const names[BLOCK_BY_COUNT] = {
		[BLOCK_BY_PROCESS] = "process",
		[BLOCK_BY_THREAD] = "thread",
		[BLOCK_BY_FILE] = "file",
		[BLOCK_BY_CGROUP] = "cgroup",
	};

	return names[by];
}

uint64_t block_load_bytes(const struct event_block_load *load)
{
	return load->read_bytes + load->write_bytes;
}

uint64_t block_load_requests(const struct event_block_load *load)
{
	return load->read_requests + load->write_requests + load->other_requests;
}

uint64_t block_percentile(const uint64_t buckets[EVENT_BLOCK_BUCKETS], double share, uint64_t max_ns)
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
	ret_device->dev_major = dev >> 20;
	ret_device->dev_minor = dev & 0xfffff;
	ret_device->requests = block_load_requests(&device->load);
	ret_device->read_requests = device->load.read_requests;
	ret_device->write_requests = device->load.write_requests;
	ret_device->read_bytes = device->load.read_bytes;
	ret_device->write_bytes = device->load.write_bytes;
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
	/* The thread that the process has its name of comes first. */
	return r ? r : compare(x->tid, y->tid);
}

static int compare_cgroup(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;
	int r = compare(x->dev, y->dev);

	return r ? r : compare(x->cgroup_id, y->cgroup_id);
}

static int compare_load(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;
	int r = compare(x->dev, y->dev);

	if (r == 0)
		r = compare(block_load_bytes(&y->load), block_load_bytes(&x->load));
	return r ? r : compare(block_load_requests(&y->load), block_load_requests(&x->load));
}

static bool is_same(enum block_by by, const struct block_item *a, const struct block_item *b)
{
	if (a->dev != b->dev)
		return false;
	return by == BLOCK_BY_PROCESS ? a->pid == b->pid : a->cgroup_id == b->cgroup_id;
}

static void add_load(struct event_block_load *sum, const struct event_block_load *load)
{
	sum->read_requests += load->read_requests;
	sum->write_requests += load->write_requests;
	sum->other_requests += load->other_requests;
	sum->read_bytes += load->read_bytes;
	sum->write_bytes += load->write_bytes;
	sum->device_ns += load->device_ns;
	sum->inferred_bytes += load->inferred_bytes;
}

size_t block_sum_items(enum block_by by, struct block_item *items, size_t count)
{
	size_t left = 0;

	if (by == BLOCK_BY_PROCESS || by == BLOCK_BY_CGROUP) {
		sort_in_place(items, count, sizeof(items[0]),
			by == BLOCK_BY_PROCESS ? compare_process : compare_cgroup);
		for (size_t i = 0; i < count; i++) {
			if (left > 0 && is_same(by, &items[left - 1], &items[i]))
				add_load(&items[left - 1].load, &items[i].load);
			else
				items[left++] = items[i];
		}
		count = left;
	}
	sort_in_place(items, count, sizeof(items[0]), compare_load);
	return count;
}

void block_fill_io_by(enum block_by by, const struct block_item *item, uint64_t device_bytes,
	struct record_io_by *ret_io_by)
{
	struct record_io_by *b = ret_io_by;

	text_copy(b->by, sizeof(b->by), block_by_name(by));
	b->dev_major = item->dev >> 20;
	b->dev_minor = item->dev & 0xfffff;
	if (by == BLOCK_BY_PROCESS || by == BLOCK_BY_THREAD) {
		b->pid = (int32_t)item->pid;
		b->tid = by == BLOCK_BY_THREAD ? (int32_t)item->tid : 0;
		text_copy(b->comm, sizeof(b->comm),
			by == BLOCK_BY_THREAD ? item->comm : item->process_comm);
	}
	if (by == BLOCK_BY_FILE) {
		b->fs_major = item->file.fs_dev >> 20;
		b->fs_minor = item->file.fs_dev & 0xfffff;
		b->inode = item->file.inode;
	} else {
		b->cgroup_id = item->cgroup_id;
	}
	b->requests = block_load_requests(&item->load);
	b->read_bytes = item->load.read_bytes;
	b->write_bytes = item->load.write_bytes;
	b->bytes = block_load_bytes(&item->load);
	b->share_pct = device_bytes ? 100.0 * (double)b->bytes / (double)device_bytes : 0;
	b->device_ns = item->load.device_ns;
	b->inferred = item->load.inferred_bytes > b->bytes / 2;
}
