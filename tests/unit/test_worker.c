/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A thread that does what the event loop must not wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/loop.h"
#include "util/worker.h"

#define STACK_BYTES (64 * 1024)

struct fixture {
	struct loop *loop;
	struct worker *worker;
	sem_t go;   /* the job waits for it, like one that hangs */
	sem_t left; /* the job has been abandoned */
	pthread_t loop_thread;
	unsigned int runs, dones, jobs;
	bool ran_on_the_loop, done_elsewhere;
};

static void run_job(void *userdata)
{
	struct fixture *f = userdata;

	sem_wait(&f->go);
	f->runs++;
	f->ran_on_the_loop |= pthread_equal(pthread_self(), f->loop_thread);
}

static void abandon_job(void *userdata)
{
	struct fixture *f = userdata;

	sem_post(&f->left);
}

static void finish_job(void *userdata);

static const struct worker_job job = { run_job, finish_job, abandon_job };

static void finish_job(void *userdata)
{
	struct fixture *f = userdata;

	f->dones++;
	f->done_elsewhere |= !pthread_equal(pthread_self(), f->loop_thread);
	assert_false(worker_is_busy(f->worker));
	if (--f->jobs > 0)
		worker_start(f->worker, &job, f);
	else
		loop_stop(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	sem_init(&f->go, 0, 0);
	sem_init(&f->left, 0, 0);
	f->loop_thread = pthread_self();
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(worker_new(f->loop, STACK_BYTES, &f->worker), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	worker_free(f->worker);
	loop_free(f->loop);
	free(f);
	return 0;
}

static void test_jobs_one_after_the_other(void **state)
{
	struct fixture *f = *state;

	f->jobs = 3;
	assert_false(worker_is_busy(f->worker));
	worker_start(f->worker, &job, f);
	assert_true(worker_is_busy(f->worker));
	for (unsigned int i = 0; i < f->jobs; i++)
		sem_post(&f->go);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->runs, 3);
	assert_int_equal(f->dones, 3);
	assert_false(f->ran_on_the_loop);
	assert_false(f->done_elsewhere);
}

static void test_freeing_does_not_wait_for_a_job(void **state)
{
	struct fixture *f = *state;

	worker_start(f->worker, &job, f);
	f->worker = worker_free(f->worker);
	assert_int_equal(sem_trywait(&f->left), -1);
	sem_post(&f->go);
	sem_wait(&f->left);
	assert_int_equal(f->runs, 1);
	assert_int_equal(f->dones, 0);
}

/* The job has ended, but the loop has not run since. */
static void test_freeing_abandons_a_job_that_has_ended(void **state)
{
	struct fixture *f = *state;
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };

	worker_start(f->worker, &job, f);
	sem_post(&f->go);
	while (__atomic_load_n(&f->runs, __ATOMIC_ACQUIRE) == 0)
		nanosleep(&pause, NULL);
	f->worker = worker_free(f->worker);
	sem_wait(&f->left);
	assert_int_equal(f->dones, 0);
}

static void test_freeing_an_idle_worker(void **state)
{
	struct fixture *f = *state;

	f->worker = worker_free(f->worker);
	assert_int_equal(sem_trywait(&f->left), -1);
	assert_null(worker_free(NULL));
}

#define worker_test(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		worker_test(test_jobs_one_after_the_other),
		worker_test(test_freeing_does_not_wait_for_a_job),
		worker_test(test_freeing_abandons_a_job_that_has_ended),
		worker_test(test_freeing_an_idle_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
