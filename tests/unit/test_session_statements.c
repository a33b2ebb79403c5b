/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which thread's lines say which database session it served. */
#include "test_session_answers.h"

#include "iostall/event.h"

#define FIXED_SIZE offsetof(struct event_operation, path)

static void feed(struct fixture *f, int32_t tid, uint64_t start_ns, uint64_t end_ns, uint16_t flags)
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
		.comm = "server",
		.path = "f",
	};

	e.header.size = (uint32_t)FIXED_SIZE + e.path_len;
	session_feed_event(f->session, &e, e.header.size);
}

/* The thread of session 17, as the fake has it, around its newest answer. */
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
	feed(f, view.tid, e.current->asked_ns - NSEC_PER_SEC, e.current->answered_ns + 2, EVENT_FINISHED);
	feed(f, view.tid, e.current->asked_ns + 1, e.current->answered_ns + NSEC_PER_SEC, EVENT_FINISHED);
	feed(f, view.tid, e.current->asked_ns - NSEC_PER_SEC, e.current->asked_ns, EVENT_FINISHED);
	feed(f, view.tid + 1, e.current->asked_ns - NSEC_PER_SEC, e.current->answered_ns + 1, EVENT_FINISHED);
	return true;
}

static int setup_good(void **state)
{
	return setup_sql(state, "sql.good");
}

static void test_connections(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, feed_operations, stop_it, is_closed,
		NULL };
	static const uint64_t expected[] = { 17, 17, 0, 0, 0 };
	struct fixture *f = *state;
	const struct output *out;
	unsigned int count = 0;

	run(f, steps);
	out = read_output(f);
	for (unsigned int i = 0; i < out->count; i++) {
		const struct record *r = &out->lines[i];

		if (r->type != RECORD_STALL && r->type != RECORD_STUCK)
			continue;
		assert_true(count < ARRAY_SIZE(expected));
		assert_int_equal(r->operation.connection_id, expected[count]);
		count++;
	}
	assert_int_equal(count, ARRAY_SIZE(expected));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connections, setup_good, teardown_sql),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
