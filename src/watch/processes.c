/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"
#include "watch/loadavg.h"
#include "watch/thread_status.h"

#define SCAN_PERIOD_NS (10 * NSEC_PER_SEC)
/* A server that forks for each connection loses processes all the time: not each needs a scan. */
#define SCAN_AFTER_LOSS_NS (2 * NSEC_PER_SEC)
/*
 * A process seen between fork and exec still has its parent's name, so each process is looked at
 * again now and then, and in each scan of an incident. It takes 3 us, which is 0.005 % of a CPU
 * with 1000 processes, and 0.03 % in an incident.
 */
#define SEEN_PERIOD_NS (60 * NSEC_PER_SEC)
/*
 * Ids that are looked at one by one. Each takes 3 us, and each is looked at twice. When more are
 * new since the last calls, a scan of all processes is cheaper.
 */
#define NEW_IDS_MAX 64
/*
 * A call looks at so many processes even when its time is over: it may have been spent waiting for
 * a CPU, and a scan that takes one process at a time does not end before the freeze does.
 */
#define LOOKS_MIN 32
/* Processes of the list that one call of processes_check() reads again: all of them in 32 s. */
#define CHECKS 8
#define SEEN_MAX (PROCESSES_SEEN_SLOTS / 4 * 3)
#define CGROUP_SIZE 8192

#define UNIT_PREFIX "unit:"

static uint32_t pid_set_slot(const struct pid_set *set, int32_t pid)
{
	/* Pids in use at the same time are mostly consecutive, so the pid itself is a good hash. */
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
	p->scanning = false;
	p->scanned_once = false;
	memset(p->newest_id, 0, sizeof(p->newest_id));
	memset(p->scan_newest_id, 0, sizeof(p->scan_newest_id));
	pid_set_clear(&p->sets[p->seen]);
}

void processes_remove(struct processes *p, uint32_t index)
{
	p->count--;
	memmove(&p->list[index], &p->list[index + 1], (p->count - index) * sizeof(p->list[0]));
	p->changed = true;
}

/*
 * A unit matches a whole component of the path, or its part before a dot or an @: "mariadb" and
 * "mariadb.service" both match /system.slice/mariadb.service, "db" does not.
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

static bool pattern_matches(const char *pattern, const struct watch_process *process,
	const char *cgroup)
{
	uint64_t pid;

	if (strncmp(pattern, UNIT_PREFIX, strlen(UNIT_PREFIX)) == 0)
		return cgroup_has_unit(cgroup, pattern + strlen(UNIT_PREFIX));
	if (parse_unsigned(pattern, &pid) == 0)
		return pid == (uint64_t)process->pid;
	/* The kernel keeps 15 bytes of a name. */
	return strncmp(pattern, process->comm, WATCH_COMM_SIZE - 1) == 0;
}

/* Reading /proc/PID/cgroup takes cgroup_mutex, which a stalled host may hold for long. */
static bool cannot_ask_units(const struct processes *p, bool armed)
{
	return armed && has_unit_patterns(p);
}

static bool process_matches(const struct processes *p, const struct watch_process *process,
	bool armed)
{
	char cgroup[CGROUP_SIZE] = "";
	char path[32];

	if (has_unit_patterns(p) && !armed) {
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

/* Whether it is a process that has not ended. /proc also shows the threads of one by their ids. */
static bool is_process(const struct processes *p, int32_t id)
{
	struct watch_thread_status status;

	return thread_status_read(p->procfs_fd, id, &status) == 0 && status.process == id &&
		status.state != 'Z' && status.state != 'X';
}

static int process_read_name(const struct processes *p, int32_t pid,
	struct watch_process *ret_process)
{
	char path[32], buf[2 * WATCH_COMM_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/comm", pid);
	n = file_read_at(p->procfs_fd, path, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	if (n > 0 && buf[n - 1] == '\n')
		buf[n - 1] = '\0';
	*ret_process = (struct watch_process){ .pid = pid };
	text_copy(ret_process->comm, sizeof(ret_process->comm), buf);
	return 0;
}

static struct watch_process *process_find(struct processes *p, int32_t pid)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].pid == pid)
			return &p->list[i];
	return NULL;
}

static void process_add(struct processes *p, const struct watch_process *process)
{
	if (p->count == WATCH_PROCESSES_MAX)
		p->left_out_now++;
	else
		p->list[p->count++] = *process;
}

/*
 * Whether the process began after the scan before this one did. It may be about to call exec, so
 * its name is not final, and another scan looks at it soon. Ids wrap.
 */
static bool process_is_young(const struct processes *p, int32_t pid)
{
	int32_t newest = p->newest_id[0], older = p->scan_newest_id[1];

	if (older == 0)
		return false;
	/* Without a wrap, ids far above the newest one are those of old processes. */
	return newest >= older ? pid > older && pid <= newest + NEW_IDS_MAX
			       : pid > older || pid <= newest;
}

static void process_look_at(struct processes *p, int32_t pid, bool armed)
{
	struct watch_process process, *known = process_find(p, pid);
	struct pid_set *filled = &p->sets[!p->seen];

	if (!known && pid_set_has(&p->sets[p->seen], pid)) {
		pid_set_add(filled, pid);
		return;
	}
	if (known || cannot_ask_units(p, armed))
		return;
	if (process_read_name(p, pid, &process) < 0)
		return;
	if (!process_matches(p, &process, armed)) {
		if (process_is_young(p, pid))
			p->changed = true;
		else
			pid_set_add(filled, pid);
	} else if (is_process(p, pid)) {
		process_add(p, &process);
	}
}

/*
 * A server that forks for each connection has processes that are a second old when the host
 * freezes. Each new id is looked at in two calls, since a process has its parent's name until it
 * calls exec.
 */
static void look_at_new(struct processes *p, bool armed)
{
	int32_t first = p->newest_id[1] + 1, newest;
	struct loadavg loadavg;

	if (loadavg_read(p->procfs_fd, "loadavg", &loadavg) < 0)
		return;
	newest = loadavg.newest_id;
	if (p->newest_id[1] == 0)
		p->newest_id[0] = newest;
	else if (newest < p->newest_id[1] || newest - first >= NEW_IDS_MAX)
		p->changed = true;
	else if (!cannot_ask_units(p, armed))
		for (int32_t id = first; id <= newest; id++) {
			struct watch_process process;

			if (!process_find(p, id) && process_read_name(p, id, &process) == 0 &&
				process_matches(p, &process, armed) && is_process(p, id))
				process_add(p, &process);
		}
	p->newest_id[1] = p->newest_id[0];
	p->newest_id[0] = newest;
}

bool processes_rename(struct processes *p, uint32_t index, const char *comm, bool armed)
{
	struct watch_process process = { .pid = p->list[index].pid };

	text_copy(process.comm, sizeof(process.comm), comm);
	if (process_matches(p, &process, armed) && is_process(p, process.pid)) {
		p->list[index] = process;
		return true;
	}
	/* It keeps the old name, so that it is judged again when units can be asked. */
	return cannot_ask_units(p, armed);
}

void processes_check(struct processes *p, bool armed)
{
	for (unsigned int i = 0; i < CHECKS && p->count > 0; i++) {
		uint32_t at = p->checked++ % p->count;
		struct watch_process now;
		int r = process_read_name(p, p->list[at].pid, &now);

		/* Other errors, as without memory, say nothing about the process. */
		if (r == -ENOENT || r == -ESRCH ||
			(r == 0 && strcmp(now.comm, p->list[at].comm) != 0 &&
				!processes_rename(p, at, now.comm, armed)))
			processes_remove(p, at);
	}
}

static bool scan_is_due(const struct processes *p, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - p->scan_started_ns;

	return !p->scanned_once || since_ns >= SCAN_PERIOD_NS ||
		(p->changed && since_ns >= SCAN_AFTER_LOSS_NS);
}

/* An incident is what all must be known for, also those that execute another program in it. */
static bool looks_at_all(const struct processes *p, uint64_t now_ns)
{
	return now_ns - p->seen_since_ns >= SEEN_PERIOD_NS || (p->armed && !has_unit_patterns(p));
}

static bool scan_begin(struct processes *p, uint64_t now_ns)
{
	if (lseek(p->dir_fd, 0, SEEK_SET) < 0)
		return false;
	dents_reset(&p->dents);
	if (looks_at_all(p, now_ns)) {
		pid_set_clear(&p->sets[p->seen]);
		p->seen_since_ns = now_ns;
	}
	pid_set_clear(&p->sets[!p->seen]);
	p->scan_started_ns = now_ns;
	p->scan_newest_id[1] = p->scan_newest_id[0];
	p->scan_newest_id[0] = p->newest_id[0];
	p->changed = false;
	p->left_out_now = 0;
	p->scanning = true;
	return true;
}

static void scan_end(struct processes *p)
{
	p->left_out = p->left_out_now;
	p->seen = !p->seen;
	p->scanning = false;
	p->scanned_once = true;
}

void processes_scan(struct processes *p, const struct watch_clock *clock, uint64_t deadline_ns,
	bool armed)
{
	uint64_t now_ns = watch_clock_ns(clock);
	unsigned int looks = 0;
	const char *name;
	int32_t pid;

	if (p->patterns.count == 0)
		return;
	if (armed && !p->armed)
		p->scanning = p->scanned_once = false;
	p->armed = armed;
	look_at_new(p, armed);
	if (!p->scanning && (!scan_is_due(p, now_ns) || !scan_begin(p, now_ns)))
		return;
	do {
		if (dents_next_number(&p->dents, p->dir_fd, &pid, &name) <= 0) {
			scan_end(p);
			return;
		}
		process_look_at(p, pid, armed);
	} while (++looks < LOOKS_MIN || watch_clock_ns(clock) < deadline_ns);
}
