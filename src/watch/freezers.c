/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/freezers.h"

#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"
#include "watch/cgroup_path.h"
#include "watch/threads.h"

bool freezers_parse(const char *buf, size_t len)
{
	struct cursor text = { buf, buf + len }, line;

	while (cursor_line(&text, &line))
		if (cursor_take(&line, "1") || cursor_take(&line, "frozen 1"))
			return line.p == line.end;
	return false;
}

static void group_free(struct freezers_group *group)
{
	if (!group->used)
		return;
	for (unsigned int i = 0; i < FREEZERS_FILES; i++)
		close_fd(group->fds[i]);
	group->used = false;
}

void freezers_reset(struct freezers *f)
{
	for (unsigned int i = 0; i < FREEZERS_GROUPS_MAX; i++)
		group_free(&f->groups[i]);
	f->left_out = 0;
}

static bool group_open(struct freezers_group *group, int sysfs_fd, const struct cgroup_path *path)
{
	static const char *const v1[FREEZERS_FILES] = { "freezer.self_freezing",
		"freezer.parent_freezing" };

	group->used = true;
	for (unsigned int i = 0; i < FREEZERS_FILES; i++) {
		const char *name = path->v1 ? v1[i] : i == 0 ? "cgroup.events" : NULL;

		group->fds[i] = name ? cgroup_path_open(path, sysfs_fd, "freezer", name) : -1;
	}
	text_copy_end(group->path, sizeof(group->path), path->path.p,
		(size_t)(path->path.end - path->path.p));
	if (group->fds[0] >= 0)
		return true;
	group_free(group);
	return false;
}

/* False: it is the root, or has no such files. */
static bool add_group(struct freezers *f, int sysfs_fd, const struct cgroup_path *path)
{
	struct freezers_group *place = NULL, opened = { .path_hash = cgroup_path_hash(path) };

	if (!cgroup_path_is_reachable(path) || path->path.end - path->path.p < 2)
		return false;
	for (unsigned int i = 0; i < FREEZERS_GROUPS_MAX; i++) {
		struct freezers_group *group = &f->groups[i];

		if (group->used && group->path_hash == opened.path_hash)
			return true;
		if (!group->used && !place)
			place = group;
	}
	if (!group_open(&opened, sysfs_fd, path))
		return false;
	if (place) {
		*place = opened;
	} else {
		group_free(&opened);
		f->left_out++;
	}
	return true;
}

void freezers_learn(struct freezers *f, int sysfs_fd, struct processes *processes, int32_t pid,
	const char *buf, size_t len)
{
	/* That of version 2 where it is in the root of version 1, or that has no freezer. */
	static const char *const controllers[] = { "freezer", "" };
	struct watch_process *process = processes_find(processes, pid);
	struct cgroup_path path;

	if (process)
		process->freezer_hash = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(controllers); i++) {
		if (cgroup_path_parse(buf, len, controllers[i], sysfs_fd, &path) < 0 ||
			!add_group(f, sysfs_fd, &path))
			continue;
		if (process) {
			process->freezer_hash = cgroup_path_hash(&path);
			process->freezer_ns = process->cgroup_asked_ns;
		}
		return;
	}
}

/* False: the group has been removed. */
static bool group_update(struct freezers_group *group, uint64_t now_ns, char *buf, size_t size)
{
	bool is_frozen = false;

	for (unsigned int i = 0; i < FREEZERS_FILES && group->fds[i] >= 0; i++) {
		ssize_t n = file_read_fd(group->fds[i], buf, size);

		if (n <= 0)
			return false;
		is_frozen = is_frozen || freezers_parse(buf, (size_t)n);
	}
	if (!is_frozen) {
		group->since_ns = 0;
		group->running_ns = now_ns;
	} else if (group->since_ns == 0) {
		group->since_ns = now_ns;
	}
	return true;
}

static bool is_in(const struct watch_process *process, const struct freezers_group *group)
{
	return process->freezer_hash == group->path_hash;
}

/* Those that were in it before may have left it since. */
static const struct watch_process *find_in(const struct processes *processes,
	const struct freezers_group *group, uint64_t since_ns)
{
	for (uint32_t i = 0; i < processes->count; i++)
		if (is_in(&processes->list[i], group) && processes->list[i].freezer_ns >= since_ns)
			return &processes->list[i];
	return NULL;
}

/* One of them at a time, until one is known to be in it. */
static void ask_again(struct processes *processes, const struct freezers_group *group)
{
	if (find_in(processes, group, group->since_ns))
		return;
	for (uint32_t i = 0; i < processes->count; i++) {
		struct watch_process *process = &processes->list[i];

		if (!is_in(process, group) || process->cgroup_asked_ns >= group->since_ns)
			continue;
		process->cgroup_asked_ns = 0;
		return;
	}
}

static void mark(const struct freezers *f, struct processes *processes)
{
	for (uint32_t i = 0; i < processes->count; i++)
		processes->list[i].is_frozen = false;
	for (unsigned int k = 0; k < FREEZERS_GROUPS_MAX; k++)
		for (uint32_t i = 0; i < processes->count && f->groups[k].since_ns; i++)
			processes->list[i].is_frozen |=
				f->groups[k].used && is_in(&processes->list[i], &f->groups[k]);
}

void freezers_update(struct freezers *f, struct processes *processes, uint64_t now_ns, char *buf,
	size_t size)
{
	for (unsigned int i = 0; i < FREEZERS_GROUPS_MAX; i++) {
		struct freezers_group *group = &f->groups[i];

		if (!group->used)
			continue;
		if (!group_update(group, now_ns, buf, size))
			group_free(group);
		else if (group->since_ns)
			ask_again(processes, group);
	}
	mark(f, processes);
}

bool freezers_keep(const struct freezers *f, struct processes *processes, int32_t pid,
	uint64_t since_ns)
{
	const struct watch_process *process = NULL;

	for (unsigned int i = 0; i < FREEZERS_GROUPS_MAX; i++) {
		const struct freezers_group *group = &f->groups[i];

		if (!group->used || !group->since_ns)
			continue;
		if (!process)
			process = processes_find(processes, pid);
		if (process && process->freezer_hash == group->path_hash)
			return since_ns >= group->running_ns;
	}
	return false;
}

void freezers_fill(const struct freezers *f, const struct processes *processes, bool armed,
	uint64_t now_ns, struct record_stopped *ret_stopped)
{
	const struct freezers_group *oldest = NULL;
	const struct watch_process *frozen = NULL;

	for (unsigned int i = 0; i < FREEZERS_GROUPS_MAX; i++) {
		const struct freezers_group *group = &f->groups[i];
		const struct watch_process *process;

		if (!group->used || !group->since_ns ||
			now_ns - group->since_ns >= THREADS_STOPPED_NS ||
			(oldest && group->since_ns >= oldest->since_ns))
			continue;
		process = find_in(processes, group, group->since_ns);
		if (!process && armed)
			process = find_in(processes, group, 0);
		if (!process)
			continue;
		oldest = group;
		frozen = process;
	}
	if (!oldest)
		return;
	*ret_stopped = (struct record_stopped){ .present = true,
		.pid = frozen->pid,
		.stopped_ns = now_ns - oldest->since_ns };
	text_copy(ret_stopped->cgroup, sizeof(ret_stopped->cgroup), oldest->path);
	text_copy(ret_stopped->comm, sizeof(ret_stopped->comm), frozen->comm);
}
