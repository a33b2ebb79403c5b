/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Says a finding as a sentence. Names from outside are kept as they are: the code that writes them
 * to JSON, to a terminal or to a log escapes them.
 */
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/devices.h"
#include "verdict/figures.h"
#include "verdict/words.h"

/* A statement that moved less is not the reason of what its server does. */
#define LIKELY_BYTES (1 << 20)
#define LIKELY_PART 64

/* The sentences */

static void add_over_idle(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *below = verdict_find_idle_below(v->f, v->device);

	if (!below)
		return;
	text_add(t, ", but ");
	verdict_add_device(t, below);
	text_add(t, " below it was nearly idle (util at most ");
	verdict_add_pct(t, verdict_util_at_most(below));
	text_add(t,
		"), so its requests were held back in between: by a limit, a suspended device or "
		"the copying for a snapshot");
}

static void add_frozen_below(const struct verdict_finding *v, struct text *t)
{
	if (!verdict_is_frozen_below(v->f, v->device))
		return;
	text_add(t, "; a file system below it was probably frozen, because ");
	verdict_add_who(t, &v->f->waits[VERDICT_WAIT_frozen].kernel);
	text_add(t, " waited for a frozen one");
}

void verdict_say_full(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_full *full = &v->f->full;

	text_add(t, "file system ");
	text_add(t, full->mount);
	if (v->device) {
		text_add(t, " on ");
		verdict_add_device(t, v->device);
	}
	if (verdict_is_quite_full(v->f)) {
		text_add(t, full->inodes ? " had no inodes left" : " was full");
	} else {
		text_add(t, full->inodes ? " had " : " was ");
		verdict_add_pct(t, full->used_pct);
		text_add(t, full->inodes ? " of its inodes in use" : " full");
	}
	if (!full->inodes && v->device) {
		text_add(t, ", with ");
		record_add_size(t, full->free_bytes);
		text_add(t, " free");
	}
	if (v->culprit || full->writer.pid == 0)
		return;
	text_add(t, "; ");
	verdict_add_writer(v, t);
}

void verdict_say_hung(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *d = v->device;

	text_add(t, "device ");
	verdict_add_device(t, d);
	text_add(t, " hung: it completed nothing for ");
	record_add_duration(t, d->no_completion_ns);
	text_add(t, " with ");
	text_add_count(t, d->no_completion_in_flight, "request", "requests");
	text_add(t, " in flight");
	add_frozen_below(v, t);
}

/* The state is read with each sample. */
static void add_suspended(const struct verdict_device *d, struct text *t)
{
	verdict_add_device(t, d);
	text_add(t, " was suspended for about ");
	record_add_duration(t, d->suspended_ns);
}

void verdict_say_suspended(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "volume ");
	add_suspended(v->device, t);
	text_add(t,
		", so all I/O on it waited: its table was being changed, as for a snapshot, or it "
		"had lost all of its paths");
}

void verdict_say_frozen(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_wait_facts *w = &v->f->waits[VERDICT_WAIT_frozen];

	if (w->device >= 0) {
		text_add(t, "the file system on ");
		verdict_add_device(t, &v->f->devices[w->device]);
		text_add(t, " was frozen");
	} else {
		text_add(t, "a file system was frozen");
	}
	if (*w->path) {
		text_add(t, ", which blocked access to ");
		verdict_add_path(t, w->path);
	}
	if (w->device >= 0 && v->f->devices[w->device].suspended_ns > 0) {
		text_add(t, "; its volume ");
		add_suspended(&v->f->devices[w->device], t);
	}
}

void verdict_say_slow(const struct verdict_finding *v, struct text *t)
{
	double requests, bytes;

	verdict_device_rates(v->device, &requests, &bytes);
	text_add(t, "device ");
	verdict_add_device(t, v->device);
	if (verdict_is_slower_than_before(v->device, requests, bytes)) {
		text_addf(t,
			" was slow: each request took %.0f times as long as before, with no more",
			verdict_times_slower(v->device));
		text_add(t, " to do (");
	} else {
		text_add(t, " was slow although lightly loaded (");
	}
	verdict_add_figures(t, v->device);
	text_addf(t, requests >= 10 ? ", %.0f requests/s, " : ", %.1f requests/s, ", requests);
	record_add_size(t, (uint64_t)bytes);
	text_add(t, "/s)");
	add_over_idle(v, t);
	add_frozen_below(v, t);
}

void verdict_say_slow_at_times(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *d = v->device;

	text_add(t, "device ");
	verdict_add_device(t, d);
	text_add(t, " took up to ");
	record_add_duration(t, d->device_time.max_ns);
	text_add(t, " for a request, although it was not busy all the time");
	if (d->sampled) {
		text_add(t, " (util at most ");
		verdict_add_pct(t, verdict_util_at_most(d));
		text_add(t, ")");
	}
}

void verdict_say_saturated(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "device ");
	verdict_add_device(t, v->device);
	text_add(t, " was saturated for ");
	record_add_duration(t, v->device->busy.ns);
	text_add(t, " (");
	verdict_add_figures(t, v->device);
	text_add(t, ")");
	add_over_idle(v, t);
}

void verdict_say_delayed(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *d = v->device;

	text_add(t, "I/O was delayed before it reached the queue of device ");
	verdict_add_device(t, d);
	text_add(t, " (operations took up to ");
	record_add_duration(t, d->longest_ns);
	if (d->has_totals && d->requests > 0) {
		text_add(t, ", the device itself up to ");
		record_add_duration(t, d->device_time.max_ns);
	}
	text_add(t, ", util at most ");
	verdict_add_pct(t, verdict_util_at_most(d));
	text_add(t, "), probably by a cgroup I/O limit or a suspended device");
}

/* "control group /mysql was at its limit of 400 reads a second for device sda for 8.0 s" */
void verdict_say_io_limit(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_io_limit *l = verdict_find_io_limit(v->f, v->device);

	text_add(t, "control group ");
	text_add(t, l->path);
	text_add(t, " was at its limit of ");
	record_add_io_limit(t, l->kind, l->per_s);
	text_add(t, " for device ");
	verdict_add_device(t, &v->f->devices[l->device]);
	text_add(t, " for ");
	record_add_duration(t, l->at_limit_ns);
	text_add(t,
		", so its requests were held back although the device had time left (util at most ");
	verdict_add_pct(t, verdict_util_at_most(&v->f->devices[l->device]));
	text_add(t, ")");
}

void verdict_say_limited(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "a limit of its control group throttled the I/O");
	if (*v->f->waits[v->wait].who.comm) {
		text_add(t, " of ");
		verdict_add_who(t, &v->f->waits[v->wait].who);
	}
}

void verdict_say_unanswered(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "database ");
	verdict_add_unresponsive(v->unresponsive, t);
}

/* "; python3 tid 12 held it, and waited for page in filemap_fault" */
static void add_map_holder(const struct verdict_finding *v, const struct verdict_who *who,
	struct text *t)
{
	const struct verdict_map_holder *h = verdict_find_map_holder(v->f, who->pid);

	if (!h) {
		text_add(t, ", behind another thread of the same process");
		return;
	}
	text_add(t, "; ");
	verdict_add_who(t, &h->who);
	text_add(t, " probably held it for ");
	record_add_duration(t, h->longest_ns);
	if (h->waits_for)
		text_addf(t, ", waiting for %s", record_cause_text(h->waits_for));
	if (*h->function)
		text_addf(t, " in %s", h->function);
}

void verdict_say_waiting(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_wait_facts *w = &v->f->waits[v->wait];
	const struct verdict_file_server *server = verdict_find_file_server(v->f, v->wait);

	text_addf(t, "threads waited for %s", verdict_wait_name(v->wait));
	if (server) {
		text_addf(t, " (%s: ", record_cause_text(w->waits_for));
		verdict_add_file_server(server, t);
		text_add(t, ")");
	} else if (strcmp(verdict_wait_name(v->wait), record_cause_text(w->waits_for)) != 0) {
		text_addf(t, " (%s)", record_cause_text(w->waits_for));
	}
	text_add(t, ", ");
	verdict_add_who(t, &w->who);
	text_add(t, " the longest");
	if (w->waits_for == RECORD_CAUSE_memory_map_lock)
		add_map_holder(v, &w->who, t);
	/* Without a sample the load of the devices is not known. */
	if (v->f->samples > 0 && !verdict_is_a_device_at_fault(v->f))
		text_add(t, ", while no device was at its limit");
}

void verdict_say_unknown(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "no verdict: ");
	verdict_add_missing(v->f, t);
}

/*
 * This is the longest statement that the thread ran. If it began after the trigger, an earlier one
 * may have caused the load, so the sentence does not present it as the reason.
 */
static const char *statement_begin(const struct verdict_finding *v,
	const struct verdict_statement *s)
{
	if (s->likely)
		return "probably for ";
	return s->started_ns <= v->f->trigger_ns + verdict_start_error_ns(s) ? "for "
									     : "perhaps for ";
}

/* The victims */

/* What is about a culprit is a long sentence, so who suffered becomes a second one. */
static const char *first_separator(const struct verdict_finding *v)
{
	return v->culprit ? ". " : "; ";
}

static void begin_clause(const char **separator, struct text *t)
{
	text_add(t, *separator);
	*separator = "; ";
}

static void add_victims(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *d;

	if (v->culprit_is_most)
		text_add_count(t, v->victims, "other thread waited", "other threads waited");
	else
		text_add_count(t, v->victims, "thread waited", "threads waited");
	text_add(t, v->victims == 1 ? " " : " up to ");
	record_add_duration(t, v->victims_longest_ns);
	if (!v->device || v->first_victim->device < 0)
		return;
	d = &v->f->devices[v->first_victim->device];
	/* The volume that they know, above the disk that is the reason. */
	if (d != v->device && *d->label)
		text_addf(t, " on %s", d->label);
}

/*
 * Statements that ran when they were most, and the longest of all. Most of them wait inside the
 * database for the threads that wait for I/O, which no probe sees. With `statement` the culprit's
 * own is named already, and these are the others.
 */
static void add_statements(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_statement *statement, const char **separator, struct text *t)
{
	const struct verdict_who *who = v->culprit ? &v->culprit->who : NULL;
	uint64_t longest_ns = 0;
	int32_t tid = who ? who->tid : 0;
	uint32_t others;

	/*
	 * The culprit is a process of one thread, a PostgreSQL backend: the statement is that
	 * thread's.
	 */
	if (tid == 0 && statement)
		tid = who->pid;
	if (statement && statement->likely)
		tid = statement->tid;
	others = sql ? sql->count_others(sql->userdata, tid, &longest_ns) : 0;
	/* Threads that are named as victims are not said to be statements, too. */
	if (v->rule->class != RECORD_CLASS_unknown)
		others -= v->victims_counted < others ? v->victims_counted : others;
	if (verdict_is_sessions(v))
		others -= v->group_count - 1 < others ? v->group_count - 1 : others;
	if (others == 0)
		return;
	begin_clause(separator, t);
	if (others > 1)
		text_add(t, "up to ");
	text_add_count(t, others, statement ? "other statement" : "statement",
		statement ? "other statements" : "statements");
	/* The longest need not be one of those that ran when they were most. */
	text_add(t, others == 1 ? " had been running for " : " ran at once, the longest for ");
	record_add_duration(t, longest_ns);
}

/* "2 operations failed with ENOSPC, the first of sort pid 7 on tmp/sort.1" */
static void add_error(const struct verdict_error *e, struct text *t)
{
	text_add_count(t, e->count, "operation", "operations");
	text_addf(t, " failed with %s, %s of ", strerrorname_np(e->number),
		e->count > 1 ? "the first" : "that");
	verdict_add_who(t, &e->who);
	if (*e->path) {
		text_add(t, " on ");
		verdict_add_path(t, e->path);
	}
}

/* Errors count even where nobody waited long. */
static void add_errors(const struct verdict_facts *f, const char **separator, struct text *t)
{
	for (unsigned int i = 0; i < VERDICT_ERRORS_MAX && f->errors[i].number; i++) {
		begin_clause(separator, t);
		add_error(&f->errors[i], t);
	}
	if (f->kernel_errors == 0)
		return;
	begin_clause(separator, t);
	text_add(t, "the kernel logged ");
	text_add_count(t, f->kernel_errors, "problem", "problems");
	text_addf(t, " of storage, %s\"", f->kernel_errors > 1 ? "first " : "");
	text_add(t, f->kernel_text);
	text_add(t, "\"");
}

void verdict_add_finding(const struct verdict_finding *v, struct text *t)
{
	v->rule->say(v, t);
	if (v->culprit) {
		text_add(t, ": ");
		verdict_add_culprit(v, t);
	}
	if (v->victims == 0)
		return;
	text_add(t, "; ");
	add_victims(v, t);
}

/* with_text: with the text of the culprit's statement, which `message` must not have. */
static void add_sentence(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, const struct verdict_statement *statement, bool with_text,
	struct text *t)
{
	const char *separator = first_separator(v);

	text_reset(t);
	v->rule->say(v, t);
	if (v->culprit) {
		text_add(t, ": ");
		verdict_add_culprit(v, t);
	}
	if (statement) {
		text_add(t, *v->file ? ", " : " ");
		text_add(t, statement_begin(v, statement));
		verdict_add_statement(t, statement, with_text);
	}
	if (v->culprit)
		verdict_add_untraced(v, t);
	if (v->rule->class == RECORD_CLASS_locked && with_text)
		verdict_add_lock_texts(&v->f->queue, t);
	/* Without a cause it is not known whether threads that waited are victims of anything. */
	if (v->rule->class != RECORD_CLASS_unknown && v->victims > 0) {
		begin_clause(&separator, t);
		add_victims(v, t);
	}
	if (v->unresponsive && v->rule->class != RECORD_CLASS_unanswered) {
		begin_clause(&separator, t);
		text_add(t, "database ");
		verdict_add_unresponsive(v->unresponsive, t);
	}
	if (v->rule->class != RECORD_CLASS_locked) {
		add_statements(v, sql, statement, &separator, t);
		if (verdict_has_queue(v->f)) {
			begin_clause(&separator, t);
			verdict_add_queue(v, t);
		}
	}
	add_errors(v->f, &separator, t);
	if (!second)
		return;
	text_add(t, ". Besides, ");
	verdict_add_finding(second, t);
}

/* Only a culprit that submitted its I/O itself, or for a statement, has one to blame. */
static bool find_statement(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct verdict_statement *ret_statement)
{
	const struct verdict_load *c = v->culprit;

	if (!sql || !c || c->inferred || v->culprit_by == VERDICT_BY_UNIT)
		return false;
	if (sql->find_statement(sql->userdata, c->who.pid,
		    v->culprit_by == VERDICT_BY_THREAD ? c->who.tid : 0, ret_statement))
		return true;
	/* A thread of the server writes what statements have changed, or reads ahead for them. */
	ret_statement->likely = sql->find_busiest &&
		sql->find_busiest(sql->userdata, c->who.pid,
			c->bytes / LIKELY_PART > LIKELY_BYTES ? c->bytes / LIKELY_PART
							      : LIKELY_BYTES,
			ret_statement);
	return ret_statement->likely;
}

void verdict_say(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, struct record_verdict *ret_verdict)
{
	struct text sentence = TEXT_ON(ret_verdict->sentence),
		    message = TEXT_ON(ret_verdict->message);
	struct verdict_statement statement = { 0 };
	bool known = find_statement(v, sql, &statement);

	ret_verdict->class = v->rule->class;
	ret_verdict->basis = v->rule->basis;
	if (v->rule->class == RECORD_CLASS_locked && v->f->queue.holder.candidates)
		ret_verdict->basis = RECORD_BASIS_inferred;
	if (v->culprit_is_most && verdict_is_probable(v))
		ret_verdict->basis = RECORD_BASIS_inferred;
	add_sentence(v, second, sql, known ? &statement : NULL, true, &sentence);
	add_sentence(v, second, sql, known ? &statement : NULL, false, &message);
	verdict_add_parts(v, second, sql, known ? &statement : NULL, ret_verdict);
}
