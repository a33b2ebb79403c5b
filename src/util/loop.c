/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"

/* A daemon has 40, and each session 7: the one in use, the next, and those whose threads hang. */
#define LOOP_SOURCES_MAX 96

enum source_kind {
	SOURCE_FREE,
	SOURCE_FD,
	SOURCE_TIMER,
	SOURCE_SIGNALS,
};

struct loop_source {
	enum source_kind kind;
	int fd;
	loop_callback callback;
	void *userdata;
	struct loop *loop;
	uint64_t due_ns; /* of a timer: when it expires next; 0: never */
	uint64_t interval_ns;
};

struct loop {
	int epoll_fd;
	bool stopped;
	uint64_t turn_start_ns; /* 0: the loop waits for an event */
	uint64_t longest_turn_ns;
	uint64_t longest_delay_ns;
	struct loop_source sources[LOOP_SOURCES_MAX];
};

int loop_new(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		free(loop);
		return -errno;
	}
	*ret_loop = loop;
	return 0;
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	for (unsigned int i = 0; i < LOOP_SOURCES_MAX; i++)
		if (loop->sources[i].kind != SOURCE_FREE)
			loop_remove(&loop->sources[i]);
	close(loop->epoll_fd);
	free(loop);
	return NULL;
}

static int loop_add(struct loop *loop, enum source_kind kind, int fd, uint32_t epoll_events,
	loop_callback callback, void *userdata, struct loop_source **ret_source)
{
	struct epoll_event event = { .events = epoll_events };
	struct loop_source *s = NULL;

	for (unsigned int i = 0; i < LOOP_SOURCES_MAX && !s; i++)
		if (loop->sources[i].kind == SOURCE_FREE)
			s = &loop->sources[i];
	if (!s)
		return -ENOSPC;
	event.data.ptr = s;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	*s = (struct loop_source){ .kind = kind,
		.fd = fd,
		.callback = callback,
		.userdata = userdata,
		.loop = loop };
	if (ret_source)
		*ret_source = s;
	return 0;
}

int loop_add_fd(struct loop *loop, int fd, uint32_t epoll_events, loop_callback callback,
	void *userdata, struct loop_source **ret_source)
{
	return loop_add(loop, SOURCE_FD, fd, epoll_events, callback, userdata, ret_source);
}

int loop_add_timer(struct loop *loop, loop_callback callback, void *userdata,
	struct loop_source **ret_source)
{
	_cleanup_close_ int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int r;

	if (fd < 0)
		return -errno;
	r = loop_add(loop, SOURCE_TIMER, fd, EPOLLIN, callback, userdata, ret_source);
	if (r < 0)
		return r;
	(void)TAKE_FD(fd);
	return 0;
}

int loop_add_signals(struct loop *loop, const int *signals, loop_callback callback, void *userdata)
{
	_cleanup_close_ int fd = -1;
	sigset_t set;
	int r;

	sigemptyset(&set);
	for (; *signals; signals++)
		sigaddset(&set, *signals);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = loop_add(loop, SOURCE_SIGNALS, fd, EPOLLIN, callback, userdata, NULL);
	if (r < 0)
		return r;
	(void)TAKE_FD(fd);
	return 0;
}

static struct timespec timespec_of_ns(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};
}

int loop_set_timer(struct loop_source *timer, uint64_t first_ns, uint64_t interval_ns)
{
	struct itimerspec spec = {
		.it_value = timespec_of_ns(first_ns),
		.it_interval = timespec_of_ns(interval_ns),
	};

	timer->due_ns = first_ns ? clock_mono_ns() + first_ns : 0;
	timer->interval_ns = interval_ns;
	return timerfd_settime(timer->fd, 0, &spec, NULL) < 0 ? -errno : 0;
}

int loop_set_events(struct loop_source *source, uint32_t epoll_events)
{
	struct epoll_event event = { .events = epoll_events, .data.ptr = source };

	return epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0 ? -errno
											: 0;
}

struct loop_source *loop_remove(struct loop_source *source)
{
	if (!source)
		return NULL;
	epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	if (source->kind != SOURCE_FD)
		close(source->fd);
	source->kind = SOURCE_FREE;
	return NULL;
}

/* An expiry that nobody could handle in time, for want of a CPU or since the loop was busy. */
static void note_delay(struct loop_source *timer, uint64_t expirations)
{
	uint64_t now_ns = clock_mono_ns();

	if (timer->due_ns && now_ns > timer->due_ns &&
		now_ns - timer->due_ns > timer->loop->longest_delay_ns)
		timer->loop->longest_delay_ns = now_ns - timer->due_ns;
	timer->due_ns = timer->interval_ns ? timer->due_ns + expirations * timer->interval_ns : 0;
}

static void loop_dispatch(struct loop_source *s, uint32_t epoll_events)
{
	struct signalfd_siginfo info;
	uint64_t expirations;

	switch (s->kind) {
	case SOURCE_FREE:
		break;
	case SOURCE_FD:
		s->callback(s->userdata, epoll_events);
		break;
	case SOURCE_TIMER:
		if (read(s->fd, &expirations, sizeof(expirations)) == sizeof(expirations)) {
			note_delay(s, expirations);
			s->callback(s->userdata, expirations);
		}
		break;
	case SOURCE_SIGNALS:
		if (read(s->fd, &info, sizeof(info)) == sizeof(info))
			s->callback(s->userdata, info.ssi_signo);
		break;
	}
}

static void end_turn(struct loop *loop)
{
	uint64_t turn_ns = clock_mono_ns() - loop->turn_start_ns;

	if (turn_ns > loop->longest_turn_ns)
		loop->longest_turn_ns = turn_ns;
	loop->turn_start_ns = 0;
}

uint64_t loop_take_longest_turn(struct loop *loop)
{
	uint64_t longest_ns;

	if (loop->turn_start_ns) {
		end_turn(loop);
		loop->turn_start_ns = clock_mono_ns();
	}
	longest_ns = loop->longest_turn_ns;
	loop->longest_turn_ns = 0;
	return longest_ns;
}

uint64_t loop_take_longest_delay(struct loop *loop)
{
	uint64_t longest_ns = loop->longest_delay_ns;

	loop->longest_delay_ns = 0;
	return longest_ns;
}

int loop_run(struct loop *loop)
{
	while (!loop->stopped) {
		struct epoll_event event;
		/* One event at a time: a callback may remove any other source that is ready. */
		int n = epoll_wait(loop->epoll_fd, &event, 1, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n != 1)
			continue;
		loop->turn_start_ns = clock_mono_ns();
		loop_dispatch(event.data.ptr, event.events);
		end_turn(loop);
	}
	loop->stopped = false;
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
