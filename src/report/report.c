/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/assets.h"
#include "report/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/sort.h"

/* Of one place of the page. The limits of internal.h keep it far below that. */
#define PLACE_SIZE (4 * 1024 * 1024)
/* How much the begin of one statement differs between answers: some servers count seconds. */
#define BEGUN_ERROR_NS (3 * NSEC_PER_SEC / 2)

int report_new(struct report **ret_report)
{
	struct report *p = calloc(1, sizeof(*p));

	if (!p || statements_new(&p->runs) < 0 || strings_init(&p->strings) < 0) {
		report_free(p);
		return -ENOMEM;
	}
	*ret_report = p;
	return 0;
}

struct report *report_free(struct report *p)
{
	if (!p)
		return NULL;
	statements_free(p->runs);
	strings_done(&p->strings);
	free(p->samples.items);
	free(p->operations.items);
	free(p->slots);
	free(p->offcpu.items);
	free(p->loads.items);
	free(p->histograms.items);
	free(p->statements.items);
	free(p->marks.items);
	free(p->data.buf);
	free(p);
	return NULL;
}

int report_grow(void **items, size_t size, uint32_t *room)
{
	uint32_t more = *room ? 2 * *room : 64;
	void *grown = reallocarray(*items, more, size);

	if (!grown)
		return -ENOMEM;
	*items = grown;
	*room = more;
	return 0;
}

void report_leave_out(struct report *p, const char *what, uint64_t count)
{
	if (!count || p->left_out_count == ARRAY_SIZE(p->left_out))
		return;
	p->left_out[p->left_out_count].what = what;
	p->left_out[p->left_out_count++].count = count;
}

double report_ms(const struct report *p, uint64_t mono_ns)
{
	return ((double)mono_ns - (double)p->opened_mono_ns) / NSEC_PER_MSEC;
}

uint64_t report_duration_ns(const struct report *p)
{
	return p->closed ? p->close.duration_ns : p->last_mono_ns - p->opened_mono_ns;
}

/* "sda1" is a part of "sda", and "nvme0n1p2" of "nvme0n1". */
static bool is_part_of(const char *name, const char *disk)
{
	const size_t len = strlen(disk);

	if (strncmp(name, disk, len) != 0)
		return false;
	name += len;
	name += *name == 'p';
	return strspn(name, "0123456789") == strlen(name);
}

int report_find_disk(const struct report *p, uint32_t dev_name)
{
	const char *name = strings_get(&p->strings, dev_name);

	for (uint32_t i = 0; i < p->disks_count; i++)
		if (p->disks[i] == dev_name)
			return (int)i;
	for (uint32_t i = 0; *name && i < p->disks_count; i++)
		if (is_part_of(name, strings_get(&p->strings, p->disks[i])))
			return (int)i;
	return -1;
}

int report_find_statement(const struct report *p, const struct statement_query *query)
{
	const struct statement *s = statements_find(p->runs, query);

	for (uint32_t i = 0; s && i < p->statements.count; i++) {
		const struct report_statement *row = &p->statements.items[i];

		if (row->connection_id == s->connection_id &&
			row->begun_ns < s->begun_ns + BEGUN_ERROR_NS &&
			s->begun_ns < row->begun_ns + BEGUN_ERROR_NS)
			return (int)i;
	}
	return -1;
}

/* Taking lines */

static int add_mark(struct report *p, uint64_t at_ns, const char *kind, const char *text)
{
	struct report_mark *m = report_list_add(&p->marks);

	if (!m)
		return -ENOMEM;
	*m = (struct report_mark){ at_ns, kind, strings_add(&p->strings, text) };
	return 0;
}

static int add_trigger(struct report *p, uint64_t at_ns, const char *kind,
	const struct record_trigger *trigger)
{
	char buf[RECORD_LIST_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_trigger(&t, trigger);
	return add_mark(p, at_ns, kind, buf);
}

static int add_open(struct report *p, const struct record *r)
{
	int e;

	if (p->opened)
		return 0;
	p->opened = true;
	p->open = r->open;
	p->opened_real_ns = r->real_ns;
	p->opened_mono_ns = r->mono_ns;
	memcpy(p->incident, r->incident, sizeof(p->incident));
	e = add_trigger(p, r->mono_ns - r->open.armed_ns, "trigger", &r->open.trigger);
	return e < 0 ? e : add_mark(p, r->mono_ns, "armed", "the probes are live");
}

static int add_sample(struct report *p, const struct record_sample *sample)
{
	struct record_sample *s = report_list_add(&p->samples);

	if (!s)
		return -ENOMEM;
	*s = *sample;
	return 0;
}

static int add_device(struct report *p, const struct record *r)
{
	struct report_histogram *h = report_list_add(&p->histograms);

	if (!h)
		return -ENOMEM;
	h->at_ns = r->mono_ns;
	h->dev_name = strings_add(&p->strings, r->device.dev_name);
	memcpy(h->queue, r->device.queue_histogram, sizeof(h->queue));
	memcpy(h->device, r->device.device_histogram, sizeof(h->device));
	return 0;
}

static const char *name_of_load(const struct record_io_by *b)
{
	switch (b->by) {
	case RECORD_BY_file:
		return *b->relation ? b->relation : b->path;
	case RECORD_BY_cgroup:
		return b->unit;
	case RECORD_BY_statement:
		return b->statement.text;
	default:
		return *b->role ? b->role : b->comm;
	}
}

static int add_load(struct report *p, const struct record *r)
{
	const struct record_io_by *b = &r->io_by;
	struct report_load *l = report_list_add(&p->loads);

	if (!l)
		return -ENOMEM;
	*l = (struct report_load){
		.at_ns = r->mono_ns,
		.busy_ns = b->busy_ns,
		.bytes = b->bytes + b->discard_bytes,
		.requests = b->requests,
		.share_pct = b->busy_share_pct,
		.pid = b->pid,
		.tid = b->tid,
		.dev_name = strings_add(&p->strings, b->dev_name),
		.name = strings_add(&p->strings, name_of_load(b)),
		.unit = strings_add(&p->strings, b->unit),
		.rank = b->rank,
		.by = (uint8_t)b->by,
		.final = b->final,
		.inferred = b->inferred,
		.uncertain = b->uncertain,
	};
	return 0;
}

static int add_offcpu(struct report *p, const struct record *r)
{
	const struct record_offcpu *o = &r->offcpu;
	struct report_offcpu *row = report_list_add(&p->offcpu);

	if (!row)
		return -ENOMEM;
	*row = (struct report_offcpu){
		.end_ns = r->mono_ns,
		.window_ns = o->window_ns,
		.ns = o->time_ns,
		.runnable_ns = o->runnable_ns,
		.longest_ns = o->longest_ns,
		.start_ns = o->start_mono_ns,
		.times = o->times,
		.pid = o->pid,
		.tid = o->tid,
		.process = strings_add(&p->strings, o->process),
		.comm = strings_add(&p->strings, o->comm),
		.kernel = strings_add(&p->strings, o->kstack),
		.user = strings_add(&p->strings, o->ustack),
		.threads = o->threads,
		.state = o->state,
	};
	return 0;
}

static struct report_statement *find_statement(struct report *p,
	const struct report_statement *seen)
{
	for (uint32_t i = p->statements.count; i > 0; i--) {
		struct report_statement *s = &p->statements.items[i - 1];

		if (s->connection_id == seen->connection_id && s->target == seen->target &&
			s->text == seen->text && s->begun_ns < seen->begun_ns + BEGUN_ERROR_NS &&
			seen->begun_ns < s->begun_ns + BEGUN_ERROR_NS)
			return s;
	}
	return NULL;
}

static int add_statement(struct report *p, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	struct report_statement seen = {
		.begun_ns = r->mono_ns > q->elapsed_ns ? r->mono_ns - q->elapsed_ns : 0,
		.seen_ns = r->mono_ns,
		.ns = q->elapsed_ns,
		.connection_id = q->connection_id,
		.blocked_by = q->blocked_by,
		.tid = q->tid,
		.target = strings_add(&p->strings, q->target),
		.user = strings_add(&p->strings, q->user),
		.database = strings_add(&p->strings, q->database),
		.text = strings_add(&p->strings, q->text),
		.lock_on = strings_add(&p->strings, q->lock_on),
		.lock = (uint8_t)q->lock,
		.inferred = q->blocked_basis == RECORD_BASIS_inferred,
	};
	struct report_statement *s;

	statements_take(p->runs, r);
	if (!q->connection_id || (q->background && !*q->text))
		return 0;
	s = find_statement(p, &seen);
	if (s && s->ns > seen.ns)
		return 0;
	if (s && !seen.lock) {
		seen.lock = s->lock;
		seen.lock_on = s->lock_on;
		seen.blocked_by = s->blocked_by;
	}
	if (!s)
		s = report_list_add(&p->statements);
	if (!s)
		return -ENOMEM;
	*s = seen;
	return 0;
}

static int add_verdict(struct report *p, const struct record *r)
{
	const enum record_class last = p->has_verdict ? p->verdict.class : RECORD_CLASS_NONE;

	p->has_verdict = true;
	p->verdict = r->verdict;
	if (r->verdict.final || r->verdict.class == last)
		return 0;
	return add_mark(p, r->mono_ns, "verdict", r->verdict.sentence);
}

static int take(struct report *p, const struct record *r)
{
	switch (r->type) {
	case RECORD_OPEN:
		return add_open(p, r);
	case RECORD_TRIGGER:
		return add_trigger(p, r->mono_ns, "rule", &r->trigger);
	case RECORD_SAMPLE:
		return add_sample(p, &r->sample);
	case RECORD_STALL:
	case RECORD_STUCK:
		return report_add_operation(p, r);
	case RECORD_DEVICE:
		return add_device(p, r);
	case RECORD_IO_BY:
		return add_load(p, r);
	case RECORD_OFFCPU:
		return add_offcpu(p, r);
	case RECORD_SQL:
		return add_statement(p, r);
	case RECORD_KERNEL:
		return add_mark(p, r->mono_ns, "kernel", r->kernel.text);
	case RECORD_VERDICT:
		return add_verdict(p, r);
	case RECORD_CLOSE:
		p->closed = true;
		p->close = r->close;
		return add_mark(p, r->mono_ns, "close", record_reason_text(r->close.reason));
	default:
		return 0;
	}
}

int report_add(struct report *p, const struct record *r)
{
	model_add(&p->model, r);
	if (r->type != RECORD_SAMPLE || !r->sample.before_trigger)
		p->last_mono_ns = r->mono_ns;
	return take(p, r);
}

static int compare_statements(const void *a, const void *b)
{
	const struct report_statement *x = a, *y = b;

	return x->ns != y->ns
		? (x->ns < y->ns ? 1 : -1)
		: (x->connection_id > y->connection_id) - (x->connection_id < y->connection_id);
}

static void choose_statements(struct report *p)
{
	sort_in_place(p->statements.items, p->statements.count, sizeof(*p->statements.items),
		compare_statements);
	if (p->statements.count <= REPORT_STATEMENTS_MAX)
		return;
	report_leave_out(p, "statements, the shortest",
		p->statements.count - REPORT_STATEMENTS_MAX);
	p->statements.count = REPORT_STATEMENTS_MAX;
}

/* The page */

/* The disk that is judged, then those that were busiest. */
static void choose_disks(struct report *p)
{
	const struct model_disks *disks = &p->model.disks;
	uint32_t chosen = 0;

	while (p->disks_count < REPORT_DISKS_MAX) {
		int best = -1;

		for (uint32_t i = 0; i < disks->count; i++) {
			const struct model_disk *d = &disks->list[i];
			const bool is_judged = d->dev.major == p->verdict.dev.major &&
				d->dev.minor == p->verdict.dev.minor;

			if (chosen & 1u << i)
				continue;
			if (p->disks_count == 0 && is_judged) {
				best = (int)i;
				break;
			}
			if (best < 0 || d->work_ns > disks->list[best].work_ns)
				best = (int)i;
		}
		if (best < 0)
			break;
		chosen |= 1u << best;
		p->disks[p->disks_count++] = strings_add(&p->strings, disks->list[best].name);
	}
	report_leave_out(p, "disks", disks->count - p->disks_count);
}

static void add_policy(struct report *p, struct text *out)
{
	(void)p;
	text_addf(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; "
		"form-action 'none'\">\n",
		report_style_hash, report_script_hash);
}

/* It is made first, as other places say what it leaves out. */
static void put_data(struct report *p, struct text *out)
{
	text_add_bytes(out, p->data.buf, p->data.len);
}

/* A place has what `add` makes, or what is embedded. */
static const struct place {
	const char *name;
	void (*add)(struct report *p, struct text *out);
	const char *before, *embedded, *after;
} places[] = {
	{ "policy", add_policy, NULL, NULL, NULL },
	{ "title", report_add_title, NULL, NULL, NULL },
	{ "style", NULL, "<style>", report_style, "</style>\n" },
	{ "verdict", report_add_verdict, NULL, NULL, NULL },
	{ "waits", report_add_waits, NULL, NULL, NULL },
	{ "loads", report_add_loads, NULL, NULL, NULL },
	{ "blocked", report_add_blocked, NULL, NULL, NULL },
	{ "statements", report_add_statements, NULL, NULL, NULL },
	{ "parts", report_add_parts, NULL, NULL, NULL },
	{ "coverage", report_add_coverage, NULL, NULL, NULL },
	{ "losses", report_add_losses, NULL, NULL, NULL },
	{ "footer", report_add_footer, NULL, NULL, NULL },
	{ "data", put_data, "<script type=\"application/json\" id=\"incident-data\">", NULL,
		"</script>\n" },
	{ "script", NULL, "<script>", report_script, "</script>\n" },
};

/* The place that a line of the page stands for; NULL: it stands for itself. */
static const struct place *find_place(const char *line, size_t len)
{
	static const char begin[] = "<!-- @";

	if (len < sizeof(begin) || memcmp(line, begin, sizeof(begin) - 1) != 0)
		return NULL;
	line += sizeof(begin) - 1;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (strncmp(line, places[i].name, strlen(places[i].name)) == 0 &&
			line[strlen(places[i].name)] == ' ')
			return &places[i];
	return NULL;
}

/* In the JSON text no "<" may stand: it could begin the end of the script. */
static void put(const struct place *place, const char *text, FILE *out)
{
	if (!place->before) {
		fputs(text, out);
		return;
	}
	for (; *text; text++)
		if (*text == '<')
			fputs("\\u003c", out);
		else
			putc(*text, out);
}

static void write_place(struct report *p, const struct place *place, struct text *t, FILE *out)
{
	text_reset(t);
	if (place->add)
		place->add(p, t);
	if (place->before)
		fputs(place->before, out);
	if (place->add)
		put(place, t->buf, out);
	else
		fputs(place->embedded, out);
	if (place->after)
		fputs(place->after, out);
}

int report_write(struct report *p, FILE *out)
{
	struct text t = { .buf = malloc(PLACE_SIZE), .size = PLACE_SIZE };
	struct record_verdict verdict;

	p->data = (struct text){ .buf = malloc(PLACE_SIZE), .size = PLACE_SIZE };
	if (!t.buf || !p->data.buf) {
		free(t.buf);
		return -ENOMEM;
	}
	/* The graph is wanted in any case; the verdict is that of the record, if it has one. */
	verdict = p->verdict;
	judge(&p->model, &p->graph, &p->verdict);
	if (p->has_verdict)
		p->verdict = verdict;
	choose_disks(p);
	report_sort_operations(p);
	choose_statements(p);
	text_reset(&p->data);
	report_add_data(p, &p->data);
	for (const char *line = report_page; *line;) {
		size_t len = strcspn(line, "\n");
		const struct place *place = find_place(line, len);

		len += line[len] == '\n';
		if (place)
			write_place(p, place, &t, out);
		else
			fwrite(line, 1, len, out);
		line += len;
	}
	free(t.buf);
	return 0;
}
