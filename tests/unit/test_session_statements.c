/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which database session the line of a thread names. */
#include "test_session_answers.h"

#include "../lib/event_pack.h"

/* Start of an operation long before all answers. */
#define BEFORE_NS 1000

static void feed_of(struct fixture *f, enum config_probe_name probe, int32_t tid, uint64_t start_ns,
	uint64_t end_ns, uint16_t flags)
{
	struct event_operation e = {
		.header = { .type = EVENT_OPERATION, .version = EVENT_VERSION },
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.pid = (uint32_t)tid,
		.tid = (uint32_t)tid,
		.fd = 41,
		.flags = flags | EVENT_PATH_COMPLETE,
		.path_len = 2,
		.probe = (uint8_t)probe,
		.comm = "server",
		.path = "f",
	};

	session_feed_event(f->session, &e, event_pack(&e));
}

static void feed(struct fixture *f, int32_t tid, uint64_t start_ns, uint64_t end_ns, uint16_t flags)
{
	feed_of(f, CONFIG_PROBE_vfs, tid, start_ns, end_ns, flags);
}

/* An operation of the thread of session 17 of the fake server, at its newest answer. */
static bool feed_operations(struct fixture *f)
{
	struct sql_session_view view;
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	if (!e.current)
		return false;
	sql_snapshot_view(e.current, 0, &view);
	assert_int_equal(view.connection_id, 17);
	assert_true(view.tid > 0);
	feed(f, view.tid, e.current->asked_ns - NSEC_PER_SEC, e.current->answered_ns + 1, 0);
	feed(f, view.tid, e.current->asked_ns - NSEC_PER_SEC, e.current->answered_ns + 2,
		EVENT_FINISHED);
	feed(f, view.tid, e.current->asked_ns + 1, e.current->answered_ns + NSEC_PER_SEC,
		EVENT_FINISHED);
	feed(f, view.tid, e.current->asked_ns - NSEC_PER_SEC, e.current->asked_ns, EVENT_FINISHED);
	feed(f, view.tid + 1, e.current->asked_ns - NSEC_PER_SEC, e.current->answered_ns + 1,
		EVENT_FINISHED);
	return true;
}

static int setup_backend(void **state)
{
	return setup_sql_type(state, "sql.backend", CONFIG_SQL_POSTGRESQL);
}

static void assert_connections(struct fixture *f, const uint64_t expected[5])
{
	static const step steps[] = { is_answered, trigger_until_stopped, feed_operations, stop_it,
		is_closed, NULL };
	const struct output *out;
	unsigned int count = 0;

	run(f, steps);
	out = read_output(f);
	for (unsigned int i = 0; i < out->count; i++) {
		const struct record *r = &out->lines[i];

		if (r->type != RECORD_STALL && r->type != RECORD_STUCK)
			continue;
		assert_true(count < 5);
		assert_int_equal(r->operation.connection_id, expected[count]);
		count++;
	}
	assert_int_equal(count, 5);
}

static void test_connections_of_threads(void **state)
{
	assert_connections(*state, (const uint64_t[]){ 17, 17, 0, 0, 0 });
}

static void test_connections_of_processes(void **state)
{
	assert_connections(*state, (const uint64_t[]){ 17, 17, 17, 17, 0 });
}

/* Makes these threads part of the server in the fixture /proc. */
static void put_thread(struct fixture *f, int32_t server_pid, int32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/task/%d/status", server_pid, tid);
	tree_put(f->t, path, "\n");
}

/*
 * At the newest answer 7001 hung, 7002 hung later, 7003 belongs to another process, and 7004 only
 * has a request in flight.
 */
static bool hang(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	if (!e.current)
		return false;
	f->mark_ns = e.current->answered_ns;
	put_thread(f, e.server_pid, 7001);
	put_thread(f, e.server_pid, 7002);
	put_thread(f, e.server_pid, 7004);
	feed(f, 7001, BEFORE_NS, f->mark_ns + MS, 0);
	feed(f, 7002, f->mark_ns + 1, f->mark_ns + MS, 0);
	feed(f, 7003, BEFORE_NS, f->mark_ns + MS, 0);
	feed_of(f, CONFIG_PROBE_uring, 7004, BEFORE_NS, f->mark_ns + MS, 0);
	return true;
}

static bool is_answered_again(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.current->asked_ns > f->mark_ns + MS;
}

static bool one_returns(struct fixture *f)
{
	feed(f, 7001, BEFORE_NS, clock_mono_ns(), EVENT_FINISHED);
	f->mark_ns = clock_mono_ns();
	return true;
}

/* The session of the answer of 7001 and 7002 is another one than that of 7002 alone. */
static void test_threads_that_hang_may_be_those_of_sessions(void **state)
{
	static const step steps[] = { trigger_until_stopped, hang, is_answered_again, one_returns,
		is_answered_again, stop_it, is_closed, NULL };
	struct fixture *f = *state;
	const struct output *out;
	unsigned int sessions[3] = { 0 };

	run(f, steps);
	out = read_output(f);
	for (unsigned int i = 0; i < out->count; i++) {
		const struct record_sql *q = &out->lines[i].sql;
		const uint64_t *c = q->candidates;
		unsigned int count = c[1] ? 2 : c[0] ? 1 : 0;

		if (out->lines[i].type != RECORD_SQL || q->connection_id == 0)
			continue;
		/* A session whose thread is known has no candidates. */
		assert_true(!q->tid || count == 0);
		assert_int_equal(c[0] + c[1], count == 2 ? 7001 + 7002 : count == 1 ? 7002 : 0);
		assert_int_equal(c[2], 0);
		sessions[count]++;
	}
	assert_true(sessions[1] > 0 && sessions[2] > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		sql_test(test_connections_of_threads, "sql.good"),
		cmocka_unit_test_setup_teardown(test_connections_of_processes, setup_backend,
			teardown_sql),
		sql_test(test_threads_that_hang_may_be_those_of_sessions, "sql.changes"),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
