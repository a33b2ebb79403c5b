/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says a finding as parts, each with its numbers and its basis. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/clock.h"
#include "verdict/figures.h"
#include "verdict/journal.h"
#include "verdict/words.h"

#define MEMORY_FULL_PCT 10

static struct record_verdict_part *add_part(struct record_verdict *r, enum record_what what,
	enum record_basis basis, struct text *ret_text)
{
	struct record_verdict_part *part;

	/* No verdict has so many. */
	part = &r->parts[r->parts_count < RECORD_PARTS_MAX ? r->parts_count++
							   : RECORD_PARTS_MAX - 1];
	part->what = what;
	part->basis = basis;
	part->share_pct = part->util_pct = part->await_ms = part->queue = NAN;
	*ret_text = TEXT_ON(part->text);
	text_reset(ret_text);
	return part;
}

static void set_who(struct record_verdict_part *part, const struct verdict_who *who)
{
	part->pid = who->pid;
	part->tid = who->tid;
	text_copy(part->comm, sizeof(part->comm), who->comm);
}

static void add_device_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_device *d = v->device;
	struct record_verdict_part *part;
	struct text t;

	part = add_part(r, RECORD_WHAT_device, RECORD_BASIS_measured, &t);
	verdict_add_device(&t, d);
	text_add(&t, ": ");
	if (d->sampled) {
		verdict_add_figures(&t, d);
		part->util_pct = d->util_max_pct;
		part->await_ms = verdict_await_of(d);
		part->queue = verdict_queue_of(d);
	} else {
		text_add(&t, "not sampled");
	}
	if (d->no_completion_ns > 0) {
		text_add(&t, ", no completions for ");
		record_add_duration(&t, d->no_completion_ns);
		part->longest_ns = d->no_completion_ns;
	}
	if (!d->has_totals)
		return;
	text_add(&t, ", ");
	text_add_count(&t, d->requests, "request", "requests");
	text_add(&t, " that waited in the queue up to ");
	record_add_duration(&t, d->queue_time.max_ns);
	text_add(&t, " and took the device up to ");
	record_add_duration(&t, d->device_time.max_ns);
	part->requests = d->requests;
	part->bytes = d->read_bytes + d->write_bytes;
}

static void add_cause_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_wait_facts *w = &v->f->waits[VERDICT_WAIT_frozen];
	struct record_verdict_part *part;
	struct text t;

	if (!verdict_is_frozen_below(v->f, v->device))
		return;
	part = add_part(r, RECORD_WHAT_cause, RECORD_BASIS_inferred, &t);
	text_add(&t, "kernel thread ");
	verdict_add_who(&t, &w->kernel);
	text_add(&t, " waited ");
	record_add_duration(&t, w->kernel_longest_ns);
	text_add(&t, " for a frozen file system");
	set_who(part, &w->kernel);
	part->longest_ns = w->kernel_longest_ns;
}

static void add_file_server_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_file_server *server =
		v->device ? NULL : verdict_find_file_server(v->f, v->wait);
	struct record_verdict_part *part;
	struct text t;

	if (!server)
		return;
	part = add_part(r, RECORD_WHAT_cause,
		server->inferred ? RECORD_BASIS_inferred : RECORD_BASIS_measured, &t);
	verdict_add_file_server(server, &t);
	set_who(part, &server->who);
	part->tid = 0;
}

static void add_culprit_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	part = add_part(r, v->culprit_is_most ? RECORD_WHAT_culprit : RECORD_WHAT_largest,
		v->culprit->inferred || verdict_is_probable(v) ? RECORD_BASIS_inferred
							       : RECORD_BASIS_measured,
		&t);
	verdict_add_culprit(v, &t);
	verdict_add_untraced(v, &t);
	set_who(part, &v->culprit->who);
	/* `who` has the id of the first thread: the process as a whole is meant. */
	if (v->culprit_by != VERDICT_BY_THREAD)
		part->tid = 0;
	text_copy(part->path, sizeof(part->path), v->file);
	text_copy(part->relation, sizeof(part->relation), v->relation);
	part->share_pct = verdict_culprit_pct(v);
	part->bytes = v->culprit->bytes;
	for (unsigned int i = 0; i < VERDICT_KINDS; i++)
		part->requests += v->culprit->requests[i];
}

/* What its file did is measured, not that it is what filled the file system. */
static void add_writer_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_full *full = &v->f->full;
	struct record_verdict_part *part;
	struct text t;

	part = add_part(r, RECORD_WHAT_largest, RECORD_BASIS_inferred, &t);
	verdict_add_writer(v, &t);
	set_who(part, &full->writer);
	part->tid = 0;
	text_copy(part->path, sizeof(part->path), full->path);
	text_copy(part->relation, sizeof(part->relation), v->relation);
	part->bytes = full->grown_bytes ? full->grown_bytes : full->written_bytes;
}

/*
 * The load is that of the whole incident. A statement that began after the trigger may have caused
 * only a part of it, so it is inferred; as it is when another thread did the work.
 */
static void add_statement_part(const struct verdict_finding *v, const struct verdict_statement *s,
	struct record_verdict *r)
{
	bool measured = !s->likely && s->started_ns + verdict_start_error_ns(s) <= v->f->trigger_ns;
	struct record_verdict_part *part;
	struct text t;

	part = add_part(r, RECORD_WHAT_statement,
		measured ? RECORD_BASIS_measured : RECORD_BASIS_inferred, &t);
	verdict_add_statement(&t, s, true);
	part->longest_ns = s->elapsed_ns;
}

static void add_victims_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_waiter *first = v->first_victim;
	struct record_verdict_part *part;
	struct text t;

	if (v->victims == 0)
		return;
	part = add_part(r, RECORD_WHAT_victims, RECORD_BASIS_measured, &t);
	part->total_ns = v->victims_ns;
	part->threads = v->victims;
	part->longest_ns = v->victims_longest_ns;
	if (verdict_is_mutex(v)) {
		verdict_add_mutex_waiters(v->mutex, &t);
		part->pid = v->mutex->process.pid;
		text_copy(part->comm, sizeof(part->comm), v->mutex->process.comm);
		return;
	}
	text_addf(&t, "%s[%" PRId32 "/%" PRId32 "] waited ", first->comm, first->pid, first->tid);
	if (v->victims > 1 || v->f->waiters_left_out > 0)
		text_addf(&t, "the longest of %s%u threads, ",
			v->f->waiters_left_out ? "at least " : "", v->victims);
	record_add_duration(&t, first->longest_ns);
	text_addf(&t, " for %s", verdict_wait_name(first->wait));
	part->pid = first->pid;
	part->tid = first->tid;
	text_copy(part->comm, sizeof(part->comm), first->comm);
}

static void add_second_part(const struct verdict_finding *second, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (!second)
		return;
	part = add_part(r, RECORD_WHAT_second, second->rule->basis, &t);
	verdict_add_finding(second, &t);
	part->threads = second->victims;
	part->longest_ns = second->victims_longest_ns;
	part->total_ns = second->victims_ns;
}

/* Who holds the lock is the culprit, unless it may be several. */
static void add_holder_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_holder *h = &v->f->queue.holder;
	struct record_verdict_part *part;
	struct text t;

	if (!verdict_is_queue(v) || !h->connection_id || h->candidates > 1)
		return;
	part = add_part(r, RECORD_WHAT_culprit,
		h->candidates ? RECORD_BASIS_inferred : RECORD_BASIS_measured, &t);
	verdict_add_holder(&t, h);
	set_who(part, &h->who);
	part->longest_ns = h->elapsed_ns;
	if (!*h->text)
		return;
	part = add_part(r, RECORD_WHAT_statement,
		h->candidates ? RECORD_BASIS_inferred : RECORD_BASIS_measured, &t);
	text_add(&t, h->idle ? "its last statement was \"" : "it ran \"");
	verdict_add_text(&t, h->text);
	text_add(&t, "\"");
}

static void add_kernel_lock_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_kernel_lock *l = verdict_find_lock(v->f);
	struct record_verdict_part *part;
	struct text t;

	if (!verdict_is_kernel_lock(v) || !l->holder.tid)
		return;
	part = add_part(r, RECORD_WHAT_culprit, RECORD_BASIS_measured, &t);
	verdict_add_lock_holder(l, &t);
	set_who(part, &l->holder);
	text_copy(part->path, sizeof(part->path), l->path);
	part->longest_ns = l->held_ns;
}

static void add_mutex_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (!verdict_is_mutex(v))
		return;
	part = add_part(r, RECORD_WHAT_culprit, RECORD_BASIS_measured, &t);
	verdict_add_mutex_holder(v->mutex, &t);
	set_who(part, &v->mutex->holder);
	part->longest_ns = v->mutex->held_ns;
}

/* Who debugs it stops it. */
static void add_stopped_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_stopped *s = &v->f->stopped;
	struct record_verdict_part *part;
	struct text t;

	if (!verdict_is_about_stopped(v))
		return;
	part = add_part(r, s->tracer.pid ? RECORD_WHAT_culprit : RECORD_WHAT_cause,
		RECORD_BASIS_measured, &t);
	verdict_add_stopped(s, &t);
	set_who(part, s->tracer.pid ? &s->tracer : &s->who);
	part->tid = 0;
	part->threads = s->threads;
	part->longest_ns = s->longest_ns;
}

static void add_lock_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (!verdict_has_queue(v->f))
		return;
	part = add_part(r, RECORD_WHAT_lock, RECORD_BASIS_measured, &t);
	verdict_add_queue(v, &t);
	part->threads = v->f->queue.waiters;
	part->longest_ns = v->f->queue.longest_ns;
}

static void add_journal_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_journal *journal = verdict_find_journal(v);
	struct record_verdict_part *part;
	struct text t;

	if (!journal)
		return;
	part = add_part(r, RECORD_WHAT_journal, RECORD_BASIS_measured, &t);
	verdict_add_journal(v, journal, &t);
	set_who(part, &journal->who);
	part->longest_ns = journal->at_least_ns > journal->longest_ns ? journal->at_least_ns
								      : journal->longest_ns;
	part->share_pct = journal->who.pid ? journal->share_pct : NAN;
}

/* Whether the thread is a victim although it waited before the incident. */
static bool is_early_victim(const struct verdict_finding *v, int32_t tid)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (v->f->waiters[i].early && v->f->waiters[i].tid == tid)
			return verdict_has_row(&v->concerned, i);
	return false;
}

static void add_earlier_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_earlier *e = &v->f->earlier;
	uint32_t threads = e->threads > v->early ? e->threads - v->early : 0;
	struct record_verdict_part *part;
	struct text t;

	if (threads == 0 || v->f->noted == 0)
		return;
	part = add_part(r, RECORD_WHAT_earlier, RECORD_BASIS_measured, &t);
	text_add_count(&t, threads, "thread was", "threads were");
	text_add(&t, " blocked long before the incident");
	part->threads = threads;
	if (is_early_victim(v, e->who.tid))
		return;
	text_add(&t, ": ");
	verdict_add_who(&t, &e->who);
	text_add(&t, " for ");
	record_add_duration(&t, e->longest_ns);
	if (e->path[0] != '\0') {
		text_add(&t, ", ");
		verdict_add_path(&t, e->path);
	}
	set_who(part, &e->who);
	text_copy(part->path, sizeof(part->path), e->path);
	part->longest_ns = e->longest_ns;
}

static void add_database_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (!v->unresponsive)
		return;
	part = add_part(r, RECORD_WHAT_database, RECORD_BASIS_measured, &t);
	verdict_add_unresponsive(v->unresponsive, &t);
	set_who(part, &v->unresponsive->server);
	part->longest_ns = v->unresponsive->longest.ns;
}

static void add_short_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (v->rule->class != RECORD_CLASS_memory || !v->device)
		return;
	part = add_part(r, RECORD_WHAT_memory, RECORD_BASIS_measured, &t);
	verdict_add_memory(v, &t, &part->bytes, &part->share_pct);
}

/*
 * Memory pressure loads the disks with pages that are evicted and read again, so this part goes
 * with every verdict.
 */
static void add_memory_part(const struct verdict_facts *f, struct record_verdict *r)
{
	struct text t;

	if (f->memory_full_max_pct < MEMORY_FULL_PCT)
		return;
	add_part(r, RECORD_WHAT_memory, RECORD_BASIS_measured, &t);
	text_add(&t, "all non-idle tasks were stalled on memory for up to ");
	verdict_add_pct(&t, f->memory_full_max_pct);
	text_add(&t, " of the time (PSI memory full)");
}

static void add_killed_part(const struct verdict_facts *f, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (f->killed == 0)
		return;
	part = add_part(r, RECORD_WHAT_killed, RECORD_BASIS_measured, &t);
	verdict_add_killed(f, &t);
	set_who(part, &f->killed_who);
	part->tid = 0;
}

static void add_kernel_part(const struct verdict_facts *f, struct record_verdict *r)
{
	struct text t;

	if (f->kernel_lines == 0)
		return;
	add_part(r, RECORD_WHAT_kernel, RECORD_BASIS_measured, &t);
	text_add(&t, "the kernel logged ");
	text_add_count(&t, f->kernel_lines, "line", "lines");
	text_add(&t, " about storage; the first: ");
	text_add(&t, f->kernel_text);
}

/* A database that reads in threads of its own does not tell for which statement it reads. */
static void add_missing_statement(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct record_verdict *r)
{
	struct text t;

	/* A thread that has a role runs no statement. */
	if (!sql || !verdict_is_named(v) || *v->culprit_role ||
		!sql->is_server(sql->userdata, v->culprit->who.pid))
		return;
	add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
	text_add(&t, "it is not known which statement caused the I/O: ");
	text_add(&t,
		v->culprit_by == VERDICT_BY_THREAD
			? "no statement is known for the thread that did it"
			: "no thread of the server did half of it");
}

static void add_why_no_writer(enum record_search search, struct text *t)
{
	text_add(t, "it is not known who wrote there: ");
	if (search == RECORD_SEARCH_timed_out)
		text_add(t, "the search among the files that processes have open did not end");
	else if (search == RECORD_SEARCH_cut_off)
		text_add(t,
			"not all open files were looked at, and none of the others was open for "
			"writing and had been changed in the last minute");
	else
		text_add(t,
			"no file was open for writing that had been changed in the last minute");
}

static bool is_fuse_without_process(const struct verdict_finding *v)
{
	const struct verdict_file_server *server = verdict_find_file_server(v->f, v->wait);

	return v->wait == VERDICT_WAIT_server && !v->device &&
		v->f->waits[v->wait].waits_for == RECORD_CAUSE_fuse_server &&
		(!server || !server->who.pid);
}

static void add_missing_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct text t;

	if (v->rule->class == RECORD_CLASS_unknown) {
		add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
		verdict_add_missing(v->f, &t);
	} else if (verdict_is_queue(v) && !v->f->queue.holder.connection_id) {
		add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
		if (v->f->queue.lock == RECORD_LOCK_replica) {
			text_add(&t, "it is not known why the replica did not confirm");
			return;
		}
		text_add(&t, "the database does not say who holds the lock");
		/* Of other locks it always tells, or it is no such server. */
		if (v->f->queue.lock == RECORD_LOCK_metadata ||
			v->f->queue.lock == RECORD_LOCK_flush ||
			v->f->queue.lock == RECORD_LOCK_backup)
			text_add(&t,
				"; MariaDB and MySQL tell it with performance_schema and its "
				"instrument wait/lock/metadata/sql/mdl");
	} else if (v->rule->class == RECORD_CLASS_unanswered && !v->unresponsive->longest.stopped) {
		add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
		text_add(&t, "it is not known why the database did not answer");
	} else if (v->rule->class == RECORD_CLASS_full) {
		if (v->culprit || v->f->full.writer.pid)
			return;
		add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
		add_why_no_writer(v->f->full.search, &t);
	} else if (v->rule->blames && !v->culprit && v->rule->class != RECORD_CLASS_throttled) {
		add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
		text_add(&t,
			v->device->has_totals
				? "it is not known who loaded the device: no process that trace.* selects did"
				: "it is not known who loaded the device: its requests were not traced");
	} else if (verdict_is_kernel_lock(v) && verdict_find_lock(v->f)->holder.tid) {
		return;
	} else if (v->wait == VERDICT_WAIT_lock && !v->device) {
		add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
		text_add(&t, "it is not known who holds the lock");
	} else if (is_fuse_without_process(v)) {
		add_part(r, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t);
		text_add(&t, "it is not known which process serves the FUSE file system");
	}
}

/* It stands last, and is left out where there is no more room. */
static void add_alternative_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (!v || r->parts_count == RECORD_PARTS_MAX)
		return;
	part = add_part(r, RECORD_WHAT_alternative, v->rule->basis, &t);
	verdict_add_finding(v, &t);
	text_add(&t, "; all waits together ");
	record_add_duration(&t, verdict_cost_of(v));
	part->threads = v->victims;
	part->longest_ns = v->victims_longest_ns;
	part->total_ns = verdict_cost_of(v);
}

void verdict_add_parts(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, const struct verdict_statement *statement,
	struct record_verdict *ret_verdict)
{
	if (v->device) {
		ret_verdict->dev.major = v->device->major;
		ret_verdict->dev.minor = v->device->minor;
		text_copy(ret_verdict->dev_name, sizeof(ret_verdict->dev_name), v->device->name);
		add_device_part(v, ret_verdict);
	} else if (v->wait < VERDICT_WAIT_COUNT) {
		ret_verdict->waits_for = v->f->waits[v->wait].waits_for;
	}
	add_cause_part(v, ret_verdict);
	add_file_server_part(v, ret_verdict);
	add_short_part(v, ret_verdict);
	if (v->culprit)
		add_culprit_part(v, ret_verdict);
	else if (v->rule->class == RECORD_CLASS_full && v->f->full.writer.pid)
		add_writer_part(v, ret_verdict);
	if (statement)
		add_statement_part(v, statement, ret_verdict);
	add_holder_part(v, ret_verdict);
	add_kernel_lock_part(v, ret_verdict);
	add_mutex_part(v, ret_verdict);
	add_stopped_part(v, ret_verdict);
	add_lock_part(v, ret_verdict);
	add_journal_part(v, ret_verdict);
	add_victims_part(v, ret_verdict);
	add_second_part(second, ret_verdict);
	add_earlier_part(v, ret_verdict);
	add_database_part(v, ret_verdict);
	add_memory_part(v->f, ret_verdict);
	add_killed_part(v->f, ret_verdict);
	add_kernel_part(v->f, ret_verdict);
	add_missing_part(v, ret_verdict);
	if (!statement)
		add_missing_statement(v, sql, ret_verdict);
	add_alternative_part(v->alternative, ret_verdict);
}
