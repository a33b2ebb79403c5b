/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/statements.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"
#include "record/reader.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* 8 targets, 3 moments of 64 sessions and the longest 16; more has no record of ours. */
#define STATEMENTS_MAX 2048
/* It stands under many lines; the whole is in the `sql` lines. */
#define TEXT_SHOWN 120

struct statement {
	uint64_t begun_ns; /* at the latest */
	uint64_t asked_ns; /* it ran then or later, and not after the answer */
	uint64_t answered_ns;
	uint64_t connection_id;
	uint32_t answer; /* which one has it */
	int32_t tid;
	int32_t leader_pid;
	bool cut;
	char user[RECORD_NAME_SIZE];
	char database[RECORD_NAME_SIZE];
	char text[TEXT_SHOWN + 1];
};

struct statements {
	uint32_t answers;
	uint64_t answer_ns; /* of the last answer */
	uint32_t count;
	struct statement items[STATEMENTS_MAX];
};

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Blanks and line ends are one blank each; not cut within a character. */
static void copy_text(struct statement *s, const char *text)
{
	size_t len = 0;

	for (; *text && len < TEXT_SHOWN; text++) {
		if (!isspace((unsigned char)*text))
			s->text[len++] = *text;
		else if (len > 0 && s->text[len - 1] != ' ')
			s->text[len++] = ' ';
	}
	if ((*text & 0xc0) == 0x80) {
		while (len > 0 && (s->text[len - 1] & 0xc0) == 0x80)
			len--;
		len -= len > 0;
	}
	s->text[len] = '\0';
	s->cut = *text != '\0';
}

/* Neither a session that only has a transaction open nor a thread of the server itself runs one. */
static bool is_without(const struct record_sql *q)
{
	if (q->background && !*q->text)
		return true;
	return strcmp(q->command, "Sleep") == 0 || strncmp(q->command, "idle", strlen("idle")) == 0;
}

static void take_line(struct statements *all, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	struct statement *s;

	if (q->connection_id == 0) {
		all->answers++;
		all->answer_ns = q->answer_ns;
		return;
	}
	/* Each of another answer, which has no line of its own. */
	if (strcmp(q->moment, "longest") == 0) {
		all->answers++;
		all->answer_ns = q->answer_ns;
	}
	if (q->tid <= 0 || is_without(q) || all->count == STATEMENTS_MAX)
		return;
	s = &all->items[all->count++];
	*s = (struct statement){
		.begun_ns = minus(r->mono_ns, q->elapsed_ns),
		.asked_ns = minus(r->mono_ns, all->answer_ns),
		.answered_ns = r->mono_ns,
		.connection_id = q->connection_id,
		.answer = all->answers,
		.tid = q->tid,
		.leader_pid = q->leader_pid,
	};
	/* A MySQL that has only seconds counts those of the clock: 0.2 s may be 1 s. */
	if (q->elapsed_ns % NSEC_PER_SEC == 0)
		s->begun_ns += NSEC_PER_SEC;
	text_copy(s->user, sizeof(s->user), q->user);
	text_copy(s->database, sizeof(s->database), q->database);
	copy_text(s, q->text);
}

static void cleanup_reader(struct record_reader **reader)
{
	record_reader_free(*reader);
}

static void cleanup_statements(struct statements **statements)
{
	statements_free(*statements);
}

int statements_read(int fd, struct statements **ret_statements)
{
	_cleanup_(cleanup_statements) struct statements *all = calloc(1, sizeof(*all));
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	_cleanup_free_ struct record *record = malloc(sizeof(*record));
	struct record_line line;
	int r;

	if (!all || !record)
		return -ENOMEM;
	r = record_reader_new(fd, &reader);
	if (r < 0)
		return r;
	while ((r = record_reader_next(reader, record, &line)) > 0)
		if (line.decoded && record->type == RECORD_SQL)
			take_line(all, record);
	if (r < 0)
		return r;
	*ret_statements = TAKE_PTR(all);
	return 0;
}

struct statements *statements_free(struct statements *statements)
{
	free(statements);
	return NULL;
}

static bool is_request(const struct record_operation *op)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe_ops *ops = probe_ops_get(i);

		if (strcmp(ops->name, op->probe) == 0)
			return ops->operations_are_requests;
	}
	return true;
}

/* A thread is in one statement while it is in one operation, but does not wait for a request. */
static bool ran_during(const struct statement *s, const struct record_operation *op, bool request)
{
	uint64_t end_ns = op->start_mono_ns + op->dur_ns;

	if (op->start_mono_ns > s->asked_ns)
		return false;
	if (request)
		return s->begun_ns <= op->start_mono_ns;
	return s->begun_ns <= end_ns || s->answered_ns <= end_ns;
}

/* A worker that has no statement of its own runs that of the backend it works for. */
static const struct statement *leader_of(const struct statements *all, const struct statement *s)
{
	for (uint32_t i = 0; !*s->text && s->leader_pid > 0 && i < all->count; i++)
		if (all->items[i].answer == s->answer && all->items[i].tid == s->leader_pid)
			return &all->items[i];
	return s;
}

static const struct statement *find(const struct statements *all, const struct record_operation *op)
{
	const struct statement *found = NULL;
	bool request = is_request(op);

	for (uint32_t i = 0; op->tid > 0 && i < all->count; i++) {
		const struct statement *s = &all->items[i];

		if (s->tid != op->tid || !ran_during(s, op, request))
			continue;
		s = leader_of(all, s);
		if (op->connection_id == 0 || op->connection_id == s->connection_id)
			found = s;
	}
	return found;
}

void statements_add_of(const struct statements *all, const struct record *r, struct text *t)
{
	const struct statement *s;

	if (r->type != RECORD_STALL && r->type != RECORD_STUCK)
		return;
	s = find(all, &r->operation);
	if (!s)
		return;
	text_add(t, "            ran ");
	record_add_printable(t, *s->user ? s->user : "?");
	if (*s->database) {
		text_add(t, "/");
		record_add_printable(t, s->database);
	}
	text_addf(t, ", connection %" PRIu64, s->connection_id);
	if (*s->text) {
		text_add(t, ": ");
		record_add_printable(t, s->text);
		text_add(t, s->cut ? " ...\n" : "\n");
	} else {
		text_add(t, ", a statement\n");
	}
}
