/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page/statements.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "record/reader.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/number.h"

/* Of further ones in a long incident nothing is known. */
#define STATEMENTS_MAX 2048
/* How much the begin of one statement differs between answers: some servers count seconds. */
#define BEGUN_ERROR_NS (3 * NSEC_PER_SEC / 2)
/* What stands under a line of --events. */
#define TEXT_SHOWN 120
/* So much of a text decides whether two are alike. */
#define SHAPE_SIZE 1024

struct statements {
	uint32_t count;
	struct statement items[STATEMENTS_MAX];
};

/* How much of the first len bytes is whole characters; next is the byte behind them. */
static size_t whole_characters(const char *text, size_t len, char next)
{
	if ((next & 0xc0) != 0x80)
		return len;
	while (len > 0 && (text[len - 1] & 0xc0) == 0x80)
		len--;
	return len - (len > 0);
}

/* Blanks and line ends are one blank each. */
static void copy_text(struct statement *s, const char *text)
{
	size_t len = 0, size = sizeof(s->text) - 1;

	for (; *text && len < size; text++) {
		if (!isspace((unsigned char)*text))
			s->text[len++] = *text;
		else if (len > 0 && s->text[len - 1] != ' ')
			s->text[len++] = ' ';
	}
	s->cut = *text != '\0';
	s->text[whole_characters(s->text, len, *text)] = '\0';
}

static const char *skip_quoted(const char *p)
{
	const char quote = *p++;

	while (*p && *p != quote)
		p += *p == '\\' && p[1] ? 2 : 1;
	return *p ? p + 1 : p;
}

/*
 * A literal; of a list of them one is kept, so that lists of any length are alike. A quote within a
 * text is written twice, which makes two of one.
 */
static size_t add_literal(char *shape, size_t len)
{
	if (len >= 1 && shape[len - 1] == '?')
		return len;
	if (len >= 2 && shape[len - 1] == ',' && shape[len - 2] == '?')
		return len - 1;
	shape[len] = '?';
	return len + 1;
}

/* The text without what differs from one execution to the next: literals, blanks, case. */
uint64_t statement_shape(const char *p)
{
	char shape[SHAPE_SIZE];
	size_t len = 0;
	bool word = false;

	while (*p && len < sizeof(shape)) {
		const unsigned char c = (unsigned char)*p;

		if (c == '\'' || (isdigit(c) && !word)) {
			p = c == '\'' ? skip_quoted(p) : p + strspn(p, "0123456789.xabcdefABCDEF");
			len = add_literal(shape, len);
			word = false;
			continue;
		}
		if (c == '?')
			len = add_literal(shape, len);
		else if (!isspace(c))
			shape[len++] = (char)tolower(c);
		word = isalnum(c) || c == '_' || c >= 0x80;
		p++;
	}
	return hash_bytes(HASH_BEGIN, shape, len);
}

/* Neither a session that only has a transaction open nor a thread of the server itself runs one. */
static bool is_without(const struct record_sql *q)
{
	if (q->background && !*q->text)
		return true;
	return strcmp(q->command, "Sleep") == 0 || strncmp(q->command, "idle", strlen("idle")) == 0;
}

bool statement_is_same_begin(uint64_t a_ns, uint64_t b_ns)
{
	return (a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns) < BEGUN_ERROR_NS;
}

static bool is_same(const struct statement *a, const struct statement *b)
{
	return a->connection_id == b->connection_id && a->shape == b->shape &&
		statement_is_same_begin(a->begun_ns, b->begun_ns) &&
		strcmp(a->target, b->target) == 0;
}

/* NULL: no line was about it so far. The last of them are the likeliest. */
static struct statement *find_same(struct statements *all, const struct statement *line)
{
	for (uint32_t i = all->count; i > 0; i--)
		if (is_same(&all->items[i - 1], line))
			return &all->items[i - 1];
	return NULL;
}

static void add(struct statements *all, const struct statement *new)
{
	struct statement *s = find_same(all, new);

	if (!s && all->count < STATEMENTS_MAX) {
		all->items[all->count++] = *new;
	} else if (s && new->answered_ns >= s->answered_ns) {
		uint64_t begun_ns = s->begun_ns < new->begun_ns ? s->begun_ns : new->begun_ns;

		*s = *new;
		s->begun_ns = begun_ns;
	}
}

void statements_take(struct statements *all, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	struct statement s;

	if (r->type != RECORD_SQL || q->connection_id == 0 || is_without(q))
		return;
	s = (struct statement){
		.elapsed_ns = q->elapsed_ns,
		.begun_ns = minus(r->mono_ns, q->elapsed_ns),
		.asked_ns = minus(r->mono_ns, q->answer_ns),
		.answered_ns = r->mono_ns,
		.connection_id = q->connection_id,
		.shape = statement_shape(q->text),
		.tid = q->tid > 0 ? q->tid : 0,
		.leader_pid = q->leader_pid,
	};
	/* A MySQL that has only seconds counts those of the clock: 0.2 s may be 1 s. */
	if (q->elapsed_ns % NSEC_PER_SEC == 0)
		s.begun_ns += NSEC_PER_SEC;
	text_copy(s.target, sizeof(s.target), q->target);
	text_copy(s.user, sizeof(s.user), q->user);
	text_copy(s.database, sizeof(s.database), q->database);
	copy_text(&s, q->text);
	add(all, &s);
}

static void cleanup_reader(struct record_reader **reader)
{
	record_reader_free(*reader);
}

static void cleanup_statements(struct statements **statements)
{
	statements_free(*statements);
}

int statements_new(struct statements **ret_statements)
{
	*ret_statements = calloc(1, sizeof(**ret_statements));
	return *ret_statements ? 0 : -ENOMEM;
}

struct statements *statements_free(struct statements *statements)
{
	free(statements);
	return NULL;
}

void statements_clear(struct statements *statements)
{
	statements->count = 0;
}

int statements_read(int fd, struct statements **ret_statements)
{
	_cleanup_(cleanup_statements) struct statements *all = NULL;
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	_cleanup_free_ struct record *record = malloc(sizeof(*record));
	struct record_line line;
	int r = statements_new(&all);

	if (r < 0 || !record)
		return -ENOMEM;
	r = record_reader_new(fd, &reader);
	if (r < 0)
		return r;
	while ((r = record_reader_next(reader, record, &line)) > 0)
		if (line.decoded)
			statements_take(all, record);
	if (r < 0)
		return r;
	*ret_statements = TAKE_PTR(all);
	return 0;
}

uint32_t statements_count(const struct statements *statements)
{
	return statements->count;
}

const struct statement *statements_get(const struct statements *statements, uint32_t i)
{
	return &statements->items[i];
}

struct statement_query statement_query_of(const struct record_operation *o)
{
	return (struct statement_query){
		.tid = o->tid,
		.request = record_probe_has_requests(o->probe),
		.start_ns = o->start_mono_ns,
		.dur_ns = o->dur_ns,
		.connection_id = o->connection_id,
	};
}

/* A thread is in one statement while it is in one operation, but does not wait for a request. */
static bool ran_during(const struct statement *s, const struct statement_query *q)
{
	uint64_t end_ns = q->start_ns + q->dur_ns;

	if (q->start_ns > s->asked_ns)
		return false;
	if (q->request)
		return s->begun_ns <= q->start_ns;
	return s->begun_ns <= end_ns || s->answered_ns <= end_ns;
}

/* A worker that has no statement of its own runs that of the backend it works for. */
static const struct statement *leader_of(const struct statements *all, const struct statement *s)
{
	for (uint32_t i = 0; !*s->text && s->leader_pid > 0 && i < all->count; i++)
		if (all->items[i].tid == s->leader_pid &&
			all->items[i].begun_ns <= s->answered_ns &&
			all->items[i].answered_ns >= s->answered_ns)
			return &all->items[i];
	return s;
}

const struct statement *statements_find(const struct statements *all,
	const struct statement_query *q)
{
	const struct statement *found = NULL;

	for (uint32_t i = 0; q->tid > 0 && i < all->count; i++) {
		const struct statement *s = &all->items[i];

		if (s->tid != q->tid || !ran_during(s, q))
			continue;
		s = leader_of(all, s);
		if (q->connection_id == 0 || q->connection_id == s->connection_id)
			found = s;
	}
	return found;
}

static void add_shown(const struct statement *s, struct text *t)
{
	char shown[TEXT_SHOWN + 1];
	size_t len = strlen(s->text);
	bool cut = s->cut || len > TEXT_SHOWN;

	text_copy(shown, sizeof(shown), s->text);
	if (len > TEXT_SHOWN)
		shown[whole_characters(s->text, TEXT_SHOWN, s->text[TEXT_SHOWN])] = '\0';
	record_add_printable(t, shown);
	text_add(t, cut ? " ...\n" : "\n");
}

void statements_add_of(const struct statements *all, const struct record *r, struct text *t)
{
	struct statement_query q;
	const struct statement *s;

	if (r->type != RECORD_STALL && r->type != RECORD_STUCK)
		return;
	q = statement_query_of(&r->operation);
	s = statements_find(all, &q);
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
		add_shown(s, t);
	} else {
		text_add(t, ", a statement\n");
	}
}
