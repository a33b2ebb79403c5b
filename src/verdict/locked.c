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

bool verdict_is_locked(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	const struct verdict_holder *h = &f->queue.holder;

	*ret_wait = VERDICT_WAIT_COUNT;
	if (!verdict_has_queue(f))
		return false;
	/* Without a statement the holder waits for its client, and for nothing else. */
	return h->idle || h->who.tid == 0 ||
		(!waits_for_device(f, h->who.tid) && !loads_device(f, h->who.tid));
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

static void add_what_it_does(struct text *t, const struct verdict_holder *h)
{
	if (h->idle) {
		text_add(t, h->transaction_ns ? ", idle in a transaction" : ", idle");
		if (h->elapsed_ns) {
			text_add(t, " for ");
			record_add_duration(t, h->elapsed_ns);
		}
	} else {
		text_add(t, ", whose statement had been running for ");
		record_add_duration(t, h->elapsed_ns);
	}
	if (h->transaction_ns > h->elapsed_ns + NSEC_PER_SEC) {
		text_add(t,
			h->idle && !h->elapsed_ns ? " that has been open for "
						  : " (transaction open for ");
		record_add_duration(t, h->transaction_ns);
		text_add(t, h->idle && !h->elapsed_ns ? "" : ")");
	}
}

/* "15 statements waited up to 19.80 s for a metadata lock on shop.orders" */
static void add_waiters(struct text *t, const struct verdict_queue *q)
{
	static const char *const names[RECORD_LOCK_COUNT] = {
		[RECORD_LOCK_NONE] = "a lock",
		[RECORD_LOCK_row] = "a row lock",
		[RECORD_LOCK_metadata] = "a metadata lock",
		[RECORD_LOCK_table] = "a table lock",
		[RECORD_LOCK_flush] = "a table to be flushed",
		[RECORD_LOCK_backup] = "the backup or global read lock",
		[RECORD_LOCK_other] = "a lock",
	};

	text_add_count(t, q->waiters, "statement", "statements");
	text_add(t, q->waiters == 1 ? " waited " : " waited up to ");
	record_add_duration(t, q->longest_ns);
	text_addf(t, " for %s", names[q->lock]);
	if (*q->object) {
		text_add(t, " on ");
		text_add(t, q->object);
	}
}

static void add_holder(struct text *t, const struct verdict_holder *h)
{
	if (!h->connection_id) {
		text_add(t, "; it is not known who holds it");
		return;
	}
	if (h->candidates > 1)
		text_addf(t, "; one of %" PRIu32 " sessions holds it, the oldest of them is ",
			h->candidates);
	else
		text_add(t, h->candidates ? "; it is probably held by " : "; it is held by ");
	add_session(t, h);
	add_what_it_does(t, h);
}

/* "session 42 of app@localhost, idle in a transaction for 41.00 s" */
void verdict_add_holder(struct text *t, const struct verdict_holder *h)
{
	add_session(t, h);
	add_what_it_does(t, h);
}

void verdict_say_locked(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_queue *q = &v->f->queue;

	text_add(t, "database ");
	text_add(t, q->target);
	text_add(t, ": ");
	add_waiters(t, q);
	add_holder(t, &q->holder);
	if (q->behind_first > 0)
		text_addf(t, "; %" PRIu32 " of them %s behind session %" PRIu64 " in the queue",
			q->behind_first, q->behind_first == 1 ? "was" : "were", q->first_id);
}

void verdict_add_lock_texts(const struct verdict_queue *q, struct text *t)
{
	if (*q->holder.text && q->holder.candidates <= 1) {
		text_addf(t, "; session %" PRIu64 " %s \"", q->holder.connection_id,
			q->holder.idle ? "last ran" : "ran");
		verdict_add_text(t, q->holder.text);
		text_add(t, "\"");
	}
	if (q->behind_first > 0 && *q->first_text) {
		text_addf(t, "; session %" PRIu64 " waits with \"", q->first_id);
		verdict_add_text(t, q->first_text);
		text_add(t, "\"");
	}
}

void verdict_add_queue(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_queue *q = &v->f->queue;

	add_waiters(t, q);
	if (!q->holder.connection_id || q->holder.candidates > 1)
		return;
	text_add(t, q->holder.candidates ? ", probably of " : " of ");
	add_session(t, &q->holder);
}
