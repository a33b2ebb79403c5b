/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What a helper cannot do any more: each denied call is tried. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/helper/sandbox.h"
#include "sql/protocol.h"
#include "util/cleanup.h"

/* Without the sandbox none of these fails with EPERM for who owns the target, as we do. */
static long try_signal(unsigned int which, pid_t target)
{
	siginfo_t info = { .si_signo = SIGCONT, .si_code = SI_QUEUE };
	struct f_owner_ex owner = { F_OWNER_PID, target };

	switch (which) {
	case 0:
		return syscall(SYS_kill, target, SIGCONT);
	case 1:
		return syscall(SYS_tkill, target, SIGCONT);
	case 2:
		return syscall(SYS_tgkill, target, target, SIGCONT);
	case 3:
		return syscall(SYS_rt_sigqueueinfo, target, SIGCONT, &info);
	case 4:
		return syscall(SYS_rt_tgsigqueueinfo, target, target, SIGCONT, &info);
	case 5:
		return syscall(SYS_pidfd_open, target, 0);
	case 6:
		return syscall(SYS_pidfd_send_signal, -1, SIGCONT, NULL, 0);
	case 7:
		return fcntl(STDIN_FILENO, F_SETOWN, target);
	case 8:
		return fcntl(STDIN_FILENO, F_SETOWN_EX, &owner);
	case 9:
		return ioctl(STDIN_FILENO, FIOSETOWN, &target);
	default:
		return ioctl(STDIN_FILENO, SIOCSPGRP, &target);
	}
}
#define SIGNALS 11

/* Calls with arguments that are wrong: without the sandbox they fail with another error. */
static const int denied[] = {
	SYS_execve,
	SYS_execveat,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_mount,
	SYS_umount2,
	SYS_unshare,
	SYS_setns,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_io_setup,
	SYS_keyctl,
	SYS_listen,
	SYS_accept4,
	SYS_unlinkat,
	SYS_renameat2,
	SYS_linkat,
	SYS_symlinkat,
	SYS_truncate,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_mkdirat,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_fchown,
	SYS_fchownat,
	SYS_utimensat,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_fsetxattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
	SYS_setpriority,
	SYS_ioprio_set,
	SYS_sched_setaffinity,
	SYS_sched_setattr,
	SYS_sched_setparam,
	SYS_sched_setscheduler,
	SYS_kcmp,
	SYS_prlimit64,
	SYS_openat,
#ifdef SYS_process_mrelease
	SYS_process_mrelease,
#endif
#ifdef SYS_open
	SYS_open,
	SYS_creat,
	SYS_mkdir,
	SYS_rmdir,
	SYS_chmod,
	SYS_chown,
	SYS_lchown,
	SYS_utime,
	SYS_utimes,
	SYS_futimesat,
#endif
};

/* A file is opened for reading only; the number of the first way that is not denied, or 0. */
static int try_opening(void)
{
	static const int denied_flags[] = { O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC,
		O_RDONLY | O_CREAT, O_TMPFILE | O_WRONLY };
	_cleanup_close_ int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(denied_flags); i++) {
		if (syscall(SYS_openat, AT_FDCWD, "/dev/null", denied_flags[i], 0600) != -1 ||
			errno != EPERM)
			return 1 + (int)i;
#ifdef SYS_open
		if (syscall(SYS_open, "/dev/null", denied_flags[i], 0600) != -1 || errno != EPERM)
			return 11 + (int)i;
#endif
	}
	if (syscall(SYS_openat2, AT_FDCWD, "/dev/null", NULL, 0) != -1 || errno != ENOSYS)
		return 20;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? 21 : 0;
}

/* Its own limits it may read, and lower. */
static bool may_limit_itself(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && --limit.rlim_cur > 0 &&
		setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* The exit status: 0, or the number of the first call that is not denied. */
static int try_all(pid_t target)
{
	char buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(buf);
	int keep_fd = -1;

	text_reset(&error);
	if (sandbox_enter("nobody", &keep_fd, &error) < 0)
		return 200;
	for (unsigned int i = 0; i < SIGNALS; i++)
		if (try_signal(i, target) != -1 || errno != EPERM)
			return 1 + (int)i;
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
		if (syscall(denied[i], -1L, -1L, -1L, -1L, -1L, -1L) != -1 || errno != EPERM)
			return 50 + (int)i;
	if (try_opening())
		return 201 + try_opening();
	/* Other calls of the same kind still work. */
	return fcntl(STDIN_FILENO, F_GETFL) < 0 || !may_limit_itself() ? 250 : 0;
}

/* The target is the process itself, which every user may signal. */
static void test_denied_calls(void **state)
{
	int status = -1, fds[2];
	pid_t pid;

	(void)state;
	if (prctl(PR_GET_SECCOMP) < 0)
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[0], STDIN_FILENO);
		_exit(try_all(getpid()));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_denied_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
