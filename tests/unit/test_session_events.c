/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From an event to the lines and counts of the open incident. */
#include "test_session_setup.h"

#include "iostall/event.h"

#define FIXED_SIZE offsetof(struct event_operation, path)

static void feed(struct fixture *f, uint32_t tid, uint64_t start_ns, uint64_t dur_ns, uint16_t flags)
{
	struct event_operation e = {
		.header = { .type = EVENT_OPERATION, .version = EVENT_VERSION },
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.pid = 7,
		.tid = tid,
		.fd = 41,
		.flags = flags | EVENT_PATH_COMPLETE,
		.path_len = 2,
		.comm = "reader",
		.path = "f",
	};

	e.header.size = (uint32_t)FIXED_SIZE + e.path_len;
	session_feed_event(f->session, &e, e.header.size);
}

static void test_stuck_then_stall(void **state)
{
	struct fixture *f = *state;
	const struct output *out;
	const struct record_operation *op;

	tree_put(f->t, "proc/7/stat", "7 (reader) D 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	tree_put(f->t, "proc/7/wchan", "io_schedule");
	tree_put(f->t, "proc/7/stack", "[<0>] io_schedule+0x1/0x2\n[<0>] vfs_read+0x3/0x4\n");
	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	feed(f, 7, 1000, NSEC_PER_SEC, 0);
	/* By the next look it has moved on; what it waited in is kept. */
	tree_put(f->t, "proc/7/stat", "7 (reader) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	tree_put(f->t, "proc/7/wchan", "0");
	tree_remove(f->t, "proc/7/stack");
	feed(f, 7, 1000, 2 * NSEC_PER_SEC, 0);
	feed(f, 7, 1000, 3 * NSEC_PER_SEC, EVENT_FINISHED);
	feed(f, 8, 2000, 200 * MS, EVENT_FINISHED);
	session_stop(f->session, "stopped");
	assert_int_equal(f->close.stuck_lines, 2);
	assert_int_equal(f->close.stuck_threads, 1);
	assert_int_equal(f->close.stalls, 2);
	assert_int_equal(f->close.longest_ns, 3 * NSEC_PER_SEC);

	out = read_output(f);
	assert_int_equal(out->count, 7);
	assert_int_equal(out->lines[1].type, RECORD_STUCK);
	op = &out->lines[1].operation;
	assert_int_equal(op->state, 'D');
	assert_string_equal(op->wchan, "io_schedule");
	assert_string_equal(op->kstack, "io_schedule+0x1\nvfs_read+0x3");
	assert_true(op->kstack_while_blocked);
	assert_int_equal(op->dur_ns, NSEC_PER_SEC);
	assert_string_equal(op->probe, "vfs");
	op = &out->lines[2].operation;
	assert_int_equal(op->state, 'S');
	assert_string_equal(op->wchan, "");
	assert_false(op->kstack_while_blocked);
	assert_int_equal(out->lines[3].type, RECORD_STALL);
	op = &out->lines[3].operation;
	assert_int_equal(op->dur_ns, 3 * NSEC_PER_SEC);
	assert_string_equal(op->kstack, "io_schedule+0x1\nvfs_read+0x3");
	assert_true(op->kstack_while_blocked);
	/* Another thread's operation has nothing to do with it. */
	assert_int_equal(out->lines[4].operation.tid, 8);
	assert_string_equal(out->lines[4].operation.kstack, "");
	/* Where it waited for so long is known, but not what for, and no sample was taken. */
	assert_int_equal(out->lines[5].type, RECORD_VERDICT);
	assert_string_equal(out->lines[5].verdict.class_name, "unknown");
	assert_string_equal(out->lines[5].verdict.sentence, "no verdict: operations took up to 3.00 s, but "
		"there is no reading of the devices; what the devices did with each request was not seen");
	assert_int_equal(out->lines[6].type, RECORD_CLOSE);
}

static void test_events_that_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	const struct event_header unknown = { .size = sizeof(unknown), .type = 99, .version = 1 };

	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	session_feed_event(f->session, &unknown, sizeof(unknown));
	session_feed_event(f->session, &unknown, 3);
	session_stop(f->session, "stopped");
	assert_int_equal(f->close.lost[RECORD_LOST_event_invalid], 2);
	assert_int_equal(f->close.stalls, 0);
	/* What one incident lost is not the next one's. */
	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	session_stop(f->session, "stopped");
	assert_int_equal(f->close.lost[RECORD_LOST_event_invalid], 0);
	assert_int_equal(read_output(f)->count, 6);
}

static void test_more_stuck_than_fit(void **state)
{
	struct fixture *f = *state;

	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	for (uint32_t tid = 1; tid <= 4096 + 5; tid++)
		feed(f, tid, 1000, NSEC_PER_SEC, 0);
	session_stop(f->session, "stopped");
	assert_int_equal(f->close.stuck_threads, 4096);
	assert_int_equal(f->close.lost[RECORD_LOST_stuck_unreported], 5);
	/* Nobody reads the terminal: it says what it did not take. */
	assert_true(f->close.lost[RECORD_LOST_sink_dropped] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		session_test(test_stuck_then_stall),
		session_test(test_events_that_cannot_be_read),
		session_test(test_more_stuck_than_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
