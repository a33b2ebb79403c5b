/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/devices.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "enrich/waits.h"
#include "util/cleanup.h"
#include "util/clock.h"

static_assert(VERDICT_DEVICES_MAX <= INT8_MAX, "a thread keeps the index of its device");
/* Whoever waited longer before the incident had another trouble. */
#define PILE_UP_NS (60 * NSEC_PER_SEC)

/* It is locked into memory with the session. */
static_assert(sizeof(struct verdict_facts) <= 272 * 1024, "the facts of one incident are small");

enum verdict_wait verdict_wait_of(enum record_cause cause)
{
	static const enum verdict_wait waits[RECORD_CAUSE_COUNT] = {
#define CAUSE(id, text, kind, help) [RECORD_CAUSE_##id] = VERDICT_WAIT_##kind,
#include "record/causes.def"
#undef CAUSE
	};

	return waits[cause];
}

const char *verdict_wait_name(enum verdict_wait wait)
{
	static const char *const names[VERDICT_WAIT_COUNT] = {
#define CAUSE_KIND(id, text) [VERDICT_WAIT_##id] = text,
#include "record/causes.def"
#undef CAUSE_KIND
	};

	return names[wait];
}

void verdict_begin(struct verdict_facts *f, uint64_t trigger_ns, uint64_t min_stall_ns)
{
	memset(f, 0, sizeof(*f));
	f->trigger_ns = trigger_ns;
	f->min_stall_ns = min_stall_ns;
	for (unsigned int i = 0; i < VERDICT_WAIT_COUNT; i++)
		f->waits[i].device = -1;
}

void verdict_set_who(struct verdict_who *who, int32_t pid, int32_t tid, const char *comm)
{
	*who = (struct verdict_who){ .pid = pid, .tid = tid };
	text_copy(who->comm, sizeof(who->comm), comm);
}

void verdict_set_path(char to[static VERDICT_PATH_SIZE], const char *path)
{
	size_t len = strlen(path);

	text_copy(to, VERDICT_PATH_SIZE,
		len < VERDICT_PATH_SIZE ? path : path + len - (VERDICT_PATH_SIZE - 1));
}

bool verdict_note_full(struct verdict_facts *f, const struct record_trigger *trigger, bool later)
{
	bool inodes = strcmp(trigger->rule, "inodes") == 0;

	if (*f->full.mount || (!inodes && strcmp(trigger->rule, "space") != 0))
		return false;
	verdict_set_path(f->full.mount, trigger->subject);
	f->full.later = later;
	f->full.inodes = inodes;
	f->full.used_pct = trigger->value;
	f->full.device = -1;
	return true;
}

void verdict_note_open(struct verdict_facts *f, const struct record_open *open)
{
	verdict_note_full(f, &open->trigger, false);
	text_copy(f->rule, sizeof(f->rule), open->trigger.rule);
	if (strcmp(f->rule, "health") == 0)
		f->health_failing_s = open->trigger.value;
	for (uint32_t i = 0; i < open->stack_count && i < RECORD_STACKED_MAX; i++)
		verdict_note_below(f, open->stack[i].dev_name, open->stack[i].label,
			open->stack[i].below);
}

/* Operations */

/* Fibonacci hashing; thread ids come in runs. */
static uint32_t hash_tid(int32_t tid)
{
	return (uint32_t)tid * 2654435769u;
}

/* The entry of that thread, device and kind; a free one when there is none. */
static struct verdict_waiter *find_single(struct verdict_facts *f, int32_t tid, int device,
	enum verdict_wait wait, bool *ret_is_single)
{
	uint32_t slot = hash_tid(tid) % VERDICT_SINGLES_MAX;

	for (unsigned int i = 0; i < VERDICT_SINGLES_MAX; i++) {
		struct verdict_waiter *w = &f->waiters[(slot + i) % VERDICT_SINGLES_MAX];

		if (w->tid == 0 || (w->tid == tid && w->device == device && w->wait == wait))
			return w;
		*ret_is_single = *ret_is_single || w->tid == tid;
	}
	return NULL;
}

/* Threads of one process, whatever their names are, or of one name and control group. */
static bool is_of_crowd(const struct verdict_waiter *w, const struct verdict_waiter *like)
{
	if (w->device != like->device || w->wait != like->wait || w->early != like->early ||
		w->kernel != like->kernel)
		return false;
	if (!w->processes && w->pid == like->pid)
		return true;
	/* Such a lock is the affair of one process. */
	if (like->wait == VERDICT_WAIT_lock && like->device < 0)
		return false;
	return w->cgroup == like->cgroup && strcmp(w->comm, like->comm) == 0;
}

static struct verdict_waiter *find_crowd(struct verdict_facts *f, const struct verdict_waiter *like)
{
	for (unsigned int i = VERDICT_SINGLES_MAX; i < VERDICT_WAITERS_MAX; i++) {
		struct verdict_waiter *w = &f->waiters[i];

		if (w->tid == 0 || is_of_crowd(w, like))
			return w;
	}
	return NULL;
}

/* NULL: there is no room for it. */
static struct verdict_crowd_thread *find_crowd_thread(struct verdict_facts *f, int32_t tid)
{
	uint32_t slot = hash_tid(tid) % VERDICT_CROWD_THREADS;

	while (f->crowd_threads[slot].tid != 0 && f->crowd_threads[slot].tid != tid)
		slot = (slot + 1) % VERDICT_CROWD_THREADS;
	if (f->crowd_threads[slot].tid == 0 &&
		f->crowd_threads_count == VERDICT_CROWD_THREADS / 4 * 3)
		return NULL;
	return &f->crowd_threads[slot];
}

/* No thread sleeps for a request: it is the request that waits for the device. */
static enum verdict_wait wait_of_operation(const struct record_operation *op)
{
	if (!op->waits_for && record_probe_has_requests(op->probe))
		return VERDICT_WAIT_device;
	return verdict_wait_of(op->waits_for);
}

static void note_wait(struct verdict_wait_facts *w, const struct record_operation *op, bool kernel,
	int device)
{
	uint64_t *longest_ns = kernel ? &w->kernel_longest_ns : &w->longest_ns;

	if (op->dur_ns <= *longest_ns)
		return;
	*longest_ns = op->dur_ns;
	verdict_set_who(kernel ? &w->kernel : &w->who, op->pid, op->tid, op->comm);
	if (kernel)
		return;
	verdict_set_path(w->path, op->path);
	w->waits_for = op->waits_for;
	w->device = (int8_t)device;
	w->dev = op->dev;
}

static uint64_t counted_from_ns(const struct verdict_facts *f)
{
	return f->trigger_ns > VERDICT_LEAD_NS ? f->trigger_ns - VERDICT_LEAD_NS : 0;
}

/*
 * Lines come in the order in which operations end or are found to hang, so each adds what lies
 * behind the last one: a line of an operation that hangs counts only for the time since the line
 * before, and requests that are in flight at the same time count once.
 */
static uint64_t waited_since(const struct verdict_facts *f, uint64_t counted_until_ns,
	const struct record_operation *op)
{
	uint64_t since_ns = op->start_mono_ns, until_ns = since_ns + op->dur_ns;

	if (since_ns < counted_from_ns(f))
		since_ns = counted_from_ns(f);
	if (since_ns < counted_until_ns)
		since_ns = counted_until_ns;
	return until_ns > since_ns ? until_ns - since_ns : 0;
}

static void note_longest(struct verdict_waiter *w, const struct record_operation *op)
{
	const bool writes =
		op->op == RECORD_OP_write || op->op == RECORD_OP_fsync || op->op == RECORD_OP_sync;

	if (writes && op->dur_ns > w->written_ns)
		w->written_ns = op->dur_ns;
	if (op->dur_ns < w->longest_ns)
		return;
	w->longest_ns = op->dur_ns;
	w->pid = op->pid;
	w->tid = op->tid;
	text_copy(w->comm, sizeof(w->comm), op->comm);
}

static struct verdict_waiter new_waiter(const struct record_operation *op, enum verdict_wait wait,
	int device, bool early)
{
	struct verdict_waiter w = {
		.cgroup = op->cgroup,
		.device = (int8_t)device,
		.wait = (uint8_t)wait,
		.kernel = op->op == RECORD_OP_kernel,
		.early = early,
	};

	note_longest(&w, op);
	return w;
}

/* `fresh`: the entry that it would have; `is_single`: it has one for something else. */
static void note_in_crowd(struct verdict_facts *f, const struct record_operation *op,
	const struct verdict_waiter *fresh, bool is_single)
{
	struct verdict_crowd_thread *thread = find_crowd_thread(f, op->tid);
	struct verdict_waiter *w = thread ? find_crowd(f, fresh) : NULL;
	uint64_t until_ns = op->start_mono_ns + op->dur_ns;
	uint32_t crowd;

	if (!w) {
		f->waiters_left_out++;
		return;
	}
	if (w->tid == 0)
		*w = *fresh;
	if (thread->tid == 0) {
		thread->tid = op->tid;
		f->crowd_threads_count++;
	}
	crowd = 1U << (w - &f->waiters[VERDICT_SINGLES_MAX]);
	w->threads += !(thread->crowds & crowd);
	thread->crowds |= crowd | (is_single ? VERDICT_IS_SINGLE : 0);
	w->processes |= w->pid != op->pid;
	w->waited_ns += waited_since(f, counted_from_ns(f) + thread->until_ms * NSEC_PER_MSEC, op);
	if (until_ns > counted_from_ns(f))
		thread->until_ms = (uint32_t)((until_ns - counted_from_ns(f)) / NSEC_PER_MSEC);
	note_longest(w, op);
}

static void note_waiter(struct verdict_facts *f, const struct record_operation *op,
	enum verdict_wait wait, int device, bool early)
{
	const struct verdict_waiter fresh = new_waiter(op, wait, device, early);
	struct verdict_waiter *w;
	bool is_single = false;
	uint64_t waited_ns;

	if (op->tid <= 0)
		return;
	w = find_single(f, op->tid, device, wait, &is_single);
	if (!w) {
		note_in_crowd(f, op, &fresh, is_single);
		return;
	}
	if (w->tid == 0)
		*w = fresh;
	w->threads = 1;
	w->early = w->early && early;
	waited_ns = waited_since(f, w->until_ns, op);
	w->waited_ns += waited_ns;
	if (waited_ns > 0)
		w->until_ns = op->start_mono_ns + op->dur_ns;
	note_longest(w, op);
}

static void note_device_wait(struct verdict_device *d, enum verdict_wait wait, uint64_t ns,
	bool finished)
{
	/* The file is on the device, but the thread waited for something else. */
	if (wait != VERDICT_WAIT_device && wait != VERDICT_WAIT_journal &&
		wait != VERDICT_WAIT_none)
		return;
	if (finished) {
		d->operations++;
		d->finished_ns += ns;
	} else if (ns > d->hanging_ns) {
		/* An operation that hangs has a new line each second: they must not be added up. */
		d->hanging_ns = ns;
	}
	if (wait == VERDICT_WAIT_device && ns > d->longest_ns)
		d->longest_ns = ns;
}

uint64_t verdict_waited_ns(const struct verdict_device *d)
{
	return d->finished_ns > d->hanging_ns ? d->finished_ns : d->hanging_ns;
}

/* FNV-1a of what verdict_set_path() keeps. */
static uint64_t key_of_path(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t len = strlen(path);

	for (path += len < VERDICT_PATH_SIZE ? 0 : len - (VERDICT_PATH_SIZE - 1); *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3;
	return hash;
}

struct verdict_file_id verdict_file_id_of(const struct record_dev *dev, uint64_t inode,
	const char *path)
{
	return (struct verdict_file_id){ .dev = *dev,
		.inode = inode,
		.path_key = *path ? key_of_path(path) : 0 };
}

bool verdict_is_same_file(const struct verdict_file_id *a, const struct verdict_file_id *b)
{
	const bool is_known = (a->dev.major || a->dev.minor) && (b->dev.major || b->dev.minor);

	if (is_known && (a->dev.major != b->dev.major || a->dev.minor != b->dev.minor))
		return false;
	if (is_known && a->inode && b->inode) {
		if (a->inode != b->inode)
			return false;
		if (a->dev.major || !a->path_key || !b->path_key)
			return true;
	}
	return a->path_key == b->path_key;
}

static void note_writer(struct verdict_writer *w, const struct record_operation *op)
{
	if (w->who.pid == 0)
		verdict_set_who(&w->who, op->pid, op->tid, op->comm);
	w->several |= w->who.pid != op->pid;
	w->threads |= w->who.tid != op->tid;
}

static void note_dirtier(struct verdict_facts *f, const struct record_operation *op)
{
	const struct verdict_file_id id = verdict_file_id_of(&op->dev, op->inode, op->path);
	/* A writer waits for its dirty pages to become fewer, or for one that is being written. */
	const bool is_slowed = op->op == RECORD_OP_write &&
		(op->waits_for == RECORD_CAUSE_dirty_throttling ||
			op->waits_for == RECORD_CAUSE_writeback);
	struct verdict_dirtier *d;
	uint32_t i = 0;

	if (!*op->path)
		return;
	while (i < f->dirtiers_count && !verdict_is_same_file(&f->dirtiers[i].id, &id))
		i++;
	if (i == VERDICT_DIRTIERS_MAX)
		return;
	d = &f->dirtiers[i];
	if (i == f->dirtiers_count) {
		f->dirtiers_count++;
		d->id = id;
	}
	note_writer(is_slowed ? &d->slowed : &d->waiting, op);
}

static void note_reader(struct verdict_facts *f, const struct record_operation *op)
{
	const struct verdict_file_id id = verdict_file_id_of(&op->dev, op->inode, op->path);
	uint32_t i = 0;

	if (!*op->path)
		return;
	while (i < f->readers_count && !verdict_is_same_file(&f->readers[i].id, &id))
		i++;
	if (i == VERDICT_READERS_MAX)
		return;
	if (i == f->readers_count)
		f->readers[f->readers_count++].id = id;
	note_writer(&f->readers[i].by, op);
}

/* A virtual machine that is backed up has all of them frozen at once. */
static void note_frozen(struct verdict_facts *f, const struct record_operation *op)
{
	if (op->dur_ns < VERDICT_FROZEN_NS || (op->dev.major == 0 && op->dev.minor == 0))
		return;
	for (uint32_t i = 0; i < f->frozen_count; i++)
		if (f->frozen[i].major == op->dev.major && f->frozen[i].minor == op->dev.minor)
			return;
	if (f->frozen_count < VERDICT_FROZEN_MAX)
		f->frozen[f->frozen_count++] = op->dev;
}

static void note_map_holder(struct verdict_facts *f, const struct record_operation *op)
{
	struct verdict_map_holder *h = NULL;

	if (op->waits_for == RECORD_CAUSE_memory_map_lock || !waits_holds_map(op->kstack))
		return;
	for (unsigned int i = 0; i < VERDICT_MAP_HOLDERS_MAX && !h; i++)
		if (f->map_holders[i].who.tid == 0 || f->map_holders[i].who.pid == op->pid)
			h = &f->map_holders[i];
	if (!h || op->dur_ns <= h->longest_ns)
		return;
	verdict_set_who(&h->who, op->pid, op->tid, op->comm);
	h->longest_ns = op->dur_ns;
	h->waits_for = op->waits_for;
	waits_in(op->kstack, h->function, sizeof(h->function));
}

const struct verdict_map_holder *verdict_find_map_holder(const struct verdict_facts *f, int32_t pid)
{
	for (unsigned int i = 0; i < VERDICT_MAP_HOLDERS_MAX; i++)
		if (f->map_holders[i].who.tid != 0 && f->map_holders[i].who.pid == pid)
			return &f->map_holders[i];
	return NULL;
}

static bool is_failure(int64_t ret)
{
	return ret == -EIO || ret == -ENOSPC || ret == -EROFS || ret == -EDQUOT || ret == -ENODEV ||
		ret == -ETIMEDOUT || ret == -EUCLEAN;
}

void verdict_note_error(struct verdict_facts *f, const struct record_operation *op)
{
	struct verdict_error *e = NULL;

	if (!is_failure(op->ret))
		return;
	for (unsigned int i = 0; i < VERDICT_ERRORS_MAX && !e; i++)
		if (f->errors[i].number == 0 || f->errors[i].number == (int32_t)-op->ret)
			e = &f->errors[i];
	if (!e)
		return;
	e->count += 1 + op->alike.count;
	/* Of short ones, those that followed within a second of the last line have none. */
	e->at_least |= op->dur_ns == 0;
	if (e->number)
		return;
	e->number = (int32_t)-op->ret;
	verdict_set_who(&e->who, op->pid, op->tid, op->comm);
	verdict_set_path(e->path, op->path);
	e->device = (int8_t)verdict_get_fs_device(f, op->dev.major, op->dev.minor, op->dev_name);
}

bool verdict_is_earlier(const struct verdict_facts *f, uint64_t start_mono_ns)
{
	return start_mono_ns < f->earlier_than_ns;
}

/* Each operation is counted with its last line. */
static void note_earlier(struct verdict_facts *f, const struct record_operation *op, bool finished)
{
	struct verdict_earlier *e = &f->earlier;

	if (finished || f->closing)
		e->threads++;
	if (op->dur_ns <= e->longest_ns)
		return;
	e->longest_ns = op->dur_ns;
	e->waits_for = op->waits_for;
	verdict_set_who(&e->who, op->pid, op->tid, op->comm);
	verdict_set_path(e->path, op->path);
}

/* It may have been the first of a pile-up that took long to become one. */
static bool is_of_pile_up(const struct verdict_facts *f, const struct record_operation *op)
{
	return op->start_mono_ns + PILE_UP_NS >= f->earlier_than_ns;
}

bool verdict_waits_alike(const struct verdict_waiter *a, const struct verdict_waiter *b)
{
	return a->wait != VERDICT_WAIT_none && a->wait == b->wait && a->device == b->device &&
		(a->device >= 0 || a->pid == b->pid);
}

void verdict_note_operation(struct verdict_facts *f, const struct record_operation *op,
	bool finished)
{
	bool kernel = op->op == RECORD_OP_kernel;
	enum verdict_wait wait = wait_of_operation(op);
	int device;

	if (finished)
		verdict_note_error(f, op);
	note_map_holder(f, op);
	/* It computed or waited for a CPU, and not for a disk, a lock or a server. */
	if (op->probe == RECORD_PROBE_vfs && op->sleeps == 0)
		return;
	if (verdict_is_earlier(f, op->start_mono_ns)) {
		note_earlier(f, op, finished);
		if ((finished || f->closing) && is_of_pile_up(f, op))
			note_waiter(f, op, wait,
				verdict_get_fs_device(f, op->dev.major, op->dev.minor,
					op->dev_name),
				true);
		/* Where nothing else hangs, it is the best explanation after all. */
		if (!f->closing || f->noted > 0)
			return;
	} else if (!kernel) {
		f->noted++;
	}
	device = verdict_get_fs_device(f, op->dev.major, op->dev.minor, op->dev_name);
	note_wait(&f->waits[wait], op, kernel, device);
	note_waiter(f, op, wait, device, false);
	/* The kernel's own work is not an operation that a process waits for. */
	if (kernel)
		return;
	if (wait == VERDICT_WAIT_frozen)
		note_frozen(f, op);
	/* Whoever removes a file need not have written it. */
	if (op->op == RECORD_OP_write || op->op == RECORD_OP_fsync || op->op == RECORD_OP_fallocate)
		note_dirtier(f, op);
	if (op->op == RECORD_OP_read || op->op == RECORD_OP_fault)
		note_reader(f, op);
	f->operations += finished;
	if (op->dur_ns > f->longest_ns)
		f->longest_ns = op->dur_ns;
	if (device >= 0)
		note_device_wait(&f->devices[device], wait, op->dur_ns, finished);
}

/* Lines of the block probe */

/* The kernel logs as a warning, too, that a path, a link or a disk is back. */
static bool is_recovery(const char *text)
{
	static const char *const signs[] = { "Reinstating path", "link up", "Link is up",
		"link is up", "reconnected", "ecovery done", "ecovery complete" };

	for (unsigned int i = 0; i < ARRAY_SIZE(signs); i++)
		if (strstr(text, signs[i]))
			return true;
	return false;
}

static void note_killed(struct verdict_facts *f, const char *text)
{
	struct verdict_who who = { 0 };
	bool in_group;

	if (!kmsg_parse_killed(text, &who.pid, who.comm, sizeof(who.comm), &in_group) ||
		f->killed++ > 0)
		return;
	who.tid = who.pid;
	f->killed_who = who;
	f->killed_in_group = in_group;
}

void verdict_note_kernel(struct verdict_facts *f, const struct record_kernel *line)
{
	bool is_error;

	if (line->oom_kill) {
		note_killed(f, line->text);
		return;
	}
	if (f->fs_stopped == KMSG_STOPPED_NOT)
		f->fs_stopped = kmsg_find_stopped(line->text, f->fs_stopped_disk);
	is_error = line->level != RECORD_LEVEL_NONE && line->level <= RECORD_LEVEL_warning &&
		!is_recovery(line->text);

	if (f->kernel_lines++ == 0 || (is_error && f->kernel_errors == 0))
		text_copy(f->kernel_text, sizeof(f->kernel_text), line->text);
	f->kernel_errors += is_error;
	f->kernel_failures +=
		is_error && line->level <= RECORD_LEVEL_err && kmsg_is_failure(line->text);
}

void verdict_note_unresponsive(struct verdict_facts *f, unsigned int target, const char *name,
	const struct verdict_who *server, const struct verdict_unresponsive *unresponsive)
{
	struct verdict_database *d = &f->databases[target];
	/*
	 * An answer is noted as 0 ns, so the next unanswered question begins with a smaller value.
	 */
	bool goes_on = unresponsive->ns > d->now.ns;

	/* A server that was stopped answers only a little after it continues. */
	d->now.stopped = unresponsive->stopped || (goes_on && d->now.stopped);
	d->now.ns = unresponsive->ns;
	if (d->now.ns <= d->longest.ns)
		return;
	d->longest = d->now;
	d->server = *server;
	text_copy(d->target, sizeof(d->target), name);
}

void verdict_note_queue(struct verdict_facts *f, const struct verdict_queue *queue)
{
	uint64_t first_ns = f->trigger_ns > VERDICT_LEAD_NS ? f->trigger_ns - VERDICT_LEAD_NS : 0;
	uint64_t cost_ns = queue->waited_ns, most_ns;

	if (queue->answered_ns > first_ns) {
		most_ns = queue->waiters * (queue->answered_ns - first_ns);
		cost_ns = cost_ns < most_ns ? cost_ns : most_ns;
	}
	if (cost_ns <= f->queue.cost_ns)
		return;
	f->queue = *queue;
	f->queue.cost_ns = cost_ns;
}
