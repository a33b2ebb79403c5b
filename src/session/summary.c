/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has the probes write their own lines each second and before `close`, and adds names to them. */
#include <string.h>

#include "enrich/enrich.h"
#include "enrich/waits.h"
#include "probes/offcpu.h"
#include "session/internal.h"
#include "watch/watch.h"
#include "util/clock.h"
#include "util/text.h"

static struct record *begin_line(void *userdata, enum record_type type)
{
	return session_begin_line(userdata, type);
}

/* What only the kernel has a name for keeps that. */
static void name_disk(const struct enrich *e, uint32_t major, uint32_t minor, char *name,
	size_t size)
{
	char known[RECORD_DISK_NAME_SIZE];

	enrich_device(e, major, minor, known, sizeof(known));
	if (*known)
		text_copy(name, size, known);
}

static void name_device(const struct session *s, const struct probe_line_names *names,
	struct record_device *d)
{
	const struct enrich *e = s->o.enrich;

	name_disk(e, d->dev.major, d->dev.minor, d->dev_name, sizeof(d->dev_name));
	enrich_below(e, d->dev.major, d->dev.minor, d->below, sizeof(d->below));
	if (names->path_in_fs)
		enrich_path_in_fs(e, names->fs_major, names->fs_minor, d->oldest.path,
			sizeof(d->oldest.path));
}

/* Without a text each session has one of its own. */
static uint64_t key_of(const struct sql_session_view *view)
{
	return view->key ? view->key : view->connection_id << 1 | 1;
}

/* What the server itself does has a role, and a statement only if it tells one. */
static bool find_view(const struct session *s, int32_t tid, struct sql_session_view *ret_view)
{
	return sql_find_thread(s->o.sql, tid, ret_view) &&
		(!ret_view->background || *ret_view->text);
}

static void find_statement(void *userdata, int32_t pid, int32_t tid,
	struct probe_statement *ret_statement)
{
	const struct session *s = userdata;
	struct sql_session_view view;

	(void)pid;
	if (!s->o.sql)
		return;
	ret_statement->leader = sql_leader(s->o.sql, tid);
	ret_statement->is_io_worker = sql_count_served(s->o.sql, tid) > 0;
	if (find_view(s, ret_statement->leader, &view))
		ret_statement->key = key_of(&view);
}

static uint32_t largest(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t ab = a > b ? a : b;

	return ab > c ? ab : c;
}

/* The thread is one that worked on it. */
static void name_statement(const struct session *s, int32_t tid, struct record_io_statement *st)
{
	const int32_t leader = sql_leader(s->o.sql, tid);
	struct sql_session_view view;

	if (!find_view(s, leader, &view))
		return;
	text_copy(st->user, sizeof(st->user),
		view.background ? sql_find_role(s->o.sql, leader) : view.user);
	text_copy(st->database, sizeof(st->database), view.database);
	text_copy(st->text, sizeof(st->text), view.text);
	st->connection_id = view.connection_id;
	st->elapsed_ns = view.elapsed_ns;
	st->start_mono_ns = view.started_ns;
	/* More may have run it at once than did a part of this load that was seen. */
	st->sessions = largest(st->sessions, view.alike, sql_count_served(s->o.sql, tid));
}

/* A server that is starting tells nobody what its processes are for, but they have titles. */
static const char *find_role(const struct session *s, const struct record_io_by *b)
{
	const char *role = sql_find_role_of(s->o.sql, b->pid, b->tid, b->comm);

	if (*role || strcmp(b->comm, "postgres") != 0)
		return role;
	return enrich_find_role(s->o.enrich, b->pid, s->incident.trigger_ns);
}

static void name_io_by(const struct session *s, const struct probe_line_names *names,
	struct record_io_by *b)
{
	const struct enrich *e = s->o.enrich;

	name_disk(e, b->dev.major, b->dev.minor, b->dev_name, sizeof(b->dev_name));
	enrich_unit(names->cgroup_names, b->unit, sizeof(b->unit));
	if (names->path_in_fs &&
		enrich_path_in_fs(e, names->fs_major, names->fs_minor, b->path, sizeof(b->path)))
		b->path_truncated = false;
	text_copy(b->relation, sizeof(b->relation), sql_find_relation(s->o.sql, b->path));
	if (b->by == RECORD_BY_thread)
		text_copy(b->role, sizeof(b->role), find_role(s, b));
	if (b->statement.present)
		name_statement(s, b->tid, &b->statement);
	/* Who works for a session of PostgreSQL is another process. */
	if (b->by == RECORD_BY_statement && sql_leader(s->o.sql, b->tid) != b->tid)
		b->pid = b->tid = sql_leader(s->o.sql, b->tid);
}

static void name_offcpu(struct session *s, const struct probe_line_names *names,
	struct record_offcpu *o)
{
	if (o->pid) {
		watch_copy_comm(s->o.watch, o->pid, o->process, sizeof(o->process));
		enrich_process(s->o.enrich, o->pid, names->process_start_ns, o->exe, o->unit);
	}
	if (names->kernel_len > 0)
		enrich_kernel_stack(s->o.enrich, names->kernel, names->kernel_len, true, o->kstack);
	o->waits_for = waits_for(o->kstack);
	if (names->waker_len > 0)
		enrich_kernel_stack(s->o.enrich, names->waker, names->waker_len, false,
			o->waker.kstack);
	if (waits_is_interrupt(o->waker.kstack)) {
		o->waker.interrupt = true;
		o->waker.pid = o->waker.tid = 0;
		o->waker.comm[0] = '\0';
	}
}

static void ask_stack(void *userdata, uint32_t tid, uint64_t off_ns)
{
	const struct stack_request request = { off_ns, tid, SESSION_STACK_OF_OFFCPU };
	struct session *s = userdata;

	if (s->stacks && stack_reader_has_room(s->stacks))
		stack_reader_ask(s->stacks, &request, clock_mono_ns());
}

static void write_line(void *userdata, const struct probe_line_names *names)
{
	struct session *s = userdata;
	struct record *r = &s->record;

	if (r->type == RECORD_DEVICE) {
		name_device(s, names, &r->device);
		tally_add_device(&s->tally, &r->device);
	} else if (r->type == RECORD_IO_BY)
		name_io_by(s, names, &r->io_by);
	else if (r->type == RECORD_OFFCPU)
		name_offcpu(s, names, &r->offcpu);
	else if (r->type == RECORD_JOURNAL)
		enrich_device(s->o.enrich, r->journal.dev.major, r->journal.dev.minor,
			r->journal.dev_name, sizeof(r->journal.dev_name));
	session_write_line(s);
}

static struct probe_report make_report(struct session *s, bool whole, bool final)
{
	return (struct probe_report){
		.now_ns = clock_mono_ns(),
		.attached_ns = s->attached_ns,
		.final = final,
		.whole = whole,
		.account_full = &s->incident.account_full,
		.userdata = s,
		.begin = begin_line,
		.write = write_line,
		.find_statement = find_statement,
		.ask_stack = ask_stack,
	};
}

void session_ask_offcpu_stacks(struct session *s)
{
	const struct probe_report report = make_report(s, false, false);

	/* Else another thread may be attaching it, and clears its tables first. */
	if (s->probes.attached[CONFIG_PROBE_offcpu])
		offcpu_ask_stacks(&s->probes.probes[CONFIG_PROBE_offcpu], &report);
}

void session_summarize(struct session *s, bool whole, bool final)
{
	const struct probe_report report = make_report(s, whole, final);

	probe_set_summarize(&s->probes, &report);
}
