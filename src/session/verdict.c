/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line of a record that says what was wrong, from what all others said. */
#include "session/internal.h"
#include "snapshot/thread.h"
#include "sql/sql.h"
#include "verdict/verdict.h"

void session_note_facts(struct session *s)
{
	const struct record *r = &s->record;

	switch (r->type) {
	case RECORD_SAMPLE:
		verdict_note_sample(&s->facts, &r->sample);
		break;
	case RECORD_STALL:
	case RECORD_STUCK:
		verdict_note_operation(&s->facts, &r->operation, r->type == RECORD_STALL);
		break;
	case RECORD_DEVICE:
		verdict_note_device(&s->facts, &r->device);
		break;
	case RECORD_IO_BY:
		verdict_note_io_by(&s->facts, &r->io_by);
		break;
	case RECORD_KERNEL:
		verdict_note_kernel(&s->facts, &r->kernel);
		break;
	default:
		break;
	}
}

void session_note_silence(struct session *s, unsigned int target, const struct sql_evidence *e)
{
	struct verdict_silence silence = { .ns = e->in_session ? e->unanswered_ns : 0 };
	struct verdict_who server = { .pid = e->server_pid };
	struct watch_thread_stat stat;

	if (silence.ns && server.pid && thread_read_stat(s->procfs_fd, server.pid, &stat) == 0) {
		silence.stopped = stat.state == 'T' || stat.state == 't';
		text_copy(server.comm, sizeof(server.comm), stat.comm);
	}
	verdict_note_silence(&s->facts, target, e->target, &server, &silence);
}

/* A backend of PostgreSQL is a process: its load as a whole is that of its statement, too. */
static bool find_statement(void *userdata, int32_t pid, int32_t tid,
	struct verdict_statement *ret_statement)
{
	const struct session *s = userdata;
	struct sql_session_view view;

	if (!sql_find_thread(s->o.sql, tid ? tid : pid, &view))
		return false;
	text_copy(ret_statement->user, sizeof(ret_statement->user), view.user);
	text_copy(ret_statement->database, sizeof(ret_statement->database), view.database);
	text_copy(ret_statement->text, sizeof(ret_statement->text), view.text);
	ret_statement->elapsed_ns = view.elapsed_ns;
	ret_statement->started_ns = view.started_ns;
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

static uint32_t count_others(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	const struct session *s = userdata;

	return sql_count_others(s->o.sql, tid, ret_longest_ns);
}

void session_write_verdict(struct session *s)
{
	const struct verdict_sql sql = {
		.userdata = s,
		.find_statement = find_statement,
		.is_server = is_server,
		.leader_of = leader_of,
		.count_others = count_others,
	};

	verdict_decide(&s->facts, s->o.sql ? &sql : NULL,
		&session_begin_line(s, RECORD_VERDICT)->verdict);
	session_write_line(s);
}
