/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/loop.h"
#include "util/thread.h"

/* Shared by the thread and its owner; the last of them to leave frees it. */
struct worker {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int references;
	int done_fd;
	bool freed;   /* guarded by the lock, like `running` */
	bool running; /* the thread has the job */
	const struct worker_job *job;
	void *userdata;
	bool busy; /* of the owner */
	struct loop_source *source;
};

static void worker_unref(struct worker *w)
{
	if (__atomic_sub_fetch(&w->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	close_fd(w->done_fd);
	free(w);
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	bool freed;

	thread_take_priority();
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->running && !w->freed)
			pthread_cond_wait(&w->wake, &w->lock);
		if (!w->running)
			break;
		pthread_mutex_unlock(&w->lock);
		w->job->run(w->userdata);
		pthread_mutex_lock(&w->lock);
		w->running = false;
		freed = w->freed;
		pthread_mutex_unlock(&w->lock);
		if (freed)
			w->job->abandon(w->userdata);
		else
			/* Not with the lock, which the loop takes before this thread runs again. */
			eventfd_write(w->done_fd, 1);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	worker_unref(w);
	return NULL;
}

static void on_done(void *userdata, uint64_t events)
{
	struct worker *w = userdata;
	eventfd_t ignored;

	(void)events;
	eventfd_read(w->done_fd, &ignored);
	w->busy = false;
	/* It may start the next job, or free the worker. */
	w->job->done(w->userdata);
}

int worker_new(struct loop *loop, size_t stack_bytes, struct worker **ret_worker)
{
	struct worker *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w)
		return -ENOMEM;
	w->references = 1;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->done_fd < 0)
		r = -errno;
	if (r == 0)
		r = loop_add_fd(loop, w->done_fd, EPOLLIN, on_done, w, &w->source);
	if (r == 0) {
		w->references = 2;
		r = thread_start_sharing_fds(worker_run, w, stack_bytes);
		if (r < 0)
			w->references = 1;
	}
	if (r < 0) {
		loop_remove(w->source);
		worker_unref(w);
		return r;
	}
	*ret_worker = w;
	return 0;
}

struct worker *worker_free(struct worker *w)
{
	bool finished;

	if (!w)
		return NULL;
	loop_remove(w->source);
	pthread_mutex_lock(&w->lock);
	w->freed = true;
	/* It has ended, but its `done` was not called. */
	finished = w->busy && !w->running;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (finished)
		w->job->abandon(w->userdata);
	worker_unref(w);
	return NULL;
}

void worker_start(struct worker *w, const struct worker_job *job, void *userdata)
{
	assert(!w->busy);
	w->busy = true;
	pthread_mutex_lock(&w->lock);
	w->job = job;
	w->userdata = userdata;
	w->running = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

bool worker_is_busy(const struct worker *w)
{
	return w->busy;
}
