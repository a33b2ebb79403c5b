/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Phrases that the sentence of a verdict and its parts share.
 * Used by say.c and parts.c only.
 * Never decides anything.
 */
#ifndef IOSTALL_VERDICT_WORDS_H
#define IOSTALL_VERDICT_WORDS_H

#include "verdict/rules.h"

void verdict_add_pct(struct text *t, double pct);
void verdict_add_who(struct text *t, const struct verdict_who *who);
/* Of the file system on which threads waited longest for its server; NULL: nothing is known. */
const struct verdict_file_server *verdict_find_file_server(const struct verdict_facts *f,
	enum verdict_wait wait);
/* "/tmp/#1237 (deleted)" of a file that has been removed. */
void verdict_add_path(struct text *t, const char *path);
void verdict_add_file_server(const struct verdict_file_server *server, struct text *t);

void verdict_add_device(struct text *t, const struct verdict_device *d);
void verdict_add_figures(struct text *t, const struct verdict_device *d);

void verdict_add_culprit(const struct verdict_finding *v, struct text *t);
/* ": mariadbd used 92 % ..."; or that it is not known who caused it, and who used the most. */
void verdict_add_blame(const struct verdict_finding *v, struct text *t);
/* Whether the sentence names the culprit, or who used the most: less than a fifth says nothing. */
bool verdict_is_named(const struct verdict_finding *v);
/* Whether the culprit, or kernel workers that write back, had half of the device's time. */
bool verdict_culprit_has_half(const struct verdict_finding *v);
/* A statement as one line: each run of blanks and line ends becomes one blank. */
void verdict_add_text(struct text *t, const char *s);
void verdict_add_writer(const struct verdict_finding *v, struct text *t);
/* What part of the device's time nobody can be blamed for. */
void verdict_add_untraced(const struct verdict_finding *v, struct text *t);
/* Whether that it was the culprit only follows from what was seen. */
bool verdict_is_probable(const struct verdict_finding *v);
/* Whether several sessions with the same statement are the culprit. */
bool verdict_is_sessions(const struct verdict_finding *v);
/* Its share of the device's time that was seen, at most 100. */
double verdict_culprit_pct(const struct verdict_finding *v);
void verdict_add_statement(struct text *t, const struct verdict_statement *s, bool with_text);
uint64_t verdict_start_error_ns(const struct verdict_statement *s);
/* "main (mariadbd pid 31863) did not answer for 10.30 s because its process was stopped" */
void verdict_add_unresponsive(const struct verdict_database *d, struct text *t);
/* "the kernel killed process mysqld pid 7 for want of memory" */
void verdict_add_killed(const struct verdict_facts *f, struct text *t);
/* Why there is no verdict. */
void verdict_add_missing(const struct verdict_facts *f, struct text *t);

#endif
