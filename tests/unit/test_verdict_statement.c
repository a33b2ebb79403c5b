/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The verdict: whose statement loaded a device, and how many others ran. */
#include "test_verdict_setup.h"

static bool find_scan(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	assert_int_equal(pid, 2211);
	assert_int_equal(tid, 2225);
	*ret = (struct verdict_statement){ .user = "app@localhost",
		.database = "big",
		.text = "SELECT COUNT(*)\n\tFROM t  WHERE c LIKE ?",
		.elapsed_ns = 31 * NSEC_PER_SEC };
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

static void test_the_message_for_logs_has_no_statement_text(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_scan,
		.leader_of = leader_of_none,
		.count_others = count_others };
	struct fixture *x = *state;

	scan(x);
	verdict_decide(&x->f, &sql, &x->v);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): mariadbd tid 2225 used 92 % of the device time (1000 reads, "
		"100.0 MiB), mostly on big/t.ibd, for a statement of app@localhost that had "
		"run for 31.00 s: \"SELECT COUNT(*) FROM t WHERE c LIKE ?\". 2 other threads "
		"waited up to 12.00 s; up to 14 other statements ran at once, the longest for "
		"12.00 s");
	assert_string_equal(x->v.message,
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): mariadbd tid 2225 used 92 % of the device time (1000 reads, "
		"100.0 MiB), mostly on big/t.ibd, for a statement of app@localhost that had "
		"run for 31.00 s. 2 other threads waited up to 12.00 s; up to 14 other "
		"statements ran at once, the longest for 12.00 s");
	assert_string_equal(part(x, "statement")->text,
		"a statement of app@localhost that had run for 31.00 s: \"SELECT COUNT(*) "
		"FROM t WHERE c LIKE ?\"");
}

static bool find_given(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)pid;
	(void)tid;
	*ret = *(struct verdict_statement *)userdata;
	return true;
}

static void assert_statement(struct fixture *x, uint64_t started_ns, uint64_t elapsed_ns,
	bool is_sure, const char *basis)
{
	struct verdict_statement statement = { .user = "app",
		.text = "SELECT 1",
		.elapsed_ns = elapsed_ns,
		.started_ns = started_ns };
	const struct verdict_sql sql = { .find_statement = find_given,
		.leader_of = leader_of_none,
		.count_others = count_others,
		.userdata = &statement };

	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		is_sure ? "t.ibd, for a statement of app that had run for "
			: "t.ibd, perhaps for a statement of app that had run for "));
	assert_non_null(strstr(x->v.message,
		is_sure ? "t.ibd, for a statement of app that had run for "
			: "t.ibd, perhaps for a statement of app that had run for "));
	assert_string_equal(record_basis_text(part(x, "statement")->basis), basis);
	assert_memory_equal(part(x, "statement")->text, "a statement of app that had run", 30);
	assert_non_null(strstr(part(x, "statement")->text, " s: \"SELECT 1\""));
}

/* The thread may have moved the bytes for its previous statement. */
static void test_a_statement_after_the_trigger_is_only_perhaps_the_cause(void **state)
{
	struct fixture *x = *state;

	scan(x);
	assert_statement(x, TRIGGER_NS, 4500 * MS, true, "measured");
	assert_statement(x, TRIGGER_NS + 1, 4500 * MS, false, "inferred");
	/* A length in whole seconds may be off by a second. */
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

/* Each lookup searches all sessions of all databases, and there may be 256 threads. */
static void test_the_culprits_leader_is_looked_up_once(void **state)
{
	unsigned int looks = 0;
	const struct verdict_sql sql = { .find_statement = find_scan,
		.leader_of = leader_of_counted,
		.count_others = count_others,
		.userdata = &looks };
	struct fixture *x = *state;

	scan(x);
	for (int32_t tid = 3000; tid < 3100; tid++)
		operation(x, tid, "page", NSEC_PER_SEC, true);
	verdict_decide(&x->f, &sql, &x->v);
	assert_int_equal(part(x, "victims")->threads, 102);
	/* Once as a thread with a share, once as the culprit, and once as a thread that waited. */
	assert_in_range(looks, 1, 3);
}

static bool find_of_process(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	assert_int_equal(pid, 4711);
	assert_int_equal(tid, 0);
	*ret = (struct verdict_statement){ .user = "app@localhost",
		.text = "SELECT 1",
		.elapsed_ns = 9 * NSEC_PER_SEC };
	return true;
}

/* Two statements ran, one of them in process 4711. */
static uint32_t count_of_two(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	(void)userdata;
	*ret_longest_ns = 4 * NSEC_PER_SEC;
	return tid == 4711 ? 1 : 2;
}

/* A PostgreSQL backend with less than half of the bytes: the line of a process names no thread. */
static void test_the_culprits_statement_is_not_counted_among_the_others(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_of_process,
		.leader_of = leader_of_none,
		.count_others = count_of_two };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 4711, 0, "postgres", 40, false);
	load(x, "process", 4712, 0, "postgres", 30, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		"; no program alone caused it: postgres pid 4711 used the most, 40 % of the device time (1000 "
		"reads, 100.0 MiB), for a statement "
		"of app@localhost that had run for 9.00 s: \"SELECT 1\"; next came postgres pid 4712 with "
		"30 %. 1 other statement had been running for 4.00 s"));
}

static bool find_of_leader(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	assert_int_equal(pid, 4711);
	assert_int_equal(tid, 4711);
	*ret = (struct verdict_statement){ .user = "app@localhost",
		.text = "SELECT 1",
		.elapsed_ns = 9 * NSEC_PER_SEC };
	return true;
}

static int32_t leader_of_backends(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid == 4720 || tid == 4721 ? 4711 : tid;
}

static const struct verdict_sql parallel = { .find_statement = find_of_leader,
	.leader_of = leader_of_backends,
	.count_others = count_of_two };

static void backend_waits(struct fixture *x, int32_t pid)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_vfs,
		.sleeps = 1,
		.pid = pid,
		.tid = pid,
		.comm = "postgres",
		.waits_for = RECORD_CAUSE_page,
		.dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.dur_ns = NSEC_PER_SEC };

	verdict_note_operation(&x->f, &op, true);
}

static void backend(struct fixture *x, int32_t pid, double share_pct)
{
	backend_waits(x, pid);
	load(x, "process", pid, 0, "postgres", share_pct, false);
	load(x, "thread", pid, pid, "postgres", share_pct, false);
}

/* Each has a third of the bytes, and none is a victim of another. */
static void test_parallel_workers_are_blamed_together(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	backend(x, 4720, 34);
	backend(x, 4711, 33);
	backend(x, 4721, 31);
	backend(x, 4730, 2);
	verdict_decide(&x->f, &parallel, &x->v);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): postgres pid 4711 and 2 parallel workers used 98 % of the device time (3000 reads, 300.0 MiB), for a statement of app@localhost that had run "
		"for 9.00 s: \"SELECT 1\". 1 other thread waited 1.00 s; 1 other statement had "
		"been running for 4.00 s");
	assert_int_equal(part(x, "culprit")->pid, 4711);
	assert_int_equal(part(x, "culprit")->tid, 4711);
	assert_int_equal(part(x, "culprit")->bytes, 300 * MIB);
	assert_int_equal(part(x, "culprit")->requests, 3000);
	assert_int_equal(part(x, "victims")->tid, 4730);
}

/* A worker that moved most bytes alone is named itself. */
static void test_a_parallel_leader_is_not_a_victim_of_its_worker(void **state)
{
	struct verdict_statement statement = { .text = "SELECT 1" };
	const struct verdict_sql sql = { .find_statement = find_given,
		.leader_of = leader_of_backends,
		.count_others = count_of_two,
		.userdata = &statement };
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

/* A leader that only collects what its workers read. Its I/O on another device does not count. */
static void test_a_parallel_leader_without_io(void **state)
{
	const struct record_io_by other = { .by = RECORD_BY_thread,
		.dev.major = 9,
		.pid = 4711,
		.tid = 4711,
		.comm = "postgres",
		.bytes = MIB,
		.busy_ns = NSEC_PER_SEC,
		.busy_share_pct = 9 };
	const struct record_device device = { .dev.major = 9, .dev_name = "sdc", .final = true };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_device(&x->f, &device);
	verdict_note_io_by(&x->f, &other);
	backend(x, 4720, 40);
	backend(x, 4721, 20);
	backend(x, 4730, 10);
	verdict_decide(&x->f, &parallel, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 2 parallel workers of postgres pid 4711 used 60 % of the device time (2000 reads, 200.0 MiB), for "));
	assert_int_equal(part(x, "victims")->threads, 1);
}

/* Then they share the blame with others. */
static void test_parallel_workers_with_less_than_half(void **state)
{
	struct fixture *x = *state;
	const struct verdict_sql sql = { .find_statement = find_of_process,
		.leader_of = leader_of_backends,
		.count_others = count_of_two };

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	backend(x, 4711, 30);
	backend(x, 4720, 19);
	backend(x, 4730, 18);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		"; no program alone caused it: postgres pid 4711 used the most, 30 % of the device time (1000 reads, 100.0 MiB), for a statement of app@localhost that had "
		"run for 9.00 s: \"SELECT 1\""));
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

/* Nothing was at its limit, but statements ran. */
static void test_statements_without_a_verdict(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_never,
		.leader_of = leader_of_none,
		.count_others = count_others };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_decide(&x->f, &sql, &x->v);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: no operation took 100 ms or longer and no device was at its limit; "
		"up to 14 statements ran at once, the longest for 12.00 s");
	assert_string_equal(x->v.message, x->v.sentence);
	/* Threads that waited are not called victims, since no cause is known. */
	operation(x, 2230, "", 300 * MS, true);
	verdict_decide(&x->f, &sql, &x->v);
	assert_null(strstr(x->v.sentence, "waited up to"));
}

static bool find_no_statement(void *userdata, int32_t pid, int32_t tid,
	struct verdict_statement *ret)
{
	(void)userdata, (void)pid, (void)tid, (void)ret;
	return false;
}

static bool is_server_11067(void *userdata, int32_t pid)
{
	(void)userdata;
	return pid == 11067;
}

static void test_statements_of_an_unresponsive_database(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_never,
		.leader_of = leader_of_none,
		.count_others = count_others };
	const struct verdict_unresponsive unresponsive = { .ns = 3 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_unresponsive(&x->f, 0, "main", &(struct verdict_who){ 0 }, &unresponsive);
	verdict_decide(&x->f, &sql, &x->v);
	assert_verdict(x, "unanswered", "measured",
		"database main did not answer for 3.00 s; up to 14 statements ran at once, the "
		"longest for 12.00 s");
	samples(x, &slow_sdb, 5);
	verdict_decide(&x->f, &sql, &x->v);
	assert_string_equal(record_class_text(x->v.class), "slow");
	assert_non_null(strstr(x->v.sentence,
		"; database main did not answer for 3.00 s; up to 14 statements ran at once, the "
		"longest for 12.00 s"));
}

static const char *role_of_checkpointer(void *userdata, int32_t pid, int32_t tid)
{
	(void)userdata;
	(void)tid;
	return pid == 11067 ? "checkpointer" : "";
}

/* It runs no statement, and its role says more. */
static void test_a_process_of_the_server_itself(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_no_statement,
		.is_server = is_server_11067,
		.leader_of = leader_of_none,
		.find_role = role_of_checkpointer,
		.count_others = count_of_two };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 11067, 0, "postgres", 90, false);
	load(x, "thread", 11067, 11067, "postgres", 90, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		"postgres pid 11067 (checkpointer) used 90 % of the device time"));
	assert_null(strstr(x->v.sentence, "a statement"));
	assert_null(part(x, "statement"));
	assert_null(part(x, "missing"));
}

static void test_a_slow_device_is_not_blamed_on_a_statement(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_never,
		.leader_of = leader_of_none,
		.count_others = count_others };
	struct fixture *x = *state;

	samples(x, &slow_sdb, 5);
	totals(x, 40, 40 * 4096, 130 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 100, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_string_equal(record_class_text(x->v.class), "slow");
	/* No statement is named, so these are not "other" statements. */
	assert_non_null(strstr(x->v.sentence,
		"; up to 14 statements ran at once, the longest for 12.00 s"));
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

/* A server that reads in threads of its own: which statement they read for is not guessed. */
static void test_a_server_is_blamed_without_a_statement(void **state)
{
	int32_t asked_tid = -1;
	const struct verdict_sql sql = { .find_statement = find_none,
		.is_server = is_server,
		.leader_of = leader_of_none,
		.count_others = count_one,
		.userdata = &asked_tid };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2211, 0, "mariadbd", 98, false);
	load(x, "thread", 2211, 2230, "mariadbd", 25, false);
	load(x, "thread", 2211, 2231, "mariadbd", 24, false);
	load(x, "file", 0, 0, "", 91, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_int_equal(asked_tid, 0);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): mariadbd pid 2211 used 98 % of the device time (1000 reads, "
		"100.0 MiB), mostly on big/t.ibd. 1 statement had been running for 4.00 s");
	assert_null(part(x, "statement"));
	assert_string_equal(part(x, "missing")->text,
		"it is not known which statement caused the I/O: no thread of the server did "
		"half of it");
}

static void test_a_thread_of_a_server_without_a_statement(void **state)
{
	int32_t asked_tid = -1;
	struct verdict_sql sql = { .find_statement = find_none,
		.is_server = is_server,
		.leader_of = leader_of_none,
		.count_others = count_one,
		.userdata = &asked_tid };
	struct fixture *x = *state;

	scan(x);
	verdict_decide(&x->f, &sql, &x->v);
	assert_int_equal(asked_tid, 2225);
	assert_null(part(x, "statement"));
	assert_string_equal(part(x, "missing")->text,
		"it is not known which statement caused the I/O: no statement is known for the "
		"thread that did it");
	/* Nothing is missing when the culprit is no database, or no database is configured. */
	sql.is_server = is_no_server;
	verdict_decide(&x->f, &sql, &x->v);
	assert_null(part(x, "missing"));
	decide(x);
	assert_null(part(x, "missing"));
}

static void test_what_follows_a_full_stop_is_a_sentence(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_no_statement,
		.is_server = is_no_server,
		.leader_of = leader_of_none,
		.count_others = count_others };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 92, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		"100.0 MiB). Up to 14 statements ran at once, the longest for 12.00 s"));
}

/* Sessions that wait for a lock are said to do so, and are no other statements once more. */
static void test_statements_that_wait_for_a_lock_are_counted_once(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_scan,
		.leader_of = leader_of_none,
		.count_others = count_others };
	struct verdict_queue queue = { .target = "main",
		.waiters = 12,
		.longest_ns = 20 * NSEC_PER_SEC,
		.waited_ns = 50 * NSEC_PER_SEC,
		.lock = RECORD_LOCK_metadata,
		.holder = { .connection_id = 42,
			.who = { .pid = 2211, .tid = 2225, .comm = "mariadbd" } } };
	struct fixture *x = *state;

	scan(x);
	verdict_note_queue(&x->f, &queue);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		"; up to 2 other statements ran at once, the longest for 12.00 s; 12 statements "
		"waited up to 20.00 s for a metadata lock"));
	queue.waiters = 20;
	queue.waited_ns = 60 * NSEC_PER_SEC;
	verdict_note_queue(&x->f, &queue);
	verdict_decide(&x->f, &sql, &x->v);
	assert_null(strstr(x->v.sentence, "other statement"));
	/* A queue that is not said hides nothing. */
	x->f.queue.longest_ns = 500 * MS;
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence, "; up to 14 other statements ran at once"));
}

static uint32_t count_without_time(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	(void)userdata, (void)tid, (void)ret_longest_ns;
	return 4;
}

/* Four commits at once, none of which a server has seen to take any time. */
static void test_statements_that_took_no_time_are_not_counted(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_scan,
		.leader_of = leader_of_none,
		.count_others = count_without_time };
	struct fixture *x = *state;

	scan(x);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence, "mariadbd tid 2225 used"));
	assert_null(strstr(x->v.sentence, "other statement"));
}

static bool find_busiest_update(void *userdata, int32_t pid, struct verdict_statement *ret)
{
	const struct verdict_statement *given = userdata;

	assert_int_equal(pid, 2211);
	*ret = (struct verdict_statement){ .user = "app@localhost",
		.text = "UPDATE t",
		.moved_bytes = given ? given->moved_bytes : 1000 * MIB,
		.elapsed_ns = 31 * NSEC_PER_SEC };
	if (given)
		text_copy(ret->text, sizeof(ret->text), given->text);
	return true;
}

/*
 * Whether the verdict names a statement that moved so many MiB, where the threads of its server,
 * which are not its own, sent these requests of `bytes`, of which they read `read_bytes`.
 */
static bool is_named(struct fixture *x, const char *text, uint64_t moved_mib,
	const struct record_io_by *sent)
{
	struct verdict_statement statement = { .moved_bytes = moved_mib * MIB };
	const struct verdict_sql sql = { .find_statement = find_no_statement,
		.find_busiest = find_busiest_update,
		.is_server = is_server_11067,
		.leader_of = leader_of_none,
		.count_others = count_of_two,
		.userdata = &statement };
	struct record_io_by by = *sent;

	text_copy(statement.text, sizeof(statement.text), text);
	by.by = RECORD_BY_thread;
	by.dev = (struct record_dev){ 8, 16 };
	by.pid = 2211;
	by.tid = 2213;
	text_copy(by.comm, sizeof(by.comm), "mariadbd");
	by.busy_ns = 9100 * MS;
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_io_by(&x->f, &by);
	verdict_decide(&x->f, &sql, &x->v);
	return strstr(x->v.sentence, text) != NULL;
}

/*
 * A page cleaner writes what a statement has changed, so that one moves little itself. What a
 * statement wants to know it reads itself: with little of it, it is one of many.
 */
static void test_how_much_a_statement_must_have_moved(void **state)
{
	static const char update[] = "UPDATE t", select[] = "(SELECT c FROM t)";
	struct record_io_by by = { .read_requests = 7771,
		.write_requests = 3932,
		.bytes = 640 * MIB,
		.read_bytes = 120 * MIB };
	struct fixture *x = *state;

	assert_false(is_named(x, update, 9, &by));
	assert_true(is_named(x, update, 10, &by));
	/* It changes nothing, so what was read does not belong to what was written. */
	assert_false(is_named(x, select, 29, &by));
	assert_true(is_named(x, select, 30, &by));
	/* What an UPDATE left to remove after it made the server read on. */
	by.read_requests = 9403;
	by.write_requests = 1689;
	assert_true(is_named(x, update, 10, &by));
	/* Some reads more than belong to writes make no step, many do make a difference. */
	by.write_requests = 1500;
	assert_true(is_named(x, update, 10, &by));
	by.write_requests = 100;
	assert_false(is_named(x, update, 27, &by));
	assert_true(is_named(x, update, 29, &by));
	by.write_requests = 0;
	assert_false(is_named(x, update, 29, &by));
	assert_true(is_named(x, update, 30, &by));
}

/* Two doubts about the same thing are one. */
static void test_a_sentence_says_probably_once(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.read_requests = 2000,
		.read_busy_ns = 4 * NSEC_PER_SEC };
	const struct verdict_sql sql = { .find_statement = find_no_statement,
		.find_busiest = find_busiest_update,
		.leader_of = leader_of_none,
		.count_others = count_of_two };
	struct fixture *x = *state;

	scan(x);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		"mariadbd tid 2225 used 92 % of the device time (1000 reads, 100.0 MiB), mostly on "
		"big/t.ibd, probably for a statement of app@localhost that had run for 31.00 s: "));
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS - 4 * NSEC_PER_SEC;
	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "thread", 2211, 2225, "mariadbd", 39, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		"mariadbd tid 2225 probably used 98 % of the device time since tracing began (1000 "
		"reads, 100.0 MiB), for a statement of app@localhost that had run for 31.00 s: "
		"\"UPDATE t\"; who used the 6.00 s before tracing began is not known"));
	assert_string_equal(record_basis_text(part(x, "statement")->basis), "inferred");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_the_message_for_logs_has_no_statement_text),
		verdict_test(test_a_statement_after_the_trigger_is_only_perhaps_the_cause),
		verdict_test(test_the_culprits_leader_is_looked_up_once),
		verdict_test(test_the_culprits_statement_is_not_counted_among_the_others),
		verdict_test(test_parallel_workers_are_blamed_together),
		verdict_test(test_a_parallel_leader_is_not_a_victim_of_its_worker),
		verdict_test(test_a_parallel_leader_without_io),
		verdict_test(test_parallel_workers_with_less_than_half),
		verdict_test(test_statements_without_a_verdict),
		verdict_test(test_statements_of_an_unresponsive_database),
		verdict_test(test_a_process_of_the_server_itself),
		verdict_test(test_a_slow_device_is_not_blamed_on_a_statement),
		verdict_test(test_a_server_is_blamed_without_a_statement),
		verdict_test(test_a_thread_of_a_server_without_a_statement),
		verdict_test(test_what_follows_a_full_stop_is_a_sentence),
		verdict_test(test_statements_that_wait_for_a_lock_are_counted_once),
		verdict_test(test_statements_that_took_no_time_are_not_counted),
		verdict_test(test_how_much_a_statement_must_have_moved),
		verdict_test(test_a_sentence_says_probably_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
