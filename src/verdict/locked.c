/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions of a database that wait for a lock: when that is the verdict, and how it is said. */
#include <inttypes.h>
#include <string.h>

#include "util/clock.h"
#include "verdict/figures.h"
#include "verdict/words.h"

/* A shorter wait for a lock, or one of fewer sessions, is part of normal work. */
#define LOCKED_LONGEST_NS NSEC_PER_SEC
#define LOCKED_SUM_NS (5 * NSEC_PER_SEC)
/* From such a share of a device's time its holder is busy with the device. */
#define HOLDER_SHARE_PCT 10
/* A commit that takes so long holds up the sessions behind its locks. */
#define WRITES_LONG_NS (NSEC_PER_SEC / 4)

bool verdict_has_queue(const struct verdict_facts *f)
{
	return f->queue.waiters > 0 && f->queue.longest_ns >= LOCKED_LONGEST_NS &&
		f->queue.waited_ns >= LOCKED_SUM_NS;
}

static bool waits_for_device(const struct verdict_facts *f, int32_t tid)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (f->waiters[i].tid == tid && f->waiters[i].device >= 0)
			return true;
	return false;
}

/* Whether the thread moved much of what a device did that was at work all the time. */
static bool loads_device(const struct verdict_facts *f, int32_t tid)
{
	for (uint32_t i = 0; i < f->shares_count; i++) {
		const struct verdict_share *share = &f->shares[i];
		const struct verdict_device *d = &f->devices[share->device];

		if (share->tid == tid && d->busy.ns >= NSEC_PER_SEC &&
			verdict_share_pct(d, share->busy_ns) >= HOLDER_SHARE_PCT)
			return true;
	}
	return false;
}

/* The session is one of that server: each of PostgreSQL is a process of one thread. */
static bool is_of_same_server(const struct verdict_waiter *w, const struct verdict_who *session)
{
	return w->pid == session->pid ||
		((session->pid == session->tid || w->processes) &&
			strcmp(w->comm, session->comm) == 0);
}

/*
 * Whoever commits sleeps until another thread of the server has written the log for all of them, in
 * PostgreSQL behind WALWriteLock and in MariaDB behind the leader of the group.
 */
static bool server_writes_for_long(const struct verdict_facts *f, const struct verdict_who *session)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *w = &f->waiters[i];

		if (w->tid != 0 && !w->kernel && w->written_ns >= WRITES_LONG_NS &&
			(w->wait == VERDICT_WAIT_device || w->wait == VERDICT_WAIT_journal) &&
			is_of_same_server(w, session))
			return verdict_is_a_device_at_fault(f);
	}
	return false;
}

bool verdict_is_locked(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	const struct verdict_holder *h = &f->queue.holder;

	*ret_wait = VERDICT_WAIT_COUNT;
	if (!verdict_has_queue(f))
		return false;
	/* Without a statement the holder waits for its client, and for nothing else. */
	return h->idle || h->who.tid == 0 ||
		(!waits_for_device(f, h->who.tid) && !loads_device(f, h->who.tid) &&
			!server_writes_for_long(f, &h->who));
}

/* "session 42 of app@localhost" */
static void add_session(struct text *t, const struct verdict_holder *h)
{
	text_addf(t, "session %" PRIu64, h->connection_id);
	if (*h->user) {
		text_add(t, " of ");
		text_add(t, h->user);
	}
}

static void add_quoted(struct text *t, const char *statement)
{
	text_add(t, "\"");
	verdict_add_text(t, statement);
	text_add(t, "\"");
}

/*
 * "had been idle in a transaction for 41.00 s (transaction open for 1m00s)"; "had been running
 * "SELECT ..." for 4.00 s"
 */
static void add_what_it_did(struct text *t, const struct verdict_holder *h, bool with_text)
{
	bool is_older = h->transaction_ns > h->elapsed_ns + NSEC_PER_SEC;

	if (!h->idle) {
		text_add(t, "had been running ");
		if (with_text && *h->text)
			add_quoted(t, h->text);
		else
			text_add(t, "a statement");
	} else {
		text_add(t, h->elapsed_ns ? "had been idle" : "was idle");
		text_add(t, h->transaction_ns ? " in a transaction" : "");
	}
	if (!h->idle || h->elapsed_ns) {
		text_add(t, " for ");
		record_add_duration(t, h->elapsed_ns);
	}
	if (!is_older)
		return;
	text_add(t, " (transaction open for ");
	record_add_duration(t, h->transaction_ns);
	text_add(t, ")");
}

/* "a metadata lock on shop.orders" */
static void add_lock(struct text *t, const struct verdict_queue *q)
{
	static const char *const names[RECORD_LOCK_COUNT] = {
		[RECORD_LOCK_NONE] = "a lock",
		[RECORD_LOCK_row] = "a row lock",
		[RECORD_LOCK_metadata] = "a metadata lock",
		[RECORD_LOCK_table] = "a table lock",
		[RECORD_LOCK_flush] = "a table to be flushed",
		[RECORD_LOCK_backup] = "the backup or global read lock",
		[RECORD_LOCK_replica] = "a replica that has to confirm commits",
		[RECORD_LOCK_other] = "a lock",
	};

	text_add(t, names[q->lock]);
	if (!*q->object)
		return;
	text_add(t, q->lock == RECORD_LOCK_flush ? ", " : " on ");
	text_add(t, q->object);
}

/* "15 statements waited up to 19.80 s for a metadata lock on shop.orders" */
static void add_waiters(struct text *t, const struct verdict_queue *q)
{
	text_add_count(t, q->waiters, "statement", "statements");
	text_add(t, q->waiters == 1 ? " waited " : " waited up to ");
	record_add_duration(t, q->longest_ns);
	text_add(t, " for ");
	add_lock(t, q);
}

/* "session 42 of app@localhost, which had been idle in a transaction for 41.00 s" */
void verdict_add_holder(struct text *t, const struct verdict_holder *h)
{
	add_session(t, h);
	text_add(t, ", which ");
	add_what_it_did(t, h, false);
}

static void add_database(struct text *t, const struct verdict_queue *q)
{
	text_add(t, " of database ");
	text_add(t, q->target);
}

/* "session 42 of app@localhost probably held a row lock on shop.orders of database main" */
static void add_held(struct text *t, const struct verdict_queue *q)
{
	const struct verdict_holder *h = &q->holder;

	if (h->candidates > 1)
		text_addf(t, "one of %" PRIu32 " sessions", h->candidates);
	else
		add_session(t, h);
	text_add(t, h->candidates == 1 ? " probably" : "");
	/* Whoever uses the table holds up all that wait until it is flushed. */
	text_add(t, q->lock == RECORD_LOCK_flush ? " still used " : " held ");
	add_lock(t, q);
	add_database(t, q);
}

/* The holder comes first, because whoever reads it has to decide about that session. */
void verdict_say_locked(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_queue *q = &v->f->queue;

	if (q->holder.connection_id) {
		add_held(t, q);
		text_add(t, ": ");
		text_add_count(t, q->waiters, "statement", "statements");
		text_add(t, q->waiters == 1 ? " waited " : " waited up to ");
		record_add_duration(t, q->longest_ns);
		text_add(t, " for it");
	} else {
		add_waiters(t, q);
		add_database(t, q);
	}
	if (q->behind_first > 0)
		text_addf(t, ", %" PRIu32 " of them behind session %" PRIu64, q->behind_first,
			q->first_id);
	if (q->lock == RECORD_LOCK_replica)
		text_add(t, "; perhaps that replica is not connected, hangs, or cannot keep up");
	else if (!q->holder.connection_id)
		text_add(t, "; it is not known who holds it");
}

void verdict_add_lock_statements(const struct verdict_queue *q, bool with_text, struct text *t)
{
	const struct verdict_holder *h = &q->holder;

	if (h->candidates > 1) {
		text_add(t, "; the oldest of them is ");
		verdict_add_holder(t, h);
	} else if (h->connection_id) {
		text_addf(t, "; session %" PRIu64 " ", h->connection_id);
		add_what_it_did(t, h, with_text);
		if (with_text && h->idle && *h->text) {
			text_add(t, "; its last statement was ");
			add_quoted(t, h->text);
		}
	}
	if (with_text && q->behind_first > 0 && *q->first_text) {
		text_addf(t, "; session %" PRIu64 " waited with ", q->first_id);
		add_quoted(t, q->first_text);
	}
}

void verdict_add_queue(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_queue *q = &v->f->queue;

	add_waiters(t, q);
	if (!q->holder.connection_id || q->holder.candidates > 1)
		return;
	text_add(t, q->holder.candidates ? ", probably held by " : ", held by ");
	add_session(t, &q->holder);
}
