/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Stack frames are larger with AddressSanitizer. */
#ifdef __SANITIZE_ADDRESS__
#define STACK_BYTES_MIN (256 * 1024)
#else
#define STACK_BYTES_MIN ((size_t)PTHREAD_STACK_MIN)
#endif

/* Of the thread that started the last one; all are started by the same. */
static int nice_of_starter;

void thread_take_priority(void)
{
	/* As it is where nothing was taken away, and where this is refused. */
	(void)setpriority(PRIO_PROCESS, 0, nice_of_starter);
}

int thread_run_first(void)
{
	const struct sched_param lowest = { .sched_priority = 1 };
	const struct rlimit none = { 0 };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) < 0)
		return -errno;
	return setrlimit(RLIMIT_RTPRIO, &none) < 0 ? -errno : 0;
}

/* The lowest descriptor to keep that is not below `first`; ~0U: there is none. */
static unsigned int next_kept(const int *fds, size_t fds_count, unsigned int first)
{
	unsigned int next = first <= STDERR_FILENO ? STDERR_FILENO : ~0U;

	for (size_t i = 0; i < fds_count; i++)
		if ((unsigned int)fds[i] >= first && (unsigned int)fds[i] < next)
			next = (unsigned int)fds[i];
	return next;
}

int thread_keep_only_fds(const int *fds, size_t fds_count)
{
	unsigned int first = 0, next;

	if (unshare(CLONE_FILES) < 0)
		return -errno;
	do {
		next = next_kept(fds, fds_count, first);
		if (next > first && close_range(first, next == ~0U ? next : next - 1, 0) < 0)
			return -errno;
		first = next + 1;
	} while (next != ~0U);
	return 0;
}

/* On the stack of the caller, which waits until the thread has read it. */
struct start {
	void *(*run)(void *);
	void *arg;
	const int *fds;
	size_t fds_count;
	sem_t done;
	int error;
};

static void *run_with_own_fds(void *arg)
{
	struct start *s = arg;
	void *(*run)(void *) = s->run;
	void *run_arg = s->arg;
	int r;

	thread_take_priority();
	r = thread_keep_only_fds(s->fds, s->fds_count);
	s->error = r;
	sem_post(&s->done);
	return r < 0 ? NULL : run(run_arg);
}

static int create(void *(*run)(void *), void *arg, size_t stack_bytes)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (stack_bytes < STACK_BYTES_MIN)
		stack_bytes = STACK_BYTES_MIN;
	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, stack_bytes);
	/* Signals belong to the event loop's signalfd. */
	nice_of_starter = getpriority(PRIO_PROCESS, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

int thread_start_sharing_fds(void *(*run)(void *), void *arg, size_t stack_bytes)
{
	return create(run, arg, stack_bytes);
}

int thread_start_detached(void *(*run)(void *), void *arg, size_t stack_bytes, const int *fds,
	size_t fds_count)
{
	struct start start = { .run = run, .arg = arg, .fds = fds, .fds_count = fds_count };
	int r;

	if (sem_init(&start.done, 0, 0) < 0)
		return -errno;
	r = create(run_with_own_fds, &start, stack_bytes);
	if (r == 0) {
		/* Until it gets a CPU, which may be long. */
		while (sem_wait(&start.done) < 0 && errno == EINTR)
			;
		r = start.error;
	}
	sem_destroy(&start.done);
	return r;
}
