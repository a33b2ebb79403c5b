/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cells and tables as report/README.md has them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/internal.h"
#include "util/clock.h"

void html_add_duration(struct text *out, uint64_t ns)
{
	if (ns)
		record_add_duration(out, ns);
	else
		text_add(out, "-");
}

void html_add_duration_cell(struct text *out, uint64_t ns)
{
	text_add(out, "<td class=\"num\"");
	if (ns)
		text_addf(out, " data-value=\"%.3f\"", (double)ns / NSEC_PER_MSEC);
	text_add(out, ">");
	html_add_duration(out, ns);
	text_add(out, "</td>");
}

void html_add_bytes_cell(struct text *out, uint64_t bytes)
{
	text_addf(out, "<td class=\"num\" data-value=\"%" PRIu64 "\">", bytes);
	record_add_size(out, bytes);
	text_add(out, "</td>");
}

void html_add_count_cell(struct text *out, uint64_t count)
{
	text_addf(out, "<td class=\"num\" data-value=\"%" PRIu64 "\">%" PRIu64 "</td>", count,
		count);
}

void html_add_percent_cell(struct text *out, double percent)
{
	if (isnan(percent))
		text_add(out, "<td class=\"num\">-</td>");
	else
		text_addf(out, "<td class=\"num\" data-value=\"%.2f\">%.*f %%</td>", percent,
			percent < 9.95 ? 1 : 0, percent);
}

void html_add_cell(struct text *out, const char *s)
{
	text_add(out, "<td><bdi>");
	text_add_html(out, *s ? s : "-");
	text_add(out, "</bdi></td>");
}

void html_add_lines(struct text *out, const char *text)
{
	char line[RECORD_SQL_TEXT_SIZE];

	while (*text) {
		size_t len = strcspn(text, "\n\t");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		text_add_html(out, line);
		text += len;
		if (*text)
			text_add_bytes(out, text++, 1);
	}
}

void html_add_basis(struct text *out, enum record_basis basis)
{
	const char *word = basis ? record_basis_text(basis) : "missing";

	text_addf(out, "<span class=\"basis %s\">%s</span>", word, word);
}

void html_begin_table(struct text *out, const char *caption, const char *const columns[])
{
	text_addf(out, "<table class=\"sortable\">\n<caption>%s</caption>\n<thead><tr>", caption);
	for (; *columns; columns++)
		if (**columns == '#')
			text_addf(out, "<th scope=\"col\" class=\"num\">%s</th>", *columns + 1);
		else
			text_addf(out, "<th scope=\"col\">%s</th>", *columns);
	text_add(out, "</tr></thead>\n<tbody>\n");
}

void html_end_table(struct text *out)
{
	text_add(out, "</tbody>\n</table>\n");
}
