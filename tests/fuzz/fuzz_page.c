/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as the lines of a record: one page and one line for each event, both within limits. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of 100 columns; a narrower page breaks lines. */
#define COLUMNS 100
#define LINES_MAX 80

static struct record record;
static char buf[PAGE_TEXT_SIZE];

/* Returns how many lines; all are printable and none is wider than the page. */
static unsigned int check(const struct text *t, unsigned int columns)
{
	unsigned int lines = 0, width = 0;

	if (t->overflow)
		abort();
	for (size_t i = 0; i < t->len; i++) {
		unsigned char c = (unsigned char)t->buf[i];

		if ((c < 0x20 && c != '\n') || c == 0x7f)
			abort();
		/* A wide character of two columns has three bytes or more. */
		width = c == '\n' ? 0 : width + ((c & 0xc0) != 0x80);
		lines += c == '\n';
		if (width > columns)
			abort();
	}
	return lines;
}

static void add_line(struct page *page, const char *line, size_t len)
{
	const struct page_style style = { .columns = COLUMNS, .terminal = true, .utf8 = true };
	struct text t = TEXT_ON(buf);

	if (record_decode_json(line, len, &record) < 0)
		return;
	page_add(page, &record);
	text_reset(&t);
	page_add_event(page, &style, &record, &t);
	check(&t, COLUMNS);
}

static void print(struct page *page, unsigned int columns, bool verbose)
{
	const struct page_style style = { .columns = columns, .verbose = verbose };
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	page_print(page, &style, true, &t);
	/* With --verbose the coverage is as wide as it is. */
	if (check(&t, verbose ? UINT32_MAX : columns) > LINES_MAX && !verbose && columns >= COLUMNS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *end = p + size;
	struct page *page;

	if (page_new(&page) < 0)
		abort();
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *line_end = newline ? newline : end;

		add_line(page, p, (size_t)(line_end - p));
		p = newline ? newline + 1 : end;
	}
	print(page, COLUMNS, false);
	print(page, 40, false);
	print(page, COLUMNS, true);
	page_free(page);
	return 0;
}
