/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was found as a sentence, and the words that its parts share with it. Names from outside are kept as they are:
 * who writes them to JSON, to a terminal or to a log escapes them.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/say.h"

/* Names of a path that a sentence has room for: "big/t.ibd". */
#define PATH_NAMES 2
/* Of the bytes of a device: then they are all called read, or written. */
#define ONE_WAY_PCT 80

void verdict_add_pct(struct text *t, double pct)
{
	text_addf(t, pct >= 10 || pct <= 0 ? "%.0f %%" : "%.1f %%", pct);
}

static void add_ms(struct text *t, double ms)
{
	text_addf(t, ms >= 10 || ms <= 0 ? "%.0f ms" : "%.1f ms", ms);
}

void verdict_add_device(struct text *t, const struct verdict_device *d)
{
	if (*d->name)
		text_add(t, d->name);
	else
		text_addf(t, "%" PRIu32 ":%" PRIu32, d->major, d->minor);
}

double verdict_queue_of(const struct verdict_device *d)
{
	return d->busy.ns > 0 ? d->busy.queue_ns_sum / (double)d->busy.ns : NAN;
}

double verdict_await_of(const struct verdict_device *d)
{
	return d->read_await_max_ms > d->write_await_max_ms ? d->read_await_max_ms : d->write_await_max_ms;
}

/* "util 100 %, r_await 296 ms, queue 64": the names of iostat(1). */
void verdict_add_figures(struct text *t, const struct verdict_device *d)
{
	double queue = verdict_queue_of(d);

	text_add(t, "util ");
	verdict_add_pct(t, d->util_max_pct);
	text_add(t, d->read_await_max_ms >= d->write_await_max_ms ? ", r_await " : ", w_await ");
	add_ms(t, verdict_await_of(d));
	if (queue == queue)
		text_addf(t, queue >= 9.95 ? ", queue %.0f" : ", queue %.1f", queue);
}

/* "mariadbd tid 2211", "postgres pid 4711" */
void verdict_add_who(struct text *t, const struct verdict_who *who)
{
	text_add(t, *who->comm ? who->comm : "?");
	if (who->tid > 0 && who->tid != who->pid)
		text_addf(t, " tid %" PRId32, who->tid);
	else
		text_addf(t, " pid %" PRId32, who->pid);
}

static void add_path_end(struct text *t, const char *path)
{
	const char *p = path + strlen(path);

	for (unsigned int names = 0; p > path; p--)
		if (p[-1] == '/' && ++names == PATH_NAMES)
			break;
	text_add(t, p > path ? p : path + (*path == '/'));
}

/* The sentences */

void verdict_say_hung(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *d = v->device;

	text_add(t, "device ");
	verdict_add_device(t, d);
	text_add(t, " hung (");
	text_add_count(t, d->silent_in_flight, "request", "requests");
	text_add(t, " in flight, none finished for ");
	record_add_duration(t, d->silent_ns);
	text_add(t, ")");
	if (!verdict_is_frozen_below(v->f, v->device))
		return;
	text_add(t, ", perhaps since a file system below it is frozen: ");
	verdict_add_who(t, &v->f->waits[VERDICT_WAIT_frozen].kernel);
	text_add(t, " waits for it");
}

void verdict_say_frozen(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_wait_facts *w = &v->f->waits[VERDICT_WAIT_frozen];

	text_add(t, "a file system is frozen");
	if (w->device >= 0) {
		text_add(t, ", that on ");
		verdict_add_device(t, &v->f->devices[w->device]);
	}
	if (*w->path) {
		text_add(t, ", with ");
		text_add(t, w->path);
	}
}

void verdict_say_slow(const struct verdict_finding *v, struct text *t)
{
	double requests, bytes;

	verdict_device_rates(v->device, &requests, &bytes);
	text_add(t, "device ");
	verdict_add_device(t, v->device);
	text_add(t, " slow by itself, not by its load (");
	verdict_add_figures(t, v->device);
	text_addf(t, requests >= 10 ? ", %.0f requests and " : ", %.1f requests and ", requests);
	record_add_size(t, (uint64_t)bytes);
	text_add(t, " a second)");
}

void verdict_say_saturated(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "device ");
	verdict_add_device(t, v->device);
	text_add(t, " saturated (");
	verdict_add_figures(t, v->device);
	text_add(t, ")");
}

void verdict_say_held_back(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *d = v->device;

	text_add(t, "device ");
	verdict_add_device(t, d);
	text_add(t, " held back before its queue (util at most ");
	verdict_add_pct(t, d->util_max_pct);
	if (d->has_totals && d->requests > 0) {
		text_add(t, ", its own time at most ");
		record_add_duration(t, d->device_time.max_ns);
	}
	text_add(t, ", operations up to ");
	record_add_duration(t, d->longest_ns);
	text_add(t, "): a limit of a control group, or the device is suspended");
}

void verdict_say_limited(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "a control group is at its limit");
	if (*v->f->waits[v->wait].who.comm) {
		text_add(t, ", that of ");
		verdict_add_who(t, &v->f->waits[v->wait].who);
	}
}

void verdict_add_silence(const struct verdict_database *d, struct text *t)
{
	text_add(t, d->target);
	if (d->server.pid) {
		text_add(t, " (");
		verdict_add_who(t, &d->server);
		text_add(t, ")");
	}
	text_add(t, " has not answered for ");
	record_add_duration(t, d->longest.ns);
	if (d->longest.stopped)
		text_add(t, ", it is stopped");
}

void verdict_say_unanswered(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "database ");
	verdict_add_silence(v->silent, t);
}

void verdict_say_waiting(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_wait_facts *w = &v->f->waits[v->wait];

	/* Without a sample that is not known. */
	if (v->f->samples > 0)
		text_add(t, "no device at its limit, ");
	text_addf(t, "threads wait for %s (%s), the longest is ", verdict_wait_name(v->wait),
		w->waits_for);
	verdict_add_who(t, &w->who);
}

/* What is not there, or not enough of it. */
void verdict_add_missing(const struct verdict_facts *f, struct text *t)
{
	bool totals = false;

	for (uint32_t i = 0; i < f->devices_count; i++)
		totals = totals || f->devices[i].has_totals;
	if (f->longest_ns == 0 && f->samples > 0) {
		text_add(t, "no operation took ");
		record_add_duration(t, f->min_stall_ns);
		text_add(t, " and no device was at its limit");
		return;
	}
	if (f->longest_ns == 0) {
		text_add(t, "there is no operation of ");
		record_add_duration(t, f->min_stall_ns);
		text_add(t, " and no reading of the devices");
		return;
	}
	text_add(t, "operations took up to ");
	record_add_duration(t, f->longest_ns);
	if (f->samples == 0)
		text_add(t, ", but there is no reading of the devices");
	else if (f->waits[VERDICT_WAIT_none].longest_ns == f->longest_ns)
		text_add(t, ", but what they waited for is not known and no device was at its limit");
	else
		text_add(t, ", but nothing that they waited for was at its limit");
	if (!totals)
		text_add(t, "; what the devices did with each request was not seen");
}

void verdict_say_unknown(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "no verdict: ");
	verdict_add_missing(v->f, t);
}

/* The culprit */

static const char *moved_word(const struct verdict_device *d)
{
	uint64_t bytes = d->read_bytes + d->write_bytes;

	if (d->read_bytes >= bytes / 100 * ONE_WAY_PCT)
		return "read";
	return d->write_bytes >= bytes / 100 * ONE_WAY_PCT ? "written" : "moved";
}

/* "postgres pid 4711 and 2 that work for it" */
static void add_culprit_who(const struct verdict_finding *v, struct text *t)
{
	if (v->team_workers > 0 && !v->leader_moved)
		text_addf(t, "%" PRIu32 " that work for ", v->team_workers);
	verdict_add_who(t, &v->culprit->who);
	if (v->team_workers > 0 && v->leader_moved)
		text_addf(t, " and %" PRIu32 " that work%s for it", v->team_workers,
			v->team_workers == 1 ? "s" : "");
}

/* "92 % of 214 MiB read by mariadbd tid 2211, big/t.ibd" */
void verdict_add_culprit(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_device *d = v->device;
	const struct verdict_load *c = v->culprit;
	uint32_t others;

	verdict_add_pct(t, c->share_pct);
	text_add(t, " of ");
	record_add_size(t, d->read_bytes + d->write_bytes);
	text_addf(t, " %s by ", moved_word(d));
	add_culprit_who(v, t);
	if (c->inferred)
		text_add(t, " (of the kernel, on whose behalf is not known)");
	others = v->culprit_by == VERDICT_BY_PROGRAM ? d->load[VERDICT_BY_PROCESS].count : c->count;
	if (!v->culprit_is_most && others > 1) {
		text_add(t, " together with ");
		/* A record has the first ten. */
		text_add_count(t, others - 1, "other", others >= 10 ? "others or more" : "others");
	}
	if (*v->file) {
		text_add(t, ", ");
		add_path_end(t, v->file);
	}
}

/* Blanks and line ends of a statement are one blank each. */
static void add_statement_text(struct text *t, const char *s)
{
	bool blank = false;

	for (; *s; s++) {
		if (isspace((unsigned char)*s)) {
			blank = true;
			continue;
		}
		if (blank)
			text_add(t, " ");
		blank = false;
		text_add_bytes(t, s, 1);
	}
}

/* "app@localhost "SELECT ..." running 31 s" */
void verdict_add_statement(struct text *t, const struct verdict_statement *s, bool with_text)
{
	text_add(t, *s->user ? s->user : "?");
	if (with_text && *s->text) {
		text_add(t, " \"");
		add_statement_text(t, s->text);
		text_add(t, "\"");
	} else {
		text_add(t, ", a statement");
	}
	text_add(t, " running ");
	record_add_duration(t, s->elapsed_ns);
}

/* How far its start may be off: a MySQL that has only seconds counts those of the clock. */
uint64_t verdict_start_error_ns(const struct verdict_statement *s)
{
	return s->elapsed_ns % NSEC_PER_SEC ? 0 : NSEC_PER_SEC;
}

/*
 * What the thread ran longest: of one that began after the trigger the load may have been another statement's,
 * so the sentence does not pass it off as the reason.
 */
static const char *statement_begin(const struct verdict_finding *v, const struct verdict_statement *s)
{
	return s->started_ns <= v->f->trigger_ns + verdict_start_error_ns(s) ? ", " : ", meanwhile ";
}

/* The victims */

static void add_victims(const struct verdict_finding *v, struct text *t)
{
	if (v->victims == 0)
		return;
	text_add(t, "; ");
	if (v->culprit_is_most)
		text_add_count(t, v->victims, "other thread waited", "other threads waited");
	else
		text_add_count(t, v->victims, "thread waited", "threads waited");
	text_add(t, " up to ");
	record_add_duration(t, v->victims_longest_ns);
}

/*
 * Most of them sleep within the database, behind the threads that wait, which no probe sees. `statement`: the
 * culprit's is named, and these are others.
 */
static void add_statements(const struct verdict_finding *v, const struct verdict_sql *sql, bool statement,
	struct text *t)
{
	const struct verdict_who *who = v->culprit ? &v->culprit->who : NULL;
	uint64_t longest_ns = 0;
	int32_t tid = who ? who->tid : 0;
	uint32_t others;

	/* Of a process with a statement that is its thread's. */
	if (tid == 0 && statement)
		tid = who->pid;
	others = sql ? sql->count_others(sql->userdata, tid, &longest_ns) : 0;
	if (others == 0)
		return;
	text_add(t, "; ");
	text_add_count(t, others, statement ? "other statement" : "statement",
		statement ? "other statements" : "statements");
	text_add(t, " under way for up to ");
	record_add_duration(t, longest_ns);
}

/* What a record has as a sentence, with or without what a statement says. */
static void add_sentence(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_statement *statement, bool with_text, struct text *t)
{
	text_reset(t);
	v->rule->say(v, t);
	if (v->culprit) {
		text_add(t, ": ");
		verdict_add_culprit(v, t);
	}
	if (statement) {
		text_add(t, statement_begin(v, statement));
		verdict_add_statement(t, statement, with_text);
	}
	/* Whether those are victims is not known of what is none. */
	if (strcmp(v->rule->class_name, "unknown") != 0)
		add_victims(v, t);
	if (v->silent && strcmp(v->rule->class_name, "unanswered") != 0) {
		text_add(t, "; database ");
		verdict_add_silence(v->silent, t);
	}
	add_statements(v, sql, statement != NULL, t);
}

/* Of a thread that is known for what it did itself. */
static bool find_statement(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct verdict_statement *ret_statement)
{
	const struct verdict_load *c = v->culprit;

	return sql && c && !c->inferred &&
		sql->find_statement(sql->userdata, c->who.pid,
			v->culprit_by == VERDICT_BY_THREAD ? c->who.tid : 0, ret_statement);
}

void verdict_say(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct record_verdict *ret_verdict)
{
	struct text sentence = TEXT_ON(ret_verdict->sentence), message = TEXT_ON(ret_verdict->message);
	struct verdict_statement statement = { 0 };
	bool known = find_statement(v, sql, &statement);

	text_copy(ret_verdict->class_name, sizeof(ret_verdict->class_name), v->rule->class_name);
	text_copy(ret_verdict->basis, sizeof(ret_verdict->basis), v->rule->basis);
	add_sentence(v, sql, known ? &statement : NULL, true, &sentence);
	add_sentence(v, sql, known ? &statement : NULL, false, &message);
	verdict_add_parts(v, sql, known ? &statement : NULL, ret_verdict);
}
