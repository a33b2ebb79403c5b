/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The disks of a page: what those did that the incident is about, and who used them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "page/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"
#include "util/sort.h"

/* A user, or all others together, with a smaller share gets no row, except the first. */
#define SHARE_SHOWN_PCT 0.5
/* "  100 %  ", before who or which file. */
#define SHARE_COLUMNS 9
/* Of who and which file: otherwise the two lists are not side by side. */
#define NAME_COLUMNS_MIN 16
/* Disks that are left out and named; others are counted. */
#define NAMED_MAX 4
/* Disks below a disk that have a row, and above it. */
#define RELATED_MAX 2

/* How much the incident is about this disk; 0: not at all. */
static uint64_t rank(const struct page *p, int disk)
{
	const struct record_verdict *v = &p->verdict;
	const struct model_waits *waits = &p->model.waits;
	uint64_t threads = 0;

	if (p->has_verdict && (v->dev.major || v->dev.minor) &&
		model_disks_find(&p->model.disks, v->dev) == disk)
		return UINT64_MAX;
	if (*p->open.trigger.device &&
		strcmp(p->open.trigger.device, p->model.disks.list[disk].name) == 0)
		return UINT64_MAX - 1;
	for (uint32_t i = 0; i < waits->groups_count; i++)
		if (waits->groups[i].disk == disk)
			threads += model_wait_threads(&waits->groups[i]);
	return threads;
}

int page_main_disk(const struct page *p)
{
	int first = -1, busiest = -1;
	uint64_t best = 0;

	for (int i = 0; i < (int)p->model.disks.count; i++) {
		const struct model_disk *d = &p->model.disks.list[i];

		if (rank(p, i) > best) {
			best = rank(p, i);
			first = i;
		}
		if (busiest < 0 || d->util_max_pct > p->model.disks.list[busiest].util_max_pct)
			busiest = i;
	}
	return first >= 0 ? first : busiest;
}

/* "read 16.0 MiB, written 67.0 KiB" */
static void add_moved(struct text *t, uint64_t read_bytes, uint64_t write_bytes,
	uint64_t discard_bytes)
{
	const struct {
		const char *what;
		uint64_t bytes;
	} moved[] = { { "read ", read_bytes }, { "written ", write_bytes },
		{ "discarded ", discard_bytes } };
	const char *before = "";

	for (size_t i = 0; i < ARRAY_SIZE(moved); i++) {
		if (!moved[i].bytes && (i > 0 || write_bytes || discard_bytes))
			continue;
		text_add(t, before);
		text_add(t, moved[i].what);
		record_add_size(t, moved[i].bytes);
		before = ", ";
	}
}

static void add_moved_by(struct text *t, const struct model_load *load)
{
	add_moved(t, load->read_bytes, minus(load->bytes, load->read_bytes + load->discard_bytes),
		load->discard_bytes);
}

/* "time in queue: from 16 us ▁▃█▁ to 4.20 s, median 240 us" */
static void add_times(struct draw *d, const char *name, const struct record_latency *l,
	const uint64_t *histogram)
{
	unsigned int first = 0, last = RECORD_HISTOGRAM_MAX;

	while (first < RECORD_HISTOGRAM_MAX && !histogram[first])
		first++;
	while (last > first && !histogram[last - 1])
		last--;
	if (first == last)
		return;
	draw_addf(d, "  time in %s: from ", name);
	/* A bucket begins where the one before ends; the first has all that is below 1 us. */
	record_add_duration(&d->line, first ? NSEC_PER_USEC << (first - 1) : 0);
	draw_add(d, " ");
	draw_histogram(d, histogram + first, last - first);
	draw_add(d, " to ");
	record_add_duration(&d->line, l->max_ns);
	draw_add(d, ", median ");
	record_add_duration(&d->line, l->p50_ns);
}

/* On one line if there is room for both. */
static void print_times(struct draw *d, const struct model_disk *disk)
{
	size_t queue_len;

	if (!disk->has_totals || !disk->requests)
		return;
	add_times(d, "queue", &disk->queue, disk->queue_histogram);
	queue_len = d->line.len;
	add_times(d, "device", &disk->device, disk->device_histogram);
	if (draw_width(d->line_buf) > d->style.columns) {
		d->line.len = queue_len;
		d->line_buf[queue_len] = '\0';
		draw_end(d);
		add_times(d, "device", &disk->device, disk->device_histogram);
	}
	draw_end(d);
}

static void add_requests(struct text *t, const struct model_disk *disk)
{
	if (!disk->has_totals) {
		text_add(t, "its requests were not seen");
		return;
	}
	text_add_count(t, disk->requests, "request", "requests");
	text_add(t, ", ");
	add_moved(t, disk->read_bytes, disk->write_bytes, 0);
	if (disk->in_flight)
		text_addf(t, ", %" PRIu64 " in flight at the end", disk->in_flight);
}

static void add_no_completions(struct text *t, const struct model_disk *disk)
{
	text_add(t, "no completions for at least ");
	record_add_duration(t, disk->no_completion_ns);
}

static void print_disk_line(struct draw *d, const struct model_disk *disk)
{
	char buf[256];
	struct text t = TEXT_ON(buf);

	draw_title(d, "DISK ");
	draw_colour(d, DRAW_BOLD);
	draw_text(d, 20, disk->name);
	draw_colour(d, DRAW_PLAIN);
	if (*disk->label) {
		draw_add(d, " (");
		draw_text(d, 20, disk->label);
		draw_add(d, ")");
	}
	text_reset(&t);
	text_add(&t, "  ");
	if (disk->no_completion_ns >= TROUBLE_NS) {
		add_no_completions(&t, disk);
		text_add(&t, ", ");
	}
	add_requests(&t, disk);
	draw_add(d, buf);
	draw_end(d);
}

/* "  it stands on loop0: no completions for at least 2.40 s, util at most 100 %, 31 requests, ..." */
static void print_related(struct draw *d, const char *relation, const struct model_disk *disk)
{
	char buf[256];
	struct text t = TEXT_ON(buf);

	draw_add(d, relation);
	draw_text(d, 20, disk->name);
	text_reset(&t);
	text_add(&t, ": ");
	if (disk->no_completion_ns >= TROUBLE_NS) {
		add_no_completions(&t, disk);
		text_add(&t, ", ");
	}
	if (disk->is_sampled && disk->util_max_pct < 1000)
		text_addf(&t, "util at most %.0f %%, ", disk->util_max_pct);
	add_requests(&t, disk);
	draw_add(d, buf);
	draw_end(d);
}

/* The rows of one list. What nobody had who has one is the rest. */
struct share_list {
	const struct model_load *loads;
	bool is_file;
	double work_ns;
	double rest_pct;
	uint32_t shown;
	uint32_t rows;
};

/* A row of a list: a process, a file, or all others together. */
static void add_user(struct draw *d, const struct share_list *list, const struct model_load *load,
	double pct, unsigned int columns)
{
	unsigned int end = draw_width(d->line.buf) + columns;
	char share[32], moved[96], who[96];
	struct text t = TEXT_ON(share), m = TEXT_ON(moved), w = TEXT_ON(who);

	text_reset(&t);
	text_addf(&t, pct >= 9.95 ? "%.0f %%" : "%.1f %%", pct);
	text_reset(&m);
	add_moved_by(&m, load);
	draw_addf(d, "%7s  ", share);
	columns -= SHARE_COLUMNS;
	columns = columns > (unsigned int)m.len + 2 ? columns - (unsigned int)m.len - 2 : columns;
	if (list->is_file) {
		draw_path(d, columns, page_or_dash(*load->relation ? load->relation : load->name));
	} else {
		text_reset(&w);
		text_addf(&w, "%s[%" PRId32 "]", page_or_dash(load->who.comm), load->who.pid);
		if (load->inferred)
			text_add(&w, " inferred");
		draw_text(d, columns, who);
	}
	draw_right(d, end, moved);
}

static double share_of(const struct share_list *list, uint32_t i)
{
	const struct model_load *load = &list->loads[i];

	return 100 * (double)(load->busy_ns + load->before_ns) / list->work_ns;
}

static struct share_list share_list_of(const struct page *p, int disk, bool is_file)
{
	const struct model_loads_of *loads = model_loads_find(&p->model.loads, disk);
	struct share_list list = { .is_file = is_file,
		.work_ns = model_disk_work_ns(&p->model.disks.list[disk]),
		.rest_pct = 100 };
	uint32_t count;

	if (!loads || list.work_ns <= 0)
		return list;
	list.loads = model_loads_list(loads, is_file ? RECORD_BY_file : RECORD_BY_process, &count);
	for (uint32_t i = 0; i < count && i < PAGE_USERS_MAX; i++) {
		if (i > 0 && share_of(&list, i) < SHARE_SHOWN_PCT)
			break;
		list.rest_pct -= share_of(&list, i);
		list.shown++;
	}
	list.rows = list.shown + (list.shown > 0 && list.rest_pct >= SHARE_SHOWN_PCT);
	return list;
}

static void add_share_title(struct draw *d, const char *by)
{
	draw_colour(d, DRAW_DIM);
	draw_addf(d, "  share of its time by %s", by);
	draw_colour(d, DRAW_PLAIN);
}

static void add_share(struct draw *d, const struct share_list *list, uint32_t row,
	unsigned int columns)
{
	if (row < list->shown)
		add_user(d, list, &list->loads[row], share_of(list, row), columns);
	else if (row < list->rows)
		draw_addf(d,
			list->rest_pct >= 9.95 ? "%5.0f %%  others, or before tracing"
					       : "%5.1f %%  others, or before tracing",
			list->rest_pct);
}

static void print_list(struct draw *d, const struct share_list *list)
{
	if (list->rows == 0)
		return;
	add_share_title(d, list->is_file ? "file" : "process");
	draw_end(d);
	for (uint32_t i = 0; i < list->rows; i++) {
		add_share(d, list, i, d->style.columns);
		draw_end(d);
	}
}

/* How many columns the sizes of a list leave for its names. */
static unsigned int columns_of_names(const struct share_list *list, unsigned int columns)
{
	unsigned int widest = 0;

	for (uint32_t i = 0; i < list->shown; i++) {
		char moved[96];
		struct text m = TEXT_ON(moved);

		text_reset(&m);
		add_moved_by(&m, &list->loads[i]);
		widest = m.len > widest ? (unsigned int)m.len : widest;
	}
	return columns > SHARE_COLUMNS + widest + 2 ? columns - SHARE_COLUMNS - widest - 2 : 0;
}

static bool fit_side_by_side(const struct share_list *a, const struct share_list *b,
	unsigned int half)
{
	return columns_of_names(a, half) >= NAME_COLUMNS_MIN &&
		columns_of_names(b, half) >= NAME_COLUMNS_MIN;
}

static void print_users(struct page *p, int disk)
{
	struct share_list processes = share_list_of(p, disk, false);
	struct share_list files = share_list_of(p, disk, true);
	struct draw *d = &p->draw;
	unsigned int half = d->style.columns / 2 - 2;

	if (processes.rows == 0 || files.rows == 0 || !fit_side_by_side(&processes, &files, half)) {
		print_list(d, &processes);
		print_list(d, &files);
		return;
	}
	add_share_title(d, "process");
	draw_to(d, half + 3);
	add_share_title(d, "file");
	draw_end(d);
	for (uint32_t i = 0; i < processes.rows || i < files.rows; i++) {
		add_share(d, &processes, i, half);
		if (i < files.rows)
			draw_to(d, half + 3);
		add_share(d, &files, i, half);
		draw_end(d);
	}
}

struct order {
	uint64_t rank;
	int index;
};

static int compare_order(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->index - y->index;
}

static bool was_used(const struct page *p, int disk)
{
	const struct model_disk *d = &p->model.disks.list[disk];

	return d->requests > 0 || d->util_max_pct > 0 || rank(p, disk) > 0;
}

static bool is_related(const struct page *p, int disk, int i, bool above)
{
	return i != disk && was_used(p, i) &&
		model_disks_is_on(&p->model.disks, above ? i : disk, above ? disk : i);
}

/* The nearest one that has not been named; -1: there is none. */
static int find_nearest(const struct page *p, int disk, bool above, const bool *named)
{
	int nearest = -1;

	for (int i = 0; i < (int)p->model.disks.count; i++)
		if (is_related(p, disk, i, above) && !named[i] &&
			(nearest < 0 || is_related(p, i, nearest, above)))
			nearest = i;
	return nearest;
}

/* Disks below this one, or above it, that have no entry of their own. */
static void print_relations(struct page *p, int disk, bool above, bool *named)
{
	int i;

	for (uint32_t rows = 0; rows < RELATED_MAX; rows++) {
		i = find_nearest(p, disk, above, named);
		if (i < 0)
			return;
		print_related(&p->draw, above ? "  on it stands " : "  it stands on ",
			&p->model.disks.list[i]);
		named[i] = true;
	}
}

/* "DISKS  also used: vda, vdb and 4 more" */
static void print_names(struct page *p, const bool *is_wanted, const char *label)
{
	struct draw *d = &p->draw;
	uint32_t count = 0;

	for (int i = 0; i < (int)p->model.disks.count; i++) {
		if (!is_wanted[i] || count++ >= NAMED_MAX)
			continue;
		if (count == 1)
			draw_title(d, "DISKS");
		draw_add(d, count == 1 ? label : ", ");
		draw_text(d, 20, p->model.disks.list[i].name);
	}
	if (count > NAMED_MAX)
		draw_addf(d, " and %" PRIu32 " more", count - NAMED_MAX);
	if (count)
		draw_end(d);
}

/* Without a row: those that the incident is about, and others. */
static void print_left_out(struct page *p, const bool *named)
{
	bool involved[MODEL_DISKS_MAX] = { false }, used[MODEL_DISKS_MAX] = { false };
	struct draw *d = &p->draw;

	for (int i = 0; i < (int)p->model.disks.count; i++) {
		involved[i] = !named[i] && rank(p, i);
		used[i] = !named[i] && !rank(p, i) && was_used(p, i);
	}
	print_names(p, involved, "  also involved: ");
	print_names(p, used, "  also used: ");
	if (!p->model.disks.left_out)
		return;
	draw_title(d, "DISKS");
	draw_addf(d, "  more were at work than the %d of which figures are kept", MODEL_DISKS_MAX);
	draw_end(d);
}

void page_print_disks(struct page *p)
{
	struct order order[MODEL_DISKS_MAX];
	bool named[MODEL_DISKS_MAX] = { false };
	uint32_t involved = 0, shown;

	for (int i = 0; i < (int)p->model.disks.count; i++)
		if (rank(p, i))
			order[involved++] = (struct order){ rank(p, i), i };
	sort_in_place(order, involved, sizeof(*order), compare_order);
	shown = involved < PAGE_DISK_ROWS ? involved : PAGE_DISK_ROWS;
	for (uint32_t i = 0; i < shown; i++)
		named[order[i].index] = true;
	for (uint32_t i = 0; i < shown; i++) {
		const int disk = order[i].index;

		print_disk_line(&p->draw, &p->model.disks.list[disk]);
		print_relations(p, disk, false, named);
		print_relations(p, disk, true, named);
		print_times(&p->draw, &p->model.disks.list[disk]);
		print_users(p, disk);
	}
	print_left_out(p, named);
}
