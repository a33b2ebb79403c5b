/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"
#include "util/text.h"
#include "watch/cgroup_path.h"

/* Without a limit, v1 has the largest possible number of pages here, in bytes. */
#define V1_UNLIMITED (1ULL << 62)
#define GROWTH_MIN_NS (50 * NSEC_PER_SEC)
/* One process each time, so that it costs next to nothing. */
#define ASK_AGAIN_NS (5 * NSEC_PER_SEC)
#define NSEC_PER_MINUTE_REAL 60e9

_Static_assert(WATCH_CGROUPS_MAX == CGROUP_STATS_GROUPS_MAX, "a slot is one in both");
_Static_assert(WATCH_CGROUPS_MAX == FREEZERS_GROUPS_MAX, "what is said of a full table names one");

void cgroups_parse_events(const char *buf, size_t len, struct cgroups_counts *counts)
{
	struct cursor c = { buf, buf + len }, line;

	counts->limit_hits = counts->oom_kills = 0;
	while (cursor_line(&c, &line)) {
		const char *word;
		size_t word_len;
		uint64_t value;

		if (cursor_u64(&line, &value) == 0) {
			counts->limit_hits = value;
			return;
		}
		if (cursor_word(&line, &word, &word_len) < 0 || cursor_u64(&line, &value) < 0)
			continue;
		if (word_is(word, word_len, "high") || word_is(word, word_len, "max"))
			counts->limit_hits += value;
		else if (word_is(word, word_len, "oom_kill"))
			counts->oom_kills = value;
	}
}

static void slot_free(struct cgroups_slot *slot)
{
	if (!slot->used)
		return;
	close_fd(slot->limit_fd);
	close_fd(slot->high_fd);
	close_fd(slot->current_fd);
	close_fd(slot->events_fd);
	close_fd(slot->kills_fd);
	slot->used = false;
}

int cgroups_init(struct cgroups *c, int procfs_fd, int sysfs_fd)
{
	int r;

	memset(c, 0, sizeof(*c));
	c->sysfs_fd = sysfs_fd;
	r = cgroup_stats_init(&c->stats, sysfs_fd);
	return r < 0 ? r : cgroup_reader_init(&c->reader, procfs_fd);
}

void cgroups_reset(struct cgroups *c)
{
	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++)
		slot_free(&c->slots[i]);
	io_limits_reset(&c->io);
	cpu_limits_reset(&c->cpu);
	freezers_reset(&c->freezers);
	cgroup_reader_forget(&c->reader);
	c->left_out = 0;
}

void cgroups_done(struct cgroups *c)
{
	cgroups_reset(c);
	cgroup_stats_done(&c->stats);
	cgroup_reader_done(&c->reader);
}

static int open_file(const struct cgroups *c, const struct cgroup_path *path, const char *name)
{
	return cgroup_path_open(path, c->sysfs_fd, "memory", name);
}

static bool open_slot(const struct cgroups *c, const struct cgroup_path *path,
	struct cgroups_slot *ret_slot)
{
	bool v1 = path->v1;

	*ret_slot = (struct cgroups_slot){
		.used = true,
		.v1 = v1,
		.limit_fd = open_file(c, path, v1 ? "memory.limit_in_bytes" : "memory.max"),
		.high_fd = v1 ? -1 : open_file(c, path, "memory.high"),
		.events_fd = open_file(c, path, v1 ? "memory.failcnt" : "memory.events.local"),
		/* With those of the groups in it, which are killed in its stead. */
		.kills_fd = open_file(c, path, v1 ? "memory.oom_control" : "memory.events"),
		.current_fd = open_file(c, path, v1 ? "memory.usage_in_bytes" : "memory.current"),
	};
	ret_slot->view.id = cgroup_path_id(path, c->sysfs_fd);
	text_copy_end(ret_slot->view.path, sizeof(ret_slot->view.path), path->path.p,
		(size_t)(path->path.end - path->path.p));
	if (ret_slot->limit_fd >= 0 && ret_slot->current_fd >= 0)
		return true;
	/* The memory controller is not enabled for this cgroup. */
	slot_free(ret_slot);
	return false;
}

/* -ERANGE: the file has "max" or no number at all. */
static int read_number(int fd, char *buf, size_t size, uint64_t *ret_value)
{
	ssize_t n = file_read_fd(fd, buf, size);
	struct cursor c = { buf, buf + (n > 0 ? n : 0) };

	if (n < 0)
		return (int)n;
	return cursor_u64(&c, ret_value) < 0 ? -ERANGE : 0;
}

/* The lower of its two limits; UINT64_MAX: it has none. */
static int read_limit(const struct cgroups_slot *slot, char *buf, size_t size, uint64_t *ret_limit)
{
	uint64_t limit = UINT64_MAX, high = UINT64_MAX;
	int r = read_number(slot->limit_fd, buf, size, &limit);

	if (r < 0 && r != -ERANGE)
		return r;
	if (slot->high_fd >= 0 && read_number(slot->high_fd, buf, size, &high) < 0)
		high = UINT64_MAX;
	if (slot->v1 && limit >= V1_UNLIMITED)
		limit = UINT64_MAX;
	*ret_limit = high > 0 && high < limit ? high : limit;
	return 0;
}

static bool has_limit(const struct cgroups_slot *slot)
{
	uint64_t limit;
	char buf[64];

	return read_limit(slot, buf, sizeof(buf), &limit) == 0 && limit > 0 && limit < UINT64_MAX;
}

/* A group without a limit gives way to one that has. NULL: there is no room. */
static struct cgroups_slot *find_place(struct cgroups *c, const struct cgroups_slot *slot)
{
	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++)
		if (!c->slots[i].used)
			return &c->slots[i];
	if (!has_limit(slot))
		return NULL;
	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++)
		if (!has_limit(&c->slots[i]))
			return &c->slots[i];
	c->left_out++;
	return NULL;
}

static void add_cgroup(struct cgroups *c, const struct cgroup_path *path)
{
	uint64_t hash = cgroup_path_hash(path);
	struct cgroups_slot *place, slot;

	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++)
		if (c->slots[i].used && c->slots[i].path_hash == hash)
			return;
	if (!open_slot(c, path, &slot))
		return;
	place = find_place(c, &slot);
	if (!place ||
		cgroup_stats_set(&c->stats, CGROUP_STATS_MEMORY, (unsigned int)(place - c->slots),
			path) < 0) {
		slot_free(&slot);
		return;
	}
	slot_free(place);
	slot.serial = ++c->serial;
	slot.path_hash = hash;
	*place = slot;
}

/* The limit of an ancestor, like a pod or a slice, gets a process killed just as well. */
static void add_with_ancestors(struct cgroups *c, const char *buf, size_t len)
{
	struct cgroup_path path;

	if (cgroup_path_parse(buf, len, "memory", c->sysfs_fd, &path) < 0 ||
		!cgroup_path_is_reachable(&path) || path.path.end - path.path.p < 2)
		return;
	do
		add_cgroup(c, &path);
	while (cgroup_path_ascend(&path));
}

static void take_answer(struct cgroups *c, struct processes *processes,
	const struct cgroup_answer *a)
{
	if (a->len == 0)
		return;
	add_with_ancestors(c, a->text, a->len);
	io_limits_learn(&c->io, &c->stats, c->sysfs_fd, a->text, a->len);
	cpu_limits_learn(&c->cpu, &c->stats, c->sysfs_fd, processes, a->pid, a->text, a->len);
	freezers_learn(&c->freezers, c->sysfs_fd, processes, a->pid, a->text, a->len);
}

static void ask_again(struct processes *processes, int32_t pid)
{
	for (uint32_t i = 0; i < processes->count; i++)
		if (processes->list[i].pid == pid)
			processes->list[i].cgroup_asked_ns = 0;
}

/* The process that the thread hangs in is not asked about again. */
static void take_answers(struct cgroups *c, struct processes *processes)
{
	unsigned int done;
	const struct cgroup_reading *reading = cgroup_reader_take(&c->reader, &done);

	for (unsigned int i = 0; reading && i < reading->count; i++) {
		const struct cgroup_answer *a = &reading->answers[i];

		if (i < done)
			take_answer(c, processes, a);
		else if (i > done)
			ask_again(processes, a->pid);
	}
}

/* Those that were never asked about. */
static unsigned int find_new(struct processes *processes, uint64_t now_ns,
	int32_t ret_pids[static CGROUP_READER_MAX])
{
	unsigned int count = 0;

	for (uint32_t i = 0; i < processes->count && count < CGROUP_READER_MAX; i++) {
		struct watch_process *p = &processes->list[i];

		if (p->cgroup_asked_ns)
			continue;
		p->cgroup_asked_ns = now_ns;
		ret_pids[count++] = p->pid;
	}
	return count;
}

/*
 * The one that was asked about first: it may have been moved, and a controller may be enabled only
 * when somebody sets a limit, as systemd does. Most have the group of others.
 */
static unsigned int find_oldest(struct cgroups *c, struct processes *processes, uint64_t now_ns,
	int32_t *ret_pid)
{
	struct watch_process *oldest = NULL;

	if (now_ns - c->asked_again_ns < ASK_AGAIN_NS)
		return 0;
	c->asked_again_ns = now_ns;
	for (uint32_t i = 0; i < processes->count; i++)
		if (!oldest || processes->list[i].cgroup_asked_ns < oldest->cgroup_asked_ns)
			oldest = &processes->list[i];
	if (!oldest)
		return 0;
	oldest->cgroup_asked_ns = now_ns;
	*ret_pid = oldest->pid;
	return 1;
}

void cgroups_learn(struct cgroups *c, struct processes *processes, uint64_t now_ns)
{
	int32_t pids[CGROUP_READER_MAX];
	unsigned int count;

	take_answers(c, processes);
	if (cgroup_reader_is_busy(&c->reader))
		return;
	count = find_new(processes, now_ns, pids);
	if (count == 0)
		count = find_oldest(c, processes, now_ns, pids);
	if (count > 0)
		cgroup_reader_ask(&c->reader, pids, count);
}

bool cgroups_are_learning(const struct cgroups *c)
{
	return cgroup_reader_is_busy(&c->reader);
}

static void take_growth(struct cgroups_slot *slot, uint64_t held_bytes, uint64_t now_ns)
{
	const struct cgroups_past *oldest, *newest;
	uint64_t taken = slot->past_taken;

	newest = taken ? &slot->past[(taken - 1) % CGROUPS_PAST_MAX] : NULL;
	if (!newest || now_ns - newest->ns >= CGROUPS_PAST_STEP_NS) {
		slot->past[taken % CGROUPS_PAST_MAX] = (struct cgroups_past){ now_ns, held_bytes };
		taken = ++slot->past_taken;
	}
	oldest = &slot->past[taken > CGROUPS_PAST_MAX ? taken % CGROUPS_PAST_MAX : 0];
	slot->view.growth_pct_per_min = NAN;
	if (now_ns - oldest->ns < GROWTH_MIN_NS)
		return;
	slot->view.growth_pct_per_min = 100 * ((double)held_bytes - (double)oldest->held_bytes) /
		(double)slot->view.limit_bytes /
		((double)(now_ns - oldest->ns) / NSEC_PER_MINUTE_REAL);
}

/* What has happened since the last reading. */
static void take_counts(struct cgroups_slot *slot, const struct cgroups_counts *now)
{
	const struct cgroups_counts *before = slot->has_before ? &slot->before : now;
	struct refaults since = refaults_since(&now->refaults, &before->refaults);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct record_cgroup *view = &slot->view;

	view->reread_bytes = since.file * page;
	view->active_bytes = (since.file_active + since.anon_active) * page;
	view->swapped_in_bytes = since.anon * page;
	view->major_faults = since.major_faults;
	view->limit_hits = minus(now->limit_hits, before->limit_hits);
	slot->before = *now;
	slot->has_before = true;
}

/* They are read at once, so that a rule knows of a kill when it happens. */
static void read_events(const struct cgroups_slot *slot, char *buf, size_t size,
	struct cgroups_counts *ret_counts)
{
	struct cgroups_counts killed = { 0 };
	ssize_t n;

	*ret_counts = (struct cgroups_counts){ 0 };
	n = slot->events_fd < 0 ? -ENOENT : file_read_fd(slot->events_fd, buf, size);
	if (n > 0)
		cgroups_parse_events(buf, (size_t)n, ret_counts);
	n = slot->kills_fd < 0 ? -ENOENT : file_read_fd(slot->kills_fd, buf, size);
	if (n > 0) {
		cgroups_parse_events(buf, (size_t)n, &killed);
		ret_counts->oom_kills = killed.oom_kills;
	}
}

/* The answer is compared with what the other files had when it was asked for. */
static void take_answer_of(struct cgroups_slot *slot, const struct cgroup_stats_reading *answer,
	const struct cgroups_counts *events)
{
	const struct cgroup_stats_memory *memory = &answer->memory;
	struct record_cgroup *view = &slot->view;
	struct cgroups_counts now = { .refaults = memory->refaults,
		.limit_hits = slot->asked.limit_hits,
		.oom_kills = events->oom_kills };

	view->current_bytes = slot->asked.current_bytes;
	/* The files are read one after the other, so reclaimable may be larger than current. */
	view->held_bytes = view->current_bytes > memory->reclaimable_bytes
		? view->current_bytes - memory->reclaimable_bytes
		: 0;
	view->used_pct = 100 * (double)view->held_bytes / (double)view->limit_bytes;
	take_growth(slot, view->held_bytes, answer->ns);
	take_counts(slot, &now);
}

static int slot_update(struct cgroups *c, unsigned int i, char *buf, size_t size)
{
	struct cgroups_slot *slot = &c->slots[i];
	struct record_cgroup *view = &slot->view;
	const struct cgroup_stats_reading *answer;
	struct cgroups_counts events;
	uint64_t limit, current;
	int r = read_limit(slot, buf, size, &limit);

	slot->limited = r == 0 && limit > 0 && limit < UINT64_MAX;
	if (!slot->limited) {
		slot->has_before = slot->has_kills = false;
		return r;
	}
	r = read_number(slot->current_fd, buf, size, &current);
	if (r < 0)
		return r;
	read_events(slot, buf, size, &events);
	view->limit_bytes = limit;
	view->used_pct = view->growth_pct_per_min = NAN;
	view->oom_kills = slot->has_kills ? minus(events.oom_kills, slot->before.oom_kills) : 0;
	slot->has_kills = true;
	slot->before.oom_kills = events.oom_kills;
	answer = cgroup_stats_take(&c->stats, CGROUP_STATS_MEMORY, i);
	if (answer)
		take_answer_of(slot, answer, &events);
	if (cgroup_stats_ask(&c->stats, CGROUP_STATS_MEMORY, i))
		slot->asked = (struct cgroups_asked){ current, events.limit_hits };
	return 0;
}

void cgroups_update(struct cgroups *c, const struct disks *disks, const struct watch_clock *clock,
	bool armed, char *buf, size_t size)
{
	const uint64_t now_ns = watch_clock_ns(clock);

	cgroup_stats_begin(&c->stats, clock, armed);
	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++)
		/* -ENODEV: the cgroup has been removed. */
		if (c->slots[i].used && slot_update(c, i, buf, size) < 0)
			slot_free(&c->slots[i]);
	io_limits_update(&c->io, &c->stats, disks, now_ns, buf, size);
	cpu_limits_update(&c->cpu, &c->stats, now_ns, buf, size);
	cgroup_stats_end(&c->stats);
}

/* What a group reads again while it is not at its limit is due to one above it, or to the host. */
static uint64_t missed_bytes(const struct record_cgroup *view)
{
	return view->limit_hits > 0 ? view->reread_bytes + view->swapped_in_bytes : 0;
}

static bool is_shorter(const struct record_cgroup *a, const struct record_cgroup *b)
{
	uint64_t missed_a = missed_bytes(a), missed_b = missed_bytes(b);

	return missed_a == missed_b ? a->used_pct > b->used_pct : missed_a > missed_b;
}

void cgroups_fill_limits(const struct cgroups *c, const struct disks *disks,
	struct record_limits *limits)
{
	uint32_t count = 0;

	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++) {
		const struct record_cgroup *view = &c->slots[i].view;
		uint32_t at = count;

		if (!c->slots[i].used || !c->slots[i].limited || isnan(view->used_pct))
			continue;
		while (at > 0 && is_shorter(view, &limits->cgroups[at - 1]))
			at--;
		if (at == RECORD_CGROUPS_MAX)
			continue;
		if (count < RECORD_CGROUPS_MAX)
			count++;
		memmove(&limits->cgroups[at + 1], &limits->cgroups[at],
			(count - at - 1) * sizeof(limits->cgroups[0]));
		limits->cgroups[at] = *view;
	}
	limits->cgroups_count = count;
	io_limits_fill(&c->io, disks, limits);
	cpu_limits_fill(&c->cpu, limits);
}
