/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/task_scan.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "watch/dents.h"
#include "watch/loadavg.h"
#include "watch/processes.h"

/* Reading the clock for each thread would add a tenth to the cost of the scan. */
#define CLOCK_EACH 16

struct task_scan {
	const struct task_scan_options *o;
	struct task_scan_result *result;
	bool out_of_time;
};

static void scan_thread(struct task_scan *s, int32_t tid)
{
	uint64_t args[1] = { (uint64_t)tid };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(s->o->program_fd, &opts) == 0 && opts.retval == 1) {
		s->result->asleep++;
		s->o->found(s->o->userdata, tid);
	}
	s->result->visited++;
	if (s->result->visited % CLOCK_EACH == 0)
		s->out_of_time = clock_mono_ns() > s->o->deadline_ns;
}

static void scan_process(struct task_scan *s, int32_t pid)
{
	const struct task_scan_position *after = &s->o->after;
	struct dents dents;
	char path[32];
	_cleanup_close_ int fd = -1;
	const char *name;
	int32_t tid;

	if (pid < after->pid)
		return;
	snprintf(path, sizeof(path), "%d/task", pid);
	fd = openat(s->o->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	dents_reset(&dents);
	while (!s->out_of_time && dents_next_number(&dents, fd, &tid, &name) > 0) {
		if (pid == after->pid && tid <= after->tid)
			continue;
		scan_thread(s, tid);
		s->result->position = (struct task_scan_position){ pid, tid };
	}
}

static void scan_all(struct task_scan *s)
{
	struct dents dents;
	_cleanup_close_ int fd = openat(s->o->procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name;
	int32_t pid;

	if (fd < 0)
		return;
	dents_reset(&dents);
	while (!s->out_of_time && dents_next_number(&dents, fd, &pid, &name) > 0)
		scan_process(s, pid);
}

/* The process with the lowest id from pid on, or 0. */
static int32_t next_process(const struct processes *list, int32_t pid)
{
	int32_t next = 0;

	for (uint32_t i = 0; i < list->count; i++)
		if (list->list[i].pid >= pid && (next == 0 || list->list[i].pid < next))
			next = list->list[i].pid;
	return next;
}

static void run(const struct task_scan_options *options, struct task_scan_result *ret_result)
{
	struct task_scan s = { options, ret_result, false };

	*ret_result = (struct task_scan_result){ .position = options->after };
	if (!options->only)
		scan_all(&s);
	else
		for (int32_t pid = next_process(options->only, options->after.pid);
			pid > 0 && !s.out_of_time; pid = next_process(options->only, pid + 1))
			scan_process(&s, pid);
	ret_result->complete = !s.out_of_time;
}

void task_scan_continue(struct task_scan_progress *progress,
	const struct task_scan_options *options, struct task_scan_result *ret_result)
{
	struct task_scan_options part = *options;

	part.after = progress->position;
	run(&part, ret_result);
	progress->position = ret_result->position;
	progress->complete = ret_result->complete;
	progress->visited += ret_result->visited;
}

uint32_t task_scan_count_left(const struct task_scan_progress *progress,
	const struct task_scan_options *options)
{
	struct loadavg loadavg;

	if (progress->complete)
		return 0;
	if (options->only || loadavg_read(options->procfs_fd, "loadavg", &loadavg) < 0 ||
		loadavg.threads <= progress->visited)
		return 1;
	return loadavg.threads - progress->visited;
}

void task_scan_process(const struct task_scan_options *options, int32_t pid,
	struct task_scan_result *ret_result)
{
	struct task_scan s = { options, ret_result, false };

	*ret_result = (struct task_scan_result){ .position = options->after };
	scan_process(&s, pid);
	ret_result->complete = !s.out_of_time;
}
