/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One row for each operation, however many lines it has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"
#include "util/hash.h"
#include "util/number.h"
#include "util/sort.h"

int report_grow(void **items, size_t size, uint32_t *room)
{
	uint32_t more = *room ? 2 * *room : 64;
	void *grown = reallocarray(*items, more, size);

	if (!grown)
		return -ENOMEM;
	*items = grown;
	*room = more;
	return 0;
}

/* 100 bytes each. Of further ones only the longest would have been of use. */
#define KEPT_MAX 200000
#define SLOTS_MIN 4096

static uint32_t hash_of(int32_t tid, uint64_t start_ns)
{
	uint64_t hash = (start_ns ^ (uint64_t)(uint32_t)tid << 32) * 0x9e3779b97f4a7c15;

	return (uint32_t)(hash >> 32);
}

static uint32_t *find_slot(struct report *p, int32_t tid, uint64_t start_ns)
{
	uint32_t i = hash_of(tid, start_ns) & (p->slots_room - 1);

	while (p->slots[i] &&
		(p->operations.items[p->slots[i] - 1].tid != tid ||
			p->operations.items[p->slots[i] - 1].start_ns != start_ns))
		i = (i + 1) & (p->slots_room - 1);
	return &p->slots[i];
}

static int grow_slots(struct report *p)
{
	uint32_t room = p->slots_room ? 2 * p->slots_room : SLOTS_MIN;
	uint32_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(p->slots);
	p->slots = slots;
	p->slots_room = room;
	for (uint32_t i = 0; i < p->operations.count; i++)
		*find_slot(p, p->operations.items[i].tid, p->operations.items[i].start_ns) = i + 1;
	return 0;
}

/* NULL: there is no memory, or *ret_full. */
static struct report_operation *get(struct report *p, const struct record_operation *o,
	bool *ret_full)
{
	struct report_operation *new;
	uint32_t *slot;

	if (2 * p->operations.count >= p->slots_room && grow_slots(p) < 0)
		return NULL;
	slot = find_slot(p, o->tid, o->start_mono_ns);
	if (*slot)
		return &p->operations.items[*slot - 1];
	*ret_full = p->operations.count == KEPT_MAX;
	if (*ret_full)
		return NULL;
	new = report_list_add(&p->operations);
	if (!new)
		return NULL;
	memset(new, 0, sizeof(*new));
	*slot = p->operations.count;
	return new;
}

static uint64_t kind_of(const struct record_operation *o)
{
	const uint64_t parts[] = { o->op, o->waits_for, hash_text(HASH_BEGIN, o->dev_name) };

	return hash_text(hash_bytes(HASH_BEGIN, parts, sizeof(parts)), *o->exe ? o->exe : o->comm);
}

/* NULL: there is none. */
static struct report_crowd *find_crowd(struct report *p, uint64_t kind)
{
	for (uint32_t i = 0; i < p->crowds_count; i++)
		if (p->crowds[i].kind == kind)
			return &p->crowds[i];
	return NULL;
}

/* Those that hang are told again and again, and once more when they have returned. */
static void add_alike(struct report *p, const struct record *line)
{
	const uint64_t kind = kind_of(&line->operation), count = line->operation.alike.count;
	struct report_crowd *c = find_crowd(p, kind);

	if (line->type == RECORD_STALL) {
		p->alike += count;
		if (c)
			c->count = minus(c->count, count);
		return;
	}
	if (!c && p->crowds_count == REPORT_CROWDS_MAX)
		return;
	if (!c)
		c = &p->crowds[p->crowds_count++];
	*c = (struct report_crowd){ kind, count, line->mono_ns };
}

/* One whose return has no line hangs as long as others like it are told to do. */
static void settle(struct report *p)
{
	for (uint32_t i = 0; i < p->crowds_count; i++)
		p->alike += p->crowds[i].count;
	for (uint32_t i = 0; i < p->operations.count; i++) {
		struct report_operation *o = &p->operations.items[i];
		const struct report_crowd *c = o->stuck ? find_crowd(p, o->kind) : NULL;

		if (c && minus(c->at_ns, o->start_ns) > o->ns)
			o->ns = c->at_ns - o->start_ns;
	}
}

int report_add_operation(struct report *p, const struct record *line)
{
	const struct record_operation *o = &line->operation;
	struct report_operation *row;
	bool is_full = false;

	if (o->alike.present)
		add_alike(p, line);
	row = get(p, o, &is_full);
	if (!row) {
		p->alike += is_full;
		return is_full ? 0 : -ENOMEM;
	}
	row->start_ns = o->start_mono_ns;
	row->tid = o->tid;
	row->pid = o->pid;
	row->stuck = line->type == RECORD_STUCK;
	row->request = record_probe_has_requests(o->probe);
	row->op = (uint8_t)o->op;
	row->kind = kind_of(o);
	row->comm = strings_add(&p->strings, o->comm);
	row->dev_name = strings_add(&p->strings, o->dev_name);
	if (o->dur_ns > row->ns)
		row->ns = o->dur_ns;
	if (o->connection_id)
		row->connection_id = o->connection_id;
	if (o->waits_for)
		row->cause = (uint8_t)o->waits_for;
	if (*o->path || *o->relation)
		row->path = strings_add(&p->strings, *o->relation ? o->relation : o->path);
	if (*o->kstack)
		row->stack = strings_add(&p->strings, o->kstack);
	return 0;
}

static int compare_operations(const void *a, const void *b)
{
	const struct report_operation *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1)
			      : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void report_sort_operations(struct report *p)
{
	settle(p);
	sort_in_place(p->operations.items, p->operations.count, sizeof(*p->operations.items),
		compare_operations);
}
