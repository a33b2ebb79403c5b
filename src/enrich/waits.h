/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Says what a thread waits for, from the kernel functions it sleeps in.
 * Called by enrich.c, and by the session for a thread that is stuck.
 * Pure; never guesses: the answer is NONE for a stack that waits.def does not know.
 */
#ifndef IOSTALL_ENRICH_WAITS_H
#define IOSTALL_ENRICH_WAITS_H

#include <stdbool.h>
#include <stddef.h>

#include "record/enums.h"

/*
 * `kstack` has "symbol+0xoff" lines, the innermost frame first. The innermost frame that waits.def
 * knows decides, or, if many reasons share that function, one of the next frames. NONE: no frame
 * is known.
 */
enum record_cause waits_for(const char *kstack);

/* Whether a thread with that stack works on the memory map of its process with its lock held. */
bool waits_holds_map(const char *kstack);

/*
 * The innermost function outside the scheduler, without the offset, as the kernel gives it in
 * /proc/TID/wchan; empty when there is no frame.
 */
void waits_in(const char *kstack, char *ret_function, size_t size);

#endif
