/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * The kernel keeps whoever attaches or detaches the programs at the context switch waiting. The
 * programs are real; in place of the kernel a gate keeps their worker.
 */
#include "test_session_setup.h"

#include <bpf/bpf.h>
#include <pthread.h>

#include "session/internal.h"

void __wrap_probe_set_attach_scanned(struct probe_set *set);
void __real_probe_set_attach_scanned(struct probe_set *set);
void __wrap_probe_set_attach_rest(struct probe_set *set);
void __real_probe_set_attach_rest(struct probe_set *set);
void __wrap_probe_set_detach_scanned(struct probe_set *set);
void __real_probe_set_detach_scanned(struct probe_set *set);

struct gate {
	bool closed;
	bool reached; /* somebody has come to it */
};

static struct gate attaching, rest_attached, detaching;
static bool event_loop_came; /* to one of them */
static pthread_t event_loop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
/* libbpf 1.1 does not survive that they are made anew. */
static struct kernel_types *types;
static int load_error;

static void pass(struct gate *gate)
{
	pthread_mutex_lock(&lock);
	gate->reached = true;
	/* It would wait for ever. */
	if (pthread_equal(pthread_self(), event_loop))
		event_loop_came = true;
	else
		while (gate->closed)
			pthread_cond_wait(&opened, &lock);
	pthread_mutex_unlock(&lock);
}

static void set_gate(struct gate *gate, bool closed)
{
	pthread_mutex_lock(&lock);
	*gate = (struct gate){ .closed = closed };
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&lock);
}

static bool is_reached(const struct gate *gate)
{
	bool reached;

	pthread_mutex_lock(&lock);
	reached = gate->reached;
	pthread_mutex_unlock(&lock);
	return reached;
}

void __wrap_probe_set_attach_scanned(struct probe_set *set)
{
	pass(&attaching);
	__real_probe_set_attach_scanned(set);
}

/* As if `uring` were there. The kernel keeps the worker when all is attached. */
void __wrap_probe_set_attach_rest(struct probe_set *set)
{
	set->attached[CONFIG_PROBE_uring] = true;
	set->probes[CONFIG_PROBE_uring].ops = probe_ops_get(CONFIG_PROBE_uring);
	__real_probe_set_attach_rest(set);
	pass(&rest_attached);
}

void __wrap_probe_set_detach_scanned(struct probe_set *set)
{
	pass(&detaching);
	__real_probe_set_detach_scanned(set);
}

static void on_loaded(void *userdata, struct session *session, int error)
{
	struct fixture *f = userdata;

	(void)session;
	load_error = error;
	if (error)
		loop_stop(f->loop);
}

/* In place of the session without probes. */
static int setup_with_wait(void **state)
{
	int r = setup(state);
	struct fixture *f = *state;
	const struct session_options options = {
		.config = &f->config,
		.procfs = f->t->procfs,
		.sysfs = f->t->sysfs,
		.loop = f->loop,
		.watch = f->watch,
		.rules = f->rules,
		.enrich = f->enrich,
		.sinks = f->sinks,
		.kernel_types = &types,
		.capture_fd = -1,
	};

	event_loop = pthread_self();
	event_loop_came = false;
	set_gate(&attaching, false);
	set_gate(&rest_attached, false);
	set_gate(&detaching, false);
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++)
		f->config.probes[i].enabled = i == CONFIG_PROBE_wait;
	session_free(f->session);
	assert_int_equal(session_new(&options, &f->session), 0);
	session_set_callbacks(f->session, on_loaded, on_closed, f);
	return r;
}

static void run_steps(struct fixture *f, const step *steps)
{
	run(f, steps);
	if (load_error) {
		print_message("`wait` cannot be loaded here: %s\n", strerror(-load_error));
		skip();
	}
	assert_false(event_loop_came);
}

static const struct probe *wait_probe(const struct fixture *f)
{
	return &f->session->probes.probes[CONFIG_PROBE_wait];
}

static bool trigger_when_idle(struct fixture *f)
{
	if (f->session->state != SESSION_IDLE)
		return false;
	session_trigger(f->session, &manual, 3600 * NSEC_PER_SEC);
	return true;
}

/* However busy the host is. */
static bool is_scanned(struct fixture *f)
{
	return f->session->tasks.complete;
}

static bool is_tracing(struct fixture *f)
{
	return f->session->state == SESSION_TRACING;
}

static bool is_attached(struct fixture *f)
{
	return f->session->probes.attached[CONFIG_PROBE_wait] && wait_probe(f)->links_count > 0;
}

static bool stop(struct fixture *f)
{
	session_stop(f->session, RECORD_REASON_stopped);
	return true;
}

static bool is_closed(struct fixture *f)
{
	return f->closed > 0;
}

static bool is_settled(struct fixture *f)
{
	return session_is_settled(f->session);
}

static bool close_attach(struct fixture *f)
{
	(void)f;
	set_gate(&attaching, true);
	return true;
}

static bool open_attach(struct fixture *f)
{
	if (!is_reached(&attaching))
		return false;
	assert_false(is_attached(f));
	set_gate(&attaching, false);
	return true;
}

static bool close_rest(struct fixture *f)
{
	(void)f;
	set_gate(&rest_attached, true);
	return true;
}

static bool is_rest_reached(struct fixture *f)
{
	(void)f;
	return is_reached(&rest_attached);
}

static bool open_rest(struct fixture *f)
{
	(void)f;
	set_gate(&rest_attached, false);
	return true;
}

static bool uring_is_attached(struct fixture *f)
{
	return f->session->state == SESSION_TRACING &&
		f->session->probes.attached[CONFIG_PROBE_uring];
}

static bool close_detach(struct fixture *f)
{
	(void)f;
	set_gate(&detaching, true);
	return true;
}

static bool open_detach(struct fixture *f)
{
	if (!is_reached(&detaching))
		return false;
	assert_true(wait_probe(f)->links_count > 0);
	assert_true(session_is_detaching(f->session));
	set_gate(&detaching, false);
	return true;
}

static const struct record_coverage *coverage_of(const struct output *out, enum record_io_path path)
{
	const struct record_open *open = &out->lines[0].open;

	assert_int_equal(out->lines[0].type, RECORD_OPEN);
	for (unsigned int i = 0; i < open->coverage_count; i++)
		if (open->coverage[i].path == path)
			return &open->coverage[i];
	fail();
	return NULL;
}

static void test_the_record_begins_without_them(void **state)
{
	static const step steps[] = { close_attach, trigger_when_idle, is_tracing, open_attach,
		is_attached, stop, is_closed, is_settled, NULL };
	const struct record_coverage *c;

	run_steps(*state, steps);
	c = coverage_of(read_output(*state), RECORD_IO_PATH_metadata);
	assert_int_equal(c->probe, RECORD_PROBE_wait);
	assert_non_null(strstr(c->reason, "it was still being attached when the record began"));
	assert_int_equal(wait_probe(*state)->links_count, 0);
}

static void test_attached_and_detached(void **state)
{
	static const step steps[] = { trigger_when_idle, is_attached, is_tracing, is_scanned, stop,
		is_closed, is_settled, NULL };
	struct fixture *f = *state;

	run_steps(f, steps);
	assert_int_equal(f->close.lost[RECORD_LOST_not_visited], 0);
	assert_int_equal(wait_probe(f)->links_count, 0);
}

/* They are attached when the incident is over already, so they are detached at once. */
static void test_attached_after_the_end(void **state)
{
	static const step steps[] = { close_attach, trigger_when_idle, is_tracing, stop, is_closed,
		open_attach, is_settled, NULL };
	struct fixture *f = *state;

	run_steps(f, steps);
	assert_false(f->session->probes.attached[CONFIG_PROBE_wait]);
	assert_int_equal(wait_probe(f)->links_count, 0);
	/* Nobody has looked who hung before. */
	assert_true(f->close.lost[RECORD_LOST_not_visited] > 0);
}

static void test_the_record_is_closed_before_they_are_detached(void **state)
{
	static const step steps[] = { close_detach, trigger_when_idle, is_tracing, stop, is_closed,
		open_detach, is_settled, NULL };

	run_steps(*state, steps);
	assert_int_equal(wait_probe(*state)->links_count, 0);
}

/* The next incident begins before they are detached. They are detached and attached again. */
static void test_the_next_incident_waits_for_neither(void **state)
{
	static const step steps[] = { close_detach, trigger_when_idle, is_tracing, stop, is_closed,
		trigger_when_idle, is_tracing, open_detach, is_attached, stop, is_settled, NULL };
	struct fixture *f = *state;

	run_steps(f, steps);
	assert_int_equal(f->closed, 2);
	assert_int_equal(wait_probe(f)->links_count, 0);
}

/* Those that the last incident has asked for are there when the next one begins. */
static void test_the_next_incident_knows_what_is_attached(void **state)
{
	static const step steps[] = { close_rest, trigger_when_idle, is_tracing, is_rest_reached,
		stop, is_closed, trigger_when_idle, is_tracing, open_rest, uring_is_attached, stop,
		is_settled, NULL };

	run_steps(*state, steps);
}

#define attach_test(fn) cmocka_unit_test_setup_teardown(fn, setup_with_wait, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		attach_test(test_the_record_begins_without_them),
		attach_test(test_attached_and_detached),
		attach_test(test_attached_after_the_end),
		attach_test(test_the_record_is_closed_before_they_are_detached),
		attach_test(test_the_next_incident_waits_for_neither),
		attach_test(test_the_next_incident_knows_what_is_attached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
