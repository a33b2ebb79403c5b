/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The statements of a record, by its `sql` lines, and which of them a thread ran during an
 * operation.
 * Used by src/page/ and by `iostall show --events`.
 * Never guesses: a statement is named only when it was under way during the operation.
 */
#ifndef IOSTALL_PAGE_STATEMENTS_H
#define IOSTALL_PAGE_STATEMENTS_H

#include "record/record.h"
#include "util/text.h"

/* Of a text so many bytes are kept; the whole is in the `sql` lines. */
#define STATEMENT_TEXT_SIZE 241

struct statement {
	uint64_t elapsed_ns; /* 0: not known */
	uint64_t begun_ns;   /* at the latest */
	uint64_t asked_ns;   /* it ran then or later, and not after the answer */
	uint64_t answered_ns;
	uint64_t connection_id;
	uint64_t shape; /* the same for texts that differ in literals, numbers and blanks only */
	int32_t tid;	/* 0: not known */
	int32_t leader_pid;
	bool cut;
	char target[RECORD_NAME_SIZE];
	char user[RECORD_NAME_SIZE];
	char database[RECORD_NAME_SIZE];
	char text[STATEMENT_TEXT_SIZE];
};

/* Whether two times at which one statement is said to have begun may be the same. */
bool statement_is_same_begin(uint64_t a_ns, uint64_t b_ns);

/* Of a text: see above. */
uint64_t statement_shape(const char *text);

struct statements;

int statements_new(struct statements **ret_statements);
/* NULL is accepted; returns NULL. */
struct statements *statements_free(struct statements *statements);
void statements_clear(struct statements *statements);

/* Takes an `sql` line; others say nothing. */
void statements_take(struct statements *statements, const struct record *r);
/* Takes all of the record fd, read by pread(). 0, -ENOMEM or why it cannot be read. */
int statements_read(int fd, struct statements **ret_statements);

/* In the order of the record. */
uint32_t statements_count(const struct statements *statements);
const struct statement *statements_get(const struct statements *statements, uint32_t i);

/*
 * What the thread ran during an operation, or NULL. Of a `request` the thread does not wait: it may
 * be in the next statement meanwhile. connection_id 0: that of the operation is not known.
 */
struct statement_query {
	int32_t tid;
	bool request;
	uint64_t start_ns;
	uint64_t dur_ns;
	uint64_t connection_id;
};
const struct statement *statements_find(const struct statements *statements,
	const struct statement_query *q);
struct statement_query statement_query_of(const struct record_operation *o);

/* A line for the `stall` or `stuck` line r, or nothing. */
void statements_add_of(const struct statements *statements, const struct record *r, struct text *t);

#endif
