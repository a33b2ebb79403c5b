/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the kernel functions a thread sleeps in to what it waits for, in a word.
 * Called by enrich.c, and by the session for a stack that user space has read.
 * Pure; never guesses: a stack that no line knows waits for nothing known.
 */
#ifndef IOSTALL_ENRICH_WAITS_H
#define IOSTALL_ENRICH_WAITS_H

/*
 * `kstack`: "symbol+0xoff" lines from the innermost frame on. The word of the innermost frame that
 * waits.def knows, or of one close by that tells more; "" when it knows none.
 */
const char *waits_for(const char *kstack);

#endif
