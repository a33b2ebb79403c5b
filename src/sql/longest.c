/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/longest.h"

#include <string.h>

#include "util/clock.h"
#include "util/text.h"

/*
 * By how much the start of one statement differs in two answers beside the time they took: threads
 * that a MariaDB was late with are up to 0.3 s off.
 */
#define START_NOISE_NS (400 * NSEC_PER_MSEC)

/* All of it is locked. */
_Static_assert(sizeof(struct sql_longest) <= 24 * 1024, "more than a target may have for it");

struct rank {
	bool loads;
	uint64_t ran_ns; /* in the incident */
	uint64_t elapsed_ns;
};

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void sql_longest_begin(struct sql_longest *l, uint64_t begin_ns)
{
	l->begin_ns = begin_ns;
	l->count = 0;
}

/* SLEEP() of MariaDB and pg_sleep(). */
static bool is_asleep(const char *state)
{
	return strcmp(state, "User sleep") == 0 || strcmp(state, "Timeout: PgSleep") == 0;
}

/* Ranks */

static struct rank rank_of(
	const struct sql_longest *l, bool loads, uint64_t answered_ns, uint64_t elapsed_ns)
{
	uint64_t incident_ns = minus(answered_ns, l->begin_ns);

	return (struct rank){
		.loads = loads,
		.ran_ns = elapsed_ns < incident_ns ? elapsed_ns : incident_ns,
		.elapsed_ns = elapsed_ns,
	};
}

static struct rank rank_of_entry(const struct sql_longest *l, const struct sql_longest_entry *e)
{
	return rank_of(l, !e->background && !e->idle && !e->leader_pid && !e->asleep,
		e->answered_ns, e->elapsed_ns);
}

static bool is_above(struct rank a, struct rank b)
{
	if (a.loads != b.loads)
		return a.loads;
	return a.ran_ns != b.ran_ns ? a.ran_ns > b.ran_ns : a.elapsed_ns > b.elapsed_ns;
}

/* One entry for each statement */

/* Of what the table keeps of it; not cut within a character. */
static size_t kept_bytes(const char *text)
{
	size_t len = strnlen(text, SQL_LONGEST_TEXT_SIZE);

	if (len < SQL_LONGEST_TEXT_SIZE)
		return len;
	for (len--; len > 0 && (text[len] & 0xc0) == 0x80;)
		len--;
	return len;
}

/*
 * When it began, in the clock of the answers. The server looked between question and answer, and
 * where it counts whole seconds it is one more or less.
 */
static void set_start(struct sql_longest_entry *e)
{
	uint64_t error_ns = e->elapsed_ns % NSEC_PER_SEC ? START_NOISE_NS : SQL_START_ERROR_NS;

	e->start_min_ns = minus(e->asked_ns, e->elapsed_ns + error_ns);
	e->start_max_ns = minus(e->answered_ns, e->elapsed_ns) + error_ns;
}

static void fill(struct sql_longest_entry *e, const struct sql_snapshot *answer,
	const struct sql_session_view *view, bool idle)
{
	e->connection_id = view->connection_id;
	e->query_id = view->query_id;
	e->elapsed_ns = view->elapsed_ns;
	e->asked_ns = answer->asked_ns;
	e->answered_ns = answer->answered_ns;
	e->tid = view->tid;
	e->leader_pid = view->leader_pid;
	e->text_bytes = view->text_bytes;
	e->background = view->background;
	e->idle = idle;
	e->asleep = is_asleep(view->state);
	text_copy(e->user, sizeof(e->user), view->user);
	text_copy(e->database, sizeof(e->database), view->database);
	text_copy(e->command, sizeof(e->command), view->command);
	text_copy(e->state, sizeof(e->state), view->state);
	text_copy(e->no_tid, sizeof(e->no_tid), view->no_tid);
	text_copy(e->text, kept_bytes(view->text) + 1, view->text);
	set_start(e);
}

/*
 * A number of a MariaDB is of one execution, that of a PostgreSQL of all that look alike, so it
 * only ever speaks against. An answer may have had no room for the text.
 */
static bool is_same(const struct sql_longest_entry *a, const struct sql_longest_entry *b)
{
	bool same_number = a->query_id && a->query_id == b->query_id;

	if (a->start_min_ns > b->start_max_ns || b->start_min_ns > a->start_max_ns ||
		a->idle != b->idle)
		return false;
	if (a->query_id && b->query_id && !same_number)
		return false;
	return strcmp(a->text, b->text) == 0 || (same_number && (!*a->text || !*b->text));
}

static struct sql_longest_entry *find_same(
	struct sql_longest *l, const struct sql_longest_entry *new)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->entries[i].connection_id == new->connection_id &&
			is_same(&l->entries[i], new))
			return &l->entries[i];
	return NULL;
}

/* What one answer did not know another did. */
static void merge(struct sql_longest_entry *old, struct sql_longest_entry *new)
{
	new->asleep = old->asleep = new->asleep && old->asleep;
	/* The server's clock counts seconds. */
	if (new->elapsed_ns < old->elapsed_ns)
		return;
	if (!new->query_id)
		new->query_id = old->query_id;
	if (!new->tid)
		new->tid = old->tid;
	if (new->tid)
		new->no_tid[0] = '\0';
	if (!*new->text)
		strcpy(new->text, old->text);
	/* Else it would wander from one statement to the next. */
	if (new->start_min_ns < old->start_min_ns)
		new->start_min_ns = old->start_min_ns;
	if (new->start_max_ns > old->start_max_ns)
		new->start_max_ns = old->start_max_ns;
	*old = *new;
}

static struct sql_longest_entry *find_last(struct sql_longest *l)
{
	struct sql_longest_entry *last = &l->entries[0];

	for (uint32_t i = 1; i < l->count; i++)
		if (is_above(rank_of_entry(l, last), rank_of_entry(l, &l->entries[i])))
			last = &l->entries[i];
	return last;
}

static void take(struct sql_longest *l, struct sql_longest_entry *new)
{
	struct sql_longest_entry *e = find_same(l, new);

	if (e) {
		merge(e, new);
		return;
	}
	if (l->count < SQL_LONGEST_MAX) {
		l->entries[l->count++] = *new;
		return;
	}
	e = find_last(l);
	if (is_above(rank_of_entry(l, new), rank_of_entry(l, e)))
		*e = *new;
}

void sql_longest_take(struct sql_longest *l, const struct sql_snapshot *answer)
{
	struct sql_longest_entry new;
	struct sql_session_view view;

	for (uint32_t i = 0; i < answer->count; i++) {
		sql_snapshot_view(answer, i, &view);
		/* Not known, or too short to matter. */
		if (view.elapsed_ns == 0)
			continue;
		fill(&new, answer, &view, answer->rows[i].idle);
		take(l, &new);
	}
}

/* What is there */

static void view_of(const struct sql_longest_entry *e, struct sql_session_view *ret_view)
{
	*ret_view = (struct sql_session_view){
		.connection_id = e->connection_id,
		.query_id = e->query_id,
		.elapsed_ns = e->elapsed_ns,
		.started_ns = minus(e->answered_ns, e->elapsed_ns),
		.tid = e->tid,
		.leader_pid = e->leader_pid,
		.text_bytes = e->text_bytes,
		.background = e->background,
		.user = e->user,
		.database = e->database,
		.command = e->command,
		.state = e->state,
		.no_tid = e->no_tid,
		.text = e->text,
	};
}

void sql_longest_view(
	const struct sql_longest *l, uint32_t index, struct sql_session_view *ret_view)
{
	view_of(&l->entries[index], ret_view);
}

/* Of the backend that a worker without a statement of its own served then. */
static const struct sql_longest_entry *leader_of(
	const struct sql_longest *l, const struct sql_longest_entry *e)
{
	for (uint32_t i = 0; !*e->text && e->leader_pid > 0 && i < l->count; i++) {
		const struct sql_longest_entry *leader = &l->entries[i];

		if (leader->tid == e->leader_pid && !leader->idle &&
			leader->answered_ns >= e->answered_ns &&
			leader->start_max_ns <= e->answered_ns)
			return leader;
	}
	return e;
}

/* The load of a thread is no sleeper's, were it the longest. */
static struct rank rank_for_thread(const struct sql_longest *l, const struct sql_longest_entry *e)
{
	return rank_of(l, !e->asleep, e->answered_ns, e->elapsed_ns);
}

static const struct sql_longest_entry *find_thread(
	const struct sql_longest *l, int32_t tid, uint64_t begun_by_ns)
{
	const struct sql_longest_entry *found = NULL;

	for (uint32_t i = 0; tid > 0 && i < l->count; i++) {
		const struct sql_longest_entry *e = &l->entries[i];

		if (e->tid != tid || e->idle)
			continue;
		e = leader_of(l, e);
		if (minus(e->answered_ns, e->elapsed_ns) <= begun_by_ns &&
			(!found || is_above(rank_for_thread(l, e), rank_for_thread(l, found))))
			found = e;
	}
	return found;
}

bool sql_longest_find_thread(const struct sql_longest *l, const struct sql_snapshot *worst,
	const struct sql_snapshot *newest, int32_t tid, struct sql_session_view *ret_view)
{
	const struct sql_longest_entry *e = worst ? find_thread(l, tid, worst->answered_ns) : NULL;
	struct sql_session_view kept;
	struct rank rank;

	if (!worst)
		return false;
	if (!sql_snapshots_find_thread(worst, newest, tid, &kept)) {
		if (e)
			view_of(e, ret_view);
		return e != NULL;
	}
	/* A full table may not have it; where it has the same, the answer's text is not cut. */
	rank = rank_of(
		l, !is_asleep(kept.state), kept.started_ns + kept.elapsed_ns, kept.elapsed_ns);
	if (e && is_above(rank_for_thread(l, e), rank))
		view_of(e, ret_view);
	else
		*ret_view = kept;
	return true;
}
