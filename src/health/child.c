/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "health/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"

static const char question[] = "check\n";

int health_child_start(struct health_child *child, const char *path,
	const struct program_user *user)
{
	const struct program program = { .path = path, .user = *user };
	pid_t pid;
	int fd, r = program_start(&program, &pid, &fd);

	if (r < 0)
		return r;
	*child = (struct health_child){ .pid = pid, .fd = fd };
	return 0;
}

void health_child_kill(struct health_child *child)
{
	child->fd = close_fd(child->fd);
	child->owes = false;
	if (child->pid > 0)
		kill(child->pid, SIGKILL);
}

bool health_child_is_gone(struct health_child *child)
{
	if (child->pid > 0 && waitpid(child->pid, NULL, WNOHANG) == 0)
		return false;
	*child = HEALTH_CHILD_NONE;
	return true;
}

int health_child_ask(struct health_child *child)
{
	ssize_t n;

	if (child->fd < 0)
		return -EPIPE;
	n = send(child->fd, question, strlen(question), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	child->owes = true;
	return 0;
}

/* A line that is too long is not "ok", and neither is the rest of it. */
static bool take_line(struct health_child *child, bool *ret_ok)
{
	char *newline = memchr(child->answer, '\n', child->len);
	size_t len;

	if (!newline && child->len < sizeof(child->answer))
		return false;
	len = newline ? (size_t)(newline - child->answer) : child->len;
	*ret_ok = newline && len == 2 && memcmp(child->answer, "ok", 2) == 0;
	len += newline ? 1 : 0;
	child->len -= len;
	memmove(child->answer, child->answer + len, child->len);
	child->owes = false;
	return true;
}

int health_child_read(struct health_child *child, bool *ret_ok)
{
	ssize_t n;

	if (child->fd < 0)
		return -EPIPE;
	if (take_line(child, ret_ok))
		return 1;
	n = recv(child->fd, child->answer + child->len, sizeof(child->answer) - child->len,
		MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	child->len += (size_t)n;
	if (program_error(child->answer, child->len) < 0)
		return program_error(child->answer, child->len);
	return take_line(child, ret_ok) ? 1 : 0;
}
