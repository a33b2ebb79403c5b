/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "health/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"

static const char question[] = "check\n";

/* Sent instead of an answer if the program cannot be started: this byte, the errno, a newline. */
#define NOT_STARTED '\0'
#define NOT_STARTED_LEN 3

__attribute__((noreturn)) static void give_up(int fd)
{
	const char why[NOT_STARTED_LEN] = { NOT_STARTED, (char)errno, '\n' };

	(void)(send(fd, why, sizeof(why), MSG_NOSIGNAL) < 0);
	_exit(127);
}

static int become_user(const struct health_user *user)
{
	if (user->uid == 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(user->gid, user->gid, user->gid) < 0)
		return -1;
	return setresuid(user->uid, user->uid, user->uid);
}

/* Runs between fork and exec, so it calls only what is safe there. */
__attribute__((noreturn)) static void become(const char *program, const struct health_user *user,
	int fd, pid_t parent)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	const struct rlimit nothing = { 0 };
	sigset_t empty;
	int oom_fd;

	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* The OOM killer spares the daemon, but not its child. A failure here is ignored. */
	oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	(void)(write(oom_fd, "0", 1) < 0);
	/* Nor may it get a CPU before others, as the unit lets the daemon (Nice=). */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	setrlimit(RLIMIT_NICE, &nothing);
	setrlimit(RLIMIT_RTPRIO, &nothing);
	if (become_user(user) < 0)
		give_up(fd);
	/* The change of user would reset it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	/* With no_new_privs, so that no program with set-uid or capabilities gets them back. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, none) < 0 ||
		dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		give_up(fd);
	/*
	 * What is looked up for exec may hang on the same disk for as long as that hangs, and the
	 * locks of the daemon would be kept as long: the next one could not start.
	 */
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execl(program, program, (char *)NULL);
	give_up(STDOUT_FILENO);
}

int health_child_start(struct health_child *child, const char *program,
	const struct health_user *user)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	/* Only the child accesses the program file: its disk may be the one that hangs. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become(program, user, fds[1], parent);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -errno;
	}
	*child = (struct health_child){ .pid = pid, .fd = fds[0] };
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
	if (child->len == NOT_STARTED_LEN && child->answer[0] == NOT_STARTED &&
		child->answer[1] > 0)
		return -child->answer[1];
	return take_line(child, ret_ok) ? 1 : 0;
}
