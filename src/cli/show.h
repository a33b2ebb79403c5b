/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `iostall show`: one incident as a page, as a line for each event, as stacks for a flame graph
 * or pprof, or its lines as they are stored.
 * Used by the command and its tests.
 * Never needs a running daemon, never changes a file.
 */
#ifndef IOSTALL_CLI_SHOW_H
#define IOSTALL_CLI_SHOW_H

#include <stdio.h>

#include "config/config.h"
#include "page/page.h"

enum show_as {
	SHOW_PAGE,
	SHOW_EVENTS,
	SHOW_FOLDED,
	SHOW_PPROF,
	SHOW_JSON,
};

/*
 * The command without its options; name is an id, a part of one, "last", "last-N" or a file. style
 * is that of the page. Returns an enum exit_code.
 */
int show_record(FILE *out, const struct config *c, const char *name, enum show_as as,
	const struct page_style *style);

#endif
