/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `iostall list`: the incidents in both directories as a table.
 * Used by the command and its tests.
 * Never needs a running daemon, never changes a file.
 */
#ifndef IOSTALL_CLI_LIST_H
#define IOSTALL_CLI_LIST_H

#include <stdio.h>

#include "config.h"

/*
 * The command without its options; returns an enum exit_code. Problems go to the log, one line
 * each.
 */
int list_records(FILE *out, const struct config *c, bool json);

#endif
