/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detach.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probes/set.h"
#include "util/clock.h"

#define STACK_SIZE (64 * 1024)

struct detacher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int done_fd;
	bool stop;
	unsigned int count; /* of the batch; 0: none */
	struct bpf_link *links[PROBE_SET_LINKS_MAX];
	uint64_t took_ns;
};

static void detach_batch(struct detacher *d)
{
	uint64_t start_ns = clock_mono_ns(), one = 1;

	/*
	 * The reverse of attaching: entries go before returns, else operations would be noted
	 * whose return nobody sees.
	 */
	while (d->count > 0)
		bpf_link__destroy(d->links[--d->count]);
	d->took_ns = clock_mono_ns() - start_ns;
	while (write(d->done_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void *run(void *arg)
{
	struct detacher *d = arg;

	pthread_mutex_lock(&d->lock);
	while (!d->stop || d->count > 0) {
		if (d->count > 0)
			detach_batch(d);
		else
			pthread_cond_wait(&d->wake, &d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int detacher_new(struct detacher **ret_detacher)
{
	struct detacher *d = calloc(1, sizeof(*d));
	pthread_attr_t attr;
	int r;

	if (!d)
		return -ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->wake, NULL);
	d->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->done_fd < 0) {
		r = -errno;
		free(d);
		return r;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = -pthread_create(&d->thread, &attr, run, d);
	pthread_attr_destroy(&attr);
	if (r < 0) {
		close(d->done_fd);
		free(d);
		return r;
	}
	*ret_detacher = d;
	return 0;
}

struct detacher *detacher_free(struct detacher *d)
{
	if (!d)
		return NULL;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->lock);
	close(d->done_fd);
	free(d);
	return NULL;
}

int detacher_fd(const struct detacher *d)
{
	return d->done_fd;
}

void detacher_start(struct detacher *d, struct bpf_link *const *links, unsigned int count)
{
	pthread_mutex_lock(&d->lock);
	memcpy(d->links, links, count * sizeof(*links));
	d->count = count;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

uint64_t detacher_finish(struct detacher *d)
{
	uint64_t events;

	while (read(d->done_fd, &events, sizeof(events)) < 0 && errno == EINTR)
		;
	/* The eventfd was written after took_ns, and the batch is the only one. */
	return d->took_ns;
}
