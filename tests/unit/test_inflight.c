/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * Operations in flight, read from real BPF maps: the oldest first, and those beyond the limit
 * counted.
 */
#include "test_watch_tree.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "snapshot/inflight.h"
#include "util/cleanup.h"

static const struct event_inflight noted = {
	.start_ns = 1,
	.bytes = 777,
	.pid = 7,
	.fd = 41,
	.op = EVENT_OP_READ,
};

/* Makes a real map like that of `wait`, which close_fd() ends; false: this user may not. */
static bool make_map(uint32_t max, struct inflight_map *ret_map)
{
	*ret_map = (struct inflight_map){ .key_size = sizeof(uint32_t),
		.value_size = sizeof(struct event_inflight) };
	ret_map->fd = bpf_map_create(BPF_MAP_TYPE_HASH, "test_sleeps", ret_map->key_size,
		ret_map->value_size, max, NULL);
	if (ret_map->fd < 0)
		print_message("a BPF map cannot be made here: %s\n", strerror(-ret_map->fd));
	return ret_map->fd >= 0;
}

static void put(const struct inflight_map *map, uint32_t tid, uint64_t start_ns)
{
	struct event_inflight op = noted;

	op.start_ns = start_ns;
	op.tid = tid;
	assert_int_equal(bpf_map_update_elem(map->fd, &tid, &op, BPF_ANY), 0);
}

/* A request: its key has eight bytes, and its value begins with an operation. */
static void test_collect_requests(void **state)
{
	static struct inflight_scan scan;
	struct event_sleep value = { .op = noted, .slept_ns = 5 };
	uint64_t key = 0xffff888012345678;
	_cleanup_close_ int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "test_requests", sizeof(key),
		sizeof(value), 16, NULL);
	const struct inflight_map map = { .fd = fd,
		.key_size = sizeof(key),
		.value_size = sizeof(value) };
	struct event_inflight op;

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
	assert_int_equal(inflight_collect(&map, 1000, 100, &scan), 0);
	assert_int_equal(scan.count, 1);
	assert_true(scan.items[0].key == key);
	assert_int_equal(scan.items[0].start_ns, noted.start_ns);
	assert_int_equal(scan.items[0].tid, noted.tid);
	assert_true(inflight_find(&map, key, &op));
	assert_memory_equal(&op, &noted, sizeof(noted));
	assert_false(inflight_find(&map, key + 1, &op));
	value.op.start_ns = 0;
	assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
	assert_false(inflight_find(&map, key, &op));
	assert_int_equal(inflight_clear(&map, UINT64_MAX), 0);
	assert_true(bpf_map_get_next_key(fd, NULL, &key) < 0);
}

static void test_collect_and_clear(void **state)
{
	static struct inflight_scan scan;
	struct inflight_map map;

	(void)state;
	if (!make_map(9, &map))
		skip();
	assert_int_equal(inflight_collect(&map, 1000, 100, &scan), 0);
	assert_int_equal(scan.count, 0);
	put(&map, 1, 900);
	put(&map, 2, 500);
	put(&map, 3, 0);   /* returned */
	put(&map, 4, 901); /* too young by one */
	put(&map, 5, 700);
	assert_int_equal(inflight_collect(&map, 1000, 100, &scan), 0);
	assert_int_equal(scan.count, 3);
	assert_int_equal(scan.left_out, 0);
	assert_int_equal(scan.items[0].tid, 2);
	assert_int_equal(scan.items[0].key, 2);
	assert_int_equal(scan.items[0].start_ns, 500);
	assert_int_equal(scan.items[1].tid, 5);
	assert_int_equal(scan.items[2].tid, 1);
	assert_int_equal(inflight_clear(&map, UINT64_MAX), 0);
	assert_int_equal(inflight_collect(&map, 1000, 0, &scan), 0);
	assert_int_equal(scan.count, 0);
	assert_int_equal(inflight_clear(&map, UINT64_MAX), 0);
	map.fd = close_fd(map.fd);
	assert_true(inflight_collect(&map, 1000, 100, &scan) < 0);
}

/* More than one batch, and more than a scan holds. */
static void test_operations_beyond_the_scan_limit_are_counted(void **state)
{
	static struct inflight_scan scan;
	struct inflight_map map;

	(void)state;
	if (!make_map(2 * INFLIGHT_SCAN_MAX, &map))
		skip();
	for (uint32_t i = 1; i <= INFLIGHT_SCAN_MAX + 23; i++)
		put(&map, i, 100000 - i);
	assert_int_equal(inflight_collect(&map, 1000000, 1, &scan), 0);
	assert_int_equal(scan.count, INFLIGHT_SCAN_MAX);
	assert_int_equal(scan.left_out, 23);
	for (uint32_t i = 1; i < scan.count; i++)
		assert_true(scan.items[i - 1].start_ns < scan.items[i].start_ns);
	close_fd(map.fd);
}

/* A time that is over still lets each call delete some, so that the next ones come to an end. */
static void test_clearing_has_a_deadline(void **state)
{
	static struct inflight_scan scan;
	struct inflight_map map;
	uint32_t left = 10 * INFLIGHT_BATCH;
	unsigned int calls = 1;

	(void)state;
	if (!make_map(left, &map))
		skip();
	for (uint32_t i = 1; i <= left; i++)
		put(&map, i, i);
	for (; inflight_clear(&map, 0) == -ETIME; calls++) {
		assert_int_equal(inflight_collect(&map, 1000000, 0, &scan), 0);
		assert_in_range(scan.count, 1, left - 1);
		left = scan.count;
	}
	assert_true(calls > 1);
	assert_int_equal(inflight_collect(&map, 1000000, 0, &scan), 0);
	assert_int_equal(scan.count, 0);
	close_fd(map.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collect_requests),
		cmocka_unit_test(test_collect_and_clear),
		cmocka_unit_test(test_operations_beyond_the_scan_limit_are_counted),
		cmocka_unit_test(test_clearing_has_a_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
