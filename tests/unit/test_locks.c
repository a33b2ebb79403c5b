/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * More locks than there are places for: those of the session, for which the kernel is asked who
 * holds them, and those of the model, from which the verdict follows. Whichever comes first must
 * not keep a place from one that many wait for. And stacks that are answered too late.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/internal.h"
#include "sinks/sink.h"
#include "util/clock.h"

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct session));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* A thread waits for the lock of that inode. Returns the place of the lock, 0: none. */
static unsigned int begin_wait(struct session *s, uint32_t tid, uint64_t inode)
{
	struct record_operation op = { .tid = (int32_t)tid,
		.pid = (int32_t)tid,
		.inode = inode,
		.dev = { 8, 1 },
		.waits_for = RECORD_CAUSE_read_write_lock };
	struct incident_stuck *stuck = incident_note_stuck(&s->incident, tid, NSEC_PER_SEC);

	assert_non_null(stuck);
	session_note_lock_wait(s, &op, stuck);
	return stuck->lock;
}

static void test_locks_that_are_over_make_room(void **state)
{
	struct session *s = *state;

	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX; i++)
		assert_int_not_equal(begin_wait(s, 100 + i, 1000 + i), 0);
	assert_int_equal(begin_wait(s, 200, 2000), 0);
	/* All these waits have ended. */
	memset(&s->incident, 0, sizeof(s->incident));
	session_scan_locks(s);
	assert_int_not_equal(begin_wait(s, 200, 2000), 0);
	assert_int_equal(begin_wait(s, 201, 2000), begin_wait(s, 202, 2000));
}

/* Places for two waiters of each lock are taken when twenty threads wait for another one. */
static void test_a_lock_that_many_wait_for(void **state)
{
	struct session *s = *state;
	unsigned int place = 0;

	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX; i++) {
		begin_wait(s, 100 + 2 * i, 1000 + i);
		begin_wait(s, 101 + 2 * i, 1000 + i);
	}
	session_scan_locks(s);
	for (uint32_t i = 0; i < 20; i++)
		place = begin_wait(s, 300 + i, 2000);
	assert_int_not_equal(place, 0);
	/* It keeps its place; those of the one that had to go wait for no lock that is known. */
	for (unsigned int i = 0; i < 5; i++) {
		session_scan_locks(s);
		begin_wait(s, 400 + i, 3000 + i);
		assert_int_equal(begin_wait(s, 300, 2000), place);
	}
	assert_int_equal(s->locks.list[place - 1].waiters, 20);
}

/* The next thread to wait for it may wait for another one. */
static void test_a_holder_is_forgotten_when_nobody_waits(void **state)
{
	struct session *s = *state;
	struct session_lock *lock = &s->locks.list[begin_wait(s, 100, 1000) - 1];

	lock->holder = 77;
	lock->task = 0x1000;
	lock->holds = true;
	session_scan_locks(s);
	assert_int_equal(lock->holder, 77);
	assert_true(lock->holds);
	memset(&s->incident, 0, sizeof(s->incident));
	session_scan_locks(s);
	assert_int_not_equal(lock->id, 0);
	assert_int_equal(lock->holder, 0);
	assert_int_equal(lock->task, 0);
	assert_false(lock->holds);
}

/*
 * The stack of a thread (that waits for this one) is answered when the incident is over: by then
 * its probe may be gone.
 */
static void test_a_stack_that_comes_too_late(void **state)
{
	struct session *s = *state;
	const struct stack_request request = { .start_ns = 1,
		.tid = (uint32_t)getppid(),
		.probe = SESSION_STACK_OF_OFFCPU };
	struct pollfd answered = { .events = POLLIN };
	int procfs_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(procfs_fd >= 0);
	assert_int_equal(stack_reader_new(procfs_fd, &s->stacks), 0);
	close(procfs_fd);
	assert_true(stack_reader_ask(s->stacks, &request, clock_mono_ns()));
	answered.fd = stack_reader_fd(s->stacks);
	assert_int_equal(poll(&answered, 1, -1), 1);
	/* Whoever uses it dies. */
	s->probes.probes[CONFIG_PROBE_offcpu].object = (void *)s;
	s->probes.probes[CONFIG_PROBE_offcpu].skeleton = (void *)16;
	s->state = SESSION_IDLE;
	session_take_stacks(s);
	assert_null(stack_reader_take(s->stacks, clock_mono_ns()));
	s->stacks = stack_reader_free(s->stacks);
}

/* A line that is not due is written when nobody waits any more; it is about its look. */
static void test_a_kept_line_has_the_time_of_its_look(void **state)
{
	struct session *s = *state;
	struct session_lock *lock = &s->locks.list[begin_wait(s, 100, 1000) - 1];
	const struct record *r = &s->record;
	struct config config;
	uint64_t looked_ns, real_ns;

	config_set_defaults(&config);
	assert_int_equal(sinks_new(&(struct sinks_options){ .config = &config }, &s->o.sinks), 0);
	lock->reported_ns = 10 * NSEC_PER_SEC;
	session_begin_line(s, RECORD_LOCK)->lock_wait =
		(struct record_lock_wait){ .waiters = 3, .longest_ns = 11 * NSEC_PER_SEC };
	session_write_lock(s, lock);
	looked_ns = clock_mono_ns();
	real_ns = clock_real_ns();
	assert_int_equal(s->incident.lines, 0);
	session_release_lock(s, lock);
	assert_int_equal(s->incident.lines, 1);
	assert_int_equal(r->type, RECORD_LOCK);
	assert_int_equal(r->lock_wait.waiters, 3);
	assert_in_range(r->mono_ns, 1, looked_ns);
	assert_in_range(r->real_ns, 1, real_ns);
	assert_int_equal(lock->id, 0);
	sinks_free(s->o.sinks);
}

static void add_lock(struct model *m, uint32_t id, uint32_t waiters)
{
	const struct record_lock_wait line = { .kind = RECORD_KERNEL_LOCK_inode,
		.id = id,
		.waiters = waiters,
		.longest_ns = NSEC_PER_SEC };

	model_host_add_lock(m, &line);
}

static bool has_lock(const struct model *m, uint32_t id)
{
	for (unsigned int i = 0; i < MODEL_LOCKS_MAX; i++)
		if (m->host.locks[i].id == id)
			return true;
	return false;
}

static void test_locks_of_the_model(void **state)
{
	struct session *s = *state;
	struct model *m = &s->model;

	m->now_ns = 10 * NSEC_PER_SEC;
	for (uint32_t id = 1; id <= MODEL_LOCKS_MAX; id++)
		add_lock(m, id, 1 + id);
	add_lock(m, 100, 1);
	assert_false(has_lock(m, 100));
	add_lock(m, 101, 50);
	assert_true(has_lock(m, 101));
	assert_false(has_lock(m, 1));
	assert_true(has_lock(m, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_locks_that_are_over_make_room, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_a_lock_that_many_wait_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_holder_is_forgotten_when_nobody_waits, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_a_kept_line_has_the_time_of_its_look, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_locks_of_the_model, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_stack_that_comes_too_late, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
