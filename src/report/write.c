/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page: what is embedded, and in its places what the record says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/assets.h"
#include "report/internal.h"
#include "util/cleanup.h"
#include "util/sort.h"

/* Of one place of the page. The limits of internal.h keep it far below that. */
#define PLACE_SIZE (4 * 1024 * 1024)

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

/* The disk that is judged, then those that were busiest. */
static void choose_disks(struct report *p)
{
	const struct model_disks *disks = &p->model.disks;
	bool chosen[MODEL_DISKS_MAX] = { false };

	while (p->disks_count < REPORT_DISKS_MAX) {
		int best = -1;

		for (uint32_t i = 0; i < disks->count; i++) {
			const struct model_disk *d = &disks->list[i];
			const bool is_judged = record_dev_is_same(d->dev, p->verdict.dev);

			if (chosen[i])
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
		chosen[best] = true;
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

/*
 * It is made first, as other places say what it leaves out. No "<" may stand in it: it could begin
 * the end of the script.
 */
static void put_data(struct report *p, struct text *out)
{
	const char *data = p->data.buf;

	while (*data) {
		const size_t len = strcspn(data, "<");

		text_add_bytes(out, data, len);
		data += len;
		if (*data)
			text_add(out, "\\u003c");
		data += *data != '\0';
	}
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
	{ "pair", report_add_pair, NULL, NULL, NULL },
	{ "shared", report_add_shared, NULL, NULL, NULL },
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

static void write_place(struct report *p, const struct place *place, struct text *t, FILE *out)
{
	text_reset(t);
	if (place->add)
		place->add(p, t);
	if (place->before)
		fputs(place->before, out);
	fputs(place->add ? t->buf : place->embedded, out);
	if (place->after)
		fputs(place->after, out);
}

/* The graph is wanted in any case; the verdict is that of the record, if it came to its last. */
static void judge_it(struct report *p)
{
	struct record_verdict verdict;

	judge(&p->model, &p->graph, &verdict);
	if (!p->has_final)
		p->verdict = verdict;
	choose_disks(p);
}

static int fill(struct report *p, const char *page, FILE *out)
{
	struct text t = { .buf = malloc(PLACE_SIZE), .size = PLACE_SIZE };

	if (!t.buf)
		return -ENOMEM;
	for (const char *line = page; *line;) {
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

int report_write(struct report *p, FILE *out)
{
	p->data = (struct text){ .buf = malloc(PLACE_SIZE), .size = PLACE_SIZE };
	if (!p->data.buf)
		return -ENOMEM;
	judge_it(p);
	report_sort_operations(p);
	choose_statements(p);
	text_reset(&p->data);
	report_add_data(p, &p->data);
	return fill(p, report_page, out);
}

int report_write_pair(struct report *first, struct report *second, FILE *out)
{
	judge_it(first);
	judge_it(second);
	report_sort_operations(first);
	report_sort_operations(second);
	first->second = second;
	return fill(first, report_pair_page, out);
}
