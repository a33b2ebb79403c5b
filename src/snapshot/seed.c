/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/seed.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/parse.h"
#include "watch/dents.h"
#include "watch/processes.h"

/* Reading the clock for each thread would cost a tenth of what showing it costs. */
#define CLOCK_EACH 16

struct seeder {
	const struct seed_options *o;
	struct seed_result *result;
	bool out_of_time;
};

static void seed_thread(struct seeder *s, int32_t tid)
{
	uint64_t args[1] = { (uint64_t)tid };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(s->o->program_fd, &opts) == 0 && opts.retval == 1)
		s->result->asleep++;
	s->result->visited++;
	if (s->result->visited % CLOCK_EACH == 0)
		s->out_of_time = clock_mono_ns() > s->o->deadline_ns;
}

static void seed_process(struct seeder *s, int32_t pid)
{
	struct dents dents;
	char path[32];
	_cleanup_close_ int fd = -1;
	const char *name;
	int32_t tid;

	snprintf(path, sizeof(path), "%d/task", pid);
	fd = openat(s->o->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	dents_reset(&dents);
	while (!s->out_of_time && dents_next_number(&dents, fd, &tid, &name) > 0)
		seed_thread(s, tid);
}

/* The fourth field, "2/345": threads that can run, threads there are. */
static uint32_t count_threads(int procfs_fd)
{
	char buf[64];
	struct cursor c = { buf, buf };
	const char *slash;
	uint64_t count;
	ssize_t n = file_read_at(procfs_fd, "loadavg", buf, sizeof(buf));

	slash = n > 0 ? memchr(buf, '/', (size_t)n) : NULL;
	if (!slash)
		return 0;
	c = (struct cursor){ slash + 1, buf + n };
	return cursor_u64(&c, &count) == 0 ? (uint32_t)count : 0;
}

static void seed_all(struct seeder *s)
{
	struct dents dents;
	_cleanup_close_ int fd = openat(s->o->procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name;
	int32_t pid;
	uint32_t count;

	if (fd < 0)
		return;
	dents_reset(&dents);
	while (!s->out_of_time && dents_next_number(&dents, fd, &pid, &name) > 0)
		seed_process(s, pid);
	count = s->out_of_time ? count_threads(s->o->procfs_fd) : 0;
	if (count > s->result->visited)
		s->result->not_visited = count - s->result->visited;
}

void seed_blocked(const struct seed_options *options, struct seed_result *ret_result)
{
	struct seeder s = { options, ret_result, false };

	*ret_result = (struct seed_result){};
	if (!options->only) {
		seed_all(&s);
		return;
	}
	for (uint32_t i = 0; i < options->only->count; i++) {
		if (s.out_of_time)
			ret_result->not_visited++; /* at least its one thread */
		else
			seed_process(&s, options->only->list[i].pid);
	}
}
