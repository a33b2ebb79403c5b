/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/unit_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/file.h"

/* What is read, and in the deepest call the name of a file. */
#define THREAD_STACK_BYTES (32 * 1024)
#define CGROUP_SIZE 8192

#define UNIT_PREFIX "unit:"
#define UNIT_PREFIX_LEN (sizeof(UNIT_PREFIX) - 1)

static bool is_unit_pattern(const char *pattern)
{
	return strncmp(pattern, UNIT_PREFIX, UNIT_PREFIX_LEN) == 0;
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

static bool matches(const struct config_list *patterns, int procfs_fd, int32_t pid)
{
	char path[32], cgroup[CGROUP_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/cgroup", pid);
	n = file_read_at(procfs_fd, path, cgroup, sizeof(cgroup));
	if (n < 0 && n != -ENOBUFS)
		return false;
	for (unsigned int i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->items[i];

		if (is_unit_pattern(pattern) && cgroup_has_unit(cgroup, pattern + UNIT_PREFIX_LEN))
			return true;
	}
	return false;
}

/* On the thread. */
static void run(void *state, const int *fds)
{
	struct unit_reading *r = state;

	for (uint32_t i = 0; i < r->count; i++)
		r->answers[i].matches = matches(&r->patterns, fds[0], r->answers[i].pid);
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct unit_reading),
	.limit_ns = UINT64_MAX,
};

static bool has_units(const struct config_list *patterns)
{
	for (unsigned int i = 0; i < patterns->count; i++)
		if (is_unit_pattern(patterns->items[i]))
			return true;
	return false;
}

void unit_reader_init(struct unit_reader *r, int procfs_fd)
{
	memset(r, 0, sizeof(*r));
	renewable_worker_init_resting(&r->worker, &kind, -1);
	r->worker.fd = procfs_fd;
}

static void free_sets(struct unit_reader *r)
{
	free(r->wanted);
	free(r->left_out);
	r->wanted = r->left_out = NULL;
}

void unit_reader_done(struct unit_reader *r)
{
	renewable_worker_done(&r->worker);
	free_sets(r);
}

bool unit_reader_set_patterns(struct unit_reader *r, const struct config_list *patterns)
{
	r->asked = false;
	free_sets(r);
	if (!has_units(patterns))
		return false;
	r->wanted = calloc(1, sizeof(*r->wanted));
	r->left_out = calloc(1, sizeof(*r->left_out));
	if (!r->wanted || !r->left_out)
		free_sets(r);
	return true;
}

void unit_reader_leave_out(struct unit_reader *r, int32_t pid)
{
	pid_set_add(r->left_out, pid);
}

bool unit_reader_is_left_out(const struct unit_reader *r, int32_t pid)
{
	return r->left_out && pid_set_has(r->left_out, pid);
}

void unit_reader_take_in(struct unit_reader *r, int32_t pid)
{
	if (r->left_out)
		pid_set_remove(r->left_out, pid);
}

void unit_reader_check_left_out(struct unit_reader *r)
{
	if (r->left_out && r->left_out->count >= PID_SET_MAX)
		pid_set_clear(r->left_out);
}

bool unit_reader_want(struct unit_reader *r, int32_t pid)
{
	return r->wanted && pid_set_add(r->wanted, pid);
}

bool unit_reader_is_busy(const struct unit_reader *r)
{
	return (r->wanted && r->wanted->count > 0) || r->asked;
}

void unit_reader_ask(struct unit_reader *r, const struct config_list *patterns, bool armed)
{
	uint64_t now_ns = clock_mono_ns();
	struct unit_reading *reading;

	if (!r->wanted || r->wanted->count == 0 || r->asked || renewable_worker_is_busy(&r->worker))
		return;
	if (!r->worker.thread && (armed || renewable_worker_renew(&r->worker, now_ns) < 0))
		return;
	reading = r->worker.state;
	reading->patterns = *patterns;
	reading->count = 0;
	for (uint32_t i = 0; i < PID_SET_SLOTS; i++)
		if (r->wanted->slots[i])
			reading->answers[reading->count++].pid = r->wanted->slots[i];
	pid_set_clear(r->wanted);
	r->asked = true;
	r->taken = 0;
	renewable_worker_start(&r->worker, now_ns);
}

const struct unit_answer *unit_reader_next(struct unit_reader *r)
{
	const struct unit_reading *reading = r->worker.state;

	if (!r->asked || renewable_worker_is_busy(&r->worker))
		return NULL;
	if (r->taken < reading->count)
		return &reading->answers[r->taken++];
	r->asked = false;
	return NULL;
}
