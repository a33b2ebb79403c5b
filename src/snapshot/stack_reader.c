/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/stack_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/detached_worker.h"

/* The deepest call has a buffer of 4 KB for the file and 2 KB for the parsed stack. */
#define THREAD_STACK_BYTES (24 * 1024)
/* Stacks that a thread reads at a time, so that the event loop is not woken for each. */
#define BATCH_MAX 8

/* Of the thread while it is busy, but for the atomic members in front. */
struct batch {
	bool abandoned; /* the thread hung, and what it reads now is wanted no more */
	uint32_t done;	/* answers that are ready */
	uint32_t count;
	struct stack_answer answers[BATCH_MAX];
};

struct worker {
	struct detached_worker *thread;
	struct batch *batch;
};

struct stack_reader {
	int answered_fd;
	struct worker workers[STACK_READER_THREADS];
	struct worker *current; /* has the batch whose answers are expected; NULL: none */
	uint32_t taken;		/* answers of it that were taken */
	uint32_t seen_done;	/* progress at the last check, and when it was made */
	uint64_t progress_ns;
	uint64_t unread;
	uint32_t queue_head;
	uint32_t queue_count;
	struct stack_request queue[STACK_READER_QUEUE_MAX];
};

static void run(void *state, const int *fds)
{
	struct batch *b = state;

	for (uint32_t i = 0; i < b->count && !__atomic_load_n(&b->abandoned, __ATOMIC_ACQUIRE);
		i++) {
		thread_read_stack(fds[0], (int32_t)b->answers[i].request.tid, b->answers[i].kstack);
		__atomic_store_n(&b->done, i + 1, __ATOMIC_RELEASE);
	}
}

static int worker_init(struct worker *w, int procfs_fd, int answered_fd)
{
	const struct detached_worker_options options = {
		.run = run,
		.stack_bytes = THREAD_STACK_BYTES,
		.fds = { procfs_fd },
		.fds_count = 1,
		.done_fd = answered_fd,
	};

	w->batch = calloc(1, sizeof(*w->batch));
	return w->batch ? detached_worker_new(&options, w->batch, &w->thread) : -ENOMEM;
}

static uint32_t count_done(const struct worker *w)
{
	return __atomic_load_n(&w->batch->done, __ATOMIC_ACQUIRE);
}

static void stop_reading(struct worker *w)
{
	__atomic_store_n(&w->batch->abandoned, true, __ATOMIC_RELEASE);
}

int stack_reader_new(int procfs_fd, struct stack_reader **ret_reader)
{
	struct stack_reader *reader = calloc(1, sizeof(*reader));
	int r = 0;

	if (!reader)
		return -ENOMEM;
	reader->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (reader->answered_fd < 0)
		r = -errno;
	for (unsigned int i = 0; r == 0 && i < STACK_READER_THREADS; i++)
		r = worker_init(&reader->workers[i], procfs_fd, reader->answered_fd);
	if (r < 0) {
		stack_reader_free(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

struct stack_reader *stack_reader_free(struct stack_reader *reader)
{
	if (!reader)
		return NULL;
	for (unsigned int i = 0; i < STACK_READER_THREADS; i++) {
		struct worker *w = &reader->workers[i];

		if (!w->thread)
			continue;
		stop_reading(w);
		detached_worker_free(w->thread);
	}
	close_fd(reader->answered_fd);
	free(reader);
	return NULL;
}

int stack_reader_fd(const struct stack_reader *reader)
{
	return reader->answered_fd;
}

uint64_t stack_reader_unread(const struct stack_reader *reader)
{
	return reader->unread;
}

static bool queue_push(struct stack_reader *reader, const struct stack_request *request)
{
	uint32_t at = (reader->queue_head + reader->queue_count) % STACK_READER_QUEUE_MAX;

	if (reader->queue_count == STACK_READER_QUEUE_MAX)
		return false;
	reader->queue[at] = *request;
	reader->queue_count++;
	return true;
}

bool stack_reader_has_room(const struct stack_reader *reader)
{
	return reader->queue_count < STACK_READER_QUEUE_MAX;
}

static struct stack_request queue_pop(struct stack_reader *reader)
{
	struct stack_request request = reader->queue[reader->queue_head];

	reader->queue_head = (reader->queue_head + 1) % STACK_READER_QUEUE_MAX;
	reader->queue_count--;
	return request;
}

static struct worker *find_idle(struct stack_reader *reader)
{
	for (unsigned int i = 0; i < STACK_READER_THREADS; i++)
		if (!detached_worker_is_busy(reader->workers[i].thread))
			return &reader->workers[i];
	return NULL;
}

/*
 * Whether a thread hangs in reading the stack of that one, for whatever operation of it: the next
 * one would hang, too.
 */
static bool is_hanging(const struct stack_reader *reader, uint32_t tid)
{
	for (unsigned int i = 0; i < STACK_READER_THREADS; i++) {
		const struct worker *w = &reader->workers[i];
		const struct batch *b = w->batch;
		uint32_t done = count_done(w);

		if (w != reader->current && detached_worker_is_busy(w->thread) && done < b->count &&
			b->answers[done].request.tid == tid)
			return true;
	}
	return false;
}

static void fill_batch(struct stack_reader *reader, struct batch *b)
{
	b->count = 0;
	while (b->count < BATCH_MAX && reader->queue_count > 0) {
		struct stack_request request = queue_pop(reader);

		/* It may have been asked for before that was known. */
		if (is_hanging(reader, request.tid))
			reader->unread++;
		else
			b->answers[b->count++].request = request;
	}
	b->done = 0;
	b->abandoned = false;
}

/* Gives the next batch to a thread that does not hang. */
static void hand_out(struct stack_reader *reader, uint64_t now_ns)
{
	struct worker *w;

	if (reader->current || reader->queue_count == 0)
		return;
	w = find_idle(reader);
	if (!w) {
		reader->unread += reader->queue_count;
		reader->queue_count = 0;
		return;
	}
	fill_batch(reader, w->batch);
	if (w->batch->count == 0)
		return;
	reader->current = w;
	reader->taken = 0;
	reader->seen_done = 0;
	reader->progress_ns = now_ns;
	detached_worker_start(w->thread);
}

bool stack_reader_ask(struct stack_reader *reader, const struct stack_request *request,
	uint64_t now_ns)
{
	if (is_hanging(reader, request->tid))
		return false;
	if ((!reader->current && !find_idle(reader)) || !queue_push(reader, request)) {
		reader->unread++;
		return false;
	}
	hand_out(reader, now_ns);
	return true;
}

const struct stack_answer *stack_reader_take(struct stack_reader *reader, uint64_t now_ns)
{
	struct worker *w = reader->current;
	eventfd_t ignored;
	bool busy;

	eventfd_read(reader->answered_fd, &ignored);
	if (!w)
		return NULL;
	/* In this order: when it is not busy any more, all answers are ready. */
	busy = detached_worker_is_busy(w->thread);
	if (reader->taken < count_done(w))
		return &w->batch->answers[reader->taken++];
	if (busy)
		return NULL;
	reader->current = NULL;
	hand_out(reader, now_ns);
	return NULL;
}

/* The thread that hangs is left alone; the rest of its batch is for the next one. */
static void abandon(struct stack_reader *reader, uint32_t done)
{
	struct worker *w = reader->current;

	stop_reading(w);
	reader->current = NULL;
	reader->unread++;
	for (uint32_t i = reader->taken; i < w->batch->count; i++)
		if (i != done && !queue_push(reader, &w->batch->answers[i].request))
			reader->unread++;
}

void stack_reader_check(struct stack_reader *reader, uint64_t now_ns)
{
	struct worker *w = reader->current;
	uint32_t done;

	if (!w || !detached_worker_is_busy(w->thread))
		return;
	done = count_done(w);
	if (done != reader->seen_done) {
		reader->seen_done = done;
		reader->progress_ns = now_ns;
	}
	if (now_ns - reader->progress_ns < STACK_READER_LIMIT_NS || done == w->batch->count)
		return;
	abandon(reader, done);
	hand_out(reader, now_ns);
}

void stack_reader_reset(struct stack_reader *reader)
{
	/* What is being read belongs to the last incident. */
	if (reader->current)
		stop_reading(reader->current);
	reader->current = NULL;
	reader->queue_count = 0;
	reader->unread = 0;
}
