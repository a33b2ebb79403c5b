/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/text.h"

/* Names and functions in which each byte may become four, and an operation. */
#define FRAMES_SIZE                                                                                \
	(4 * (RECORD_LIST_SIZE + RECORD_COMM_SIZE + STATEMENT_TEXT_SIZE + RECORD_STACK_SIZE) + 64)
#define KIND_SIZE (RECORD_LIST_SIZE + 96)
/* The lines of one scan are not further apart. */
#define SCAN_NS (NSEC_PER_SEC / 2)

struct folded_stack {
	uint64_t ns;
	char frames[];
};

/*
 * Operations that may share a line, as src/session/alike.c has it. The newest line for many that
 * hang stands for all of them that have no line of their own then, even if they had one before.
 */
struct folded_kind {
	uint64_t hanging_seen_ns; /* mono_ns of that line; 0: there was none */
	uint64_t hanging;	  /* its count, without those that have returned since */
	uint64_t hanging_mean_ns;
	struct folded_stack *stack;
	char key[];
};

struct folded_operation {
	int32_t tid;
	bool returned;
	uint64_t start_ns;
	uint64_t seen_ns;
	uint64_t ns;
	struct folded_kind *kind;
	struct folded_stack *stack;
};

/* Trees of tsearch(3). */
struct folded {
	struct folded_options options;
	void *stacks;
	void *offcpu;	 /* stacks of `offcpu` lines */
	void *processes; /* their first frames: what they did is in those, and not counted again */
	void *kinds;
	void *operations;
};

static int compare_stacks(const void *a, const void *b)
{
	return strcmp(((const struct folded_stack *)a)->frames,
		((const struct folded_stack *)b)->frames);
}

static int compare_kinds(const void *a, const void *b)
{
	return strcmp(((const struct folded_kind *)a)->key, ((const struct folded_kind *)b)->key);
}

static int compare_operations(const void *a, const void *b)
{
	const struct folded_operation *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The tree's own item that is equal; `item` is freed unless it was added. NULL: no memory. */
static void *find_or_add(void **tree, void *item, int (*compare)(const void *, const void *))
{
	void **found = item ? tsearch(item, tree, compare) : NULL;

	if (!found || *found != item)
		free(item);
	return found ? *found : NULL;
}

struct folded *folded_new(const struct folded_options *options)
{
	struct folded *folded = calloc(1, sizeof(*folded));

	if (folded)
		folded->options = *options;
	return folded;
}

struct folded *folded_free(struct folded *folded)
{
	if (folded) {
		tdestroy(folded->operations, free);
		tdestroy(folded->kinds, free);
		tdestroy(folded->stacks, free);
		tdestroy(folded->offcpu, free);
		tdestroy(folded->processes, free);
	}
	free(folded);
	return NULL;
}

/* Names come from outside. A semicolon would end the frame. */
static void add_frame(struct text *t, const char *name, size_t len)
{
	size_t begin;

	if (len == 0)
		return;
	text_add(t, t->len ? ";" : "");
	begin = t->len;
	text_add_printable(t, name, len);
	for (size_t i = begin; i < t->len; i++)
		if (t->buf[i] == ';')
			t->buf[i] = ':';
}

static void add_name(struct text *t, const char *name)
{
	add_frame(t, name, strlen(name));
}

/*
 * The record has the innermost function first. "vfs_read+0x1c" of the kernel is without its offset;
 * in a program, what has an offset is a place in a file whose functions are not known.
 */
static void add_functions(struct text *t, const char *stack, bool of_kernel)
{
	const char *end = stack + strlen(stack);

	while (end > stack) {
		const char *line = memrchr(stack, '\n', (size_t)(end - stack));
		const char *begin = line ? line + 1 : stack;
		const char *offset =
			of_kernel ? memmem(begin, (size_t)(end - begin), "+0x", 3) : NULL;

		add_frame(t, begin, (size_t)((offset ? offset : end) - begin));
		end = line ? line : stack;
	}
}

/* "[memory map lock]": the functions of the lock itself may be missing. */
static void add_cause(struct text *t, enum record_cause cause)
{
	char buf[RECORD_NAME_SIZE];
	struct text name = TEXT_ON(buf);

	text_reset(&name);
	text_addf(&name, "[%s]", record_cause_text(cause));
	add_name(t, buf);
}

static const char *name_of_exe(const char *exe)
{
	const char *slash = strrchr(exe, '/');

	return slash ? slash + 1 : exe;
}

static bool has_stack(const struct record_operation *o)
{
	return o->kstack_while_blocked && *o->kstack;
}

/* The frames of a thread that are asked for, as far as they are known. */
static void add_thread(const struct folded *folded, struct text *t, const char *comm,
	const struct statement_query *query)
{
	const struct statement *s;

	if (folded->options.thread)
		add_name(t, comm);
	s = folded->options.statements ? statements_find(folded->options.statements, query) : NULL;
	if (s)
		add_name(t, s->text);
}

static void add_frames(const struct folded *folded, struct text *t,
	const struct record_operation *o)
{
	const struct statement_query query = statement_query_of(o);
	const char *process = name_of_exe(o->exe);

	text_reset(t);
	add_name(t, *process ? process : o->comm);
	add_thread(folded, t, *process && strcmp(process, o->comm) != 0 ? o->comm : "", &query);
	if (has_stack(o) && folded->options.kernel) {
		add_functions(t, o->kstack, true);
		return;
	}
	add_name(t, record_op_text(o->op) ? record_op_text(o->op) : "operation");
	/* Nobody need wait for a request of io_uring or libaio. */
	text_add(t,
		record_probe_has_requests(o->probe) ? " (request in flight)"
						    : " (stack not known)");
}

/* The tree's stack with these frames. NULL: out of memory. */
static struct folded_stack *stack_of(void **tree, const struct text *frames)
{
	struct folded_stack *stack = calloc(1, sizeof(*stack) + frames->len + 1);

	if (stack)
		memcpy(stack->frames, frames->buf, frames->len + 1);
	return find_or_add(tree, stack, compare_stacks);
}

/* NULL: out of memory. */
static struct folded_stack *find_stack(struct folded *folded, const struct record_operation *o)
{
	char buf[FRAMES_SIZE];
	struct text t = TEXT_ON(buf);

	add_frames(folded, &t, o);
	return stack_of(&folded->stacks, &t);
}

static struct folded_kind *find_kind(struct folded *folded, const struct record_operation *o)
{
	char buf[KIND_SIZE];
	struct text t = TEXT_ON(buf);
	struct folded_kind *kind;

	text_reset(&t);
	text_addf(&t, "%d %d %d %u:%u ", (int)o->op, (int)o->probe, (int)o->waits_for, o->dev.major,
		o->dev.minor);
	text_add(&t, o->exe);
	kind = calloc(1, sizeof(*kind) + t.len + 1);
	if (kind)
		memcpy(kind->key, buf, t.len + 1);
	return find_or_add(&folded->kinds, kind, compare_kinds);
}

static struct folded_operation *find_operation(struct folded *folded,
	const struct record_operation *o)
{
	struct folded_operation *operation = calloc(1, sizeof(*operation));

	if (operation) {
		operation->tid = o->tid;
		operation->start_ns = o->start_mono_ns;
	}
	return find_or_add(&folded->operations, operation, compare_operations);
}

static void add_alike(struct folded_kind *kind, struct folded_stack *stack, const struct record *r)
{
	const struct record_alike *alike = &r->operation.alike;
	uint64_t count = alike->present ? alike->count : 0;
	uint64_t mean_ns = alike->min_ns / 2 + alike->max_ns / 2;

	if (r->type == RECORD_STALL) {
		stack->ns += count * mean_ns;
		kind->hanging -= count + 1 < kind->hanging ? count + 1 : kind->hanging;
	} else if (count > 0) {
		kind->hanging_seen_ns = r->mono_ns;
		kind->hanging = count;
		kind->hanging_mean_ns = mean_ns;
		kind->stack = stack;
	}
}

/* The functions of a thread off the CPU, as far as they are asked for. */
static void add_blocked(const struct folded_options *options, struct text *t,
	const struct record_offcpu *o)
{
	size_t len = t->len;

	if (options->program)
		add_functions(t, o->ustack, false);
	if (options->kernel) {
		add_functions(t, o->kstack, true);
		if (o->waits_for)
			add_cause(t, o->waits_for);
	}
	if (t->len == len || (options->kernel && !*o->kstack))
		add_name(t, o->state == 'R' ? "(waits for a CPU)" : "(stack not known)");
}

static int add_offcpu(struct folded *folded, const struct record_offcpu *o)
{
	const struct statement_query query = { .tid = o->tid,
		.start_ns = o->start_mono_ns,
		.dur_ns = o->longest_ns };
	const char *process = name_of_exe(o->exe);
	char buf[FRAMES_SIZE + 4 * RECORD_USTACK_SIZE];
	struct text t = TEXT_ON(buf);
	struct folded_stack *stack;

	text_reset(&t);
	if (o->others) {
		add_name(&t, "(other stacks)");
	} else {
		add_name(&t, *process ? process : o->process);
		if (!stack_of(&folded->processes, &t))
			return -ENOMEM;
		add_thread(folded, &t, o->comm, &query);
		add_blocked(&folded->options, &t, o);
	}
	stack = stack_of(&folded->offcpu, &t);
	if (!stack)
		return -ENOMEM;
	stack->ns += o->time_ns;
	return 0;
}

int folded_add(struct folded *folded, const struct record *r)
{
	const struct record_operation *o = &r->operation;
	struct folded_operation *operation;
	struct folded_stack *stack;
	struct folded_kind *kind;

	if (r->type == RECORD_OFFCPU)
		return add_offcpu(folded, &r->offcpu);
	if (r->type != RECORD_STALL && r->type != RECORD_STUCK)
		return 0;
	stack = find_stack(folded, o);
	kind = find_kind(folded, o);
	operation = find_operation(folded, o);
	if (!stack || !kind || !operation)
		return -ENOMEM;
	/* When it returns, its stack and cause may be known from the time when it hung. */
	if (!operation->stack || has_stack(o))
		operation->stack = stack;
	if (!operation->kind || o->waits_for)
		operation->kind = kind;
	if (o->dur_ns > operation->ns)
		operation->ns = o->dur_ns;
	operation->seen_ns = r->mono_ns;
	operation->returned = r->type == RECORD_STALL;
	add_alike(operation->kind, operation->stack, r);
	return 0;
}

static void count_operation(const void *node, VISIT visit, void *unused)
{
	const struct folded_operation *o = *(struct folded_operation *const *)node;

	(void)unused;
	if (visit != postorder && visit != leaf)
		return;
	/* It hangs on, and a later line for many stands for it, too. */
	if (!o->returned && o->kind->hanging_seen_ns > o->seen_ns + SCAN_NS)
		return;
	o->stack->ns += o->ns;
}

static void count_hanging(const void *node, VISIT visit, void *unused)
{
	const struct folded_kind *kind = *(struct folded_kind *const *)node;

	(void)unused;
	if ((visit == postorder || visit == leaf) && kind->hanging > 0)
		kind->stack->ns += kind->hanging * kind->hanging_mean_ns;
}

struct visitor {
	void (*visit)(void *userdata, const char *frames, uint64_t usec);
	void *userdata;
	void *const *left_out; /* the tree of first frames; NULL: all are visited */
};

static bool is_left_out(const struct visitor *visitor, const char *frames)
{
	size_t len = strcspn(frames, ";");
	struct folded_stack *first = visitor->left_out ? calloc(1, sizeof(*first) + len + 1) : NULL;
	bool found;

	if (!first)
		return false;
	memcpy(first->frames, frames, len);
	found = tfind(first, visitor->left_out, compare_stacks);
	free(first);
	return found;
}

static void visit_stack(const void *node, VISIT visit, void *arg)
{
	const struct folded_stack *stack = *(struct folded_stack *const *)node;
	const struct visitor *visitor = arg;

	/* A stack that was replaced by a better one has nothing left. */
	if ((visit == postorder || visit == leaf) && stack->ns > 0 &&
		!is_left_out(visitor, stack->frames))
		visitor->visit(visitor->userdata, stack->frames, stack->ns / NSEC_PER_USEC);
}

void folded_visit(struct folded *folded,
	void (*visit)(void *userdata, const char *frames, uint64_t usec), void *userdata)
{
	struct visitor operations = { visit, userdata, &folded->processes };
	struct visitor offcpu = { visit, userdata, NULL };

	twalk_r(folded->operations, count_operation, NULL);
	twalk_r(folded->kinds, count_hanging, NULL);
	twalk_r(folded->stacks, visit_stack, &operations);
	twalk_r(folded->offcpu, visit_stack, &offcpu);
}

static void print_stack(void *out, const char *frames, uint64_t usec)
{
	fprintf(out, "%s %" PRIu64 "\n", frames, usec);
}

void folded_print(struct folded *folded, FILE *out)
{
	folded_visit(folded, print_stack, out);
}
