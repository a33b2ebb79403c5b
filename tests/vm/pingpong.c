// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two threads wake each other through a futex for a second, on one CPU. Prints the nanoseconds of
 * one turn, which is one context switch with the system calls around it.
 */
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ull

static _Atomic uint32_t turn;
static atomic_bool stop;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Passes the turn to the other thread, and waits until it comes back. */
static void pass(uint32_t mine)
{
	atomic_store(&turn, !mine);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (atomic_load(&turn) != mine && !atomic_load(&stop))
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
}

static void *other(void *arg)
{
	while (!atomic_load(&stop))
		pass(1);
	return arg;
}

int main(void)
{
	uint64_t begin_ns, passed = 0, ns;
	pthread_t thread;

	if (pthread_create(&thread, NULL, other, NULL) != 0)
		return 1;
	begin_ns = now_ns();
	do {
		for (int i = 0; i < 100; i++)
			pass(0);
		passed += 200;
		ns = now_ns() - begin_ns;
	} while (ns < NSEC_PER_SEC);
	atomic_store(&stop, true);
	atomic_store(&turn, 1);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
	pthread_join(thread, NULL);
	printf("%" PRIu64 "\n", ns / passed);
	return 0;
}
