// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A workload that measures itself: every operation is timed around its system call and printed as
 * one JSON line, so a test can hold what a tracer reports against what the stalled program saw.
 * Build: cc -pthread stallio.c stallio_options.c
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "stallio_options.h"

#define NSEC_PER_SEC 1000000000ull
/* A test that never gives the signal must not leave threads behind. */
#define GO_TIMEOUT_NS (120 * NSEC_PER_SEC)
#define GO_POLL_NS 2000000
/* Below the 0.95 s in a second after which a thread of real-time priority must pause. */
#define AGAIN_NS (600 * 1000000ull)
#define STAY_TIMEOUT_NS (600 * NSEC_PER_SEC)

struct run {
	struct options opt;
	pthread_barrier_t opened;
	pthread_barrier_t start;
	pthread_barrier_t returned;
	pthread_barrier_t end;
	pthread_mutex_t open_lock;
	atomic_bool stop;
	atomic_uint failures;
};

struct worker {
	struct run *run;
	uint64_t index;
	pthread_t thread;
	unsigned char *buffer;
	char path[STALLIO_PAGE_BYTES];
	dev_t dev;
	ino_t inode;
	int fd;
	int peer_fd;
	uint64_t spins;
};

struct timing {
	const char *op;
	uint64_t offset_bytes;
	uint64_t bytes;
	int64_t ret;
	uint64_t start_ns;
	uint64_t dur_ns;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static void spin_ns(uint64_t ns)
{
	uint64_t until_ns = now_ns() + ns;

	while (now_ns() < until_ns)
		;
}

/* A tracer would see a context switch between two calls: nothing of normal priority preempts it. */
static void raise_priority(void)
{
	const struct sched_param first = { .sched_priority = 1 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
}

static void worker_fail(struct worker *w, const char *what, int err)
{
	fprintf(stderr, "stallio: thread %" PRIu64 ": %s: %s\n", w->index, what, strerror(err));
	atomic_fetch_add(&w->run->failures, 1);
}

static void print_json_string(const char *text)
{
	putchar('"');
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			printf("\\u%04x", *p);
		else
			putchar(*p);
	}
	putchar('"');
}

static void print_timing(const struct worker *w, const struct timing *t)
{
	char comm[16] = "";

	prctl(PR_GET_NAME, comm);
	flockfile(stdout);
	printf("{\"pid\":%d,\"tid\":%d,\"comm\":", getpid(), gettid());
	print_json_string(comm);
	printf(",\"fd\":%d,\"path\":", w->fd);
	print_json_string(w->path);
	printf(",\"dev\":\"%u:%u\",\"inode\":%ju,\"op\":\"%s\"", major(w->dev), minor(w->dev),
		(uintmax_t)w->inode, t->op);
	printf(",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"ret\":%" PRId64, t->offset_bytes,
		t->bytes, t->ret);
	printf(",\"start_mono_ns\":%" PRIu64 ",\"dur_ns\":%" PRIu64 "}\n", t->start_ns, t->dur_ns);
	fflush(stdout);
	funlockfile(stdout);
}

/* A page belongs to one operation only, so that no thread waits for another one's request. */
static uint64_t stride_bytes(const struct options *opt)
{
	uint64_t pages = (opt->length_bytes + STALLIO_PAGE_BYTES - 1) / STALLIO_PAGE_BYTES;

	return pages * STALLIO_PAGE_BYTES;
}

static uint64_t worker_offset(const struct worker *w, uint64_t round)
{
	const struct options *opt = &w->run->opt;

	return opt->offset_bytes + (w->index * opt->count + round) * stride_bytes(opt);
}

static int open_file(const struct options *opt, int *ret_fd)
{
	int flags = opt->op->writes ? O_WRONLY | O_CREAT : O_RDONLY;
	int fd = open(opt->path, flags | O_CLOEXEC | (opt->direct ? O_DIRECT : 0), 0644);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int open_tty(int *ret_fd, int *ret_peer_fd)
{
	struct termios raw;
	char name[64];
	int master, fd, err;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0)
		return -errno;
	if (grantpt(master) < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) ||
		(fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
		err = -errno;
		close(master);
		return err;
	}
	if (!tcgetattr(fd, &raw)) {
		cfmakeraw(&raw);
		tcsetattr(fd, TCSANOW, &raw);
	}
	*ret_fd = fd;
	*ret_peer_fd = master;
	return 0;
}

static int open_source(const struct options *opt, int *ret_fd, int *ret_peer_fd)
{
	int fds[2];

	switch (opt->op->source) {
	case SOURCE_FILE:
		return open_file(opt, ret_fd);
	case SOURCE_TTY:
		return open_tty(ret_fd, ret_peer_fd);
	case SOURCE_PIPE:
		if (pipe2(fds, O_CLOEXEC) < 0)
			return -errno;
		break;
	case SOURCE_SOCKET:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
			return -errno;
		break;
	}
	*ret_fd = fds[0];
	*ret_peer_fd = fds[1];
	return 0;
}

/* The caller holds open_lock: without it another thread's open() could take the wanted number. */
static int move_fd(struct worker *w)
{
	const struct options *opt = &w->run->opt;
	int wanted, fd;

	if (!opt->hold_fd)
		return 0;
	wanted = (int)(opt->hold_fd + w->index);
	if (fcntl(wanted, F_GETFD) >= 0)
		return -EBUSY;
	fd = dup3(w->fd, wanted, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(w->fd);
	w->fd = fd;
	return 0;
}

static int move_peer(struct worker *w)
{
	int fd;

	if (!w->run->opt.hold_fd || w->peer_fd < 0)
		return 0;
	fd = fcntl(w->peer_fd, F_DUPFD_CLOEXEC, (int)(w->run->opt.hold_fd + w->run->opt.threads));
	if (fd < 0)
		return -errno;
	close(w->peer_fd);
	w->peer_fd = fd;
	return 0;
}

static int identify_file(struct worker *w)
{
	char link[32];
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", w->fd);
	n = readlink(link, w->path, sizeof(w->path) - 1);
	if (n < 0 || fstat(w->fd, &st) < 0)
		return -errno;
	w->path[n] = '\0';
	w->dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	w->inode = st.st_ino;
	return 0;
}

/*
 * Read-ahead would fetch the neighbours' pages: how much passes the disk could not be told. The
 * whole file is dropped, because a range that covers a large folio in part leaves it in the cache.
 */
static void prepare_cache(struct worker *w)
{
	const struct options *opt = &w->run->opt;

	if (opt->op->source != SOURCE_FILE || opt->direct)
		return;
	posix_fadvise(w->fd, 0, 0, POSIX_FADV_RANDOM);
	if (opt->op->spins)
		return;
	/* DONTNEED keeps dirty pages. A writer does not wait for them: its disk may hang. */
	if (!opt->op->writes)
		sync_file_range(w->fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void worker_prepare(struct worker *w)
{
	struct run *run = w->run;
	size_t size = (size_t)stride_bytes(&run->opt);
	void *buffer = NULL;
	int err;

	if (run->opt.comm)
		prctl(PR_SET_NAME, run->opt.comm);
	err = -posix_memalign(&buffer, STALLIO_PAGE_BYTES, size);
	if (!err) {
		w->buffer = buffer;
		memset(buffer, 0xa5, size);
		pthread_mutex_lock(&run->open_lock);
		err = open_source(&run->opt, &w->fd, &w->peer_fd);
		if (!err)
			err = move_fd(w);
		if (!err)
			err = move_peer(w);
		pthread_mutex_unlock(&run->open_lock);
	}
	if (!err)
		err = identify_file(w);
	if (err)
		worker_fail(w, run->opt.path ? run->opt.path : run->opt.op->name, -err);
	else
		prepare_cache(w);
}

/* More bytes than there is memory for. */
static ssize_t do_repeated(struct worker *w, uint64_t offset_bytes)
{
	const struct options *opt = &w->run->opt;
	struct iovec segments[STALLIO_SEGMENTS_MAX];
	int count = (int)opt->segments;

	for (int i = 0; i < count; i++)
		segments[i] = (struct iovec){ w->buffer, (size_t)opt->length_bytes };
	return opt->op->writes ? pwritev(w->fd, segments, count, (off_t)offset_bytes)
			       : preadv(w->fd, segments, count, (off_t)offset_bytes);
}

/* Three segments of different lengths, each of whole sectors where O_DIRECT asks for that. */
static ssize_t do_vectored(struct worker *w, uint64_t offset_bytes)
{
	const struct options *opt = &w->run->opt;
	size_t unit = opt->direct ? 512 : 1, first = unit;
	size_t second = (size_t)opt->length_bytes / 3 / unit * unit;
	struct iovec segments[3] = {
		{ w->buffer, first },
		{ w->buffer + first, second },
		{ w->buffer + first + second, (size_t)opt->length_bytes - first - second },
	};

	return opt->op->writes ? pwritev(w->fd, segments, 3, (off_t)offset_bytes)
			       : preadv(w->fd, segments, 3, (off_t)offset_bytes);
}

static ssize_t do_operation(struct worker *w, uint64_t offset_bytes)
{
	const struct operation *op = w->run->opt.op;
	size_t length = (size_t)w->run->opt.length_bytes;

	if (op->vectored && w->run->opt.segments)
		return do_repeated(w, offset_bytes);
	if (op->vectored)
		return do_vectored(w, offset_bytes);
	if (op->positional)
		return op->writes ? pwrite(w->fd, w->buffer, length, (off_t)offset_bytes)
				  : pread(w->fd, w->buffer, length, (off_t)offset_bytes);
	return op->writes ? write(w->fd, w->buffer, length) : read(w->fd, w->buffer, length);
}

static struct timing time_operation(struct worker *w, uint64_t offset_bytes)
{
	const struct options *opt = &w->run->opt;
	struct timing t = { .op = opt->op->name,
		.offset_bytes = offset_bytes,
		.bytes = opt->length_bytes * (opt->segments ? opt->segments : 1) };

	t.start_ns = now_ns();
	t.ret = do_operation(w, offset_bytes);
	t.dur_ns = now_ns() - t.start_ns;
	if (t.ret < 0)
		t.ret = -errno;
	return t;
}

static struct timing time_fsync(struct worker *w, uint64_t offset_bytes)
{
	struct timing t = { .op = "fsync" };

	(void)offset_bytes;
	t.start_ns = now_ns();
	/* Through syscall(), so that all registers have the same values each time. */
	t.ret = syscall(SYS_fsync, w->fd, 0, 0, 0, 0, 0);
	t.dur_ns = now_ns() - t.start_ns;
	if (t.ret < 0)
		t.ret = -errno;
	return t;
}

static void report(struct worker *w, const struct timing *t)
{
	print_timing(w, t);
	if (t->ret != (int64_t)t->bytes)
		worker_fail(w, t->ret < 0 ? t->op : "short transfer",
			t->ret < 0 ? (int)-t->ret : EIO);
}

/* Both are printed afterwards, since a write would tell the second call from the first. */
static void run_timed(struct worker *w, uint64_t offset_bytes, bool again,
	struct timing (*run)(struct worker *, uint64_t))
{
	struct timing first = run(w, offset_bytes), second;

	if (again) {
		spin_ns(AGAIN_NS);
		second = run(w, offset_bytes);
	}
	report(w, &first);
	if (again)
		report(w, &second);
}

static void run_round(struct worker *w, uint64_t round)
{
	const struct options *opt = &w->run->opt;
	uint64_t offset_bytes = 0;

	if (opt->op->source == SOURCE_FILE) {
		offset_bytes = worker_offset(w, round);
		if (!opt->op->positional && lseek(w->fd, (off_t)offset_bytes, SEEK_SET) < 0)
			return worker_fail(w, "lseek", errno);
	}
	run_timed(w, offset_bytes, opt->again && !opt->fsync, time_operation);
	if (opt->fsync)
		run_timed(w, 0, opt->again, time_fsync);
}

static void run_spin(struct worker *w)
{
	off_t offset = (off_t)worker_offset(w, 0);

	while (!atomic_load_explicit(&w->run->stop, memory_order_relaxed)) {
		if (pread(w->fd, w->buffer, 1, offset) != 1)
			return worker_fail(w, "spin-read", EIO);
		w->spins++;
	}
}

static void run_operations(struct worker *w)
{
	const struct options *opt = &w->run->opt;

	if (opt->op->spins && !atomic_load(&w->run->stop))
		return run_spin(w);
	for (uint64_t i = 0; i < opt->count && !atomic_load(&w->run->stop); i++)
		run_round(w, i);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	worker_prepare(w);
	if (w->run->opt.again)
		raise_priority();
	pthread_barrier_wait(&w->run->opened);
	pthread_barrier_wait(&w->run->start);
	run_operations(w);
	if (w->run->opt.stay_path) {
		pthread_barrier_wait(&w->run->returned);
		pthread_barrier_wait(&w->run->end);
	}
	return NULL;
}

static int write_ready(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return -errno;
	fprintf(file, "%d\n", getpid());
	return fclose(file) ? -errno : 0;
}

static int wait_for_file(const char *path, uint64_t timeout_ns)
{
	uint64_t deadline_ns = now_ns() + timeout_ns;

	while (access(path, F_OK) < 0) {
		if (now_ns() > deadline_ns)
			return -ETIMEDOUT;
		sleep_ns(GO_POLL_NS);
	}
	return 0;
}

static void run_fail(struct run *run, const char *what, int err)
{
	fprintf(stderr, "stallio: %s: %s\n", what, strerror(-err));
	atomic_fetch_add(&run->failures, 1);
}

/* The threads wait at the second barrier meanwhile: they start together, or not at all. */
static void hold_start(struct run *run)
{
	int err = 0;

	if (run->opt.ready_path && !atomic_load(&run->failures)) {
		err = write_ready(run->opt.ready_path);
		if (err)
			run_fail(run, run->opt.ready_path, err);
	}
	if (run->opt.go_path && !atomic_load(&run->failures)) {
		err = wait_for_file(run->opt.go_path, GO_TIMEOUT_NS);
		if (err)
			run_fail(run, run->opt.go_path, err);
	}
	if (atomic_load(&run->failures))
		atomic_store(&run->stop, true);
}

/*
 * Whoever looks at a thread after its operation has returned, as a tracer does, finds it there,
 * with its process. At the barriers even when something failed: the threads are.
 */
static void hold_end(struct run *run)
{
	int err = 0;

	if (!run->opt.stay_path)
		return;
	pthread_barrier_wait(&run->returned);
	if (run->opt.done_path) {
		err = write_ready(run->opt.done_path);
		if (err)
			run_fail(run, run->opt.done_path, err);
	}
	if (!atomic_load(&run->failures)) {
		err = wait_for_file(run->opt.stay_path, STAY_TIMEOUT_NS);
		if (err)
			run_fail(run, run->opt.stay_path, err);
	}
	pthread_barrier_wait(&run->end);
}

static void end_waits(struct run *run, struct worker *workers)
{
	sleep_ns(run->opt.seconds * NSEC_PER_SEC);
	if (run->opt.op->spins)
		atomic_store(&run->stop, true);
	for (uint64_t i = 0; i < run->opt.threads; i++) {
		if (workers[i].peer_fd >= 0 && write(workers[i].peer_fd, "x", 1) != 1)
			run_fail(run, "release", -errno);
	}
}

static void print_spins(const struct run *run, const struct worker *workers, uint64_t dur_ns)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < run->opt.threads; i++)
		count += workers[i].spins;
	printf("{\"pid\":%d,\"op\":\"spin-read\",\"threads\":%" PRIu64 ",\"count\":%" PRIu64
	       ",\"dur_ns\":%" PRIu64 "}\n",
		getpid(), run->opt.threads, count, dur_ns);
}

static int run_workers(struct run *run, struct worker *workers)
{
	uint64_t start_ns;
	int err;

	for (uint64_t i = 0; i < run->opt.threads; i++) {
		workers[i] = (struct worker){ .run = run, .index = i, .fd = -1, .peer_fd = -1 };
		err = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
		if (err) {
			/* The others wait at a barrier that cannot fill: exit ends them. */
			run_fail(run, "pthread_create", -err);
			return -err;
		}
	}
	pthread_barrier_wait(&run->opened);
	hold_start(run);
	pthread_barrier_wait(&run->start);
	start_ns = now_ns();
	if (run->opt.seconds && !atomic_load(&run->stop))
		end_waits(run, workers);
	hold_end(run);
	for (uint64_t i = 0; i < run->opt.threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (run->opt.op->spins)
		print_spins(run, workers, now_ns() - start_ns);
	for (uint64_t i = 0; i < run->opt.threads; i++)
		free(workers[i].buffer);
	return 0;
}

int main(int argc, char **argv)
{
	struct run run = { .open_lock = PTHREAD_MUTEX_INITIALIZER };
	struct worker *workers;
	unsigned int parties;

	if (stallio_options_parse(argc, argv, &run.opt))
		return 2;
	workers = calloc((size_t)run.opt.threads, sizeof(*workers));
	if (!workers) {
		fprintf(stderr, "stallio: out of memory\n");
		return 1;
	}
	parties = (unsigned int)run.opt.threads + 1;
	pthread_barrier_init(&run.opened, NULL, parties);
	pthread_barrier_init(&run.start, NULL, parties);
	pthread_barrier_init(&run.returned, NULL, parties);
	pthread_barrier_init(&run.end, NULL, parties);
	if (run_workers(&run, workers))
		return 1;
	free(workers);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "stallio: standard output: %s\n", strerror(errno));
		return 1;
	}
	return atomic_load(&run.failures) ? 1 : 0;
}
