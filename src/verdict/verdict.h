/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The verdict on an incident: what was wrong, who caused it, who suffered, in a sentence and its
 * parts.
 * Called by the session before `close`, and by `iostall judge` for a record.
 * Pure. Never blames without evidence: what the record does not show is said to be missing.
 */
#ifndef IOSTALL_VERDICT_VERDICT_H
#define IOSTALL_VERDICT_VERDICT_H

#include "verdict/graph.h"

/* The graph is only room for it, which is too much for a stack. */
void judge(const struct model *model, struct graph *graph, struct record_verdict *ret_verdict);

/* Which of its kind a node is: the name of a disk, "of process 17", of a database; "": there is one. */
void judge_add_object(const struct graph *graph, const struct node *node, struct text *out);

/* Who waited for what, as a table: what `iostall judge --explain` prints. */
void judge_explain(const struct graph *graph, struct text *out);

#endif
