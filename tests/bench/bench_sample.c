/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time of one watchdog sample on this host, without threads to watch and with many. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "watch/watch.h"

#define INTERVAL_NS NSEC_PER_SEC
#define SAMPLES 200
#define STACK_BYTES 65536

static void *sleep_for_ever(void *arg)
{
	sem_post(arg);
	for (;;)
		pause();
	return NULL;
}

/* A process of its own: the threads to watch are another's, with another mm, as in real life. */
static pid_t start_threads(unsigned int count)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		pthread_attr_t attr;
		pthread_t thread;
		sem_t started;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK_BYTES);
		sem_init(&started, 0, 0);
		for (unsigned int i = 1; i < count; i++)
			if (pthread_create(&thread, &attr, sleep_for_ever, &started) != 0)
				_exit(1);
		for (unsigned int i = 1; i < count; i++)
			sem_wait(&started);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &byte, 1) != 1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct cost {
	uint64_t median_ns;
	uint64_t max_ns;
	double scanned; /* threads, mean */
};

/* Back to back rather than a second apart: warm caches, so what is reported is a lower bound. */
static int measure(pid_t pid, bool armed, struct cost *ret_cost)
{
	uint64_t costs[SAMPLES], scanned = 0;
	struct config_list process = { 0 };
	struct watch_options options = {
		.interval_ns = INTERVAL_NS,
		.history_ns = 60 * INTERVAL_NS,
		.process = &process,
	};
	struct watch *watch = NULL;
	int r;

	if (pid > 0)
		snprintf(process.items[process.count++], CONFIG_ITEM_SIZE, "%d", pid);
	r = watch_new(&options, &watch);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < SAMPLES && r == 0; i++) {
		uint64_t before = cpu_ns();

		r = watch_take_sample(watch, armed);
		costs[i] = cpu_ns() - before;
		if (r == 0)
			scanned += watch_last(watch)->threads.scanned;
	}
	watch_free(watch);
	if (r < 0)
		return r;
	qsort(costs, SAMPLES, sizeof(costs[0]), compare_u64);
	*ret_cost =
		(struct cost){ costs[SAMPLES / 2], costs[SAMPLES - 1], (double)scanned / SAMPLES };
	return 0;
}

static int report(unsigned int threads, bool armed, double *base_ns)
{
	pid_t pid = threads ? start_threads(threads) : 0;
	struct cost cost;
	int r;

	if (pid < 0)
		return -ECHILD;
	r = measure(pid, armed, &cost);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (r < 0)
		return r;
	if (threads == 0)
		*base_ns = (double)cost.median_ns;
	printf("%-6s %7u %9.0f %12lu %12lu %8.1f %9.4f\n", armed ? "armed" : "idle", threads,
		cost.scanned, cost.median_ns, cost.max_ns, (double)cost.median_ns / *base_ns,
		100 * (double)cost.median_ns / (double)INTERVAL_NS);
	return 0;
}

int main(void)
{
	static const unsigned int threads[] = { 0, 10, 200, 1000 };
	double base_ns = 1;

	printf("%-6s %7s %9s %12s %12s %8s %9s\n", "state", "threads", "scanned", "median_ns",
		"max_ns", "ratio", "cpu_pct");
	for (int armed = 0; armed < 2; armed++) {
		for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
			int r = report(threads[i], armed, &base_ns);

			if (r < 0) {
				fprintf(stderr, "bench_sample: %s\n", strerror(-r));
				return 1;
			}
		}
	}
	return 0;
}
