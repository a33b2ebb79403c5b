/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tables of probe `block` come to: percentiles, sums over threads, the order, the shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probes/block_sum.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define DEV_A (7U << 20 | 1)
#define DEV_B (8U << 20 | 16)

static void test_percentile_without_requests(void **state)
{
	const uint64_t buckets[EVENT_BLOCK_BUCKETS] = {};

	(void)state;
	assert_int_equal(block_percentile(buckets, 0.5, 12345), 0);
}

/* Half way into the bucket that holds half of them: 8 to 16 us. */
static void test_percentile_within_a_bucket(void **state)
{
	const uint64_t buckets[EVENT_BLOCK_BUCKETS] = { [4] = 100 };

	(void)state;
	assert_int_equal(block_percentile(buckets, 0.5, NSEC_PER_SEC), 12 * NSEC_PER_USEC);
	assert_in_range(block_percentile(buckets, 0.99, NSEC_PER_SEC), 15900, 15940);
	assert_int_equal(block_percentile(buckets, 1, NSEC_PER_SEC), 16 * NSEC_PER_USEC);
	/* Never above what was measured. */
	assert_int_equal(block_percentile(buckets, 0.99, 9000), 9000);
}

static void test_percentile_over_buckets(void **state)
{
	/* 90 below 1 us, 8 of 1 to 2 ms, 2 of 1 to 2 s */
	const uint64_t buckets[EVENT_BLOCK_BUCKETS] = { [0] = 90, [11] = 8, [21] = 2 };

	(void)state;
	assert_in_range(block_percentile(buckets, 0.5, 2 * NSEC_PER_SEC), 500, 600);
	assert_in_range(block_percentile(buckets, 0.95, 2 * NSEC_PER_SEC), 1024000, 2048000);
	assert_in_range(block_percentile(buckets, 0.99, 2 * NSEC_PER_SEC), 1048576000, 2000000000);
	/* The last bucket has no end of its own. */
	assert_int_equal(block_percentile((uint64_t[EVENT_BLOCK_BUCKETS]){ [31] = 7 }, 1,
				 4000 * NSEC_PER_SEC), (1ULL << 31) * NSEC_PER_USEC);
}

static void test_device(void **state)
{
	struct event_block_device d = {
		.load = { .read_requests = 5, .write_requests = 3, .other_requests = 2,
			.read_bytes = 4096, .write_bytes = 512 },
		.queue_max_ns = 900, .device_max_ns = 3 * NSEC_PER_SEC,
		.queue = { [0] = 8 }, .device = { [1] = 7, [22] = 1 },
	};
	_cleanup_free_ struct record_device *r = calloc(1, sizeof(*r));

	(void)state;
	block_fill_device(DEV_B, &d, r);
	assert_int_equal(r->dev_major, 8);
	assert_int_equal(r->dev_minor, 16);
	assert_int_equal(r->requests, 10);
	assert_int_equal(r->read_requests, 5);
	assert_int_equal(r->read_bytes, 4096);
	assert_int_equal(r->write_bytes, 512);
	assert_int_equal(r->queue.max_ns, 900);
	assert_int_equal(r->queue.p50_ns, 500);
	assert_in_range(r->device.p50_ns, 1000, 2000);
	assert_int_equal(r->device.max_ns, 3 * NSEC_PER_SEC);
	assert_int_equal(r->device_histogram[22], 1);
}

static struct block_item make_item(uint32_t dev, uint32_t pid, uint32_t tid, uint64_t cgroup,
	uint64_t bytes)
{
	return (struct block_item){
		.dev = dev, .pid = pid, .tid = tid, .cgroup_id = cgroup,
		.load = { .read_requests = 1, .read_bytes = bytes, .device_ns = 10 },
		.comm = "worker", .process_comm = "mariadbd",
	};
}

static void assert_item(const struct block_item *item, uint32_t dev, uint32_t pid, uint64_t bytes,
	uint64_t requests)
{
	assert_int_equal(item->dev, dev);
	assert_int_equal(item->pid, pid);
	assert_int_equal(block_load_bytes(&item->load), bytes);
	assert_int_equal(block_load_requests(&item->load), requests);
}

static size_t make_items(struct block_item items[6])
{
	items[0] = make_item(DEV_B, 10, 11, 1, 100);
	items[1] = make_item(DEV_A, 10, 12, 2, 5);
	items[2] = make_item(DEV_B, 20, 20, 1, 150);
	items[3] = make_item(DEV_B, 10, 10, 2, 70);
	items[4] = make_item(DEV_A, 30, 31, 2, 6);
	items[5] = make_item(DEV_B, 10, 13, 1, 1);
	return 6;
}

/* Threads of one process on one disk are one; disks are never added up. */
static void test_processes(void **state)
{
	struct block_item items[6];

	(void)state;
	assert_int_equal(block_sum_items(BLOCK_BY_PROCESS, items, make_items(items)), 4);
	assert_item(&items[0], DEV_A, 30, 6, 1);
	assert_item(&items[1], DEV_A, 10, 5, 1);
	assert_item(&items[2], DEV_B, 10, 171, 3);
	assert_item(&items[3], DEV_B, 20, 150, 1);
	assert_int_equal(items[2].load.device_ns, 30);
}

static void test_cgroups(void **state)
{
	struct block_item items[6];

	(void)state;
	assert_int_equal(block_sum_items(BLOCK_BY_CGROUP, items, make_items(items)), 3);
	assert_int_equal(items[0].cgroup_id, 2);
	assert_int_equal(block_load_bytes(&items[0].load), 11);
	assert_int_equal(items[1].cgroup_id, 1);
	assert_int_equal(block_load_bytes(&items[1].load), 251);
	assert_int_equal(items[2].cgroup_id, 2);
	assert_int_equal(block_load_bytes(&items[2].load), 70);
}

static void test_threads_are_ordered_only(void **state)
{
	struct block_item items[6];

	(void)state;
	assert_int_equal(block_sum_items(BLOCK_BY_THREAD, items, make_items(items)), 6);
	assert_item(&items[2], DEV_B, 20, 150, 1);
	assert_item(&items[3], DEV_B, 10, 100, 1);
	assert_int_equal(items[3].tid, 11);
	assert_int_equal(block_sum_items(BLOCK_BY_FILE, items, 0), 0);
}

static struct record_io_by fill(enum block_by by, const struct block_item *item, uint64_t device_bytes)
{
	static struct record_io_by r;

	memset(&r, 0, sizeof(r));
	block_fill_io_by(by, item, device_bytes, &r);
	return r;
}

static void test_lines(void **state)
{
	struct block_item item = make_item(DEV_B, 10, 11, 4711, 600);
	struct record_io_by r;

	(void)state;
	item.load.write_bytes = 200;
	item.load.inferred_bytes = 400;
	item.file = (struct event_block_file_key){ 131, 8U << 20 | 17, DEV_B };
	r = fill(BLOCK_BY_THREAD, &item, 1000);
	assert_string_equal(r.by, "thread");
	assert_int_equal(r.dev_minor, 16);
	assert_int_equal(r.pid, 10);
	assert_int_equal(r.tid, 11);
	assert_string_equal(r.comm, "worker");
	assert_int_equal(r.cgroup_id, 4711);
	assert_int_equal(r.inode, 0);
	assert_int_equal(r.bytes, 800);
	assert_true(r.share_pct == 80);
	assert_false(r.inferred);
	item.load.inferred_bytes = 401;
	r = fill(BLOCK_BY_PROCESS, &item, 800);
	assert_string_equal(r.comm, "mariadbd");
	assert_int_equal(r.tid, 0);
	assert_true(r.share_pct == 100);
	assert_true(r.inferred);
	r = fill(BLOCK_BY_FILE, &item, 0);
	assert_int_equal(r.inode, 131);
	assert_int_equal(r.fs_minor, 17);
	assert_int_equal(r.pid, 0);
	assert_string_equal(r.comm, "");
	assert_int_equal(r.cgroup_id, 0);
	assert_true(r.share_pct == 0);
	r = fill(BLOCK_BY_CGROUP, &item, 1600);
	assert_string_equal(r.by, "cgroup");
	assert_int_equal(r.cgroup_id, 4711);
	assert_int_equal(r.pid, 0);
	assert_true(r.share_pct == 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentile_without_requests),
		cmocka_unit_test(test_percentile_within_a_bucket),
		cmocka_unit_test(test_percentile_over_buckets),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_threads_are_ordered_only),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
