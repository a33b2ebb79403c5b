/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/apart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"

int apart_start(struct apart *ret, void (*run)(int fd, const void *arg), const void *arg)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(fds[1], arg);
		_exit(0);
	}
	*ret = (struct apart){ pid, fds[0] };
	if (pid < 0) {
		int r = -errno;

		close(fds[0]);
		close(fds[1]);
		return r;
	}
	close(fds[1]);
	return 0;
}

ssize_t apart_receive(const struct apart *apart, void *buf, size_t size, int timeout_ms)
{
	struct pollfd pfd = { .fd = apart->fd, .events = POLLIN };
	ssize_t n;
	int r;

	do
		r = poll(&pfd, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return -ETIMEDOUT;
	n = r < 0 ? r : recv(apart->fd, buf, size, 0);
	if (n < 0)
		return -errno;
	return n ? n : -EPIPE;
}

void apart_end(struct apart *apart)
{
	apart->fd = close_fd(apart->fd);
	kill(apart->pid, SIGKILL);
	/* One that hangs does not end. */
	waitpid(apart->pid, NULL, WNOHANG);
}
