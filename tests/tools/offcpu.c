/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu [FILE]: threads that are off the CPU, as told line by line:
 *
 *	start NAME MODE: a thread of that name waits for a pipe (read), a mutex (lock) or the disk
 *	of the file FILE (sync), or shares a CPU with others (spin)
 *	mark NAME: from now on it may go on; for those that wait for a disk, before that answers
 *	release NAME: the first of them that has not ended may go on; waits until it has ended
 *
 * Each answer is one line of JSON. Of a thread that has ended it has the time from before to after
 * the wait, and the time between the moment at which it was seen asleep and that of its release:
 * what it was off the CPU is between both. And the place that the wait returned to, as build-id and
 * offset in this file.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64

static struct waiter {
	char name[16];
	char mode;
	pthread_t thread;
	int pipe[2];
	pthread_mutex_t mutex;
	volatile int tid;
	volatile bool spins;
	bool ended;
	uint64_t asleep_ns; /* when it was seen asleep */
	uint64_t released_ns;
	uint64_t wall_ns; /* that it took */
	uint64_t run_delay_ns;
	void *place; /* behind the call of the function that waits */
} waiters[THREADS_MAX];
static int count;
static const char *file;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "offcpu: %s: %s\n", what, strerror(errno));
	exit(1);
}

/*
 * Functions of their own, so that each has a place that it returns to. The C library keeps no frame
 * pointer, which hides whoever has called it: this function, but not the one that has called this.
 */
__attribute__((noinline)) static void wait_for_pipe(struct waiter *w)
{
	char c;

	w->place = __builtin_return_address(0);
	if (read(w->pipe[0], &c, 1) != 1)
		fail("read");
}

__attribute__((noinline)) static void wait_for_mutex(struct waiter *w)
{
	w->place = __builtin_return_address(0);
	pthread_mutex_lock(&w->mutex);
	pthread_mutex_unlock(&w->mutex);
}

__attribute__((noinline)) static void wait_for_disk(struct waiter *w)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	w->place = __builtin_return_address(0);
	if (fd < 0 || write(fd, "", 1) != 1 || fsync(fd) < 0)
		fail(file);
	close(fd);
}

static void print_build_id(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const char *note = (const char *)info->dlpi_addr + p->p_vaddr;

		for (const char *end = note + p->p_memsz; p->p_type == PT_NOTE && note < end;) {
			const ElfW(Nhdr) *n = (const void *)note;
			const unsigned char *bits = (const unsigned char *)note + sizeof(*n) +
				((n->n_namesz + 3) & ~3u);

			for (unsigned int k = 0; n->n_type == NT_GNU_BUILD_ID && k < n->n_descsz;
				k++)
				printf("%02x", bits[k]);
			note = (const char *)bits + ((n->n_descsz + 3) & ~3u);
		}
	}
}

/* The program itself is the first module. */
static int print_place(struct dl_phdr_info *info, size_t size, void *place)
{
	const uintptr_t address = (uintptr_t)place - info->dlpi_addr;

	(void)size;
	for (int i = 0; place && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || address < p->p_vaddr ||
			address - p->p_vaddr >= p->p_memsz)
			continue;
		printf(",\"place\":\"");
		print_build_id(info);
		printf("+0x%" PRIxPTR "\"", address - p->p_vaddr + p->p_offset);
	}
	return 1;
}

static void spin(const struct waiter *w)
{
	while (w->spins)
		;
}

/* The second number of its schedstat: how long it has waited for a CPU. */
static uint64_t read_run_delay(int tid)
{
	char path[64];
	uint64_t delay = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*u %" SCNu64, &delay) != 1)
		fail(path);
	fclose(f);
	return delay;
}

static char read_state(int tid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		fail(path);
	fclose(f);
	return state;
}

static void *run(void *userdata)
{
	struct waiter *w = userdata;
	uint64_t begun_ns;

	pthread_setname_np(pthread_self(), w->name);
	w->tid = gettid();
	begun_ns = now_ns();
	if (w->mode == 'r')
		wait_for_pipe(w);
	else if (w->mode == 'l')
		wait_for_mutex(w);
	else if (w->mode == 'd')
		wait_for_disk(w);
	else
		spin(w);
	w->wall_ns = now_ns() - begun_ns;
	w->run_delay_ns = read_run_delay(w->tid);
	return NULL;
}

static void pin(pthread_t thread)
{
	cpu_set_t set;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		fail("sched_getaffinity");
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(thread, sizeof(set), &set) != 0)
		fail("pthread_setaffinity_np");
}

static void start(const char name[16], const char *mode)
{
	struct waiter *w = &waiters[count++];

	if (count > THREADS_MAX || pipe(w->pipe) < 0)
		fail("start");
	memcpy(w->name, name, sizeof(w->name));
	w->mode = strcmp(mode, "sync") == 0 ? 'd' : mode[0];
	w->spins = true;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_mutex_lock(&w->mutex);
	if (pthread_create(&w->thread, NULL, run, w) != 0)
		fail("pthread_create");
	if (w->mode == 's')
		pin(w->thread);
	while (!w->tid)
		usleep(1000);
	while (w->mode != 's' && read_state(w->tid) != (w->mode == 'd' ? 'D' : 'S'))
		usleep(1000);
	w->asleep_ns = now_ns();
	printf("{\"name\":\"%s\",\"pid\":%d,\"tid\":%d}\n", w->name, (int)getpid(), w->tid);
}

static struct waiter *find(const char *name)
{
	struct waiter *w = waiters;

	while (w < waiters + count && (w->ended || strcmp(w->name, name) != 0))
		w++;
	if (w == waiters + count) {
		errno = ESRCH;
		fail(name);
	}
	return w;
}

static void mark(struct waiter *w)
{
	w->released_ns = now_ns();
	printf("{\"name\":\"%s\",\"tid\":%d}\n", w->name, w->tid);
}

static void release(struct waiter *w)
{
	if (!w->released_ns)
		w->released_ns = now_ns();
	if (w->mode == 'r' && write(w->pipe[1], "", 1) != 1)
		fail("write");
	if (w->mode == 'l')
		pthread_mutex_unlock(&w->mutex);
	w->spins = false;
	pthread_join(w->thread, NULL);
	w->ended = true;
	printf("{\"name\":\"%s\",\"tid\":%d,\"at_least_ns\":%" PRIu64 ",\"at_most_ns\":%" PRIu64
	       ",\"run_delay_ns\":%" PRIu64,
		w->name, w->tid, w->released_ns - w->asleep_ns, w->wall_ns, w->run_delay_ns);
	dl_iterate_phdr(print_place, w->place);
	printf("}\n");
}

int main(int argc, char **argv)
{
	char line[128], name[16] = "", mode[16];

	file = argc > 1 ? argv[1] : NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "start %15s %15s", name, mode) == 2)
			start(name, mode);
		else if (sscanf(line, "mark %15s", name) == 1)
			mark(find(name));
		else if (sscanf(line, "release %15s", name) == 1)
			release(find(name));
	}
	return 0;
}
