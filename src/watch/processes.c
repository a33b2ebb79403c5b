/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/cleanup.h"
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
 * New processes that one call looks at. Each takes 3 us, and is looked at twice. When more have
 * come a scan of all finds them, which on a busy host may take ten seconds.
 */
#define NEW_MAX 256
/* So many ids may be given away while a scan runs. */
#define NEWER_IDS_MAX 256
/* The kernel gives away those below only once (RESERVED_PIDS). */
#define RESERVED_IDS 300
/*
 * A call looks at so many processes even when its time is over: it may have been spent waiting for
 * a CPU, and a scan that takes one process at a time does not end before the freeze does.
 */
#define LOOKS_MIN 32
/*
 * Processes of the list that one call of processes_check() reads again: all of them in 32 s. 64
 * processes a second, of a full list, take 0.02 % of a CPU.
 */
#define CHECKS_MIN 8
#define CHECK_CALLS 32
/* For what a call learns of the units of processes, of which hundreds may be new. */
#define UNITS_BUDGET_NS (5 * NSEC_PER_MSEC)

static void copy_patterns(struct processes *p, const struct config_list *patterns)
{
	p->patterns = patterns ? *patterns : (struct config_list){ 0 };
	p->has_units = unit_reader_set_patterns(&p->units, &p->patterns);
}

static int open_again(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int processes_init(struct processes *p, int procfs_fd, const struct config_list *patterns)
{
	struct statfs fs;
	int r;

	memset(p, 0, sizeof(*p));
	p->procfs_fd = procfs_fd;
	p->dir_fd = open_again(procfs_fd);
	p->new_fd = open_again(procfs_fd);
	if (p->dir_fd < 0 || p->new_fd < 0) {
		r = p->dir_fd < 0 ? p->dir_fd : p->new_fd;
		processes_done(p);
		return r;
	}
	p->has_order = fstatfs(p->new_fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
	unit_reader_init(&p->units, procfs_fd);
	copy_patterns(p, patterns);
	return 0;
}

void processes_done(struct processes *p)
{
	unit_reader_done(&p->units);
	p->dir_fd = close_fd(p->dir_fd);
	p->new_fd = close_fd(p->new_fd);
}

bool processes_set_patterns(struct processes *p, const struct config_list *patterns)
{
	static const struct config_list none;

	if (config_list_is_same(&p->patterns, patterns ? patterns : &none))
		return false;
	copy_patterns(p, patterns);
	p->count = 0;
	p->index_stale = true;
	p->left_out = p->left_out_now = 0;
	p->scanning = false;
	p->scanned_once = false;
	memset(p->newest_id, 0, sizeof(p->newest_id));
	memset(p->scan_newest_id, 0, sizeof(p->scan_newest_id));
	pid_set_clear(&p->sets[p->seen]);
	return true;
}

void processes_remove(struct processes *p, uint32_t index)
{
	p->count--;
	memmove(&p->list[index], &p->list[index + 1], (p->count - index) * sizeof(p->list[0]));
	p->index_stale = true;
	p->changed = true;
}

void processes_copy_comm(const struct processes *p, int32_t pid, char *ret_comm, size_t size)
{
	*ret_comm = '\0';
	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].pid == pid)
			text_copy(ret_comm, size, p->list[i].comm);
}

uint32_t processes_left_out(const struct processes *p)
{
	return p->left_out > p->left_out_now ? p->left_out : p->left_out_now;
}

static bool pattern_matches(const char *pattern, const struct watch_process *process)
{
	uint64_t pid;

	if (parse_unsigned(pattern, &pid) == 0)
		return pid == (uint64_t)process->pid;
	/* The kernel keeps 15 bytes of a name. */
	return strncmp(pattern, process->comm, WATCH_COMM_SIZE - 1) == 0;
}

/* By its name or its id. */
static bool matches_itself(const struct processes *p, const struct watch_process *process)
{
	for (unsigned int i = 0; i < p->patterns.count; i++)
		if (pattern_matches(p->patterns.items[i], process))
			return true;
	return false;
}

bool processes_match(const struct processes *p, int32_t pid, const char *comm)
{
	struct watch_process process = { .pid = pid };

	text_copy(process.comm, sizeof(process.comm), comm);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].pid == pid)
			return true;
	return matches_itself(p, &process);
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
	struct watch_process process = { .pid = pid };
	int r = thread_comm_read(p->procfs_fd, pid, process.comm, sizeof(process.comm));

	if (r < 0)
		return r;
	*ret_process = process;
	return 0;
}

static uint16_t *index_slot(struct processes *p, int32_t pid)
{
	uint32_t i = (uint32_t)pid % PROCESSES_INDEX_SLOTS;

	while (p->index[i] != 0 && p->list[p->index[i] - 1].pid != pid)
		i = (i + 1) % PROCESSES_INDEX_SLOTS;
	return &p->index[i];
}

/* Made anew when it is needed: many processes may be removed at the same time. */
static void index_refresh(struct processes *p)
{
	if (!p->index_stale)
		return;
	memset(p->index, 0, sizeof(p->index));
	for (uint32_t i = 0; i < p->count; i++)
		*index_slot(p, p->list[i].pid) = (uint16_t)(i + 1);
	p->index_stale = false;
}

struct watch_process *processes_find(struct processes *p, int32_t pid)
{
	uint16_t place;

	index_refresh(p);
	place = *index_slot(p, pid);
	return place == 0 ? NULL : &p->list[place - 1];
}

/* False: there is no room. */
static bool process_add(struct processes *p, const struct watch_process *process)
{
	struct watch_process *added = &p->list[p->count];

	if (p->count == WATCH_PROCESSES_MAX)
		return false;
	index_refresh(p);
	*added = *process;
	added->scan = p->scans;
	p->count++;
	*index_slot(p, process->pid) = (uint16_t)p->count;
	return true;
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
	return newest >= older ? pid > older && pid <= newest + NEWER_IDS_MAX
			       : pid > older || pid <= newest;
}

/* What it belongs to is known later: see take_units(). */
static void want_unit(struct processes *p, int32_t pid)
{
	if (p->has_units && !unit_reader_want(&p->units, pid))
		p->changed = true;
}

static void process_look_at(struct processes *p, int32_t pid)
{
	struct watch_process process, *known = processes_find(p, pid);
	struct pid_set *filled = &p->sets[!p->seen];

	if (known) {
		known->scan = p->scans;
		return;
	}
	if (pid_set_has(&p->sets[p->seen], pid)) {
		pid_set_add(filled, pid);
		return;
	}
	if (unit_reader_is_left_out(&p->units, pid)) {
		p->left_out_now++;
		if (p->count == WATCH_PROCESSES_MAX)
			return;
	}
	if (process_read_name(p, pid, &process) < 0)
		return;
	if (!matches_itself(p, &process)) {
		want_unit(p, pid);
		if (process_is_young(p, pid))
			p->changed = true;
		else if (!p->has_units)
			pid_set_add(filled, pid);
	} else if (is_process(p, pid) && !process_add(p, &process)) {
		p->left_out_now++;
	}
}

static void look_at_new(struct processes *p, int32_t pid)
{
	struct watch_process process;

	if (process_read_name(p, pid, &process) < 0)
		return;
	if (!matches_itself(p, &process))
		want_unit(p, pid);
	/* A scan counts what finds no room: here each process is looked at twice. */
	else if (is_process(p, pid) && !process_add(p, &process))
		p->changed = true;
}

/* It need not be looked at again soon. */
static void note_other(struct processes *p, int32_t pid)
{
	if (process_is_young(p, pid))
		return;
	pid_set_add(&p->sets[0], pid);
	pid_set_add(&p->sets[1], pid);
}

/* Its name is looked at again where that was the reason to ask. */
static void take_unit_of_known(struct processes *p, struct watch_process *known, bool matches)
{
	struct watch_process process;

	if ((matches && !known->renamed) || process_read_name(p, known->pid, &process) < 0)
		return;
	/* Not removed here: whoever scans its threads has its place in the list. */
	known->has_left = !matches && !matches_itself(p, &process);
	known->renamed = false;
	if (!known->has_left)
		text_copy(known->comm, sizeof(known->comm), process.comm);
}

/* Counted by the next scan. */
static void leave_out(struct processes *p, int32_t pid)
{
	if (unit_reader_is_left_out(&p->units, pid))
		return;
	unit_reader_leave_out(&p->units, pid);
	p->changed = true;
}

static void take_unit(struct processes *p, const struct unit_answer *answer)
{
	struct watch_process process, *known = processes_find(p, answer->pid);

	if (known) {
		take_unit_of_known(p, known, answer->matches);
	} else if (!answer->matches) {
		unit_reader_take_in(&p->units, answer->pid);
		note_other(p, answer->pid);
	} else if (process_read_name(p, answer->pid, &process) == 0 && is_process(p, process.pid)) {
		if (process_add(p, &process))
			unit_reader_take_in(&p->units, process.pid);
		else
			leave_out(p, process.pid);
	}
}

static void take_units(struct processes *p, const struct watch_clock *clock)
{
	const uint64_t deadline_ns = watch_clock_ns(clock) + UNITS_BUDGET_NS;
	const struct unit_answer *answer;

	while (watch_clock_ns(clock) <= deadline_ns &&
		(answer = unit_reader_next(&p->units)) != NULL)
		take_unit(p, answer);
}

/*
 * Looks at the processes whose ids are above `after`, up to `newest`. /proc has processes in the
 * order of their ids, and the place of each is its id and a constant. So of the many ids that have
 * ended nothing is seen, and few entries are read that are not asked for: the kernel allocates for
 * each. A directory for tests has any order.
 */
static void look_at_range(struct processes *p, int32_t after, int32_t newest)
{
	unsigned int looks = 0;
	struct dents dents;
	const char *name;
	int32_t pid;
	int r;

	dents_seek(&dents, p->new_fd, p->has_order ? after + 1 + p->place_of_ids : 0);
	if (p->has_order)
		dents_read_at_most(&dents, (uint32_t)(newest - after));
	while ((r = dents_next_number(&dents, p->new_fd, &pid, &name)) > 0) {
		if (pid > newest && p->has_order)
			return;
		if (pid <= after || pid > newest || processes_find(p, pid))
			continue;
		if (++looks > NEW_MAX)
			break;
		look_at_new(p, pid);
	}
	if (r != 0)
		p->changed = true;
}

/*
 * A server that forks for each connection has processes that are a second old when the host
 * freezes. Each is looked at in two calls, since it has its parent's name until it calls exec.
 */
static void find_new(struct processes *p)
{
	int32_t newest, after = p->newest_id[1];
	struct loadavg loadavg;

	if (loadavg_read(p->procfs_fd, "loadavg", &loadavg) < 0)
		return;
	newest = loadavg.newest_id;
	if (after == 0) {
		p->newest_id[0] = newest;
	} else if (newest < after) {
		/* They have wrapped. */
		look_at_range(p, after, INT32_MAX);
		look_at_range(p, RESERVED_IDS - 1, newest);
	} else if (newest > after) {
		look_at_range(p, after, newest);
	}
	p->newest_id[1] = p->newest_id[0];
	p->newest_id[0] = newest;
}

bool processes_rename(struct processes *p, uint32_t index, const char *comm, bool is_running)
{
	struct watch_process process = { .pid = p->list[index].pid, .scan = p->list[index].scan };

	text_copy(process.comm, sizeof(process.comm), comm);
	if (matches_itself(p, &process) && is_running) {
		p->list[index] = process;
		return true;
	}
	/* It stays, with the old name, until its unit is known. */
	p->list[index].renamed = true;
	want_unit(p, process.pid);
	return p->has_units;
}

/* Those that have ended. Others may need their room. */
static void remove_not_found(struct processes *p)
{
	uint32_t kept = 0;

	if (p->scanning || !p->scanned_once)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].scan == p->scans)
			p->list[kept++] = p->list[i];
	if (kept == p->count)
		return;
	p->count = kept;
	p->index_stale = true;
	p->changed = true;
}

void processes_check(struct processes *p)
{
	uint32_t checks;

	remove_not_found(p);
	checks = p->count / CHECK_CALLS > CHECKS_MIN ? p->count / CHECK_CALLS : CHECKS_MIN;
	if (checks > p->count)
		checks = p->count;
	for (uint32_t i = 0; i < checks && p->count > 0; i++) {
		uint32_t at = p->checked++ % p->count;
		struct watch_process now;
		int r = process_read_name(p, p->list[at].pid, &now);

		/* Other errors, as without memory, say nothing about the process. */
		if (p->list[at].has_left || r == -ENOENT || r == -ESRCH ||
			(r == 0 && strcmp(now.comm, p->list[at].comm) != 0 &&
				!processes_rename(p, at, now.comm, is_process(p, now.pid))))
			processes_remove(p, at);
	}
}

static bool scan_is_due(const struct processes *p, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - p->scan_started_ns;

	return !p->scanned_once || since_ns >= SCAN_PERIOD_NS ||
		(p->changed && since_ns >= SCAN_AFTER_LOSS_NS);
}

/*
 * An incident is what all must be known for, also those that execute another program in it. The
 * first scan cannot tell whether a process is between fork and exec, as servers are that start
 * together with this program.
 */
static bool looks_at_all(const struct processes *p, uint64_t now_ns)
{
	return p->scans == 1 || now_ns - p->seen_since_ns >= SEEN_PERIOD_NS || p->armed;
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
	unit_reader_check_left_out(&p->units);
	p->scan_started_ns = now_ns;
	p->scan_newest_id[1] = p->scan_newest_id[0];
	p->scan_newest_id[0] = p->newest_id[0];
	p->changed = false;
	p->left_out_now = 0;
	p->scans++;
	p->scanning = true;
	return true;
}

static void scan_end(struct processes *p)
{
	p->left_out = p->left_out_now;
	p->left_out_now = 0;
	p->seen = !p->seen;
	p->scanning = false;
	p->scanned_once = true;
}

/* It has not found all, so it does not say who has ended. */
static void scan_abort(struct processes *p)
{
	p->scanning = false;
	p->changed = true;
	for (uint32_t i = 0; i < p->count; i++)
		p->list[i].scan = p->scans;
}

static void scan(struct processes *p, const struct watch_clock *clock, uint64_t deadline_ns)
{
	uint64_t now_ns = watch_clock_ns(clock);
	unsigned int looks = 0;
	const char *name;
	int32_t pid;
	int r;

	find_new(p);
	if (!p->scanning && (!scan_is_due(p, now_ns) || !scan_begin(p, now_ns)))
		return;
	do {
		r = dents_next_number(&p->dents, p->dir_fd, &pid, &name);
		if (r < 0)
			scan_abort(p);
		else if (r == 0)
			scan_end(p);
		if (r <= 0)
			return;
		/* Less where the one that was to come next has ended. */
		if (p->dents.place - pid > p->place_of_ids)
			p->place_of_ids = p->dents.place - pid;
		process_look_at(p, pid);
	} while (++looks < LOOKS_MIN || watch_clock_ns(clock) < deadline_ns);
}

void processes_scan(struct processes *p, const struct watch_clock *clock, uint64_t deadline_ns,
	bool armed)
{
	if (p->patterns.count == 0)
		return;
	if (armed && !p->armed)
		p->scanning = p->scanned_once = false;
	p->armed = armed;
	take_units(p, clock);
	scan(p, clock, deadline_ns);
	unit_reader_ask(&p->units, &p->patterns, armed);
}

bool processes_want_units(const struct processes *p)
{
	return unit_reader_is_busy(&p->units);
}
