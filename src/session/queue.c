/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the `queue` lines: which lock of a database sessions wait for, and who holds it. */
#include <string.h>

#include "model/thresholds.h"
#include "session/internal.h"
#include "sql/locks.h"
#include "sql/sql.h"
#include "util/number.h"
#include "watch/thread_status.h"

static void set_session(const struct session *s, const struct sql_evidence *e,
	const struct sql_session_view *view, struct record_queue_session *ret_session)
{
	ret_session->present = true;
	ret_session->connection_id = view->connection_id;
	text_copy(ret_session->user, sizeof(ret_session->user), view->user);
	ret_session->pid = e->sessions_are_processes && view->tid ? view->tid : e->server_pid;
	ret_session->tid = view->tid;
	if (ret_session->pid)
		(void)thread_comm_read(s->procfs_fd, ret_session->pid, ret_session->comm,
			sizeof(ret_session->comm));
	ret_session->idle = view->idle;
	ret_session->elapsed_ns = view->elapsed_ns;
	ret_session->transaction_ns = view->transaction_ns;
	text_copy(ret_session->text, sizeof(ret_session->text), view->text);
}

static void make_queue(const struct session *s, const struct sql_evidence *e,
	const struct sql_queue *q, struct record_queue *ret_queue)
{
	memset(ret_queue, 0, sizeof(*ret_queue));
	text_copy(ret_queue->target, sizeof(ret_queue->target), e->target);
	ret_queue->lock = q->lock;
	text_copy(ret_queue->lock_on, sizeof(ret_queue->lock_on), q->object);
	ret_queue->waiters = q->waiters;
	ret_queue->longest_ns = q->longest_ns;
	ret_queue->waited_ns = q->waited_ns;
	if (q->has_holder) {
		set_session(s, e, &q->holder, &ret_queue->holder);
		ret_queue->basis = q->candidates ? RECORD_BASIS_inferred : RECORD_BASIS_measured;
		ret_queue->candidates = q->candidates;
	}
	if (q->is_without_session)
		ret_queue->basis = RECORD_BASIS_measured;
	ret_queue->without_session = q->is_without_session;
	ret_queue->behind_first = q->behind_first;
	if (q->behind_first)
		set_session(s, e, &q->first, &ret_queue->first);
}

static void write_queue(struct session *s, struct session_queue *queue)
{
	struct record *r = session_begin_line(s, RECORD_QUEUE);

	r->queue = queue->most;
	session_set_line_time(s, queue->answered_ns);
	queue->written_ns = queue->most.waited_ns;
	queue->written_holder = queue->most.holder.connection_id;
	session_write_line(s);
}

/* It has grown by half, or it is another one. */
static bool is_due(const struct session_queue *queue)
{
	return queue->most.waited_ns > queue->written_ns + queue->written_ns / 2 ||
		queue->most.holder.connection_id != queue->written_holder;
}

/* A wait that is as old as a day counts for no more than its part of the incident. */
void session_take_queue(struct session *s, unsigned int target, const struct sql_evidence *e)
{
	const uint64_t since_ns = minus(s->incident.trigger_ns, MODEL_LEAD_NS);
	struct session_queue *queue = &s->sql[target].queue;
	struct sql_queue q;

	if (!e->current || e->current->answered_ns == queue->seen_ns ||
		!sql_find_queue(e->current, since_ns, &q))
		return;
	queue->seen_ns = e->current->answered_ns;
	if (q.waited_ns <= queue->most.waited_ns)
		return;
	queue->answered_ns = e->current->answered_ns;
	make_queue(s, e, &q, &queue->most);
	if (is_due(queue))
		write_queue(s, queue);
}

void session_end_queue(struct session *s, unsigned int target)
{
	struct session_queue *queue = &s->sql[target].queue;

	if (queue->most.waited_ns > queue->written_ns)
		write_queue(s, queue);
}
