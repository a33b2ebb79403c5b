/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One incident as one page of text: it takes the lines of a record one by one and prints what they
 * come to.
 * Called by `iostall show` and by the terminal sink.
 * Never reads a file and never allocates after page_new(); what does not fit is counted and said.
 */
#ifndef IOSTALL_PAGE_PAGE_H
#define IOSTALL_PAGE_PAGE_H

#include <stdbool.h>

#include "record/record.h"
#include "util/text.h"

/* A page of 90 lines, each of the widest terminal and in the longest characters, fits. */
#define PAGE_TEXT_SIZE (192 * 1024)

struct page;

/* How it is drawn. */
struct page_style {
	unsigned int columns; /* 40 to 240 */
	bool terminal;	      /* else events are not cut */
	bool colour;
	bool utf8; /* blocks for bars; else ASCII */
	bool verbose;
};

/* By what fd is, and by COLUMNS, NO_COLOR, TERM and the locale of the environment. */
struct page_style page_style_of(int fd);

/* Takes all memory it will ever use, 3 MB. 0 or -ENOMEM. */
int page_new(struct page **ret_page);
/* NULL is accepted; returns NULL. */
struct page *page_free(struct page *page);

/* An `open` line begins a new page. */
void page_add(struct page *page, const struct record *r);

/*
 * Appends the page to `out`. Without a `close` line it says that the record is incomplete, and
 * being_written why.
 */
void page_print(struct page *page, const struct page_style *style, bool being_written,
	struct text *out);

/*
 * Called with each line after page_add(): appends a line for an incident that is still open, or
 * nothing. Says once what repeats, and counts what comes too fast.
 */
void page_add_event(struct page *page, const struct page_style *style, const struct record *r,
	struct text *out);

#endif
