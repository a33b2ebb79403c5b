/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page/draw.h"

#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"

#define ESC '\x1b'

static const char *const colours[] = {
	[DRAW_PLAIN] = "\x1b[0m",
	[DRAW_BOLD] = "\x1b[1m",
	[DRAW_RED] = "\x1b[1;31m",
	[DRAW_YELLOW] = "\x1b[33m",
	[DRAW_DIM] = "\x1b[2m",
};

void draw_begin(struct draw *d, const struct page_style *style, struct text *out)
{
	d->style = *style;
	d->out = out;
	d->line = TEXT_ON(d->line_buf);
	text_reset(&d->line);
}

/* The character at s, which is valid UTF-8: how many bytes, and its number. */
static size_t decode(const char *s, uint32_t *ret_cp)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t cp = len == 1 ? p[0] : p[0] & (0xffU >> (len + 1));

	for (size_t i = 1; i < len; i++) {
		/* Escaped text is valid; our own text could still end here by mistake. */
		if ((p[i] & 0xc0) != 0x80)
			return i;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	*ret_cp = cp;
	return len;
}

static bool is_wide(uint32_t cp)
{
	static const uint32_t wide[][2] = { { 0x1100, 0x115f }, { 0x2e80, 0xa4cf },
		{ 0xac00, 0xd7a3 }, { 0xf900, 0xfaff }, { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 },
		{ 0xffe0, 0xffe6 }, { 0x1f300, 0x1faff }, { 0x20000, 0x3fffd } };

	for (unsigned int i = 0; i < ARRAY_SIZE(wide); i++)
		if (cp >= wide[i][0] && cp <= wide[i][1])
			return true;
	return false;
}

/* The next character or colour: how many bytes and columns it takes. */
static size_t step(const char *s, unsigned int *ret_columns)
{
	uint32_t cp = 0;
	size_t len;

	if (*s == ESC) {
		len = strcspn(s, "m");
		*ret_columns = 0;
		return s[len] ? len + 1 : len;
	}
	len = decode(s, &cp);
	*ret_columns = cp >= 0x300 && cp <= 0x36f ? 0 : is_wide(cp) ? 2 : 1;
	return len;
}

unsigned int draw_width(const char *s)
{
	unsigned int width = 0, columns;

	for (; *s; s += step(s, &columns)) {
		step(s, &columns);
		width += columns;
	}
	return width;
}

/* How many bytes of s fit into so many columns. */
static size_t fitting(const char *s, unsigned int columns)
{
	size_t len = 0;

	while (s[len]) {
		unsigned int width;
		size_t n = step(s + len, &width);

		if (width > columns)
			break;
		columns -= width;
		len += n;
	}
	return len;
}

void draw_add(struct draw *d, const char *s)
{
	text_add(&d->line, s);
}

void draw_addf(struct draw *d, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	text_vaddf(&d->line, format, ap);
	va_end(ap);
}

void draw_colour(struct draw *d, enum draw_colour colour)
{
	if (d->style.colour)
		draw_add(d, colours[colour]);
}

static void add_blanks(struct draw *d, unsigned int count)
{
	draw_addf(d, "%*s", (int)count, "");
}

void draw_to(struct draw *d, unsigned int column)
{
	unsigned int width = draw_width(d->line.buf);

	add_blanks(d, width < column ? column - width : width > 0);
}

void draw_right(struct draw *d, unsigned int column, const char *s)
{
	unsigned int width = draw_width(d->line.buf) + draw_width(s);

	add_blanks(d, width < column ? column - width : 1);
	draw_add(d, s);
}

void draw_duration(struct draw *d, unsigned int column, uint64_t ns, bool is_bound)
{
	char buf[48];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_add(&t, is_bound ? ">=" : "");
	record_add_duration(&t, ns);
	draw_right(d, column, buf);
}

static const char *ellipsis(const struct draw *d)
{
	return d->style.utf8 ? "\xe2\x80\xa6" : "...";
}

static char *escape(struct draw *d, const char *s)
{
	struct text t = TEXT_ON(d->text_buf);

	text_reset(&t);
	record_add_printable(&t, s);
	return d->text_buf;
}

void draw_text(struct draw *d, unsigned int columns, const char *s)
{
	const char *escaped = escape(d, s);
	unsigned int mark = draw_width(ellipsis(d));

	if (draw_width(escaped) <= columns) {
		draw_add(d, escaped);
		return;
	}
	text_add_bytes(&d->line, escaped, fitting(escaped, columns > mark ? columns - mark : 0));
	draw_add(d, columns >= mark ? ellipsis(d) : "");
}

/* Where the last `columns` of s begin, so that no character is cut. */
static const char *end_of(const char *s, unsigned int columns)
{
	unsigned int width = draw_width(s), step_columns;

	while (width > columns) {
		s += step(s, &step_columns);
		width -= step_columns;
	}
	return s;
}

/*
 * Keeps the first directory and as many of the last names as fit. If not even the file's name fits
 * beside the first directory, only the end of the path is kept.
 */
void draw_path(struct draw *d, unsigned int columns, const char *s)
{
	const char *escaped = escape(d, s), *tail;
	unsigned int mark = draw_width(ellipsis(d)), head_columns;
	size_t head;

	if (draw_width(escaped) <= columns || columns <= mark + 2) {
		draw_text(d, columns, s);
		return;
	}
	head = strcspn(escaped + 1, "/") + 2;
	head_columns = fitting(escaped, columns) > head ? (unsigned int)head : 0;
	tail = columns > mark + head_columns
		? strchr(end_of(escaped, columns - mark - head_columns), '/')
		: NULL;
	if (!tail || !tail[1]) {
		head = 0;
		tail = end_of(escaped, columns - mark);
		tail = strchr(tail, '/') && strchr(tail, '/')[1] ? strchr(tail, '/') : tail;
	}
	text_add_bytes(&d->line, escaped, head);
	draw_add(d, ellipsis(d));
	draw_add(d, tail);
}

void draw_name(struct draw *d, unsigned int columns, const char *s)
{
	const char *escaped = escape(d, s), *number = strrchr(escaped, '[');
	unsigned int mark = draw_width(ellipsis(d)), end = number ? draw_width(number) : 0;

	if (draw_width(escaped) <= columns || columns <= mark + end) {
		draw_text(d, columns, s);
		return;
	}
	text_add_bytes(&d->line, escaped, fitting(escaped, columns - mark - end));
	draw_add(d, ellipsis(d));
	draw_add(d, number ? number : "");
}

void draw_bar(struct draw *d, unsigned int columns, double share)
{
	static const char *const eighths[] = { "", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d",
		"\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89" };
	unsigned int full, part, drawn;

	share = share > 0 ? share < 1 ? share : 1 : 0;
	part = (unsigned int)(share * columns * 8 + 0.5);
	full = part / 8;
	part %= 8;
	for (unsigned int i = 0; i < full; i++)
		draw_add(d, d->style.utf8 ? "\xe2\x96\x88" : "#");
	drawn = full;
	if (d->style.utf8 && part > 0)
		draw_add(d, eighths[part]);
	else if (!d->style.utf8 && part >= 4)
		draw_add(d, "#");
	drawn += d->style.utf8 ? part > 0 : part >= 4;
	if (drawn < columns)
		add_blanks(d, columns - drawn);
}

void draw_histogram(struct draw *d, const uint64_t *counts, unsigned int count)
{
	static const char *const blocks[] = { " ", "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
		"\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88" };
	static const char *const letters[] = { " ", ".", ".", ":", ":", "+", "+", "#", "#" };
	uint64_t max = 1;

	for (unsigned int i = 0; i < count; i++)
		max = counts[i] > max ? counts[i] : max;
	for (unsigned int i = 0; i < count; i++) {
		/* A count above 0 is always visible. */
		unsigned int height = (unsigned int)((double)counts[i] * 8 / (double)max + 0.5);

		height = counts[i] && height == 0 ? 1 : height;
		draw_add(d, d->style.utf8 ? blocks[height] : letters[height]);
	}
}

static void write_line(struct draw *d, const char *line, size_t len)
{
	text_add_bytes(d->out, line, len);
	if (d->style.colour && memchr(line, ESC, len))
		text_add(d->out, colours[DRAW_PLAIN]);
	text_add(d->out, "\n");
}

void draw_end(struct draw *d)
{
	const char *line = d->line.buf;

	while (d->line.len > 0 && line[d->line.len - 1] == ' ')
		d->line.buf[--d->line.len] = '\0';
	if (draw_width(line) <= d->style.columns) {
		write_line(d, line, strlen(line));
	} else {
		struct text cut = TEXT_ON(d->cut_buf);
		unsigned int mark = draw_width(ellipsis(d));

		text_reset(&cut);
		text_add_bytes(&cut, line, fitting(line, d->style.columns - mark));
		text_add(&cut, ellipsis(d));
		write_line(d, cut.buf, cut.len);
	}
	text_reset(&d->line);
}

void draw_title(struct draw *d, const char *title)
{
	draw_end(d);
	draw_colour(d, DRAW_BOLD);
	draw_add(d, title);
	draw_colour(d, DRAW_PLAIN);
}

unsigned int draw_left(const struct draw *d)
{
	unsigned int width = draw_width(d->line.buf);

	return width < d->style.columns ? d->style.columns - width : 0;
}

/* How much of s a line takes: up to the last blank that fits, if there is one. */
static size_t line_of(const char *s, unsigned int columns)
{
	size_t len = fitting(s, columns), blank = len;

	if (!s[len])
		return len;
	while (blank > 0 && s[blank] != ' ')
		blank--;
	return blank > len / 2 ? blank : len;
}

void draw_wrapped_escaped(struct draw *d, unsigned int indent, unsigned int lines_max,
	const char *rest)
{
	for (unsigned int i = 1; i < lines_max; i++) {
		size_t len = line_of(rest, draw_left(d));

		if (!rest[len] || len == 0)
			break;
		text_add_bytes(&d->line, rest, len);
		draw_end(d);
		rest += len;
		rest += strspn(rest, " ");
		add_blanks(d, indent);
	}
	/* A text that is wider than the line makes draw_end() mark the line as cut. */
	text_add_bytes(&d->line, rest, fitting(rest, draw_left(d) + 2));
	draw_end(d);
}

void draw_wrapped(struct draw *d, unsigned int indent, unsigned int lines_max, const char *s)
{
	draw_wrapped_escaped(d, indent, lines_max, escape(d, s));
}
