/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * What the tables of probe `block` come to: percentiles, sums over threads, the order, the shares.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probes/block_journal.h"
#include "probes/block_sum.h"
#include "probes/probe.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define DEV_A (7U << 20 | 1)
#define DEV_B (8U << 20 | 16)
#define MIB (1ULL << 20)

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
				 4000 * NSEC_PER_SEC),
		(1ULL << 31) * NSEC_PER_USEC);
}

static void test_device(void **state)
{
	struct event_block_device d = {
		.load.kinds = { [EVENT_BLOCK_READ] = { 5, 4096, 40 },
			[EVENT_BLOCK_WRITE] = { 3, 512, 30 },
			[EVENT_BLOCK_DISCARD] = { 1, MIB, 20 },
			[EVENT_BLOCK_FLUSH] = { 1, 0, 10 } },
		.before = { 2, 512, 25 },
		.queue_max_ns = 900,
		.device_max_ns = 3 * NSEC_PER_SEC,
		.queue = { [0] = 8 },
		.device = { [1] = 7, [22] = 1 },
		.name = "nvme0c0n1",
	};
	_cleanup_free_ struct record_device *r = calloc(1, sizeof(*r));

	(void)state;
	block_fill_device(DEV_B, &d, r);
	assert_int_equal(r->dev.major, 8);
	assert_int_equal(r->dev.minor, 16);
	assert_string_equal(r->dev_name, "nvme0c0n1");
	assert_int_equal(r->requests, 10);
	assert_int_equal(r->read_requests, 5);
	assert_int_equal(r->read_bytes, 4096);
	assert_int_equal(r->write_bytes, 512);
	assert_int_equal(r->discard_requests, 1);
	assert_int_equal(r->discard_bytes, MIB);
	assert_int_equal(r->flush_requests, 1);
	assert_int_equal(r->read_busy_ns, 40);
	assert_int_equal(r->write_busy_ns, 30);
	assert_int_equal(r->discard_busy_ns, 20);
	assert_int_equal(r->flush_busy_ns, 10);
	assert_int_equal(r->before_requests, 2);
	assert_int_equal(r->before_bytes, 512);
	assert_int_equal(r->before_busy_ns, 25);
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
		.dev = dev,
		.pid = pid,
		.tid = tid,
		.cgroup_id = cgroup,
		.load = { .kinds = { [EVENT_BLOCK_READ] = { 1, bytes, bytes } }, .device_ns = 10 },
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
	assert_int_equal(block_sum_items(RECORD_BY_process, items, make_items(items)), 4);
	assert_item(&items[0], DEV_A, 30, 6, 1);
	assert_item(&items[1], DEV_A, 10, 5, 1);
	assert_item(&items[2], DEV_B, 10, 171, 3);
	assert_item(&items[3], DEV_B, 20, 150, 1);
	assert_int_equal(items[2].load.device_ns, 30);
}

/* The id of a process that has ended is given to another one, that of a thread likewise. */
static void test_ids_are_used_again(void **state)
{
	struct block_item items[3], copy[3];

	(void)state;
	items[0] = make_item(DEV_B, 10, 11, 1, 100);
	items[1] = make_item(DEV_B, 10, 10, 1, 20);
	items[2] = make_item(DEV_B, 10, 11, 1, 3);
	items[0].process_start_ns = 1000;
	items[1].process_start_ns = items[2].process_start_ns = 2000;
	items[0].start_ns = 1000;
	items[1].start_ns = 2000;
	items[2].start_ns = 2500;
	memcpy(copy, items, sizeof(items));
	assert_int_equal(block_sum_items(RECORD_BY_process, copy, 3), 2);
	assert_item(&copy[0], DEV_B, 10, 100, 1);
	assert_int_equal(copy[0].start_ns, 1000);
	assert_item(&copy[1], DEV_B, 10, 23, 2);
	assert_int_equal(copy[1].start_ns, 2000);
	items[0].process_start_ns = 2000;
	memcpy(copy, items, sizeof(items));
	assert_int_equal(block_sum_items(RECORD_BY_process, copy, 3), 1);
	assert_int_equal(block_sum_items(RECORD_BY_thread, items, 3), 3);
}

static void test_cgroups(void **state)
{
	struct block_item items[6];

	(void)state;
	assert_int_equal(block_sum_items(RECORD_BY_cgroup, items, make_items(items)), 3);
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
	assert_int_equal(block_sum_items(RECORD_BY_thread, items, make_items(items)), 6);
	assert_item(&items[2], DEV_B, 20, 150, 1);
	assert_item(&items[3], DEV_B, 10, 100, 1);
	assert_int_equal(items[3].tid, 11);
	assert_int_equal(block_sum_items(RECORD_BY_file, items, 0), 0);
}

/*
 * A kernel thread sends for a control group and for itself: it is one thread, and what it sent for
 * the group is the group's.
 */
static void test_what_a_kernel_thread_sends_for_a_group(void **state)
{
	struct block_item items[3], copy[3];

	(void)state;
	items[0] = make_item(DEV_B, 77, 77, 1, 10);
	items[0].load.inferred_ns = 10;
	items[1] = make_item(DEV_B, 77, 77, 4711, 90);
	items[1].load.inferred_ns = 90;
	items[1].owner = 4711;
	items[2] = make_item(DEV_B, 10, 10, 4711, 50);
	memcpy(copy, items, sizeof(items));
	assert_int_equal(block_sum_items(RECORD_BY_thread, copy, 3), 2);
	assert_item(&copy[0], DEV_B, 77, 100, 2);
	assert_int_equal(copy[0].load.inferred_ns, 100);
	assert_int_equal(copy[0].cgroup_id, 0);
	memcpy(copy, items, sizeof(items));
	assert_int_equal(block_sum_items(RECORD_BY_cgroup, copy, 3), 2);
	assert_item(&copy[0], DEV_B, 10, 140, 2);
	assert_int_equal(copy[0].cgroup_id, 4711);
	assert_int_equal(copy[0].load.inferred_ns, 0);
	assert_int_equal(copy[0].load.uncertain_ns, 90);
	assert_int_equal(copy[1].load.inferred_ns, 10);
}

static struct block_item make_file(uint64_t address, uint32_t fs_dev, const char *path,
	uint32_t flags, uint64_t bytes)
{
	struct event_block_file file = { .flags = flags, .path_len = (uint32_t)strlen(path) + 1 };
	struct block_item item = make_item(DEV_B, 0, 0, 0, bytes);

	text_copy(file.path, sizeof(file.path), path);
	item.file = (struct event_block_file_key){ .inode = address,
		.ino = 257,
		.fs_dev = fs_dev,
		.dev = DEV_B };
	item.before = (struct event_block_work){ 1, 1, 1 };
	item.size = 4096;
	item.path_key = block_path_key(&item.file, &file);
	return item;
}

/*
 * The kernel may have dropped the inode of a file and read it again. Subvolumes of btrfs have one
 * anonymous device and the same numbers.
 */
static void test_files_with_one_number(void **state)
{
	const uint32_t btrfs = 39;
	struct block_item items[4];

	(void)state;
	items[0] = make_file(0xa000, btrfs, "a", EVENT_PATH_COMPLETE, 100);
	items[1] = make_file(0xb000, btrfs, "b", EVENT_PATH_COMPLETE, 20);
	items[2] = make_file(0xc000, btrfs, "a", EVENT_PATH_COMPLETE, 3);
	assert_int_equal(block_sum_items(RECORD_BY_file, items, 3), 2);
	assert_int_equal(block_load_bytes(&items[0].load), 103);
	assert_int_equal(items[0].before.requests, 2);
	assert_int_equal(items[0].size, 4096);
	assert_int_equal(block_load_bytes(&items[1].load), 20);
	/* The end of a path does not tell them apart. */
	items[0] = make_file(0xa000, btrfs, "a", 0, 100);
	items[1] = make_file(0xb000, btrfs, "a", 0, 20);
	assert_int_equal(block_sum_items(RECORD_BY_file, items, 2), 2);
	/* A disk has the number once, and the file may have been renamed. */
	items[0] = make_file(0xa000, DEV_A, "a", EVENT_PATH_COMPLETE, 100);
	items[1] = make_file(0xb000, DEV_A, "b", EVENT_PATH_COMPLETE, 20);
	assert_int_equal(block_sum_items(RECORD_BY_file, items, 2), 1);
}

/* The device read so many bytes and was busy for as many nanoseconds. */
static struct record_io_by fill(enum record_by by, const struct block_item *item,
	uint64_t device_bytes)
{
	const struct event_block_device device = {
		.load.kinds = { [EVENT_BLOCK_READ] = { 9, device_bytes, device_bytes } },
	};
	static struct record_io_by r;

	memset(&r, 0, sizeof(r));
	block_fill_io_by(by, 1, item, &device, &r);
	return r;
}

static void test_lines(void **state)
{
	struct block_item item = make_item(DEV_B, 10, 11, 4711, 600),
			  of_file = { .dev = DEV_B,
				  .file = { .inode = 0xffff,
					  .ino = 131,
					  .fs_dev = 8U << 20 | 17,
					  .dev = DEV_B },
				  .size = 4096 };
	struct record_io_by r;

	(void)state;
	item.load.kinds[EVENT_BLOCK_WRITE] = (struct event_block_work){ 1, 200, 200 };
	item.load.inferred_ns = 400;
	r = fill(RECORD_BY_thread, &item, 1000);
	assert_int_equal(r.file_bytes, 0);
	assert_int_equal(r.by, RECORD_BY_thread);
	assert_int_equal(r.dev.minor, 16);
	assert_int_equal(r.pid, 10);
	assert_int_equal(r.tid, 11);
	assert_int_equal(r.cgroup, 4711);
	assert_int_equal(r.inode, 0);
	assert_int_equal(r.bytes, 800);
	assert_true(r.share_pct == 80);
	assert_false(r.inferred);
	item.load.inferred_ns = 401;
	r = fill(RECORD_BY_process, &item, 800);
	assert_int_equal(r.tid, 0);
	assert_true(r.share_pct == 100);
	assert_true(r.inferred);
	of_file.load = item.load;
	r = fill(RECORD_BY_file, &of_file, 0);
	assert_int_equal(r.inode, 131);
	assert_int_equal(r.file_bytes, 4096);
	assert_int_equal(r.fs_dev.minor, 17);
	assert_int_equal(r.pid, 0);
	assert_string_equal(r.comm, "");
	assert_int_equal(r.cgroup, 0);
	assert_true(r.share_pct == 0);
	r = fill(RECORD_BY_cgroup, &item, 1600);
	assert_int_equal(r.by, RECORD_BY_cgroup);
	assert_int_equal(r.cgroup, 4711);
	assert_int_equal(r.pid, 0);
	assert_true(r.share_pct == 50);
}

/* Small random reads keep the disk busy, and large sequential ones move the bytes. */
static void test_the_order_is_that_of_device_time(void **state)
{
	struct block_item items[2] = {
		make_item(DEV_B, 10, 10, 1, 80),
		make_item(DEV_B, 20, 20, 1, 20),
	};
	const struct event_block_device device = {
		.load.kinds = { [EVENT_BLOCK_READ] = { 100, 100, 1500 } },
		.before = { 10, 10, 500 },
	};
	struct record_io_by r;

	(void)state;
	items[0].load.kinds[EVENT_BLOCK_READ] = (struct event_block_work){ 5, 80, 50 };
	items[1].load.kinds[EVENT_BLOCK_READ] = (struct event_block_work){ 95, 20, 950 };
	block_sum_items(RECORD_BY_thread, items, 2);
	assert_int_equal(items[0].pid, 20);
	memset(&r, 0, sizeof(r));
	block_fill_io_by(RECORD_BY_thread, 1, &items[0], &device, &r);
	assert_true(r.share_pct == 20);
	/* What had begun before the attach is nobody's: it makes nobody's share smaller. */
	assert_true(r.busy_share_pct == 95);
	assert_int_equal(r.busy_ns, 950);
	assert_int_equal(r.read_busy_ns, 950);
	assert_int_equal(r.read_requests, 95);
}

/* fstrim moves no bytes, and a flush has none. */
static void test_discards_and_flushes_are_work(void **state)
{
	struct block_item item = make_item(DEV_B, 10, 10, 1, 0);
	const struct event_block_device device = {
		.load.kinds = { [EVENT_BLOCK_DISCARD] = { 9, 9 * MIB, 900 },
			[EVENT_BLOCK_FLUSH] = { 3, 0, 100 } },
	};
	struct record_io_by r;

	(void)state;
	memset(&item.load, 0, sizeof(item.load));
	item.load.kinds[EVENT_BLOCK_DISCARD] = (struct event_block_work){ 9, 9 * MIB, 900 };
	item.load.kinds[EVENT_BLOCK_FLUSH] = (struct event_block_work){ 1, 0, 30 };
	memset(&r, 0, sizeof(r));
	block_fill_io_by(RECORD_BY_thread, 1, &item, &device, &r);
	assert_int_equal(r.bytes, 0);
	assert_int_equal(r.requests, 10);
	assert_int_equal(r.discard_requests, 9);
	assert_int_equal(r.discard_bytes, 9 * MIB);
	assert_int_equal(r.flush_requests, 1);
	assert_true(r.busy_share_pct == 93);
}

static void test_who_filled_a_journal(void **state)
{
	static const struct event_journal journal = { .start_ns = 9000,
		.commits = 4,
		.commit_ns = 800,
		.longest_ns = 500,
		.early_end_ns = 1300,
		.longest_blocks = 7,
		.longest_data_pct = 95 };
	static const struct probe_report report = { .now_ns = 9600, .attached_ns = 1000 };
	struct block_journal_user users[] = {
		{ { DEV_A, 7, 100 }, { .blocks = 60, .comm = "dd" } },
		{ { DEV_A, 8, 100 }, { .blocks = 40, .comm = "rm" } },
		{ { DEV_B, 9, 100 }, { .blocks = 1000, .comm = "other" } },
	};
	struct event_journal crowded = journal;
	struct record_journal j = { 0 };

	(void)state;
	block_journal_fill(DEV_A, &journal, users, ARRAY_SIZE(users), &report, &j);
	assert_int_equal(j.commits, 4);
	assert_int_equal(j.longest_ns, 500);
	assert_int_equal(j.longest_data_pct, 95);
	assert_int_equal(j.early_ns, 300);
	assert_int_equal(j.under_way_ns, 600);
	assert_int_equal(j.blocks, 100);
	assert_int_equal(j.pid, 7);
	assert_string_equal(j.comm, "dd");
	assert_true(j.share_pct == 60);
	/* Who found no room may have changed more. */
	crowded.others_blocks = 21;
	j = (struct record_journal){ 0 };
	block_journal_fill(DEV_A, &crowded, users, ARRAY_SIZE(users), &report, &j);
	assert_int_equal(j.blocks, 121);
	assert_int_equal(j.pid, 0);
	/* A kernel thread allocates blocks for others, and less than half is nobody's. */
	users[0].value.kernel = 1;
	j = (struct record_journal){ 0 };
	block_journal_fill(DEV_A, &journal, users, ARRAY_SIZE(users), &report, &j);
	assert_int_equal(j.pid, 0);
	users[0].value = (struct event_journal_user){ .blocks = 45, .comm = "dd" };
	users[2] = (struct block_journal_user){ { DEV_A, 9, 100 }, { .blocks = 30 } };
	j = (struct record_journal){ 0 };
	block_journal_fill(DEV_A, &journal, users, ARRAY_SIZE(users), &report, &j);
	assert_int_equal(j.blocks, 115);
	assert_int_equal(j.pid, 0);
	assert_true(isnan(j.share_pct));
	/* Those of one name count together, and so do not those of another file system. */
	text_copy(users[2].value.comm, sizeof(users[2].value.comm), "dd");
	j = (struct record_journal){ 0 };
	block_journal_fill(DEV_A, &journal, users, ARRAY_SIZE(users), &report, &j);
	assert_int_equal(j.pid, 0);
	assert_int_equal(j.processes, 2);
	assert_string_equal(j.comm, "dd");
	assert_int_equal(j.share_pct, 65);
	users[2].key.dev = DEV_B;
	j = (struct record_journal){ 0 };
	block_journal_fill(DEV_A, &journal, users, ARRAY_SIZE(users), &report, &j);
	assert_int_equal(j.processes, 1);
	assert_int_equal(j.pid, 7);
	/* One that has the id of one that has ended is another process. */
	users[2] = (struct block_journal_user){ { DEV_A, 7, 200 }, { .blocks = 30, .comm = "cp" } };
	j = (struct record_journal){ 0 };
	block_journal_fill(DEV_A, &journal, users, ARRAY_SIZE(users), &report, &j);
	assert_int_equal(j.blocks, 115);
	assert_int_equal(j.pid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentile_without_requests),
		cmocka_unit_test(test_percentile_within_a_bucket),
		cmocka_unit_test(test_percentile_over_buckets),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_ids_are_used_again),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_threads_are_ordered_only),
		cmocka_unit_test(test_what_a_kernel_thread_sends_for_a_group),
		cmocka_unit_test(test_files_with_one_number),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_the_order_is_that_of_device_time),
		cmocka_unit_test(test_discards_and_flushes_are_work),
		cmocka_unit_test(test_who_filled_a_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
