/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The event loop: timers, descriptors and signals, and sources that go while callbacks run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/loop.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define MS NSEC_PER_MSEC
/* A loop that nothing ends would hang the test; no callback below takes near as long. */
#define GUARD_NS (300 * NSEC_PER_SEC)

struct fixture {
	struct loop *loop;
	struct loop_source *guard;
	struct loop_source *a;
	struct loop_source *b;
	uint64_t last_value;
	uint64_t turn_ns;
	uint64_t began_ns, taking_ns, taken_ns; /* of the turn */
	unsigned int calls_a;
	unsigned int calls_b;
	bool guarded;
};

static void on_guard(void *userdata, uint64_t expirations)
{
	struct fixture *f = userdata;

	(void)expirations;
	f->guarded = true;
	loop_stop(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f || loop_new(&f->loop) < 0 || loop_add_timer(f->loop, on_guard, f, &f->guard) < 0)
		return -1;
	loop_set_timer(f->guard, GUARD_NS, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->loop);
	free(f);
	return 0;
}

static void run(struct fixture *f)
{
	assert_int_equal(loop_run(f->loop), 0);
	assert_false(f->guarded);
}

static void stop_at_3(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	f->last_value = value;
	if (++f->calls_a == 3)
		loop_stop(f->loop);
}

static void count_b(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	(void)value;
	f->calls_b++;
}

static void stop_at_once(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	f->last_value = value;
	f->calls_a++;
	loop_stop(f->loop);
}

static void test_timer_repeats(void **state)
{
	struct fixture *f = *state;
	uint64_t start_ns = clock_mono_ns();

	assert_int_equal(loop_add_timer(f->loop, stop_at_3, f, &f->a), 0);
	assert_int_equal(loop_set_timer(f->a, 1, 10 * MS), 0);
	run(f);
	assert_int_equal(f->calls_a, 3);
	assert_true(f->last_value >= 1);
	assert_true(clock_mono_ns() - start_ns >= 20 * MS);
}

static void test_timer_once_and_stopped(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add_timer(f->loop, count_b, f, &f->b), 0);
	assert_int_equal(loop_add_timer(f->loop, stop_at_3, f, &f->a), 0);
	assert_int_equal(loop_set_timer(f->a, 30 * MS, 10 * MS), 0);
	/* Set twice: the later counts. It comes once. */
	assert_int_equal(loop_set_timer(f->b, 1, 1 * MS), 0);
	assert_int_equal(loop_set_timer(f->b, 5 * MS, 0), 0);
	run(f);
	assert_int_equal(f->calls_b, 1);
	assert_int_equal(loop_set_timer(f->b, 1, 1 * MS), 0);
	assert_int_equal(loop_set_timer(f->b, 0, 0), 0);
	assert_int_equal(f->calls_b, 1);
}

/* A timer that was made but never set does not come. */
static void test_timer_not_set(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add_timer(f->loop, count_b, f, &f->b), 0);
	assert_int_equal(loop_add_timer(f->loop, stop_at_3, f, &f->a), 0);
	assert_int_equal(loop_set_timer(f->a, 1, 1 * MS), 0);
	run(f);
	assert_int_equal(f->calls_b, 0);
}

static void test_descriptor(void **state)
{
	struct fixture *f = *state;
	_cleanup_close_ int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_int_equal(loop_add_fd(f->loop, fd, EPOLLIN, stop_at_once, f, &f->a), 0);
	run(f);
	assert_int_equal(f->calls_a, 1);
	assert_int_equal(f->last_value, EPOLLIN);
	/* It stays the caller's. */
	assert_null(loop_remove(f->a));
	assert_true(fcntl(fd, F_GETFD) >= 0);
	assert_int_equal(loop_add_fd(f->loop, -1, EPOLLIN, stop_at_once, f, &f->a), -EBADF);
}

static void remove_self(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	(void)value;
	f->calls_b++;
	f->b = loop_remove(f->b);
}

static void test_removes_itself(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add_timer(f->loop, remove_self, f, &f->b), 0);
	assert_int_equal(loop_set_timer(f->b, 1, 1 * MS), 0);
	assert_int_equal(loop_add_timer(f->loop, stop_at_3, f, &f->a), 0);
	assert_int_equal(loop_set_timer(f->a, 10 * MS, 5 * MS), 0);
	run(f);
	assert_int_equal(f->calls_b, 1);
	assert_null(f->b);
}

/* Whichever of the two comes first removes the other, which is ready, too. */
static void remove_b(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	(void)value;
	f->calls_a++;
	f->b = loop_remove(f->b);
}

static void remove_a(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	(void)value;
	f->calls_b++;
	f->a = loop_remove(f->a);
}

static void drain_and_stop(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	(void)value;
	loop_stop(f->loop);
}

static void test_removes_another_that_is_ready(void **state)
{
	struct fixture *f = *state;
	_cleanup_close_ int first = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	_cleanup_close_ int second = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	struct loop_source *end;

	assert_int_equal(loop_add_fd(f->loop, first, EPOLLIN | EPOLLET, remove_b, f, &f->a), 0);
	assert_int_equal(loop_add_fd(f->loop, second, EPOLLIN | EPOLLET, remove_a, f, &f->b), 0);
	assert_int_equal(loop_add_timer(f->loop, drain_and_stop, f, &end), 0);
	loop_set_timer(end, 20 * MS, 0);
	run(f);
	assert_int_equal(f->calls_a + f->calls_b, 1);
}

static int last_signal;

static void on_signal(void *userdata, uint64_t number)
{
	struct fixture *f = userdata;

	last_signal = (int)number;
	f->calls_a++;
	loop_stop(f->loop);
}

static void test_signals(void **state)
{
	static const int signals[] = { SIGUSR1, SIGHUP, 0 };
	struct fixture *f = *state;

	assert_int_equal(loop_add_signals(f->loop, signals, on_signal, f), 0);
	assert_int_equal(raise(SIGHUP), 0);
	run(f);
	assert_int_equal(f->calls_a, 1);
	assert_int_equal(last_signal, SIGHUP);
}

static void test_as_many_as_there_is_room(void **state)
{
	struct fixture *f = *state;
	struct loop_source *sources[128];
	unsigned int count = 0;
	int r;

	while ((r = loop_add_timer(f->loop, count_b, f, &sources[count])) == 0)
		assert_true(++count < 128);
	assert_int_equal(r, -ENOSPC);
	assert_true(count >= 32);
	/* One that has gone leaves its place. */
	loop_remove(sources[count / 2]);
	assert_int_equal(loop_add_timer(f->loop, stop_at_3, f, &f->a), 0);
	loop_set_timer(f->a, 1, 1 * MS);
	run(f);
	assert_int_equal(f->calls_b, 0);
}

static void busy_wait(uint64_t ns)
{
	uint64_t until_ns = clock_mono_ns() + ns;

	while (clock_mono_ns() < until_ns)
		;
}

static void spend_20_ms(void *userdata, uint64_t value)
{
	struct fixture *f = userdata;

	(void)value;
	f->began_ns = clock_mono_ns();
	busy_wait(20 * MS);
	f->taking_ns = clock_mono_ns();
	f->turn_ns = loop_take_longest_turn(f->loop);
	f->taken_ns = clock_mono_ns();
	loop_stop(f->loop);
}

/*
 * Waiting for an event is none, and what was taken within a turn is not taken again. The limits are
 * what the test itself has measured, so other programs may take the CPU away at any time.
 */
static void test_longest_turn(void **state)
{
	struct fixture *f = *state;
	uint64_t due_ns, rest_ns;

	assert_int_equal(loop_add_timer(f->loop, spend_20_ms, f, &f->a), 0);
	due_ns = clock_mono_ns() + 100 * MS;
	assert_int_equal(loop_set_timer(f->a, 100 * MS, 0), 0);
	run(f);
	assert_true(f->turn_ns >= f->taking_ns - f->began_ns);
	/* The turn cannot have begun before the timer was due. */
	assert_true(f->turn_ns <= f->taken_ns - due_ns);
	rest_ns = loop_take_longest_turn(f->loop);
	assert_true(rest_ns <= clock_mono_ns() - f->taking_ns);
	assert_int_equal(loop_take_longest_turn(f->loop), 0);
}

/* A timer that expires while the loop is busy is handled late, by as much as the record says. */
static void test_longest_delay(void **state)
{
	struct fixture *f = *state;
	uint64_t delay_ns;

	assert_int_equal(loop_add_timer(f->loop, stop_at_once, f, &f->a), 0);
	loop_set_timer(f->a, 5 * MS, 0);
	busy_wait(20 * MS);
	run(f);
	delay_ns = loop_take_longest_delay(f->loop);
	assert_true(delay_ns >= 15 * MS && delay_ns < GUARD_NS);
	assert_int_equal(loop_take_longest_delay(f->loop), 0);
}

/* Periods that were missed are not added up. */
static void test_delay_of_a_period(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add_timer(f->loop, stop_at_3, f, &f->a), 0);
	loop_set_timer(f->a, 50 * MS, 50 * MS);
	busy_wait(180 * MS);
	run(f);
	/* Late by 130 ms for the first of three periods, not by 280 ms for all of them. */
	assert_int_equal(f->calls_a, 3);
	assert_true(loop_take_longest_delay(f->loop) >= 130 * MS);
}

static void test_null_arguments(void **state)
{
	(void)state;
	assert_null(loop_remove(NULL));
	assert_null(loop_free(NULL));
}

#define loop_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		loop_test(test_timer_repeats),
		loop_test(test_timer_once_and_stopped),
		loop_test(test_timer_not_set),
		loop_test(test_descriptor),
		loop_test(test_removes_itself),
		loop_test(test_removes_another_that_is_ready),
		loop_test(test_signals),
		loop_test(test_as_many_as_there_is_room),
		loop_test(test_longest_turn),
		loop_test(test_longest_delay),
		loop_test(test_delay_of_a_period),
		cmocka_unit_test(test_null_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
