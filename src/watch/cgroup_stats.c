/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/cgroup_stats.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

/* The buffer for the text is in the state. */
#define THREAD_STACK_BYTES (16 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)
/* Holds io.stat of a hundred devices. */
#define TEXT_SIZE 16384

struct file {
	bool asked;
	uint32_t generation;
	char path[CGROUP_STATS_PATH_SIZE];
	struct cgroup_stats_reading reading;
};

/* Of the thread while it is busy, but for `done` and the files before it. */
struct state {
	struct watch_clock clock;
	unsigned int done;
	struct file files[CGROUP_STATS_FILES_MAX];
	char text[TEXT_SIZE];
};

static const struct {
	const char *controller;
	const char *file;
} kinds[CGROUP_STATS_KINDS] = {
	[CGROUP_STATS_MEMORY] = { "memory", "memory.stat" },
	[CGROUP_STATS_IO] = { "blkio", "io.stat" },
	[CGROUP_STATS_CPU] = { "cpu", "cpu.stat" },
};

static void parse_memory(const char *text, struct cgroup_stats_memory *memory)
{
	struct cursor c = { text, text + strlen(text) }, line;

	*memory = (struct cgroup_stats_memory){
		.reclaimable_bytes = cgroup_parse_reclaimable(text, strlen(text)),
	};
	while (cursor_line(&c, &line))
		refaults_take_line(line, &memory->refaults);
}

static void parse_io(const char *text, struct cgroup_stats_io *io)
{
	struct cursor c = { text, text + strlen(text) }, line;

	while (cursor_line(&c, &line)) {
		struct cgroup_io_values counters;
		uint32_t major, minor;

		if (cgroup_parse_io_line(line, cgroup_io_stat_keys, &major, &minor, &counters) < 0)
			continue;
		for (uint32_t i = 0; i < io->devices_count; i++) {
			struct cgroup_stats_device *d = &io->devices[i];

			if (d->found || d->major != major || d->minor != minor)
				continue;
			d->counters = counters;
			d->found = true;
		}
	}
}

static void parse(enum cgroup_stats_kind kind, const char *text, struct cgroup_stats_reading *r)
{
	switch (kind) {
	case CGROUP_STATS_MEMORY:
		parse_memory(text, &r->memory);
		return;
	case CGROUP_STATS_IO:
		parse_io(text, &r->io);
		return;
	default:
		r->cpu = (struct cgroup_cpu_counts){ 0 };
		cgroup_parse_cpu_stat((struct cursor){ text, text + strlen(text) }, &r->cpu);
	}
}

/* On the thread. */
static void run(void *state, const int *fds)
{
	struct state *s = state;

	for (unsigned int i = 0; i < CGROUP_STATS_FILES_MAX; i++) {
		const enum cgroup_stats_kind kind = i / CGROUP_STATS_GROUPS_MAX;
		struct file *f = &s->files[i];

		f->reading.ns = 0;
		if (f->asked) {
			ssize_t n = file_read_at(fds[0], f->path, s->text, sizeof(s->text));

			/* A group that has done no I/O has an empty io.stat. */
			if (n > 0 || n == -ENOBUFS || (n == 0 && kind == CGROUP_STATS_IO)) {
				parse(kind, s->text, &f->reading);
				f->reading.ns = watch_clock_ns(&s->clock);
			}
		}
		__atomic_store_n(&s->done, i + 1, __ATOMIC_RELEASE);
	}
}

static const struct renewable_worker_kind worker_kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct state),
	.limit_ns = LIMIT_NS,
};

int cgroup_stats_init(struct cgroup_stats *s, int sysfs_fd)
{
	memset(s, 0, sizeof(*s));
	return renewable_worker_init(&s->worker, &worker_kind, sysfs_fd);
}

void cgroup_stats_done(struct cgroup_stats *s)
{
	renewable_worker_done(&s->worker);
}

static unsigned int index_of(enum cgroup_stats_kind kind, unsigned int slot)
{
	return kind * CGROUP_STATS_GROUPS_MAX + slot;
}

int cgroup_stats_set(struct cgroup_stats *s, enum cgroup_stats_kind kind, unsigned int slot,
	const struct cgroup_path *path)
{
	struct cgroup_stats_file *f = &s->files[index_of(kind, slot)];

	f->generation++;
	f->has_answer = false;
	return cgroup_path_name(path, kinds[kind].controller, kinds[kind].file, f->path,
		sizeof(f->path));
}

bool cgroup_stats_is_busy(const struct cgroup_stats *s)
{
	return renewable_worker_is_busy(&s->worker);
}

static bool hangs(const struct cgroup_stats *s, unsigned int file)
{
	for (unsigned int i = 0; i < RENEWABLE_WORKER_HUNG_MAX; i++)
		if (s->hung[i].file == file && s->hung[i].generation == s->files[file].generation &&
			renewable_worker_hangs_at(&s->worker, i))
			return true;
	return false;
}

/* What the thread had read before it hung has been taken. */
static void replace_hung(struct cgroup_stats *s)
{
	const struct state *state = s->worker.state;
	unsigned int file = s->taken;
	uint32_t generation;
	int place;

	while (file < CGROUP_STATS_FILES_MAX && !state->files[file].asked)
		file++;
	/* It has been late, and ends just now. */
	if (file == CGROUP_STATS_FILES_MAX)
		return;
	generation = state->files[file].generation;
	place = renewable_worker_renew(&s->worker, clock_mono_ns());
	if (place < 0)
		return;
	log_warning(
		"watch: /sys/%s has kept its reader waiting for 5 s; what its group uses is not known until it can be read",
		s->files[file].path);
	s->hung[place] = (struct cgroup_stats_hung){ file, generation };
	for (unsigned int i = 0; i < CGROUP_STATS_FILES_MAX; i++)
		s->files[i].has_answer = false;
	s->taken = 0;
	s->is_asking = true;
}

void cgroup_stats_begin(struct cgroup_stats *s, const struct watch_clock *clock, bool armed)
{
	struct state *state = s->worker.state;
	bool is_busy = cgroup_stats_is_busy(s);
	unsigned int done = __atomic_load_n(&state->done, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < CGROUP_STATS_FILES_MAX; i++) {
		struct file *f = &state->files[i];

		s->files[i].has_answer = i >= s->taken && i < done && f->asked && f->reading.ns &&
			f->generation == s->files[i].generation;
		if (!is_busy)
			f->asked = false;
	}
	s->taken = done;
	s->is_asking = !is_busy;
	s->lacks = renewable_worker_is_late(&s->worker, clock_mono_ns());
	if (s->lacks && !armed)
		replace_hung(s);
	if (s->is_asking) {
		state = s->worker.state;
		state->clock = *clock;
	}
}

const struct cgroup_stats_reading *cgroup_stats_take(struct cgroup_stats *s,
	enum cgroup_stats_kind kind, unsigned int slot)
{
	const struct state *state = s->worker.state;
	unsigned int i = index_of(kind, slot);

	return s->files[i].has_answer ? &state->files[i].reading : NULL;
}

struct cgroup_stats_reading *cgroup_stats_ask(struct cgroup_stats *s, enum cgroup_stats_kind kind,
	unsigned int slot)
{
	struct state *state = s->worker.state;
	unsigned int i = index_of(kind, slot);
	struct file *f = &state->files[i];

	if (!s->is_asking)
		return NULL;
	if (hangs(s, i)) {
		s->lacks = true;
		return NULL;
	}
	if (f->generation != s->files[i].generation) {
		f->generation = s->files[i].generation;
		text_copy(f->path, sizeof(f->path), s->files[i].path);
	}
	f->asked = true;
	return &f->reading;
}

void cgroup_stats_end(struct cgroup_stats *s)
{
	struct state *state = s->worker.state;
	bool any = false;

	s->late += s->lacks;
	for (unsigned int i = 0; s->is_asking && i < CGROUP_STATS_FILES_MAX; i++)
		any = any || state->files[i].asked;
	s->is_asking = false;
	if (!any)
		return;
	state->done = s->taken = 0;
	renewable_worker_start(&s->worker, clock_mono_ns());
}
