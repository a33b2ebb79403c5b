/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/log.h"

/* libpq and its libraries map 60 MiB, most of it code. */
#define MEMORY_BYTES_MAX (256UL << 20)
/*
 * Client libraries keep a whole row, whatever its length: one of 100 MB made them grow to 207 MiB.
 * An answer needs a few MiB.
 */
#define DATA_BYTES_MAX (40UL << 20)
/* For sockets, files of the name service, and plugins of the client library while they load. */
#define FILES_MAX 64

#if defined(__SANITIZE_ADDRESS__)
/* The shadow memory of AddressSanitizer takes terabytes of address space. */
#define HAVE_ADDRESS_LIMIT 0
#else
#define HAVE_ADDRESS_LIMIT 1
#endif

#if defined(__x86_64__)
#define SECCOMP_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCOMP_ARCH AUDIT_ARCH_AARCH64
#endif

/* Calls that client libraries and name services do not need, but an attacker could use. */
static const int denied_calls[] = {
	SYS_execve,
	SYS_execveat,
	SYS_clone,
	SYS_clone3,
#ifdef SYS_fork
	SYS_fork,
	SYS_vfork,
#endif
#ifdef SYS_process_madvise
	SYS_process_madvise,
#endif
#ifdef SYS_unlink
	SYS_unlink,
	SYS_rename,
	SYS_renameat,
	SYS_link,
	SYS_symlink,
	SYS_mknod,
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
#ifdef SYS_process_mrelease
	SYS_process_mrelease,
#endif
#ifdef SYS_fchmodat2
	SYS_fchmodat2,
#endif
#ifdef SYS_setxattrat
	SYS_setxattrat,
	SYS_removexattrat,
#endif
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
	SYS_kill,
	SYS_tkill,
	SYS_tgkill,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_pidfd_open,
	SYS_pidfd_getfd,
	SYS_pidfd_send_signal,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_mount,
	SYS_umount2,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_pivot_root,
	SYS_chroot,
	SYS_unshare,
	SYS_setns,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_io_uring_setup,
	SYS_io_setup,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_open_by_handle_at,
	SYS_personality,
	SYS_listen,
	SYS_accept,
	SYS_accept4,
	SYS_mknodat,
	SYS_unlinkat,
	SYS_renameat2,
	SYS_linkat,
	SYS_symlinkat,
};

/* To open a file for more than reading. A limit of its size stops write() only. */
#define WRITE_FLAGS (O_ACCMODE | O_CREAT | O_TRUNC)

enum argument_test { IS, IS_NOT, HAS_ANY_OF };

/*
 * Calls that are denied where this argument, an int of the kernel, has such a value. Those of fcntl
 * and ioctl let the kernel signal another process, and so does a limit of its CPU time.
 */
static const struct denied_argument {
	int call;
	unsigned int argument;
	enum argument_test test;
	unsigned int value;
} denied_arguments[] = {
	{ SYS_fcntl, 1, IS, F_SETOWN },
	{ SYS_fcntl, 1, IS, F_SETOWN_EX },
	{ SYS_ioctl, 1, IS, FIOSETOWN },
	{ SYS_ioctl, 1, IS, SIOCSPGRP },
	{ SYS_prlimit64, 0, IS_NOT, 0 },
#ifdef SYS_open
	{ SYS_open, 1, HAS_ANY_OF, WRITE_FLAGS },
#endif
	{ SYS_openat, 2, HAS_ANY_OF, WRITE_FLAGS },
};

static int fail(int r, struct text *error, const char *what)
{
	text_addf(error, "sandbox: %s: %s", what, strerror(-r));
	return r;
}

static int set_limit(int resource, rlim_t value)
{
	struct rlimit limit = { .rlim_cur = value, .rlim_max = value };

	return setrlimit((__rlimit_resource_t)resource, &limit) < 0 ? -errno : 0;
}

static int set_limits(void)
{
	struct rlimit lock = { .rlim_cur = MEMORY_BYTES_MAX, .rlim_max = MEMORY_BYTES_MAX };
	int r;

	/* The unit lets the daemon have a CPU before others, and not this process. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	/* Only root can raise a lower hard limit. If this fails, less memory is locked. */
	setrlimit(RLIMIT_MEMLOCK, &lock);
	if ((r = set_limit(RLIMIT_CORE, 0)) < 0 || (r = set_limit(RLIMIT_FSIZE, 0)) < 0 ||
		(r = set_limit(RLIMIT_NPROC, 0)) < 0 || (r = set_limit(RLIMIT_NICE, 0)) < 0 ||
		(r = set_limit(RLIMIT_RTPRIO, 0)) < 0 ||
		(r = set_limit(RLIMIT_NOFILE, FILES_MAX)) < 0)
		return r;
	/* A write to a file has to fail instead of ending the process. */
	signal(SIGXFSZ, SIG_IGN);
	if (!HAVE_ADDRESS_LIMIT)
		return 0;
	r = set_limit(RLIMIT_DATA, DATA_BYTES_MAX);
	return r < 0 ? r : set_limit(RLIMIT_AS, MEMORY_BYTES_MAX);
}

/* The daemon may be protected from the OOM killer; the helper does not need to be. */
static void lower_protection(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char buf[16];
	ssize_t n;

	if (fd < 0 || (n = read(fd, buf, sizeof(buf) - 1)) <= 0)
		return;
	buf[n] = '\0';
	if (atoi(buf) < 0 && pwrite(fd, "0", 1, 0) != 1)
		log_debug("oom_score_adj: %s, ignoring", strerror(errno));
}

/* Standard input stays, as it is the socket of the daemon. *keep_fd becomes 3. */
static int close_descriptors(int *keep_fd)
{
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	unsigned int first = STDERR_FILENO + 1;

	if (null >= 0 && null != STDOUT_FILENO && dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	if (*keep_fd >= 0) {
		if (*keep_fd != (int)first && dup2(*keep_fd, (int)first) < 0)
			return -errno;
		*keep_fd = (int)first++;
	}
	/* `null` is closed with the others, or it is standard output itself. */
	TAKE_FD(null);
	return syscall(SYS_close_range, first, ~0U, 0) < 0 ? -errno : 0;
}

static const struct passwd *find_user(const char *run_as)
{
	const struct passwd *user = getpwnam(run_as);

	if (user && user->pw_uid != 0)
		return user;
	log_notice("there is no user %s%s; the database helper runs as nobody. Create the user, or "
		   "set run_as",
		run_as, user ? " without privileges" : "");
	user = getpwnam("nobody");
	return user && user->pw_uid != 0 ? user : NULL;
}

static int become(const struct passwd *user)
{
	if (setgroups(0, NULL) < 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
		setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		return -errno;
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* Drops the bounding set, from which exec could get capabilities back. */
static void drop_bounds(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

#ifdef SECCOMP_ARCH
/* Instructions that a denied argument takes. */
#define ARGUMENT_CODE 5

static unsigned short add_denied_arguments(struct sock_filter *code)
{
	const struct sock_filter load_call =
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	unsigned short n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(denied_arguments); i++) {
		const struct denied_argument *a = &denied_arguments[i];
		const unsigned short test = a->test == HAS_ANY_OF ? BPF_JSET : BPF_JEQ;
		const bool inverted = a->test == IS_NOT;

		code[n++] = load_call;
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned int)a->call, 0, ARGUMENT_CODE - 2);
		/* The low half, which both kinds of machine have first. */
		code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			(unsigned int)(offsetof(struct seccomp_data, args) +
				a->argument * sizeof(uint64_t)));
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, a->value, inverted,
			!inverted);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
			SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA));
	}
	return n;
}
#endif

/*
 * Listed calls fail with EPERM, and so do all calls of another architecture or ABI. openat2() does
 * not seem to exist: its flags are in memory, where a filter cannot see them.
 */
static int filter_calls(void)
{
#ifdef SECCOMP_ARCH
	struct sock_filter code[9 + 2 * ARRAY_SIZE(denied_calls) +
		ARGUMENT_CODE * ARRAY_SIZE(denied_arguments)];
	struct sock_fprog program = { .filter = code };
	const struct sock_filter deny =
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA));
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_ARCH, 1, 0);
	code[n++] = deny;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(denied_calls); i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned int)denied_calls[i], 0, 1);
		code[n++] = deny;
	}
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
		SECCOMP_RET_ERRNO | (ENOSYS & SECCOMP_RET_DATA));
	/* x32 has the same calls with numbers from this one on. */
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
	code[n++] = deny;
	n = (unsigned short)(n + add_denied_arguments(&code[n]));
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
#endif
	return 0;
}

int sandbox_enter(const char *run_as, int *keep_fd, struct text *error)
{
	bool root = geteuid() == 0;
	const struct passwd *user = root ? find_user(run_as) : NULL;
	int r;

	if (root && !user)
		return fail(-ENOENT, error, "there is neither user run_as nor user nobody");
	lower_protection();
	/* The environment of the daemon may have passwords that the helper must not see. */
	clearenv();
	/*
	 * Of each name server: the helper waits for a name of a host, and so does the daemon's
	 * question.
	 */
	setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
	if ((r = close_descriptors(keep_fd)) < 0)
		return fail(r, error, "close descriptors");
	if ((r = set_limits()) < 0)
		return fail(r, error, "limits");
	if (root)
		drop_bounds();
	if (root && (r = become(user)) < 0)
		return fail(r, error, user->pw_name);
	if ((r = drop_capabilities()) < 0)
		return fail(r, error, "capabilities");
	/* After the change of user, which would reset the first two. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(-errno, error, "prctl");
	r = filter_calls();
	/* EINVAL: this kernel has no seccomp filters. */
	return r < 0 && r != -EINVAL ? fail(r, error, "seccomp") : 0;
}

void sandbox_lock_memory(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		log_debug("database helper: cannot lock memory: %s, ignoring", strerror(errno));
}
