/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BLOCKED TIME: where threads of watched processes were off the CPU, but not for want of work. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "iostall/event.h"
#include "page/internal.h"
#include "util/cleanup.h"
#include "util/hash.h"
#include "util/sort.h"

/* Functions of the kernel and of programs that are told of a stack, from the innermost on. */
#define KERNEL_FRAMES 2
#define PROGRAM_FRAMES 4
#define BUILD_ID_DIGITS (2 * EVENT_BUILD_ID_SIZE)

/* Whether one of the frames is a function of the list, which ends with NULL. */
static bool has_function(const char *stack, const char *const *functions)
{
	for (const char *frame = stack; *frame;
		frame += strcspn(frame, "\n"), frame += *frame == '\n') {
		/* "do_sigtimedwait.isra.0+0x12" */
		size_t len = strcspn(frame, ".+\n");

		for (const char *const *f = functions; *f; f++)
			if (strlen(*f) == len && memcmp(frame, *f, len) == 0)
				return true;
	}
	return false;
}

/*
 * It waits for work: for a client, a time, a child, or a condition that other threads signal when
 * there is something to do.
 */
static bool is_idle(const struct record_offcpu *o)
{
	static const char *const kernel[] = { "ep_poll", "do_epoll_wait", "do_poll", "do_sys_poll",
		"poll_schedule_timeout", "do_select", "hrtimer_nanosleep", "do_nanosleep",
		"inet_csk_accept", "unix_accept", "sk_wait_data", "unix_stream_data_wait",
		"unix_stream_read_generic", "do_sigtimedwait", "do_wait", "read_events",
		"io_cqring_wait", NULL };
	static const char *const program[] = { "pthread_cond_wait", "pthread_cond_timedwait",
		"pthread_cond_clockwait", "___pthread_cond_wait", "___pthread_cond_timedwait64",
		"___pthread_cond_clockwait64", "__pthread_cond_wait", "__pthread_cond_timedwait",
		NULL };

	return o->state == 'S' &&
		(has_function(o->kstack, kernel) || has_function(o->ustack, program));
}

static uint64_t hash_of(const struct record_offcpu *o)
{
	const char *const parts[] = { o->comm, o->kstack, o->ustack };
	uint64_t hash = HASH_BEGIN ^ (uint64_t)(uint32_t)o->pid << 8 ^ (uint8_t)o->state;

	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		hash = hash_text(hash, parts[i]);
	return hash;
}

/*
 * Functions that say how a thread came into the kernel or how it sleeps there tell nothing of what
 * it waits for.
 */
static bool is_telling(const char *name)
{
	static const char *const prefixes[] = { "__arm64_sys_", "__futex_", "__ia32_sys_",
		"__mutex_lock", "__schedule", "__x64_sys_", "common_nsleep", "do_el0_svc",
		"do_futex", "do_syscall_", "el0", "entry_SYSCALL_", "futex_do_wait",
		"invoke_syscall", "io_schedule", "ksys_", "rwsem_down_", "schedule",
		"x64_sys_call" };

	for (unsigned int i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return false;
	return true;
}

/*
 * "vfs_read" of "vfs_read+0x1c" of the kernel; of the build-id of a file whose functions are not known
 * the first digits, and the offset.
 */
static void name_frame(const char *frame, size_t len, bool of_kernel, char *ret_name, size_t size)
{
	const char *offset = memmem(frame, len, "+0x", 3);
	const int name_len = of_kernel && offset ? (int)(offset - frame) : (int)len;

	if (!of_kernel && offset && offset - frame == BUILD_ID_DIGITS)
		snprintf(ret_name, size, "%.8s%.*s", frame, (int)(frame + len - offset), offset);
	else
		snprintf(ret_name, size, "%.*s", name_len, frame);
}

/* "down_write < vm_mmap_pgoff": of the functions that tell something the innermost ones. */
static void add_functions(struct text *t, const char *stack, bool of_kernel, unsigned int count)
{
	for (const char *frame = stack; *frame && count > 0; frame += *frame == '\n') {
		size_t len = strcspn(frame, "\n");
		char name[96];

		name_frame(frame, len, of_kernel, name, sizeof(name));
		frame += len;
		if (!is_telling(name))
			continue;
		text_add(t, t->len ? " < " : "");
		text_add(t, name);
		count--;
	}
}

static void describe(struct page_blocked *b, const struct record_offcpu *o)
{
	struct text t = TEXT_ON(b->functions);

	text_copy(b->process, sizeof(b->process), o->process);
	text_copy(b->comm, sizeof(b->comm), o->comm);
	b->state = o->state;
	text_reset(&t);
	if (o->waits_for)
		text_add(&t, record_cause_text(o->waits_for));
	if (!o->waits_for || !*o->ustack)
		add_functions(&t, o->kstack, true, KERNEL_FRAMES);
	add_functions(&t, o->ustack, false, PROGRAM_FRAMES);
	if (!t.len)
		text_add(&t, o->state == 'R' ? "(waits for a CPU)" : "(stack not known)");
}

void page_note_offcpu(struct page *p, const struct record_offcpu *o)
{
	struct page_blocked_table *table = &p->blocked;
	uint64_t hash = hash_of(o);
	struct page_blocked *b = table->items;

	if (is_idle(o))
		return;
	while (b < table->items + table->count && b->hash != hash)
		b++;
	if (o->others || b == table->items + PAGE_BLOCKED_MAX) {
		table->others_ns += o->time_ns;
		return;
	}
	if (b == table->items + table->count) {
		*b = (struct page_blocked){ .hash = hash };
		describe(b, o);
		table->count++;
	}
	b->time_ns += o->time_ns;
	b->threads = o->threads > b->threads ? o->threads : b->threads;
	if (o->longest_ns > b->longest.dur_ns)
		b->longest = (struct statement_query){ .tid = o->tid,
			.start_ns = o->start_mono_ns,
			.dur_ns = o->longest_ns };
}

static int compare_blocked(const void *a, const void *b)
{
	const struct page_blocked *x = a, *y = b;

	return (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
}

static void print_item(struct page *p, const struct page_blocked *b, bool with_statement)
{
	const struct statement *s =
		with_statement ? statements_find(p->statements, &b->longest) : NULL;
	struct draw *d = &p->draw;
	char buf[64];
	struct text t = TEXT_ON(buf);

	draw_duration(d, 10, b->time_ns, false);
	draw_duration(d, 19, b->longest.dur_ns, false);
	draw_addf(d, "  %c %4" PRIu32 "  ", b->state ? b->state : '?', b->threads);
	text_reset(&t);
	page_add_name(&t, b->process, b->comm);
	draw_text(d, 24, buf);
	draw_add(d, "  ");
	draw_text(d, draw_left(d), b->functions);
	draw_end(d);
	if (!s)
		return;
	draw_to(d, 29);
	draw_text(d, draw_left(d), s->text);
	draw_end(d);
}

void page_print_blocked(struct page *p)
{
	struct page_blocked_table *table = &p->blocked;
	struct draw *d = &p->draw;
	uint32_t shown = table->count < PAGE_BLOCKED_ROWS ? table->count : PAGE_BLOCKED_ROWS;

	if (table->count == 0)
		return;
	sort_in_place(table->items, table->count, sizeof(table->items[0]), compare_blocked);
	draw_title(d, "BLOCKED TIME");
	draw_add(d, "  of threads of watched processes: together, longest, state, threads");
	draw_end(d);
	for (uint32_t i = 0; i < shown; i++)
		print_item(p, &table->items[i], i < PAGE_BLOCKED_STATEMENTS || d->style.verbose);
	for (uint32_t i = shown; i < table->count; i++)
		table->others_ns += table->items[i].time_ns;
	if (table->others_ns) {
		draw_add(d, "  left out here: ");
		draw_duration(d, 0, table->others_ns, false);
		draw_add(d, " with other stacks");
		draw_end(d);
	}
}
