// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pingpong [SECONDS]: two threads wake each other through a futex, on one CPU. Prints the
 * nanoseconds of one turn in the last second, which is one context switch with the system calls
 * around it. Seconds are those of its CPU time: what others do on that CPU does not count.
 */
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ull

static _Atomic uint32_t turn;
static atomic_bool stop;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
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

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	uint64_t begin_ns, passed, ns;
	pthread_t thread;

	if (pthread_create(&thread, NULL, other, NULL) != 0)
		return 1;
	do {
		begin_ns = now_ns();
		passed = 0;
		do {
			for (int i = 0; i < 100; i++)
				pass(0);
			passed += 200;
			ns = now_ns() - begin_ns;
		} while (ns < NSEC_PER_SEC);
	} while (--seconds > 0);
	atomic_store(&stop, true);
	atomic_store(&turn, 1);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
	pthread_join(thread, NULL);
	printf("%" PRIu64 "\n", ns / passed);
	return 0;
}
