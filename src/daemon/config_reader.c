/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/loop.h"
#include "util/renewable_worker.h"

/* The deepest call prints a number into an error. */
#define THREAD_STACK_BYTES (64 * 1024)

/* Of the thread while it is busy. */
struct reading {
	struct config_source source;
	const char *passwd;
	struct config_answer answer;
};

struct config_reader {
	struct config_reader_options options;
	struct renewable_worker_kind kind;
	struct renewable_worker worker; /* its state is a struct reading */
	bool asked;			/* the reader does not rest */
	int done_fd;
	struct loop_source *source;
	struct loop_source *limit_timer;
};

/* On the thread. */
static void run(void *state, const int *fds)
{
	struct reading *reading = state;
	struct config_answer *a = &reading->answer;

	(void)fds;
	a->error = config_load(&a->config, &reading->source, a->message);
	if (a->error < 0)
		return;
	enrich_read_users(reading->passwd, &a->users);
	health_find_accounts(reading->passwd, &a->config, &a->accounts);
}

enum config_reader_state config_reader_get_state(const struct config_reader *r)
{
	if (!r->asked)
		return CONFIG_READER_RESTING;
	if (!renewable_worker_is_busy(&r->worker))
		return CONFIG_READER_READ;
	return renewable_worker_is_late(&r->worker, clock_mono_ns()) ? CONFIG_READER_LATE
								     : CONFIG_READER_READING;
}

/* A thread that was left behind tells of its end, too. */
static void tell(struct config_reader *r)
{
	enum config_reader_state state = config_reader_get_state(r);

	if (state == CONFIG_READER_READ || state == CONFIG_READER_LATE)
		r->options.tell(r->options.userdata);
}

static void on_done(void *userdata, uint64_t events)
{
	struct config_reader *r = userdata;
	eventfd_t ignored;

	(void)events;
	eventfd_read(r->done_fd, &ignored);
	tell(r);
}

static void on_limit(void *userdata, uint64_t expirations)
{
	(void)expirations;
	tell(userdata);
}

int config_reader_new(const struct config_reader_options *options,
	struct config_reader **ret_reader)
{
	struct config_reader *r = calloc(1, sizeof(*r));
	int error;

	if (!r)
		return -ENOMEM;
	r->options = *options;
	r->kind = (struct renewable_worker_kind){
		.run = run,
		.stack_bytes = THREAD_STACK_BYTES,
		.state_bytes = sizeof(struct reading),
		.limit_ns = options->limit_ns,
	};
	r->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = r->done_fd < 0 ? -errno : 0;
	if (error == 0)
		error = loop_add_fd(options->loop, r->done_fd, EPOLLIN, on_done, r, &r->source);
	if (error == 0)
		error = loop_add_timer(options->loop, on_limit, r, &r->limit_timer);
	if (error < 0) {
		config_reader_free(r);
		return error;
	}
	renewable_worker_init_resting(&r->worker, &r->kind, r->done_fd);
	*ret_reader = r;
	return 0;
}

struct config_reader *config_reader_free(struct config_reader *r)
{
	if (!r)
		return NULL;
	renewable_worker_done(&r->worker);
	loop_remove(r->limit_timer);
	loop_remove(r->source);
	close_fd(r->done_fd);
	free(r);
	return NULL;
}

int config_reader_start(struct config_reader *r)
{
	struct reading *reading;
	int error = -EAGAIN;

	assert(!r->asked);
	/* One that was left behind may have returned since, or does so between the two calls. */
	for (unsigned int i = 0; i < 2 && error == -EAGAIN; i++) {
		renewable_worker_rest(&r->worker);
		error = renewable_worker_renew(&r->worker, clock_mono_ns());
	}
	if (error < 0)
		return error;
	reading = r->worker.state;
	reading->source = *r->options.source;
	reading->passwd = r->options.passwd;
	r->asked = true;
	renewable_worker_start(&r->worker, clock_mono_ns());
	loop_set_timer(r->limit_timer, r->options.limit_ns, 0);
	return 0;
}

const struct config_answer *config_reader_answer(const struct config_reader *r)
{
	const struct reading *reading = r->worker.state;

	assert(config_reader_get_state(r) == CONFIG_READER_READ);
	return &reading->answer;
}

void config_reader_rest(struct config_reader *r)
{
	r->asked = false;
	loop_set_timer(r->limit_timer, 0, 0);
	renewable_worker_rest(&r->worker);
}
