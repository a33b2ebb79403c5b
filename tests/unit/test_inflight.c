/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether an operation noted as in flight is: every verdict, on the thread's own word and without it. */
#include "test_watch_tree.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "snapshot/inflight.h"
#include "snapshot/thread.h"
#include "util/cleanup.h"

static const struct event_inflight noted = {
	.start_ns = 1,
	.buf = 0x55d0aabb,
	.bytes = 777,
	.pid = 7,
	.fd = 41,
	.op = EVENT_OP_READ,
};

static const struct thread_syscall in_call = {
	.nr = 17,
	.args = { 41, 0x55d0aabb, 777, 12345 },
};

static void test_blocked(void **state)
{
	struct event_inflight op = noted;
	struct thread_syscall call = in_call;

	(void)state;
	assert_int_equal(inflight_judge(&op, &call), INFLIGHT_BLOCKED);
	/* read(2), number 0, is a call like any other. */
	call.nr = 0;
	assert_int_equal(inflight_judge(&op, &call), INFLIGHT_BLOCKED);
	/* The function entry does not know the descriptor. */
	op.fd = -1;
	call.args[0] = 99;
	assert_int_equal(inflight_judge(&op, &call), INFLIGHT_BLOCKED);
	/* Only 32 bits of the register are the descriptor. */
	op.fd = 41;
	call.args[0] = 0x100000029;
	assert_int_equal(inflight_judge(&op, &call), INFLIGHT_BLOCKED);
	/* What a function cannot tell of the system call that it is called in is not asked. */
	op.flags = EVENT_INFLIGHT_BARE;
	call.args[1]++;
	assert_int_equal(inflight_judge(&op, &call), INFLIGHT_BLOCKED);
	call.args[0]++;
	assert_int_equal(inflight_judge(&op, &call), INFLIGHT_STALE);
	call.nr = -1;
	assert_int_equal(inflight_judge(&op, &call), INFLIGHT_STALE);
}

static void test_running(void **state)
{
	const struct thread_syscall running = { .running = true };

	(void)state;
	assert_int_equal(inflight_judge(&noted, &running), INFLIGHT_RUNNING);
}

static void test_stale(void **state)
{
	struct thread_syscall call = in_call;

	(void)state;
	call.nr = -1;
	assert_int_equal(inflight_judge(&noted, &call), INFLIGHT_STALE);
	call = in_call;
	call.args[0] = 42;
	assert_int_equal(inflight_judge(&noted, &call), INFLIGHT_STALE);
	call = in_call;
	call.args[1]++;
	assert_int_equal(inflight_judge(&noted, &call), INFLIGHT_STALE);
	call = in_call;
	call.args[2]++;
	assert_int_equal(inflight_judge(&noted, &call), INFLIGHT_STALE);
}

static enum inflight_verdict check(struct tree *t, uint32_t tid)
{
	struct inflight_item item = { tid, noted };
	_cleanup_close_ int procfs = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(procfs >= 0);
	item.op.tid = tid;
	return inflight_check(procfs, &item);
}

static void test_on_the_threads_own_word(void **state)
{
	struct tree *t = *state;

	tree_put(t, "proc/7/stat", "7 (reader) D 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	tree_put(t, "proc/7/syscall", "17 0x29 0x55d0aabb 0x309 0x3039 0x0 0x0 0x1 0x2\n");
	assert_int_equal(check(t, 7), INFLIGHT_BLOCKED);
	tree_put(t, "proc/7/syscall", "17 0x2a 0x55d0aabb 0x309 0x3039 0x0 0x0 0x1 0x2\n");
	assert_int_equal(check(t, 7), INFLIGHT_STALE);
	tree_put(t, "proc/7/syscall", "running\n");
	assert_int_equal(check(t, 7), INFLIGHT_RUNNING);
	tree_put(t, "proc/7/syscall", "-1 0x1 0x2\n");
	assert_int_equal(check(t, 7), INFLIGHT_STALE);
	/* Ended: there is neither file nor thread. */
	assert_int_equal(check(t, 8), INFLIGHT_STALE);
}

/* Without a readable system call only D is proof. */
static void test_without_the_system_call(void **state)
{
	struct tree *t = *state;

	tree_put(t, "proc/7/syscall", "garbage\n");
	tree_put(t, "proc/7/stat", "7 (reader) D 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	assert_int_equal(check(t, 7), INFLIGHT_BLOCKED);
	tree_put(t, "proc/7/stat", "7 (reader) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	assert_int_equal(check(t, 7), INFLIGHT_RUNNING);
	tree_put(t, "proc/7/stat", "7 (reader) R 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	assert_int_equal(check(t, 7), INFLIGHT_RUNNING);
	tree_remove(t, "proc/7/stat");
	assert_int_equal(check(t, 7), INFLIGHT_STALE);
}

/* Real maps, as the pairing probes have them; false: not for this user. */
static bool make_pairs(uint64_t max, struct inflight_map *ret_map)
{
	int r = inflight_pairs_new(max, ret_map);

	if (r < 0)
		print_message("a BPF map cannot be made here: %s\n", strerror(-r));
	return r == 0;
}

/* As bpf/pairing.bpf.h does. */
static void put(const struct inflight_map *map, uint32_t tid, uint64_t start_ns)
{
	struct event_inflight op = noted, *slot = &map->slots[tid & (map->slots_count - 1)];

	op.start_ns = start_ns;
	op.tid = tid;
	if (slot->tid == 0) {
		*slot = op;
		return;
	}
	slot->shared = 1;
	assert_int_equal(bpf_map_update_elem(map->fd, &tid, &op, BPF_ANY), 0);
}

/* A value that only begins with an operation, under a key of eight bytes: a request's. */
static void test_collect_requests(void **state)
{
	static struct inflight_walk walk;
	struct event_sleep value = { .op = noted, .slept_ns = 5 };
	uint64_t key = 0xffff888012345678;
	_cleanup_close_ int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "test_requests", sizeof(key),
		sizeof(value), 16, NULL);
	const struct inflight_map map = { .fd = fd, .key_size = sizeof(key), .value_size = sizeof(value) };
	struct event_inflight op;

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
	assert_int_equal(inflight_collect(&map, 1000, 100, &walk), 0);
	assert_int_equal(walk.count, 1);
	assert_true(walk.items[0].key == key);
	assert_memory_equal(&walk.items[0].op, &noted, sizeof(noted));
	assert_true(inflight_find(&map, key, &op));
	assert_memory_equal(&op, &noted, sizeof(noted));
	assert_false(inflight_find(&map, key + 1, &op));
	value.op.start_ns = 0;
	assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
	assert_false(inflight_find(&map, key, &op));
	assert_int_equal(inflight_clear(&map), 0);
	assert_true(bpf_map_get_next_key(fd, NULL, &key) < 0);
}

static void test_collect_and_clear(void **state)
{
	static struct inflight_walk walk;
	struct inflight_map map;

	(void)state;
	if (!make_pairs(9, &map))
		skip();
	assert_int_equal(map.slots_count, 8);
	assert_int_equal(inflight_collect(&map, 1000, 100, &walk), 0);
	assert_int_equal(walk.count, 0);
	put(&map, 1, 900);
	put(&map, 2, 500);
	put(&map, 3, 0);   /* returned */
	put(&map, 4, 901); /* too young by one */
	put(&map, 5, 700);
	assert_int_equal(inflight_collect(&map, 1000, 100, &walk), 0);
	assert_int_equal(walk.count, 3);
	assert_int_equal(walk.left_out, 0);
	assert_int_equal(walk.items[0].op.tid, 2);
	assert_int_equal(walk.items[0].key, 2);
	assert_int_equal(walk.items[0].op.start_ns, 500);
	assert_int_equal(walk.items[0].op.bytes, 777);
	assert_int_equal(walk.items[1].op.tid, 5);
	assert_int_equal(walk.items[2].op.tid, 1);
	assert_int_equal(inflight_clear(&map), 0);
	assert_int_equal(inflight_collect(&map, 1000, 0, &walk), 0);
	assert_int_equal(walk.count, 0);
	assert_int_equal(inflight_clear(&map), 0);
	inflight_pairs_close(&map);
	assert_true(inflight_collect(&map, 1000, 100, &walk) < 0);
	inflight_pairs_close(&map);
}

/* Ids that meet in one slot: who comes second is in the hash, and each is found for itself. */
static void test_shared_slot(void **state)
{
	static struct inflight_walk walk;
	struct event_inflight op;
	struct inflight_map map;

	(void)state;
	if (!make_pairs(16, &map))
		skip();
	put(&map, 5, 500);
	put(&map, 21, 300);
	put(&map, 37, 0);
	assert_true(inflight_find(&map, 5, &op));
	assert_int_equal(op.start_ns, 500);
	assert_true(inflight_find(&map, 21, &op));
	assert_int_equal(op.start_ns, 300);
	assert_false(inflight_find(&map, 37, &op));
	assert_false(inflight_find(&map, 53, &op));
	assert_int_equal(inflight_collect(&map, 1000, 100, &walk), 0);
	assert_int_equal(walk.count, 2);
	assert_int_equal(walk.items[0].op.tid, 21);
	assert_int_equal(walk.items[1].op.tid, 5);
	assert_int_equal(inflight_clear(&map), 0);
	assert_int_equal(map.slots[5].shared, 0);
	assert_false(inflight_find(&map, 21, &op));
	inflight_pairs_close(&map);
}

/* More than one batch, more than a walk holds: what is left out is counted. */
static void test_collect_more_than_fits(void **state)
{
	static struct inflight_walk walk;
	struct inflight_map map;

	(void)state;
	if (!make_pairs(2 * INFLIGHT_WALK_MAX, &map))
		skip();
	/* Each third where the one before it has its slot. */
	for (uint32_t i = 1; i <= INFLIGHT_WALK_MAX + 23; i++)
		put(&map, i % 3 ? i : i - 1 + map.slots_count, 100000 - i);
	assert_int_equal(inflight_collect(&map, 1000000, 1, &walk), 0);
	assert_int_equal(walk.count, INFLIGHT_WALK_MAX);
	assert_int_equal(walk.left_out, 23);
	for (uint32_t i = 1; i < walk.count; i++)
		assert_true(walk.items[i - 1].op.start_ns < walk.items[i].op.start_ns);
	inflight_pairs_close(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_stale),
		tree_test(test_on_the_threads_own_word),
		tree_test(test_without_the_system_call),
		cmocka_unit_test(test_collect_requests),
		cmocka_unit_test(test_collect_and_clear),
		cmocka_unit_test(test_shared_slot),
		cmocka_unit_test(test_collect_more_than_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
