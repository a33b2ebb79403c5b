/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happened when: a cell for each second, or for a few when an incident is long. */
#include <math.h>
#include <string.h>

#include "model/wait_times.h"
#include "page/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"

/* A limit that takes less of what its threads want is no trouble, for the verdict neither. */
#define HELD_BACK_PCT 50

void page_cell_clear(struct page_cell *c)
{
	memset(c, 0, sizeof(*c));
	memset(c->util_pct, -1, sizeof(c->util_pct));
	c->psi_pct = -1;
	c->cpu_pct = -1;
	c->held_back_pct = -1;
	c->no_completion_disk = -1;
}

static void take_max(uint64_t *max, uint64_t value)
{
	*max = value > *max ? value : *max;
}

static void take_more(uint32_t *max, uint64_t value)
{
	if (value > *max)
		*max = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void take_max_pct(int16_t *max, double pct)
{
	if (isfinite(pct) && pct >= 0 && pct < 1000 && pct + 0.5 > *max)
		*max = (int16_t)(pct + 0.5);
}

static void merge_waiters(struct page_waiters *into, const struct page_waiters *w)
{
	take_more(&into->count, w->count);
	take_max(&into->longest_ns, w->longest_ns);
}

void page_cell_merge(struct page_cell *into, const struct page_cell *c)
{
	into->sampled |= c->sampled;
	for (unsigned int i = 0; i < MODEL_DISKS_MAX; i++)
		if (c->util_pct[i] > into->util_pct[i])
			into->util_pct[i] = c->util_pct[i];
	into->psi_pct = c->psi_pct > into->psi_pct ? c->psi_pct : into->psi_pct;
	into->cpu_pct = c->cpu_pct > into->cpu_pct ? c->cpu_pct : into->cpu_pct;
	if (c->held_back_pct > into->held_back_pct)
		into->held_back_pct = c->held_back_pct;
	take_more(&into->blocked, c->blocked);
	into->stalls += c->stalls;
	take_more(&into->stuck, c->stuck);
	take_max(&into->stuck_ns, c->stuck_ns);
	if (c->no_completion_ns > into->no_completion_ns) {
		into->no_completion_ns = c->no_completion_ns;
		into->no_completion_disk = c->no_completion_disk;
	}
	into->completes_again |= c->completes_again;
	into->thawed |= c->thawed;
	into->kernel_lines += c->kernel_lines;
	merge_waiters(&into->at_lock, &c->at_lock);
	merge_waiters(&into->at_reader, &c->at_reader);
	take_more(&into->statements, c->statements);
	into->connections_used |= c->connections_used;
	take_max(&into->stopped_ns, c->stopped_ns);
	take_max(&into->unanswered_ns, c->unanswered_ns);
	take_max(&into->failing_ns, c->failing_ns);
}

/* When an incident outgrows the cells, they are merged: into 10 s first, then into minutes. */
static void enlarge(struct page_timeline *t)
{
	unsigned int factor = t->cell_s == 1 ? 10 : 6;

	for (unsigned int i = 0; i < PAGE_CELLS_MAX / factor; i++) {
		struct page_cell c = t->cells[i * factor];

		for (unsigned int k = 1; k < factor; k++)
			page_cell_merge(&c, &t->cells[i * factor + k]);
		t->cells[i] = c;
	}
	t->used = (t->used + factor - 1) / factor;
	for (unsigned int i = PAGE_CELLS_MAX / factor; i < PAGE_CELLS_MAX; i++)
		page_cell_clear(&t->cells[i]);
	t->cell_s *= factor;
}

struct page_cell *page_cell_at(struct page *p, uint64_t mono_ns)
{
	struct page_timeline *t = &p->timeline;
	int64_t second = page_second(p, mono_ns) + PAGE_LEAD_S;
	uint64_t cell;

	if (t->cell_s == 0) {
		t->cell_s = 1;
		page_cell_clear(&t->before);
		for (unsigned int i = 0; i < PAGE_CELLS_MAX; i++)
			page_cell_clear(&t->cells[i]);
	}
	if (second < 0)
		return &t->before;
	/* A damaged record may have any time. */
	if (second > INT32_MAX)
		second = INT32_MAX;
	while ((cell = (uint64_t)second / t->cell_s) >= PAGE_CELLS_MAX)
		enlarge(t);
	if (cell >= t->used)
		t->used = (uint32_t)cell + 1;
	return &t->cells[cell];
}

static void note_no_completion(struct page_cell *c, int disk, uint64_t ns)
{
	if (ns < TROUBLE_NS || ns <= c->no_completion_ns)
		return;
	c->no_completion_ns = ns;
	c->no_completion_disk = (int8_t)disk;
}

/* Another disk has taken the place of one. */
static void forget_disk(struct page *p, int disk)
{
	p->timeline.before.util_pct[disk] = -1;
	for (unsigned int i = 0; i < p->timeline.used; i++)
		p->timeline.cells[i].util_pct[disk] = -1;
	p->disks[disk] = (struct page_disk){ .turn = p->model.disks.list[disk].turn };
}

int page_find_disk(struct page *p, struct record_dev dev)
{
	int i = model_disks_find(&p->model.disks, dev);

	if (i >= 0 && p->disks[i].turn != p->model.disks.list[i].turn)
		forget_disk(p, i);
	return i;
}

static void note_disk(struct page *p, struct page_cell *c, const struct record_disk *w)
{
	int i = page_find_disk(p, w->dev);
	struct page_disk *d = i >= 0 ? &p->disks[i] : NULL;

	if (!d)
		return;
	take_max_pct(&c->util_pct[i], w->util_pct);
	note_no_completion(c, i, w->no_completion_ns);
	c->completes_again |= d->no_completion_ns >= TROUBLE_NS && w->no_completion_ns == 0;
	d->no_completion_ns = w->no_completion_ns;
}

void page_note_device(struct page *p, const struct record *r)
{
	int i = page_find_disk(p, r->device.dev);

	if (i >= 0)
		note_no_completion(page_cell_at(p, r->mono_ns), i, r->device.no_completion_ns);
}

static void note_limits(struct page_cell *c, const struct record_limits *l)
{
	if (l->stopped.present)
		take_max(&c->stopped_ns, l->stopped.stopped_ns);
	for (uint32_t i = 0; i < l->cpu_limits_count && i < RECORD_CPU_LIMITS_MAX; i++)
		if (l->cpu_limits[i].held_back_pct >= HELD_BACK_PCT)
			take_max_pct(&c->held_back_pct, l->cpu_limits[i].held_back_pct);
}

/* What is told at some time has been so in the second before. */
static struct page_cell *cell_before(struct page *p, uint64_t mono_ns)
{
	return page_cell_at(p, mono_ns > NSEC_PER_SEC / 2 ? mono_ns - NSEC_PER_SEC / 2 : 0);
}

static struct page_waiters *waiters_of(struct page_cell *c, enum record_kernel_lock kind)
{
	return record_lock_has_reader(kind) ? &c->at_reader : &c->at_lock;
}

/* Lines about a lock come ever more rarely, but somebody has waited all the time. */
static void fill_before(struct page *p, uint64_t mono_ns, const struct record_lock_wait *l)
{
	const uint64_t cell_ns = p->timeline.cell_s * NSEC_PER_SEC;

	for (uint64_t ns = cell_ns; ns + cell_ns / 2 <= l->longest_ns && ns < mono_ns;
		ns += cell_ns) {
		struct page_cell *c = cell_before(p, mono_ns - ns);

		if (c == &p->timeline.before || waiters_of(c, l->kind)->longest_ns)
			break;
		waiters_of(c, l->kind)->longest_ns = l->longest_ns - ns;
	}
}

void page_note_lock(struct page *p, const struct record *r)
{
	const struct record_lock_wait *l = &r->lock_wait;
	const struct page_waiters waiters = { l->waiters, l->longest_ns };

	/* Those who wait for a lock of the kernel are stuck. */
	if (record_lock_is_of_kernel(l->kind))
		return;
	merge_waiters(waiters_of(cell_before(p, r->mono_ns), l->kind), &waiters);
	fill_before(p, r->mono_ns, l);
}

static void note_database(struct page_cell *c, const struct record_sql_activity *s)
{
	take_max(&c->unanswered_ns, to_u64(s->unanswered_s * NSEC_PER_SEC));
	take_more(&c->statements, to_u64(s->in_state));
	c->connections_used |= s->connections_pct >= 100;
}

void page_note_sample(struct page *p, const struct record *r)
{
	const struct record_reading *s = &r->sample.reading;
	struct model_hanging stuck;
	struct page_cell *c;

	c = cell_before(p, s->mono_ns);
	c->sampled = true;
	for (uint32_t i = 0; i < s->devices_count && i < RECORD_DEVICES_MAX; i++)
		note_disk(p, c, &s->devices[i]);
	if (s->psi.io.present)
		take_max_pct(&c->psi_pct, s->psi.io.some_pct);
	take_max_pct(&c->cpu_pct, s->cpu.busy_pct);
	take_more(&c->blocked, s->procs_blocked);
	if (s->sql.present)
		note_database(c, &s->sql);
	if (s->health.present)
		take_max(&c->failing_ns, to_u64(s->health.failing_s * NSEC_PER_SEC));
	if (r->sample.before_trigger)
		return;
	stuck = model_waits_find_hanging(&p->model, -1, s->mono_ns);
	note_limits(c, &r->sample.limits);
	take_more(&c->stuck, stuck.count);
	take_max(&c->stuck_ns, stuck.longest_ns);
}
