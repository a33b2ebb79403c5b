/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts the program once more in this process, which forgets what libraries have remembered.
 */
#ifndef IOSTALL_UTIL_START_AGAIN_H
#define IOSTALL_UTIL_START_AGAIN_H

#include <stdbool.h>

/* Whether the program was not started again yet. */
bool start_again_is_possible(void);

/*
 * Executes the program with the same arguments; file descriptors must be close-on-exec. Returns a
 * negative errno; -EALREADY: it was started so already.
 */
int start_again_once(void);

#endif
