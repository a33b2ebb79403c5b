/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operations by process, file and cause. One that is stuck is followed from its first line to its
 * last, and counted once.
 */
#include <string.h>

#include "page/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

/*
 * A session writes a line for a stuck operation each second, later whenever its age has grown by
 * half, and a last one at the end. If no line came for longer, the return was missed.
 */
#define SILENT_NS (5 * NSEC_PER_SEC / 2)

static uint64_t mix(uint64_t hash, const char *s)
{
	/* FNV-1a; the NUL keeps "ab", "c" and "a", "bc" apart. */
	do {
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3ULL;
	} while (*s++);
	return hash;
}

void page_cause(const struct record_operation *o, char ret_cause[static RECORD_NAME_SIZE])
{
	size_t len = strcspn(o->kstack, "+\n");

	if (o->waits_for) {
		text_copy(ret_cause, RECORD_NAME_SIZE, record_cause_text(o->waits_for));
		return;
	}
	if (!o->kstack_while_blocked || len == 0) {
		memcpy(ret_cause, o->wchan, RECORD_NAME_SIZE);
		return;
	}
	len = len < RECORD_NAME_SIZE ? len : RECORD_NAME_SIZE - 1;
	memcpy(ret_cause, o->kstack, len);
	ret_cause[len] = '\0';
}

/* The end of it, whole characters. */
static void copy_path(char dst[static PAGE_PATH_SIZE], const char *path)
{
	size_t len = strlen(path);

	if (len >= PAGE_PATH_SIZE)
		path += len - (PAGE_PATH_SIZE - 1);
	while ((*path & 0xc0) == 0x80)
		path++;
	text_copy(dst, PAGE_PATH_SIZE, path);
}

static void fill_key(const struct record_operation *o, const char *cause, struct page_group *g)
{
	memset(g, 0, offsetof(struct page_group, waited_ns));
	memcpy(g->comm, o->comm, sizeof(g->comm));
	page_process_of(o, g->process);
	g->op = o->op;
	memcpy(g->cause, cause, sizeof(g->cause));
	memcpy(g->dev_name, o->dev_name, sizeof(g->dev_name));
	g->hash = mix(mix(mix(mix(0xcbf29ce484222325ULL, g->comm), record_op_text(g->op)), cause),
		g->dev_name);
}

static struct page_group *find(struct page_group *groups, uint32_t count,
	const struct page_group *key)
{
	for (uint32_t i = 0; i < count; i++)
		if (groups[i].hash == key->hash && strcmp(groups[i].path, key->path) == 0 &&
			strcmp(groups[i].comm, key->comm) == 0 &&
			strcmp(groups[i].cause, key->cause) == 0 && groups[i].op == key->op)
			return &groups[i];
	return NULL;
}

static struct page_group *make(struct page_group *groups, uint32_t *count, uint32_t max,
	const struct page_group *key)
{
	struct page_group *g;

	if (*count >= max)
		return NULL;
	g = &groups[(*count)++];
	memset(g, 0, sizeof(*g));
	memcpy(g, key, offsetof(struct page_group, waited_ns));
	return g;
}

/* That of its file, or of all files that had no room; NULL: that has none, either. */
static struct page_group *group_of(struct page_operations *ops, const struct record_operation *o,
	const char *cause, bool stuck)
{
	struct page_group *coarse = &ops->groups[PAGE_GROUPS_MAX], *g;
	bool several_files = o->alike.present && !o->alike.same_file;
	struct page_group key[1];
	uint64_t hash;

	fill_key(o, cause, key);
	hash = key->hash;
	copy_path(key->path, page_file_name(o));
	key->hash = mix(hash, key->path);
	g = several_files ? NULL : find(ops->groups, ops->groups_count, key);
	if (!g && !several_files)
		g = make(ops->groups, &ops->groups_count,
			PAGE_GROUPS_MAX - (stuck ? 0 : PAGE_GROUPS_FOR_STUCK), key);
	if (g)
		return g;
	key->hash = hash;
	key->path[0] = '\0';
	key->other_files = true;
	g = find(coarse, ops->coarse_count, key);
	return g ? g : make(coarse, &ops->coarse_count, PAGE_COARSE_MAX, key);
}

/* How much of it was within the incident. */
static uint64_t waited_ns(const struct page *p, uint64_t start_ns, uint64_t dur_ns)
{
	uint64_t lead_ns = PAGE_LEAD_S * NSEC_PER_SEC, end_ns = start_ns + dur_ns;
	uint64_t from_ns = p->opened_mono_ns > lead_ns ? p->opened_mono_ns - lead_ns : 0;

	from_ns = start_ns > from_ns ? start_ns : from_ns;
	return start_ns == 0 ? dur_ns : end_ns > from_ns ? end_ns - from_ns : 0;
}

static bool keep_id(int32_t *ids, uint32_t *count, uint32_t max, int32_t id)
{
	for (uint32_t i = 0; i < *count; i++)
		if (ids[i] == id)
			return true;
	if (*count == max)
		return false;
	ids[(*count)++] = id;
	return true;
}

static void keep_longest(struct page_group *g, const struct statement_query *q)
{
	uint32_t least = 0;

	if (g->kept < PAGE_LONGEST_KEPT) {
		g->longest[g->kept++] = *q;
		return;
	}
	for (uint32_t i = 1; i < g->kept; i++)
		if (g->longest[i].dur_ns < g->longest[least].dur_ns)
			least = i;
	if (q->dur_ns > g->longest[least].dur_ns)
		g->longest[least] = *q;
}

static void count_finished(struct page *p, struct page_group *g, const struct statement_query *q,
	bool is_bound)
{
	if (g->median.count == 0 || q->dur_ns < g->min_ns)
		g->min_ns = q->dur_ns;
	if (q->dur_ns > g->max_ns) {
		g->max_ns = q->dur_ns;
		g->max_is_bound = is_bound;
	}
	g->waited_ns += waited_ns(p, q->start_ns, q->dur_ns);
	median_add(&g->median, q->dur_ns, 1);
	keep_longest(g, q);
}

/* Of so many only the shortest and the longest are known. */
static void count_many(struct page *p, struct page_group *g, const struct record_alike *alike,
	uint64_t start_ns)
{
	uint64_t middle_ns = alike->min_ns + (alike->max_ns - alike->min_ns) / 2;

	if (alike->min_ns < g->min_ns)
		g->min_ns = alike->min_ns;
	if (alike->max_ns > g->max_ns)
		g->max_ns = alike->max_ns;
	g->waited_ns += alike->count * waited_ns(p, start_ns, middle_ns);
	median_add(&g->median, middle_ns, alike->count);
}

static void set_alike(struct page_operations *ops, struct page_group *g, uint32_t count)
{
	ops->alike += count - g->alike;
	g->alike = count;
}

uint32_t page_count_of(const struct record_operation *o)
{
	return o->alike.present ? 1 + o->alike.count : 1;
}

uint32_t page_count_stuck(const struct page *p)
{
	return p->operations.stuck.count + p->operations.alike;
}

void page_merge_group(struct page_group *into, const struct page_group *g)
{
	if (g->median.count && (into->median.count == 0 || g->min_ns < into->min_ns))
		into->min_ns = g->min_ns;
	if (g->max_ns > into->max_ns) {
		into->max_ns = g->max_ns;
		into->max_is_bound = g->max_is_bound;
	}
	into->waited_ns += g->waited_ns;
	into->failed += g->failed;
	median_merge(&into->median, &g->median);
	into->stuck += g->stuck;
	if (g->stuck_max_ns > into->stuck_max_ns) {
		into->stuck_longest = g->stuck_longest;
		into->stuck_max_ns = g->stuck_max_ns;
		into->stuck_max_is_bound = g->stuck_max_is_bound;
	}
	for (uint32_t i = 0; i < g->pids_count; i++)
		into->more_pids |=
			!keep_id(into->pids, &into->pids_count, PAGE_PIDS_KEPT, g->pids[i]);
	for (uint32_t i = 0; i < g->kept; i++)
		keep_longest(into, &g->longest[i]);
	into->more_pids |= g->more_pids;
}

static void note_stuck(struct page *p, const struct record *r, struct page_group *g)
{
	const struct record_operation *o = &r->operation;
	struct page_stuck_table *table = &p->operations.stuck;
	struct page_stuck *s = page_stuck_find(table, o->tid, o->start_mono_ns);

	if (!s) {
		s = page_stuck_add(table, o->tid, o->start_mono_ns);
		if (!s) {
			p->operations.not_followed++;
			return;
		}
		p->operations.stuck_seen++;
	}
	s->operation = statement_query_of(o);
	s->seen_ns = r->mono_ns;
	s->pid = o->pid;
	s->group = (uint16_t)(g - p->operations.groups);
	s->before_arm = o->since == RECORD_SINCE_before_arm;
}

/* They are no operations that can be followed one by one. */
static void note_stuck_alike(struct page *p, const struct record *r, struct page_group *g)
{
	const struct record_operation *o = &r->operation;
	uint32_t count = page_count_of(o);

	if (count > g->alike)
		p->operations.stuck_seen += count - g->alike;
	set_alike(&p->operations, g, count);
	g->alike_max_ns = o->dur_ns > o->alike.max_ns ? o->dur_ns : o->alike.max_ns;
	g->alike_seen_ns = r->mono_ns;
	g->alike_is_bound = o->since == RECORD_SINCE_before_arm;
}

static void count_stalls(struct page *p, const struct record_operation *o,
	const struct statement_query *q, struct page_group *g)
{
	uint32_t count = page_count_of(o);

	count_finished(p, g, q, o->since == RECORD_SINCE_before_arm);
	if (!o->alike.present)
		return;
	count_many(p, g, &o->alike, o->start_mono_ns);
	set_alike(&p->operations, g, g->alike > count ? g->alike - count : 0);
}

void page_note_operation(struct page *p, const struct record *r)
{
	struct page_operations *ops = &p->operations;
	const struct record_operation *o = &r->operation;
	const struct statement_query q = statement_query_of(o);
	struct page_stuck *s;
	struct page_group *g;
	char cause[RECORD_NAME_SIZE];

	page_cause(o, cause);
	s = r->type == RECORD_STALL ? page_stuck_find(&ops->stuck, o->tid, o->start_mono_ns) : NULL;
	/* The cause was seen while the operation was stuck; its return may not know it. */
	if (s && !*cause)
		memcpy(cause, ops->groups[s->group].cause, sizeof(cause));
	if (r->type == RECORD_STALL) {
		ops->stalls += page_count_of(o);
		ops->longest_ns = o->dur_ns > ops->longest_ns ? o->dur_ns : ops->longest_ns;
		if (o->alike.present && o->alike.max_ns > ops->longest_ns)
			ops->longest_ns = o->alike.max_ns;
	}
	g = group_of(ops, o, cause, r->type == RECORD_STUCK);
	if (!g)
		ops->left_out += page_count_of(o);
	else if (r->type == RECORD_STALL)
		count_stalls(p, o, &q, g);
	else if (o->alike.present)
		note_stuck_alike(p, r, g);
	else
		note_stuck(p, r, g);
	if (g && !keep_id(g->pids, &g->pids_count, PAGE_PIDS_KEPT, o->pid))
		g->more_pids = true;
	if (g && r->type == RECORD_STALL && o->ret < 0 && o->ret != RECORD_RET_UNKNOWN)
		g->failed++;
	if (s)
		page_stuck_remove(&ops->stuck, s);
}

static bool is_silent(uint64_t seen_ns, uint64_t dur_ns, uint64_t now_ns)
{
	return now_ns >= seen_ns + SILENT_NS + dur_ns / 2;
}

static void expire_alike(struct page *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(p->operations.groups); i++) {
		struct page_group *g = &p->operations.groups[i];
		const struct record_alike alike = { true, g->alike, g->alike_max_ns,
			g->alike_max_ns, true };

		if (!g->alike || !is_silent(g->alike_seen_ns, g->alike_max_ns, now_ns))
			continue;
		if (g->median.count == 0)
			g->min_ns = g->alike_max_ns;
		count_many(p, g, &alike, g->alike_seen_ns - g->alike_max_ns);
		set_alike(&p->operations, g, 0);
	}
}

void page_expire_stuck(struct page *p, uint64_t now_ns)
{
	struct page_stuck_table *table = &p->operations.stuck;

	expire_alike(p, now_ns);
	for (uint32_t i = table->count; i-- > 0;) {
		struct page_stuck *s = &table->items[i];

		if (!is_silent(s->seen_ns, s->operation.dur_ns, now_ns))
			continue;
		count_finished(p, &p->operations.groups[s->group], &s->operation, true);
		page_stuck_remove(table, s);
	}
}

uint64_t page_oldest_stuck_ns(const struct page *p, uint64_t now_ns)
{
	const struct page_stuck_table *table = &p->operations.stuck;
	uint64_t oldest_ns = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct statement_query *q = &table->items[i].operation;

		if (now_ns > q->start_ns && now_ns - q->start_ns > oldest_ns)
			oldest_ns = now_ns - q->start_ns;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(p->operations.groups); i++) {
		const struct page_group *g = &p->operations.groups[i];
		uint64_t begun_ns = g->alike_seen_ns - g->alike_max_ns;

		if (g->alike && now_ns > begun_ns && now_ns - begun_ns > oldest_ns)
			oldest_ns = now_ns - begun_ns;
	}
	return oldest_ns;
}
