/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict: whose statement loaded a device, and which are of others. */
#include "test_verdict_setup.h"

static bool find_scan(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	assert_int_equal(pid, 2211);
	assert_int_equal(tid, 2225);
	*ret = (struct verdict_statement){ .user = "app@localhost", .database = "big",
		.text = "SELECT COUNT(*)\n\tFROM t  WHERE c LIKE ?", .elapsed_ns = 31 * NSEC_PER_SEC };
	return true;
}

static uint32_t count_others(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	(void)userdata;
	assert_true(tid == 2225 || tid == 0);
	*ret_longest_ns = 12 * NSEC_PER_SEC;
	return 14;
}

static int32_t leader_of_none(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid;
}

static void test_a_statement_stays_out_of_the_logs_of_others(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_scan, .leader_of = leader_of_none,
		.count_others = count_others };
	struct fixture *x = *state;

	scan(x);
	verdict_decide(&x->f, &sql, &x->v);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 92 % of 204.0 MiB read by mariadbd tid 2225, big/t.ibd, app@localhost "
		"\"SELECT COUNT(*) FROM t WHERE c LIKE ?\" running 31.00 s; 2 other threads waited up "
		"to 12.00 s; 14 other statements under way for up to 12.00 s");
	assert_string_equal(x->v.message, "device sdb saturated (util 100 %, r_await 300 ms, queue 64): "
		"92 % of 204.0 MiB read by mariadbd tid 2225, big/t.ibd, app@localhost, a statement running "
		"31.00 s; 2 other threads waited up to 12.00 s; 14 other statements under way for up to "
		"12.00 s");
	assert_string_equal(part(x, "statement")->text,
		"app@localhost \"SELECT COUNT(*) FROM t WHERE c LIKE ?\" running 31.00 s");
}

static bool find_given(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)pid;
	(void)tid;
	*ret = *(struct verdict_statement *)userdata;
	return true;
}

static void assert_statement(struct fixture *x, uint64_t started_ns, uint64_t elapsed_ns, bool is_sure,
	const char *basis)
{
	struct verdict_statement statement = { .user = "app", .text = "SELECT 1", .elapsed_ns = elapsed_ns,
		.started_ns = started_ns };
	const struct verdict_sql sql = { .find_statement = find_given, .leader_of = leader_of_none,
		.count_others = count_others, .userdata = &statement };

	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence, is_sure ? "t.ibd, app \"SELECT 1\" running " :
							"t.ibd, meanwhile app \"SELECT 1\" running "));
	assert_non_null(strstr(x->v.message, is_sure ? "t.ibd, app, a statement running " :
						       "t.ibd, meanwhile app, a statement running "));
	assert_string_equal(part(x, "statement")->basis, basis);
	assert_memory_equal(part(x, "statement")->text, "app \"SELECT 1\" running ", 23);
}

/* The thread may have moved the bytes for the one before. */
static void test_a_statement_that_began_later_is_not_passed_off_as_the_reason(void **state)
{
	struct fixture *x = *state;

	scan(x);
	assert_statement(x, TRIGGER_NS, 4500 * MS, true, "measured");
	assert_statement(x, TRIGGER_NS + 1, 4500 * MS, false, "inferred");
	/* In whole seconds nobody knows it better than to a second. */
	assert_statement(x, TRIGGER_NS - NSEC_PER_SEC, 4 * NSEC_PER_SEC, true, "measured");
	assert_statement(x, TRIGGER_NS - NSEC_PER_SEC + 1, 4 * NSEC_PER_SEC, true, "inferred");
	assert_statement(x, TRIGGER_NS + NSEC_PER_SEC, 4 * NSEC_PER_SEC, true, "inferred");
	assert_statement(x, TRIGGER_NS + NSEC_PER_SEC + 1, 4 * NSEC_PER_SEC, false, "inferred");
}

static int32_t leader_of_counted(void *userdata, int32_t tid)
{
	*(unsigned int *)userdata += tid == 2225;
	return tid;
}

/* Each look goes over all sessions of all targets, and there may be 256 threads. */
static void test_the_culprits_leader_is_looked_up_once(void **state)
{
	unsigned int looks = 0;
	const struct verdict_sql sql = { .find_statement = find_scan, .leader_of = leader_of_counted,
		.count_others = count_others, .userdata = &looks };
	struct fixture *x = *state;

	scan(x);
	for (int32_t tid = 3000; tid < 3100; tid++)
		operation(x, tid, "page", NSEC_PER_SEC, true);
	verdict_decide(&x->f, &sql, &x->v);
	assert_int_equal(part(x, "victims")->threads, 102);
	/* As a thread with a share, as the culprit, and as a thread that waited. */
	assert_in_range(looks, 1, 3);
}

static bool find_of_process(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	assert_int_equal(pid, 4711);
	assert_int_equal(tid, 0);
	*ret = (struct verdict_statement){ .user = "app@localhost", .text = "SELECT 1",
		.elapsed_ns = 9 * NSEC_PER_SEC };
	return true;
}

/* Of two statements, one of them by process 4711. */
static uint32_t count_of_two(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	(void)userdata;
	*ret_longest_ns = 4 * NSEC_PER_SEC;
	return tid == 4711 ? 1 : 2;
}

/* A backend of PostgreSQL with less than half: a line of a process has no thread. */
static void test_the_statement_of_a_process_is_none_of_the_others(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_of_process, .leader_of = leader_of_none,
		.count_others = count_of_two };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 4711, 0, "postgres", 40, false);
	load(x, "process", 4712, 0, "postgres", 30, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence, "40 % of 204.0 MiB read by postgres pid 4711 together with 1 "
		"other, app@localhost \"SELECT 1\" running 9.00 s; 1 other statement under way"));
}

static bool find_of_leader(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	assert_int_equal(pid, 4711);
	assert_int_equal(tid, 4711);
	*ret = (struct verdict_statement){ .user = "app@localhost", .text = "SELECT 1",
		.elapsed_ns = 9 * NSEC_PER_SEC };
	return true;
}

static int32_t leader_of_backends(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid == 4720 || tid == 4721 ? 4711 : tid;
}

static const struct verdict_sql parallel = { .find_statement = find_of_leader,
	.leader_of = leader_of_backends, .count_others = count_of_two };

static void backend_waits(struct fixture *x, int32_t pid)
{
	struct record_operation op = { .op = "read", .probe = "vfs", .pid = pid, .tid = pid,
		.comm = "postgres", .waits_for = "page", .dev_major = 8, .dev_minor = 16,
		.dev_name = "sdb", .dur_ns = NSEC_PER_SEC };

	verdict_note_operation(&x->f, &op, true);
}

static void backend(struct fixture *x, int32_t pid, double share_pct)
{
	backend_waits(x, pid);
	load(x, "process", pid, 0, "postgres", share_pct, false);
	load(x, "thread", pid, pid, "postgres", share_pct, false);
}

/* Each has a third, and none is another's competitor or victim. */
static void test_workers_of_one_statement_are_one(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	backend(x, 4720, 34);
	backend(x, 4711, 33);
	backend(x, 4721, 31);
	backend(x, 4730, 2);
	verdict_decide(&x->f, &parallel, &x->v);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 98 % of 204.0 MiB read by postgres pid 4711 and 2 that work for it, "
		"app@localhost \"SELECT 1\" running 9.00 s; 1 other thread waited up to 1.00 s; 1 other "
		"statement under way for up to 4.00 s");
	assert_int_equal(part(x, "culprit")->pid, 4711);
	assert_int_equal(part(x, "culprit")->tid, 4711);
	assert_int_equal(part(x, "culprit")->bytes, 300 * MIB);
	assert_int_equal(part(x, "culprit")->requests, 3000);
	assert_int_equal(part(x, "victims")->tid, 4730);
}

/* What moved the bytes is named, not the one that it did it for; but that one is no victim. */
static void test_who_works_for_the_statement_is_no_victim(void **state)
{
	struct verdict_statement statement = { .text = "SELECT 1" };
	const struct verdict_sql sql = { .find_statement = find_given, .leader_of = leader_of_backends,
		.count_others = count_of_two, .userdata = &statement };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	backend(x, 4720, 92);
	backend(x, 4730, 6);
	backend_waits(x, 4711);
	verdict_decide(&x->f, &sql, &x->v);
	assert_int_equal(part(x, "culprit")->tid, 4720);
	assert_int_equal(part(x, "victims")->threads, 1);
	assert_int_equal(part(x, "victims")->tid, 4730);
}

/* One that only collects what they read; what they did on another device is not of this one. */
static void test_a_leader_that_moved_nothing(void **state)
{
	const struct record_io_by other = { .by = "thread", .dev_major = 9, .pid = 4711, .tid = 4711,
		.comm = "postgres", .bytes = MIB, .share_pct = 9 };
	const struct record_device device = { .dev_major = 9, .dev_name = "sdc", .final = true };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_device(&x->f, &device);
	verdict_note_io_by(&x->f, &other);
	backend(x, 4720, 40);
	backend(x, 4721, 20);
	backend(x, 4730, 10);
	verdict_decide(&x->f, &parallel, &x->v);
	assert_non_null(strstr(x->v.sentence, ": 60 % of 204.0 MiB read by 2 that work for postgres pid 4711, "
		"app@localhost "));
	assert_int_equal(part(x, "victims")->threads, 1);
}

/* With less than half they share the blame with others. */
static void test_workers_with_less_than_half(void **state)
{
	struct fixture *x = *state;
	const struct verdict_sql sql = { .find_statement = find_of_process, .leader_of = leader_of_backends,
		.count_others = count_of_two };

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	backend(x, 4711, 30);
	backend(x, 4720, 19);
	backend(x, 4730, 18);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence, ": 30 % of 204.0 MiB read by postgres pid 4711 together with 2 "
		"others, "));
}

static bool find_never(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	(void)pid;
	(void)tid;
	(void)ret;
	fail_msg("a statement was asked for");
	return false;
}

/* Nothing was at its limit, but something ran. */
static void test_statements_without_a_verdict(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_never, .leader_of = leader_of_none,
		.count_others = count_others };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_decide(&x->f, &sql, &x->v);
	assert_verdict(x, "unknown", "inferred", "no verdict: no operation took 100 ms and no device was at "
		"its limit; 14 statements under way for up to 12.00 s");
	assert_string_equal(x->v.message, x->v.sentence);
	/* Whose wait it was is not said, since it is not known to be one. */
	operation(x, 2230, "", 300 * MS, true);
	verdict_decide(&x->f, &sql, &x->v);
	assert_null(strstr(x->v.sentence, "waited up to"));
}

static void test_statements_of_a_silent_database(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_never, .leader_of = leader_of_none,
		.count_others = count_others };
	const struct verdict_silence silence = { .ns = 3 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_silence(&x->f, 0, "main", &(struct verdict_who){ 0 }, &silence);
	verdict_decide(&x->f, &sql, &x->v);
	assert_verdict(x, "unanswered", "measured",
		"database main has not answered for 3.00 s; 14 statements under way for up to 12.00 s");
	samples(x, &slow_sdb, 5);
	verdict_decide(&x->f, &sql, &x->v);
	assert_string_equal(x->v.class_name, "slow");
	assert_non_null(strstr(x->v.sentence, "; database main has not answered for 3.00 s; 14 statements under "
					       "way for up to 12.00 s"));
}

/* A device that is slow by itself is no statement's doing. */
static void test_only_the_load_is_a_statement(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_never, .leader_of = leader_of_none,
		.count_others = count_others };
	struct fixture *x = *state;

	samples(x, &slow_sdb, 5);
	totals(x, 40, 40 * 4096, 130 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 100, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_string_equal(x->v.class_name, "slow");
	/* Whose thread waited, and whose did not, is not known: they are not others. */
	assert_non_null(strstr(x->v.sentence, "; 14 statements under way for up to 12.00 s"));
	assert_null(part(x, "missing"));
}

static bool find_none(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)ret;
	assert_int_equal(pid, 2211);
	*(int32_t *)userdata = tid;
	return false;
}

static bool is_server(void *userdata, int32_t pid)
{
	(void)userdata;
	return pid == 2211;
}

static bool is_no_server(void *userdata, int32_t pid)
{
	(void)userdata;
	(void)pid;
	return false;
}

static uint32_t count_one(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	(void)userdata;
	(void)tid;
	*ret_longest_ns = 4 * NSEC_PER_SEC;
	return 1;
}

/* It reads for its statements in threads of its own: no statement is guessed, nor is it one of others. */
static void test_a_server_is_to_blame_without_a_statement(void **state)
{
	int32_t asked_tid = -1;
	const struct verdict_sql sql = { .find_statement = find_none, .is_server = is_server,
		.leader_of = leader_of_none, .count_others = count_one, .userdata = &asked_tid };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2211, 0, "mariadbd", 98, false);
	load(x, "thread", 2211, 2230, "mariadbd", 25, false);
	load(x, "thread", 2211, 2231, "mariadbd", 24, false);
	load(x, "file", 0, 0, "", 91, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_int_equal(asked_tid, 0);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 98 % of 204.0 MiB read by mariadbd pid 2211, big/t.ibd; 1 statement under "
		"way for up to 4.00 s");
	assert_null(part(x, "statement"));
	assert_string_equal(part(x, "missing")->text,
		"for which statement the bytes were: no thread of the server moved half of them");
}

static void test_a_thread_of_a_server_without_a_statement(void **state)
{
	int32_t asked_tid = -1;
	struct verdict_sql sql = { .find_statement = find_none, .is_server = is_server,
		.leader_of = leader_of_none, .count_others = count_one, .userdata = &asked_tid };
	struct fixture *x = *state;

	scan(x);
	verdict_decide(&x->f, &sql, &x->v);
	assert_int_equal(asked_tid, 2225);
	assert_null(part(x, "statement"));
	assert_string_equal(part(x, "missing")->text,
		"for which statement the bytes were: none is known of the thread that moved them");
	/* Nothing is missing where there was nothing to ask for, or nobody to ask. */
	sql.is_server = is_no_server;
	verdict_decide(&x->f, &sql, &x->v);
	assert_null(part(x, "missing"));
	decide(x);
	assert_null(part(x, "missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_statement_stays_out_of_the_logs_of_others),
		verdict_test(test_a_statement_that_began_later_is_not_passed_off_as_the_reason),
		verdict_test(test_the_culprits_leader_is_looked_up_once),
		verdict_test(test_the_statement_of_a_process_is_none_of_the_others),
		verdict_test(test_workers_of_one_statement_are_one),
		verdict_test(test_who_works_for_the_statement_is_no_victim),
		verdict_test(test_a_leader_that_moved_nothing),
		verdict_test(test_workers_with_less_than_half),
		verdict_test(test_statements_without_a_verdict),
		verdict_test(test_statements_of_a_silent_database),
		verdict_test(test_only_the_load_is_a_statement),
		verdict_test(test_a_server_is_to_blame_without_a_statement),
		verdict_test(test_a_thread_of_a_server_without_a_statement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
