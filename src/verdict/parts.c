/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was found as parts, each with its numbers and what it stands on. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/clock.h"
#include "verdict/say.h"

#define MEMORY_FULL_PCT 10

static struct record_verdict_part *add_part(struct record_verdict *r, const char *what,
	const char *basis, struct text *ret_text)
{
	struct record_verdict_part *part;

	/* No verdict has so many. */
	part = &r->parts[r->parts_count < RECORD_PARTS_MAX ? r->parts_count++ : RECORD_PARTS_MAX - 1];
	text_copy(part->what, sizeof(part->what), what);
	text_copy(part->basis, sizeof(part->basis), basis);
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

	part = add_part(r, "device", VERDICT_MEASURED, &t);
	verdict_add_device(&t, d);
	text_add(&t, ": ");
	if (d->sampled) {
		verdict_add_figures(&t, d);
		part->util_pct = d->util_max_pct;
		part->await_ms = verdict_await_of(d);
		part->queue = verdict_queue_of(d);
	} else {
		text_add(&t, "not among the sampled ones");
	}
	if (d->silent_ns > 0) {
		text_add(&t, ", finished nothing for ");
		record_add_duration(&t, d->silent_ns);
		part->longest_ns = d->silent_ns;
	}
	if (!d->has_totals)
		return;
	text_add(&t, ", ");
	text_add_count(&t, d->requests, "request", "requests");
	text_add(&t, ", queue up to ");
	record_add_duration(&t, d->queue_time.max_ns);
	text_add(&t, ", device up to ");
	record_add_duration(&t, d->device_time.max_ns);
	part->requests = d->requests;
	part->bytes = d->read_bytes + d->write_bytes;
}

static void add_cause_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_wait_facts *w = &v->f->waits[VERDICT_WAIT_frozen];
	struct record_verdict_part *part;
	struct text t;

	if (strcmp(v->rule->class_name, "hung") != 0 || !verdict_is_frozen_below(v->f, v->device))
		return;
	part = add_part(r, "cause", VERDICT_INFERRED, &t);
	text_add(&t, "the kernel's ");
	verdict_add_who(&t, &w->kernel);
	text_add(&t, " waits for a frozen file system for ");
	record_add_duration(&t, w->kernel_longest_ns);
	set_who(part, &w->kernel);
	part->longest_ns = w->kernel_longest_ns;
}

static void add_culprit_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	part = add_part(r, "culprit", v->culprit->inferred ? VERDICT_INFERRED : VERDICT_MEASURED, &t);
	verdict_add_culprit(v, &t);
	set_who(part, &v->culprit->who);
	/* That of the process is its first thread's: the process itself is what is meant. */
	if (v->culprit_by != VERDICT_BY_THREAD)
		part->tid = 0;
	text_copy(part->path, sizeof(part->path), v->file);
	part->share_pct = v->culprit->share_pct;
	part->bytes = v->culprit->bytes;
	part->requests = v->culprit->requests;
}

/* The load is that of the whole incident: of one that began after the trigger it may be in part only. */
static void add_statement_part(const struct verdict_finding *v, const struct verdict_statement *s,
	struct record_verdict *r)
{
	bool measured = s->started_ns + verdict_start_error_ns(s) <= v->f->trigger_ns;
	struct record_verdict_part *part;
	struct text t;

	part = add_part(r, "statement", measured ? VERDICT_MEASURED : VERDICT_INFERRED, &t);
	verdict_add_statement(&t, s, true);
	part->longest_ns = s->elapsed_ns;
}

static void add_victims_part(const struct verdict_finding *v, struct record_verdict *r)
{
	const struct verdict_thread *first = v->first_victim;
	struct record_verdict_part *part;
	struct text t;

	if (v->victims == 0)
		return;
	part = add_part(r, "victims", VERDICT_MEASURED, &t);
	text_add_count(&t, v->victims, "thread", "threads");
	text_add(&t, v->f->threads_left_out ? " or more" : "");
	text_add(&t, ", the longest ");
	record_add_duration(&t, v->victims_longest_ns);
	text_addf(&t, ": %s[%" PRId32 "/%" PRId32 "] for %s", first->comm, first->pid, first->tid,
		verdict_wait_name(v->device ? first->device_wait : first->wait));
	part->threads = v->victims;
	part->longest_ns = v->victims_longest_ns;
	part->pid = first->pid;
	part->tid = first->tid;
	text_copy(part->comm, sizeof(part->comm), first->comm);
}

static void add_database_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (!v->silent)
		return;
	part = add_part(r, "database", VERDICT_MEASURED, &t);
	verdict_add_silence(v->silent, &t);
	set_who(part, &v->silent->server);
	part->longest_ns = v->silent->longest.ns;
}

/* Threads that wait for memory load the disks with what was thrown out of it: it goes with any verdict. */
static void add_memory_part(const struct verdict_facts *f, struct record_verdict *r)
{
	struct text t;

	if (f->memory_full_max_pct < MEMORY_FULL_PCT)
		return;
	add_part(r, "memory", VERDICT_MEASURED, &t);
	text_add(&t, "all runnable tasks waited for memory in up to ");
	verdict_add_pct(&t, f->memory_full_max_pct);
	text_add(&t, " of the time (pressure, full)");
}

static void add_kernel_part(const struct verdict_facts *f, struct record_verdict *r)
{
	struct text t;

	if (f->kernel_lines == 0)
		return;
	add_part(r, "kernel", VERDICT_MEASURED, &t);
	text_add_count(&t, f->kernel_lines, "line", "lines");
	text_add(&t, " about storage in the kernel's log, the first: ");
	text_add(&t, f->kernel_text);
}

/* Where a database reads for its statements in threads of its own, nobody says for which. */
static void add_missing_statement(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct record_verdict *r)
{
	struct text t;

	if (!sql || !v->culprit || !sql->is_server(sql->userdata, v->culprit->who.pid))
		return;
	add_part(r, "missing", "", &t);
	text_add(&t, "for which statement the bytes were: ");
	text_add(&t, v->culprit_by == VERDICT_BY_THREAD ? "none is known of the thread that moved them" :
							  "no thread of the server moved half of them");
}

static void add_missing_part(const struct verdict_finding *v, struct record_verdict *r)
{
	struct text t;

	if (strcmp(v->rule->class_name, "unknown") == 0) {
		add_part(r, "missing", "", &t);
		verdict_add_missing(v->f, &t);
	} else if (strcmp(v->rule->class_name, "unanswered") == 0 && !v->silent->longest.stopped) {
		add_part(r, "missing", "", &t);
		text_add(&t, "why the database does not answer");
	} else if (v->rule->blames && !v->culprit) {
		add_part(r, "missing", "", &t);
		text_add(&t, v->device->has_totals ?
				"whose the bytes of the device were: nobody's that trace.* lets through" :
				"whose the bytes of the device were: its requests were not seen");
	} else if (v->wait == VERDICT_WAIT_lock && !v->device) {
		add_part(r, "missing", "", &t);
		text_add(&t, "who holds the lock: a record does not have it");
	}
}

void verdict_add_parts(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_statement *statement, struct record_verdict *ret_verdict)
{
	if (v->device) {
		ret_verdict->dev_major = v->device->major;
		ret_verdict->dev_minor = v->device->minor;
		text_copy(ret_verdict->dev_name, sizeof(ret_verdict->dev_name), v->device->name);
		add_device_part(v, ret_verdict);
	} else if (v->wait < VERDICT_WAIT_COUNT) {
		text_copy(ret_verdict->waits_for, sizeof(ret_verdict->waits_for),
			v->f->waits[v->wait].waits_for);
	}
	add_cause_part(v, ret_verdict);
	if (v->culprit)
		add_culprit_part(v, ret_verdict);
	if (statement)
		add_statement_part(v, statement, ret_verdict);
	add_victims_part(v, ret_verdict);
	add_database_part(v, ret_verdict);
	add_memory_part(v->f, ret_verdict);
	add_kernel_part(v->f, ret_verdict);
	add_missing_part(v, ret_verdict);
	if (!statement)
		add_missing_statement(v, sql, ret_verdict);
}
