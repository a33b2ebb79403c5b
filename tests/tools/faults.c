// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A library for LD_PRELOAD that makes the Nth call of a kind fail, or moves the clock of the day,
 * as the page that FAULTS_FILE names says at the time of the call. Tests change that page while
 * the program runs.
 * Build: cc -shared -fPIC faults.c -ldl
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ll

enum kind {
	KIND_NONE,
	KIND_MEMORY,
	KIND_DESCRIPTOR,
	KIND_THREAD,
	KIND_MAPPING,
	KIND_BPF,
	KIND_COUNT
};

/* In this order in the file, 64 bits each; written by tests/chaos/inject-runs and clock. */
struct page {
	uint64_t kind;	  /* the kind of call that fails; KIND_NONE: none */
	uint64_t first;	  /* the first call that fails, counted from 1 */
	uint64_t failing; /* how many fail from there on */
	uint64_t failed;  /* how many have failed */
	int64_t clock_ns; /* added to the clock of the day */
	uint64_t count[KIND_COUNT];
};

static struct page nothing;
static struct page *page = &nothing;
static long (*real_syscall)(long, ...);

/* glibc's own names of what is replaced here. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void faults_begin(void)
{
	const char *path = getenv("FAULTS_FILE");
	void *map;
	int fd;

	real_syscall = next("syscall");
	fd = path ? (int)real_syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	map = (void *)real_syscall(SYS_mmap, NULL, sizeof(struct page), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	real_syscall(SYS_close, fd);
	if (map != MAP_FAILED)
		page = map;
}

/* Counts a call, and says whether it is to fail. */
static int fails(enum kind kind, int error)
{
	uint64_t n = __atomic_add_fetch(&page->count[kind], 1, __ATOMIC_RELAXED);

	if (__atomic_load_n(&page->kind, __ATOMIC_RELAXED) != kind || n < page->first ||
		n - page->first >= page->failing)
		return 0;
	__atomic_add_fetch(&page->failed, 1, __ATOMIC_RELAXED);
	errno = error;
	return 1;
}

void *malloc(size_t size)
{
	return fails(KIND_MEMORY, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(KIND_MEMORY, ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails(KIND_MEMORY, ENOMEM) ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	if (fails(KIND_MEMORY, ENOMEM))
		return ENOMEM;
	*ret = __libc_memalign(alignment, size);
	return *ret ? 0 : ENOMEM;
}

#define OPEN(name, at_of, path_of, ...)                                                            \
	int name(__VA_ARGS__, int flags, ...)                                                      \
	{                                                                                          \
		unsigned int mode = 0;                                                             \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, flags);                                                               \
		if (flags & (O_CREAT | O_TMPFILE))                                                 \
			mode = va_arg(ap, unsigned int);                                           \
		va_end(ap);                                                                        \
		if (fails(KIND_DESCRIPTOR, EMFILE))                                                \
			return -1;                                                                 \
		return (int)real_syscall(SYS_openat, at_of, path_of, flags, mode);                 \
	}

OPEN(open, AT_FDCWD, path, const char *path)
OPEN(open64, AT_FDCWD, path, const char *path)
OPEN(openat, at, path, int at, const char *path)
OPEN(openat64, at, path, int at, const char *path)

#define STREAM(name, type, names, ...)                                                             \
	type *name(__VA_ARGS__)                                                                    \
	{                                                                                          \
		static type *(*real)(__VA_ARGS__);                                                 \
                                                                                                   \
		if (!real)                                                                         \
			real = next(#name);                                                        \
		return fails(KIND_DESCRIPTOR, EMFILE) ? NULL : real names;                         \
	}

STREAM(fopen, FILE, (path, mode), const char *path, const char *mode)
STREAM(fopen64, FILE, (path, mode), const char *path, const char *mode)
STREAM(opendir, DIR, (path), const char *path)
STREAM(fdopendir, DIR, (fd), int fd)

#define DESCRIPTOR(name, names, ...)                                                               \
	int name(__VA_ARGS__)                                                                      \
	{                                                                                          \
		static int (*real)(__VA_ARGS__);                                                   \
                                                                                                   \
		if (!real)                                                                         \
			real = next(#name);                                                        \
		return fails(KIND_DESCRIPTOR, EMFILE) ? -1 : real names;                           \
	}

DESCRIPTOR(socket, (domain, type, protocol), int domain, int type, int protocol)
DESCRIPTOR(socketpair, (domain, type, protocol, fds), int domain, int type, int protocol,
	int fds[2])
DESCRIPTOR(accept4, (fd, address, size, flags), int fd, __SOCKADDR_ARG address, socklen_t *size,
	int flags)
DESCRIPTOR(pipe2, (fds, flags), int fds[2], int flags)
DESCRIPTOR(eventfd, (value, flags), unsigned int value, int flags)
DESCRIPTOR(epoll_create1, (flags), int flags)
DESCRIPTOR(timerfd_create, (clock, flags), clockid_t clock, int flags)
DESCRIPTOR(signalfd, (fd, mask, flags), int fd, const sigset_t *mask, int flags)

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		real = next("pthread_create");
	return fails(KIND_THREAD, EAGAIN) ? EAGAIN : real(thread, attr, run, arg);
}

pid_t fork(void)
{
	static pid_t (*real)(void);

	if (!real)
		real = next("fork");
	return fails(KIND_THREAD, EAGAIN) ? -1 : real();
}

static void *map_pages(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fails(KIND_MAPPING, ENOMEM))
		return MAP_FAILED;
	return (void *)real_syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return map_pages(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
	return map_pages(at, size, protection, flags, fd, offset);
}

/* libbpf has no other way to the kernel. */
long syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if ((number == SYS_bpf || number == SYS_perf_event_open) && fails(KIND_BPF, ENOMEM))
		return -1;
	if (!real_syscall)
		real_syscall = next("syscall");
	return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int64_t ns;

	if (real_syscall(SYS_clock_gettime, clock, ret_time) < 0)
		return -1;
	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return 0;
	ns = ret_time->tv_sec * NSEC_PER_SEC + ret_time->tv_nsec +
		__atomic_load_n(&page->clock_ns, __ATOMIC_RELAXED);
	ret_time->tv_sec = ns / NSEC_PER_SEC;
	ret_time->tv_nsec = ns % NSEC_PER_SEC;
	return 0;
}

time_t time(time_t *ret_time)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*ret_time = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}
