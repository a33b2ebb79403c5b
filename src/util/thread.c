/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

/* Stack frames are larger with AddressSanitizer. */
#ifdef __SANITIZE_ADDRESS__
#define STACK_BYTES_MIN (256 * 1024)
#else
#define STACK_BYTES_MIN ((size_t)PTHREAD_STACK_MIN)
#endif

/* On the stack of the caller, which waits until the thread has read it. */
struct start {
	void *(*run)(void *);
	void *arg;
	const int *fds;
	size_t fds_count;
	sem_t done;
	int error;
};

/* The lowest descriptor to keep that is not below `first`; ~0U: there is none. */
static unsigned int next_kept(const struct start *s, unsigned int first)
{
	unsigned int next = first <= STDERR_FILENO ? STDERR_FILENO : ~0U;

	for (size_t i = 0; i < s->fds_count; i++)
		if ((unsigned int)s->fds[i] >= first && (unsigned int)s->fds[i] < next)
			next = (unsigned int)s->fds[i];
	return next;
}

static int keep_only(const struct start *s)
{
	unsigned int first = 0, next;

	if (unshare(CLONE_FILES) < 0)
		return -errno;
	do {
		next = next_kept(s, first);
		if (next > first && close_range(first, next == ~0U ? next : next - 1, 0) < 0)
			return -errno;
		first = next + 1;
	} while (next != ~0U);
	return 0;
}

static void *run_with_own_fds(void *arg)
{
	struct start *s = arg;
	void *(*run)(void *) = s->run;
	void *run_arg = s->arg;
	int r = keep_only(s);

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
		/* Not long: the thread has done nothing yet but copy a table. */
		while (sem_wait(&start.done) < 0 && errno == EINTR)
			;
		r = start.error;
	}
	sem_destroy(&start.done);
	return r;
}
