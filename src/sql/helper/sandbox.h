/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gives up what a database helper does not need: root, capabilities, descriptors, new processes.
 * Called once by helper.c, before it loads a client library or reads from a database.
 * Never continues with less protection: if a step fails, the helper ends.
 */
#ifndef IOSTALL_SQL_SANDBOX_H
#define IOSTALL_SQL_SANDBOX_H

#include "util/text.h"

/*
 * Becomes user run_as, or nobody when there is no such user or it is root, which is logged. Without
 * root, the user stays the same. Keeps standard input and error, and *keep_fd (-1: none), which
 * gets another number. 0, or a negative errno with a line in `error`.
 */
int sandbox_enter(const char *run_as, int *keep_fd, struct text *error);

/*
 * Locks all memory from now on: pages of code that were evicted would have to be read from the disk
 * that hangs. After sandbox_enter() it works without privileges. An error is ignored.
 */
void sandbox_lock_memory(void);

#endif
