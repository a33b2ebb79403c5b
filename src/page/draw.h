/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of a page: columns, bars, and text from outside that is cut to what there is room for.
 * Used by src/page/ only.
 * Never lets a line be wider than the page, nor cuts within a character.
 */
#ifndef IOSTALL_PAGE_DRAW_H
#define IOSTALL_PAGE_DRAW_H

#include <stdarg.h>

#include "page/page.h"

#define DRAW_LINE_SIZE 8192
/* Escaped text before it is cut. A longer one loses its end, which no page has room for. */
#define DRAW_TEXT_SIZE 16384

enum draw_colour {
	DRAW_PLAIN,
	DRAW_BOLD,
	DRAW_RED,
	DRAW_YELLOW,
	DRAW_DIM,
};

struct draw {
	struct page_style style;
	struct text *out;
	struct text line;
	char line_buf[DRAW_LINE_SIZE];
	char text_buf[DRAW_TEXT_SIZE];
	char cut_buf[DRAW_LINE_SIZE];
};

void draw_begin(struct draw *d, const struct page_style *style, struct text *out);

/* How many columns a text takes; our own colours take none. */
unsigned int draw_width(const char *s);

/* To the line that is being made. */
void draw_add(struct draw *d, const char *s);
void draw_addf(struct draw *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
void draw_colour(struct draw *d, enum draw_colour colour);
/* Blanks up to a column; at least one. */
void draw_to(struct draw *d, unsigned int column);
/* Blanks and the text so that it ends at a column. */
void draw_right(struct draw *d, unsigned int column, const char *s);
void draw_duration(struct draw *d, unsigned int column, uint64_t ns, bool is_bound);
/*
 * Text from outside is escaped and takes at most `columns`. A text that is too wide loses its end;
 * a path loses directories in its middle.
 */
void draw_text(struct draw *d, unsigned int columns, const char *s);
void draw_path(struct draw *d, unsigned int columns, const char *s);
/* A name that is too wide keeps its end, which has the number of the process. */
void draw_name(struct draw *d, unsigned int columns, const char *s);
/* Fills a share (0 to 1) of `columns` with blocks. */
void draw_bar(struct draw *d, unsigned int columns, double share);
/* One character for each count, as high as its part of the greatest count. */
void draw_histogram(struct draw *d, const uint64_t *counts, unsigned int count);
/* Ends the line, which is cut to the page. */
void draw_end(struct draw *d);
/* Writes a blank line and begins a line with the title. */
void draw_title(struct draw *d, const char *title);

/* How many columns are left on the line that is being made. */
unsigned int draw_left(const struct draw *d);

/*
 * Breaks text into at most lines_max lines, and indents all but the first. What does not fit on the
 * last line is cut off. draw_wrapped() escapes the text; draw_wrapped_escaped() takes it as it is.
 */
void draw_wrapped(struct draw *d, unsigned int indent, unsigned int lines_max, const char *s);
void draw_wrapped_escaped(struct draw *d, unsigned int indent, unsigned int lines_max,
	const char *escaped);

#endif
