/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statements without their literals, in the form of the databases' own digests.
 * Used by the helper of a database target; pure.
 * Never lets a byte of a literal or a comment through: in doubt about what is one, it is.
 */
#ifndef IOSTALL_SQL_REDACT_H
#define IOSTALL_SQL_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#include "sql/protocol.h"
#include "util/text.h"

/* What is behind is not looked at. */
#define SQL_REDACT_BYTES_MAX (4 * SQL_TEXT_SIZE)
/* Always enough for the result: ",?" becomes ", ..." where a list is shortened. */
#define SQL_REDACTED_SIZE (2 * SQL_REDACT_BYTES_MAX + 16)

enum sql_dialect {
	SQL_DIALECT_MYSQL, /* and MariaDB */
	SQL_DIALECT_POSTGRESQL,
};

/*
 * Each literal becomes ?, lists of them (...) and "?, ...", rows "(...), ...", comments and runs of
 * blanks one blank. cut says that the text is only the beginning of the statement.
 *
 * How a text has to be read depends on the settings of the session it comes from (sql_mode,
 * standard_conforming_strings). It is read in all ways; those in which it is no statement are
 * dropped, and what is a literal in one of the others is a literal. Settings that nobody uses so
 * cost something only where \' makes a difference.
 */
void sql_redact(enum sql_dialect dialect, const char *text, size_t len, bool cut, struct text *out);

#endif
