/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* How events become lines and counts of the open incident. */
#include "test_session_setup.h"

#include "../lib/event_pack.h"
#include "session/alike.h"
#include "session/incident.h"

static void feed_as(struct fixture *f, uint32_t tid, uint64_t start_ns, uint64_t dur_ns,
	uint16_t flags, char state)
{
	struct event_operation e = {
		.header = { .type = EVENT_OPERATION, .version = EVENT_VERSION },
		/* Who is still in an operation is known by `wait`. */
		.probe = flags & EVENT_FINISHED ? CONFIG_PROBE_vfs : CONFIG_PROBE_wait,
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.pid = 7,
		.tid = tid,
		.fd = 41,
		.flags = flags | EVENT_PATH_COMPLETE,
		.state = (uint8_t)state,
		.path_len = 2,
		.comm = "reader",
		.path = "f",
	};

	session_feed_event(f->session, &e, event_pack(&e));
}

static void feed(struct fixture *f, uint32_t tid, uint64_t start_ns, uint64_t dur_ns,
	uint16_t flags)
{
	feed_as(f, tid, start_ns, dur_ns, flags, 0);
}

/* An operation that failed at once is no stall. */
static void test_a_short_operation_that_failed(void **state)
{
	struct event_operation e = {
		.header = { .type = EVENT_OPERATION, .version = EVENT_VERSION },
		.start_ns = 1000,
		.pid = 7,
		.tid = 8,
		.fd = 41,
		.ret = -28,
		.op = EVENT_OP_WRITE,
		.flags = EVENT_FINISHED | EVENT_FAILED | EVENT_PATH_COMPLETE,
		.failures = 1,
		.path_len = 2,
		.comm = "sort",
		.path = "f",
	};
	struct fixture *f = *state;
	const struct output *out;

	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	session_feed_event(f->session, &e, event_pack(&e));
	e.failures = 40;
	session_feed_event(f->session, &e, event_pack(&e));
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->close.stalls, 0);
	assert_int_equal(f->close.longest_ns, 0);
	out = read_output(f);
	assert_int_equal(out->lines[1].type, RECORD_ERROR);
	assert_int_equal(out->lines[1].operation.ret, -28);
	assert_false(out->lines[1].operation.alike.present);
	assert_int_equal(out->lines[2].type, RECORD_ERROR);
	assert_int_equal(out->lines[2].operation.alike.count, 39);
	assert_string_equal(out->lines[out->count - 2].verdict.sentence,
		"At least 41 operations failed with ENOSPC, the first of sort (thread 8) on /f.");
}

/* With kernel.kptr_restrict=2 the program that took the stack gets no names, but /proc has them. */
static void test_a_stack_without_names_is_read_from_proc(void **state)
{
	struct event_operation e = {
		.header = { .type = EVENT_OPERATION, .version = EVENT_VERSION },
		.probe = CONFIG_PROBE_wait,
		.start_ns = 1000,
		.dur_ns = NSEC_PER_SEC,
		.pid = 7,
		.tid = 8,
		.fd = 41,
		.op = EVENT_OP_FSYNC,
		.flags = EVENT_PATH_COMPLETE | EVENT_STACK_ASLEEP,
		.state = 'D',
		.path_len = 2,
		.stack_len = 2,
		.stack_base = 0xffffffff81000000,
		.stack = { 16, 4096 },
		.comm = "writer",
		.path = "f",
	};
	struct fixture *f = *state;
	const struct output *out;

	tree_put(f->t, "proc/8/stack", "[<0>] jbd2_log_wait_commit+0x1/0x2\n");
	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	session_feed_event(f->session, &e, event_pack(&e));
	e.dur_ns = 2 * NSEC_PER_SEC;
	e.flags |= EVENT_FINISHED;
	e.state = 0;
	session_feed_event(f->session, &e, event_pack(&e));
	session_stop(f->session, RECORD_REASON_stopped);
	out = read_output(f);
	for (unsigned int i = 1; i <= 2; i++) {
		assert_string_equal(out->lines[i].operation.kstack, "jbd2_log_wait_commit+0x1");
		assert_int_equal(out->lines[i].operation.waits_for, RECORD_CAUSE_journal_commit);
	}
}

/* No program has taken its stack, so that comes from /proc. */
static void test_a_stuck_operation_becomes_a_stall(void **state)
{
	struct fixture *f = *state;
	const struct output *out;
	const struct record_operation *op;

	tree_put(f->t, "proc/7/stack", "[<0>] io_schedule+0x1/0x2\n[<0>] vfs_read+0x3/0x4\n");
	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	feed_as(f, 7, 1000, NSEC_PER_SEC, 0, 'D');
	/* What was read once is kept. */
	tree_remove(f->t, "proc/7/stack");
	feed_as(f, 7, 1000, 2 * NSEC_PER_SEC, 0, 'S');
	feed(f, 7, 1000, 3 * NSEC_PER_SEC, EVENT_FINISHED);
	feed(f, 8, 2000, 200 * MS, EVENT_FINISHED);
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->close.stuck_lines, 2);
	assert_int_equal(f->close.stuck_threads, 1);
	assert_int_equal(f->close.stalls, 2);
	assert_int_equal(f->close.longest_ns, 3 * NSEC_PER_SEC);

	out = read_output(f);
	assert_int_equal(out->count, 7);
	assert_int_equal(out->lines[1].type, RECORD_STUCK);
	op = &out->lines[1].operation;
	assert_int_equal(op->state, 'D');
	assert_string_equal(op->wchan, "vfs_read");
	assert_string_equal(op->kstack, "io_schedule+0x1\nvfs_read+0x3");
	assert_true(op->kstack_while_blocked);
	assert_int_equal(op->dur_ns, NSEC_PER_SEC);
	assert_int_equal(op->probe, RECORD_PROBE_wait);
	op = &out->lines[2].operation;
	assert_int_equal(op->state, 'S');
	assert_string_equal(op->kstack, "io_schedule+0x1\nvfs_read+0x3");
	assert_true(op->kstack_while_blocked);
	assert_int_equal(out->lines[3].type, RECORD_STALL);
	op = &out->lines[3].operation;
	assert_int_equal(op->dur_ns, 3 * NSEC_PER_SEC);
	assert_string_equal(op->kstack, "io_schedule+0x1\nvfs_read+0x3");
	assert_true(op->kstack_while_blocked);
	/* The operation of another thread has no stack from it. */
	assert_int_equal(out->lines[4].operation.tid, 8);
	assert_string_equal(out->lines[4].operation.kstack, "");
	/* The wait is known, but not its cause, and no sample was taken. */
	assert_int_equal(out->lines[5].type, RECORD_VERDICT);
	assert_string_equal(record_class_text(out->lines[5].verdict.class), "unknown");
	assert_string_equal(out->lines[5].verdict.sentence,
		"Operations took up to 3.0 s, reader (pid 7) in vfs_read the longest; what they "
		"waited for is not known, and the disks were not sampled.");
	assert_int_equal(out->lines[6].type, RECORD_CLOSE);
}

/*
 * Threads that slept interruptibly before anybody looked. Only the stack from /proc says whether
 * that is an operation on storage: the first opens a FIFO, the second asks a FUSE server.
 */
static void test_only_the_stack_proves_it(void **state)
{
	const uint16_t flags = EVENT_BEFORE_ARM | EVENT_UNPROVEN;
	struct fixture *f = *state;
	const struct output *out;

	tree_put(f->t, "proc/7/stack", "[<0>] wait_for_partner+0x1/0x2\n[<0>] fifo_open+0x3/0x4\n");
	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	feed_as(f, 7, 1000, NSEC_PER_SEC, flags, 'S');
	feed_as(f, 8, 1000, NSEC_PER_SEC, flags, 'S');
	tree_put(f->t, "proc/8/stack",
		"[<0>] request_wait_answer.isra.0+0x1/0x2\n[<0>] fuse_lookup_name+0x3/0x4\n");
	feed_as(f, 7, 1000, 2 * NSEC_PER_SEC, flags, 'S');
	feed_as(f, 8, 1000, 2 * NSEC_PER_SEC, flags, 'S');
	feed(f, 7, 1000, 3 * NSEC_PER_SEC, flags | EVENT_FINISHED);
	feed(f, 8, 1000, 3 * NSEC_PER_SEC, flags | EVENT_FINISHED);
	/* Nobody has looked at its stack while it slept. */
	feed(f, 9, 1000, 3 * NSEC_PER_SEC, flags | EVENT_FINISHED);
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->close.stuck_threads, 1);
	assert_int_equal(f->close.stalls, 1);
	out = read_output(f);
	assert_int_equal(out->lines[1].type, RECORD_STUCK);
	assert_int_equal(out->lines[1].operation.tid, 8);
	assert_int_equal(out->lines[1].operation.dur_ns, 2 * NSEC_PER_SEC);
	assert_string_equal(record_cause_text(out->lines[1].operation.waits_for), "FUSE server");
	assert_int_equal(out->lines[2].type, RECORD_STALL);
	assert_int_equal(out->lines[2].operation.tid, 8);
	assert_int_equal(out->lines[3].type, RECORD_VERDICT);
}

static void test_invalid_events_are_counted(void **state)
{
	struct fixture *f = *state;
	const struct event_header unknown = { .size = sizeof(unknown), .type = 99, .version = 1 };

	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	session_feed_event(f->session, &unknown, sizeof(unknown));
	session_feed_event(f->session, &unknown, 3);
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->close.lost[RECORD_LOST_event_invalid], 2);
	assert_int_equal(f->close.stalls, 0);
	/* Losses of one incident do not count for the next one. */
	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->close.lost[RECORD_LOST_event_invalid], 0);
	assert_int_equal(read_output(f)->count, 6);
}

static void test_stuck_operations_beyond_the_table_are_counted(void **state)
{
	struct fixture *f = *state;

	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	for (uint32_t tid = 1; tid <= INCIDENT_STUCK_MAX + 5; tid++)
		feed(f, tid, 1000, NSEC_PER_SEC, 0);
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->close.stuck_threads, INCIDENT_STUCK_MAX);
	assert_int_equal(f->close.lost[RECORD_LOST_stuck_unreported], 5);
}

/* The line of a type that stands for many; NULL: there is none. */
static const struct record_operation *find_alike(const struct output *out, enum record_type type)
{
	for (unsigned int i = 0; i < out->count; i++)
		if (out->lines[i].type == type && out->lines[i].operation.alike.present)
			return &out->lines[i].operation;
	return NULL;
}

/* Each of them counts, while it hangs and when it returns. */
static void test_one_line_stands_for_many(void **state)
{
	const uint32_t threads = 3000, own = ALIKE_OWN_LINES;
	struct fixture *f = *state;
	const struct record_operation *alike;
	const struct output *out;

	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	for (uint32_t tid = 1; tid <= threads; tid++)
		feed(f, tid, 1000, NSEC_PER_SEC + tid, 0);
	/* Those without lines of their own return first. */
	for (uint32_t tid = threads; tid >= 1; tid--)
		feed(f, tid, 1000, 2 * NSEC_PER_SEC + tid, EVENT_FINISHED);
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->close.stuck_threads, threads);
	assert_int_equal(f->close.stuck_lines, own + 1);
	assert_int_equal(f->close.stalls, threads);
	out = read_output(f);
	assert_int_equal(count_type(out, RECORD_STUCK), own + 1);
	/* A thread whose line said that it is stuck has one that says that it is not. */
	assert_int_equal(count_type(out, RECORD_STALL), 2 * own + 1);
	alike = find_alike(out, RECORD_STUCK);
	assert_non_null(alike);
	assert_int_equal(alike->alike.count, threads - own - 1);
	assert_int_equal(alike->alike.max_ns, NSEC_PER_SEC + threads);
	alike = find_alike(out, RECORD_STALL);
	assert_non_null(alike);
	assert_int_equal(alike->alike.count, threads - 2 * own - 1);
}

/* What hung for 22 s when a rule fired is not what the rule has seen. */
static void test_what_hung_long_before_is_a_remark(void **state)
{
	const struct record_verdict_part *earlier = NULL;
	struct fixture *f = *state;
	const struct record_verdict *v;
	const struct output *out;
	uint64_t now_ns;

	for (unsigned int i = 0; i < 6 && state_of(f) != SESSION_TRACING; i++) {
		tree_put_stat(f->t, f->busy += 10, f->iowait += 100, 0);
		tree_sample(f->t, f->watch, 1000);
		session_handle_sample(f->session);
	}
	assert_int_equal(state_of(f), SESSION_TRACING);
	now_ns = clock_mono_ns();
	feed(f, 7, now_ns - 22 * NSEC_PER_SEC, 22 * NSEC_PER_SEC, 0);
	feed(f, 8, now_ns - 2 * NSEC_PER_SEC, 2 * NSEC_PER_SEC, EVENT_FINISHED);
	feed(f, 7, now_ns - 22 * NSEC_PER_SEC, 24 * NSEC_PER_SEC, EVENT_FINISHED);
	session_stop(f->session, RECORD_REASON_stopped);
	out = read_output(f);
	v = &out->lines[out->count - 2].verdict;
	for (uint32_t i = 0; i < v->parts_count; i++)
		if (v->parts[i].what == RECORD_WHAT_earlier)
			earlier = &v->parts[i];
	assert_non_null(earlier);
	assert_int_equal(earlier->pid, 7);
	assert_int_equal(earlier->threads, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		session_test(test_a_short_operation_that_failed),
		session_test(test_a_stuck_operation_becomes_a_stall),
		session_test(test_a_stack_without_names_is_read_from_proc),
		session_test(test_only_the_stack_proves_it),
		session_test(test_invalid_events_are_counted),
		session_test(test_stuck_operations_beyond_the_table_are_counted),
		session_test(test_what_hung_long_before_is_a_remark),
		session_test(test_one_line_stands_for_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
