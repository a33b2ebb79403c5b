/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the `verdict` line, which sums up all other lines. */
#include <stdio.h>
#include <string.h>

#include "session/internal.h"
#include "sql/locks.h"
#include "sql/sql.h"
#include "verdict/programs.h"
#include "verdict/verdict.h"
#include "watch/thread_status.h"

void session_note_unresponsive(struct session *s, unsigned int target, const struct sql_evidence *e)
{
	struct verdict_unresponsive unresponsive = { .ns = e->in_session ? e->unanswered_ns : 0 };
	struct verdict_who server = { .pid = e->server_pid };
	struct watch_thread_status status;

	if (unresponsive.ns && server.pid &&
		thread_status_read(s->procfs_fd, server.pid, &status) == 0) {
		unresponsive.stopped = status.state == 'T' || status.state == 't';
		text_copy(server.comm, sizeof(server.comm), status.comm);
	}
	verdict_note_unresponsive(&s->facts, target, e->target, &server, &unresponsive);
}

/* Its thread, which the lines of operations name, too; else the server. */
static struct verdict_who holder_of(const struct session *s, const struct sql_evidence *e,
	const struct sql_session_view *view)
{
	struct verdict_who who = { .pid = e->server_pid, .tid = view->tid };

	if (e->sessions_are_processes && view->tid)
		who.pid = view->tid;
	if (who.pid)
		(void)thread_comm_read(s->procfs_fd, who.pid, who.comm, sizeof(who.comm));
	return who;
}

static void set_holder(const struct session *s, const struct sql_evidence *e,
	const struct sql_queue *q, struct verdict_holder *holder)
{
	holder->connection_id = q->holder.connection_id;
	holder->who = holder_of(s, e, &q->holder);
	holder->idle = q->holder.idle;
	holder->elapsed_ns = q->holder.elapsed_ns;
	holder->transaction_ns = q->holder.transaction_ns;
	holder->candidates = q->candidates;
	text_copy(holder->user, sizeof(holder->user), q->holder.user);
	text_copy(holder->text, sizeof(holder->text), q->holder.text);
}

void session_note_queue(struct session *s, const struct sql_evidence *e)
{
	struct verdict_queue queue = { 0 };
	struct sql_queue q;

	if (!e->current || !sql_find_queue(e->current, &q))
		return;
	text_copy(queue.target, sizeof(queue.target), e->target);
	queue.waiters = q.waiters;
	queue.longest_ns = q.longest_ns;
	queue.waited_ns = q.waited_ns;
	queue.answered_ns = e->current->answered_ns;
	queue.lock = q.lock;
	text_copy(queue.object, sizeof(queue.object), q.object);
	if (q.has_holder)
		set_holder(s, e, &q, &queue.holder);
	queue.behind_first = q.behind_first;
	if (q.behind_first) {
		queue.first_id = q.first.connection_id;
		text_copy(queue.first_text, sizeof(queue.first_text), q.first.text);
	}
	verdict_note_queue(&s->facts, &queue);
}

/* A thread without a client is known by what it does: "the replica applier". */
static void set_statement(const struct session *s, const struct sql_session_view *view,
	struct verdict_statement *ret_statement)
{
	const char *role = view->background && view->tid ? sql_find_role(s->o.sql, view->tid) : "";

	if (*role)
		snprintf(ret_statement->user, sizeof(ret_statement->user), "the %s", role);
	else
		text_copy(ret_statement->user, sizeof(ret_statement->user), view->user);
	text_copy(ret_statement->database, sizeof(ret_statement->database), view->database);
	text_copy(ret_statement->text, sizeof(ret_statement->text), view->text);
	ret_statement->elapsed_ns = view->elapsed_ns;
	ret_statement->started_ns = view->started_ns;
	ret_statement->moved_bytes = view->moved_bytes;
	ret_statement->tid = view->tid;
}

/* A PostgreSQL backend is a process, so the load of the process is that of its statement, too. */
static bool find_statement(void *userdata, int32_t pid, int32_t tid,
	struct verdict_statement *ret_statement)
{
	const struct session *s = userdata;
	struct sql_session_view view;

	/* What the server itself does has a role, and a statement only if it tells one. */
	if (!sql_find_thread(s->o.sql, tid ? tid : pid, &view) || (view.background && !*view.text))
		return false;
	set_statement(s, &view, ret_statement);
	return true;
}

static bool find_busiest(void *userdata, int32_t pid, struct verdict_statement *ret_statement)
{
	const struct session *s = userdata;
	struct sql_session_view view;

	if (!sql_find_busiest(s->o.sql, pid, &view))
		return false;
	set_statement(s, &view, ret_statement);
	return true;
}

static bool is_server(void *userdata, int32_t pid)
{
	const struct session *s = userdata;

	return sql_is_server(s->o.sql, pid);
}

static int32_t leader_of(void *userdata, int32_t tid)
{
	const struct session *s = userdata;

	return sql_leader(s->o.sql, tid);
}

static uint32_t count_served(void *userdata, int32_t tid)
{
	const struct session *s = userdata;

	return sql_count_served(s->o.sql, tid);
}

static const char *find_role(void *userdata, int32_t pid, int32_t tid)
{
	const struct session *s = userdata;

	return sql_find_role(s->o.sql, tid ? tid : pid);
}

static const char *find_relation(void *userdata, const char *path)
{
	const struct session *s = userdata;

	return sql_find_relation(s->o.sql, path);
}

static uint32_t count_others(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	const struct session *s = userdata;

	return sql_count_others(s->o.sql, tid, ret_longest_ns);
}

static bool is_counted(void *userdata, int32_t tid)
{
	const struct session *s = userdata;

	return sql_is_counted(s->o.sql, tid);
}

static uint64_t statement_key(void *userdata, int32_t tid)
{
	const struct session *s = userdata;
	struct sql_session_view view;

	if (!sql_find_thread(s->o.sql, tid, &view) || view.background)
		return 0;
	return sql_text_key(view.text);
}

static uint32_t count_alike(void *userdata, int32_t tid)
{
	const struct session *s = userdata;

	return sql_count_alike(s->o.sql, tid);
}

/* As long as the verdict takes for a database that does not answer. */
#define DATABASE_NS (2 * NSEC_PER_SEC)

/* Rules about the same open no other incident for some time. */
static void note_cause(struct session *s, const struct record_verdict *v)
{
	cooldown_note_disk(&s->cooldown, v->dev_name);
	if (v->class == RECORD_CLASS_locked)
		cooldown_note_subject(&s->cooldown, s->facts.queue.target);
	for (unsigned int i = 0; i < VERDICT_LOCKS_MAX; i++)
		if (s->facts.locks[i].kind == RECORD_KERNEL_LOCK_mutex)
			cooldown_note_subject(&s->cooldown, s->facts.locks[i].process.comm);
	for (unsigned int i = 0; i < CONFIG_SQL_TARGETS_MAX; i++)
		if (s->facts.databases[i].longest.ns >= DATABASE_NS)
			cooldown_note_subject(&s->cooldown, s->facts.databases[i].target);
}

void session_write_verdict(struct session *s)
{
	const struct verdict_sql sql = {
		.userdata = s,
		.find_statement = find_statement,
		.find_busiest = find_busiest,
		.is_server = is_server,
		.leader_of = leader_of,
		.count_served = count_served,
		.find_role = find_role,
		.find_relation = find_relation,
		.statement_key = statement_key,
		.count_alike = count_alike,
		.count_others = count_others,
		.is_counted = is_counted,
	};

	struct record_verdict *v = &session_begin_line(s, RECORD_VERDICT)->verdict;
	struct session_verdict *last = &s->last_verdict;

	verdict_name_programs(&s->facts);
	verdict_decide(&s->facts, s->o.sql ? &sql : NULL, v);
	memcpy(last->incident, s->incident.id, sizeof(last->incident));
	last->class = v->class;
	text_copy(last->message, sizeof(last->message), v->message);
	note_cause(s, v);
	session_write_line(s);
}
