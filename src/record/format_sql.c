/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An `sql` or `queue` line for people. */
#include <inttypes.h>

#include "record/format.h"

static void add_answer(struct text *t, const struct record_sql *q)
{
	if (*q->error || q->unanswered_ns) {
		text_add(t, "NO ANSWER");
		if (q->unanswered_ns) {
			text_add(t, " for ");
			record_add_duration(t, q->unanswered_ns);
		}
		format_add_known(t, "  ", q->error);
		format_add_known(t, "; to fix this: ", q->missing);
		return;
	}
	text_addf(t, "%" PRId64 " active, %" PRId64 " idle", q->active, q->idle);
	if (q->left_out > 0)
		text_addf(t, ", %" PRId64 " left out", q->left_out);
	format_add_known(t, "  ", q->version);
	format_add_known(t, " as ", q->account);
	format_add_known(t, ", which does not see everything; to fix this: ", q->missing);
}

static void add_thread(struct text *t, const struct record_sql *q)
{
	if (q->tid > 0) {
		text_addf(t, "[%" PRId32 "/%" PRId32 "]", q->pid, q->tid);
		return;
	}
	text_add(t, "[no thread: ");
	format_add_or_unknown(t, q->tid_reason);
	for (unsigned int i = 0; i < RECORD_CANDIDATES_MAX && q->candidates[i]; i++)
		text_addf(t, "%s%" PRIu64, i ? " " : ", perhaps ", q->candidates[i]);
	text_add(t, "]");
}

/* "waits for a row lock on shop.orders, probably of session 42" */
static void add_lock(struct text *t, const struct record_sql *q)
{
	if (q->transaction_ns) {
		text_add(t, "  transaction open for ");
		record_add_duration(t, q->transaction_ns);
	}
	if (q->lock == RECORD_LOCK_NONE)
		return;
	if (q->lock == RECORD_LOCK_replica || q->lock == RECORD_LOCK_cluster) {
		text_add(t,
			q->lock == RECORD_LOCK_replica ? "  waits for a replica to confirm"
						       : "  waits for its cluster");
		return;
	}
	text_addf(t, "  waits for a lock (%s", record_lock_text(q->lock));
	format_add_known(t, " ", q->lock_on);
	text_add(t, ")");
	if (!q->blocked_by)
		return;
	text_addf(t, " %s session %" PRIu64,
		q->blocked_basis == RECORD_BASIS_inferred ? "probably of" : "of", q->blocked_by);
	if (q->blocked_candidates > 1)
		text_addf(t, " or one of %" PRIu32 " others", q->blocked_candidates - 1);
}

static void add_session(struct text *t, const struct record_sql *q)
{
	if (q->elapsed_ns)
		record_add_duration(t, q->elapsed_ns);
	else
		text_add(t, "?");
	text_add(t, "  ");
	format_add_or_unknown(t, q->user);
	format_add_known(t, "/", q->database);
	text_add(t, " ");
	add_thread(t, q);
	if (q->background)
		text_add(t, "  background");
	format_add_known(t, "  ", q->command);
	format_add_known(t, ", ", q->state);
	add_lock(t, q);
	format_add_known(t, "  ", q->text);
}

void format_sql_line(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_sql *q = &r->sql;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, "sql     ");
	format_add_or_unknown(t, q->target);
	text_add(t, " ");
	format_add_or_unknown(t, record_phase_text(q->phase));
	text_add(t, "  ");
	if (q->connection_id)
		add_session(t, q);
	else
		add_answer(t, q);
	text_add(t, "\n");
}

static void add_queue_session(struct text *t, const struct record_queue_session *s)
{
	text_addf(t, "session %" PRIu64 " of ", s->connection_id);
	format_add_or_unknown(t, s->user);
	if (s->tid)
		text_addf(t, "[%" PRId32 "/%" PRId32 "]", s->pid, s->tid);
	text_add(t, s->idle ? ", idle for " : ", running for ");
	record_add_duration(t, s->elapsed_ns);
	format_add_known(t, "  ", s->text);
}

void format_queue(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_queue *q = &r->queue;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, "queue   ");
	format_add_or_unknown(t, q->target);
	text_addf(t, "  %" PRIu32 " wait for a lock (", q->waiters);
	format_add_or_unknown(t, record_lock_text(q->lock));
	format_add_known(t, " ", q->lock_on);
	text_add(t, "), the longest for ");
	record_add_duration(t, q->longest_ns);
	if (q->holder.present) {
		text_add(t,
			q->basis == RECORD_BASIS_inferred ? ", probably held by " : ", held by ");
		add_queue_session(t, &q->holder);
	}
	if (q->first.present) {
		text_addf(t, "; %" PRIu32 " of them behind ", q->behind_first);
		add_queue_session(t, &q->first);
	}
	text_add(t, "\n");
}
