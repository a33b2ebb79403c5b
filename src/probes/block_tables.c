/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/block_tables.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "util/clock.h"
#include "util/hash.h"
#include "util/least.h"
#include "util/log.h"
#include "util/text.h"

static_assert(EVENT_BLOCK_THREADS_MAX >= EVENT_BLOCK_FILES_MAX, "one array serves for both");

int block_tables_read(struct block_tables *t, struct block_cursor *c)
{
	uint32_t count = BLOCK_BATCH;
	int r;

	if (c->ended)
		return 0;
	r = bpf_map_lookup_batch(c->map, c->begun ? &c->position : NULL, &c->position, &t->keys,
		&t->values, &count, NULL);
	if (r < 0 && r != -ENOENT)
		return r;
	c->begun = true;
	c->ended = r == -ENOENT;
	return (int)count;
}

/* Items */

static struct block_item item_of_thread(const struct event_block_thread_key *key,
	const struct event_block_thread *thread)
{
	return (struct block_item){
		.dev = key->dev,
		.pid = thread->who.pid,
		.tid = key->tid,
		.start_ns = key->start_ns,
		.process_start_ns = thread->who.process_start_ns,
		.cgroup_id = thread->who.cgroup_id,
		.owner = key->owner,
		.load = thread->load,
	};
}

static struct block_item item_of_file(const struct event_block_file_key *key,
	const struct event_block_file *file)
{
	return (struct block_item){
		.dev = key->dev,
		.file = *key,
		.load = file->load,
		.before = file->before,
		.size = file->size,
		.path_key = block_path_key(key, file),
	};
}

static bool has_requests(const struct block_item *item)
{
	return block_load_requests(&item->load) || item->before.requests;
}

/* Without `all` only those that had requests. */
static size_t read_table(struct block_tables *t, bool by_file, bool all)
{
	struct block_cursor cursor = { .map = by_file ? t->files : t->threads };
	size_t total = 0;
	int count;

	while ((count = block_tables_read(t, &cursor)) > 0)
		for (int i = 0; i < count && total < EVENT_BLOCK_THREADS_MAX; i++) {
			t->items[total] = by_file
				? item_of_file(&t->keys.files[i], &t->values.files[i])
				: item_of_thread(&t->keys.threads[i], &t->values.threads[i]);
			total += all || has_requests(&t->items[total]);
		}
	return total;
}

size_t block_tables_read_items(struct block_tables *t, enum record_by by)
{
	size_t count = read_table(t, by == RECORD_BY_file, false);

	return block_fold_append(&t->fold, by, t->items, count);
}

static struct event_block_thread_key key_of(const struct block_item *item)
{
	return (struct event_block_thread_key){
		.dev = item->dev,
		.tid = item->tid,
		.start_ns = item->start_ns,
		.owner = item->owner,
	};
}

void block_tables_find_name(const struct block_tables *t, enum record_by by,
	const struct block_item *item, char *ret_comm, size_t size)
{
	struct event_block_thread_key key = key_of(item);
	struct event_block_thread thread;
	const char *folded;

	if (bpf_map_lookup_elem(t->threads, &key, &thread) == 0) {
		text_copy(ret_comm, size,
			by == RECORD_BY_thread ? thread.who.comm : thread.who.process_comm);
		return;
	}
	folded = block_fold_find_name(&t->fold, item);
	if (folded)
		text_copy(ret_comm, size, folded);
}

/* Room for those who come late */

/* A program notes a thread and a file a moment before the request is among those in flight. */
#define NOTE_NS NSEC_PER_MSEC

struct block_pass {
	const struct probe_report *report;
	uint64_t since_ns; /* who was noted later stays: it may be in flight by now */
};

static uint32_t bit_of_thread(uint32_t dev, uint32_t tid, uint64_t start_ns)
{
	const uint64_t words[] = { dev, tid, start_ns };

	return (uint32_t)(hash_bytes(HASH_BEGIN, words, sizeof(words)) % BLOCK_IN_FLIGHT_BITS);
}

static uint32_t bit_of_file(const struct event_block_file_key *key)
{
	return (uint32_t)(hash_bytes(HASH_BEGIN, key, sizeof(*key)) % BLOCK_IN_FLIGHT_BITS);
}

static void note_in_flight(struct block_tables *t, const struct event_block_request *r)
{
	const uint32_t thread = bit_of_thread(r->dev, r->tid, r->thread_start_ns);
	const uint32_t file = bit_of_file(&r->file);

	t->in_flight[thread / 64] |= 1ull << thread % 64;
	if (r->has_file)
		t->in_flight[file / 64] |= 1ull << file % 64;
}

/* False: they cannot be read. */
static bool read_in_flight(struct block_tables *t)
{
	struct block_cursor cursor = { .map = t->requests };
	int count;

	memset(t->in_flight, 0, sizeof(t->in_flight));
	while ((count = block_tables_read(t, &cursor)) > 0)
		for (int i = 0; i < count; i++)
			note_in_flight(t, &t->values.requests[i]);
	return count == 0;
}

static bool is_in_flight(const struct block_tables *t, bool by_file, const struct block_item *item)
{
	const uint32_t bit = by_file ? bit_of_file(&item->file)
				     : bit_of_thread(item->dev, item->tid, item->start_ns);

	return t->in_flight[bit / 64] & 1ull << bit % 64;
}

static void fold_thread(struct block_tables *t, const struct block_item *item,
	const struct block_pass *pass)
{
	const struct event_block_thread_key key = key_of(item);
	struct event_block_thread thread;
	struct block_item now;

	if (bpf_map_lookup_elem(t->threads, &key, &thread) < 0 ||
		thread.noted_ns >= pass->since_ns || bpf_map_delete_elem(t->threads, &key) < 0)
		return;
	now = item_of_thread(&key, &thread);
	if (!has_requests(&now))
		return;
	pass->report->find_statement(pass->report->userdata, (int32_t)now.pid, (int32_t)now.tid,
		&now.statement);
	block_fold_add(&t->fold, &now, thread.who.process_comm);
}

static void drop_file(const struct block_tables *t, const struct block_item *item,
	const struct block_pass *pass)
{
	struct event_block_file file;

	if (bpf_map_lookup_elem(t->files, &item->file, &file) == 0 &&
		file.noted_ns < pass->since_ns)
		bpf_map_delete_elem(t->files, &item->file);
}

static void take_out(struct block_tables *t, bool by_file, const struct block_item *item,
	const struct block_pass *pass)
{
	if (is_in_flight(t, by_file, item))
		return;
	if (by_file)
		drop_file(t, item, pass);
	else
		fold_thread(t, item, pass);
}

static void take_out_least(struct block_tables *t, bool by_file, size_t count, size_t wanted,
	const struct block_pass *pass)
{
	struct least least = { 0 };

	for (size_t i = 0; i < count; i++)
		least_note(&least, block_item_busy_ns(&t->items[i]));
	least_cut(&least, wanted);
	for (size_t i = 0; i < count; i++)
		if (least_takes(&least, block_item_busy_ns(&t->items[i])))
			take_out(t, by_file, &t->items[i], pass);
}

static void make_room(struct block_tables *t, bool by_file, const struct probe_report *report)
{
	const size_t most = by_file ? EVENT_BLOCK_FILES_MAX : EVENT_BLOCK_THREADS_MAX;
	const struct block_pass pass = { report, clock_mono_ns() - NOTE_NS };
	size_t count = read_table(t, by_file, true);

	if (count > most / 4 * 3 && read_in_flight(t))
		take_out_least(t, by_file, count, count - most / 2, &pass);
}

void block_tables_make_room(struct block_tables *t, const struct probe_report *report)
{
	make_room(t, false, report);
	make_room(t, true, report);
}

/*
 * In batches, as inflight_clear() does: programs that are still attached may delete entries
 * meanwhile, and the key that was got from one call may be gone at the next.
 */
void block_tables_clear(struct block_tables *t, int map, const char *name, size_t key_size,
	size_t value_size)
{
	const size_t keys = sizeof(t->keys) / key_size, values = sizeof(t->values) / value_size;
	uint32_t position, *in = NULL;
	int r = 0;

	while (r == 0) {
		uint32_t count = (uint32_t)(keys < values ? keys : values);

		r = bpf_map_lookup_and_delete_batch(map, in, &position, &t->keys, &t->values,
			&count, NULL);
		in = &position;
	}
	if (r != -ENOENT)
		log_warning("the table %s cannot be cleared: %s", name, strerror(-r));
}
