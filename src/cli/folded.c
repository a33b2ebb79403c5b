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
#define FRAMES_SIZE (4 * (RECORD_LIST_SIZE + RECORD_COMM_SIZE + RECORD_STACK_SIZE) + 64)
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
	void *stacks;
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

struct folded *folded_new(void)
{
	return calloc(1, sizeof(struct folded));
}

struct folded *folded_free(struct folded *folded)
{
	if (folded) {
		tdestroy(folded->operations, free);
		tdestroy(folded->kinds, free);
		tdestroy(folded->stacks, free);
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

/* "vfs_read+0x1c" without its offset; the record has the innermost function first. */
static void add_functions(struct text *t, const char *stack)
{
	const char *end = stack + strlen(stack);

	while (end > stack) {
		const char *line = memrchr(stack, '\n', (size_t)(end - stack));
		const char *begin = line ? line + 1 : stack;
		const char *offset = memchr(begin, '+', (size_t)(end - begin));

		add_frame(t, begin, (size_t)((offset ? offset : end) - begin));
		end = line ? line : stack;
	}
}

static bool has_stack(const struct record_operation *o)
{
	return o->kstack_while_blocked && *o->kstack;
}

static void add_frames(struct text *t, const struct record_operation *o)
{
	const char *slash = strrchr(o->exe, '/'), *process = slash ? slash + 1 : o->exe;

	text_reset(t);
	add_name(t, *process ? process : o->comm);
	if (*process && strcmp(process, o->comm) != 0)
		add_name(t, o->comm);
	if (has_stack(o)) {
		add_functions(t, o->kstack);
		return;
	}
	add_name(t, record_op_text(o->op) ? record_op_text(o->op) : "operation");
	/* Nobody need wait for a request of io_uring or libaio. */
	text_add(t,
		record_probe_has_requests(o->probe) ? " (request in flight)"
						    : " (stack not known)");
}

/* NULL: out of memory. */
static struct folded_stack *find_stack(struct folded *folded, const struct record_operation *o)
{
	char buf[FRAMES_SIZE];
	struct text t = TEXT_ON(buf);
	struct folded_stack *stack;

	add_frames(&t, o);
	stack = calloc(1, sizeof(*stack) + t.len + 1);
	if (stack)
		memcpy(stack->frames, buf, t.len + 1);
	return find_or_add(&folded->stacks, stack, compare_stacks);
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

int folded_add(struct folded *folded, const struct record *r)
{
	const struct record_operation *o = &r->operation;
	struct folded_operation *operation;
	struct folded_stack *stack;
	struct folded_kind *kind;

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
};

static void visit_stack(const void *node, VISIT visit, void *arg)
{
	const struct folded_stack *stack = *(struct folded_stack *const *)node;
	const struct visitor *visitor = arg;

	/* A stack that was replaced by a better one has nothing left. */
	if ((visit == postorder || visit == leaf) && stack->ns > 0)
		visitor->visit(visitor->userdata, stack->frames, stack->ns / NSEC_PER_USEC);
}

void folded_visit(struct folded *folded,
	void (*visit)(void *userdata, const char *frames, uint64_t usec), void *userdata)
{
	struct visitor visitor = { visit, userdata };

	twalk_r(folded->operations, count_operation, NULL);
	twalk_r(folded->kinds, count_hanging, NULL);
	twalk_r(folded->stacks, visit_stack, &visitor);
}

static void print_stack(void *out, const char *frames, uint64_t usec)
{
	fprintf(out, "%s %" PRIu64 "\n", frames, usec);
}

void folded_print(struct folded *folded, FILE *out)
{
	folded_visit(folded, print_stack, out);
}
