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

/* Reading the clock for each thread would add a tenth to the cost of the scan. */
#define CLOCK_EACH 16

struct task_scan {
	const struct task_scan_options *o;
	struct task_scan_progress *progress;
	struct task_scan_result *result;
	int32_t after_pid; /* earlier parts were about this process, and those before it */
	bool out_of_time;
};

static void scan_thread(struct task_scan *s, int32_t tid)
{
	uint64_t args[1] = { (uint64_t)tid };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (s->o->program_fd >= 0 && bpf_prog_test_run_opts(s->o->program_fd, &opts) == 0 &&
		opts.retval == 1) {
		s->result->asleep++;
		s->o->found(s->o->userdata, tid);
	}
	if (s->o->offcpu_fd >= 0)
		bpf_prog_test_run_opts(s->o->offcpu_fd, &opts);
	s->result->visited++;
	if (s->result->visited % CLOCK_EACH == 0)
		s->out_of_time = clock_mono_ns() > s->o->deadline_ns;
}

static void close_threads(struct task_scan_progress *p)
{
	if (p->is_open)
		close_fd(p->threads_fd);
	p->is_open = false;
}

static void open_threads(struct task_scan *s, int32_t pid)
{
	struct task_scan_progress *p = s->progress;
	char path[32];

	snprintf(path, sizeof(path), "%d/task", pid);
	p->pid = pid;
	p->threads_fd = openat(s->o->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->is_open = p->threads_fd >= 0;
	dents_reset(&p->threads);
}

/* Those that are left of the process that is open. */
static void scan_threads(struct task_scan *s)
{
	struct task_scan_progress *p = s->progress;
	const char *name;
	int32_t tid;

	while (p->is_open && !s->out_of_time) {
		if (dents_next_number(&p->threads, p->threads_fd, &tid, &name) > 0)
			scan_thread(s, tid);
		else
			close_threads(p);
	}
}

static void scan_process(struct task_scan *s, int32_t pid)
{
	if (pid <= s->after_pid)
		return;
	open_threads(s, pid);
	scan_threads(s);
}

static void scan_all(struct task_scan *s)
{
	struct dents dents;
	_cleanup_close_ int fd = openat(s->o->procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name;
	int32_t pid;

	if (fd < 0)
		return;
	dents_seek(&dents, fd, s->progress->place);
	while (!s->out_of_time && dents_next_number(&dents, fd, &pid, &name) > 0) {
		s->progress->place = dents.place;
		scan_process(s, pid);
	}
}

void task_scan_continue(struct task_scan_progress *progress,
	const struct task_scan_options *options, struct task_scan_result *ret_result)
{
	struct task_scan s = { options, progress, ret_result, progress->pid, false };

	*ret_result = (struct task_scan_result){ 0 };
	scan_threads(&s);
	if (!options->only)
		scan_all(&s);
	else
		for (uint32_t i = 0; i < options->only_count && !s.out_of_time; i++)
			scan_process(&s, options->only[i]);
	ret_result->complete = !s.out_of_time;
	progress->complete = ret_result->complete;
	progress->visited += ret_result->visited;
}

void task_scan_reset(struct task_scan_progress *progress)
{
	close_threads(progress);
	*progress = (struct task_scan_progress){ 0 };
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
	struct task_scan_progress progress = { 0 };
	struct task_scan s = { options, &progress, ret_result, 0, false };

	*ret_result = (struct task_scan_result){ 0 };
	s.out_of_time = clock_mono_ns() > options->deadline_ns;
	if (!s.out_of_time)
		scan_process(&s, pid);
	ret_result->complete = !s.out_of_time;
	task_scan_reset(&progress);
}
