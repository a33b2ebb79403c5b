/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/sessions.h"

#include <string.h>

#include "model/model.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/number.h"

/* NULL: there is no room. */
static struct model_database *get_database(struct model_sessions *sessions, const char *target)
{
	struct model_database *d = sessions->list;

	while (d < sessions->list + sessions->count && strcmp(d->target, target) != 0)
		d++;
	if (d == sessions->list + CONFIG_SQL_TARGETS_MAX)
		return NULL;
	if (d == sessions->list + sessions->count) {
		sessions->count++;
		text_copy(d->target, sizeof(d->target), target);
	}
	return d;
}

/*
 * "FATAL:  the database system is starting up", and perhaps more behind a semicolon. A standby that is not
 * for queries says that it is "not accepting connections", and does so for ever.
 */
static void add_refusal(struct model_database *d, const char *error)
{
	static const char *const states[] = { "starting up", "shutting down", "in recovery mode",
		"not yet accepting connections" };
	const char *state = strstr(error, "the database system is ");

	for (size_t i = 0; state && i < ARRAY_SIZE(states); i++)
		if (strncmp(state + strlen("the database system is "), states[i],
			    strlen(states[i])) == 0)
			d->refused = states[i];
}

/* What was waited before the lead does not count. */
static uint64_t since_lead_ns(const struct model *m, const struct record *r)
{
	return minus(r->mono_ns, model_counted_from_ns(m));
}

static uint64_t at_most(uint64_t ns, uint64_t most_ns)
{
	return ns < most_ns ? ns : most_ns;
}

static void add_answer(const struct model *m, struct model_database *d, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	uint64_t lasting_ns;

	add_refusal(d, q->error);
	if (q->server)
		d->kind = q->server;
	if (q->pid)
		d->server.pid = d->server.tid = q->pid;
	if (*q->missing)
		text_copy(d->missing, sizeof(d->missing), q->missing);
	if (q->lasting <= 0)
		return;
	lasting_ns = at_most(q->lasting_ns, (uint64_t)q->lasting * since_lead_ns(m, r));
	if (lasting_ns <= d->lasting_ns)
		return;
	d->lasting = (uint32_t)q->lasting;
	d->lasting_ns = lasting_ns;
	d->lasting_at_ns = r->mono_ns;
}

static bool is_client(const struct record_sql *q)
{
	return !q->background && !q->leader_pid && !q->quiet;
}

static struct model_moved *get_moved(struct model_database *d, const struct record_sql *q,
	uint64_t start_ns)
{
	for (uint32_t i = 0; i < d->moved_count; i++) {
		struct model_moved *moved = &d->moved[i];

		if (moved->connection_id == q->connection_id &&
			moved->start_ns <= start_ns + START_ERROR_NS &&
			start_ns <= moved->start_ns + START_ERROR_NS)
			return moved;
	}
	if (d->moved_count == MODEL_MOVED_MAX)
		return NULL;
	d->moved[d->moved_count] =
		(struct model_moved){ .connection_id = q->connection_id, .start_ns = start_ns };
	return &d->moved[d->moved_count++];
}

static void add_moved(struct model_database *d, const struct record_sql *q, uint64_t start_ns)
{
	struct model_moved *moved = q->moved_bytes ? get_moved(d, q, start_ns) : NULL;
	struct record_io_statement *b = &d->busiest;

	if (!moved || q->moved_bytes <= moved->bytes)
		return;
	moved->bytes = q->moved_bytes;
	if (moved->bytes <= d->busiest_bytes)
		return;
	d->busiest_bytes = moved->bytes;
	d->busiest_tid = q->tid;
	*b = (struct record_io_statement){ .present = true,
		.connection_id = q->connection_id,
		.elapsed_ns = q->elapsed_ns,
		.start_mono_ns = start_ns,
		.sessions = 1 };
	text_copy(b->user, sizeof(b->user), q->user);
	text_copy(b->database, sizeof(b->database), q->database);
	text_copy(b->text, sizeof(b->text), q->text);
}

bool model_database_has_busiest(const struct model_database *d)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < d->moved_count; i++)
		bytes += d->moved[i].bytes;
	return d->busiest_bytes > 0 && 2 * d->busiest_bytes >= bytes;
}

/* Of as much of the text as a statement of an `io_by` line has. */
static uint64_t key_of(const char *text)
{
	return hash_bytes(HASH_BEGIN, text, strnlen(text, RECORD_VERDICT_STATEMENT_SIZE - 1));
}

static void add_longest(struct model_database *d, const struct record_sql *q, uint64_t ns)
{
	const uint64_t key = *q->text ? key_of(q->text) : q->connection_id;
	struct model_longest *l = d->longest;

	for (uint32_t i = 0; i < MODEL_LONGEST_MAX; i++) {
		if (d->longest[i].ns && d->longest[i].key == key) {
			l = &d->longest[i];
			break;
		}
		if (d->longest[i].ns < l->ns)
			l = &d->longest[i];
	}
	if (ns > l->ns)
		*l = (struct model_longest){ key, ns };
}

uint64_t model_database_longest_ns(const struct model_database *d, const char *but)
{
	const uint64_t key = but ? key_of(but) : 0;
	uint64_t ns = 0;

	for (uint32_t i = 0; i < MODEL_LONGEST_MAX; i++)
		if (d->longest[i].ns > ns && (!but || d->longest[i].key != key))
			ns = d->longest[i].ns;
	return ns;
}

static void add_runner(struct model_sessions *sessions, const struct model_database *d,
	const struct record_sql *q)
{
	const struct model_runner runner = { (uint8_t)(d - sessions->list), q->tid, q->leader_pid,
		key_of(q->text) };

	if (!q->tid || q->background)
		return;
	for (uint32_t i = 0; i < sessions->runners_count; i++)
		if (sessions->runners[i].tid == runner.tid &&
			sessions->runners[i].key == runner.key)
			return;
	if (sessions->runners_count < MODEL_RUNNERS_MAX)
		sessions->runners[sessions->runners_count++] = runner;
}

bool model_sessions_lack_threads(const struct model_sessions *sessions,
	const struct model_database *d)
{
	uint32_t threads = 0;

	for (uint32_t i = 0; i < sessions->runners_count; i++) {
		const struct model_runner *r = &sessions->runners[i];
		uint32_t first = 0;

		while (sessions->runners[first].tid != r->tid)
			first++;
		threads += first == i && &sessions->list[r->database] == d;
	}
	return threads < d->lasting;
}

bool model_sessions_ran(const struct model_sessions *sessions, int32_t tid, const char *text)
{
	const uint64_t key = key_of(text);

	for (uint32_t i = 0; *text && i < sessions->runners_count; i++)
		if ((sessions->runners[i].tid == tid || sessions->runners[i].leader_pid == tid) &&
			sessions->runners[i].key == key)
			return true;
	return false;
}

const struct model_database *model_sessions_find_runner(const struct model_sessions *sessions,
	int32_t tid)
{
	for (uint32_t i = 0; i < sessions->runners_count; i++)
		if (sessions->runners[i].tid == tid)
			return &sessions->list[sessions->runners[i].database];
	return NULL;
}

void model_sessions_add_sql(struct model *m, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	struct model_database *d = get_database(&m->sessions, q->target);

	if (!d)
		return;
	if (!q->connection_id) {
		add_answer(m, d, r);
		return;
	}
	add_runner(&m->sessions, d, q);
	if (is_client(q) && *q->tid_reason)
		text_copy(d->no_thread, sizeof(d->no_thread), q->tid_reason);
	if (!q->elapsed_ns || (!is_client(q) && !*q->text))
		return;
	if (is_client(q))
		add_longest(d, q, at_most(q->elapsed_ns, since_lead_ns(m, r)));
	add_moved(d, q, minus(r->mono_ns, q->elapsed_ns));
}

void model_sessions_add_queue(struct model *m, const struct record *r)
{
	const struct record_queue *q = &r->queue;
	struct model_database *d = get_database(&m->sessions, q->target);
	const uint64_t ns = at_most(q->waited_ns, q->waiters * since_lead_ns(m, r));

	if (!d || ns <= d->queue_ns)
		return;
	d->queue = *q;
	d->queue_ns = ns;
	d->queue_at_ns = r->mono_ns;
}

/*
 * A question that is answered ends a silence, and the next one begins with a smaller value. A
 * server that was stopped answers only a little after it continues.
 */
void model_sessions_add_silence(struct model *m, const struct record_silence *silence)
{
	struct model_database *d;
	struct model_silence *s;

	for (uint32_t i = 0; i < m->sessions.count; i++)
		if (!silence->present || strcmp(m->sessions.list[i].target, silence->target) != 0)
			m->sessions.list[i].silence.now_ns = 0;
	d = silence->present ? get_database(&m->sessions, silence->target) : NULL;
	if (!d)
		return;
	s = &d->silence;
	s->was_stopped_now =
		silence->stopped || (silence->unanswered_ns > s->now_ns && s->was_stopped_now);
	s->now_ns = silence->unanswered_ns;
	if (silence->pid)
		d->server = model_who_of(silence->pid, silence->pid, silence->comm);
	if (*silence->cpu_limit)
		text_copy(s->cpu_limit, sizeof(s->cpu_limit), silence->cpu_limit);
	if (s->now_ns <= s->longest_ns)
		return;
	s->longest_ns = s->now_ns;
	s->until_ns = m->now_ns;
	s->is_stopped = s->was_stopped_now;
}

void model_sessions_add_connections(struct model *m, const struct record_connections *c,
	uint64_t interval_ns)
{
	struct model_database *d = c->present ? get_database(&m->sessions, c->target) : NULL;

	if (!d)
		return;
	d->connections = *c;
	d->connections_ns += interval_ns;
	d->connections_at_ns = m->now_ns;
	if (c->pid && !d->server.pid)
		d->server = model_who_of(c->pid, c->pid, c->comm);
}

/* It may be answered before the first sample of the incident. */
void model_sessions_add_trigger(struct model *m, const struct record_trigger *trigger)
{
	struct record_silence silence = { .present = true };

	if (strcmp(trigger->rule, "sql_unanswered") != 0)
		return;
	silence.unanswered_ns = to_u64(trigger->value * NSEC_PER_SEC);
	text_copy(silence.target, sizeof(silence.target), trigger->subject);
	model_sessions_add_silence(m, &silence);
}

bool model_sessions_is_only(const struct model_sessions *sessions, const struct model_database *d)
{
	for (uint32_t i = 0; i < sessions->count; i++) {
		const struct model_database *other = &sessions->list[i];

		if (other->server.pid && other->server.pid != d->server.pid &&
			((d->kind && other->kind == d->kind) ||
				(*d->server.comm &&
					strcmp(other->server.comm, d->server.comm) == 0)))
			return false;
	}
	return true;
}

/* Where sessions are threads, another process of that name is another server. */
static bool is_one_process(const struct model_database *d)
{
	return d->server.pid &&
		(d->kind == RECORD_SERVER_mariadb || d->kind == RECORD_SERVER_mysql);
}

bool model_sessions_is_name_of(const struct model_sessions *sessions,
	const struct model_database *d, const char *comm)
{
	return *comm && strcmp(d->server.comm, comm) == 0 && !is_one_process(d) &&
		model_sessions_is_only(sessions, d);
}

const struct model_database *model_sessions_find_server(const struct model_sessions *sessions,
	int32_t pid)
{
	for (uint32_t i = 0; pid > 0 && i < sessions->count; i++)
		if (sessions->list[i].server.pid == pid)
			return &sessions->list[i];
	return NULL;
}
