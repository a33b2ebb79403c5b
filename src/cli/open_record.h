/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the record that a person names: an id, a part of one, "last", "last-N", or a file.
 * Used by show, judge, report and list.
 * Never needs a running daemon.
 */
#ifndef IOSTALL_CLI_OPEN_RECORD_H
#define IOSTALL_CLI_OPEN_RECORD_H

#include "config/config.h"
#include "record/reader.h"
#include "record/record.h"
#include "record/store.h"

/* All records; NULL with the reason logged. Logs a directory that is left out, as it hangs. */
struct record_store *open_store(const struct config *c);
/* A descriptor, or -1 with the reason logged. *ret_path is for messages. */
int open_record(const struct config *c, const char *name, char ret_path[RECORD_PATH_SIZE]);

/*
 * Logs that lines are damaged, or of a later version, as in ", not shown". What the command ends
 * with: EXIT_CODE_OK, or EXIT_CODE_RECORD where they are damaged.
 */
int log_passed_lines(const char *path, const struct record_reader_counts *counts,
	const char *newer_are);

#endif
