/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which statement a stuck or stalled thread of a record ran, by the record's own `sql` lines.
 * Used by `iostall show`.
 * Never guesses: a statement is named only when it was under way during the operation.
 */
#ifndef IOSTALL_CLI_STATEMENTS_H
#define IOSTALL_CLI_STATEMENTS_H

#include "record/record.h"
#include "util/text.h"

struct statements;

/* Reads the record fd by pread(). 0, -ENOMEM or why it cannot be read. */
int statements_read(int fd, struct statements **ret_statements);
/* NULL is accepted; returns NULL. */
struct statements *statements_free(struct statements *statements);

/* A line for the `stall` or `stuck` line r, or nothing. */
void statements_add_of(const struct statements *statements, const struct record *r, struct text *t);

#endif
