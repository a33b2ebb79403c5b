/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/text.h"

#define WALK_PERIOD_NS (10 * NSEC_PER_SEC)
/* A server that forks for each connection loses processes all the time: not a walk for each. */
#define WALK_AFTER_LOSS_NS (2 * NSEC_PER_SEC)
/*
 * A process seen between fork and exec bears its parent's name, so what was looked at is looked at
 * again now and then: 3 us each, 0.005 % of a CPU with 1000 processes.
 */
#define SEEN_PERIOD_NS (60 * NSEC_PER_SEC)
#define SEEN_MAX (PROCESSES_SEEN_SLOTS / 4 * 3)
#define STAT_SIZE 1024
#define CGROUP_SIZE 8192

#define UNIT_PREFIX "unit:"

static uint32_t pid_set_slot(const struct pid_set *set, int32_t pid)
{
	/* Pids that live at the same time are mostly neighbours, so they are their own hash. */
	uint32_t i = (uint32_t)pid % PROCESSES_SEEN_SLOTS;

	while (set->slots[i] != 0 && set->slots[i] != pid)
		i = (i + 1) % PROCESSES_SEEN_SLOTS;
	return i;
}

static bool pid_set_has(const struct pid_set *set, int32_t pid)
{
	return set->slots[pid_set_slot(set, pid)] == pid;
}

static void pid_set_add(struct pid_set *set, int32_t pid)
{
	uint32_t i = pid_set_slot(set, pid);

	if (set->slots[i] == pid || set->count >= SEEN_MAX)
		return;
	set->slots[i] = pid;
	set->count++;
}

static void pid_set_clear(struct pid_set *set)
{
	memset(set, 0, sizeof(*set));
}

static void copy_patterns(struct processes *p, const struct config_list *patterns)
{
	p->patterns = patterns ? *patterns : (struct config_list){ 0 };
}

int processes_init(struct processes *p, int procfs_fd, const struct config_list *patterns)
{
	memset(p, 0, sizeof(*p));
	p->procfs_fd = procfs_fd;
	p->dir_fd = openat(procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir_fd < 0)
		return -errno;
	copy_patterns(p, patterns);
	return 0;
}

void processes_done(struct processes *p)
{
	p->dir_fd = close_fd(p->dir_fd);
}

void processes_set_patterns(struct processes *p, const struct config_list *patterns)
{
	copy_patterns(p, patterns);
	p->count = 0;
	p->left_out = 0;
	p->walking = false;
	p->walked_once = false;
	pid_set_clear(&p->sets[p->seen]);
}

void processes_remove(struct processes *p, uint32_t index)
{
	p->count--;
	memmove(&p->list[index], &p->list[index + 1], (p->count - index) * sizeof(p->list[0]));
	p->vanished = true;
}

/*
 * A unit is named by a component of the path, whole or up to a dot or an @: "mariadb" and
 * "mariadb.service" are both found in /system.slice/mariadb.service, "db" is not.
 */
static bool cgroup_has_unit(const char *cgroup, const char *unit)
{
	size_t len = strlen(unit);

	for (const char *p = cgroup; len > 0 && (p = strstr(p, unit)) != NULL; p++)
		if (p > cgroup && p[-1] == '/' && strchr("/.@\n", p[len]))
			return true;
	return false;
}

static bool has_unit_patterns(const struct processes *p)
{
	for (unsigned int i = 0; i < p->patterns.count; i++)
		if (strncmp(p->patterns.items[i], UNIT_PREFIX, strlen(UNIT_PREFIX)) == 0)
			return true;
	return false;
}

static bool pattern_matches(
	const char *pattern, const struct watch_process *process, const char *cgroup)
{
	uint64_t pid;

	if (strncmp(pattern, UNIT_PREFIX, strlen(UNIT_PREFIX)) == 0)
		return cgroup_has_unit(cgroup, pattern + strlen(UNIT_PREFIX));
	if (parse_unsigned(pattern, &pid) == 0)
		return pid == (uint64_t)process->pid;
	/* The kernel keeps 15 bytes of a name. */
	return strncmp(pattern, process->comm, WATCH_COMM_SIZE - 1) == 0;
}

static bool process_matches(const struct processes *p, const struct watch_process *process)
{
	char cgroup[CGROUP_SIZE] = "";
	char path[32];

	if (has_unit_patterns(p)) {
		ssize_t n;

		snprintf(path, sizeof(path), "%d/cgroup", process->pid);
		n = file_read_at(p->procfs_fd, path, cgroup, sizeof(cgroup));
		if (n < 0 && n != -ENOBUFS)
			cgroup[0] = '\0';
	}
	for (unsigned int i = 0; i < p->patterns.count; i++)
		if (pattern_matches(p->patterns.items[i], process, cgroup))
			return true;
	return false;
}

static int process_read(const struct processes *p, int32_t pid, struct watch_process *ret_process)
{
	struct watch_thread_stat stat;
	char path[32], buf[STAT_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/stat", pid);
	n = file_read_at(p->procfs_fd, path, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	if (watch_parse_thread_stat(buf, (size_t)n, &stat) < 0 || stat.id != pid)
		return -EINVAL;
	if (stat.state == 'Z' || stat.state == 'X')
		return -ESRCH;
	ret_process->pid = pid;
	ret_process->cgroup_known = false;
	ret_process->start_ticks = stat.start_ticks;
	memcpy(ret_process->comm, stat.comm, sizeof(ret_process->comm));
	return 0;
}

static struct watch_process *process_find(struct processes *p, int32_t pid)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].pid == pid)
			return &p->list[i];
	return NULL;
}

static void process_look_at(struct processes *p, int32_t pid, bool armed)
{
	struct watch_process process, *known = process_find(p, pid);
	struct pid_set *filled = &p->sets[!p->seen];

	if (!known && pid_set_has(&p->sets[p->seen], pid)) {
		pid_set_add(filled, pid);
		return;
	}
	/* Reading a cgroup takes cgroup_mutex, which a stalled host may hold for long. */
	if (known || (armed && has_unit_patterns(p)))
		return;
	if (process_read(p, pid, &process) < 0)
		return;
	if (!process_matches(p, &process)) {
		pid_set_add(filled, pid);
	} else if (p->count == WATCH_PROCESSES_MAX) {
		p->left_out_now++;
	} else {
		p->list[p->count++] = process;
	}
}

static bool walk_is_due(const struct processes *p, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - p->walk_started_ns;

	return !p->walked_once || since_ns >= WALK_PERIOD_NS ||
	       (p->vanished && since_ns >= WALK_AFTER_LOSS_NS);
}

static bool walk_begin(struct processes *p, uint64_t now_ns)
{
	if (lseek(p->dir_fd, 0, SEEK_SET) < 0)
		return false;
	dents_reset(&p->dents);
	if (now_ns - p->seen_since_ns >= SEEN_PERIOD_NS) {
		pid_set_clear(&p->sets[p->seen]);
		p->seen_since_ns = now_ns;
	}
	pid_set_clear(&p->sets[!p->seen]);
	p->walk_started_ns = now_ns;
	p->vanished = false;
	p->left_out_now = 0;
	p->walking = true;
	return true;
}

static void walk_end(struct processes *p)
{
	p->left_out = p->left_out_now;
	p->seen = !p->seen;
	p->walking = false;
	p->walked_once = true;
}

void processes_walk(
	struct processes *p, const struct watch_clock *clock, uint64_t deadline_ns, bool armed)
{
	uint64_t now_ns = watch_clock_ns(clock);
	const char *name;
	int32_t pid;

	if (p->patterns.count == 0)
		return;
	if (!p->walking && (!walk_is_due(p, now_ns) || !walk_begin(p, now_ns)))
		return;
	do {
		if (dents_next_number(&p->dents, p->dir_fd, &pid, &name) <= 0) {
			walk_end(p);
			return;
		}
		process_look_at(p, pid, armed);
	} while (watch_clock_ns(clock) < deadline_ns);
}
