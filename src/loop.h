/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one event loop: descriptors, timers and signals, each with a callback.
 * Owned by the daemon; rooms add their descriptors at start.
 * Never allocates after loop_new(), never knows what an event means.
 */
#ifndef IOSTALL_LOOP_H
#define IOSTALL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_source;

/* value: the epoll events of a descriptor, the expirations of a timer, the number of a signal. */
typedef void (*loop_callback)(void *userdata, uint64_t value);

int loop_new(struct loop **ret_loop);
struct loop *loop_free(struct loop *loop);

/* The descriptor stays the caller's and must outlive the source. -ENOSPC: all sources in use. */
int loop_add_fd(struct loop *loop, int fd, uint32_t epoll_events, loop_callback callback,
	void *userdata, struct loop_source **ret_source);
int loop_add_timer(struct loop *loop, loop_callback callback, void *userdata,
	struct loop_source **ret_source);
/* Blocks the signals of the list (ended by 0) in this thread and those made later. */
int loop_add_signals(struct loop *loop, const int *signals, loop_callback callback, void *userdata);

/* After first_ns, then each interval_ns (0: once); first_ns 0 stops the timer. */
int loop_set_timer(struct loop_source *timer, uint64_t first_ns, uint64_t interval_ns);

/* NULL is accepted; safe from within any callback. Returns NULL. */
struct loop_source *loop_remove(struct loop_source *source);

/* Runs callbacks until loop_stop(), and may be run again; 0 or the errno of epoll_wait(). */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * How long the loop was away from its descriptors at most since the last call, in ns: waits, work and a CPU
 * that was not given to it. Within a callback the turn counts as far as it has come, and begins anew.
 */
uint64_t loop_take_longest_turn(struct loop *loop);

#endif
