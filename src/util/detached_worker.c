/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/detached_worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/thread.h"

/* Without memory for a table of descriptors. */
#define RETRY_US 100000

struct detached_worker {
	int references;
	sem_t wake;
	bool stopping;
	bool busy; /* the state is the thread's, else the owner's */
	void *state;
	void (*run)(void *state, const int *fds);
	/* The last one is to be told that a run is over. The thread has its own of them. */
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

static bool is_stopping(const struct detached_worker *w)
{
	return __atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE);
}

/*
 * The owner goes on meanwhile, which must not wait until this thread gets a CPU. It closes its
 * descriptors only after it has said that the worker stops. False: the worker stops, and they may
 * be those of other files.
 */
static bool take_fds(struct detached_worker *w)
{
	while (thread_keep_only_fds(w->fds, w->fds_count) < 0 && !is_stopping(w))
		usleep(RETRY_US);
	return !is_stopping(w);
}

static void *run_thread(void *arg)
{
	struct detached_worker *w = arg;
	bool has_fds;

	thread_take_priority();
	has_fds = take_fds(w);
	while (has_fds) {
		/* It blocks until there is something to do, or an end. */
		if (sem_wait(&w->wake) < 0)
			continue;
		if (is_stopping(w))
			break;
		w->run(w->state, w->fds);
		__atomic_store_n(&w->busy, false, __ATOMIC_RELEASE);
		if (w->tells)
			eventfd_write(w->fds[w->fds_count - 1], 1);
	}
	/* Its table ends with it. */
	unref(w);
	return NULL;
}

static int start_thread(struct detached_worker *w, const struct detached_worker_options *options)
{
	int r;

	assert(options->fds_count <= DETACHED_WORKER_FDS_MAX);
	for (size_t i = 0; i < options->fds_count; i++)
		w->fds[w->fds_count++] = options->fds[i];
	if (w->tells)
		w->fds[w->fds_count++] = options->done_fd;
	w->references++;
	r = thread_start_sharing_fds(run_thread, w, options->stack_bytes);
	if (r < 0)
		w->references--;
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
