/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections of the page that are there without scripts, as report/README.md has them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/sort.h"

/* "2026-11-26 18:10:11.230 UTC" */
static void add_utc(struct text *out, uint64_t real_ns)
{
	char buf[RECORD_TIME_SIZE];

	clock_format_rfc3339(real_ns, buf, sizeof(buf));
	text_addf(out, "%.10s %.12s UTC", buf, buf + 11);
}

static const char *class_of(const struct report *p)
{
	const char *class = record_class_text(p->verdict.class);

	return class ? class : "unknown";
}

static void add_name(struct report *p, struct text *out)
{
	text_addf(out, "%s: ", class_of(p));
	text_add_html(out, p->open.host);
	text_add(out, ", ");
	add_utc(out, p->opened_real_ns);
}

void report_add_title(struct report *p, struct text *out)
{
	text_add(out, "<title>");
	add_name(p, out);
	if (p->second) {
		text_add(out, ", and ");
		add_name(p->second, out);
	}
	text_add(out, "</title>\n");
}

/* The verdict */

static void begin_fact(struct text *out, const char *name)
{
	text_addf(out, "<div><dt>%s</dt><dd>", name);
}

static void end_fact(struct text *out)
{
	text_add(out, "</dd></div>\n");
}

static void add_fact(struct text *out, const char *name, const char *value)
{
	if (!*value)
		return;
	begin_fact(out, name);
	text_add(out, "<bdi>");
	text_add_html(out, value);
	text_add(out, "</bdi>");
	end_fact(out);
}

static const char *end_of_incident(enum record_reason reason)
{
	switch (reason) {
	case RECORD_REASON_clear:
		return "when all was clear again";
	case RECORD_REASON_max_time:
		return "after the longest time that one is recorded";
	case RECORD_REASON_stopped:
		return "because iostall was stopped";
	default:
		return "";
	}
}

static void add_when(struct report *p, struct text *out)
{
	char buf[RECORD_TIME_SIZE];

	clock_format_rfc3339(p->opened_real_ns, buf, sizeof(buf));
	begin_fact(out, "Recorded from");
	text_addf(out, "<time datetime=\"%s\">", buf);
	add_utc(out, p->opened_real_ns);
	text_add(out, "</time>");
	end_fact(out);
	begin_fact(out, p->closed ? "Recorded for" : "So far");
	html_add_duration(out, report_duration_ns(p));
	end_fact(out);
}

static void add_trigger(struct report *p, struct text *out)
{
	char buf[RECORD_LIST_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_trigger(&t, &p->open.trigger);
	add_fact(out, "Trigger", buf);
}

/* The first thing that people look for. The text of the part begins with the name. */
static void add_culprit(struct report *p, struct text *out)
{
	const struct record_verdict_part *part = report_find_culprit(p);
	const char *end = part ? strstr(part->text, ": ") : NULL;
	char name[sizeof(part->text)];

	if (!part) {
		add_fact(out, "Culprit", "none was found");
		return;
	}
	if (end)
		text_copy(name, (size_t)(end - part->text) + 1, part->text);
	else
		text_copy(name, sizeof(name), part->comm);
	add_fact(out, "Culprit", name);
}

void report_add_verdict_as(struct report *p, const char *heading, struct text *out)
{
	text_addf(out, "<p class=\"badges\"><span class=\"badge %s\">%s</span> ", class_of(p),
		class_of(p));
	html_add_basis(out, p->verdict.basis);
	text_addf(out, "</p>\n<%s>", heading);
	text_add_html(out, p->verdict.sentence);
	text_addf(out, "</%s>\n<dl class=\"facts\">\n", heading);
	add_culprit(p, out);
	add_fact(out, "Host", p->open.host);
	add_when(p, out);
	add_trigger(p, out);
	if (p->closed)
		add_fact(out, "Ended", end_of_incident(p->close.reason));
	add_fact(out, "Continues", p->open.continues);
	add_fact(out, "Kernel", p->open.kernel);
	add_fact(out, "Incident", p->incident);
	text_add(out, "</dl>\n");
}

void report_add_verdict(struct report *p, struct text *out)
{
	report_add_verdict_as(p, "h1", out);
}

/* Its parts */

static void add_figure(struct text *out, const char *name, const char *value)
{
	text_addf(out, "<div><dt>%s</dt><dd>%s</dd></div>", name, value);
}

static void add_figure_ns(struct text *out, const char *name, uint64_t ns)
{
	char buf[32];
	struct text t = TEXT_ON(buf);

	if (!ns)
		return;
	text_reset(&t);
	record_add_duration(&t, ns);
	add_figure(out, name, buf);
}

static void add_figure_u64(struct text *out, const char *name, uint64_t value)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%" PRIu64, value);
	if (value)
		add_figure(out, name, buf);
}

static void add_figure_real(struct text *out, const char *name, double value, const char *unit)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%.*f%s", value < 9.95 ? 1 : 0, value, unit);
	if (!isnan(value))
		add_figure(out, name, buf);
}

static void add_figures(struct text *out, const struct record_verdict_part *part)
{
	const size_t before = out->len;
	char size[32];
	struct text t = TEXT_ON(size);

	text_reset(&t);
	record_add_size(&t, part->bytes);
	text_add(out, "<dl class=\"figures\">");
	add_figure_u64(out, "threads", part->threads);
	add_figure_ns(out, "longest", part->longest_ns);
	add_figure_ns(out, "all together", part->total_ns);
	add_figure_u64(out, "requests", part->requests);
	if (part->bytes)
		add_figure(out, "bytes", size);
	add_figure_real(out, "share", part->share_pct, " %");
	add_figure_real(out, "utilisation", part->util_pct, " %");
	add_figure_real(out, "await", part->await_ms, " ms");
	add_figure_real(out, "queue", part->queue, "");
	/* A list of nothing is none. */
	if (out->len == before + strlen("<dl class=\"figures\">")) {
		out->len = before;
		out->buf[before] = '\0';
		return;
	}
	text_add(out, "</dl>");
}

void report_add_parts(struct report *p, struct text *out)
{
	if (!p->verdict.parts_count) {
		text_add(out, "<p class=\"none\">Nothing was seen that explains it.</p>\n");
		return;
	}
	text_add(out, "<ul class=\"parts\">\n");
	for (uint32_t i = 0; i < p->verdict.parts_count && i < RECORD_PARTS_MAX; i++) {
		const struct record_verdict_part *part = &p->verdict.parts[i];

		text_addf(out,
			"<li class=\"%s\"><p class=\"label\"><span class=\"what\">%s</span> ",
			part->basis ? record_basis_text(part->basis) : "missing",
			record_what_text(part->what));
		html_add_basis(out, part->basis);
		text_add(out, "</p>\n<p>");
		text_add_html(out, part->text);
		text_add(out, "</p>");
		add_figures(out, part);
		text_add(out, "</li>\n");
	}
	text_add(out, "</ul>\n");
}

/* Who loaded the disks */

struct load_row {
	const struct report_load *load;
	unsigned int disk; /* in the order of the page */
};

static int compare_loads(const void *a, const void *b)
{
	const struct load_row *x = a, *y = b;

	if (x->disk != y->disk)
		return x->disk < y->disk ? -1 : 1;
	if (x->load->by != y->load->by)
		return x->load->by < y->load->by ? -1 : 1;
	return (x->load->rank > y->load->rank) - (x->load->rank < y->load->rank);
}

/* The next list begins with a line of rank 1. */
bool report_load_is_last(const struct report *p, uint32_t i)
{
	const struct report_load *l = &p->loads.items[i];

	for (uint32_t k = i + 1; k < p->loads.count; k++) {
		const struct report_load *later = &p->loads.items[k];

		if (later->dev_name == l->dev_name && later->by == l->by && later->rank == 1)
			return false;
	}
	return true;
}

static void add_load(struct report *p, const struct report_load *l, struct text *out)
{
	text_addf(out, "<tr data-by=\"%s\">", record_by_text(l->by));
	html_add_cell(out, strings_get(&p->strings, l->dev_name));
	html_add_cell(out, record_by_text(l->by));
	text_add(out, "<td><bdi>");
	text_add_html(out, l->name ? strings_get(&p->strings, l->name) : "-");
	text_add(out, "</bdi>");
	if (l->tid && l->tid != l->pid)
		text_addf(out, " <span class=\"minor\">thread %" PRId32 "</span>", l->tid);
	else if (l->pid)
		text_addf(out, " <span class=\"minor\">pid %" PRId32 "</span>", l->pid);
	text_add(out, "</td>");
	html_add_cell(out, strings_get(&p->strings, l->unit));
	html_add_duration_cell(out, l->busy_ns);
	html_add_percent_cell(out, l->share_pct);
	html_add_count_cell(out, l->requests);
	html_add_bytes_cell(out, l->bytes);
	text_add(out, "<td>");
	html_add_basis(out,
		l->inferred || l->uncertain ? RECORD_BASIS_inferred : RECORD_BASIS_measured);
	text_add(out, "</td></tr>\n");
}

void report_add_loads(struct report *p, struct text *out)
{
	static const char *const columns[] = { "Disk", "By", "Name", "Unit", "#Disk time", "#Share",
		"#Requests", "#Bytes", "Basis", NULL };
	struct load_row *list = malloc((p->loads.count + 1) * sizeof(*list));
	uint32_t count = 0;

	/* What the page does not show as a disk comes last. */
	for (uint32_t i = 0; list && i < p->loads.count; i++)
		if (report_load_is_last(p, i))
			list[count++] = (struct load_row){ &p->loads.items[i],
				(unsigned int)report_find_disk(p, p->loads.items[i].dev_name) };
	if (!count) {
		text_add(out, "<p class=\"none\">No request of a disk was seen.</p>\n");
		free(list);
		return;
	}
	sort_in_place(list, count, sizeof(*list), compare_loads);
	html_begin_table(out, "Load since the probes were armed", columns);
	for (uint32_t i = 0; i < count && i < 4 * REPORT_ROWS_MAX; i++)
		add_load(p, list[i].load, out);
	html_end_table(out);
	free(list);
}

/* Statements */

static void add_statement(struct report *p, const struct report_statement *s, struct text *out)
{
	text_add(out, "<tr><td><code class=\"sql\">");
	html_add_lines(out,
		s->text ? strings_get(&p->strings, s->text) : "(its text is not known)");
	text_add(out, "</code></td>");
	html_add_cell(out, strings_get(&p->strings, s->target));
	html_add_cell(out, strings_get(&p->strings, s->user));
	html_add_count_cell(out, s->connection_id);
	html_add_duration_cell(out, s->ns);
	text_add(out, "<td>");
	text_add(out, s->lock ? record_lock_text(s->lock) : "-");
	if (s->lock)
		text_add(out, " lock");
	if (s->lock_on) {
		text_add(out, " of <bdi>");
		text_add_html(out, strings_get(&p->strings, s->lock_on));
		text_add(out, "</bdi>");
	}
	text_add(out, "</td>");
	if (!s->blocked_by) {
		text_add(out, "<td class=\"num\">-</td></tr>\n");
		return;
	}
	text_addf(out, "<td class=\"num\" data-value=\"%" PRIu64 "\">%" PRIu64 " ", s->blocked_by,
		s->blocked_by);
	html_add_basis(out, s->inferred ? RECORD_BASIS_inferred : RECORD_BASIS_measured);
	text_add(out, "</td></tr>\n");
}

void report_add_statements(struct report *p, struct text *out)
{
	static const char *const columns[] = { "Statement", "Database", "User", "#Session",
		"#Ran for", "Waits for", "#Blocked by", NULL };

	if (!p->statements.count) {
		text_add(out,
			p->model.sessions.count ? "<p class=\"none\">No statement was seen.</p>\n"
						: "<p class=\"none\">No database was asked.</p>\n");
		return;
	}
	html_begin_table(out, "Statements seen in the databases", columns);
	for (uint32_t i = 0; i < p->statements.count; i++)
		add_statement(p, &p->statements.items[i], out);
	html_end_table(out);
}

/* The end */

void report_add_coverage(struct report *p, struct text *out)
{
	static const char *const columns[] = { "I/O path", "Seen", "Probe", "Attached by",
		"Pairing", "Remark", NULL };

	html_begin_table(out, "Ways of doing I/O", columns);
	for (uint32_t i = 0; i < p->open.coverage_count && i < RECORD_COVERAGE_MAX; i++) {
		const struct record_coverage *c = &p->open.coverage[i];

		text_add(out, "<tr>");
		html_add_cell(out, record_io_path_text(c->path));
		html_add_cell(out, c->probe ? "yes" : "no");
		html_add_cell(out, c->probe ? record_probe_text(c->probe) : "");
		html_add_cell(out, c->backend ? record_backend_text(c->backend) : "");
		html_add_cell(out, c->pairing ? record_pairing_text(c->pairing) : "");
		text_add(out, "<td><span class=\"words\">");
		text_add_html(out, *c->reason ? c->reason : "-");
		text_add(out, "</span></td></tr>\n");
	}
	html_end_table(out);
}

static const char *meaning_of(enum record_lost lost)
{
	static const char *const meanings[] = {
#define LOST(name, help) [RECORD_LOST_##name] = help,
#include "record/lost.def"
#undef LOST
	};

	return meanings[lost];
}

static void add_lost(struct text *out, const char *what, uint64_t count, const char *meaning)
{
	text_add(out, "<tr>");
	html_add_cell(out, what);
	html_add_count_cell(out, count);
	html_add_cell(out, meaning);
	text_add(out, "</tr>\n");
}

static void add_costs(const struct record_close *c, struct text *out)
{
	text_add(out, "<h3>What recording cost</h3>\n<dl class=\"facts\">\n");
	begin_fact(out, "CPU time");
	html_add_duration(out, c->cost.cpu_ns);
	end_fact(out);
	begin_fact(out, "Memory");
	record_add_size(out, c->cost.rss_bytes + c->cost.kernel_bytes);
	end_fact(out);
	begin_fact(out, "Armed within");
	html_add_duration(out, c->cost.armed_ns);
	end_fact(out);
	text_add(out, "</dl>\n");
}

void report_add_losses(struct report *p, struct text *out)
{
	static const char *const columns[] = { "What", "#Count", "Meaning", NULL };
	uint64_t lost = 0;

	for (unsigned int i = 0; p->closed && i < RECORD_LOST_COUNT; i++)
		lost += p->close.lost[i];
	if (!p->closed)
		text_add(out,
			"<p>The record has no end: it is still being written, or the recorder was "
			"killed.</p>\n");
	lost += p->lines.garbage + p->lines.newer;
	if (!lost && !p->left_out_count && !p->alike) {
		/* What was lost is in its end. */
		if (p->closed)
			text_add(out, "<p class=\"none\">Nothing was lost.</p>\n");
	} else {
		html_begin_table(out, "Lost, or left out here", columns);
		for (unsigned int i = 0; p->closed && i < RECORD_LOST_COUNT; i++)
			if (p->close.lost[i])
				add_lost(out, record_lost_text(i), p->close.lost[i], meaning_of(i));
		if (p->lines.garbage)
			add_lost(out, "lines that are damaged", p->lines.garbage,
				"in the file, but no lines of a record");
		if (p->lines.newer)
			add_lost(out, "lines of a later version", p->lines.newer,
				"in the record, but only a newer iostall can read them");
		if (p->alike)
			add_lost(out, "operations that have no line of their own", p->alike,
				"as others at the same time: a line of the record stands for many");
		for (uint32_t i = 0; i < p->left_out_count; i++)
			add_lost(out, p->left_out[i].what, p->left_out[i].count,
				"in the record, but left out here so that the page stays small");
		html_end_table(out);
	}
	if (p->closed)
		add_costs(&p->close, out);
}

void report_add_footer(struct report *p, struct text *out)
{
	text_add(out, "<p>iostall ");
	text_add_html(out, p->open.version);
	text_add(out, ", incident ");
	text_add_html(out, p->incident);
	if (*p->open.host) {
		text_add(out, ", recorded on ");
		text_add_html(out, p->open.host);
	}
	text_add(out, ".</p>\n");
}
