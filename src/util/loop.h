/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop: calls a callback for each descriptor, timer or signal that is ready.
 * Owned by the daemon (or a command); sessions, sinks, databases and checks add their descriptors.
 * Never allocates after loop_new(), never knows what an event means.
 */
#ifndef IOSTALL_UTIL_LOOP_H
#define IOSTALL_UTIL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_source;

/*
 * `value` is, for a descriptor, its epoll events; for a timer, how often it expired; for a signal,
 * its number.
 */
typedef void (*loop_callback)(void *userdata, uint64_t value);

int loop_new(struct loop **ret_loop);
struct loop *loop_free(struct loop *loop);

/* The descriptor stays the caller's and must outlive the source. -ENOSPC: all sources in use. */
int loop_add_fd(struct loop *loop, int fd, uint32_t epoll_events, loop_callback callback,
	void *userdata, struct loop_source **ret_source);
/* Changes the events of a source that loop_add_fd() has added; 0: none for now. */
int loop_set_events(struct loop_source *source, uint32_t epoll_events);
int loop_add_timer(struct loop *loop, loop_callback callback, void *userdata,
	struct loop_source **ret_source);
/* Blocks the signals of the list (ended by 0) in this thread and those made later. */
int loop_add_signals(struct loop *loop, const int *signals, loop_callback callback, void *userdata);

/* Expires after first_ns and then each interval_ns (0: only once). first_ns 0 stops the timer. */
int loop_set_timer(struct loop_source *timer, uint64_t first_ns, uint64_t interval_ns);

/* NULL is accepted; safe from within any callback. Returns NULL. */
struct loop_source *loop_remove(struct loop_source *source);

/* Runs callbacks until loop_stop(), and may be run again; 0 or the errno of epoll_wait(). */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * The longest time since the last call in which the loop did not look at its descriptors, in ns. It
 * includes work, waits, and time in which the loop was runnable but had no CPU. Called from a
 * callback, the current turn counts up to now and a new one begins.
 */
uint64_t loop_take_longest_turn(struct loop *loop);
/* The longest time that a timer has been handled too late since the last call. */
uint64_t loop_take_longest_delay(struct loop *loop);

#endif
