/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Says a finding as a sentence. Names from outside are kept as they are: the code that writes them
 * to JSON, to a terminal or to a log escapes them.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/devices.h"
#include "verdict/figures.h"
#include "verdict/journal.h"
#include "verdict/others.h"
#include "verdict/statement.h"
#include "verdict/words.h"

/*
 * That the disk below had time left. Where somebody is blamed, this comes last: the name matters
 * more.
 */
static void add_time_left_below(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *below = v->rule->class == RECORD_CLASS_saturated
		? verdict_find_idle_below(v->f, v->device)
		: NULL;

	if (!below)
		return;
	text_add(t, ". The disk below ");
	verdict_add_device(t, v->device);
	text_add(t, ", ");
	verdict_add_device(t, below);
	text_add(t, ", had time left (util at most ");
	verdict_add_pct(t, verdict_util_at_most(below));
	text_add(t,
		"): something in between held requests back, such as a limit, encryption or the "
		"copying for a snapshot");
}

/* The same of a device that is slow: nobody is blamed, so it is the point. */
static void add_limit_between(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *below = verdict_find_idle_below(v->f, v->device);

	if (!below)
		return;
	text_add(t, ", but ");
	verdict_add_device(t, below);
	text_add(t, " below it was nearly idle (util at most ");
	verdict_add_pct(t, verdict_util_at_most(below));
	text_add(t, "): something in between, such as a limit, held requests back");
}

/* What holds back all requests. Only the device mapper has devices with several paths. */
static const char *why_not_reached(const struct verdict_device *d)
{
	if (strncmp(d->name, "dm-", 3) != 0)
		return "something in between held them back";
	if (strncmp(d->label, "mpath", 5) == 0)
		return "it was suspended or had lost all its paths";
	return "it was suspended or, if it is a multipath device, had lost all its paths";
}

/* And of one that hangs. */
static void add_not_reached(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *below = verdict_find_idle_below(v->f, v->device);

	if (!below)
		return;
	text_add(t, ", which did not reach ");
	verdict_add_device(t, below);
	text_add(t, " below it (util at most ");
	verdict_add_pct(t, verdict_util_at_most(below));
	text_addf(t, "): %s", why_not_reached(v->device));
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
	if (!verdict_is_frozen_below(v->f, d))
		add_not_reached(v, t);
	add_frozen_below(v, t);
}

/* The state is read with each sample. */
void verdict_say_suspended(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "volume ");
	verdict_add_device(t, v->device);
	text_add(t, " was suspended for about ");
	record_add_duration(t, v->device->suspended_ns);
	text_add(t,
		", so all I/O on it waited: its table was being changed, as for a snapshot, a resize "
		"or new paths");
}

void verdict_say_frozen(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_wait_facts *w = &v->f->waits[VERDICT_WAIT_frozen];
	const uint32_t others = v->f->frozen_count > 1 ? v->f->frozen_count - 1 : 0;

	text_add(t, w->device >= 0 ? "the file system on " : "a file system");
	if (w->device >= 0)
		verdict_add_device(t, &v->f->devices[w->device]);
	if (others > 0) {
		text_add(t, " and ");
		text_add_count(t, others, "other", "others");
	}
	text_add(t, others > 0 ? " were frozen" : " was frozen");
	/* Whoever reads only does not wait for it. */
	text_addf(t, ", as by fsfreeze or a snapshot, so writes to %s waited",
		others > 0 ? "them" : "it");
	if (*w->path) {
		text_add(t, ", such as to ");
		verdict_add_path(t, w->path);
	}
	if (w->device >= 0 && v->f->devices[w->device].suspended_ns > 0) {
		text_add(t, "; its volume was suspended, too, for about ");
		record_add_duration(t, v->f->devices[w->device].suspended_ns);
	}
}

void verdict_say_slow(const struct verdict_finding *v, struct text *t)
{
	static const char *const kinds[] = { [VERDICT_READ] = "read",
		[VERDICT_WRITE] = "write",
		[VERDICT_DISCARD] = "discard",
		[VERDICT_FLUSH] = "flush" };
	double requests, bytes;

	verdict_device_rates(v->device, &requests, &bytes);
	text_add(t, "device ");
	verdict_add_device(t, v->device);
	if (verdict_is_slower_than_before(v->device, requests, bytes)) {
		text_addf(t, " was slow: each %s took %.0f times as long as before, with no more",
			kinds[verdict_main_kind(v->device)], verdict_times_slower(v->device));
		text_add(t, " to do (");
	} else {
		text_add(t, " was slow although lightly loaded (");
	}
	verdict_add_figures(t, v->device);
	text_addf(t, requests >= 10 ? ", %.0f requests/s, " : ", %.1f requests/s, ", requests);
	record_add_size(t, (uint64_t)bytes);
	text_add(t, "/s)");
	add_limit_between(v, t);
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

bool verdict_is_no_device_at_fault(const struct verdict_facts *f)
{
	/* Without a sample the load of the devices is not known. */
	return f->samples > 0 && !verdict_is_a_device_at_fault(f);
}

void verdict_say_waiting(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_wait_facts *w = &v->f->waits[v->wait];
	const struct verdict_file_server *server = verdict_find_file_server(v->f, v->wait);

	if (v->wait == VERDICT_WAIT_other)
		text_addf(t, "threads waited for a %s", record_cause_text(w->waits_for));
	else
		text_addf(t, "threads waited for %s", verdict_wait_name(v->wait));
	if (server) {
		text_addf(t, " (%s: ", record_cause_text(w->waits_for));
		verdict_add_file_server(server, t);
		text_add(t, ")");
	} else if (v->wait != VERDICT_WAIT_other &&
		strcmp(verdict_wait_name(v->wait), record_cause_text(w->waits_for)) != 0) {
		text_addf(t, " (%s)", record_cause_text(w->waits_for));
	}
	text_add(t, ", ");
	verdict_add_who(t, &w->who);
	text_add(t, " the longest");
	if (w->waits_for == RECORD_CAUSE_memory_map_lock)
		add_map_holder(v, &w->who, t);
	if (verdict_is_no_device_at_fault(v->f))
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
	/* Said once: whoever is only probable did it only probably for a statement, too. */
	if (s->likely)
		return verdict_is_probable(v) ? "for " : "probably for ";
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

/* What begins behind a full stop at that place is a sentence. */
static void capitalise(struct text *t, size_t at)
{
	if (at + 2 < t->len && t->buf[at] == '.')
		t->buf[at + 2] = (char)toupper((unsigned char)t->buf[at + 2]);
}

void verdict_add_victims(const struct verdict_finding *v, struct text *t)
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
 * Without a cause it is not known whether threads that waited are victims of anything; and one rule
 * says itself who waited.
 */
static bool has_victims_to_add(const struct verdict_finding *v)
{
	return v->victims > 0 && v->rule->class != RECORD_CLASS_unknown &&
		!verdict_is_group_memory(v) && !verdict_is_kernel_lock(v) && !verdict_is_mutex(v);
}

/* Statements that the sentence has as something else: no session is counted twice in it. */
static uint32_t said_already(const struct verdict_finding *v, const struct verdict_sql *sql)
{
	uint32_t said = 0;

	/* Threads that are named as victims. */
	if (v->rule->class != RECORD_CLASS_unknown)
		said += v->victims_counted;
	if (verdict_is_sessions(v))
		said += v->group_count - 1;
	if (v->served > 1)
		said += v->served - 1;
	if (verdict_has_queue(v->f))
		said += v->f->queue.waiters;
	/* Of a database these are sessions, and perhaps those of the queue. */
	if (v->mutex && sql->is_server && sql->is_server(sql->userdata, v->mutex->process.pid) &&
		v->mutex->waiters > (verdict_has_queue(v->f) ? v->f->queue.waiters : 0))
		said += v->mutex->waiters - (verdict_has_queue(v->f) ? v->f->queue.waiters : 0);
	return said;
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
	uint32_t others, said;

	/*
	 * The culprit is a process of one thread, a PostgreSQL backend: the statement is that
	 * thread's.
	 */
	if (tid == 0 && statement)
		tid = who->pid;
	if (statement && statement->likely)
		tid = statement->tid;
	others = sql ? sql->count_others(sql->userdata, tid, &longest_ns) : 0;
	said = sql ? said_already(v, sql) : 0;
	others -= said < others ? said : others;
	/* Those that took no time that a server tells are no news. */
	if (others == 0 || longest_ns == 0)
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

/* Errors count even where nobody waited long; of class `failed` they are the sentence itself. */
static void add_errors(const struct verdict_finding *v, const char **separator, struct text *t)
{
	const bool is_failed = v->rule->class == RECORD_CLASS_failed;
	const struct verdict_error *said = is_failed ? verdict_find_main_error(v->f) : NULL;

	for (unsigned int i = 0; i < VERDICT_ERRORS_MAX && v->f->errors[i].number; i++) {
		if (&v->f->errors[i] == said)
			continue;
		begin_clause(separator, t);
		verdict_add_error(&v->f->errors[i], t);
	}
	if (v->f->kernel_errors == 0 || (is_failed && !said))
		return;
	begin_clause(separator, t);
	verdict_add_kernel_errors(v->f, t);
}

void verdict_add_finding(const struct verdict_finding *v, struct text *t)
{
	v->rule->say(v, t);
	if (v->culprit)
		verdict_add_blame(v, t);
	if (has_victims_to_add(v)) {
		text_add(t, "; ");
		verdict_add_victims(v, t);
	}
	add_time_left_below(v, t);
}

static bool says_killed(const struct verdict_finding *v)
{
	return v && v->rule->say == verdict_say_killed;
}

static void add_journal_clause(const struct verdict_finding *v, const char **separator,
	struct text *t)
{
	const struct verdict_journal *journal = verdict_find_journal(v);

	if (!journal)
		return;
	begin_clause(separator, t);
	verdict_add_journal(v, journal, t);
}

/* Who suffered, and what else is to be said. */
static void add_clauses(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, const struct verdict_statement *statement, struct text *t)
{
	const char *separator = first_separator(v);
	size_t end = t->len;

	if (has_victims_to_add(v)) {
		begin_clause(&separator, t);
		verdict_add_victims(v, t);
		add_journal_clause(v, &separator, t);
	}
	if (v->mutex && !verdict_is_mutex(v)) {
		begin_clause(&separator, t);
		verdict_add_mutex(v->mutex, t);
	}
	if (v->unresponsive && v->rule->class != RECORD_CLASS_unanswered) {
		begin_clause(&separator, t);
		text_add(t, "database ");
		verdict_add_unresponsive(v->unresponsive, t);
	}
	if (v->f->health_failing_s > 0) {
		begin_clause(&separator, t);
		text_add(t, "the health check failed for ");
		record_add_duration(t, (uint64_t)(v->f->health_failing_s * NSEC_PER_SEC));
	}
	if (!verdict_is_queue(v)) {
		add_statements(v, sql, statement, &separator, t);
		if (verdict_has_queue(v->f)) {
			begin_clause(&separator, t);
			verdict_add_queue(v, t);
		}
	}
	add_errors(v, &separator, t);
	if (v->f->killed > 0 && !says_killed(v) && !says_killed(second)) {
		begin_clause(&separator, t);
		verdict_add_killed(v->f, t);
	}
	capitalise(t, end);
}

/* with_text: with the text of the culprit's statement, which `message` must not have. */
static void add_sentence(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, const struct verdict_statement *statement, bool with_text,
	struct text *t)
{
	text_reset(t);
	v->rule->say(v, t);
	if (v->culprit)
		verdict_add_blame(v, t);
	if (statement) {
		text_add(t, ", ");
		text_add(t, statement_begin(v, statement));
		verdict_add_statement(t, statement, with_text);
	}
	if (v->culprit) {
		verdict_add_others(v, t);
		verdict_add_untraced(v, t);
	}
	if (verdict_is_queue(v))
		verdict_add_lock_statements(&v->f->queue, with_text, t);
	add_clauses(v, second, sql, statement, t);
	add_time_left_below(v, t);
	if (!second)
		return;
	text_add(t, ". Besides, ");
	verdict_add_finding(second, t);
}

void verdict_say(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, struct record_verdict *ret_verdict)
{
	struct text sentence = TEXT_ON(ret_verdict->sentence),
		    message = TEXT_ON(ret_verdict->message);
	struct verdict_statement statement = { 0 };
	bool known = verdict_find_statement(v, sql, &statement);

	ret_verdict->class = v->rule->class;
	ret_verdict->basis = v->rule->basis;
	if (verdict_is_queue(v) && v->f->queue.holder.candidates)
		ret_verdict->basis = RECORD_BASIS_inferred;
	if (v->culprit_is_most && verdict_is_probable(v))
		ret_verdict->basis = RECORD_BASIS_inferred;
	add_sentence(v, second, sql, known ? &statement : NULL, true, &sentence);
	add_sentence(v, second, sql, known ? &statement : NULL, false, &message);
	verdict_add_parts(v, second, sql, known ? &statement : NULL, ret_verdict);
}
