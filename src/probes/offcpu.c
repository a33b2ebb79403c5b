/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `offcpu`: the user side of bpf/offcpu.bpf.c. */
#include "probes/offcpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/number.h"
#include "util/sort.h"
#include "util/text.h"

/* After iostall/event.h, whose types it uses. */
#include "offcpu.skel.h"

/* Lines of one window; another one stands for the rest. */
#define LINES_MAX 64
#define WINDOW_NS (15 * NSEC_PER_SEC)
/* Map entries that one system call reads. */
#define STACKS_BATCH 32
#define BATCH 128
/* Those in the map, while those of the last reading are still there. */
#define ITEMS_MAX (2 * EVENT_OFFCPU_KINDS_MAX)
/* Twice as many, so that a search ends soon. */
#define INDEX_SLOTS (2 * ITEMS_MAX)
/* With so many of one those in which nobody was for long enough make room for others. */
#define KINDS_MANY (EVENT_OFFCPU_KINDS_MAX / 4 * 3)
#define STACKS_MANY (EVENT_OFFCPU_STACKS_MAX / 4 * 3)
/* Stacks that have been read from /proc; one has 300 to 500 bytes as a rule. */
#define TEXTS_MAX 128
#define TEXTS_BYTES (48 * 1024)
/* A thread that has been off the CPU for so long has its stack read, if no program has taken it. */
#define ASK_AFTER_NS NSEC_PER_SEC
/* At 20 us each, by a thread that may hang in it. */
#define ASK_MAX 1024

/* One kind of waiting. */
struct offcpu_item {
	struct event_offcpu_key key;
	struct offcpu_sums {
		uint64_t ns;
		uint64_t runnable_ns;
		uint64_t times;
	} now, told; /* over the incident so far, and up to the last window */
	uint64_t longest_ns;
	uint64_t longest_start_ns;
	uint32_t longest_tid;
	uint32_t off;	/* threads that are off the CPU, and have been for long enough */
	uint32_t text;	/* place in texts + 1; 0: the kernel has its stack, if there is one */
	bool is_there;	/* in the map */
	bool has_stack; /* in the map of stacks */
	bool is_in_use; /* a thread is off the CPU in it */
};

struct offcpu {
	struct offcpu_bpf *skeleton;
	struct event_offcpu_pids pids;
	uint16_t pids_with_bit[EVENT_OFFCPU_PID_BITS];
	uint64_t window_ns; /* when it began; 0: at the attach */
	uint32_t count;
	struct offcpu_item items[ITEMS_MAX];
	uint16_t index[INDEX_SLOTS]; /* by key, place in items + 1; 0: free */
	uint32_t asked;		     /* stacks, in this pass */
	uint32_t texts_count;
	uint32_t texts_used;
	uint32_t texts[TEXTS_MAX]; /* where each begins */
	char texts_buf[TEXTS_BYTES];
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

/* The table of kinds */

static bool is_same_key(const struct event_offcpu_key *a, const struct event_offcpu_key *b)
{
	return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

/* Where the key is in the index, or would be. */
static uint16_t *find_slot(struct offcpu *o, const struct event_offcpu_key *key)
{
	size_t slot = key->hash[0] % INDEX_SLOTS;

	while (o->index[slot] && !is_same_key(&o->items[o->index[slot] - 1].key, key))
		slot = (slot + 1) % INDEX_SLOTS;
	return &o->index[slot];
}

/* NULL: there is none. */
static struct offcpu_item *find_item(struct offcpu *o, const struct event_offcpu_key *key)
{
	const uint16_t *slot = find_slot(o, key);

	return *slot ? &o->items[*slot - 1] : NULL;
}

/* NULL: there are as many as the map can have. */
static struct offcpu_item *find_or_add_item(struct offcpu *o, const struct event_offcpu_key *key)
{
	uint16_t *slot = find_slot(o, key);

	if (!*slot && o->count < ARRAY_SIZE(o->items)) {
		o->items[o->count++] = (struct offcpu_item){ .key = *key };
		*slot = (uint16_t)o->count;
	}
	return *slot ? &o->items[*slot - 1] : NULL;
}

static void index_items(struct offcpu *o)
{
	memset(o->index, 0, sizeof(o->index));
	for (uint32_t i = 0; i < o->count; i++)
		*find_slot(o, &o->items[i].key) = (uint16_t)(i + 1);
}

/* What is not in the map any more had nothing to tell, see make_room(). */
static void drop_gone(struct offcpu *o)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < o->count; i++)
		if (o->items[i].is_there)
			o->items[kept++] = o->items[i];
	o->count = kept;
	index_items(o);
}

/* Reading the maps */

static void take_kind(struct offcpu *o, const struct event_offcpu_key *key,
	const struct event_offcpu *value)
{
	struct offcpu_item *item = find_or_add_item(o, key);

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

	for (uint32_t i = 0; i < o->count; i++)
		o->items[i].is_there = false;
	while (r == 0) {
		uint32_t count = BATCH;

		r = bpf_map_lookup_batch(map, in, &cursor, &o->keys, &o->values, &count, NULL);
		if (r < 0 && r != -ENOENT)
			return r;
		in = &cursor;
		for (uint32_t i = 0; i < count; i++)
			take_kind(o, &o->keys.kinds[i], &o->values.kinds[i]);
	}
	drop_gone(o);
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
	return find_or_add_item(o, &thread->key);
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
	item = find_item(o, &thread->key);
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

/* The key of a thread without stack that has this one: FNV-1a, from both halves of the key on. */
static struct event_offcpu_key key_of_text(const struct event_offcpu_key *key, const char *text)
{
	struct event_offcpu_key with = *key;

	for (; *text; text++)
		for (unsigned int i = 0; i < ARRAY_SIZE(with.hash); i++)
			with.hash[i] = (with.hash[i] ^ (unsigned char)*text) *
				(i == 0 ? 0x100000001b3ull : 0x9e3779b97f4a7c15ull);
	return with;
}

/* Its place + 1; 0: there is no room. */
static uint32_t keep_text(struct offcpu *o, const char *text)
{
	const size_t size = strlen(text) + 1;

	for (uint32_t i = 0; i < o->texts_count; i++)
		if (strcmp(o->texts_buf + o->texts[i], text) == 0)
			return i + 1;
	if (o->texts_count == TEXTS_MAX || size > TEXTS_BYTES - o->texts_used)
		return 0;
	memcpy(o->texts_buf + o->texts_used, text, size);
	o->texts[o->texts_count++] = o->texts_used;
	o->texts_used += (uint32_t)size;
	return o->texts_count;
}

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
	key = key_of_text(&thread.key, kstack);
	text = keep_text(o, kstack);
	item = text ? find_or_add_item(o, &key) : NULL;
	if (!item)
		return;
	item->text = text;
	run_on_thread(o->skeleton->progs.offcpu_note_stack,
		(const uint64_t[4]){ tid, off_ns, key.hash[0], key.hash[1] });
}

/* Lines */

static uint64_t gained_ns(const struct offcpu_item *item)
{
	/* A thread may have come back after its time was added and before that of its kind. */
	return minus(item->now.ns, item->told.ns);
}

static int compare_gained(const void *a, const void *b)
{
	const uint64_t x = gained_ns(a), y = gained_ns(b);

	return (x < y) - (x > y);
}

static void add_frame(struct text *t, const struct event_frame *frame)
{
	/*
	 * To an address before the begin of a mapping the kernel gives an offset in that, which is
	 * negative. No function is there: the chain of frames had ended.
	 */
	if (frame->status == EVENT_FRAME_NONE ||
		(frame->status == EVENT_FRAME_BUILD_ID && (int64_t)frame->place < 0))
		return;
	text_add(t, t->len ? "\n" : "");
	if (frame->status == EVENT_FRAME_BUILD_ID) {
		for (unsigned int i = 0; i < sizeof(frame->build_id); i++)
			text_addf(t, "%02x", frame->build_id[i]);
		text_add(t, "+");
	}
	text_addf(t, "0x%llx", (unsigned long long)frame->place);
}

static uint32_t count_bits(const uint64_t *bits, size_t count)
{
	uint32_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += (uint32_t)__builtin_popcountll(bits[i]);
	return n;
}

static void fill_gained(const struct offcpu_item *item, struct record_offcpu *line)
{
	const uint64_t ns = gained_ns(item);
	const uint64_t runnable_ns = item->now.runnable_ns > item->told.runnable_ns
		? item->now.runnable_ns - item->told.runnable_ns
		: 0;

	line->time_ns += ns;
	/* The scheduler has a clock of its own. */
	line->runnable_ns += runnable_ns < ns ? runnable_ns : ns;
	line->times += minus(item->now.times, item->told.times);
	line->off += item->off;
}

/* False: it still lasts, or wakers are not noted. */
static bool find_waker(const struct offcpu *o, const struct offcpu_item *item,
	struct event_offcpu_waker *ret_waker)
{
	return bpf_map_lookup_elem(bpf_map__fd(o->skeleton->maps.offcpu_wakers), &item->key,
		       ret_waker) == 0 &&
		ret_waker->off_ns == item->longest_start_ns;
}

static void fill_waker(const struct event_offcpu_waker *waker, struct record_waker *ret_waker)
{
	ret_waker->present = true;
	ret_waker->pid = (int32_t)waker->pid;
	ret_waker->tid = (int32_t)waker->tid;
	text_copy(ret_waker->comm, sizeof(ret_waker->comm), waker->comm);
}

/* The stack that a program took; false: there is none. */
static bool find_stack(const struct offcpu *o, const struct offcpu_item *item,
	struct event_offcpu_stack *ret_stack)
{
	return item->has_stack &&
		bpf_map_lookup_elem(bpf_map__fd(o->skeleton->maps.offcpu_stacks), &item->key,
			ret_stack) == 0;
}

static void write_item(struct offcpu *o, const struct offcpu_item *item, uint64_t window_ns,
	const struct probe_report *report)
{
	struct record_offcpu *line = &report->begin(report->userdata, RECORD_OFFCPU)->offcpu;
	struct text ustack = TEXT_ON(line->ustack);
	struct event_offcpu_waker waker;
	struct event_offcpu_stack stack;
	struct event_offcpu value;
	struct probe_line_names names = {};

	if (bpf_map_lookup_elem(bpf_map__fd(o->skeleton->maps.offcpu_kinds), &item->key, &value) <
		0)
		return;
	line->window_ns = window_ns;
	fill_gained(item, line);
	line->longest_ns = item->longest_ns;
	line->start_mono_ns = item->longest_start_ns;
	line->tid = (int32_t)item->longest_tid;
	line->pid = (int32_t)value.pid;
	line->state = (char)value.state;
	line->syscall = value.syscall;
	line->threads = count_bits(value.tids, ARRAY_SIZE(value.tids));
	if (line->threads < line->off)
		line->threads = line->off;
	text_copy(line->comm, sizeof(line->comm), value.comm);
	text_reset(&ustack);
	if (find_stack(o, item, &stack)) {
		for (unsigned int i = 0; i < value.user_len && i < ARRAY_SIZE(stack.user); i++)
			add_frame(&ustack, &stack.user[i]);
		names.kernel = stack.kernel;
		names.kernel_len = value.kernel_len;
	}
	if (item->text)
		text_copy(line->kstack, sizeof(line->kstack),
			o->texts_buf + o->texts[item->text - 1]);
	if (find_waker(o, item, &waker)) {
		fill_waker(&waker, &line->waker);
		names.waker = waker.kernel;
		names.waker_len = waker.kernel_len;
	}
	names.process_start_ns = value.process_start_ns;
	report->write(report->userdata, &names);
}

/* Sorting has moved the items, so they are found anew. */
static void write_window(struct offcpu *o, const struct probe_report *report)
{
	const uint64_t begin_ns = o->window_ns ? o->window_ns : report->attached_ns;
	const uint64_t window_ns = report->now_ns - begin_ns;
	struct record_offcpu *rest;
	uint32_t written = 0;

	sort_in_place(o->items, o->count, sizeof(o->items[0]), compare_gained);
	for (; written < o->count && written < LINES_MAX && gained_ns(&o->items[written]);
		written++)
		write_item(o, &o->items[written], window_ns, report);
	if (written < o->count && gained_ns(&o->items[written])) {
		rest = &report->begin(report->userdata, RECORD_OFFCPU)->offcpu;
		rest->window_ns = window_ns;
		rest->syscall = -1;
		for (; written < o->count && gained_ns(&o->items[written]);
			written++, rest->others++)
			fill_gained(&o->items[written], rest);
		report->write(report->userdata, &(const struct probe_line_names){});
	}
	for (uint32_t i = 0; i < o->count; i++)
		if (gained_ns(&o->items[i]))
			o->items[i].told = o->items[i].now;
	index_items(o);
	o->window_ns = report->now_ns;
}

/* The probe */

static uint32_t count_stacks(const struct offcpu *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->count; i++)
		n += o->items[i].has_stack;
	return n;
}

static void make_room(struct offcpu *o)
{
	const int kinds = bpf_map__fd(o->skeleton->maps.offcpu_kinds);
	const int stacks = bpf_map__fd(o->skeleton->maps.offcpu_stacks);
	const int wakers = bpf_map__fd(o->skeleton->maps.offcpu_wakers);

	for (uint32_t i = 0; i < o->count; i++) {
		if (o->items[i].now.ns || o->items[i].is_in_use)
			continue;
		bpf_map_delete_elem(kinds, &o->items[i].key);
		bpf_map_delete_elem(stacks, &o->items[i].key);
		bpf_map_delete_elem(wakers, &o->items[i].key);
	}
}

static void offcpu_summarize(struct probe *probe, const struct probe_report *report)
{
	struct offcpu *o = probe->skeleton;
	const uint64_t begin_ns = o->window_ns ? o->window_ns : report->attached_ns;
	int r = read_kinds(o);

	if (r == 0 && (o->count > KINDS_MANY || count_stacks(o) > STACKS_MANY))
		make_room(o);
	if (r == 0 && (report->final || report->now_ns - begin_ns >= WINDOW_NS)) {
		r = each_thread(o, take_thread, report);
		if (r == 0)
			write_window(o, report);
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
	o->count = o->texts_count = o->texts_used = 0;
	memset(o->index, 0, sizeof(o->index));
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
