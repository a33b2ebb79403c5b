/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Removes the literals from statements, in the form of the databases' own digests.
 * Used by helper.c, before a statement leaves the process. Pure.
 * Never keeps a byte of a literal or a comment: what may be one is taken for one.
 */
#ifndef IOSTALL_SQL_REDACT_H
#define IOSTALL_SQL_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#include "sql/helper/lexer.h"
#include "sql/protocol.h"
#include "util/text.h"

/* Later bytes of a statement are ignored. */
#define SQL_REDACT_BYTES_MAX (4 * SQL_TEXT_SIZE)
/* Enough for every result: ",?" becomes ", ..." where a list is shortened. */
#define SQL_REDACTED_SIZE (2 * SQL_REDACT_BYTES_MAX + 16)

/*
 * Each literal becomes ?, a list of them (...) or "?, ...", rows of them "(...), ...". Comments and
 * runs of blanks become one blank. `cut`: the text is only the beginning of the statement.
 *
 * How a text is read depends on settings of its session (sql_mode, standard_conforming_strings),
 * which other sessions cannot see. So it is read in every way in which it can be a statement, and
 * what is a literal in one of them is replaced. This hides more than necessary only where \' or $
 * makes a difference.
 */
void sql_redact(enum sql_dialect dialect, const char *text, size_t len, bool cut, struct text *out);

#endif
