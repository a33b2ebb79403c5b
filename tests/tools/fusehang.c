// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A FUSE file system with one file, `file`, whose flush hangs: close(2) of it does not return, nor
 * does execve(2) of a process that has it open with O_CLOEXEC. Whoever enters its directory `dir`
 * asks the server each time, so while that is stopped (SIGSTOP), what is mounted there hangs, too.
 * Pages are read and written back by requests for which no thread waits, so buffered reads and
 * fsync(2) sleep for the page.
 *
 *	fusehang DIR READY RELEASE      mounts it on DIR, makes the file READY, and answers no flush
 *	                                until a file RELEASE exists; ends by a signal
 *	fusehang --plain DIR READY RELEASE
 *	                                the same, but it lets its requests be interrupted, as
 *	                                libfuse does, and has no asynchronous reads: whoever waits
 *	                                for it sleeps interruptibly, also in a page fault
 *	fusehang --exec FILE COMMAND... opens FILE with O_CLOEXEC and executes COMMAND
 *	fusehang --exec32 FILE PROGRAM  the same through the system call of 32-bit programs (x86)
 *	fusehang --pread32 FILE LENGTH OFFSET
 *	                                reads FILE through such a call, and stays
 *	fusehang --has32                ends well if the kernel has such calls
 *	fusehang --exec-thread FILE COMMAND...
 *	                                a second thread reads 511 bytes, then executes COMMAND
 *	fusehang --listen DIR READY     has to allow files of the mount DIR to be opened (fanotify),
 *	                                makes the file READY, and never answers; ends by a signal
 *	fusehang --bind PATH READY      has a unix socket for datagrams at PATH, makes the file
 *	                                READY, and never receives any; ends by a signal
 *
 * Build: cc -pthread fusehang.c
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST_SIZE (1024 * 1024)
#define FILE_INODE 2
#define FILE_SIZE (1024 * 1024)
#define DIR_INODE 3
#define HELD_MAX 64
#define READ_SIZE (128 * 1024)
#define LOOK_MS 20

static volatile sig_atomic_t ended;
static bool is_plain;

static void on_end(int signal)
{
	(void)signal;
	ended = 1;
}

static void on_alarm(int signal)
{
	(void)signal;
}

static void die(const char *what)
{
	fprintf(stderr, "fusehang: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void answer(int fd, uint64_t unique, int error, const void *data, size_t size)
{
	static char buf[sizeof(struct fuse_out_header) + READ_SIZE];
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + size),
		.error = error,
		.unique = unique };

	memcpy(buf, &head, sizeof(head));
	if (size > 0)
		memcpy(buf + sizeof(head), data, size);
	/* ENOENT: the one who asked has been interrupted. */
	if (write(fd, buf, head.len) < 0 && errno != ENOENT && errno != EINVAL)
		die("answer");
}

static struct fuse_attr attributes(uint64_t inode)
{
	return (struct fuse_attr){
		.ino = inode,
		.mode = inode == FILE_INODE ? S_IFREG | 0644 : S_IFDIR | 0755,
		.nlink = 1,
		.size = inode == FILE_INODE ? FILE_SIZE : 0,
		.blksize = 4096,
	};
}

/* Zeros, as many as are asked for. */
static void answer_read(int fd, const struct fuse_in_header *in)
{
	static const char zeros[READ_SIZE];
	const struct fuse_read_in *asked = (const void *)(in + 1);

	answer(fd, in->unique, 0, zeros, asked->size < sizeof(zeros) ? asked->size : sizeof(zeros));
}

static void answer_init(int fd, const struct fuse_in_header *in)
{
	const struct fuse_init_in *asked = (const void *)(in + 1);
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = asked->minor < FUSE_KERNEL_MINOR_VERSION ? asked->minor
								  : FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = asked->max_readahead,
		.flags = is_plain ? FUSE_PARALLEL_DIROPS : FUSE_ASYNC_READ | FUSE_WRITEBACK_CACHE,
		.max_write = 4096,
		.time_gran = 1,
	};

	answer(fd, in->unique, 0, &out, sizeof(out));
}

static void answer_lookup(int fd, const struct fuse_in_header *in)
{
	const char *name = (const char *)(in + 1);
	bool is_file = strcmp(name, "file") == 0, is_dir = strcmp(name, "dir") == 0;
	uint64_t inode = is_file ? FILE_INODE : DIR_INODE;
	struct fuse_entry_out out = { .nodeid = inode,
		.entry_valid = is_file ? 3600 : 0,
		.attr_valid = 3600,
		.attr = attributes(inode) };

	if (is_file || is_dir)
		answer(fd, in->unique, 0, &out, sizeof(out));
	else
		answer(fd, in->unique, -ENOENT, NULL, 0);
}

/* All but the flush, and what needs no answer. */
static void answer_any(int fd, const struct fuse_in_header *in)
{
	struct fuse_attr_out attr = { .attr_valid = 3600, .attr = attributes(in->nodeid) };
	struct fuse_open_out open = { .open_flags = 0 };
	const struct fuse_write_in *written = (const void *)(in + 1);
	struct fuse_write_out write_out = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		answer_init(fd, in);
		break;
	case FUSE_LOOKUP:
		answer_lookup(fd, in);
		break;
	case FUSE_GETATTR:
		answer(fd, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(fd, in->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		answer_read(fd, in);
		break;
	case FUSE_WRITE:
		write_out.size = written->size;
		answer(fd, in->unique, 0, &write_out, sizeof(write_out));
		break;
	case FUSE_SETATTR:
		answer(fd, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_FSYNC:
	case FUSE_RELEASE:
		answer(fd, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	default:
		answer(fd, in->unique, -ENOSYS, NULL, 0);
	}
}

/*
 * A child closes the file and is interrupted in that. The answer to the interrupt tells the kernel
 * that there are no interrupts here, and from then on whoever waits for an answer is in D state.
 */
static pid_t start_child(const char *dir)
{
	const struct itimerval each_10_ms = { { 0, 10000 }, { 0, 10000 } };
	char path[4096];
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid;
	snprintf(path, sizeof(path), "%s/file", dir);
	signal(SIGALRM, on_alarm);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	setitimer(ITIMER_REAL, &each_10_ms, NULL);
	close(fd);
	_exit(0);
}

static void say_ready(const char *ready)
{
	close(open(ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static void serve(int fd, const char *ready, const char *release)
{
	static char buf[REQUEST_SIZE];
	const struct fuse_in_header *in = (const void *)buf;
	uint64_t held[HELD_MAX];
	unsigned int held_count = 0;
	bool interrupted = false, is_ready = is_plain;

	if (is_plain)
		say_ready(ready);
	while (!ended) {
		struct pollfd asked = { .fd = fd, .events = POLLIN };
		bool let_go = is_ready ? access(release, F_OK) == 0 : interrupted;

		while (let_go && held_count > 0)
			answer(fd, held[--held_count], 0, NULL, 0);
		if (!is_ready && waitpid(-1, NULL, WNOHANG) > 0) {
			is_ready = true;
			say_ready(ready);
		}
		if (poll(&asked, 1, LOOK_MS) <= 0 || !(asked.revents & POLLIN))
			continue;
		if (read(fd, buf, sizeof(buf)) < (ssize_t)sizeof(*in))
			continue;
		if (in->opcode == FUSE_INTERRUPT)
			interrupted = true;
		/* Whoever answers this one refuses all others. */
		if (in->opcode == FUSE_INTERRUPT && is_plain)
			continue;
		if (in->opcode == FUSE_FLUSH && held_count < HELD_MAX)
			held[held_count++] = in->unique;
		else
			answer_any(fd, in);
	}
}

static int execute(char **argv)
{
	if (open(argv[0], O_RDONLY | O_CLOEXEC) < 0)
		die(argv[0]);
	execvp(argv[1], argv + 1);
	die(argv[1]);
	return 1;
}

#if defined(__x86_64__)
/* Its pointers have 32 bits: the path and an empty vector are in a page there. */
static int execute_32(char **argv)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long ret = 11; /* execve, arch/x86/entry/syscalls/syscall_32.tbl */

	if (low == MAP_FAILED)
		die("mmap");
	snprintf(low + 64, 4096 - 64, "%s", argv[1]);
	if (open(argv[0], O_RDONLY | O_CLOEXEC) < 0)
		die(argv[0]);
	asm volatile("int $0x80"
		     : "+a"(ret)
		     : "b"(low + 64), "c"(low), "d"(low)
		     : "memory", "r8", "r9", "r10", "r11");
	errno = (int)-ret;
	die(argv[1]);
	return 1;
}
#endif

#if defined(__x86_64__)
/* The kernel refuses one with this signal where it has none. */
static void on_refused(int signal)
{
	(void)signal;
	_exit(1);
}

static int has_32(void)
{
	long ret = 20; /* getpid, arch/x86/entry/syscalls/syscall_32.tbl */

	signal(SIGSEGV, on_refused);
	asm volatile("int $0x80" : "+a"(ret) : : "memory", "r8", "r9", "r10", "r11");
	return ret == getpid() ? 0 : 1;
}

static int read_32(char **argv)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
	long ret = 180; /* pread64, arch/x86/entry/syscalls/syscall_32.tbl */

	if (low == MAP_FAILED || fd < 0)
		die(argv[0]);
	asm volatile("int $0x80"
		     : "+a"(ret)
		     : "b"((long)fd), "c"(low), "d"(atol(argv[1])), "S"(atol(argv[2])), "D"(0L)
		     : "memory", "r8", "r9", "r10", "r11");
	if (ret != atol(argv[1]))
		die("pread64");
	pause();
	return 0;
}
#endif

static void *read_and_execute(void *arg)
{
	char **argv = arg;
	char buf[511];
	int fd = open(argv[0], O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buf, sizeof(buf)) != sizeof(buf))
		die(argv[0]);
	execvp(argv[1], argv + 1);
	die(argv[1]);
	return NULL;
}

static int execute_by_thread(char **argv)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, read_and_execute, argv) != 0)
		die("pthread_create");
	for (;;)
		pause();
}

static int stay(const char *ready)
{
	say_ready(ready);
	for (;;)
		pause();
}

static int listen_to(char **argv)
{
	int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);

	if (fd < 0 ||
		fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_PERM, AT_FDCWD, argv[0]) <
			0)
		die("fanotify");
	return stay(argv[1]);
}

static int bind_to(char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[0]);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die(argv[0]);
	return stay(argv[1]);
}

int main(int argc, char **argv)
{
	char options[128];
	int fd;

	if (argc >= 4 && strcmp(argv[1], "--exec") == 0)
		return execute(argv + 2);
#if defined(__x86_64__)
	if (argc == 4 && strcmp(argv[1], "--exec32") == 0)
		return execute_32(argv + 2);
	if (argc == 2 && strcmp(argv[1], "--has32") == 0)
		return has_32();
	if (argc == 5 && strcmp(argv[1], "--pread32") == 0)
		return read_32(argv + 2);
#endif
	if (argc >= 4 && strcmp(argv[1], "--exec-thread") == 0)
		return execute_by_thread(argv + 2);
	if (argc == 4 && strcmp(argv[1], "--listen") == 0)
		return listen_to(argv + 2);
	if (argc == 4 && strcmp(argv[1], "--bind") == 0)
		return bind_to(argv + 2);
	if (argc == 5 && strcmp(argv[1], "--plain") == 0) {
		is_plain = true;
		argv++;
		argc--;
	}
	if (argc != 4) {
		fprintf(stderr, "usage: fusehang [--plain] DIR READY RELEASE\n");
		return 2;
	}
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("fusehang", argv[1], "fuse.fusehang", MS_NOSUID | MS_NODEV, options) < 0)
		die("mount");
	signal(SIGTERM, on_end);
	signal(SIGINT, on_end);
	if (!is_plain && start_child(argv[1]) < 0)
		die("fork");
	serve(fd, argv[2], argv[3]);
	umount2(argv[1], MNT_DETACH);
	return 0;
}
