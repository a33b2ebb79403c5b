/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockhold can-MODE: exits 0 if the kernel has its call, 1 if not.
 * lockhold MODE WAITERS SECONDS GO READY [FILE]: one thread holds a lock, and WAITERS others need
 * it again and again. By MODE, it is
 * populate, fault, mlock, mremap: mmap_lock, held for about SECONDS while a large area is mapped,
 * touched by the kernel, locked, or made larger with that; with populate a thread "napper" begins
 * to sleep again and again meanwhile, and goes on for a while;
 * munmap: the same lock, while a large area is unmapped;
 * append: that of the inode of FILE, held while SECONDS MiB are appended to it past the cache;
 * position: that of the position in FILE, held while a page is read there; every other thread
 * needs it some seconds later only;
 * mutex: one of this program, held while the thread sleeps for SECONDS or, with FILE, reads the
 * first page of that past the cache;
 * deadlock: two threads hold a mutex each and wait for that of the other, one of them for SECONDS.
 *
 * READY is made when all threads run, and the long operation begins when GO exists. What each
 * thread measured is printed in the end, in one line of JSON.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAITERS_MAX 10000
/* Where threads may have as little. */
#define STACK_BYTES 65536
#define SMALL 65536
/* Between two operations of a waiter, so that they leave the CPUs to the holder. */
#define PAUSE_NS 2000000
#define PAUSE_OF_MANY_NS 900000000
#define MANY 64
#define LATE_S 5
#define NAP_NS 50000000
#define NAPS_AFTER 30
/*
 * Pages of an area that is only read are all the same page of zeros on most kernels, so a GiB takes
 * 2 MiB of page tables and no other memory. Others give it memory, of which half of what there is
 * may be taken.
 */
#define SAMPLE_BYTES (128UL << 20)
/*
 * Pages of a file are mapped sixteen at a time, which takes some three times as long as to unmap
 * them; those of an anonymous area take ten times as long. A process may have 65530 mappings.
 */
#define CHUNK_BYTES (32UL << 20)
#define CHUNKS_MAX 60000
/* What the page tables of so many bytes take. */
#define TABLE_BYTES(bytes) ((bytes) / 512)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
/* Where the file is appended to. */
#define FILE_BYTES (1L << 20)

struct waiter {
	pthread_t thread;
	int tid;
	uint64_t longest_ns;
	uint64_t begun_ns; /* of the longest */
};

static struct {
	const char *mode;
	uint64_t ns; /* that the long operation is to take */
	size_t bytes;
	size_t chunks;
	size_t append_bytes;
	const char *path; /* NULL: it is about mmap_lock */
	int fd;
	char *area;
	volatile bool is_held; /* or about to be */
	volatile bool done;
	struct waiter waiters[WAITERS_MAX];
	unsigned int count;
} run;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "lockhold: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){ 0, ns }, NULL);
}

static void map_and_unmap(void)
{
	void *p = mmap(NULL, SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p, SMALL) < 0)
		fail("mmap");
}

static void write_a_little(void)
{
	static const char block[512];

	if (pwrite(run.fd, block, sizeof(block), 0) != sizeof(block))
		fail("pwrite");
}

static bool is_about_position(void)
{
	return strcmp(run.mode, "position") == 0;
}

static void ask_position(void)
{
	if (lseek(run.fd, 0, SEEK_CUR) < 0)
		fail("lseek");
}

static void read_on(void)
{
	char page[4096];

	if (read(run.fd, page, sizeof(page)) < 0)
		fail("read");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static volatile int partner; /* the thread that holds the other one */

static bool is_about_mutex(void)
{
	return strcmp(run.mode, "mutex") == 0 || strcmp(run.mode, "deadlock") == 0;
}

static void lock_and_unlock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void come_late(void)
{
	while (!run.is_held && !run.done)
		sleep_ns(PAUSE_NS);
	nanosleep(&(struct timespec){ LATE_S, 0 }, NULL);
}

static void *wait_again_and_again(void *userdata)
{
	struct waiter *w = userdata;

	w->tid = gettid();
	if (is_about_position() && (w - run.waiters) % 2)
		come_late();
	while (!run.done) {
		uint64_t begun_ns = now_ns(), ns;

		if (is_about_mutex())
			lock_and_unlock();
		else if (is_about_position())
			ask_position();
		else if (run.fd >= 0)
			write_a_little();
		else
			map_and_unmap();
		ns = now_ns() - begun_ns;
		if (ns > w->longest_ns) {
			w->longest_ns = ns;
			w->begun_ns = begun_ns;
		}
		sleep_ns(run.count > MANY ? PAUSE_OF_MANY_NS : PAUSE_NS);
	}
	return NULL;
}

/* What it calls later is called once before, while nobody keeps that from being loaded. */
static void *nap_again_and_again(void *userdata)
{
	(void)userdata;
	pthread_setname_np(pthread_self(), "awake");
	while (!run.is_held)
		sleep_ns(PAUSE_NS);
	nanosleep(&(struct timespec){ 1, 0 }, NULL);
	pthread_setname_np(pthread_self(), "napper");
	for (unsigned int after = 0; after < NAPS_AFTER; after += run.done)
		sleep_ns(NAP_NS);
	return NULL;
}

static char *map_area(size_t bytes, int flags)
{
	char *area = mmap(NULL, bytes, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (area == MAP_FAILED)
		fail("mmap of the large area");
	return area;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* Whether pages that are only read take memory. */
static bool takes_memory(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		fail("getrusage");
	return (size_t)usage.ru_maxrss << 10 > SAMPLE_BYTES;
}

/* How much of a CPU a small area takes. */
static uint64_t measure_ns(void)
{
	uint64_t begun_ns = cpu_ns(), ns;
	char *area = map_area(SAMPLE_BYTES, MAP_POPULATE);

	ns = cpu_ns() - begun_ns;
	if (munmap(area, SAMPLE_BYTES) < 0)
		fail("munmap");
	return ns;
}

static size_t available_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file) &&
		sscanf(line, "MemAvailable: %lu kB", &kib) != 1)
		;
	if (!file || !kib)
		fail("/proc/meminfo");
	fclose(file);
	return kib << 10;
}

/* How large the area must be. What is new to the kernel takes longer, so the second time counts. */
static size_t measure_bytes(void)
{
	size_t bytes, available = available_bytes();
	uint64_t ns;

	/* A huge page takes no time, and more page tables once it is locked. */
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		fail("prctl");
	measure_ns();
	ns = measure_ns();
	bytes = (run.ns / (ns ? ns : 1) + 1) * SAMPLE_BYTES;
	return takes_memory() && bytes > available / 2 ? available / 2 : bytes;
}

/* The same pages of a file again and again. */
static char *map_chunks(int fd, size_t count)
{
	char *area = mmap(NULL, count * CHUNK_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (area == MAP_FAILED)
		fail("mmap of the place of the chunks");
	for (size_t i = 0; i < count; i++)
		if (mmap(area + i * CHUNK_BYTES, CHUNK_BYTES, PROT_READ,
			    MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
			fail("mmap of a chunk");
	return area;
}

static uint64_t unmap_chunks(char *area, size_t count)
{
	const uint64_t begun_ns = cpu_ns();

	if (munmap(area, count * CHUNK_BYTES) < 0)
		fail("munmap of the chunks");
	return cpu_ns() - begun_ns;
}

static void prepare_munmap(void)
{
	static const size_t sample = SAMPLE_BYTES / CHUNK_BYTES;
	int fd = memfd_create("chunk", MFD_CLOEXEC);
	size_t most;
	uint64_t ns;

	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		fail("prctl");
	if (fd < 0 || ftruncate(fd, CHUNK_BYTES) < 0)
		fail("memfd_create");
	/* The first time its pages are allocated. */
	unmap_chunks(map_chunks(fd, sample), sample);
	ns = unmap_chunks(map_chunks(fd, sample), sample);
	run.chunks = (run.ns / (ns ? ns : 1) + 1) * sample;
	most = available_bytes() / 2 / TABLE_BYTES(CHUNK_BYTES);
	if (run.chunks > most)
		run.chunks = most;
	if (run.chunks > CHUNKS_MAX)
		run.chunks = CHUNKS_MAX;
	run.area = map_chunks(fd, run.chunks);
	close(fd);
}

/* Memory that is locked has all its pages as soon as it is made larger. */
static void prepare_mremap(void)
{
	run.area = map_area(SMALL, 0);
	if (mlock(run.area, SMALL) < 0)
		fail("mlock");
}

/* What the long operation needs and what takes long itself. */
static void prepare(void)
{
	if (run.fd >= 0 || is_about_mutex())
		return;
	if (strcmp(run.mode, "munmap") == 0) {
		prepare_munmap();
		return;
	}
	run.bytes = measure_bytes();
	if (strcmp(run.mode, "mremap") == 0)
		prepare_mremap();
	else if (strcmp(run.mode, "populate") != 0)
		run.area = map_area(run.bytes, 0);
}

/* A direct write that makes the file longer is waited for with the lock held. */
static void append(void)
{
	int fd = open(run.path, O_WRONLY | O_DIRECT | O_CLOEXEC);
	void *block = NULL;

	if (fd < 0 || posix_memalign(&block, 4096, run.append_bytes))
		fail(run.path);
	memset(block, 1, run.append_bytes);
	if (pwrite(fd, block, run.append_bytes, FILE_BYTES) != (ssize_t)run.append_bytes)
		fail("pwrite of the large block");
	close(fd);
}

static void read_past_cache(void)
{
	int fd = open(run.path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	void *block = NULL;

	if (fd < 0 || posix_memalign(&block, 4096, 4096) || pread(fd, block, 4096, 0) < 0)
		fail(run.path);
	close(fd);
}

static void hold_mutex(void)
{
	pthread_mutex_lock(&mutex);
	if (run.path)
		read_past_cache();
	else
		nanosleep(&(struct timespec){ (time_t)(run.ns / 1000000000), 0 }, NULL);
	pthread_mutex_unlock(&mutex);
}

static void *hold_other(void *userdata)
{
	(void)userdata;
	pthread_mutex_lock(&other);
	partner = gettid();
	lock_and_unlock();
	pthread_mutex_unlock(&other);
	return NULL;
}

static void hold_each_other(void)
{
	struct timespec until;
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	if (pthread_create(&thread, NULL, hold_other, NULL))
		fail("pthread_create");
	while (!partner)
		sleep_ns(PAUSE_NS);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(run.ns / 1000000000);
	pthread_mutex_timedlock(&other, &until);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
}

static void hold(void)
{
	if (strcmp(run.mode, "mutex") == 0)
		hold_mutex();
	else if (strcmp(run.mode, "deadlock") == 0)
		hold_each_other();
	else if (strcmp(run.mode, "populate") == 0)
		run.area = map_area(run.bytes, MAP_POPULATE);
	else if (strcmp(run.mode, "mlock") == 0 && mlock(run.area, run.bytes) < 0)
		fail("mlock");
	else if (strcmp(run.mode, "fault") == 0 &&
		madvise(run.area, run.bytes, MADV_POPULATE_READ) < 0)
		fail("madvise");
	else if (strcmp(run.mode, "mremap") == 0 &&
		mremap(run.area, SMALL, run.bytes, MREMAP_MAYMOVE) == MAP_FAILED)
		fail("mremap");
	else if (strcmp(run.mode, "munmap") == 0)
		unmap_chunks(run.area, run.chunks);
	else if (strcmp(run.mode, "append") == 0)
		append();
	else if (is_about_position())
		read_on();
}

static long syscall_of_holder(void)
{
	static const struct {
		const char *mode;
		long number;
	} calls[] = {
		{ "populate", SYS_mmap },
		{ "fault", SYS_madvise },
		{ "mlock", SYS_mlock },
		{ "mremap", SYS_mremap },
		{ "munmap", SYS_munmap },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strcmp(run.mode, calls[i].mode) == 0)
			return calls[i].number;
	return -1;
}

/* From 5.14 on. */
static bool can_fault(void)
{
	return madvise(map_area(SMALL, 0), SMALL, MADV_POPULATE_READ) == 0;
}

static void touch(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		fail(path);
	close(fd);
}

static void print(uint64_t begun_ns, uint64_t ended_ns)
{
	printf("{\"pid\":%d,\"holder\":%d,\"partner\":%d,\"syscall\":%ld,\"begun_ns\":%llu,\"ended_ns\":%llu,\"waiters\":[",
		getpid(), gettid(), partner, syscall_of_holder(), (unsigned long long)begun_ns,
		(unsigned long long)ended_ns);
	for (unsigned int i = 0; i < run.count; i++)
		printf("%s{\"tid\":%d,\"begun_ns\":%llu,\"longest_ns\":%llu}", i ? "," : "",
			run.waiters[i].tid, (unsigned long long)run.waiters[i].begun_ns,
			(unsigned long long)run.waiters[i].longest_ns);
	puts("]}");
}

/* The holder is no main thread, which is easily taken for the whole process. */
static void *hold_once(void *userdata)
{
	const char *const *argv = userdata;
	uint64_t begun_ns, ended_ns;

	prepare();
	touch(argv[5]);
	while (access(argv[4], F_OK) < 0)
		sleep_ns(PAUSE_NS);
	begun_ns = now_ns();
	run.is_held = true;
	hold();
	ended_ns = now_ns();
	run.done = true;
	for (unsigned int i = 0; i < run.count; i++)
		pthread_join(run.waiters[i].thread, NULL);
	print(begun_ns, ended_ns);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t holder, napper;
	size_t least;

	if (argc == 2)
		return strcmp(argv[1], "can-fault") == 0 && !can_fault();
	if (argc < 6 || (run.count = (unsigned int)atoi(argv[2])) > WAITERS_MAX) {
		fprintf(stderr, "usage: lockhold MODE WAITERS SECONDS GO READY [FILE]\n");
		return 2;
	}
	run.mode = argv[1];
	run.ns = (uint64_t)atol(argv[3]) * 1000000000ULL;
	run.append_bytes = (size_t)atol(argv[3]) << 20;
	run.path = argc > 6 ? argv[6] : NULL;
	run.fd = argc > 6 ? open(argv[6], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (argc > 6 && run.fd < 0)
		fail(argv[6]);
	least = (size_t)PTHREAD_STACK_MIN;
	errno = pthread_attr_init(&attr);
	if (!errno)
		errno = pthread_attr_setstacksize(&attr, least > STACK_BYTES ? least : STACK_BYTES);
	if (errno)
		fail("pthread_attr_setstacksize");
	for (unsigned int i = 0; i < run.count; i++)
		if (pthread_create(&run.waiters[i].thread, &attr, wait_again_and_again,
			    &run.waiters[i]))
			fail("pthread_create");
	if (strcmp(run.mode, "populate") == 0 &&
		pthread_create(&napper, &attr, nap_again_and_again, NULL))
		fail("pthread_create");
	if (pthread_create(&holder, NULL, hold_once, argv) || pthread_join(holder, NULL))
		fail("pthread_create");
	if (strcmp(run.mode, "populate") == 0)
		pthread_join(napper, NULL);
	return 0;
}
