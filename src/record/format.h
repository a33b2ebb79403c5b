/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files that make lines for people share.
 * Included by src/record/format*.c only.
 * Never lets text from outside through as it is.
 */
#ifndef IOSTALL_RECORD_FORMAT_H
#define IOSTALL_RECORD_FORMAT_H

#include "record/record.h"

/* format_values.c */
/* `before` and the text; nothing when that is empty. */
void format_add_known(struct text *t, const char *before, const char *s);
/* The text, or "?". */
void format_add_or_unknown(struct text *t, const char *s);
/* The number and the unit, or "-". */
void format_add_real(struct text *t, double value, const char *unit);
/* "  +12.345s  ": behind the open, or before it for the samples that led up to it. */
void format_add_time(struct text *t, const struct record *r, uint64_t opened_mono_ns);

/* format_sample.c */
void format_sample(const struct record *r, uint64_t opened_mono_ns, struct text *t);

/* format_lock.c */
void format_lock(const struct record *r, uint64_t opened_mono_ns, struct text *t);

/* format_sql.c */
void format_sql_line(const struct record *r, uint64_t opened_mono_ns, struct text *t);
void format_queue(const struct record *r, uint64_t opened_mono_ns, struct text *t);

#endif
