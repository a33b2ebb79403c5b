/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/detached_worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/thread.h"

struct detached_worker {
	int references;
	sem_t wake;
	bool stopping;
	bool busy; /* the state is the thread's, else the owner's */
	void *state;
	void (*run)(void *state, const int *fds);
	/* Open in the table of the thread only; the last one is to be told that a run is over. */
	int fds[DETACHED_WORKER_FDS_MAX + 1];
	size_t fds_count;
	bool tells;
};

static void unref(struct detached_worker *w)
{
	if (__atomic_sub_fetch(&w->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	sem_destroy(&w->wake);
	free(w->state);
	free(w);
}

static void *run_thread(void *arg)
{
	struct detached_worker *w = arg;

	for (;;) {
		/* It blocks until there is something to do, or an end. */
		if (sem_wait(&w->wake) < 0)
			continue;
		if (__atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE))
			break;
		w->run(w->state, w->fds);
		__atomic_store_n(&w->busy, false, __ATOMIC_RELEASE);
		if (w->tells)
			eventfd_write(w->fds[w->fds_count - 1], 1);
	}
	/* In the table of this thread. */
	for (size_t i = 0; i < w->fds_count; i++)
		close(w->fds[i]);
	unref(w);
	return NULL;
}

/* Above standard error, which the thread keeps. */
static int add_fd(struct detached_worker *w, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (copy < 0)
		return -errno;
	w->fds[w->fds_count++] = copy;
	return 0;
}

static int start_thread(struct detached_worker *w, const struct detached_worker_options *options)
{
	int r = 0;

	assert(options->fds_count <= DETACHED_WORKER_FDS_MAX);
	for (size_t i = 0; r == 0 && i < options->fds_count; i++)
		r = add_fd(w, options->fds[i]);
	if (r == 0 && w->tells)
		r = add_fd(w, options->done_fd);
	if (r == 0) {
		w->references++;
		r = thread_start_detached(run_thread, w, options->stack_bytes, w->fds,
			w->fds_count);
		if (r < 0)
			w->references--;
	}
	/* Those of this side. */
	for (size_t i = 0; i < w->fds_count; i++)
		close(w->fds[i]);
	return r;
}

int detached_worker_new(const struct detached_worker_options *options, void *state,
	struct detached_worker **ret_worker)
{
	struct detached_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w) {
		free(state);
		return -ENOMEM;
	}
	w->references = 1;
	w->state = state;
	w->run = options->run;
	w->tells = options->done_fd >= 0;
	sem_init(&w->wake, 0, 0);
	r = start_thread(w, options);
	if (r < 0) {
		unref(w);
		return r;
	}
	*ret_worker = w;
	return 0;
}

struct detached_worker *detached_worker_free(struct detached_worker *w)
{
	if (!w)
		return NULL;
	__atomic_store_n(&w->stopping, true, __ATOMIC_RELEASE);
	sem_post(&w->wake);
	unref(w);
	return NULL;
}

void detached_worker_start(struct detached_worker *w)
{
	assert(!detached_worker_is_busy(w));
	__atomic_store_n(&w->busy, true, __ATOMIC_RELEASE);
	sem_post(&w->wake);
}

bool detached_worker_is_busy(const struct detached_worker *w)
{
	return __atomic_load_n(&w->busy, __ATOMIC_ACQUIRE);
}
