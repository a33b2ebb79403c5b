/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/clock.h"
#include "verdict/figures.h"
#include "verdict/kernel_thread.h"

/* A sentence has room for the last names of a path: "big/t.ibd". */
#define PATH_NAMES 2
/* What follows the name of a file that has been removed, as temporary files of databases are. */
#define DELETED "//deleted"
/* Flushes that took a quarter of the time of the main kind of requests are worth a figure. */
#define LONG_FLUSHES 4
/* A kind of request with less than this part of all is not worth a word. */
#define LITTLE 20
/* So much that began before tracing is worth a clause. */
#define UNTRACED_PCT 5
/* Nobody looks into a program that had less, but would take a name in the sentence for a hint. */
#define NAMED_PCT 20
#define HALF_PCT 50

void verdict_add_pct(struct text *t, double pct)
{
	text_addf(t, pct >= 10 || pct <= 0 ? "%.0f %%" : "%.1f %%", pct);
}

static void add_ms(struct text *t, double ms)
{
	text_addf(t, ms >= 10 || ms <= 0 ? "%.0f ms" : "%.1f ms", ms);
}

/* "sdb"; "vg0-mysql (dm-0)": the name that people know comes first. */
void verdict_add_device(struct text *t, const struct verdict_device *d)
{
	if (*d->label)
		text_addf(t, "%s (", d->label);
	if (*d->name)
		text_add(t, d->name);
	else
		text_addf(t, "%" PRIu32 ":%" PRIu32, d->major, d->minor);
	if (*d->label)
		text_add(t, ")");
}

/* Requests that wait behind a flush take long, too: then it is what the others wait for. */
static bool has_long_flushes(const struct verdict_device *d, enum verdict_kind kind)
{
	double await_ms = verdict_busy_await_ms(d, VERDICT_FLUSH);

	return kind != VERDICT_FLUSH && await_ms > verdict_busy_await_ms(d, kind) &&
		d->busy.ticks_ns[VERDICT_FLUSH] * LONG_FLUSHES >= d->busy.ticks_ns[kind];
}

/*
 * "util 100 %, r_await 296 ms, queue depth 64": means over the time in which it was busy, named
 * as by iostat(1); of the awaits that of the requests that took most of the time. Without such a
 * time, the highest in a sample.
 */
void verdict_add_figures(struct text *t, const struct verdict_device *d)
{
	static const char *const awaits[] = { "r_await ", "w_await ", "d_await ", "f_await " };
	double queue = verdict_queue_of(d);
	enum verdict_kind kind = verdict_main_kind(d);
	double await_ms = verdict_busy_await_ms(d, kind);

	text_add(t, "util ");
	if (isnan(await_ms)) {
		verdict_add_pct(t, d->util_max_pct);
		text_add(t,
			d->read_await_max_ms >= d->write_await_max_ms ? ", r_await "
								      : ", w_await ");
		add_ms(t, verdict_await_of(d));
	} else {
		verdict_add_pct(t, 100 * d->busy.util_ns_sum / (double)d->busy.ns);
		text_add(t, ", ");
		text_add(t, awaits[kind]);
		add_ms(t, await_ms);
		if (has_long_flushes(d, kind)) {
			text_add(t, ", f_await ");
			add_ms(t, verdict_busy_await_ms(d, VERDICT_FLUSH));
		}
	}
	if (!isnan(queue))
		text_addf(t, queue >= 9.95 ? ", queue depth %.0f" : ", queue depth %.1f", queue);
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

static const char *state_words(char state)
{
	switch (state) {
	case 'T':
		return "stopped (T)";
	case 'D':
		return "waiting itself (D)";
	case 'R':
		return "running (R)";
	case 'S':
		return "asleep (S)";
	case 'Z':
	case 'X':
		return "dead (Z)";
	default:
		return NULL;
	}
}

const struct verdict_file_server *verdict_find_file_server(const struct verdict_facts *f,
	enum verdict_wait wait)
{
	const struct verdict_file_server *server = &f->file_server;

	return wait == VERDICT_WAIT_server && (server->who.pid || *server->source) &&
			server->dev.major == f->waits[wait].dev.major &&
			server->dev.minor == f->waits[wait].dev.minor
		? server
		: NULL;
}

/* "sshfs pid 812, which was stopped (T), for host:/data on /srv"; "10.0.0.1:/export on /srv" */
void verdict_add_file_server(const struct verdict_file_server *server, struct text *t)
{
	const char *state = state_words(server->state);

	if (server->who.pid) {
		text_add(t, server->inferred ? "probably " : "");
		verdict_add_who(t, &server->who);
		if (state)
			text_addf(t, ", which was %s", state);
	}
	if (!*server->source)
		return;
	if (server->who.pid)
		text_add(t, state ? ", for " : " for ");
	text_addf(t, "%s on ", server->source);
	text_add(t, server->mount);
}

/* The length of a path without what says that the file was removed. */
static size_t cut_deleted(const char *path)
{
	size_t length = strlen(path), deleted = strlen(DELETED);

	if (length > deleted && strcmp(path + length - deleted, DELETED) == 0)
		return length - deleted;
	return length;
}

void verdict_add_path(struct text *t, const char *path)
{
	size_t length = cut_deleted(path);

	text_add_bytes(t, path, length);
	if (path[length])
		text_add(t, " (deleted)");
}

static void add_path_end(struct text *t, const char *path)
{
	const char *p = path + cut_deleted(path);

	for (unsigned int names = 0; p > path; p--)
		if (p[-1] == '/' && ++names == PATH_NAMES)
			break;
	if (p == path && *path == '/')
		p++;
	verdict_add_path(t, p);
}

void verdict_add_unresponsive(const struct verdict_database *d, struct text *t)
{
	text_add(t, d->target);
	if (d->server.pid) {
		text_add(t, " (");
		verdict_add_who(t, &d->server);
		text_add(t, ")");
	}
	text_add(t, " did not answer for ");
	record_add_duration(t, d->longest.ns);
	if (d->longest.stopped)
		text_add(t, " because its process was stopped");
}

void verdict_add_killed(const struct verdict_facts *f, struct text *t)
{
	text_add(t, "the kernel killed ");
	if (f->killed == 1) {
		text_add(t, "process ");
		verdict_add_who(t, &f->killed_who);
	} else {
		text_add_count(t, f->killed, "process", "processes");
	}
	text_add(t, " for want of memory");
	if (f->killed_in_group)
		text_add(t, f->killed == 1 ? " in its control group" : " in a control group");
	if (f->killed == 1)
		return;
	text_add(t, ", the first ");
	verdict_add_who(t, &f->killed_who);
}

/* Why there is no verdict: which observations are missing, or what they fail to explain. */
void verdict_add_missing(const struct verdict_facts *f, struct text *t)
{
	bool totals = false;

	for (uint32_t i = 0; i < f->devices_count; i++)
		totals = totals || f->devices[i].has_totals;
	if (f->longest_ns == 0 && f->samples > 0) {
		text_add(t, "no operation took ");
		record_add_duration(t, f->min_stall_ns);
		text_add(t, " or longer and no device was at its limit");
		return;
	}
	if (f->longest_ns == 0) {
		text_add(t, "no operation took ");
		record_add_duration(t, f->min_stall_ns);
		text_add(t, " or longer and the devices were not sampled");
		return;
	}
	text_add(t, "operations took up to ");
	record_add_duration(t, f->longest_ns);
	if (f->samples == 0)
		text_add(t, ", but the devices were not sampled");
	else if (f->waits[VERDICT_WAIT_none].longest_ns == f->longest_ns)
		text_add(t,
			", but it is not known what they waited for, and no device was at its limit");
	else
		text_add(t, ", but no device that they waited for was at its limit");
	if (!totals)
		text_add(t, "; requests to the devices were not traced");
}

/* "2130 reads, 3 writes, 187.9 MiB": kinds with little are left out. */
static void add_work(struct text *t, const struct verdict_load *load)
{
	static const char *const one[] = { "read", "write", "discard", "flush" };
	static const char *const many[] = { "reads", "writes", "discards", "flushes" };
	const char *separator = "";
	uint64_t all = 0;

	for (unsigned int i = 0; i < VERDICT_KINDS; i++)
		all += load->requests[i];
	for (unsigned int i = 0; i < VERDICT_KINDS; i++) {
		if (load->requests[i] == 0 || load->requests[i] * LITTLE < all)
			continue;
		text_add(t, separator);
		text_add_count(t, load->requests[i], one[i], many[i]);
		separator = ", ";
	}
	if (load->bytes == 0)
		return;
	text_add(t, separator);
	record_add_size(t, load->bytes);
}

/* "the resync, check or rebuild of the array md0 (kernel thread md0_resync pid 77)" */
static void add_resync(const struct verdict_who *who, struct text *t)
{
	int length = verdict_array_length(who->comm);

	text_addf(t, "the %s of the array %.*s (kernel thread ",
		strcmp(who->comm + length, "_reshape") == 0 ? "reshape"
							    : "resync, check or rebuild",
		length, who->comm);
	verdict_add_who(t, who);
	text_add(t, ")");
}

/* "the copying of blocks for the snapshot vg0-snap (kernel workers)" */
static void add_copying(const struct verdict_device *snapshot, struct text *t)
{
	const char *suffix = strrchr(snapshot->label, '-');

	text_add(t, "the copying of blocks for the snapshot ");
	text_add_bytes(t, snapshot->label, (size_t)(suffix - snapshot->label));
	text_add(t, " (kernel workers)");
}

bool verdict_is_sessions(const struct verdict_finding *v)
{
	return (v->group_shares || v->work_key) && v->group_count > 1 && !v->is_parallel;
}

/* "shop.public.orders (16384/16393)": the file has no name that says what it is. */
static void add_file(const struct verdict_finding *v, struct text *t)
{
	if (!*v->relation) {
		add_path_end(t, v->file);
		return;
	}
	text_add(t, v->relation);
	text_add(t, " (");
	add_path_end(t, v->file);
	text_add(t, ")");
}

/* "30 sessions of mariadbd with the same statement"; the part has one of their threads. */
static void add_sessions(const struct verdict_finding *v, uint32_t count, struct text *t)
{
	text_addf(t, "%" PRIu32 " sessions of ", count);
	text_add(t, v->culprit->who.comm);
	text_add(t, " with the same statement");
}

/*
 * "postgres pid 4711 and 2 parallel workers"; "2 parallel workers of postgres pid 4711"; "3 I/O
 * workers (mostly for postgres pid 4711)"
 */
static void add_workers(const struct verdict_finding *v, const char *role, struct text *t)
{
	uint32_t parallel = v->group_count - v->io_workers;
	bool is_named = v->leader_moved || parallel > 0;

	if (parallel > 0 && !v->leader_moved) {
		text_add_count(t, parallel, "parallel worker", "parallel workers");
		text_add(t, " of ");
	}
	if (is_named) {
		verdict_add_who(t, &v->culprit->who);
		if (*role)
			text_addf(t, " (%s)", role);
	}
	if (parallel > 0 && v->leader_moved) {
		text_add(t, v->io_workers > 0 ? ", " : " and ");
		text_add_count(t, parallel, "parallel worker", "parallel workers");
	}
	if (v->io_workers == 0)
		return;
	text_add(t, is_named ? " and " : "");
	text_add_count(t, v->io_workers, "I/O worker", "I/O workers");
	text_add(t, " (mostly for ");
	if (is_named && v->served > 1)
		text_addf(t, "%u sessions with its statement", v->served);
	else if (is_named)
		text_add(t, "it");
	else if (v->served > 1)
		add_sessions(v, v->served, t);
	else
		verdict_add_who(t, &v->culprit->who);
	text_add(t, ")");
}

/* "mariadbd pid 4711 (page cleaner)" */
static void add_culprit_who(const struct verdict_finding *v, struct text *t)
{
	const char *role = v->culprit->inferred ? verdict_kernel_thread_role(v->culprit->who.comm)
						: v->culprit_role;

	if (v->is_resync) {
		add_resync(&v->culprit->who, t);
		return;
	}
	if (v->snapshot) {
		add_copying(v->snapshot, t);
		return;
	}
	if (v->culprit_by == VERDICT_BY_UNIT) {
		text_add(t, v->device->unit);
		return;
	}
	if (v->is_parallel) {
		add_workers(v, role, t);
		return;
	}
	if (v->kernel_threads > 1) {
		text_add(t, "kernel workers");
		return;
	}
	if (v->committers > 1) {
		text_addf(t, "%u processes of ", v->committers);
		record_add_printable(t, v->culprit->who.comm);
		return;
	}
	if (verdict_is_sessions(v)) {
		add_sessions(v, v->group_count, t);
		return;
	}
	if (v->culprit->inferred)
		text_add(t, "the kernel thread ");
	verdict_add_who(t, &v->culprit->who);
	if (role && *role)
		text_addf(t, " (%s)", role);
}

/* What is known of nobody. */
static double untraced_pct(const struct verdict_finding *v)
{
	double traced_ns = (double)v->device->traced_ns + (double)v->attributed_ns;

	return v->work_ns > 0 ? 100 * (v->work_ns - traced_ns) / v->work_ns : 0;
}

static bool has_untraced(const struct verdict_finding *v)
{
	return untraced_pct(v) >= UNTRACED_PCT;
}

/* Who dirtied what kernel workers write back is not known, but that it was write-back is. */
bool verdict_culprit_has_half(const struct verdict_finding *v)
{
	return v->culprit_is_most || (v->is_write_back && verdict_culprit_pct(v) >= HALF_PCT);
}

/*
 * The file has half of what was traced. Of somebody with less than half it is not said, unless at
 * least half of his own must have been for it.
 */
static bool is_mostly_on_file(const struct verdict_finding *v)
{
	const struct verdict_load *file = &v->device->load[VERDICT_BY_FILE];

	return *v->file &&
		(verdict_culprit_has_half(v) ||
			file->busy_ns + v->culprit->busy_ns / 2 >= v->device->traced_ns);
}

/*
 * "mariadbd tid 2211 used 92 % of the device time (2130 reads, 214 MiB), mostly on big/t.ibd"; of
 * somebody with less than half: "mariadbd tid 2211 used the most, 30 % of the device time (...)"
 */
void verdict_add_culprit(const struct verdict_finding *v, struct text *t)
{
	add_culprit_who(v, t);
	text_add(t, verdict_is_probable(v) ? " probably used " : " used ");
	if (!verdict_culprit_has_half(v))
		text_add(t, "the most, ");
	/* The busiest threads of a device are known. */
	if (v->group_shares && verdict_is_sessions(v) && v->group_count > v->culprit->count)
		text_add(t, "at least ");
	verdict_add_pct(t, verdict_culprit_pct(v));
	text_add(t, " of the device time");
	if (v->unseen_ns)
		text_add(t, " since tracing began");
	text_add(t, " (");
	add_work(t, v->culprit);
	text_add(t,
		v->by_counters ? ", by its own counters most of it before tracing began)" : ")");
	if (v->writer_back || v->through.pid) {
		text_add(t, " through the kernel thread ");
		verdict_add_who(t, v->through.pid ? &v->through : v->writer_back);
	} else if (v->is_write_back) {
		text_add(t, " to write back what programs had dirtied before");
	} else if (v->culprit->inferred) {
		text_add(t, " for programs that are not known");
	}
	if (is_mostly_on_file(v)) {
		text_add(t, ", mostly on ");
		add_file(v, t);
	}
}

bool verdict_is_named(const struct verdict_finding *v)
{
	return v->culprit && (v->culprit_is_most || verdict_culprit_pct(v) >= NAMED_PCT);
}

/* Where no program is named, the file may be all that is known. */
static void add_unknown_cause(const struct verdict_finding *v, struct text *t)
{
	text_add(t, "; it is not known who caused it");
	if (!verdict_is_named(v) && *v->file) {
		text_add(t, ", but most of it was for ");
		add_file(v, t);
	}
	text_add(t, ": ");
}

void verdict_add_blame(const struct verdict_finding *v, struct text *t)
{
	if (verdict_culprit_has_half(v)) {
		text_add(t, ": ");
	} else if (has_untraced(v) || v->culprit->inferred) {
		add_unknown_cause(v, t);
		if (has_untraced(v) && verdict_is_named(v))
			text_add(t, "of what could be traced, ");
	} else {
		text_add(t, "; no program alone caused it: ");
	}
	if (verdict_is_named(v))
		verdict_add_culprit(v, t);
	else
		text_add(t, "no program used as much as a fifth of the device time");
}

bool verdict_is_probable(const struct verdict_finding *v)
{
	return v->culprit->uncertain || v->unseen_ns;
}

double verdict_culprit_pct(const struct verdict_finding *v)
{
	double pct = v->work_ns > 0 ? 100 * (double)v->culprit->busy_ns / v->work_ns : 0;

	/* Two completions at the same time may both have counted the time before them. */
	return pct < 100 ? pct : 100;
}

/*
 * "the file that grew fastest was /small/log (by 2.0 MiB), written by python3 pid 12"; "the largest
 * file open for writing was /small/temporary (38.0 MiB), held open by python3 pid 12"
 */
void verdict_add_writer(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_full *full = &v->f->full;

	text_add(t,
		full->grown_bytes	? "the file that grew fastest was "
			: full->changed ? "the largest file that was written to meanwhile was "
					: "the largest file open for writing was ");
	verdict_add_path(t, full->path);
	text_add(t, " (");
	if (*v->relation) {
		text_add(t, v->relation);
		text_add(t, ", ");
	}
	text_add(t, full->grown_bytes ? "by " : "");
	record_add_size(t, full->grown_bytes ? full->grown_bytes : full->written_bytes);
	text_add(t, full->grown_bytes || full->changed ? "), written by " : "), held open by ");
	verdict_add_who(t, &full->writer);
	if (full->search == RECORD_SEARCH_cut_off)
		text_add(t, " (not all open files were looked at)");
}

/* "; who used another 47 %, before tracing began, is not known" */
void verdict_add_untraced(const struct verdict_finding *v, struct text *t)
{
	if (v->unseen_ns) {
		text_add(t, "; who used the ");
		record_add_duration(t, v->unseen_ns);
		text_add(t, " before tracing began is not known");
	} else if (has_untraced(v)) {
		text_add(t, "; who used another ");
		verdict_add_pct(t, untraced_pct(v));
		text_add(t, ", before tracing began, is not known");
	}
}

/* Each run of blanks and line ends becomes one blank. */
void verdict_add_text(struct text *t, const char *s)
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

/* "a statement of app@localhost that had run for 31 s: "SELECT ..."" */
void verdict_add_statement(struct text *t, const struct verdict_statement *s, bool with_text)
{
	text_add(t, "a statement ");
	if (*s->user) {
		text_add(t, "of ");
		text_add(t, s->user);
		text_add(t, " ");
	}
	text_add(t, "that had run for ");
	record_add_duration(t, s->elapsed_ns);
	if (!with_text || !*s->text)
		return;
	text_add(t, ": \"");
	verdict_add_text(t, s->text);
	text_add(t, "\"");
}

/*
 * How far its start may be off: a MySQL server that reports whole seconds counts those of the wall
 * clock.
 */
uint64_t verdict_start_error_ns(const struct verdict_statement *s)
{
	return s->elapsed_ns % NSEC_PER_SEC ? 0 : NSEC_PER_SEC;
}
