// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that read blocks of a file past the page cache, as fast as it goes. Prints how many reads
 * there were, and how many of them took at least so many microseconds.
 * Build: cc -pthread storm.c
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_BYTES 4096
#define NSEC_PER_SEC 1000000000ull

static int file;
static uint64_t blocks, end_ns, limit_ns;
static atomic_ulong reads, stalls;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void *run(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	unsigned char *buffer = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
	uint64_t begin_ns = now_ns();

	while (buffer && begin_ns < end_ns) {
		off_t at = (off_t)((uint64_t)rand_r(&seed) % blocks * BLOCK_BYTES);
		uint64_t then_ns;

		if (pread(file, buffer, BLOCK_BYTES, at) != BLOCK_BYTES)
			break;
		then_ns = now_ns();
		reads++;
		stalls += then_ns - begin_ns >= limit_ns;
		begin_ns = then_ns;
	}
	free(buffer);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[1024];
	struct stat st;
	int count;

	if (argc != 5) {
		fprintf(stderr, "usage: storm FILE THREADS SECONDS MICROSECONDS\n");
		return 2;
	}
	file = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (file < 0 || fstat(file, &st) < 0 || st.st_size < BLOCK_BYTES) {
		perror(argv[1]);
		return 1;
	}
	blocks = (uint64_t)st.st_size / BLOCK_BYTES;
	count = atoi(argv[2]) < 1024 ? atoi(argv[2]) : 1024;
	limit_ns = (uint64_t)atoi(argv[4]) * 1000;
	end_ns = now_ns() + (uint64_t)atoi(argv[3]) * NSEC_PER_SEC;
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(i + 1)) != 0)
			return 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("%lu %lu\n", atomic_load(&reads), atomic_load(&stalls));
	return 0;
}
