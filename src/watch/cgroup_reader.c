/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/cgroup_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/file.h"

/* The deepest call has a buffer for the name of a file. */
#define THREAD_STACK_BYTES (16 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)

/* On the thread. */
static void run(void *state, const int *fds)
{
	struct cgroup_reading *r = state;

	for (unsigned int i = 0; i < r->count; i++) {
		struct cgroup_answer *a = &r->answers[i];
		char name[32];
		ssize_t n;

		snprintf(name, sizeof(name), "%d/cgroup", a->pid);
		n = file_read_at(fds[0], name, a->text, sizeof(a->text));
		a->len = n > 0 ? (size_t)n : 0;
		__atomic_store_n(&r->done, i + 1, __ATOMIC_RELEASE);
	}
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct cgroup_reading),
	.limit_ns = LIMIT_NS,
};

int cgroup_reader_init(struct cgroup_reader *r, int procfs_fd)
{
	r->asked = false;
	return renewable_worker_init(&r->worker, &kind, procfs_fd);
}

void cgroup_reader_done(struct cgroup_reader *r)
{
	renewable_worker_done(&r->worker);
}

bool cgroup_reader_is_busy(const struct cgroup_reader *r)
{
	return renewable_worker_is_busy(&r->worker);
}

void cgroup_reader_ask(struct cgroup_reader *r, const int32_t *pids, unsigned int count)
{
	struct cgroup_reading *reading = r->worker.state;

	assert(count <= CGROUP_READER_MAX && !cgroup_reader_is_busy(r));
	reading->count = count;
	reading->done = 0;
	for (unsigned int i = 0; i < count; i++)
		reading->answers[i].pid = pids[i];
	r->asked = true;
	renewable_worker_start(&r->worker, clock_mono_ns());
}

const struct cgroup_reading *cgroup_reader_take(struct cgroup_reader *r, unsigned int *ret_done)
{
	const struct cgroup_reading *reading = r->worker.state;
	bool is_wanted = r->asked;

	if (cgroup_reader_is_busy(r) && renewable_worker_renew(&r->worker, clock_mono_ns()) < 0)
		return NULL;
	r->asked = false;
	*ret_done = __atomic_load_n(&reading->done, __ATOMIC_ACQUIRE);
	return is_wanted ? reading : NULL;
}

void cgroup_reader_forget(struct cgroup_reader *r)
{
	r->asked = false;
}
