/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/cpu_limits.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"
#include "util/text.h"
#include "watch/cgroup_path.h"

enum { QUOTA, STAT, PERIOD, USAGE };

/* An answer comes with the next sample, unless its reader is kept waiting. */
#define LATE_NS (10 * NSEC_PER_SEC)

static void group_free(struct cpu_limits_group *group)
{
	if (!group->used)
		return;
	for (unsigned int i = 0; i < CPU_LIMITS_FILES; i++)
		close_fd(group->fds[i]);
	group->used = false;
}

void cpu_limits_reset(struct cpu_limits *l)
{
	for (unsigned int i = 0; i < CPU_LIMITS_GROUPS_MAX; i++)
		group_free(&l->groups[i]);
	l->left_out = 0;
}

/*
 * `usage`: where version 1 counts what a group used. False: the controller is not enabled for it.
 */
static bool group_open(struct cpu_limits_group *group, int sysfs_fd, const struct cgroup_path *path,
	const struct cgroup_path *usage)
{
	group->fds[QUOTA] =
		cgroup_path_open(path, sysfs_fd, "cpu", path->v1 ? "cpu.cfs_quota_us" : "cpu.max");
	group->fds[STAT] = path->v1 ? cgroup_path_open(path, sysfs_fd, "cpu", "cpu.stat") : -1;
	group->fds[PERIOD] =
		path->v1 ? cgroup_path_open(path, sysfs_fd, "cpu", "cpu.cfs_period_us") : -1;
	group->fds[USAGE] =
		path->v1 ? cgroup_path_open(usage, sysfs_fd, "cpuacct", "cpuacct.usage") : -1;
	group->used = true;
	group->v1 = path->v1;
	group->view.id = cgroup_path_id(path, sysfs_fd);
	text_copy_end(group->view.path, sizeof(group->view.path), path->path.p,
		(size_t)(path->path.end - path->path.p));
	if (group->fds[QUOTA] >= 0 && (!path->v1 || group->fds[STAT] >= 0))
		return true;
	group_free(group);
	return false;
}

/* An empty text: the file is not there or cannot be read. */
static struct cursor read_text(int fd, char *buf, size_t size)
{
	ssize_t n = fd < 0 ? -1 : file_read_fd(fd, buf, size);

	return (struct cursor){ buf, buf + (n > 0 ? n : 0) };
}

/* In version 1 the quota is -1 without a limit, which is no number here. */
static double read_limit(const struct cpu_limits_group *group, struct cursor quota, char *buf,
	size_t size)
{
	uint64_t quota_us, period_us;
	struct cursor period;

	if (!group->v1)
		return cgroup_parse_cpu_max(quota);
	if (cursor_u64(&quota, &quota_us) < 0)
		return 0;
	period = read_text(group->fds[PERIOD], buf, size);
	if (cursor_u64(&period, &period_us) < 0 || period_us == 0)
		return 0;
	return (double)quota_us / (double)period_us;
}

static bool has_limit(const struct cpu_limits_group *group)
{
	char quota[64], period[64];

	return read_limit(group, read_text(group->fds[QUOTA], quota, sizeof(quota)), period,
		       sizeof(period)) > 0;
}

/* A group without a limit gives way to one that has. NULL: there is no room. */
static struct cpu_limits_group *find_place(struct cpu_limits *l,
	const struct cpu_limits_group *group)
{
	for (unsigned int i = 0; i < CPU_LIMITS_GROUPS_MAX; i++)
		if (!l->groups[i].used)
			return &l->groups[i];
	if (!has_limit(group))
		return NULL;
	for (unsigned int i = 0; i < CPU_LIMITS_GROUPS_MAX; i++)
		if (!has_limit(&l->groups[i]))
			return &l->groups[i];
	l->left_out++;
	return NULL;
}

/* NULL: there is no such group, or no room. */
static struct cpu_limits_group *get_group(struct cpu_limits *l, struct cgroup_stats *stats,
	int sysfs_fd, const struct cgroup_path *path, const struct cgroup_path *usage)
{
	static_assert(CPU_LIMITS_GROUPS_MAX <= 8 * sizeof(((struct watch_process *)0)->cpu_groups),
		"each group has a bit");
	uint64_t hash = cgroup_path_hash(path);
	struct cpu_limits_group *place, opened = { .path_hash = hash };

	for (unsigned int i = 0; i < CPU_LIMITS_GROUPS_MAX; i++)
		if (l->groups[i].used && l->groups[i].path_hash == hash)
			return &l->groups[i];
	if (!group_open(&opened, sysfs_fd, path, usage))
		return NULL;
	place = find_place(l, &opened);
	if (!place ||
		(!path->v1 &&
			cgroup_stats_set(stats, CGROUP_STATS_CPU, (unsigned int)(place - l->groups),
				path) < 0)) {
		group_free(&opened);
		return NULL;
	}
	group_free(place);
	opened.serial = ++l->serial;
	*place = opened;
	return place;
}

/* The limit of a group holds for all below it, in both versions. */
void cpu_limits_learn(struct cpu_limits *l, struct cgroup_stats *stats, int sysfs_fd,
	struct processes *processes, int32_t pid, const char *buf, size_t len)
{
	struct watch_process *process = processes_find(processes, pid);
	const struct cpu_limits_group *group;
	struct cgroup_path path, usage;
	bool is_counted;

	if (process)
		process->cpu_groups = 0;

	if (cgroup_path_parse(buf, len, "cpu", sysfs_fd, &path) < 0 ||
		!cgroup_path_is_reachable(&path) || path.path.end - path.path.p < 2)
		return;
	is_counted = cgroup_path_parse(buf, len, "cpuacct", sysfs_fd, &usage) == 0 && usage.v1;
	do {
		const uint32_t serial = l->serial;

		group = get_group(l, stats, sysfs_fd, &path, is_counted ? &usage : &path);
		/* In the place of another one. */
		for (uint32_t i = 0; group && l->serial != serial && i < processes->count; i++)
			processes->list[i].cpu_groups &= (uint16_t) ~(1u << (group - l->groups));
		if (group && process)
			process->cpu_groups |= (uint16_t)(1u << (group - l->groups));
	} while (cgroup_path_ascend(&path) && (!is_counted || cgroup_path_ascend(&usage)));
}

/* Of version 1. False: they cannot be read. */
static bool read_counts(const struct cpu_limits_group *group, char *buf, size_t size,
	struct cgroup_cpu_counts *ret_counts)
{
	struct cursor text = read_text(group->fds[STAT], buf, size);

	*ret_counts = (struct cgroup_cpu_counts){ 0 };
	if (text.p == text.end)
		return false;
	cgroup_parse_cpu_stat(text, ret_counts);
	if (group->fds[USAGE] < 0)
		return true;
	text = read_text(group->fds[USAGE], buf, size);
	return cursor_u64(&text, &ret_counts->used_ns) == 0;
}

/*
 * The kernel counts for each CPU how long threads that could run there were held back. Together
 * with what they ran that is all they wanted; a group that wanted less than one CPU is compared
 * with one.
 */
static void take_counts(struct cpu_limits_group *group, const struct cgroup_cpu_counts *now,
	uint64_t interval_ns)
{
	uint64_t used_ns = minus(now->used_ns, group->before.used_ns);
	uint64_t held_ns = minus(now->throttled_ns, group->before.throttled_ns);
	uint64_t wanted_ns = used_ns + held_ns;

	if (wanted_ns < interval_ns)
		wanted_ns = interval_ns;
	group->view.used_cpus = (double)used_ns / (double)interval_ns;
	group->view.held_back_ns = held_ns;
	group->view.held_back_pct = 100 * (double)held_ns / (double)wanted_ns;
}

static void update_counts(struct cpu_limits_group *group, const struct cgroup_cpu_counts *now,
	uint64_t now_ns)
{
	if (group->before_ns && now_ns > group->before_ns)
		take_counts(group, now, now_ns - group->before_ns);
	group->before = *now;
	group->before_ns = now_ns;
}

/* What nobody can read any more must not keep an incident open. */
static void forget_when_late(struct cpu_limits_group *group, uint64_t now_ns)
{
	if (!group->before_ns || now_ns < group->before_ns + LATE_NS)
		return;
	group->before_ns = 0;
	group->view.held_back_pct = 0;
}

/* False: the group has been removed. */
static bool group_update(struct cpu_limits *l, unsigned int slot, struct cgroup_stats *stats,
	uint64_t now_ns, char *buf, size_t size)
{
	struct cpu_limits_group *group = &l->groups[slot];
	const struct cgroup_stats_reading *answer;
	struct cursor quota = read_text(group->fds[QUOTA], buf, size);
	struct cgroup_cpu_counts counts;

	if (quota.p == quota.end)
		return false;
	group->view.limit_cpus = read_limit(group, quota, buf, size);
	group->limited = group->view.limit_cpus > 0;
	if (!group->limited) {
		group->before_ns = 0;
		return true;
	}
	group->view.held_back_pct = NAN;
	if (!group->v1) {
		/* Without an answer, what the next one tells is for both intervals. */
		answer = cgroup_stats_take(stats, CGROUP_STATS_CPU, slot);
		if (answer)
			update_counts(group, &answer->cpu, answer->ns);
		else
			forget_when_late(group, now_ns);
		cgroup_stats_ask(stats, CGROUP_STATS_CPU, slot);
	} else if (read_counts(group, buf, size, &counts)) {
		update_counts(group, &counts, now_ns);
	} else {
		group->before_ns = 0;
	}
	return true;
}

void cpu_limits_update(struct cpu_limits *l, struct cgroup_stats *stats, uint64_t now_ns, char *buf,
	size_t size)
{
	for (unsigned int i = 0; i < CPU_LIMITS_GROUPS_MAX; i++)
		if (l->groups[i].used && !group_update(l, i, stats, now_ns, buf, size))
			group_free(&l->groups[i]);
}

void cpu_limits_fill(const struct cpu_limits *l, struct record_limits *limits)
{
	uint32_t count = 0;

	for (unsigned int i = 0; i < CPU_LIMITS_GROUPS_MAX; i++) {
		const struct record_cpu_limited *view = &l->groups[i].view;
		uint32_t at = count;

		if (!l->groups[i].used || !l->groups[i].limited || isnan(view->held_back_pct))
			continue;
		while (at > 0 && view->held_back_pct > limits->cpu_limits[at - 1].held_back_pct)
			at--;
		if (at == RECORD_CPU_LIMITS_MAX)
			continue;
		if (count < RECORD_CPU_LIMITS_MAX)
			count++;
		memmove(&limits->cpu_limits[at + 1], &limits->cpu_limits[at],
			(count - at - 1) * sizeof(limits->cpu_limits[0]));
		limits->cpu_limits[at] = *view;
	}
	limits->cpu_limits_count = count;
}

const struct record_cpu_limited *cpu_limits_find(const struct cpu_limits *l,
	const struct watch_process *process)
{
	const struct record_cpu_limited *most = NULL;

	for (unsigned int i = 0; i < CPU_LIMITS_GROUPS_MAX; i++) {
		const struct cpu_limits_group *group = &l->groups[i];

		if ((process->cpu_groups & 1u << i) && group->used && group->limited &&
			!isnan(group->view.held_back_pct) &&
			(!most || group->view.held_back_pct > most->held_back_pct))
			most = &group->view;
	}
	return most;
}
