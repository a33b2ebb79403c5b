/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the journal of a file system did while threads waited for it.
 * Called when lines are noted and when a sentence is made.
 * Never blames: a process that changed most of the metadata need not have made the commit slow.
 */
#ifndef IOSTALL_VERDICT_JOURNAL_H
#define IOSTALL_VERDICT_JOURNAL_H

#include "verdict/rules.h"

/* The journal that victims waited for, if a commit took long; NULL: there is none. */
const struct verdict_journal *verdict_find_journal(const struct verdict_finding *v);

/* "a commit of the journal on loop1 took up to 3.10 s for 17 blocks of metadata" */
void verdict_add_journal(const struct verdict_finding *v, const struct verdict_journal *journal,
	struct text *t);

#endif
