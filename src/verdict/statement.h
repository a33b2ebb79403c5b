/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The statement that the culprit worked for.
 * Used inside this room only.
 * Never names a statement that did little of what its server did.
 */
#ifndef IOSTALL_VERDICT_STATEMENT_H
#define IOSTALL_VERDICT_STATEMENT_H

#include "verdict/rules.h"

/* False: none is known. `sql` may be NULL. */
bool verdict_find_statement(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct verdict_statement *ret_statement);

#endif
