/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/waits.h"

#include <string.h>

#include "enrich/waits.h"
#include "model/kept_disks.h"
#include "model/model.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/number.h"

/* What a thread waits for */

/* No thread sleeps for a request: it is the request that waits for the disk. */
static enum record_cause cause_of(const struct record_operation *op)
{
	if (!op->waits_for && record_probe_has_requests(op->probe))
		return RECORD_CAUSE_device;
	return op->waits_for;
}

static bool is_lock(enum record_cause cause)
{
	return cause == RECORD_CAUSE_read_write_lock || cause == RECORD_CAUSE_memory_map_lock ||
		cause == RECORD_CAUSE_mutex || cause == RECORD_CAUSE_inode;
}

static uint32_t to_ms(uint64_t ns)
{
	return (uint32_t)(ns / NSEC_PER_MSEC);
}

/* Groups */

/* As the thread id of one whose group was. */
#define FORGOTTEN -1

/* What tells groups apart that wait for the same kind of thing on the same disk. */
struct key {
	enum record_cause cause;
	int disk;
	struct record_dev dev;
	bool is_kernel;
	bool is_early;
	bool is_pile_up;
	uint64_t program; /* hash of the executable, or of the name, and the control group */
	int32_t pid;	  /* of a lock, which is the affair of one process as a rule; else 0 */
	uint64_t inode;	  /* the same */
	uint32_t lock;	  /* its id; 0: not known, or no lock */
};

/* It may have been the first of a pile-up that took long to become one. */
static bool is_of_pile_up(const struct model *m, const struct record_operation *op)
{
	return op->start_mono_ns < m->well_ns && op->start_mono_ns + PILE_UP_NS >= m->well_ns;
}

static struct key key_of(const struct model *m, const struct record_operation *op, int disk)
{
	const enum record_cause cause = cause_of(op);
	struct key key = {
		.cause = cause,
		.disk = disk,
		.dev = op->dev,
		.is_kernel = op->op == RECORD_OP_kernel,
		.is_early = op->start_mono_ns < m->well_ns,
		.is_pile_up = is_of_pile_up(m, op),
		.program = hash_text(HASH_BEGIN ^ op->cgroup, *op->exe ? op->exe : op->comm),
	};

	if (is_lock(cause)) {
		key.pid = op->pid;
		key.lock = op->lock;
		key.inode = cause == RECORD_CAUSE_read_write_lock ? op->inode : 0;
	}
	return key;
}

/* Which lock it is may be known only from its second line on. */
static bool is_same_lock(const struct model_wait *w, const struct key *key)
{
	return !w->lock || !key->lock || w->lock == key->lock;
}

static bool has_key(const struct model_wait *w, const struct model_wait_key *stored,
	const struct key *key)
{
	return w->cause == key->cause && w->disk == key->disk && w->is_kernel == key->is_kernel &&
		w->is_early == key->is_early && w->is_pile_up == key->is_pile_up &&
		stored->program == key->program && stored->pid == key->pid &&
		stored->inode == key->inode && is_same_lock(w, key) &&
		(key->disk >= 0 || record_dev_is_same(stored->dev, key->dev));
}

/* Of another program, where there is no room for more; NULL: there is none either. */
static struct model_wait *find_alike(struct model_waits *waits, const struct key *key)
{
	for (uint32_t i = 0; i < MODEL_GROUPS_MAX; i++) {
		struct model_wait *w = &waits->groups[i];

		if (w->cause == key->cause && w->disk == key->disk &&
			w->is_kernel == key->is_kernel && w->is_early == key->is_early &&
			w->is_pile_up == key->is_pile_up && is_same_lock(w, key))
			return w;
	}
	return NULL;
}

/* Those of a group that is forgotten: their places stay taken, as what lies behind them needs. */
static void forget_threads(struct model_waits *waits, uint16_t group)
{
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		struct model_thread *t = &waits->threads[i];

		if (t->tid <= 0 || t->group != group)
			continue;
		waits->hanging -= t->hangs;
		*t = (struct model_thread){ .tid = FORGOTTEN };
	}
}

/* The place of the one that has waited least; NULL: all waited longer than that. */
static struct model_wait *replace_group(struct model_waits *waits, uint64_t waited_ns)
{
	struct model_wait *least = waits->groups;

	for (uint32_t i = 1; i < MODEL_GROUPS_MAX; i++)
		if (model_wait_ns(&waits->groups[i]) < model_wait_ns(least))
			least = &waits->groups[i];
	if (model_wait_ns(least) >= waited_ns)
		return NULL;
	waits->left_out += model_wait_threads(least);
	forget_threads(waits, (uint16_t)(least - waits->groups));
	return least;
}

/* NULL: there is no room. */
static struct model_wait *get_group(struct model_waits *waits, const struct key *key,
	uint64_t waited_ns)
{
	struct model_wait *w;
	uint32_t i = 0;

	while (i < waits->groups_count && !has_key(&waits->groups[i], &waits->keys[i], key))
		i++;
	if (i < waits->groups_count)
		return &waits->groups[i];
	if (i < MODEL_GROUPS_MAX)
		w = &waits->groups[waits->groups_count++];
	else if ((w = find_alike(waits, key)) || !(w = replace_group(waits, waited_ns)))
		return w;
	*w = (struct model_wait){ .cause = key->cause,
		.disk = key->disk,
		.dev = key->dev,
		.is_kernel = key->is_kernel,
		.is_early = key->is_early,
		.is_pile_up = key->is_pile_up };
	waits->keys[w - waits->groups] =
		(struct model_wait_key){ key->program, key->inode, key->dev, key->pid };
	return w;
}

static void note_longest(struct model_wait *w, const struct record_operation *op)
{
	const bool is_writing =
		op->op == RECORD_OP_write || op->op == RECORD_OP_fsync || op->op == RECORD_OP_sync;

	if (w->who.pid && w->who.pid != op->pid)
		w->is_several = true;
	if (is_writing && op->dur_ns > w->writing_ns)
		w->writing_ns = op->dur_ns;
	if (op->lock)
		w->lock = op->lock;
	if (op->dur_ns < w->longest_ns)
		return;
	w->longest_ns = op->dur_ns;
	w->start_ns = op->start_mono_ns;
	w->op = op->op;
	model_set_process(w->process, op);
	w->who = model_who_of(op->pid, op->tid, op->comm);
	w->cgroup = op->cgroup;
	w->dev = op->dev;
	model_set_path(w->path, op->path);
	waits_in(op->kstack, w->function, sizeof(w->function));
}

/* Threads */

/* NULL: there is no room. Its tid is 0 when it is a new one. */
static struct model_thread *get_thread(struct model_waits *waits, int32_t tid, uint16_t group)
{
	/* Fibonacci hashing; thread ids come in runs. */
	uint32_t slot = ((uint32_t)tid * 2654435769u ^ group * 40503u) % MODEL_THREADS_MAX;
	struct model_thread *t = &waits->threads[slot];

	while (t->tid != 0 && (t->tid != tid || t->group != group)) {
		slot = (slot + 1) % MODEL_THREADS_MAX;
		t = &waits->threads[slot];
	}
	return t->tid == 0 && waits->threads_count == MODEL_THREADS_MAX / 4 * 3 ? NULL : t;
}

/*
 * What may have the lock of the file's inode while it waits, as one of several. A request that is
 * under way by itself has given it back. Whoever opens or syncs a file, or has it mapped, needs
 * none.
 */
static uint32_t file_key_of(const struct record_operation *op)
{
	const struct model_file_id id = model_file_id_of(op->dev, op->inode, op->path);

	switch (op->op) {
	case RECORD_OP_read:
	case RECORD_OP_write:
	case RECORD_OP_lookup:
	case RECORD_OP_copy:
	case RECORD_OP_submit:
		return record_probe_has_requests(op->probe) ? 0 : model_file_key(&id);
	default:
		return 0;
	}
}

/*
 * Lines come in the order in which operations end or are found to hang, so each adds what lies
 * behind the last one: a line of an operation that hangs counts only for the time since the line
 * before, be that in another group, and requests that are in flight at the same time count once.
 */
static void add_thread(struct model *m, struct model_wait *w, const struct record *r,
	uint32_t counted_ms)
{
	const struct record_operation *op = &r->operation;
	struct model_waits *waits = &m->waits;
	const uint16_t group = (uint16_t)(w - waits->groups);
	struct model_thread *t = op->tid > 0 ? get_thread(waits, op->tid, group) : NULL;
	const uint64_t from_ns = model_counted_from_ns(m), end_ns = op->start_mono_ns + op->dur_ns;
	uint64_t begin_ns = op->start_mono_ns > from_ns ? op->start_mono_ns : from_ns, ns;

	if (!t) {
		waits->left_out++;
		return;
	}
	if (t->tid == 0) {
		*t = (struct model_thread){ .tid = op->tid, .pid = op->pid, .group = group };
		waits->threads_count++;
		w->threads++;
	}
	/* Whether it did before has been forgotten. */
	if (r->type == RECORD_STUCK) {
		t->hangs = true;
		t->hangs_ms = to_ms(op->dur_ns);
		waits->hanging++;
	}
	if (to_ms(op->dur_ns) > t->longest_ms) {
		t->longest_ms = to_ms(op->dur_ns);
		t->longest_until_ms = to_ms(minus(end_ns, from_ns));
		t->file = file_key_of(op);
	}
	if (t->until_ms > counted_ms)
		counted_ms = t->until_ms;
	if (begin_ns < from_ns + counted_ms * NSEC_PER_MSEC)
		begin_ns = from_ns + counted_ms * NSEC_PER_MSEC;
	ns = minus(end_ns, begin_ns);
	if (ns == 0)
		return;
	if (t->waited_ms == 0)
		t->from_ms = to_ms(begin_ns - from_ns);
	t->until_ms = to_ms(end_ns - from_ns);
	t->waited_ms += to_ms(ns);
	w->waited_ns += ns;
}

/* Takes away those that do not hang any more, or are in another group. */
static void leave_alike(struct model_wait *w, uint64_t count)
{
	if (count == 0)
		return;
	w->alike_hanging_ns -= w->alike_hanging_ns / w->alike_hanging * count;
	w->alike_hanging -= count;
}

static bool is_same_crowd(const struct model_waits *waits, const struct model_wait *a,
	const struct model_wait *b)
{
	return a->disk == b->disk && a->is_kernel == b->is_kernel &&
		waits->keys[a - waits->groups].program == waits->keys[b - waits->groups].program;
}

/*
 * What a thread waits for may be known only later, when there is time to read its stack. Those who
 * are new in this group and hung already at the last line about another one, which has none of this
 * look, were in that one.
 */
static void move_alike(struct model_waits *waits, struct model_wait *w, const struct record *r,
	uint64_t newcomers)
{
	const struct record_operation *op = &r->operation;
	const uint64_t youngest_ns = op->alike.min_ns < op->dur_ns ? op->alike.min_ns : op->dur_ns;

	for (uint32_t i = 0; i < waits->groups_count && newcomers; i++) {
		struct model_wait *from = &waits->groups[i];
		uint64_t moved = from->alike_hanging < newcomers ? from->alike_hanging : newcomers;

		if (from == w || from->last_look == waits->looks ||
			!is_same_crowd(waits, from, w) ||
			r->mono_ns > from->alike_at_ns + youngest_ns)
			continue;
		leave_alike(from, moved);
		newcomers -= moved;
	}
}

/* One look has a line for each kind of operation. There is one each second, and it is shorter. */
#define LOOK_NS NSEC_PER_SEC

static void begin_look(struct model_waits *waits, uint64_t mono_ns)
{
	if (waits->looks && mono_ns < waits->look_ns + LOOK_NS / 2)
		return;
	waits->looks++;
	waits->look_ns = mono_ns;
}

static void note_look(const struct model_waits *waits, struct model_wait *w, uint32_t count)
{
	if (w->last_look != waits->looks)
		w->now = 0;
	w->last_look = waits->looks;
	w->now += count;
	if (w->now <= w->at_once)
		return;
	w->at_once = w->now;
	w->at_look = waits->looks;
}

/* There are several in a look: of reads and of writes, and of partitions of a disk. */
static void add_hanging(struct model_waits *waits, struct model_wait *w, const struct record *r,
	uint64_t total_ns)
{
	const struct record_operation *op = &r->operation;
	const uint64_t count = op->alike.count + 1, before = w->alike_hanging;
	const uint64_t max_ns = op->alike.max_ns > op->dur_ns ? op->alike.max_ns : op->dur_ns;

	if (w->last_look != waits->looks) {
		w->alike_before = before;
		w->alike_hanging = w->alike_hanging_ns = w->alike_hanging_max_ns = 0;
	}
	w->alike_hanging += count;
	w->alike_hanging_ns += total_ns;
	if (max_ns > w->alike_hanging_max_ns)
		w->alike_hanging_max_ns = max_ns;
	if (w->alike_hanging > w->alike_before)
		move_alike(waits, w, r,
			minus(count, minus(w->alike_before, w->alike_hanging - count)));
}

/* Lines that stand for many: for its own operation and all others. */
static void add_alike(struct model *m, struct model_wait *w, const struct record *r)
{
	const struct record_operation *op = &r->operation;
	const struct record_alike *alike = &op->alike;
	const uint32_t count = alike->count + 1;
	const uint64_t max_ns = alike->max_ns > op->dur_ns ? alike->max_ns : op->dur_ns;
	const uint64_t from_ns = model_counted_from_ns(m);
	const uint64_t most_ns = minus(r->mono_ns, from_ns);
	uint64_t total_ns = alike->total_ns + op->dur_ns;

	if (total_ns > count * most_ns)
		total_ns = count * most_ns;
	if (max_ns > w->longest_ns) {
		w->longest_ns = max_ns;
		w->start_ns = minus(r->mono_ns, max_ns);
	}
	w->has_alike = true;
	if (r->type == RECORD_STUCK) {
		begin_look(&m->waits, r->mono_ns);
		add_hanging(&m->waits, w, r, total_ns);
		note_look(&m->waits, w, count + alike->own);
		w->alike_at_ns = r->mono_ns;
		return;
	}
	/* How many threads they are nobody knows: one may have returned again and again. */
	leave_alike(w, count < w->alike_hanging ? count : w->alike_hanging);
	w->alike_ns += total_ns;
}

/*
 * One that returns and has a line of its own was one of those at the last look that had no line of
 * their own, if it has had none since.
 */
static void leave_crowd(const struct model *m, struct model_wait *w, const struct record *r,
	const struct model_thread *hung)
{
	const uint64_t told_ns =
		hung ? model_counted_from_ns(m) + hung->until_ms * NSEC_PER_MSEC : 0;

	if (r->type == RECORD_STALL && w->alike_hanging &&
		r->operation.start_mono_ns < w->alike_at_ns &&
		told_ns + LOOK_NS / 2 < w->alike_at_ns)
		leave_alike(w, 1);
}

/* That of its last line; NULL: it does not hang. */
static struct model_thread *find_hanging(struct model_waits *waits, int32_t tid)
{
	if (waits->hanging == 0 || tid <= 0)
		return NULL;
	for (uint32_t i = 0; i < waits->groups_count; i++) {
		struct model_thread *t = get_thread(waits, tid, (uint16_t)i);

		if (t && t->tid && t->hangs)
			return t;
	}
	return NULL;
}

uint64_t model_waits_hanging_ns(const struct model_waits *waits, int32_t tid)
{
	const struct model_thread *t = find_hanging((struct model_waits *)waits, tid);

	return t ? t->hangs_ms * NSEC_PER_MSEC : 0;
}

/* Of the operation in which it hung by its last line. */
static bool is_same_operation(const struct model *m, const struct model_thread *hung,
	const struct record_operation *op)
{
	const uint64_t line_ns = model_counted_from_ns(m) + hung->until_ms * NSEC_PER_MSEC;
	const uint64_t start_ns = minus(line_ns, hung->hangs_ms * NSEC_PER_MSEC);
	/* Both were rounded. */
	const uint64_t error_ns = 2 * NSEC_PER_MSEC;

	return op->start_mono_ns <= start_ns + error_ns && start_ns <= op->start_mono_ns + error_ns;
}

/*
 * The stack of an operation may be read only for a later line: what is known then it has waited for
 * from its begin. Takes what was counted of it away from the group of those that wait for something
 * unknown. Returns up to when it is counted.
 */
static uint32_t take_back(struct model *m, struct model_thread *hung)
{
	struct model_wait *w = &m->waits.groups[hung->group];
	const uint32_t ms = hung->waited_ms < hung->hangs_ms ? hung->waited_ms : hung->hangs_ms;

	w->waited_ns = minus(w->waited_ns, ms * NSEC_PER_MSEC);
	hung->waited_ms -= ms;
	if (hung->waited_ms > 0)
		return hung->until_ms - ms;
	w->threads--;
	*hung = (struct model_thread){ .tid = FORGOTTEN };
	return 0;
}

uint32_t model_wait_threads(const struct model_wait *w)
{
	return w->threads > w->at_once ? w->threads : w->at_once;
}

/* Lines */

/* What hung before is noted by itself, in case that it is all that there is. */
static void note_earlier(struct model_earlier *e, const struct record_operation *op)
{
	if (op->dur_ns <= e->longest_ns)
		return;
	e->longest_ns = op->dur_ns;
	e->cause = op->waits_for;
	e->who = model_who_of(op->pid, op->tid, op->comm);
	model_set_path(e->path, op->path);
}

/* That of its line; NULL: there is no room. */
static struct model_wait *group_of(struct model *m, const struct record *r,
	const struct model_thread *hung)
{
	const struct record_operation *op = &r->operation;
	struct model_waits *waits = &m->waits;
	const int disk = model_disks_get_of_fs(m, op->dev, op->dev_name, to_ms(op->dur_ns));
	const struct key key = key_of(m, op, disk);
	struct model_wait *before = hung ? &waits->groups[hung->group] : NULL;

	/* The cause was seen while the operation hung; its return may not know it, or the lock. */
	if (before && r->type == RECORD_STALL &&
		(!key.cause || has_key(before, &waits->keys[hung->group], &key)))
		return before;
	return get_group(waits, &key, op->dur_ns);
}

void model_waits_add(struct model *m, const struct record *r)
{
	const struct record_operation *op = &r->operation;
	struct model_waits *waits = &m->waits;
	struct model_thread *hung = find_hanging(waits, op->tid);
	uint32_t counted_ms = hung ? hung->until_ms : 0;
	struct model_wait *w;

	model_map_holders_add(&waits->map_holders, op);
	/* It computed or waited for a CPU, and not for a disk, a lock or a server. */
	if (op->probe == RECORD_PROBE_vfs && op->sleeps == 0)
		return;
	w = group_of(m, r, hung);
	/* It may have been forgotten with its group. */
	if (hung && hung->hangs) {
		hung->hangs = false;
		waits->hanging--;
	}
	if (!w) {
		waits->left_out++;
		return;
	}
	note_longest(w, op);
	if (op->alike.present) {
		add_alike(m, w, r);
	} else {
		leave_crowd(m, w, r, hung);
		if (hung && hung->tid == op->tid && !waits->groups[hung->group].cause && w->cause &&
			is_same_operation(m, hung, op))
			counted_ms = take_back(m, hung);
		add_thread(m, w, r, counted_ms);
	}
	if (op->op == RECORD_OP_kernel)
		return;
	if (op->start_mono_ns < m->well_ns) {
		note_earlier(&waits->earlier, op);
		return;
	}
	waits->noted++;
	model_used_files_add(&waits->files, op);
	if (op->dur_ns > waits->longest_ns)
		waits->longest_ns = op->dur_ns;
}
