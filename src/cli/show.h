/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `iostall show`: one incident as text, or its lines as they are stored.
 * Used by the command and its tests.
 * Never needs a running daemon, never changes a file.
 */
#ifndef IOSTALL_CLI_SHOW_H
#define IOSTALL_CLI_SHOW_H

#include <stdio.h>

#include "config.h"

/*
 * The command without its options; name is an id, the beginning of one, "last" or a file. Returns
 * an enum exit_code.
 */
int show_record(FILE *out, const struct config *c, const char *name, bool json);

#endif
