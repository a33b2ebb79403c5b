/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/log_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/thread.h"

/* Lines that can wait here while the disk of the file hangs. */
#define PIPE_BYTES (1024 * 1024)
/* The buffer is in struct log_relay, not on the stack. */
#define THREAD_STACK_BYTES (16 * 1024)

/* Shared by the thread and its owner; the last of the two to leave frees it. */
struct log_relay {
	int references;
	int pipe_fd;	    /* the reading end, open in the tables of both */
	int thread_file_fd; /* open in the table of the thread only */
	bool busy; /* the thread may hold bytes that it has already taken out of the pipe */
	char buf[PIPE_BUF];
};

static void log_relay_unref(struct log_relay *p)
{
	if (__atomic_sub_fetch(&p->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(p);
}

static void *log_relay_run(void *arg)
{
	struct log_relay *p = arg;
	struct pollfd pfd = { .fd = p->pipe_fd, .events = POLLIN };
	ssize_t n;

	do {
		__atomic_store_n(&p->busy, false, __ATOMIC_SEQ_CST);
		poll(&pfd, 1, -1);
		/* Set before the bytes leave the pipe, where log_relay_is_drained() looks first. */
		__atomic_store_n(&p->busy, true, __ATOMIC_SEQ_CST);
		n = read(p->pipe_fd, p->buf, sizeof(p->buf));
		/* Lines are lost while the disk is full; later ones may be written again. */
		if (n > 0)
			file_write_all(p->thread_file_fd, p->buf, (size_t)n);
	} while (n > 0 || (n < 0 && errno == EINTR));
	__atomic_store_n(&p->busy, false, __ATOMIC_SEQ_CST);
	/* In the table of this thread. */
	close(p->pipe_fd);
	close(p->thread_file_fd);
	log_relay_unref(p);
	return NULL;
}

int log_relay_new(int file_fd, int *ret_write_fd, struct log_relay **ret_relay)
{
	_cleanup_free_ struct log_relay *p = calloc(1, sizeof(*p));
	int ends[2], fds[2], r;

	if (!p)
		return -ENOMEM;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fds[0] = p->pipe_fd = ends[0];
	/* Above standard error, since those of a thread are its own. */
	fds[1] = p->thread_file_fd = fcntl(file_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	p->references = 2;
	r = fds[1] < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	/* Without CAP_SYS_RESOURCE the pipe may stay smaller, and lines are lost earlier. */
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	if (r == 0)
		r = thread_start_detached(log_relay_run, p, THREAD_STACK_BYTES, fds,
			ARRAY_SIZE(fds));
	close_fd(fds[1]);
	if (r < 0) {
		close_fd(ends[0]);
		close_fd(ends[1]);
		return r;
	}
	*ret_write_fd = ends[1];
	*ret_relay = TAKE_PTR(p);
	return 0;
}

struct log_relay *log_relay_free(struct log_relay *relay)
{
	if (!relay)
		return NULL;
	close(relay->pipe_fd);
	log_relay_unref(relay);
	return NULL;
}

bool log_relay_is_drained(struct log_relay *relay)
{
	int in_pipe = 0;

	if (ioctl(relay->pipe_fd, FIONREAD, &in_pipe) < 0 || in_pipe > 0)
		return false;
	return !__atomic_load_n(&relay->busy, __ATOMIC_SEQ_CST);
}

void log_relay_decouple(int fd, struct log_relay **ret_relay)
{
	struct stat st;
	int pipe_fd;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		log_relay_new(fd, &pipe_fd, ret_relay) < 0)
		return;
	dup2(pipe_fd, fd);
	close(pipe_fd);
}

bool log_relay_flush(struct log_relay *relay, uint64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = 2 * (long)NSEC_PER_MSEC };
	uint64_t begin_ns = clock_mono_ns();

	while (!log_relay_is_drained(relay)) {
		if (clock_mono_ns() - begin_ns >= timeout_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
