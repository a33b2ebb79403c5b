// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A workload that submits asynchronous requests, by io_uring or by libaio's system calls, and
 * measures each from its submission to its completion: one JSON line per request, in the form of
 * stallio. With --idle it waits for a request that nothing on a disk can end, until it is killed.
 * Build: cc requestio.c
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ull
#define GO_TIMEOUT_NS (120 * NSEC_PER_SEC)
#define REQUESTS_MAX 128
#define PAGE_BYTES 4096

enum op { OP_READ, OP_WRITE, OP_FSYNC };
static const char *const op_names[] = { "read", "write", "fsync" };

struct options {
	bool aio; /* else io_uring */
	bool direct;
	bool vectored;	 /* two parts a request */
	bool worker;	 /* IOSQE_ASYNC: a kernel thread carries it out */
	bool registered; /* the file has no descriptor in the request */
	enum op op;
	const char *path;
	const char *ready_path;
	const char *go_path;
	const char *stay_path; /* the ring or context is kept until it exists */
	const char *comm;
	const char *idle; /* what its request waits for */
	uint64_t count;
	uint64_t offset;
	uint64_t length;
	int hold_fd;
};

struct request {
	uint64_t offset;
	uint64_t start_ns;
	struct iovec parts[2];
	struct iocb iocb;
};

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_array, *sq_mask;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

struct run {
	struct options opt;
	struct request requests[REQUESTS_MAX];
	struct ring ring;
	aio_context_t context;
	unsigned char *buffer;
	char path[PAGE_BYTES];
	struct stat st;
	int fd;
	unsigned int failures;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int fail(const char *what)
{
	fprintf(stderr, "requestio: %s: %s\n", what, strerror(errno));
	return -1;
}

/*
 * --- io_uring
 * -------------------------------------------------------------------------------------
 */

static int ring_open(struct run *run)
{
	struct io_uring_params p = {};
	struct ring *ring = &run->ring;
	unsigned char *sq, *cq;

	ring->fd = (int)syscall(SYS_io_uring_setup, REQUESTS_MAX, &p);
	if (ring->fd < 0)
		return fail("io_uring_setup");
	/* A low number could be the one that a request shall have. */
	ring->fd = fcntl(ring->fd, F_DUPFD_CLOEXEC, 900);
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned int),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring->sqes == MAP_FAILED)
		return fail("mmap");
	ring->sq_tail = (unsigned int *)(sq + p.sq_off.tail);
	ring->sq_mask = (unsigned int *)(sq + p.sq_off.ring_mask);
	ring->sq_array = (unsigned int *)(sq + p.sq_off.array);
	ring->cq_head = (unsigned int *)(cq + p.cq_off.head);
	ring->cq_tail = (unsigned int *)(cq + p.cq_off.tail);
	ring->cq_mask = (unsigned int *)(cq + p.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	if (run->opt.registered &&
		syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES, &run->fd, 1) < 0)
		return fail("io_uring_register");
	return 0;
}

static void ring_fill(struct run *run, uint64_t index)
{
	static const unsigned char opcodes[][2] = {
		{ IORING_OP_READ, IORING_OP_READV },
		{ IORING_OP_WRITE, IORING_OP_WRITEV },
		{ IORING_OP_FSYNC, IORING_OP_FSYNC },
	};
	const struct options *opt = &run->opt;
	struct request *r = &run->requests[index];
	struct ring *ring = &run->ring;
	unsigned int tail = *ring->sq_tail, slot = tail & *ring->sq_mask;
	struct io_uring_sqe *sqe = &ring->sqes[slot];

	*sqe = (struct io_uring_sqe){
		.opcode = opcodes[opt->op][opt->vectored],
		.fd = opt->registered ? 0 : run->fd,
		.user_data = (uint64_t)(uintptr_t)r,
		.flags = (unsigned char)((opt->worker ? IOSQE_ASYNC : 0) |
			(opt->registered ? IOSQE_FIXED_FILE : 0)),
	};
	if (opt->op != OP_FSYNC) {
		sqe->off = r->offset;
		sqe->addr = (uint64_t)(uintptr_t)(opt->vectored ? (void *)r->parts
								: r->parts[0].iov_base);
		sqe->len = opt->vectored ? 2 : (unsigned int)opt->length;
	}
	ring->sq_array[slot] = slot;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static int ring_submit(struct run *run)
{
	for (uint64_t i = 0; i < run->opt.count; i++)
		ring_fill(run, i);
	if (syscall(SYS_io_uring_enter, run->ring.fd, run->opt.count, 0, 0, NULL, 0) !=
		(long)run->opt.count)
		return fail("io_uring_enter");
	return 0;
}

static int ring_reap(struct run *run, struct request **ret_request, int64_t *ret_result)
{
	struct ring *ring = &run->ring;
	unsigned int head = *ring->cq_head;
	const struct io_uring_cqe *cqe;

	while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		if (syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) <
				0 &&
			errno != EINTR)
			return fail("io_uring_enter");
	cqe = &ring->cqes[head & *ring->cq_mask];
	*ret_request = (struct request *)(uintptr_t)cqe->user_data;
	*ret_result = cqe->res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return 0;
}

/* Waits as a server does that has nothing to do: until a socket or a pipe has something. */
static int idle(struct run *run)
{
	static char byte;
	const bool is_socket = strcmp(run->opt.idle, "socket") == 0;
	struct ring *ring = &run->ring;
	int fds[2], r = is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, fds) : pipe(fds);

	if (r < 0)
		return fail(run->opt.idle);
	if (ring_open(run) < 0)
		return -1;
	ring->sqes[0] = (struct io_uring_sqe){
		.opcode = is_socket ? IORING_OP_POLL_ADD : IORING_OP_READ,
		.fd = fds[0],
	};
	if (is_socket) {
		ring->sqes[0].poll32_events = POLLIN;
	} else {
		ring->sqes[0].addr = (uint64_t)(uintptr_t)&byte;
		ring->sqes[0].len = 1;
	}
	ring->sq_array[0] = 0;
	__atomic_store_n(ring->sq_tail, 1, __ATOMIC_RELEASE);
	r = (int)syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	fprintf(stderr, "requestio: the wait for a %s has ended: %d\n", run->opt.idle, r);
	return -1;
}

/*
 * --- libaio
 * ---------------------------------------------------------------------------------------
 */

static int aio_submit(struct run *run)
{
	static const unsigned short opcodes[][2] = {
		{ IOCB_CMD_PREAD, IOCB_CMD_PREADV },
		{ IOCB_CMD_PWRITE, IOCB_CMD_PWRITEV },
		{ IOCB_CMD_FSYNC, IOCB_CMD_FSYNC },
	};
	const struct options *opt = &run->opt;
	struct iocb *list[REQUESTS_MAX];

	for (uint64_t i = 0; i < opt->count; i++) {
		struct request *r = &run->requests[i];

		r->iocb = (struct iocb){
			.aio_data = (uint64_t)(uintptr_t)r,
			.aio_lio_opcode = opcodes[opt->op][opt->vectored],
			.aio_fildes = (uint32_t)run->fd,
			.aio_buf = (uint64_t)(uintptr_t)(opt->vectored ? (void *)r->parts
								       : r->parts[0].iov_base),
			.aio_nbytes = opt->vectored ? 2 : opt->length,
			.aio_offset = (int64_t)r->offset,
		};
		list[i] = &r->iocb;
	}
	if (syscall(SYS_io_submit, run->context, (long)opt->count, list) != (long)opt->count)
		return fail("io_submit");
	return 0;
}

static int aio_reap(struct run *run, struct request **ret_request, int64_t *ret_result)
{
	struct io_event event;

	while (syscall(SYS_io_getevents, run->context, 1L, 1L, &event, NULL) != 1)
		if (errno != EINTR)
			return fail("io_getevents");
	*ret_request = (struct request *)(uintptr_t)event.data;
	*ret_result = event.res;
	return 0;
}

/*
 * --- either
 * ---------------------------------------------------------------------------------------
 */

static int open_file(struct run *run)
{
	const struct options *opt = &run->opt;
	int flags = (opt->op == OP_READ ? O_RDONLY : O_RDWR) | (opt->direct ? O_DIRECT : 0);
	char link[32];
	ssize_t n;

	run->fd = open(opt->path, flags | O_CLOEXEC);
	if (run->fd < 0)
		return fail(opt->path);
	if (opt->hold_fd) {
		int fd = dup3(run->fd, opt->hold_fd, O_CLOEXEC);

		if (fd < 0)
			return fail("dup3");
		close(run->fd);
		run->fd = fd;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", run->fd);
	n = readlink(link, run->path, sizeof(run->path) - 1);
	if (n < 0 || fstat(run->fd, &run->st) < 0)
		return fail(link);
	/* Neighbours' pages shall not come along. */
	posix_fadvise(run->fd, 0, 0, POSIX_FADV_RANDOM);
	posix_fadvise(run->fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int prepare(struct run *run)
{
	const struct options *opt = &run->opt;
	uint64_t stride = (opt->length + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	void *buffer;

	if (opt->comm)
		prctl(PR_SET_NAME, opt->comm);
	if (posix_memalign(&buffer, PAGE_BYTES, stride * opt->count + PAGE_BYTES))
		return fail("buffer");
	run->buffer = buffer;
	memset(run->buffer, 0xa5, stride * opt->count);
	for (uint64_t i = 0; i < opt->count; i++) {
		struct request *r = &run->requests[i];

		r->offset = opt->op == OP_FSYNC ? 0 : opt->offset + i * stride;
		r->parts[0] = (struct iovec){ run->buffer + i * stride, opt->length };
		if (opt->vectored) {
			r->parts[0].iov_len = 512;
			r->parts[1] =
				(struct iovec){ run->buffer + i * stride + 512, opt->length - 512 };
		}
	}
	if (open_file(run) < 0)
		return -1;
	/* Something to sync: a whole page, which needs no reading. */
	if (opt->op == OP_FSYNC && pwrite(run->fd, run->buffer, PAGE_BYTES, 0) != PAGE_BYTES)
		return fail("pwrite");
	if (!opt->aio)
		return ring_open(run);
	return syscall(SYS_io_setup, REQUESTS_MAX, &run->context) < 0 ? fail("io_setup") : 0;
}

static void print_request(struct run *run, const struct request *r, int64_t result, uint64_t end_ns)
{
	const struct options *opt = &run->opt;
	char comm[16] = "";

	prctl(PR_GET_NAME, comm);
	printf("{\"pid\":%d,\"tid\":%d,\"comm\":\"%s\",\"fd\":%d,\"path\":\"%s\",\"dev\":\"%u:%u\","
	       "\"inode\":%ju,\"op\":\"%s\",\"offset\":",
		getpid(), gettid(), comm, run->fd, run->path, major(run->st.st_dev),
		minor(run->st.st_dev), (uintmax_t)run->st.st_ino, op_names[opt->op]);
	if (opt->op == OP_FSYNC)
		printf("null,\"bytes\":null");
	else
		printf("%" PRIu64 ",\"bytes\":%" PRIu64, r->offset, opt->length);
	printf(",\"ret\":%" PRId64 ",\"start_mono_ns\":%" PRIu64 ",\"dur_ns\":%" PRIu64 "}\n",
		result, r->start_ns, end_ns - r->start_ns);
	if (result != (opt->op == OP_FSYNC ? 0 : (int64_t)opt->length))
		run->failures++;
}

/* NULL: nothing is waited for. */
static int wait_for_file(const char *path)
{
	uint64_t deadline_ns = now_ns() + GO_TIMEOUT_NS;

	while (path && access(path, F_OK) < 0) {
		if (now_ns() > deadline_ns) {
			errno = ETIMEDOUT;
			return fail(path);
		}
		usleep(2000);
	}
	return 0;
}

static int wait_for_go(const struct options *opt)
{
	FILE *ready = opt->ready_path ? fopen(opt->ready_path, "we") : NULL;

	if (opt->ready_path && (!ready || fprintf(ready, "%d\n", getpid()) < 0 || fclose(ready)))
		return fail(opt->ready_path);
	return wait_for_file(opt->go_path);
}

static int work(struct run *run)
{
	const struct options *opt = &run->opt;
	struct request *r;
	int64_t result;

	for (uint64_t i = 0; i < opt->count; i++)
		run->requests[i].start_ns = now_ns();
	if ((opt->aio ? aio_submit(run) : ring_submit(run)) < 0)
		return -1;
	for (uint64_t i = 0; i < opt->count; i++) {
		if ((opt->aio ? aio_reap(run, &r, &result) : ring_reap(run, &r, &result)) < 0)
			return -1;
		print_request(run, r, result, now_ns());
	}
	return fflush(stdout) || wait_for_file(opt->stay_path) < 0 || run->failures ? -1 : 0;
}

static int parse(int argc, char **argv, struct options *opt)
{
	static const struct option longs[] = {
		{ "engine", required_argument, NULL, 'e' },
		{ "op", required_argument, NULL, 'p' },
		{ "file", required_argument, NULL, 'f' },
		{ "count", required_argument, NULL, 'n' },
		{ "offset", required_argument, NULL, 'o' },
		{ "length", required_argument, NULL, 'l' },
		{ "hold-fd", required_argument, NULL, 'h' },
		{ "comm", required_argument, NULL, 'c' },
		{ "idle", required_argument, NULL, 'i' },
		{ "ready", required_argument, NULL, 'r' },
		{ "go", required_argument, NULL, 'g' },
		{ "stay", required_argument, NULL, 's' },
		{ "direct", no_argument, NULL, 'D' },
		{ "vectored", no_argument, NULL, 'V' },
		{ "worker", no_argument, NULL, 'W' },
		{ "registered", no_argument, NULL, 'R' },
		{},
	};
	int c;

	*opt = (struct options){ .count = 1, .length = PAGE_BYTES };
	while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		switch (c) {
		case 'e':
			opt->aio = strcmp(optarg, "aio") == 0;
			break;
		case 'p':
			opt->op = *optarg == 'r' ? OP_READ : *optarg == 'w' ? OP_WRITE : OP_FSYNC;
			break;
		case 'f':
			opt->path = optarg;
			break;
		case 'n':
			opt->count = strtoull(optarg, NULL, 10);
			break;
		case 'o':
			opt->offset = strtoull(optarg, NULL, 10);
			break;
		case 'l':
			opt->length = strtoull(optarg, NULL, 10);
			break;
		case 'h':
			opt->hold_fd = atoi(optarg);
			break;
		case 'c':
			opt->comm = optarg;
			break;
		case 'i':
			opt->idle = optarg;
			break;
		case 'r':
			opt->ready_path = optarg;
			break;
		case 'g':
			opt->go_path = optarg;
			break;
		case 's':
			opt->stay_path = optarg;
			break;
		case 'D':
			opt->direct = true;
			break;
		case 'V':
			opt->vectored = true;
			break;
		case 'W':
			opt->worker = true;
			break;
		case 'R':
			opt->registered = true;
			break;
		default:
			return -1;
		}
	}
	return (opt->path || opt->idle) && opt->count <= REQUESTS_MAX &&
			(!opt->vectored || opt->length > 512)
		? 0
		: -1;
}

int main(int argc, char **argv)
{
	static struct run run;

	if (parse(argc, argv, &run.opt) < 0) {
		fprintf(stderr,
			"requestio --engine uring|aio --op read|write|fsync --file FILE [--count N] "
			"[--offset B] [--length B]\n  [--direct] [--vectored] [--worker] [--registered] "
			"[--hold-fd FD] [--comm NAME] [--ready FILE] [--go FILE] [--stay FILE]\n"
			"requestio --idle socket|pipe\n");
		return 2;
	}
	if (run.opt.idle)
		return idle(&run) < 0;
	return prepare(&run) < 0 || wait_for_go(&run.opt) < 0 || work(&run) < 0;
}
