/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gives up what a database helper does not need: root, capabilities, descriptors, new processes.
 * Called once by the helper, before it loads a client library or looks at a byte of a database.
 * Never given back: what fails for a reason that weakens it is an error, and the helper ends.
 */
#ifndef IOSTALL_SQL_SANDBOX_H
#define IOSTALL_SQL_SANDBOX_H

#include "util/text.h"

/*
 * As user run_as, or nobody where there is no such user (which is logged); as before when we are
 * not root. Keeps standard input and error, and *keep_fd (-1: none), which gets another number. 0,
 * or a negative errno with a line in error.
 */
int sandbox_enter(const char *run_as, int *keep_fd, struct text *error);

/*
 * Keeps all memory resident from now on, which works without privileges after sandbox_enter(): code
 * that was evicted and lies on the disk that hangs would hang us. Best effort.
 */
void sandbox_lock_memory(void);

#endif
