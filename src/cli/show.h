/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `iostall show`: one incident as a page, as a line for each event, as stacks for a flame graph
 * or pprof, as a table of its operations, or its lines as they are stored.
 * Used by the command and its tests.
 * Never needs a running daemon, never changes a file.
 */
#ifndef IOSTALL_CLI_SHOW_H
#define IOSTALL_CLI_SHOW_H

#include <stdio.h>

#include "cli/folded.h"
#include "config/config.h"
#include "page/page.h"

enum show_as {
	SHOW_PAGE,
	SHOW_EVENTS,
	SHOW_FOLDED,
	SHOW_PPROF,
	SHOW_CSV,
	SHOW_JSON,
};

struct show_options {
	enum show_as as;
	struct page_style style; /* of SHOW_PAGE */
	/* Of SHOW_FOLDED and SHOW_PPROF. show_record() finds the statements if they are wanted. */
	struct folded_options folded;
	bool statements;
};

/*
 * The command without its command line; name is an id, a part of one, "last", "last-N" or a file.
 * Returns an enum exit_code.
 */
int show_record(FILE *out, const struct config *c, const char *name,
	const struct show_options *options);

#endif
