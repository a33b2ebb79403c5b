/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `offcpu`: the user side of bpf/offcpu.bpf.c. */
#include "probes/offcpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/offcpu_lines.h"
#include "probes/offcpu_table.h"
#include "probes/probe_open.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/number.h"

/* After iostall/event.h, whose types it uses. */
#include "offcpu.skel.h"

#define WINDOW_NS (15 * NSEC_PER_SEC)
/* Map entries that one system call reads. */
#define STACKS_BATCH 32
#define BATCH 128
/* With so many of one those in which nobody was for long enough make room for others. */
#define KINDS_MANY (EVENT_OFFCPU_KINDS_MAX / 4 * 3)
#define STACKS_MANY (EVENT_OFFCPU_STACKS_MAX / 4 * 3)
/* A thread that has been off the CPU for so long has its stack read, if no program has taken it. */
#define ASK_AFTER_NS NSEC_PER_SEC
/* At 20 us each, by a thread that may hang in it. */
#define ASK_MAX 1024

struct offcpu {
	struct offcpu_bpf *skeleton;
	struct event_offcpu_pids pids;
	uint16_t pids_with_bit[EVENT_OFFCPU_PID_BITS];
	uint64_t window_ns; /* when it began; 0: at the attach */
	struct offcpu_table table;
	uint32_t asked; /* stacks, in this pass */
	union {
		struct event_offcpu_key kinds[BATCH];
		uint32_t threads[BATCH];
	} keys;
	union {
		struct event_offcpu kinds[BATCH];
		struct event_offcpu_thread threads[BATCH];
		struct event_offcpu_stack stacks[STACKS_BATCH];
		struct event_offcpu_waker wakers[STACKS_BATCH];
	} values;
};

/* Reading the maps */

static void take_kind(struct offcpu *o, const struct event_offcpu_key *key,
	const struct event_offcpu *value)
{
	struct offcpu_item *item = offcpu_table_get(&o->table, key);

	if (!item)
		return;
	item->now = (struct offcpu_sums){ value->ns, value->runnable_ns, value->times };
	item->longest_ns = value->longest_ns;
	item->longest_start_ns = value->longest_start_ns;
	item->longest_tid = value->longest_tid;
	item->off = 0;
	item->is_there = true;
	item->has_stack = value->has_stack;
	item->is_in_use = value->off > 0;
}

/* 0 or a negative errno. */
static int read_kinds(struct offcpu *o)
{
	const int map = bpf_map__fd(o->skeleton->maps.offcpu_kinds);
	uint32_t cursor, *in = NULL;
	int r = 0;

	for (uint32_t i = 0; i < o->table.count; i++)
		o->table.items[i].is_there = false;
	while (r == 0) {
		uint32_t count = BATCH;

		r = bpf_map_lookup_batch(map, in, &cursor, &o->keys, &o->values, &count, NULL);
		if (r < 0 && r != -ENOENT)
			return r;
		in = &cursor;
		for (uint32_t i = 0; i < count; i++)
			take_kind(o, &o->keys.kinds[i], &o->values.kinds[i]);
	}
	offcpu_table_drop_gone(&o->table);
	return 0;
}

/* Runs a program on a thread that has been off the CPU since off_ns. Whether it did something. */
static bool run_on_thread(const struct bpf_program *program, const uint64_t args[static 4])
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = 4 * sizeof(*args));

	return bpf_prog_test_run_opts(bpf_program__fd(program), &opts) == 0 && opts.retval == 1;
}

/*
 * What that thread waits for; NULL: nobody can tell any more, or there is no room. Most need not be
 * asked about, since they had a stack taken or the task scan has seen them.
 */
static struct offcpu_item *name_kind(struct offcpu *o, struct event_offcpu_thread *thread)
{
	const uint64_t args[4] = { thread->tid, thread->off_ns };
	struct event_offcpu_thread now;

	if (!(thread->key.hash[0] || thread->key.hash[1])) {
		if (!run_on_thread(o->skeleton->progs.offcpu_name_kind, args) ||
			bpf_map_lookup_elem(bpf_map__fd(o->skeleton->maps.offcpu_threads),
				&thread->tid, &now) < 0 ||
			now.off_ns != thread->off_ns)
			return NULL;
		thread->key = now.key;
	}
	return offcpu_table_get(&o->table, &thread->key);
}

static uint64_t time_off(const struct event_offcpu_thread *thread, uint64_t now_ns)
{
	return thread->off_ns ? minus(now_ns, thread->off_ns) : 0;
}

/* Who is off the CPU counts with the time so far, as if it came back now. */
static void take_thread(struct offcpu *o, struct event_offcpu_thread *thread,
	const struct probe_report *report)
{
	const uint64_t ns = time_off(thread, report->now_ns);
	struct offcpu_item *item;

	if (!ns || ns < o->skeleton->rodata->cfg_min_ns)
		return;
	item = name_kind(o, thread);
	if (!item) {
		(*report->account_full)++;
		return;
	}
	item->off++;
	item->now.ns += ns;
	item->now.times++;
	if (thread->state == 'R')
		item->now.runnable_ns += ns;
	if (ns > item->longest_ns) {
		item->longest_ns = ns;
		item->longest_start_ns = thread->off_ns;
		item->longest_tid = thread->tid;
	}
}

/* Whether only /proc can still tell the stack, and it matters. */
static bool lacks_stack(struct offcpu *o, const struct event_offcpu_thread *thread)
{
	const struct offcpu_item *item;

	if (thread->has_stack || thread->state == 'R' || !thread->off_ns)
		return false;
	item = offcpu_table_find(&o->table, &thread->key);
	return !item || !item->text;
}

static void ask(struct offcpu *o, struct event_offcpu_thread *thread,
	const struct probe_report *report)
{
	if (o->asked == ASK_MAX || !lacks_stack(o, thread))
		return;
	o->asked++;
	report->ask_stack(report->userdata, thread->tid, thread->off_ns);
}

static void ask_later(struct offcpu *o, struct event_offcpu_thread *thread,
	const struct probe_report *report)
{
	if (time_off(thread, report->now_ns) >= ASK_AFTER_NS)
		ask(o, thread, report);
}

/* Calls `take` for each thread. 0 or a negative errno. */
static int each_thread(struct offcpu *o,
	void (*take)(struct offcpu *o, struct event_offcpu_thread *thread,
		const struct probe_report *report),
	const struct probe_report *report)
{
	const int map = bpf_map__fd(o->skeleton->maps.offcpu_threads);
	uint32_t cursor, *in = NULL;
	int r = 0;

	while (r == 0) {
		uint32_t count = BATCH;

		r = bpf_map_lookup_batch(map, in, &cursor, &o->keys, &o->values, &count, NULL);
		if (r < 0 && r != -ENOENT)
			return r;
		in = &cursor;
		for (uint32_t i = 0; i < count; i++)
			take(o, &o->values.threads[i], report);
	}
	return 0;
}

/* Stacks from /proc */

void offcpu_note_stack(struct probe *probe, uint32_t tid, uint64_t off_ns, const char *kstack)
{
	struct offcpu *o = probe->object ? probe->skeleton : NULL;
	struct event_offcpu_thread thread;
	struct event_offcpu_key key;
	struct offcpu_item *item;
	uint32_t text;

	if (!o || !*kstack ||
		bpf_map_lookup_elem(bpf_map__fd(o->skeleton->maps.offcpu_threads), &tid, &thread) <
			0 ||
		thread.off_ns != off_ns || thread.has_stack || !name_kind(o, &thread))
		return;
	key = offcpu_table_key_of_text(&thread.key, kstack);
	text = offcpu_table_keep_text(&o->table, kstack);
	item = text ? offcpu_table_get(&o->table, &key) : NULL;
	if (!item)
		return;
	item->text = text;
	run_on_thread(o->skeleton->progs.offcpu_note_stack,
		(const uint64_t[4]){ tid, off_ns, key.hash[0], key.hash[1] });
}

/* The probe */

static void write_window(struct offcpu *o, uint64_t begin_ns, const struct probe_report *report)
{
	const struct offcpu_line_maps maps = {
		.kinds = bpf_map__fd(o->skeleton->maps.offcpu_kinds),
		.stacks = bpf_map__fd(o->skeleton->maps.offcpu_stacks),
		.wakers = bpf_map__fd(o->skeleton->maps.offcpu_wakers),
	};

	offcpu_lines_write(&o->table, &maps, report->now_ns - begin_ns, report);
	o->window_ns = report->now_ns;
}

static uint32_t count_stacks(const struct offcpu *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->table.count; i++)
		n += o->table.items[i].has_stack;
	return n;
}

static void make_room(struct offcpu *o)
{
	const int kinds = bpf_map__fd(o->skeleton->maps.offcpu_kinds);
	const int stacks = bpf_map__fd(o->skeleton->maps.offcpu_stacks);
	const int wakers = bpf_map__fd(o->skeleton->maps.offcpu_wakers);

	for (uint32_t i = 0; i < o->table.count; i++) {
		if (o->table.items[i].now.ns || o->table.items[i].is_in_use)
			continue;
		bpf_map_delete_elem(kinds, &o->table.items[i].key);
		bpf_map_delete_elem(stacks, &o->table.items[i].key);
		bpf_map_delete_elem(wakers, &o->table.items[i].key);
	}
}

static void offcpu_summarize(struct probe *probe, const struct probe_report *report)
{
	struct offcpu *o = probe->skeleton;
	const uint64_t begin_ns = o->window_ns ? o->window_ns : report->attached_ns;
	int r = read_kinds(o);

	if (r == 0 && (o->table.count > KINDS_MANY || count_stacks(o) > STACKS_MANY))
		make_room(o);
	if (r == 0 && (report->final || report->now_ns - begin_ns >= WINDOW_NS)) {
		r = each_thread(o, take_thread, report);
		if (r == 0)
			write_window(o, begin_ns, report);
	} else if (r == 0) {
		o->asked = 0;
		r = each_thread(o, ask_later, report);
	}
	if (r < 0)
		log_warning("the time off the CPU cannot be read: %s", strerror(-r));
}

void offcpu_ask_stacks(struct probe *probe, const struct probe_report *report)
{
	struct offcpu *o = probe->object ? probe->skeleton : NULL;

	if (!o)
		return;
	o->asked = 0;
	each_thread(o, ask, report);
}

void offcpu_set_process(const struct probe *probe, int32_t pid, bool is_looked_at)
{
	struct offcpu *o = probe->object ? probe->skeleton : NULL;
	const uint32_t key = (uint32_t)pid, bit = key % EVENT_OFFCPU_PID_BITS, zero = 0;
	const uint8_t value = 1;

	if (!o)
		return;
	if (is_looked_at) {
		bpf_map_update_elem(bpf_map__fd(o->skeleton->maps.offcpu_pids), &key, &value,
			BPF_ANY);
		o->pids_with_bit[bit]++;
		o->pids.bits[bit / 64] |= 1ull << bit % 64;
	} else if (bpf_map_delete_elem(bpf_map__fd(o->skeleton->maps.offcpu_pids), &key) == 0 &&
		--o->pids_with_bit[bit] == 0) {
		o->pids.bits[bit / 64] &= ~(1ull << bit % 64);
	}
	bpf_map_update_elem(bpf_map__fd(o->skeleton->maps.offcpu_pid_bits), &zero, &o->pids,
		BPF_ANY);
}

static void clear_map(struct offcpu *o, const struct bpf_map *map, uint32_t batch)
{
	uint32_t cursor, *in = NULL;
	int r = 0;

	while (r == 0) {
		uint32_t count = batch;

		r = bpf_map_lookup_and_delete_batch(bpf_map__fd(map), in, &cursor, &o->keys,
			&o->values, &count, NULL);
		in = &cursor;
	}
	if (r != -ENOENT)
		log_warning("the table %s cannot be cleared: %s", bpf_map__name(map), strerror(-r));
}

/* Nothing is attached. */
static void offcpu_reset(struct probe *probe)
{
	struct offcpu *o = probe->skeleton;
	struct offcpu_bpf *skeleton = o->skeleton;
	/* Constant data would stay in locked memory for good. */
	const struct event_offcpu_marks none = { 0 };
	const uint32_t zero = 0;

	clear_map(o, skeleton->maps.offcpu_threads, BATCH);
	clear_map(o, skeleton->maps.offcpu_kinds, BATCH);
	clear_map(o, skeleton->maps.offcpu_stacks, STACKS_BATCH);
	clear_map(o, skeleton->maps.offcpu_wakers, STACKS_BATCH);
	bpf_map_update_elem(bpf_map__fd(skeleton->maps.offcpu_marks), &zero, &none, BPF_ANY);
	o->window_ns = 0;
	offcpu_table_reset(&o->table);
}

/* The last one only if wakers are noted. */
static const struct probe_program programs[] = {
	{ "offcpu_sched_switch_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "sched_switch" },
	{ "offcpu_task_scan", PROBE_ATTACH_NONE, NULL },
	{ "offcpu_name_kind", PROBE_ATTACH_NONE, NULL },
	{ "offcpu_note_stack", PROBE_ATTACH_NONE, NULL },
	{ "offcpu_sched_waking_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "sched_waking" },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_raw_tp, programs, ARRAY_SIZE(programs) - 1,
		false, NULL, NULL },
};

static const struct probe_backend backends_with_wakers[] = {
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_raw_tp, programs, ARRAY_SIZE(programs), false,
		NULL, NULL },
};

static int offcpu_configure(struct offcpu_bpf *skeleton, const struct probe_settings *settings,
	const struct probe_backend *backend)
{
	int args = kernel_types_count_args(settings->types, "sched_switch");

	(void)backend;
	if (args < 0)
		return args;
	skeleton->rodata->cfg_switch_tells_state = args > 3;
	skeleton->rodata->cfg_min_ns = settings->offcpu_min_ns;
	/* One for each CPU, and one for the programs that user space runs. */
	bpf_map__set_max_entries(skeleton->maps.offcpu_scratch, settings->common.cpus + 1);
	if (getrandom((void *)skeleton->rodata->cfg_seed, sizeof(skeleton->rodata->cfg_seed),
		    GRND_NONBLOCK) < 0)
		return -errno;
	return 0;
}

PROBE_OPEN(offcpu, offcpu_configure)

/* The skeleton, with the state that the reports need. */
static int offcpu_new(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_offcpu, struct bpf_object **ret_object)
{
	struct offcpu *o = calloc(1, sizeof(*o));
	void *skeleton = NULL;
	int r;

	if (!o)
		return -ENOMEM;
	r = offcpu_open(settings, backend, &skeleton, ret_object);
	if (r < 0) {
		free(o);
		return r;
	}
	o->skeleton = skeleton;
	*ret_offcpu = o;
	return 0;
}

static void offcpu_free(void *userdata)
{
	struct offcpu *o = userdata;

	offcpu_destroy(o->skeleton);
	free(o);
}

static const enum record_io_path paths[] = { RECORD_IO_PATH_offcpu, RECORD_IO_PATH_NONE };

static bool wants_wakers(const struct probe_settings *settings)
{
	return settings->offcpu_wakers;
}

#define OPS                                                                                        \
	.name = "offcpu", .paths = paths, .task_scan_program = "offcpu_task_scan",                 \
	.elf = offcpu_elf, .open = offcpu_new, .destroy = offcpu_free, .reset = offcpu_reset,      \
	.summarize = offcpu_summarize

static const struct probe_ops ops_with_wakers = {
	OPS,
	.backends = backends_with_wakers,
	.backends_count = ARRAY_SIZE(backends_with_wakers),
};

const struct probe_ops probe_offcpu_ops = {
	OPS,
	.more = &ops_with_wakers,
	.wants_more = wants_wakers,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
};
