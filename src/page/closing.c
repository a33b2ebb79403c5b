/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a page: what the record covers and lacks, and what it cost. */
#include <inttypes.h>
#include <string.h>

#include "page/internal.h"
#include "util/cleanup.h"

/* "coverage  12 paths seen; not seen: fsync (no probe for it is enabled)" */
static void add_coverage(struct page *p)
{
	const struct record_open *open = &p->open;
	struct draw *d = &p->draw;
	uint32_t seen = 0,
		 count = open->coverage_count < RECORD_COVERAGE_MAX ? open->coverage_count
								    : RECORD_COVERAGE_MAX;
	const char *before = "; NOT SEEN: ";

	for (uint32_t i = 0; i < count; i++)
		seen += open->coverage[i].probe != RECORD_PROBE_NONE;
	draw_add(d, "coverage  ");
	if (seen == count)
		draw_addf(d, "all %" PRIu32 " I/O paths seen", count);
	else
		draw_addf(d, "%" PRIu32 " of %" PRIu32 " I/O paths seen", seen, count);
	for (uint32_t i = 0; i < count; i++) {
		if (open->coverage[i].probe)
			continue;
		draw_add(d, before);
		draw_text(d, draw_left(d), record_io_path_text(open->coverage[i].path));
		before = ", ";
	}
}

static uint64_t lost_in_all(const struct record_close *c)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < RECORD_LOST_COUNT; i++)
		sum += c->lost[i];
	return sum;
}

static void add_lost(struct page *p)
{
	struct draw *d = &p->draw;
	const char *before = "LOST      ";

	draw_colour(d, DRAW_RED);
	for (unsigned int i = 0; p->closed && i < RECORD_LOST_COUNT; i++) {
		if (!p->close.lost[i])
			continue;
		draw_addf(d, "%s%s %" PRIu64, before, record_lost_text(i), p->close.lost[i]);
		before = ", ";
	}
	if (p->model.waits.left_out) {
		draw_addf(d, "%sno room on this page for ", before);
		text_add_count(&d->line, p->model.waits.left_out, "operation", "operations");
	}
	draw_colour(d, DRAW_PLAIN);
	draw_end(d);
}

static void add_cost(struct draw *d, const char *name, uint64_t ns)
{
	draw_add(d, name);
	draw_duration(d, 0, ns, false);
}

static void add_costs(struct draw *d, const struct record_close *c)
{
	add_cost(d, "cost      cpu", c->cost.cpu_ns);
	draw_addf(d, ", memory %.1f MiB and %.1f MiB in the kernel",
		(double)c->cost.rss_bytes / (1 << 20), (double)c->cost.kernel_bytes / (1 << 20));
	add_cost(d, ", armed after", c->cost.armed_ns);
	add_cost(d, ", attach", c->cost.attach_ns);
	add_cost(d, ", disarm", c->cost.disarm_ns);
	add_cost(d, ", longest turn", c->cost.turn_ns);
	add_cost(d, ", latest timer", c->cost.delay_ns);
	draw_end(d);
}

/* All on one line when nothing is missing. */
static void print_short(struct page *p)
{
	struct draw *d = &p->draw;
	bool lost = (p->closed && lost_in_all(&p->close)) || p->model.waits.left_out;

	add_coverage(p);
	if (p->closed) {
		draw_add(d, lost ? "" : "; nothing lost");
		add_cost(d, "; cost", p->close.cost.cpu_ns);
		draw_addf(d, " of CPU, %.1f MiB",
			(double)(p->close.cost.rss_bytes + p->close.cost.kernel_bytes) / (1 << 20));
	}
	draw_end(d);
	if (lost)
		add_lost(p);
}

static void add_lines(struct draw *d, const char *lines)
{
	while (*lines) {
		size_t len;

		lines += strspn(lines, " ");
		len = strcspn(lines, "\n");
		text_add_bytes(&d->line, lines, len);
		/* Said in full: as wide as it is. */
		text_add(d->out, d->line.buf);
		text_add(d->out, "\n");
		text_reset(&d->line);
		lines += len + (lines[len] == '\n');
	}
}

static void print_verbose(struct page *p)
{
	struct text t = TEXT_ON(p->draw.text_buf);

	text_reset(&t);
	record_add_coverage(&p->open, &t);
	if (p->closed)
		record_add_lost(p->close.lost, &t);
	add_lines(&p->draw, t.buf);
	if (p->closed)
		add_costs(&p->draw, &p->close);
}

void page_print_closing(struct page *p, bool being_written)
{
	struct draw *d = &p->draw;

	draw_end(d);
	if (d->style.verbose)
		print_verbose(p);
	else
		print_short(p);
	if (p->closed)
		return;
	draw_colour(d, DRAW_YELLOW);
	draw_add(d,
		being_written ? "incomplete: still being written"
			      : "incomplete: the recorder was killed");
	draw_end(d);
}
