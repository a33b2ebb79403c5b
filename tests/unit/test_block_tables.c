/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Who is taken out of the tables of the probe `block` when they are nearly full, and who is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "probes/block_tables.h"
#include "util/clock.h"

#define DEV 7
#define NEARLY_FULL(most) ((most) / 4 * 3 + 1)

enum map {
	MAP_THREADS = 1,
	MAP_FILES,
	MAP_REQUESTS,
	MAP_COUNT,
};

/* Maps of the kernel. */
static struct map_table {
	unsigned char *keys, *values;
	size_t key_size, value_size, count;
} maps[MAP_COUNT] = {
	[MAP_THREADS] = { NULL, NULL, sizeof(struct event_block_thread_key),
		sizeof(struct event_block_thread), 0 },
	[MAP_FILES] = { NULL, NULL, sizeof(struct event_block_file_key),
		sizeof(struct event_block_file), 0 },
	[MAP_REQUESTS] = { NULL, NULL, sizeof(uint64_t), sizeof(struct event_block_request), 0 },
};
static struct block_tables *tables;
static struct probe_report report;
/* What programs do after the tables have been read, and before the requests are. */
static void (*meanwhile)(void);

int __wrap_bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values,
	uint32_t *count, const struct bpf_map_batch_opts *opts);
int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value);
int __wrap_bpf_map_delete_elem(int fd, const void *key);

static void put(enum map map, const void *key, const void *value)
{
	struct map_table *t = &maps[map];

	memcpy(t->keys + t->count * t->key_size, key, t->key_size);
	memcpy(t->values + t->count * t->value_size, value, t->value_size);
	t->count++;
}

static unsigned char *find(enum map map, const void *key)
{
	struct map_table *t = &maps[map];

	for (size_t i = 0; i < t->count; i++)
		if (memcmp(t->keys + i * t->key_size, key, t->key_size) == 0)
			return t->values + i * t->value_size;
	return NULL;
}

int __wrap_bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values,
	uint32_t *count, const struct bpf_map_batch_opts *opts)
{
	const struct map_table *t = &maps[fd];
	uint32_t from = 0, n;

	(void)opts;
	if (in)
		memcpy(&from, in, sizeof(from));
	if (fd == MAP_REQUESTS && !in && meanwhile)
		meanwhile();
	n = (uint32_t)t->count - from < *count ? (uint32_t)t->count - from : *count;
	memcpy(keys, t->keys + from * t->key_size, n * t->key_size);
	memcpy(values, t->values + from * t->value_size, n * t->value_size);
	*count = n;
	from += n;
	memcpy(out, &from, sizeof(from));
	return from == t->count ? -ENOENT : 0;
}

int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const unsigned char *found = find((enum map)fd, key);

	if (!found)
		return -ENOENT;
	memcpy(value, found, maps[fd].value_size);
	return 0;
}

int __wrap_bpf_map_delete_elem(int fd, const void *key)
{
	struct map_table *t = &maps[fd];
	unsigned char *value = find((enum map)fd, key);
	size_t i, last = t->count - 1;

	if (!value)
		return -ENOENT;
	i = (size_t)(value - t->values) / t->value_size;
	memmove(t->keys + i * t->key_size, t->keys + last * t->key_size, t->key_size);
	memmove(value, t->values + last * t->value_size, t->value_size);
	t->count--;
	return 0;
}

static void find_statement(void *userdata, int32_t pid, int32_t tid,
	struct probe_statement *ret_statement)
{
	(void)userdata;
	if (pid == 20)
		*ret_statement = (struct probe_statement){ .key = tid % 4 ? 1 : 2, .leader = tid };
}

static int setup(void **state)
{
	(void)state;
	tables = calloc(1, sizeof(*tables));
	assert_non_null(tables);
	tables->threads = MAP_THREADS;
	tables->files = MAP_FILES;
	tables->requests = MAP_REQUESTS;
	for (enum map map = MAP_THREADS; map < MAP_COUNT; map++) {
		maps[map].keys = calloc(EVENT_BLOCK_THREADS_MAX, maps[map].key_size);
		maps[map].values = calloc(EVENT_BLOCK_THREADS_MAX, maps[map].value_size);
		assert_non_null(maps[map].keys);
		assert_non_null(maps[map].values);
		maps[map].count = 0;
	}
	report.find_statement = find_statement;
	meanwhile = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (enum map map = MAP_THREADS; map < MAP_COUNT; map++) {
		free(maps[map].keys);
		free(maps[map].values);
	}
	free(tables);
	return 0;
}

static struct event_block_thread_key thread_key(uint32_t tid)
{
	return (struct event_block_thread_key){ .dev = DEV, .tid = tid, .start_ns = tid };
}

static void put_thread(uint32_t pid, uint32_t tid, uint64_t busy_ns)
{
	const struct event_block_thread_key key = thread_key(tid);
	struct event_block_thread thread = {
		.load = { .kinds = { [EVENT_BLOCK_READ] = { busy_ns > 0, 4096, busy_ns } } },
		.who = { .pid = pid,
			.tid = tid,
			.start_ns = tid,
			.comm = "t",
			.process_comm = "p" },
	};

	put(MAP_THREADS, &key, &thread);
}

static struct event_block_file_key file_key(uint64_t ino)
{
	return (struct event_block_file_key){ .dev = DEV, .fs_dev = DEV, .inode = ino, .ino = ino };
}

static void put_file(uint64_t ino, uint64_t busy_ns)
{
	const struct event_block_file_key key = file_key(ino);
	const struct event_block_file file = {
		.load = { .kinds = { [EVENT_BLOCK_READ] = { 1, 4096, busy_ns } } },
	};

	put(MAP_FILES, &key, &file);
}

static void put_request(uint32_t tid, uint64_t ino)
{
	const struct event_block_request r = {
		.dev = DEV,
		.tid = tid,
		.thread_start_ns = tid,
		.has_file = ino > 0,
		.file = ino ? file_key(ino) : (struct event_block_file_key){ 0 },
	};
	const uint64_t address = 64 + tid;

	put(MAP_REQUESTS, &address, &r);
}

static bool has_thread(uint32_t tid)
{
	const struct event_block_thread_key key = thread_key(tid);

	return find(MAP_THREADS, &key);
}

static uint64_t sum_of(enum record_by by)
{
	const size_t count = block_tables_read_items(tables, by);
	uint64_t ns = 0;

	for (size_t i = 0; i < count; i++)
		ns += block_load_busy_ns(&tables->items[i].load);
	return ns;
}

static void test_nothing_before_it_is_needed(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < NEARLY_FULL(EVENT_BLOCK_THREADS_MAX); i++)
		put_thread(10, i, 1000);
	for (uint32_t i = 1; i < NEARLY_FULL(EVENT_BLOCK_FILES_MAX); i++)
		put_file(i, 1000);
	block_tables_make_room(tables, &report);
	assert_int_equal(maps[MAP_THREADS].count, NEARLY_FULL(EVENT_BLOCK_THREADS_MAX) - 1);
	assert_int_equal(maps[MAP_FILES].count, NEARLY_FULL(EVENT_BLOCK_FILES_MAX) - 1);
}

/* Those of process 20 run two statements. */
static void test_what_threads_did_is_kept(void **state)
{
	uint64_t ns, statement_ns[2] = { 0 };
	size_t count;

	(void)state;
	for (uint32_t i = 1; i <= NEARLY_FULL(EVENT_BLOCK_THREADS_MAX); i++) {
		put_thread(i % 2 ? 10 : 20, i, i < 100 ? 1000000 : 1000 + i);
		statement_ns[i / 2 % 2] += i % 2 ? 0 : (i < 100 ? 1000000 : 1000 + i);
	}
	ns = sum_of(RECORD_BY_process);
	block_tables_make_room(tables, &report);
	assert_int_equal(maps[MAP_THREADS].count, EVENT_BLOCK_THREADS_MAX / 2);
	for (uint32_t i = 1; i < 100; i++)
		assert_true(has_thread(i));
	assert_int_equal(sum_of(RECORD_BY_process), ns);
	assert_int_equal(sum_of(RECORD_BY_cgroup), ns);
	assert_true(sum_of(RECORD_BY_thread) < ns);
	count = block_tables_read_items(tables, RECORD_BY_statement);
	count = block_find_statements(tables->items, count, &report);
	count = block_sum_items(RECORD_BY_statement, tables->items, count);
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(block_load_busy_ns(&tables->items[i].load),
			statement_ns[tables->items[i].statement.key % 2]);
		assert_int_equal(tables->items[i].pid, 20);
		assert_true(tables->items[i].tid < 100);
	}
}

static void begin_late(void)
{
	const struct event_block_thread_key key = thread_key(7);
	const struct event_block_file_key file = file_key(7);

	((struct event_block_thread *)find(MAP_THREADS, &key))->noted_ns = clock_mono_ns();
	((struct event_block_file *)find(MAP_FILES, &file))->noted_ns = clock_mono_ns();
}

/* Who has a request in flight, or has begun one just now, has completed least of all. */
static void test_who_is_in_flight_stays(void **state)
{
	const struct event_block_file_key files[] = { file_key(5), file_key(7) };

	(void)state;
	for (uint32_t i = 1; i <= NEARLY_FULL(EVENT_BLOCK_THREADS_MAX); i++)
		put_thread(10, i, i < 10 ? 0 : 1000);
	for (uint32_t i = 1; i <= NEARLY_FULL(EVENT_BLOCK_FILES_MAX); i++)
		put_file(i, i < 10 ? 0 : 1000);
	put_request(5, 5);
	put_request(6, 0);
	meanwhile = begin_late;
	block_tables_make_room(tables, &report);
	for (uint32_t i = 1; i < 10; i++)
		assert_int_equal(has_thread(i), i >= 5 && i <= 7);
	assert_non_null(find(MAP_FILES, &files[0]));
	assert_non_null(find(MAP_FILES, &files[1]));
	assert_int_equal(maps[MAP_FILES].count, EVENT_BLOCK_FILES_MAX / 2 + 2);
}

/* A process has the name that its threads in the table know, which may be newer. */
static void test_names(void **state)
{
	const struct block_item old = { .dev = DEV, .pid = 10, .load.kinds[0].requests = 1 };
	struct block_item of_process;
	char comm[EVENT_COMM_SIZE] = "";

	(void)state;
	block_fold_add(&tables->fold, &old, "before");
	of_process = tables->fold.sums[0].item;
	block_tables_find_name(tables, RECORD_BY_process, &of_process, comm, sizeof(comm));
	assert_string_equal(comm, "before");
	put_thread(10, 11, 1000);
	assert_int_equal(block_sum_items(RECORD_BY_process, tables->items,
				 block_tables_read_items(tables, RECORD_BY_process)),
		1);
	block_tables_find_name(tables, RECORD_BY_process, &tables->items[0], comm, sizeof(comm));
	assert_string_equal(comm, "p");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_before_it_is_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_threads_did_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_is_in_flight_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
