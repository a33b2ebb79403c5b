/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clock of tests that wait for timers of the loop: it stands still while the program computes,
 * and moves to the next timer when the loop has nothing else to do. So a test takes the same time
 * on each host.
 * Linked into the tests that tests.mk names, in place of clock_mono_ns() and of what waits.
 * Never lets a timer expire before threads and other processes have had a tenth of its time.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

#define TIMERS_MAX 64
#define ANSWER_MIN_MS 1
#define ANSWER_MAX_MS 5000
/* Two looks at a clock are never the same. */
#define LOOK_NS 100

uint64_t __wrap_clock_mono_ns(void);
uint64_t __real_clock_mono_ns(void);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *spec,
	struct itimerspec *ret_old);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *spec,
	struct itimerspec *ret_old);
int __wrap_epoll_wait(int epoll_fd, struct epoll_event *ret_events, int max, int timeout_ms);
int __real_epoll_wait(int epoll_fd, struct epoll_event *ret_events, int max, int timeout_ms);
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest);
int __real_nanosleep(const struct timespec *time, struct timespec *ret_rest);
int __wrap_usleep(useconds_t time_us);
int __real_usleep(useconds_t time_us);

struct timer {
	int fd;
	uint64_t due_ns; /* 0: never */
	uint64_t interval_ns;
};

static _Atomic uint64_t now_ns;
static struct timer timers[TIMERS_MAX];

static uint64_t ns_of_timespec(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

uint64_t __wrap_clock_mono_ns(void)
{
	uint64_t never = 0;

	atomic_compare_exchange_strong(&now_ns, &never, __real_clock_mono_ns());
	return atomic_fetch_add(&now_ns, LOOK_NS);
}

static void pass(uint64_t ns)
{
	clock_mono_ns();
	atomic_fetch_add(&now_ns, ns);
}

static struct timer *timer_of(int fd)
{
	for (unsigned int i = 0; i < TIMERS_MAX; i++)
		if (timers[i].fd == fd)
			return &timers[i];
	for (unsigned int i = 0; i < TIMERS_MAX; i++)
		if (timers[i].due_ns == 0)
			return &timers[i];
	abort();
}

/* A number that was closed is another descriptor's by now, which begins with its own call. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *spec,
	struct itimerspec *ret_old)
{
	static const struct itimerspec off;
	uint64_t first_ns = ns_of_timespec(&spec->it_value);

	*timer_of(fd) = (struct timer){
		.fd = fd,
		.due_ns = first_ns ? clock_mono_ns() + first_ns : 0,
		.interval_ns = ns_of_timespec(&spec->it_interval),
	};
	return __real_timerfd_settime(fd, flags, &off, ret_old);
}

static struct timer *next_timer(void)
{
	struct timer *next = NULL;

	for (unsigned int i = 0; i < TIMERS_MAX; i++)
		if (timers[i].due_ns && (!next || timers[i].due_ns < next->due_ns))
			next = &timers[i];
	return next;
}

static int answer_ms(void)
{
	const struct timer *next = next_timer();
	uint64_t now = atomic_load(&now_ns), ms = ANSWER_MIN_MS;

	if (next && next->due_ns > now)
		ms = (next->due_ns - now) / (10 * NSEC_PER_MSEC);
	if (ms < ANSWER_MIN_MS)
		return ANSWER_MIN_MS;
	return ms < ANSWER_MAX_MS ? (int)ms : ANSWER_MAX_MS;
}

/* False: there is no timer. One that was closed is forgotten. */
static bool expire_next(void)
{
	static const struct itimerspec at_once = { .it_value.tv_nsec = 1 };
	struct timer *next;

	while ((next = next_timer())) {
		uint64_t due_ns = next->due_ns;

		next->due_ns = next->interval_ns ? due_ns + next->interval_ns : 0;
		if (__real_timerfd_settime(next->fd, 0, &at_once, NULL) == 0) {
			if (due_ns > atomic_load(&now_ns))
				atomic_store(&now_ns, due_ns);
			return true;
		}
		next->due_ns = 0;
	}
	return false;
}

int __wrap_epoll_wait(int epoll_fd, struct epoll_event *ret_events, int max, int timeout_ms)
{
	int n = __real_epoll_wait(epoll_fd, ret_events, max, answer_ms());

	while (n == 0 && timeout_ms < 0)
		n = __real_epoll_wait(epoll_fd, ret_events, max,
			expire_next() ? ANSWER_MIN_MS : -1);
	return n;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	int r = __real_nanosleep(time, ret_rest);

	pass(ns_of_timespec(time));
	return r;
}

int __wrap_usleep(useconds_t time_us)
{
	int r = __real_usleep(time_us);

	pass(time_us * NSEC_PER_USEC);
	return r;
}
