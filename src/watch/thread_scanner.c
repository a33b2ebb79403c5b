/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/thread_scanner.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

/* The deepest call holds a `status` of 8 KB. */
#define THREAD_STACK_BYTES (32 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)

/* Of the thread while that is busy, but for threads.reading. */
struct state {
	struct threads_scan scan;
	struct record_threads found;
	struct threads threads;
};

_Static_assert(THREADS_SKIP_MAX == RENEWABLE_WORKER_HUNG_MAX,
	"each scan that hangs has a process that is left out");

/* On the thread. */
static void run(void *state, const int *fds)
{
	struct state *s = state;

	threads_take_scan(&s->threads, fds[0], &s->scan, &s->found);
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct state),
	.limit_ns = LIMIT_NS,
};

/* As renewable_worker_renew(). */
static int renew(struct thread_scanner *s)
{
	int place = renewable_worker_renew(&s->worker, clock_mono_ns());
	struct state *state = s->worker.state;

	if (place >= 0)
		threads_init(&state->threads);
	return place;
}

int thread_scanner_init(struct thread_scanner *s, int procfs_fd)
{
	int r;

	memset(s, 0, sizeof(*s));
	s->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->done_fd < 0)
		return -errno;
	renewable_worker_init_resting(&s->worker, &kind, s->done_fd);
	s->worker.fd = procfs_fd;
	r = renew(s);
	return r < 0 ? r : renewable_worker_keep_spare(&s->worker);
}

void thread_scanner_done(struct thread_scanner *s)
{
	renewable_worker_done(&s->worker);
	s->done_fd = close_fd(s->done_fd);
}

void thread_scanner_reset(struct thread_scanner *s)
{
	s->forget = true;
	s->is_asked = s->is_waited_for = false;
	s->left_out = 0;
	s->threads = (struct record_threads){ 0 };
	s->stopped = (struct record_stopped){ 0 };
}

/* False: who is blocked is not known before the second scan. */
static bool take_results(struct thread_scanner *s, struct processes *processes,
	const struct freezers *freezers, const struct watch_clock *clock)
{
	struct state *state = s->worker.state;
	bool is_fresh = s->is_fresh;

	s->is_asked = s->is_fresh = false;
	threads_update_processes(&state->threads, processes);
	if (is_fresh)
		return false;
	threads_count_blocked(&state->threads, processes, freezers, &state->found);
	s->threads = state->found;
	s->threads.complete = s->threads.complete && !s->is_skipping;
	threads_fill_stopped(&state->threads, processes, s->worker.fd, watch_clock_ns(clock),
		&s->stopped);
	s->left_out = state->threads.left_out;
	s->waiting = state->threads.waiting;
	s->waiting_count = state->threads.waiting_count;
	return true;
}

static void replace_hung(struct thread_scanner *s, bool armed)
{
	const struct state *state = s->worker.state;
	int32_t pid = __atomic_load_n(&state->threads.reading, __ATOMIC_RELAXED);
	int place;

	/* It has not begun, and without a CPU another one would not either. */
	if (pid == 0)
		return;
	place = armed && !s->worker.spare ? -EBUSY : renew(s);
	/* It has ended just now. */
	if (place == -EAGAIN)
		return;
	if (place >= 0 || !s->has_told)
		log_warning(
			"watch: /proc/%d/task has kept its reader waiting for 5 s; until it can be read "
			"the threads of %s are not watched",
			pid, place >= 0 ? "that process" : "all processes");
	s->has_told = place < 0;
	if (place < 0)
		return;
	s->hung[place] = pid;
	s->is_asked = false;
	s->is_fresh = true;
}

static void fill_question(struct thread_scanner *s, struct processes *processes,
	const struct threads_scan *scan)
{
	struct state *state = s->worker.state;
	struct threads *t = &state->threads;

	state->scan = *scan;
	t->reading = 0;
	t->forget = s->forget;
	s->forget = false;
	s->is_skipping = false;
	for (unsigned int i = 0; i < THREADS_SKIP_MAX; i++) {
		bool hangs = renewable_worker_hangs_at(&s->worker, i);

		t->skip[i] = hangs ? s->hung[i] : 0;
		s->is_skipping = s->is_skipping || (hangs && processes_find(processes, s->hung[i]));
	}
	t->processes_count = processes->count;
	for (uint32_t i = 0; i < processes->count; i++)
		t->processes[i] = (struct threads_process){ .pid = processes->list[i].pid };
}

void thread_scanner_begin(struct thread_scanner *s, struct processes *processes,
	const struct freezers *freezers, const struct threads_scan *scan, bool armed)
{
	bool is_late = renewable_worker_is_late(&s->worker, clock_mono_ns());

	if (is_late)
		replace_hung(s, armed);
	/* Without one it is tried again with the next sample. */
	else if (!armed)
		(void)renewable_worker_keep_spare(&s->worker);
	s->is_waited_for = !renewable_worker_is_busy(&s->worker);
	if (s->is_waited_for) {
		s->has_late = s->is_asked && take_results(s, processes, freezers, &scan->clock);
		fill_question(s, processes, scan);
		s->is_asked = true;
		s->has_told = false;
		renewable_worker_start(&s->worker, clock_mono_ns());
	}
	s->late += is_late || s->is_skipping;
}

bool thread_scanner_is_ready(struct thread_scanner *s)
{
	(void)eventfd_read(s->done_fd, &(eventfd_t){ 0 });
	return !s->is_waited_for || !renewable_worker_is_busy(&s->worker);
}

bool thread_scanner_take(struct thread_scanner *s, struct processes *processes,
	const struct freezers *freezers, const struct watch_clock *clock,
	struct record_threads *ret_threads, struct record_stopped *ret_stopped)
{
	bool has_results = s->has_late;

	if (s->is_asked && !renewable_worker_is_busy(&s->worker))
		has_results = take_results(s, processes, freezers, clock);
	s->is_waited_for = s->has_late = false;
	*ret_threads = s->threads;
	*ret_stopped = s->stopped;
	if (!has_results) {
		ret_threads->complete = false;
		ret_threads->scanned = 0;
	}
	return has_results;
}
