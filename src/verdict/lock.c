/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of the kernel and of programs; pipes and sockets that are full, since nobody reads. */
#include <inttypes.h>

#include "verdict/words.h"

static const struct model_lock *lock_of(const struct graph *g, const struct node *n)
{
	return &g->m->host.locks[n->index];
}

/* Those of one sort; the lines about them have their waiters, who may sleep in nothing traced. */
static void find_locks(struct graph *g, enum node_kind_id kind,
	bool (*is_wanted)(const struct model_lock *l))
{
	for (int i = 0; i < MODEL_LOCKS_MAX && g->m->host.locks[i].id; i++) {
		const struct model_lock *l = &g->m->host.locks[i];
		struct node *n = is_wanted(l) ? graph_get(g, kind, i) : NULL;

		if (!n)
			continue;
		if (l->tries)
			n->basis = RECORD_BASIS_inferred;
		n->extra = (struct victims){ .threads = l->waiters,
			.waited_ns = l->waited_ns,
			.longest_ns = l->longest_ns,
			.who = l->process,
			.disk = -1 };
	}
}

static void add_parts_of_holder(const struct model_lock *l,
	void (*add)(const struct model_lock *l, struct text *t), struct record_verdict *v)
{
	struct record_verdict_part *part;
	struct text t;

	if (!l->holder.pid)
		return;
	part = words_add_part(v, RECORD_WHAT_culprit,
		l->is_inferred ? RECORD_BASIS_inferred : RECORD_BASIS_measured, &t);
	if (!part)
		return;
	add(l, &t);
	words_set_who(part, &l->holder);
	part->tid = l->holder.tid;
	text_copy(part->path, sizeof(part->path), l->path);
	part->longest_ns = l->held_ns;
}

/*
 * What other threads of the process, or of the program, waited for most that makes its holder wait:
 * a disk or its dirty pages. program 0: only of the process. NULL: they did for less than half as
 * long as threads waited for the lock.
 */
static struct node *node_of_others(struct graph *g, int32_t pid, uint64_t program,
	uint64_t longest_ns)
{
	const struct model_waits *waits = &g->m->waits;
	struct node *most = NULL;
	uint64_t most_ns = longest_ns / 2 > NOTICED_NS ? longest_ns / 2 : NOTICED_NS;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];
		struct node *n = g->of_group[i];

		if (n && (w->who.pid == pid || (program && waits->keys[i].program == program)) &&
			model_wait_ns(w) >= most_ns &&
			(n->kind == NODE_disk || n->kind == NODE_dirty)) {
			most = n;
			most_ns = model_wait_ns(w);
		}
	}
	return most;
}

static struct model_span span_of(const struct model_lock *l)
{
	return model_span_to(l->held_until_ns, l->held_ns);
}

/* A process holds a lock of a file, and may wait for another one, as a writer for readers. */
static struct node *node_of_file_holder(struct graph *g, const struct node *n,
	const struct model_lock *l)
{
	for (uint32_t i = 0; i < g->count; i++) {
		struct node *other = &g->nodes[i];

		if (other != n && other->kind == NODE_held &&
			lock_of(g, other)->process.pid == l->holder.pid &&
			2 * lock_of(g, other)->longest_ns >= l->held_ns)
			return other;
	}
	return graph_of_process(g, l->holder.pid, span_of(l));
}

/*
 * Readers that hold a lock together are not named, but one of them may be known: by its stack, or
 * as one that has been at work on the file since about when others began to wait for its lock.
 */
static struct node *node_of_readers(struct graph *g, const struct node *n,
	const struct model_lock *l)
{
	const struct model_map_holder *h;

	if (l->kind != RECORD_KERNEL_LOCK_memory_map)
		return graph_of_file(g, l->file, model_span_to(l->longest_at_ns, l->longest_ns));
	h = model_map_holders_find(&g->m->waits.map_holders, l->process.pid);
	return h ? graph_of_thread(g, n, h->who.tid, h->span) : NULL;
}

/*
 * Where the holder waits, by its own lines, or by what the kernel said when it was asked. Of a lock
 * that went from thread to thread, each of them held it at some time. A writer that was seen for a
 * short time only has let readers in.
 */
static struct node *follow_lock(struct graph *g, struct node *n)
{
	const struct model_lock *l = lock_of(g, n);
	struct node *next;

	if (l->readers && 2 * l->held_ns < l->longest_ns) {
		n->is_link_inferred = true;
		return node_of_readers(g, n, l);
	}
	next = l->deadlocked_with ? NULL : graph_of_thread(g, n, l->holder.tid, span_of(l));
	if (l->kind == RECORD_KERNEL_LOCK_file)
		return l->holder.pid ? node_of_file_holder(g, n, l) : NULL;
	if (l->holder.pid && !l->holder.tid)
		return graph_of_process(g, l->holder.pid, span_of(l));
	if (next || !l->holder.pid || l->deadlocked_with)
		return next;
	n->is_link_inferred = true;
	/* Each of its waits for a disk that it loads may be too short to be recorded. */
	return l->held_ns >= l->longest_ns / 2 ? graph_of_load(g, l->holder.pid, l->holder.tid)
					       : node_of_others(g, l->holder.pid, 0, l->longest_ns);
}

/* "its process's memory map lock (mmap_lock)", "the lock of the inode of big/t.ibd" */
static void add_lock(const struct model_lock *l, struct text *t)
{
	if (l->kind == RECORD_KERNEL_LOCK_mutex) {
		/* Threads often have names of their own. */
		text_addf(t, "a mutex of %s", *l->process.comm ? l->process.comm : "the program");
	} else if (l->kind == RECORD_KERNEL_LOCK_other) {
		text_add(t, "a lock of the kernel");
		if (*l->function)
			text_addf(t, " (in %s)", l->function);
		if (*l->path) {
			text_add(t, " of ");
			words_add_path(t, l->path);
		}
	} else if (l->kind != RECORD_KERNEL_LOCK_memory_map) {
		text_addf(t, "the %s lock of ", record_kernel_lock_text(l->kind));
		words_add_path(t, *l->path ? l->path : "a file");
	} else {
		text_add(t, "the memory map lock (mmap_lock) of ");
		if (l->holder.pid == l->process.pid)
			text_add(t, "its process");
		else
			words_add_who(t, &l->process);
	}
}

static void add_holder(const struct model_lock *l, struct text *t)
{
	words_add_who(t, &l->holder);
	if (l->connection_id)
		text_addf(t, ", session %" PRIu64 ",", l->connection_id);
	text_add(t, l->tries ? " probably kept others from " : " held ");
	add_lock(l, t);
	/* At one look, it is an instant. */
	if (l->held_ns >= NOTICED_NS) {
		text_add(t, " for at least ");
		words_add_time(t, l->held_ns);
	}
	words_add_what_holder_did(l, t);
}

static void say_lock(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_lock *l = lock_of(g, n);

	if (l->holder.pid) {
		add_holder(l, t);
		return;
	}
	text_add(t, "threads of ");
	words_add_who(t, &l->process);
	text_add(t, l->tries ? " tried again and again for " : " waited for ");
	add_lock(l, t);
	if (l->readers > 1)
		text_addf(t, ", which %" PRIu32 " readers held together", l->readers);
	else if (l->readers)
		text_add(t, "; a reader held it, whom the kernel does not name");
	else
		text_add(t, "; who held it is not known");
}

static void add_lock_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	add_parts_of_holder(lock_of(g, n), add_holder, v);
}

const struct node_kind node_lock = {
	.name = "lock of the kernel",
	.follow = follow_lock,
	.class = RECORD_CLASS_locked,
	.say = say_lock,
	.add_parts = add_lock_parts,
	.waited_for = " for it",
};

/* Locks of programs */

static bool is_of_program(const struct model_lock *l)
{
	return !record_lock_is_of_kernel(l->kind) && !record_lock_has_reader(l->kind) &&
		(l->holder.pid || l->tries);
}

static void find_held(struct graph *g)
{
	find_locks(g, NODE_held, is_of_program);
}

const struct node_kind node_held = {
	.name = "lock of a program",
	.find = find_held,
	.follow = follow_lock,
	.class = RECORD_CLASS_locked,
	.say = say_lock,
	.add_parts = add_lock_parts,
	.waited_for = " for it",
};

/* Pipes and sockets */

static bool has_reader(const struct model_lock *l)
{
	return record_lock_has_reader(l->kind);
}

static void find_ends(struct graph *g)
{
	find_locks(g, NODE_peer, has_reader);
}

/* Who should read may wait itself, as a logger does whose disk hangs. */
static struct node *follow_reader(struct graph *g, struct node *n)
{
	const struct model_lock *l = lock_of(g, n);

	n->is_link_inferred = l->is_inferred;
	return l->holder.pid ? graph_of_process(g, l->holder.pid, span_of(l)) : NULL;
}

/* "standard error of mariadbd (pid 7)" */
static void add_end(const struct model_lock *l, struct text *t)
{
	text_add(t,
		l->fd == 1				       ? "standard output of "
			: l->fd == 2			       ? "standard error of "
			: l->kind == RECORD_KERNEL_LOCK_socket ? "a socket of "
							       : "a pipe of ");
	words_add_who(t, &l->process);
}

static void add_reader(const struct model_lock *l, struct text *t)
{
	words_add_who(t, &l->holder);
	text_add(t,
		l->is_inferred ? ", which probably should have, did not read " : " did not read ");
	add_end(l, t);
	text_add(t, " for at least ");
	words_add_time(t, l->held_ns);
	words_add_what_holder_did(l, t);
}

static void say_reader(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_lock *l = lock_of(g, n);

	if (l->holder.pid) {
		add_reader(l, t);
		return;
	}
	text_add(t, "nobody read ");
	add_end(l, t);
	text_add(t, " for at least ");
	words_add_time(t, l->longest_ns);
	text_add(t, "; who should is not known");
}

static void add_reader_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	add_parts_of_holder(lock_of(g, n), add_reader, v);
}

const struct node_kind node_peer = {
	.name = "reader",
	.find = find_ends,
	.follow = follow_reader,
	.class = RECORD_CLASS_waiting,
	.say = say_reader,
	.add_parts = add_reader_parts,
	.waited_for = " to write to it",
};

/* A lock of the kernel about which nothing was read: index is the first group that waits for it. */

/* NULL: it is no lock of a memory map, or none was seen. */
static const struct model_map_holder *map_holder_of(const struct graph *g, const struct node *n)
{
	const struct model_wait *w = &g->m->waits.groups[n->index];

	return w->cause == RECORD_CAUSE_memory_map_lock
		? model_map_holders_find(&g->m->waits.map_holders, w->who.pid)
		: NULL;
}

/*
 * A thread of the same process that waits for a disk at fault may hold it meanwhile, and so may one
 * of the program where it is no lock of the memory map; there it is the one whose stack shows it.
 */
static struct node *follow_map(struct graph *g, struct node *n)
{
	const struct model_waits *waits = &g->m->waits;
	const struct model_wait *w = &waits->groups[n->index];
	const struct model_map_holder *h = map_holder_of(g, n);
	struct node *next = h ? graph_of_thread(g, n, h->who.tid, h->span) : NULL;

	n->is_link_inferred = true;
	if (next)
		return next;
	return node_of_others(g, w->who.pid,
		w->cause == RECORD_CAUSE_memory_map_lock ? 0 : waits->keys[n->index].program,
		w->longest_ns);
}

static void say_map(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_map_holder *h = map_holder_of(g, n);

	if (h) {
		words_add_who(t, &h->who);
		text_add(t, " probably held the memory map lock (mmap_lock) of its process for ");
		words_add_time(t, h->longest_ns);
		if (*h->function)
			text_addf(t, " in %s", h->function);
		return;
	}
	text_add(t, "threads of ");
	words_add_process(t, &n->victims.who);
	text_add(t, " waited for a lock of the kernel; who held it is not known");
}

const struct node_kind node_map = {
	.name = "unknown lock",
	.follow = follow_map,
	.class = RECORD_CLASS_waiting,
	.say = say_map,
};
