/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One incident as one HTML file: complete as text, with plots where a browser runs scripts.
 * Called by `iostall report`. What the browser gets besides is in report/, embedded by the build.
 * Never writes a text of a record as markup, and never more than a megabyte: what it leaves out is
 * said.
 */
#ifndef IOSTALL_REPORT_REPORT_H
#define IOSTALL_REPORT_REPORT_H

#include <stdio.h>

#include "record/reader.h"
#include "record/record.h"

struct report;

/* 0 or -ENOMEM. */
int report_new(struct report **ret_report);
/* NULL is accepted; returns NULL. */
struct report *report_free(struct report *report);

/* Takes the lines of a record in their order. 0 or -ENOMEM. */
int report_add(struct report *report, const struct record *line);

/* What the reader says of all lines, behind the last one. */
void report_note_lines(struct report *report, const struct record_reader_counts *counts);

/*
 * Call one of these once, after all lines. 0 or -ENOMEM; whether `out` took it all says ferror().
 */
int report_write(struct report *report, FILE *out);
/* Two incidents side by side: what both have, and what only one has. */
int report_write_pair(struct report *first, struct report *second, FILE *out);
/*
 * A table of its operations, by their begin, as RFC 4180 has it. Returns how many have no row, as
 * they have no line in the record either.
 */
uint64_t report_write_csv(struct report *report, FILE *out);

#endif
