/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `iostall list`: the incidents in both directories as a table.
 * Used by the command and its tests.
 * Never needs a running daemon, never changes a file.
 */
#ifndef IOSTALL_CLI_LIST_H
#define IOSTALL_CLI_LIST_H

#include <stdio.h>

#include "config/config.h"
#include "record/record.h"

struct list_options {
	bool json;
	uint64_t since_real_ns;	 /* only what was opened then or later; 0: all */
	enum record_class class; /* only of this class; NONE: of any, or without */
};

/*
 * The command without its command line; returns an enum exit_code. Problems go to the log, one line
 * each.
 */
int list_records(FILE *out, const struct config *c, const struct list_options *options);

#endif
