/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The disks of a page: what those did that the incident is about, and who used them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "page/internal.h"
#include "util/clock.h"
#include "util/disk_name.h"
#include "util/sort.h"

/* A user, or all others together, with a smaller share gets no row, except the first. */
#define SHARE_SHOWN_PCT 0.5
#define TWO_LISTS_COLUMNS 90
/* Disks that are left out and named; others are counted. */
#define NAMED_MAX 4
/* Disks below a disk that have a row, and above it. */
#define RELATED_MAX 2

struct page_disk *page_disk_of(struct page *p, uint32_t major, uint32_t minor, const char *name)
{
	struct page_disks *disks = &p->disks;
	struct page_disk *d;

	for (uint32_t i = 0; i < disks->count; i++)
		if (disks->items[i].major == major && disks->items[i].minor == minor)
			return &disks->items[i];
	if (disks->count == PAGE_DISKS_MAX) {
		disks->left_out++;
		return NULL;
	}
	d = &disks->items[disks->count++];
	memset(d, 0, sizeof(*d));
	d->major = major;
	d->minor = minor;
	if (*name)
		text_copy(d->name, sizeof(d->name), name);
	else
		snprintf(d->name, sizeof(d->name), "%" PRIu32 ":%" PRIu32, major, minor);
	return d;
}

void page_note_device(struct page *p, const struct record *record)
{
	const struct record_device *r = &record->device;
	struct page_disk *d = page_disk_of(p, r->dev.major, r->dev.minor, r->dev_name);

	if (!d)
		return;
	page_note_no_completion(p, record->mono_ns, d, r->no_completion_ns);
	memcpy(d->below, r->below, sizeof(d->below));
	if (r->no_completion_ns > d->no_completion_max_ns)
		d->no_completion_max_ns = r->no_completion_ns;
	d->has_totals = true;
	d->requests = r->requests;
	d->read_bytes = r->read_bytes;
	d->write_bytes = r->write_bytes;
	d->in_flight = r->in_flight;
	d->queue = r->queue;
	d->device = r->device;
	memcpy(d->queue_histogram, r->queue_histogram, sizeof(d->queue_histogram));
	memcpy(d->device_histogram, r->device_histogram, sizeof(d->device_histogram));
}

static void take_user(struct page_users *users, const char *name, const struct record_io_by *b)
{
	struct page_user *u;

	users->read_bytes += b->read_bytes;
	users->write_bytes += b->write_bytes;
	if (users->count++ >= PAGE_USERS_MAX)
		return;
	u = &users->first[users->count - 1];
	/* Of a path the end. */
	if (strlen(name) >= sizeof(u->name))
		name += strlen(name) - (sizeof(u->name) - 1);
	text_copy(u->name, sizeof(u->name), name);
	u->pid = b->pid;
	u->read_bytes = b->read_bytes;
	u->write_bytes = b->write_bytes;
	u->share_pct = b->share_pct;
	u->inferred = b->inferred;
}

void page_note_io_by(struct page *p, const struct record_io_by *b)
{
	struct page_disk *d = page_disk_of(p, b->dev.major, b->dev.minor, b->dev_name);

	if (!d)
		return;
	if (b->by == RECORD_BY_process)
		take_user(&d->processes, b->comm, b);
	else if (b->by == RECORD_BY_file)
		take_user(&d->files, *b->relation ? b->relation : b->path, b);
}

void page_note_disk_operation(struct page *p, const struct record_operation *o)
{
	struct page_disk *d;

	if (!o->dev.major && !o->dev.minor)
		return;
	for (uint32_t i = 0; i < p->disks.count; i++) {
		d = &p->disks.items[i];
		if (disk_name_is_partition_of(o->dev_name, d->name)) {
			d->operations += page_count_of(o);
			return;
		}
	}
	d = page_disk_of(p, o->dev.major, o->dev.minor, o->dev_name);
	if (d)
		d->operations += page_count_of(o);
}

/* A path of it, or what has one of the names of d->below or a partition of that name. */
static bool stands_on(const struct page_disk *d, const struct page_disk *other)
{
	const char *name = d->below;

	if (disk_name_is_on(d->name, other->name))
		return true;
	while (*name) {
		size_t len = strcspn(name, "\n");
		char one[RECORD_LIST_SIZE];

		snprintf(one, sizeof(one), "%.*s", (int)len, name);
		if (disk_name_is_on(one, other->name))
			return true;
		name += len + (name[len] == '\n');
	}
	return false;
}

/* How much the incident is about this disk; 0: not at all. */
static uint64_t rank(const struct page *p, const struct page_disk *d)
{
	const struct record_verdict *v = &p->verdict;
	uint64_t operations = d->operations < UINT32_MAX ? d->operations : UINT32_MAX;

	if (p->has_verdict && (v->dev.major || v->dev.minor) && v->dev.major == d->major &&
		v->dev.minor == d->minor)
		return UINT64_MAX;
	if (*p->open.trigger.device && strcmp(p->open.trigger.device, d->name) == 0)
		return UINT64_MAX - 1;
	return operations;
}

const struct page_disk *page_main_disk(const struct page *p)
{
	const struct page_disk *first = NULL, *busiest = NULL;
	uint64_t best = 0;

	for (uint32_t i = 0; i < p->disks.count; i++) {
		const struct page_disk *d = &p->disks.items[i];

		if (rank(p, d) > best) {
			best = rank(p, d);
			first = d;
		}
		if (!busiest || d->util_max_pct > busiest->util_max_pct)
			busiest = d;
	}
	return first ? first : busiest;
}

const char *page_process_name(const struct page *p, int32_t pid)
{
	for (uint32_t i = 0; pid > 0 && i < p->disks.count; i++) {
		const struct page_users *users = &p->disks.items[i].processes;

		for (uint32_t k = 0; k < users->count && k < PAGE_USERS_MAX; k++)
			if (users->first[k].pid == pid)
				return users->first[k].name;
	}
	return "";
}

static void add_moved(struct text *t, uint64_t read_bytes, uint64_t write_bytes)
{
	if (read_bytes || !write_bytes) {
		text_add(t, "read ");
		record_add_size(t, read_bytes);
	}
	if (write_bytes) {
		text_add(t, read_bytes ? ", written " : "written ");
		record_add_size(t, write_bytes);
	}
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
static void print_times(struct draw *d, const struct page_disk *disk)
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

static void add_requests(struct text *t, const struct page_disk *disk)
{
	if (!disk->has_totals) {
		text_add(t, "its requests were not seen");
		return;
	}
	text_addf(t, "%" PRIu64 " requests, ", disk->requests);
	add_moved(t, disk->read_bytes, disk->write_bytes);
	if (disk->in_flight)
		text_addf(t, ", %" PRIu64 " in flight at the end", disk->in_flight);
}

static void add_no_completions(struct text *t, const struct page_disk *disk)
{
	text_add(t, "no completions for up to ");
	record_add_duration(t, disk->no_completion_max_ns);
}

static void print_disk_line(struct draw *d, const struct page_disk *disk)
{
	char buf[256];
	struct text t = TEXT_ON(buf);

	draw_title(d, "DISK ");
	draw_colour(d, DRAW_BOLD);
	draw_text(d, 20, disk->name);
	draw_colour(d, DRAW_PLAIN);
	text_reset(&t);
	text_add(&t, "  ");
	add_requests(&t, disk);
	if (disk->no_completion_max_ns) {
		text_add(&t, ", ");
		add_no_completions(&t, disk);
	}
	draw_add(d, buf);
	draw_end(d);
}

/* "  it stands on loop0: no completions for up to 2.40 s, util at most 100 %, 31 requests, ..." */
static void print_related(struct draw *d, const char *relation, const struct page_disk *disk)
{
	char buf[256];
	struct text t = TEXT_ON(buf);

	draw_add(d, relation);
	draw_text(d, 20, disk->name);
	text_reset(&t);
	text_add(&t, ": ");
	if (disk->no_completion_max_ns) {
		add_no_completions(&t, disk);
		text_add(&t, ", ");
	}
	if (disk->sampled && disk->util_max_pct < 1000)
		text_addf(&t, "util at most %.0f %%, ", disk->util_max_pct);
	add_requests(&t, disk);
	draw_add(d, buf);
	draw_end(d);
}

enum user_kind {
	USER_PROCESS,
	USER_FILE,
	USER_REST,
};

static void add_user(struct draw *d, const struct page_user *u, enum user_kind kind,
	unsigned int columns)
{
	unsigned int end = draw_width(d->line.buf) + columns;
	char share[32], moved[96];
	struct text t = TEXT_ON(share), m = TEXT_ON(moved);

	text_reset(&t);
	if (isfinite(u->share_pct))
		text_addf(&t, u->share_pct >= 9.95 ? "%.0f %%" : "%.1f %%", u->share_pct);
	text_reset(&m);
	if (kind == USER_REST)
		record_add_size(&m, u->read_bytes + u->write_bytes);
	else
		add_moved(&m, u->read_bytes, u->write_bytes);
	draw_addf(d, "%7s  ", share);
	columns -= 9;
	columns = columns > (unsigned int)m.len + 2 ? columns - (unsigned int)m.len - 2 : columns;
	if (kind == USER_REST) {
		draw_text(d, columns, u->name);
	} else if (kind == USER_FILE) {
		draw_path(d, columns, page_or_dash(u->name));
	} else {
		char who[96];
		struct text w = TEXT_ON(who);

		text_reset(&w);
		text_addf(&w, "%s[%" PRId32 "]", page_or_dash(u->name), u->pid);
		if (u->inferred)
			text_add(&w, " inferred");
		draw_text(d, columns, who);
	}
	draw_right(d, end, moved);
}

static uint32_t worth_showing(const struct page_users *users)
{
	uint32_t shown = users->count < PAGE_USERS_MAX ? users->count : PAGE_USERS_MAX;

	while (shown > 1 && users->first[shown - 1].share_pct < SHARE_SHOWN_PCT)
		shown--;
	return shown;
}

static void add_share_title(struct draw *d, const char *by)
{
	draw_colour(d, DRAW_DIM);
	draw_addf(d, "  share of its bytes by %s", by);
	draw_colour(d, DRAW_PLAIN);
}

/* What all users that have no row, and nobody who is known, have moved together. */
static bool has_rest(const struct page_disk *disk, const struct page_users *users, uint32_t shown,
	struct page_user *ret_rest)
{
	uint64_t read_bytes = disk->read_bytes, write_bytes = disk->write_bytes;
	double all = (double)read_bytes + (double)write_bytes;

	for (uint32_t i = 0; i < shown; i++) {
		const struct page_user *u = &users->first[i];

		read_bytes -= u->read_bytes < read_bytes ? u->read_bytes : read_bytes;
		write_bytes -= u->write_bytes < write_bytes ? u->write_bytes : write_bytes;
	}
	*ret_rest = (struct page_user){
		.read_bytes = read_bytes,
		.write_bytes = write_bytes,
		.share_pct = all > 0 ? 100 * ((double)read_bytes + (double)write_bytes) / all : 0,
	};
	text_copy(ret_rest->name, sizeof(ret_rest->name),
		users->count > shown ? "others, or before tracing" : "from before tracing");
	return ret_rest->share_pct >= SHARE_SHOWN_PCT;
}

/* The rows of one list: users, and last the rest. */
struct share_list {
	const struct page_users *users;
	struct page_user rest;
	bool path;
	uint32_t shown;
	uint32_t rows;
};

static struct share_list share_list_of(const struct page_disk *disk, bool path)
{
	struct share_list list = {
		.users = path ? &disk->files : &disk->processes,
		.path = path,
	};

	list.shown = worth_showing(list.users);
	list.rows = list.shown;
	if (list.shown > 0)
		list.rows += has_rest(disk, list.users, list.shown, &list.rest);
	return list;
}

static void add_share(struct draw *d, const struct share_list *list, uint32_t row,
	unsigned int columns)
{
	if (row < list->shown)
		add_user(d, &list->users->first[row], list->path ? USER_FILE : USER_PROCESS,
			columns);
	else if (row < list->rows)
		add_user(d, &list->rest, USER_REST, columns);
}

static void print_list(struct draw *d, const struct share_list *list)
{
	if (list->rows == 0)
		return;
	add_share_title(d, list->path ? "file" : "process");
	draw_end(d);
	for (uint32_t i = 0; i < list->rows; i++) {
		add_share(d, list, i, d->style.columns);
		draw_end(d);
	}
}

static void print_users(struct draw *d, const struct page_disk *disk)
{
	struct share_list processes = share_list_of(disk, false), files = share_list_of(disk, true);
	unsigned int half = d->style.columns / 2 - 2;

	if (d->style.columns < TWO_LISTS_COLUMNS || processes.rows == 0 || files.rows == 0) {
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
	uint32_t index;
};

static int compare_order(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->index > y->index ? 1 : -1;
}

static bool was_used(const struct page *p, const struct page_disk *d)
{
	return d->requests > 0 || d->util_max_pct > 0 || rank(p, d) > 0;
}

/*
 * Marks all disks below the marked ones, also over several steps, or all disks above them.
 */
static void mark_related(const struct page *p, bool above, bool *marked)
{
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t i = 0; i < p->disks.count; i++) {
			for (uint32_t k = 0; k < p->disks.count && !marked[i]; k++) {
				const struct page_disk *upper = &p->disks.items[above ? i : k];
				const struct page_disk *lower = &p->disks.items[above ? k : i];

				marked[i] = marked[k] && i != k && stands_on(upper, lower);
				again |= marked[i];
			}
		}
	}
}

/* Disks below this one, or above it, that have no entry of their own. */
static void print_relations(struct page *p, const struct page_disk *disk, bool above, bool *named)
{
	bool marked[PAGE_DISKS_MAX] = { false };
	uint32_t rows = 0;

	marked[disk - p->disks.items] = true;
	mark_related(p, above, marked);
	for (uint32_t i = 0; i < p->disks.count && rows < RELATED_MAX; i++) {
		if (!marked[i] || named[i] || !was_used(p, &p->disks.items[i]))
			continue;
		print_related(&p->draw, above ? "  on it stands " : "  it stands on ",
			&p->disks.items[i]);
		named[i] = true;
		rows++;
	}
}

static void print_left_out(struct page *p, const bool *named, uint32_t stalled)
{
	struct draw *d = &p->draw;
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->disks.count; i++) {
		if (named[i] || !was_used(p, &p->disks.items[i]))
			continue;
		if (count++ >= NAMED_MAX)
			continue;
		draw_add(d, count == 1 ? "  left out here: " : ", ");
		draw_text(d, 20, p->disks.items[i].name);
	}
	if (count > NAMED_MAX)
		draw_addf(d, " and %" PRIu32 " more disks", count - NAMED_MAX);
	if (stalled)
		draw_addf(d, "; %" PRIu32 " of them with operations that stalled", stalled);
	if (count)
		draw_end(d);
}

void page_print_disks(struct page *p)
{
	struct order order[PAGE_DISKS_MAX];
	bool named[PAGE_DISKS_MAX] = { false };
	uint32_t involved = 0, shown, stalled = 0;

	for (uint32_t i = 0; i < p->disks.count; i++)
		if (rank(p, &p->disks.items[i]))
			order[involved++] = (struct order){ rank(p, &p->disks.items[i]), i };
	sort_in_place(order, involved, sizeof(*order), compare_order);
	shown = involved < PAGE_DISK_ROWS ? involved : PAGE_DISK_ROWS;
	for (uint32_t i = 0; i < shown; i++)
		named[order[i].index] = true;
	for (uint32_t i = 0; i < shown; i++) {
		const struct page_disk *disk = &p->disks.items[order[i].index];

		print_disk_line(&p->draw, disk);
		print_relations(p, disk, false, named);
		print_relations(p, disk, true, named);
		print_times(&p->draw, disk);
		print_users(&p->draw, disk);
	}
	for (uint32_t i = shown; i < involved; i++)
		stalled += !named[order[i].index];
	print_left_out(p, named, stalled);
}
