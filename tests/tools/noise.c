/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much the host disturbs what runs on it:
 *   noise FILE [SECONDS]
 * Watches for so long, or until SIGTERM, and prints one line of "name=number":
 *   late_ms     longest delay of a thread that slept 5 ms
 *   rt_late_ms  the same with real-time priority, which only a hypervisor or the kernel delays
 *   slower      how many times longer a fixed computation took at worst than at best
 *   steal_pct   CPU time that a hypervisor took
 *   idle_pct    CPU time that nobody used
 *   sync_ms     longest fdatasync() of 4 KiB to FILE
 *   blocked     most threads in D state at once, by /proc/stat
 * It takes about 1 % of a CPU.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000LL
#define NSEC_PER_MSEC 1000000LL
#define NAP_NS (5 * NSEC_PER_MSEC)
#define STEP_NS (100 * NSEC_PER_MSEC)
/* About 1 ms. */
#define ROUNDS 400000

static atomic_bool stopping;

static void stop(int signal_number)
{
	(void)signal_number;
	stopping = true;
}

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static long long longest(long long a, long long b)
{
	return a > b ? a : b;
}

struct sleeper {
	bool is_real_time;
	_Atomic long long late_ns;
};

static void *sleep_again(void *arg)
{
	const struct sched_param first = { .sched_priority = 1 };
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct sleeper *s = arg;

	if (s->is_real_time)
		pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	while (!stopping) {
		long long before_ns = now_ns();

		nanosleep(&nap, NULL);
		s->late_ns = longest(s->late_ns, now_ns() - before_ns - NAP_NS);
	}
	return NULL;
}

static long long compute_ns(void)
{
	long long begin_ns = now_ns();
	volatile unsigned int sum = 0;

	for (unsigned int i = 0; i < ROUNDS; i++)
		sum += i;
	return now_ns() - begin_ns;
}

static long long sync_ns(int fd)
{
	static char page[4096];
	long long begin_ns = now_ns();

	if (pwrite(fd, page, sizeof(page), 0) < 0 || fdatasync(fd) < 0)
		return 0;
	return now_ns() - begin_ns;
}

struct cpu_times {
	unsigned long long all, idle, steal, blocked;
};

/* proc_stat(5) */
static struct cpu_times read_cpu_times(void)
{
	unsigned long long t[8] = { 0 };
	struct cpu_times times = { 0 };
	FILE *f = fopen("/proc/stat", "re");
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "procs_blocked %llu", &times.blocked);
		/* A blank in a format is also none: that would take "cpu0", too. */
		if (strncmp(line, "cpu ", strlen("cpu ")) != 0 ||
			sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1],
				&t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
			continue;
		for (unsigned int i = 0; i < 8; i++)
			times.all += t[i];
		times.idle = t[3] + t[4];
		times.steal = t[7];
	}
	if (f)
		fclose(f);
	return times;
}

int main(int argc, char **argv)
{
	static struct sleeper sleepers[2] = { { .is_real_time = false }, { .is_real_time = true } };
	long long end_ns = argc > 2 ? now_ns() + atoll(argv[2]) * NSEC_PER_SEC : 0;
	long long slowest_ns = 0, fastest_ns = 0, synced_ns = 0;
	const struct timespec step = { .tv_nsec = STEP_NS };
	struct cpu_times begin = read_cpu_times(), end;
	unsigned long long blocked = 0, all;
	pthread_t threads[2];
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0) {
		fputs("usage: noise FILE [SECONDS]\n", stderr);
		return 2;
	}
	signal(SIGTERM, stop);
	for (unsigned int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, sleep_again, &sleepers[i]) != 0)
			return 1;
	for (unsigned int i = 0; !stopping && (end_ns == 0 || now_ns() < end_ns); i++) {
		long long took_ns = compute_ns();

		slowest_ns = longest(slowest_ns, took_ns);
		fastest_ns = fastest_ns == 0 || took_ns < fastest_ns ? took_ns : fastest_ns;
		if (i % 5 == 0)
			synced_ns = longest(synced_ns, sync_ns(fd));
		end = read_cpu_times();
		blocked = end.blocked > blocked ? end.blocked : blocked;
		nanosleep(&step, NULL);
	}
	stopping = true;
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	end = read_cpu_times();
	all = end.all > begin.all ? end.all - begin.all : 1;
	printf("late_ms=%lld rt_late_ms=%lld slower=%.1f steal_pct=%llu idle_pct=%llu sync_ms=%lld blocked=%llu\n",
		sleepers[0].late_ns / NSEC_PER_MSEC, sleepers[1].late_ns / NSEC_PER_MSEC,
		fastest_ns ? (double)slowest_ns / (double)fastest_ns : 0.0,
		(end.steal - begin.steal) * 100 / all, (end.idle - begin.idle) * 100 / all,
		synced_ns / NSEC_PER_MSEC, blocked);
	unlink(argv[1]);
	return 0;
}
