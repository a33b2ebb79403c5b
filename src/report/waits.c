/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who waited in no operation. There are many lines of sessions and locks about one wait. */
#include <errno.h>

#include "report/internal.h"
#include "util/clock.h"

#define WAITS_MAX 1000
/* Databases tell times in whole seconds, and a lock is looked for once a second. */
#define SAME_NS (2 * NSEC_PER_SEC)

/* A session waits again and again, but a lock has waiters as long as lines say so. */
static bool is_same_time(const struct report_wait *w, const struct report_wait *seen)
{
	const uint64_t since_ns = w->start_ns + (seen->is_session ? 0 : w->ns);

	return seen->start_ns <= since_ns + SAME_NS;
}

static struct report_wait *find_wait(struct report *p, const struct report_wait *seen)
{
	for (uint32_t i = p->waits.count; i > 0; i--) {
		struct report_wait *w = &p->waits.items[i - 1];

		if (w->id == seen->id && w->is_session == seen->is_session &&
			w->target == seen->target && w->lock == seen->lock &&
			w->path == seen->path && is_same_time(w, seen))
			return w;
	}
	return NULL;
}

static int add_wait(struct report *p, const struct report_wait *seen)
{
	struct report_wait *w = find_wait(p, seen);

	if (w) {
		w->start_ns = seen->start_ns < w->start_ns ? seen->start_ns : w->start_ns;
		w->ns = seen->ns > w->ns ? seen->ns : w->ns;
		w->threads = seen->threads > w->threads ? seen->threads : w->threads;
		return 0;
	}
	if (p->waits.count == WAITS_MAX) {
		p->waits_left_out++;
		return 0;
	}
	w = report_list_add(&p->waits);
	if (!w)
		return -ENOMEM;
	*w = *seen;
	return 0;
}

int report_add_session(struct report *p, const struct record *r)
{
	const struct record_sql *q = &r->sql;

	if (!q->connection_id || !q->lock || !q->waited_ns || q->waited_ns > r->mono_ns)
		return 0;
	return add_wait(p,
		&(struct report_wait){
			.start_ns = r->mono_ns - q->waited_ns,
			.ns = q->waited_ns,
			.id = q->connection_id,
			.is_session = true,
			.target = strings_add(&p->strings, q->target),
			.comm = strings_add(&p->strings, q->user),
			.path = strings_add(&p->strings, q->lock_on),
			.threads = 1,
			.pid = q->pid,
			.lock = (uint8_t)q->lock,
		});
}

int report_add_lock(struct report *p, const struct record *r)
{
	const struct record_lock_wait *l = &r->lock_wait;

	/* Those who wait for a lock of the kernel do so in operations. */
	if (!l->kind || record_lock_is_of_kernel(l->kind) || !l->longest_ns ||
		l->longest_ns > r->mono_ns)
		return 0;
	return add_wait(p,
		&(struct report_wait){
			.start_ns = r->mono_ns - l->longest_ns,
			.ns = l->longest_ns,
			.id = l->id,
			.comm = strings_add(&p->strings, l->comm),
			.path = strings_add(&p->strings, l->path),
			.threads = l->waiters ? l->waiters : 1,
			.pid = l->pid,
			.lock = (uint8_t)l->kind,
		});
}

int report_find_waiting(const struct report *p, const struct report_wait *w)
{
	for (uint32_t i = 0; w->is_session && i < p->statements.count; i++) {
		const struct report_statement *s = &p->statements.items[i];

		if (s->connection_id == w->id && s->target == w->target && s->text &&
			s->begun_ns <= w->start_ns + w->ns && s->seen_ns >= w->start_ns)
			return (int)i;
	}
	return -1;
}

const char *report_wait_cause(const struct report_wait *w)
{
	static const char *const of_databases[RECORD_LOCK_COUNT] = {
		[RECORD_LOCK_row] = "row lock",
		[RECORD_LOCK_metadata] = "metadata lock",
		[RECORD_LOCK_table] = "table lock",
		[RECORD_LOCK_flush] = "flush of a table",
		[RECORD_LOCK_backup] = "backup lock",
		[RECORD_LOCK_replica] = "replica",
		[RECORD_LOCK_cluster] = "cluster",
		[RECORD_LOCK_advisory] = "advisory lock",
		[RECORD_LOCK_other] = "lock of the database",
	};
	static const char *const of_programs[RECORD_KERNEL_LOCK_COUNT] = {
		[RECORD_KERNEL_LOCK_mutex] = "mutex",
		[RECORD_KERNEL_LOCK_file] = "file lock",
		[RECORD_KERNEL_LOCK_pipe] = "reader of a pipe",
		[RECORD_KERNEL_LOCK_socket] = "reader of a socket",
	};

	return w->is_session ? of_databases[w->lock] : of_programs[w->lock];
}
