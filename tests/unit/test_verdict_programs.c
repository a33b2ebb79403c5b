/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Names of programs instead of those of their threads. */
#include "test_verdict_setup.h"
#include "verdict/programs.h"

static void wait_of(struct fixture *x, int32_t pid, int32_t tid, const char *comm)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_vfs,
		.sleeps = 1,
		.pid = pid,
		.tid = tid,
		.dev = { 8, 16 },
		.dev_name = "sdb",
		.waits_for = RECORD_CAUSE_page,
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 5 * NSEC_PER_SEC };

	text_copy(op.comm, sizeof(op.comm), comm);
	verdict_note_operation(&x->f, &op, true);
}

static const char *name_of(const struct fixture *x, int32_t tid)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (x->f.waiters[i].tid == tid)
			return x->f.waiters[i].comm;
	return "";
}

static void test_threads_of_a_known_process(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2300, 0, "mariadbd", 92, false);
	load(x, "thread", 2300, 2311, "one_connection", 92, false);
	wait_of(x, 2300, 2312, "one_connection");
	wait_of(x, 2400, 2401, "one_connection");
	wait_of(x, 2300, 2300, "main");
	verdict_name_programs(&x->f);
	decide(x);
	assert_non_null(strstr(x->v.sentence, "mariadbd tid 2311 used 92 %"));
	assert_string_equal(part(x, "culprit")->comm, "mariadbd");
	assert_string_equal(name_of(x, 2312), "mariadbd");
	/* Nobody knows what program that is. */
	assert_string_equal(name_of(x, 2401), "one_connection");
	/* The first thread has the name of the process. */
	assert_string_equal(name_of(x, 2300), "main");
}

static void assert_culprit(struct fixture *x, const char *comm, const char *who)
{
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2300, 0, "mysqld", 92, false);
	load(x, "thread", 2300, 2311, comm, 92, false);
	verdict_name_programs(&x->f);
	decide(x);
	assert_non_null(strstr(x->v.sentence, who));
}

/* The name of the thread says what it does, and that no client waits for it. */
static void test_the_role_of_a_thread_is_kept(void **state)
{
	struct fixture *x = *state;

	assert_culprit(x, "ib_pg_flush_co", "): mysqld tid 2311 (page cleaner) used 92 %");
	assert_culprit(x, "ib_pg_flush-3", "): mysqld tid 2311 (page cleaner) used 92 %");
	assert_culprit(x, "page_cleaner", "): mysqld tid 2311 (page cleaner) used 92 %");
	assert_culprit(x, "ib_srv_wkr-2", "): mysqld tid 2311 (purge) used 92 %");
	assert_culprit(x, "ib_log_writer", "): mysqld tid 2311 (redo log) used 92 %");
	assert_culprit(x, "ib_io_rd-1", "): mysqld tid 2311 used 92 %");
}

static void test_threads_of_a_database(void **state)
{
	const struct verdict_who server = { .pid = 2300, .comm = "mariadbd" };
	const struct verdict_unresponsive silence = { .ns = 3 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_unresponsive(&x->f, 0, "main", &server, &silence);
	wait_of(x, 2300, 2312, "one_connection");
	verdict_name_programs(&x->f);
	assert_string_equal(name_of(x, 2312), "mariadbd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_threads_of_a_known_process),
		verdict_test(test_the_role_of_a_thread_is_kept),
		verdict_test(test_threads_of_a_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
