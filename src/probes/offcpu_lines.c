/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/offcpu_lines.h"

#include <bpf/bpf.h>

#include "util/cleanup.h"
#include "util/number.h"
#include "util/text.h"

/* Lines of one window; another one stands for the rest. */
#define LINES_MAX 64

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
	const uint64_t ns = offcpu_item_gained_ns(item);
	const uint64_t runnable_ns = minus(item->now.runnable_ns, item->told.runnable_ns);

	line->time_ns += ns;
	/* The scheduler has a clock of its own. */
	line->runnable_ns += runnable_ns < ns ? runnable_ns : ns;
	line->times += minus(item->now.times, item->told.times);
	line->off += item->off;
}

/* False: it still lasts, or wakers are not noted. */
static bool find_waker(const struct offcpu_line_maps *maps, const struct offcpu_item *item,
	struct event_offcpu_waker *ret_waker)
{
	return bpf_map_lookup_elem(maps->wakers, &item->key, ret_waker) == 0 &&
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
static bool find_stack(const struct offcpu_line_maps *maps, const struct offcpu_item *item,
	struct event_offcpu_stack *ret_stack)
{
	return item->has_stack && bpf_map_lookup_elem(maps->stacks, &item->key, ret_stack) == 0;
}

static void write_item(const struct offcpu_table *table, const struct offcpu_line_maps *maps,
	const struct offcpu_item *item, uint64_t window_ns, const struct probe_report *report)
{
	struct record_offcpu *line = &report->begin(report->userdata, RECORD_OFFCPU)->offcpu;
	struct text ustack = TEXT_ON(line->ustack);
	struct event_offcpu_waker waker;
	struct event_offcpu_stack stack;
	struct event_offcpu value;
	struct probe_line_names names = {};

	if (bpf_map_lookup_elem(maps->kinds, &item->key, &value) < 0)
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
	if (find_stack(maps, item, &stack)) {
		for (unsigned int i = 0; i < value.user_len && i < ARRAY_SIZE(stack.user); i++)
			add_frame(&ustack, &stack.user[i]);
		names.kernel = stack.kernel;
		names.kernel_len = value.kernel_len;
	}
	if (item->text)
		text_copy(line->kstack, sizeof(line->kstack), offcpu_table_text(table, item));
	if (find_waker(maps, item, &waker)) {
		fill_waker(&waker, &line->waker);
		names.waker = waker.kernel;
		names.waker_len = waker.kernel_len;
	}
	names.process_start_ns = value.process_start_ns;
	report->write(report->userdata, &names);
}

/* One line for all others. */
static void write_rest(const struct offcpu_table *table, uint32_t from, uint64_t window_ns,
	const struct probe_report *report)
{
	struct record_offcpu *rest = &report->begin(report->userdata, RECORD_OFFCPU)->offcpu;

	rest->window_ns = window_ns;
	rest->syscall = -1;
	for (uint32_t i = from; i < table->count && offcpu_item_gained_ns(&table->items[i]); i++) {
		fill_gained(&table->items[i], rest);
		rest->others++;
	}
	report->write(report->userdata, &(const struct probe_line_names){});
}

void offcpu_lines_write(struct offcpu_table *table, const struct offcpu_line_maps *maps,
	uint64_t window_ns, const struct probe_report *report)
{
	uint32_t i = 0;

	offcpu_table_sort(table);
	for (; i < table->count && offcpu_item_gained_ns(&table->items[i]) && i < LINES_MAX; i++)
		write_item(table, maps, &table->items[i], window_ns, report);
	if (i < table->count && offcpu_item_gained_ns(&table->items[i]))
		write_rest(table, i, window_ns, report);
	offcpu_table_note_told(table);
}
