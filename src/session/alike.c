/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/alike.h"
#include "util/hash.h"

#include <string.h>

/*
 * The program is that of the executable, so that the processes of PostgreSQL are alike. Without one
 * (kernel threads) it is the name. Files are not told apart, or thousands of threads on as many
 * files would have a line each. Those that failed are counted by the error.
 */
static uint64_t hash_of(const struct record *r)
{
	const struct record_operation *op = &r->operation;
	const char *program = op->exe[0] ? op->exe : op->comm;
	const uint64_t error =
		op->ret < 0 && op->ret != RECORD_RET_UNKNOWN ? (uint64_t)-op->ret : 0;
	const uint64_t parts[] = { r->type, op->op, op->probe, op->waits_for, op->dev.major,
		op->dev.minor, error };
	uint64_t hash = hash_bytes(HASH_BEGIN, parts, sizeof(parts));

	hash = hash_text(hash, program);
	return hash ? hash : 1;
}

/* NULL: there is no room. */
static struct alike_kind *find_kind(struct alike *a, uint64_t hash)
{
	for (uint32_t i = 0; i < ALIKE_KINDS_MAX; i++) {
		struct alike_kind *kind = &a->kinds[(hash + i) % ALIKE_KINDS_MAX];

		if (kind->hash == hash)
			return kind;
		if (kind->hash)
			continue;
		/* A quarter stays free, so that a search is short. */
		if (a->kinds_count >= ALIKE_KINDS_MAX / 4 * 3)
			return NULL;
		a->kinds_count++;
		kind->hash = hash;
		return kind;
	}
	return NULL;
}

static void begin_window(struct alike *a, bool crowded)
{
	memset(a->kinds, 0, sizeof(a->kinds));
	a->kinds_count = a->lines_count = a->next = 0;
	a->crowded = crowded;
}

void alike_begin(struct alike *a)
{
	begin_window(a, false);
}

static bool may_have_own(const struct alike *a, const struct alike_kind *kind,
	const struct record *r, bool has_line)
{
	if (r->type == RECORD_STALL)
		return has_line || kind->own < ALIKE_OWN_LINES;
	return kind->own < (a->crowded ? ALIKE_REPEATED_LINES : ALIKE_OWN_LINES);
}

static bool has_stuck_line(const struct alike *a)
{
	for (uint32_t i = 0; i < a->lines_count; i++)
		if (a->lines[i].type == RECORD_STUCK)
			return true;
	return false;
}

static void line_begin(struct alike_line *line, uint32_t kind, const struct record *r)
{
	line->type = r->type;
	line->kind = kind;
	line->real_ns = r->real_ns;
	line->mono_ns = r->mono_ns;
	line->operation = r->operation;
}

static void line_add(struct alike_line *line, const struct record_operation *op)
{
	struct record_alike *alike = &line->operation.alike;

	if (alike->count++ == 0) {
		alike->min_ns = alike->max_ns = op->dur_ns;
		alike->same_file = true;
	}
	alike->present = true;
	alike->total_ns += op->dur_ns;
	if (op->dur_ns < alike->min_ns)
		alike->min_ns = op->dur_ns;
	if (op->dur_ns > alike->max_ns)
		alike->max_ns = op->dur_ns;
	if (op->inode != line->operation.inode || strcmp(op->path, line->operation.path) != 0)
		alike->same_file = false;
}

bool alike_merge(struct alike *a, const struct record *r, bool has_line)
{
	struct alike_kind *kind = find_kind(a, hash_of(r));

	if (!kind)
		return false;
	if (may_have_own(a, kind, r, has_line)) {
		kind->own++;
		return false;
	}
	if (kind->line > 0) {
		line_add(&a->lines[kind->line - 1], &r->operation);
		return true;
	}
	if (a->lines_count == ALIKE_LINES_MAX)
		return false;
	line_begin(&a->lines[a->lines_count++], (uint32_t)(kind - a->kinds), r);
	kind->line = a->lines_count;
	return true;
}

const struct alike_line *alike_next(struct alike *a)
{
	if (a->next < a->lines_count) {
		struct alike_line *line = &a->lines[a->next++];

		line->operation.alike.own = a->kinds[line->kind].own;
		return line;
	}
	begin_window(a, has_stuck_line(a));
	return NULL;
}
