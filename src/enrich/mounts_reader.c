/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/mounts_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file.h"
#include "watch/watch.h"

/* Only while it is read. A container has three lines of 400 bytes, or more with many layers. */
#define TEXT_SIZE (2 * 1024 * 1024)
/* The deepest calls have buffers for the name of a file and for its text. */
#define THREAD_STACK_BYTES (64 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)
#define WAIT_STEP_US 1000
/* Hosts of containers change their mounts all the time: it takes 1 % of a CPU at most. */
#define REST_TIMES 100

/* Of the thread while it is busy. */
struct reading {
	bool is_read;
	uint64_t took_ns;     /* of CPU time */
	unsigned int cut_off; /* texts that were too long, and 1 for namespaces without room */
	bool is_full;
	const char *sysfs;
	const char *udev;
	unsigned int pids_count;
	int32_t pids[WATCH_PROCESSES_MAX];
	unsigned int namespaces_count;
	ino_t namespaces[MOUNTS_NAMESPACES_MAX]; /* whose mounts have been read */
	struct members members;
	struct mounts mounts;
	struct mount list[MOUNTS_MAX];
	char text[TEXT_SIZE];
};

/* On the thread, which reads once. */

static bool has_pool(const struct mounts *mounts)
{
	for (unsigned int i = 0; i < mounts->count; i++)
		if (mounts->list[i].source_is_pool)
			return true;
	return false;
}

/* A file of its own, since readers of one file wait for each other. */
static bool read_text(struct reading *r, int procfs_fd, const char *path)
{
	ssize_t n = file_read_at(procfs_fd, path, r->text, sizeof(r->text));

	r->cut_off += n == -ENOBUFS;
	return n >= 0 || n == -ENOBUFS;
}

/* Whether the namespace of a process is another one than those so far. */
static bool is_new_namespace(struct reading *r, int procfs_fd, const char *pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/ns/mnt", pid);
	if (fstatat(procfs_fd, path, &st, 0) < 0)
		return false;
	for (unsigned int i = 0; i < r->namespaces_count; i++)
		if (r->namespaces[i] == st.st_ino)
			return false;
	if (r->namespaces_count == MOUNTS_NAMESPACES_MAX) {
		r->cut_off += !r->is_full;
		r->is_full = true;
		return false;
	}
	r->namespaces[r->namespaces_count++] = st.st_ino;
	return true;
}

/* File systems that are mounted in a container only. */
static void read_others(struct reading *r, int procfs_fd)
{
	char pid[16], path[32];

	for (unsigned int i = 0; i < r->pids_count; i++) {
		snprintf(pid, sizeof(pid), "%" PRId32, r->pids[i]);
		snprintf(path, sizeof(path), "%s/mountinfo", pid);
		if (is_new_namespace(r, procfs_fd, pid) && read_text(r, procfs_fd, path))
			mounts_parse_more(&r->mounts, MOUNTS_MAX, r->text, strlen(r->text));
	}
}

/*
 * Those of process 1 are what people know as the mounts of the host: a service may
 * have others, and see nothing of what lies below /home.
 */
static void read_all(struct reading *r, const int *fds)
{
	r->mounts.list = r->list;
	r->is_read = read_text(r, fds[0], "1/mountinfo") || read_text(r, fds[0], "self/mountinfo");
	if (!r->is_read)
		return;
	mounts_parse(&r->mounts, MOUNTS_MAX, r->text, strlen(r->text));
	(void)is_new_namespace(r, fds[0], "1");
	(void)is_new_namespace(r, fds[0], "self");
	read_others(r, fds[0]);
	r->mounts.left_out += r->cut_off;
	if (r->sysfs)
		members_learn(&r->members, r->sysfs, has_pool(&r->mounts) ? r->udev : NULL);
}

static void run(void *state, const int *fds)
{
	struct reading *r = state;

	read_all(r, fds);
	r->took_ns = clock_thread_cpu_ns();
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct reading),
	.limit_ns = LIMIT_NS,
};

void mounts_reader_init(struct mounts_reader *r, int procfs_fd, const struct watch *watch)
{
	*r = (struct mounts_reader){ .wanted = true, .watch = watch };
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

static void set_processes(struct reading *reading, const struct watch *watch)
{
	unsigned int count;
	const struct watch_process *list = watch_processes(watch, &count);

	for (unsigned int i = 0; i < count; i++)
		reading->pids[i] = list[i].pid;
	reading->pids_count = count;
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
	set_processes(reading, r->watch);
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
		r->rest_until_ns = r->worker.started_ns + REST_TIMES * reading->took_ns;
		renewable_worker_rest(&r->worker);
	}
	if (renewable_worker_is_late(&r->worker, now_ns) ||
		(r->wanted && !r->worker.state && now_ns >= r->rest_until_ns))
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
