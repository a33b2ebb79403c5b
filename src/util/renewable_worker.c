/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/renewable_worker.h"

#include <errno.h>
#include <stdlib.h>

#include "util/cleanup.h"

static int start_thread(const struct renewable_worker *w, void **ret_state,
	struct detached_worker **ret_thread)
{
	const struct detached_worker_options options = {
		.run = w->kind->run,
		.stack_bytes = w->kind->stack_bytes,
		.fds = { w->fd },
		.fds_count = w->fd >= 0 ? 1 : 0,
		.done_fd = w->done_fd,
	};
	struct detached_worker *thread;
	void *state = calloc(1, w->kind->state_bytes);
	int r;

	if (!state)
		return -ENOMEM;
	r = detached_worker_new(&options, state, &thread);
	if (r < 0)
		return r;
	*ret_thread = thread;
	*ret_state = state;
	return 0;
}

int renewable_worker_init(struct renewable_worker *w, const struct renewable_worker_kind *kind,
	int fd)
{
	*w = (struct renewable_worker){ .kind = kind, .fd = fd, .done_fd = -1 };
	return start_thread(w, &w->state, &w->thread);
}

void renewable_worker_init_resting(struct renewable_worker *w,
	const struct renewable_worker_kind *kind, int done_fd)
{
	*w = (struct renewable_worker){ .kind = kind, .fd = -1, .done_fd = done_fd };
}

void renewable_worker_done(struct renewable_worker *w)
{
	for (unsigned int i = 0; i < RENEWABLE_WORKER_HUNG_MAX; i++)
		w->hung[i] = detached_worker_free(w->hung[i]);
	w->thread = detached_worker_free(w->thread);
	w->spare = detached_worker_free(w->spare);
}

void *renewable_worker_new(size_t size, const struct renewable_worker_kind *kind, int fd)
{
	struct renewable_worker *w = calloc(1, size);
	int r = w ? renewable_worker_init(w, kind, fd) : -ENOMEM;

	if (r == 0)
		return w;
	free(w);
	errno = -r;
	return NULL;
}

void *renewable_worker_free(void *object)
{
	if (object)
		renewable_worker_done(object);
	free(object);
	return NULL;
}

void renewable_worker_start(struct renewable_worker *w, uint64_t now_ns)
{
	w->started_ns = now_ns;
	detached_worker_start(w->thread);
}

bool renewable_worker_is_busy(const struct renewable_worker *w)
{
	return w->thread && detached_worker_is_busy(w->thread);
}

bool renewable_worker_is_late(const struct renewable_worker *w, uint64_t now_ns)
{
	return renewable_worker_is_busy(w) && now_ns - w->started_ns >= w->kind->limit_ns;
}

bool renewable_worker_hangs_at(const struct renewable_worker *w, unsigned int place)
{
	return w->hung[place] && detached_worker_is_busy(w->hung[place]);
}

/* Ends those that have returned, whose places are free. */
static int find_place(struct renewable_worker *w)
{
	int place = -EBUSY;

	for (unsigned int i = 0; i < RENEWABLE_WORKER_HUNG_MAX; i++) {
		if (renewable_worker_hangs_at(w, i))
			continue;
		w->hung[i] = detached_worker_free(w->hung[i]);
		place = (int)i;
	}
	return place;
}

void renewable_worker_rest(struct renewable_worker *w)
{
	find_place(w);
	if (renewable_worker_is_busy(w))
		return;
	w->thread = detached_worker_free(w->thread);
	w->state = NULL;
}

int renewable_worker_keep_spare(struct renewable_worker *w)
{
	return w->spare ? 0 : start_thread(w, &w->spare_state, &w->spare);
}

int renewable_worker_renew(struct renewable_worker *w, uint64_t now_ns)
{
	struct detached_worker *old = w->thread;
	int r, place = find_place(w);

	if (old && !renewable_worker_is_late(w, now_ns))
		return -EAGAIN;
	if (place < 0)
		return place;
	r = renewable_worker_keep_spare(w);
	if (r < 0)
		return r;
	w->thread = TAKE_PTR(w->spare);
	w->state = TAKE_PTR(w->spare_state);
	w->hung[place] = old;
	return place;
}
