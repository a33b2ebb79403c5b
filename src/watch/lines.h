/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a file of any size line by line through a buffer of fixed size.
 * Used by the watch room, and by searches on threads of their own.
 * Never allocates; a line that does not fit the buffer is left out as a whole.
 */
#ifndef IOSTALL_WATCH_LINES_H
#define IOSTALL_WATCH_LINES_H

#include <stddef.h>

#include "util/parse.h"

typedef void (*lines_fn)(void *arg, struct cursor line);

/*
 * Reads fd from its start to its end and calls fn for each line, without the newline. It reads in
 * file order, because the kernel's seq_file would otherwise generate the text again from the start
 * for each piece. 0 or a negative errno; fn has been called for the lines before an error.
 */
int lines_read_fd(int fd, char *buf, size_t size, lines_fn fn, void *arg);

#endif
