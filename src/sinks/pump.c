/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sinks/files.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"

/* What stands between us and a file on a disk that may hang. */
#define PIPE_BYTES (1024 * 1024)

/* Shared by the thread and its owner; whoever leaves last frees it. */
struct pump {
	int references;
	int pipe_fd; /* its reading end */
	int file_fd;
	bool busy; /* the thread may hold bytes that are in the pipe no more */
	char buf[PIPE_BUF];
};

static void pump_unref(struct pump *p)
{
	if (__atomic_sub_fetch(&p->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	close_fd(p->pipe_fd);
	close_fd(p->file_fd);
	free(p);
}

static void *pump_run(void *arg)
{
	struct pump *p = arg;
	struct pollfd pfd = { .fd = p->pipe_fd, .events = POLLIN };
	ssize_t n;

	do {
		__atomic_store_n(&p->busy, false, __ATOMIC_SEQ_CST);
		poll(&pfd, 1, -1);
		/* Before the bytes leave the pipe: pump_is_settled() looks there first. */
		__atomic_store_n(&p->busy, true, __ATOMIC_SEQ_CST);
		n = read(p->pipe_fd, p->buf, sizeof(p->buf));
		/* A full disk costs its lines; the descriptor may work again later. */
		if (n > 0)
			file_write_all(p->file_fd, p->buf, (size_t)n);
	} while (n > 0 || (n < 0 && errno == EINTR));
	__atomic_store_n(&p->busy, false, __ATOMIC_SEQ_CST);
	pump_unref(p);
	return NULL;
}

int pump_new(int file_fd, int *ret_write_fd, struct pump **ret_pump)
{
	_cleanup_free_ struct pump *p = calloc(1, sizeof(*p));
	int ends[2], r;

	if (!p)
		return -ENOMEM;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	p->pipe_fd = ends[0];
	p->file_fd = fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
	p->references = 2;
	r = p->file_fd < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	/* Without the privilege the pipe stays smaller, and lines are lost earlier. */
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	if (r == 0)
		r = files_start_thread(pump_run, p);
	if (r < 0) {
		close_fd(ends[0]);
		close_fd(ends[1]);
		close_fd(p->file_fd);
		return r;
	}
	*ret_write_fd = ends[1];
	*ret_pump = TAKE_PTR(p);
	return 0;
}

struct pump *pump_free(struct pump *pump)
{
	if (pump)
		pump_unref(pump);
	return NULL;
}

bool pump_is_settled(struct pump *pump)
{
	int in_pipe = 0;

	if (ioctl(pump->pipe_fd, FIONREAD, &in_pipe) < 0 || in_pipe > 0)
		return false;
	return !__atomic_load_n(&pump->busy, __ATOMIC_SEQ_CST);
}

/* poll() says of a file that it takes everything, and then write() waits for its disk. */
void pump_decouple(int fd, struct pump **ret_pump)
{
	struct stat st;
	int pipe_fd;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || pump_new(fd, &pipe_fd, ret_pump) < 0)
		return;
	dup2(pipe_fd, fd);
	close(pipe_fd);
}

bool pump_flush(struct pump *pump, uint64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = 2 * (long)NSEC_PER_MSEC };
	uint64_t begin_ns = clock_mono_ns();

	while (!pump_is_settled(pump)) {
		if (clock_mono_ns() - begin_ns >= timeout_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
