/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/mounts_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file.h"

/* Only while it is read. A container has three lines of 400 bytes, or more with many layers. */
#define TEXT_SIZE (2 * 1024 * 1024)
/* The deepest call has a buffer for the name of a file. */
#define THREAD_STACK_BYTES (16 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)
#define WAIT_STEP_US 1000

/* Of the thread while it is busy. */
struct reading {
	bool is_read;
	struct mounts mounts;
	struct mount list[MOUNTS_MAX];
	char text[TEXT_SIZE];
};

/* On the thread. A file of its own, since readers of one file wait for each other. */
static void run(void *state, const int *fds)
{
	struct reading *r = state;
	ssize_t n = file_read_at(fds[0], "self/mountinfo", r->text, sizeof(r->text));

	r->is_read = n >= 0 || n == -ENOBUFS;
	if (!r->is_read)
		return;
	r->mounts.list = r->list;
	mounts_parse(&r->mounts, MOUNTS_MAX, r->text, strlen(r->text));
	r->mounts.left_out += n == -ENOBUFS;
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct reading),
	.limit_ns = LIMIT_NS,
};

void mounts_reader_init(struct mounts_reader *r, int procfs_fd)
{
	*r = (struct mounts_reader){ .wanted = true };
	renewable_worker_init_resting(&r->worker, &kind, -1);
	r->worker.fd = procfs_fd;
}

void mounts_reader_done(struct mounts_reader *r)
{
	renewable_worker_done(&r->worker);
}

void mounts_reader_want(struct mounts_reader *r)
{
	r->wanted = true;
}

/* Where the thread hangs, another one tries. */
static void start(struct mounts_reader *r, uint64_t now_ns)
{
	if (renewable_worker_renew(&r->worker, now_ns) < 0)
		return;
	r->wanted = false;
	renewable_worker_start(&r->worker, now_ns);
}

bool mounts_reader_take(struct mounts_reader *r, struct mounts *mounts, uint64_t now_ns)
{
	const struct reading *reading = r->worker.state;
	bool is_read = reading && !renewable_worker_is_busy(&r->worker);

	if (is_read) {
		is_read = reading->is_read && mounts_copy(mounts, &reading->mounts) == 0;
		renewable_worker_rest(&r->worker);
	}
	if (renewable_worker_is_late(&r->worker, now_ns) || (r->wanted && !r->worker.state))
		start(r, now_ns);
	return is_read;
}

bool mounts_reader_wait(struct mounts_reader *r, struct mounts *mounts, uint64_t at_most_ns)
{
	const uint64_t begin_ns = clock_mono_ns();

	mounts_reader_take(r, mounts, begin_ns);
	while (renewable_worker_is_busy(&r->worker) && clock_mono_ns() - begin_ns < at_most_ns)
		usleep(WAIT_STEP_US);
	return mounts_reader_take(r, mounts, clock_mono_ns());
}
