/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For whom the I/O workers of PostgreSQL 18 read: processes of the server that do the reads of all
 * backends. In each answer the server says which reads they have in hand, and whose these are.
 * Owned by a target, which has one for its incident.
 * Never says more than that nearly all of these reads were for one backend or one statement: which
 * worker did which of them is not known.
 */
#ifndef IOSTALL_SQL_IO_WORKERS_H
#define IOSTALL_SQL_IO_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/snapshot.h"

#define SQL_IO_WORKERS_ROLE "io worker"
/* Backends; the reads of further ones count for nobody. */
#define SQL_IO_WORKERS_MAX 64

struct sql_io_workers {
	uint64_t reads; /* in hand, added up over all answers */
	uint32_t count;
	struct {
		uint64_t key; /* of its statement, as in struct sql_row */
		uint64_t reads;
		int32_t pid; /* a parallel worker counts as its leader */
	} backends[SQL_IO_WORKERS_MAX];
};

void sql_io_workers_begin(struct sql_io_workers *workers);
void sql_io_workers_take(struct sql_io_workers *workers, const struct sql_snapshot *answer);

/*
 * The backend for which at least three quarters of the reads were; or, of several backends with the
 * same statement that had so many together, the one with most. 0: there is none.
 * *ret_sessions: how many backends these are.
 */
int32_t sql_io_workers_find(const struct sql_io_workers *workers, uint32_t *ret_sessions);

#endif
