/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long a CPU was taken away even from a real-time thread, as a hypervisor does on a busy host:
 *   cpugap FILE
 * FILE has the most that one CPU lost within one second so far, in whole milliseconds; 0 when that
 * was nothing worth it. A gap that is longer counts as a whole. Runs until it is killed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX 1024
#define NSEC_PER_SEC 1000000000LL
#define NSEC_PER_MSEC 1000000LL
#define NAP_NS (5 * NSEC_PER_MSEC)
#define NOTICED_MS 5
#define WINDOW_NS NSEC_PER_SEC
/* More gaps do not fit into a second. */
#define GAPS_MAX 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long longest_ms;
static FILE *file;

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void note(long long ms)
{
	pthread_mutex_lock(&lock);
	if (ms > longest_ms) {
		longest_ms = ms;
		rewind(file);
		fprintf(file, "%lld\n", ms);
		fflush(file);
	}
	pthread_mutex_unlock(&lock);
}

struct gap {
	long long end_ns;
	long long ms;
};

/* What is lost in the window that ends now; forgets what was before it. */
static long long add_gap(struct gap gaps[GAPS_MAX], long long end_ns, long long ms)
{
	static const struct gap none;
	struct gap *oldest = gaps;
	long long sum_ms = ms;

	for (struct gap *g = gaps; g < gaps + GAPS_MAX; g++) {
		if (g->end_ns < end_ns - WINDOW_NS)
			*g = none;
		sum_ms += g->ms;
		if (g->end_ns < oldest->end_ns)
			oldest = g;
	}
	*oldest = (struct gap){ end_ns, ms };
	return sum_ms;
}

static void *watch_cpu(void *arg)
{
	struct gap gaps[GAPS_MAX] = { 0 };
	const struct timespec nap = { .tv_nsec = NAP_NS };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)(uintptr_t)arg, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return NULL;
	for (;;) {
		long long before_ns = now_ns(), late_ms;

		nanosleep(&nap, NULL);
		late_ms = (now_ns() - before_ns - NAP_NS) / NSEC_PER_MSEC;
		if (late_ms >= NOTICED_MS)
			note(add_gap(gaps, now_ns(), late_ms));
	}
}

int main(int argc, char **argv)
{
	const struct sched_param first = { .sched_priority = sched_get_priority_max(SCHED_FIFO) };
	pthread_t threads[CPUS_MAX];
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	file = argc == 2 ? fopen(argv[1], "we") : NULL;
	if (!file) {
		fputs("usage: cpugap FILE\n", stderr);
		return 2;
	}
	fputs("0\n", file);
	fflush(file);
	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0) {
		perror("cpugap: SCHED_FIFO");
		return 1;
	}
	for (long i = 0; i < cpus && i < CPUS_MAX; i++)
		if (pthread_create(&threads[i], NULL, watch_cpu, (void *)(uintptr_t)i) != 0)
			return 1;
	pause();
	return 0;
}
