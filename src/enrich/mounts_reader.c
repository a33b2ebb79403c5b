/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/mounts_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file.h"

/* Only while it is read. A container has three lines of 400 bytes, or more with many layers. */
#define TEXT_SIZE (2 * 1024 * 1024)
/* The deepest calls have buffers for the name of a file and for its text. */
#define THREAD_STACK_BYTES (64 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)
#define WAIT_STEP_US 1000

/* Of the thread while it is busy. */
struct reading {
	bool is_read;
	const char *sysfs;
	const char *udev;
	struct members members;
	struct mounts mounts;
	struct mount list[MOUNTS_MAX];
	char text[TEXT_SIZE];
};

static bool has_pool(const struct mounts *mounts)
{
	for (unsigned int i = 0; i < mounts->count; i++)
		if (mounts->list[i].source_is_pool)
			return true;
	return false;
}

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
	if (r->sysfs)
		members_learn(&r->members, r->sysfs, has_pool(&r->mounts) ? r->udev : NULL);
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

void mounts_reader_set_paths(struct mounts_reader *r, const char *sysfs, const char *udev)
{
	r->sysfs = sysfs;
	r->udev = udev;
}

/* Where the thread hangs, another one tries. */
static void start(struct mounts_reader *r, uint64_t now_ns)
{
	struct reading *reading;

	if (renewable_worker_renew(&r->worker, now_ns) < 0)
		return;
	reading = r->worker.state;
	reading->sysfs = r->sysfs;
	reading->udev = r->udev;
	r->wanted = false;
	renewable_worker_start(&r->worker, now_ns);
}

bool mounts_reader_take(struct mounts_reader *r, struct mounts *mounts, struct members *members,
	uint64_t now_ns)
{
	const struct reading *reading = r->worker.state;
	bool is_read = reading && !renewable_worker_is_busy(&r->worker);

	if (is_read) {
		is_read = reading->is_read && mounts_copy(mounts, &reading->mounts) == 0;
		if (is_read)
			*members = reading->members;
		renewable_worker_rest(&r->worker);
	}
	if (renewable_worker_is_late(&r->worker, now_ns) || (r->wanted && !r->worker.state))
		start(r, now_ns);
	return is_read;
}

bool mounts_reader_wait(struct mounts_reader *r, struct mounts *mounts, struct members *members,
	uint64_t at_most_ns)
{
	const uint64_t begin_ns = clock_mono_ns();

	mounts_reader_take(r, mounts, members, begin_ns);
	while (renewable_worker_is_busy(&r->worker) && clock_mono_ns() - begin_ns < at_most_ns)
		usleep(WAIT_STEP_US);
	return mounts_reader_take(r, mounts, members, clock_mono_ns());
}
