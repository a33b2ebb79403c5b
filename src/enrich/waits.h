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

/*
 * The same for a file at a server, which is `server`. Its file system sends requests and sleeps
 * where others sleep for a disk, or in functions of its own: all that is no lock, no memory and no
 * journal is a wait for the server.
 */
enum record_cause waits_at_server(enum record_cause cause, enum record_cause server);

/* Whether the frame, or the name of a symbol, is of a function of server_waits.def. */
bool waits_is_server_wait(const char *frame);
/* Whether one of the frames is. */
bool waits_for_server(const char *kstack);

/* Whether a thread with that stack waits for the memory map lock of another process. */
bool waits_for_map_of_other(const char *kstack);
/* Whether a thread with that stack works on the memory map of its process with its lock held. */
bool waits_holds_map(const char *kstack);

/*
 * Whether a thread for which waits_for() knows nothing waits for the lock of its file's inode,
 * unless it has that itself.
 */
bool waits_may_be_for_inode(const char *kstack);

/*
 * The functions of a thread that was interrupted to take its stack, without those of the
 * interruption; "" when there are only those.
 */
const char *waits_skip_interrupt(const char *kstack);
/* Whether the functions are of an interrupt, which has nothing to do with the thread it came to. */
bool waits_is_interrupt(const char *kstack);

/* The innermost function that has no part in taking the lock it waits for, without the offset. */
void waits_taker(const char *kstack, char *ret_function, size_t size);

/*
 * The innermost function outside the scheduler, without the offset, as the kernel gives it in
 * /proc/TID/wchan; empty when there is no frame.
 */
void waits_in(const char *kstack, char *ret_function, size_t size);

#endif
