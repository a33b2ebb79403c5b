/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"

/* This byte, the errno, a newline. */
#define NOT_STARTED '\0'

__attribute__((noreturn)) static void give_up(int fd)
{
	const char why[PROGRAM_ERROR_LEN] = { NOT_STARTED, (char)errno, '\n' };

	(void)(send(fd, why, sizeof(why), MSG_NOSIGNAL) < 0);
	_exit(127);
}

int program_error(const char *written, size_t len)
{
	return len == PROGRAM_ERROR_LEN && written[0] == NOT_STARTED && written[1] > 0 ? -written[1]
										       : 0;
}

static int become_user(const struct program_user *user)
{
	if (user->uid == 0)
		return 0;
	/* The change of user would take all capabilities away. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
		setresgid(user->gid, user->gid, user->gid) < 0)
		return -1;
	return setresuid(user->uid, user->uid, user->uid);
}

/* With no_new_privs, so that no program with set-uid or capabilities gets others. */
static int keep_capabilities(uint64_t bits)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (unsigned int i = 0; i < 2; i++) {
		const uint32_t half = (uint32_t)(bits >> (32 * i));

		data[i] = (struct __user_cap_data_struct){ half, half, half };
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, data) < 0)
		return -1;
	for (unsigned int i = 0; i < 64; i++)
		if (bits & 1ULL << i && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) < 0)
			return -1;
	return 0;
}

/* Runs between fork and exec, so it calls only what is safe there. */
__attribute__((noreturn)) static void become(const struct program *p, int fd, pid_t parent)
{
	char *const argv[] = { (char *)p->path, NULL };
	/* Not what the service manager tells the daemon alone, nor what root has. */
	char *const environment[] = { (char[]){ "LANG=C.UTF-8" },
		(char[]){ "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
		NULL };
	const struct rlimit nothing = { 0 };
	sigset_t empty;
	int oom_fd;

	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	/* Those that are ignored would stay so. */
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	/* The OOM killer spares the daemon, but not its child. A failure here is ignored. */
	oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	(void)(write(oom_fd, "0", 1) < 0);
	/* Nor may it get a CPU before others, as the unit lets the daemon (Nice=). */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	setrlimit(RLIMIT_NICE, &nothing);
	setrlimit(RLIMIT_RTPRIO, &nothing);
	if ((p->leads_session && setsid() < 0) || become_user(&p->user) < 0)
		give_up(fd);
	/* The change of user would reset it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	if (keep_capabilities(p->capabilities) < 0 || dup2(fd, STDIN_FILENO) < 0 ||
		dup2(fd, STDOUT_FILENO) < 0 || (p->with_stderr && dup2(fd, STDERR_FILENO) < 0))
		give_up(fd);
	/*
	 * What is looked up for exec may hang on the same disk for as long as that hangs, and the
	 * locks of the daemon would be kept as long: the next one could not start.
	 */
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execve(p->path, argv, environment);
	give_up(STDOUT_FILENO);
}

int program_start(const struct program *program, pid_t *ret_pid, int *ret_fd)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	/* Only the child accesses the program file: its disk may be the one that hangs. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become(program, fds[1], parent);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -errno;
	}
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}
