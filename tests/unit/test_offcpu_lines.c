/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The kinds of waiting off the CPU: which are kept, which are told first, and what never twice. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "probes/offcpu_lines.h"
#include "util/clock.h"
#include "util/text.h"

#define LINES 64

enum map {
	MAP_KINDS = 1,
	MAP_STACKS,
	MAP_WAKERS,
};

struct fixture {
	struct offcpu_table table;
	struct record record;
	uint32_t written;
	struct record_offcpu lines[LINES + 2];
	uint32_t kernel_len; /* of the last line */
};

/* What the maps have for each key. */
static struct event_offcpu kind;
static struct event_offcpu_stack stack;
static struct event_offcpu_waker waker;

int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value);

int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)key;
	if (fd == MAP_KINDS)
		memcpy(value, &kind, sizeof(kind));
	else if (fd == MAP_STACKS)
		memcpy(value, &stack, sizeof(stack));
	else
		memcpy(value, &waker, sizeof(waker));
	return 0;
}

static struct record *begin(void *userdata, enum record_type type)
{
	struct fixture *f = userdata;

	assert_int_equal(type, RECORD_OFFCPU);
	memset(&f->record, 0, sizeof(f->record));
	return &f->record;
}

static void write_line(void *userdata, const struct probe_line_names *names)
{
	struct fixture *f = userdata;

	assert_in_range(f->written, 0, LINES + 1);
	f->lines[f->written++] = f->record.offcpu;
	f->kernel_len = names->kernel_len;
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	assert_non_null(*state);
	memset(&kind, 0, sizeof(kind));
	memset(&stack, 0, sizeof(stack));
	memset(&waker, 0, sizeof(waker));
	kind.state = 'S';
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct event_offcpu_key key_of(uint64_t number)
{
	/* Those of many kinds are in the same slot of the index. */
	return (struct event_offcpu_key){ { number % 64, number } };
}

static struct offcpu_item *get(struct fixture *f, uint64_t number)
{
	const struct event_offcpu_key key = key_of(number);

	return offcpu_table_get(&f->table, &key);
}

static struct offcpu_item *find(struct fixture *f, uint64_t number)
{
	const struct event_offcpu_key key = key_of(number);

	return offcpu_table_find(&f->table, &key);
}

static void write_window(struct fixture *f)
{
	const struct offcpu_line_maps maps = { MAP_KINDS, MAP_STACKS, MAP_WAKERS };
	const struct probe_report report = { .userdata = f, .begin = begin, .write = write_line };

	f->written = 0;
	offcpu_lines_write(&f->table, &maps, NSEC_PER_SEC, &report);
}

static void test_what_is_gone_makes_room(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < OFFCPU_ITEMS_MAX; i++)
		get(f, i)->is_there = i % 3 == 0;
	assert_null(get(f, OFFCPU_ITEMS_MAX));
	assert_null(find(f, OFFCPU_ITEMS_MAX));
	assert_ptr_equal(get(f, 7), find(f, 7));
	offcpu_table_drop_gone(&f->table);
	for (uint64_t i = 0; i < OFFCPU_ITEMS_MAX; i++)
		assert_int_equal(find(f, i) != NULL, i % 3 == 0);
	assert_non_null(get(f, OFFCPU_ITEMS_MAX));
	offcpu_table_reset(&f->table);
	assert_null(find(f, 0));
}

static void test_stacks_of_procfs(void **state)
{
	struct fixture *f = *state;
	const struct event_offcpu_key key = key_of(1);
	const struct event_offcpu_key with = offcpu_table_key_of_text(&key, "do_wait");
	struct offcpu_item item = { .text = 0 };
	char text[OFFCPU_TEXTS_BYTES];

	assert_null(offcpu_table_text(&f->table, &item));
	item.text = offcpu_table_keep_text(&f->table, "futex_wait");
	assert_string_equal(offcpu_table_text(&f->table, &item), "futex_wait");
	assert_int_equal(offcpu_table_keep_text(&f->table, "futex_wait"), item.text);
	assert_int_not_equal(offcpu_table_keep_text(&f->table, "do_wait"), item.text);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(offcpu_table_keep_text(&f->table, text), 0);
	assert_string_equal(offcpu_table_text(&f->table, &item), "futex_wait");
	assert_true(with.hash[0] != key.hash[0] && with.hash[1] != key.hash[1]);
}

/* Most is told first, and what was told is not told again. */
static void test_what_is_told(void **state)
{
	struct fixture *f = *state;
	uint64_t rest_ns = 0;

	for (uint64_t i = 1; i <= LINES + 10; i++)
		get(f, i)->now = (struct offcpu_sums){ i * NSEC_PER_MSEC, 0, i };
	get(f, 1000)->now.ns = 0;
	write_window(f);
	assert_int_equal(f->written, LINES + 1);
	for (uint32_t i = 0; i < LINES; i++) {
		assert_int_equal(f->lines[i].time_ns, (LINES + 10 - i) * NSEC_PER_MSEC);
		assert_int_equal(f->lines[i].times, LINES + 10 - i);
		assert_int_equal(f->lines[i].window_ns, NSEC_PER_SEC);
	}
	for (uint64_t i = 1; i <= 10; i++)
		rest_ns += i * NSEC_PER_MSEC;
	assert_int_equal(f->lines[LINES].others, 10);
	assert_int_equal(f->lines[LINES].time_ns, rest_ns);
	assert_int_equal(f->lines[LINES].syscall, -1);

	/* They are found although they have moved. */
	find(f, 3)->now.ns += 5;
	find(f, 1000)->now.ns = 7;
	/* One has come back between two readings. */
	find(f, 4)->now.ns -= 1;
	write_window(f);
	assert_int_equal(f->written, 2);
	assert_int_equal(f->lines[0].time_ns, 7);
	assert_int_equal(f->lines[1].time_ns, 5);
	write_window(f);
	assert_int_equal(f->written, 0);
}

static void test_a_line(void **state)
{
	struct fixture *f = *state;
	struct offcpu_item *item = get(f, 1);

	kind.pid = 20;
	kind.syscall = 202;
	kind.tids[0] = 5;
	kind.kernel_len = 3;
	kind.user_len = 3;
	text_copy(kind.comm, sizeof(kind.comm), "worker");
	stack.user[0] = (struct event_frame){ .status = EVENT_FRAME_BUILD_ID,
		.build_id = { 0xab },
		.place = 0x10 };
	/* Before the begin of a mapping: there the chain had ended. */
	stack.user[1] =
		(struct event_frame){ .status = EVENT_FRAME_BUILD_ID, .place = (uint64_t)-0x20 };
	stack.user[2] = (struct event_frame){ .status = EVENT_FRAME_ADDRESS, .place = 0x30 };
	waker.pid = 30;
	waker.off_ns = 100;
	item->now = (struct offcpu_sums){ 50, 60, 2 };
	item->longest_start_ns = 99;
	item->longest_tid = 21;
	item->off = 1;
	item->has_stack = true;
	write_window(f);
	assert_int_equal(f->written, 1);
	assert_int_equal(f->lines[0].pid, 20);
	assert_int_equal(f->lines[0].tid, 21);
	assert_int_equal(f->lines[0].syscall, 202);
	assert_int_equal(f->lines[0].threads, 2);
	assert_int_equal(f->lines[0].off, 1);
	/* The scheduler has a clock of its own. */
	assert_int_equal(f->lines[0].runnable_ns, 50);
	assert_string_equal(f->lines[0].comm, "worker");
	assert_string_equal(f->lines[0].ustack,
		"ab00000000000000000000000000000000000000+0x10\n0x30");
	assert_int_equal(f->kernel_len, 3);
	/* Who ended an earlier wait did not end the longest. */
	assert_false(f->lines[0].waker.present);

	item = find(f, 1);
	item->now.ns += 10;
	item->longest_start_ns = 100;
	item->has_stack = false;
	item->off = 3;
	item->text = offcpu_table_keep_text(&f->table, "futex_wait");
	write_window(f);
	assert_int_equal(f->lines[0].threads, 3);
	assert_string_equal(f->lines[0].kstack, "futex_wait");
	assert_string_equal(f->lines[0].ustack, "");
	assert_true(f->lines[0].waker.present);
	assert_int_equal(f->lines[0].waker.pid, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_gone_makes_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stacks_of_procfs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_line, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
