/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/symbols_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "util/clock.h"

/* The deepest call sorts the symbols; it has a line of the file on its stack. */
#define THREAD_STACK_BYTES (32 * 1024)
#define LOOK_EACH 10
#define WAIT_STEP_US 1000

/* Of the thread while it is busy. */
struct reading {
	bool is_read;
	uint64_t stamp;
	int error;
	struct symbols *symbols; /* NULL: the modules are those of the last time */
};

/* On the thread. */
static void run(void *state, const int *fds)
{
	struct reading *r = state;
	uint64_t stamp = 0;

	r->error = symbols_read_stamp(fds[0], &stamp);
	if (r->error < 0 || (r->is_read && r->stamp == stamp))
		return;
	r->error = symbols_new(fds[0], &r->symbols);
	/* What is refused once is refused again. */
	r->is_read = r->error != -ENOMEM;
	r->stamp = r->symbols ? symbols_stamp(r->symbols) : stamp;
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct reading),
	.limit_ns = UINT64_MAX,
};

int symbols_reader_init(struct symbols_reader *r, int procfs_fd)
{
	r->calls = 0;
	return renewable_worker_init(&r->worker, &kind, procfs_fd);
}

void symbols_reader_done(struct symbols_reader *r)
{
	if (r->worker.thread && !renewable_worker_is_busy(&r->worker))
		symbols_free(((struct reading *)r->worker.state)->symbols);
	renewable_worker_done(&r->worker);
}

struct symbols *symbols_reader_take(struct symbols_reader *r)
{
	struct reading *reading = r->worker.state;
	struct symbols *symbols;

	r->calls++;
	if (renewable_worker_is_busy(&r->worker))
		return NULL;
	symbols = reading->symbols;
	reading->symbols = NULL;
	if (r->calls % LOOK_EACH == 0)
		renewable_worker_start(&r->worker, clock_mono_ns());
	return symbols;
}

int symbols_reader_wait(struct symbols_reader *r, uint64_t at_most_ns, struct symbols **ret_symbols)
{
	const uint64_t begin_ns = clock_mono_ns();
	const struct reading *reading = r->worker.state;

	renewable_worker_start(&r->worker, begin_ns);
	while (renewable_worker_is_busy(&r->worker)) {
		if (clock_mono_ns() - begin_ns >= at_most_ns)
			return -ETIMEDOUT;
		usleep(WAIT_STEP_US);
	}
	*ret_symbols = symbols_reader_take(r);
	return reading->error;
}
