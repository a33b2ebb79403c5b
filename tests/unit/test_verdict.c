/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict: nothing is blamed without evidence, what is said of whom, and the facts. */
#include "test_verdict_setup.h"

/* Nothing is blamed without evidence */

static void test_nothing_is_unknown(void **state)
{
	struct fixture *x = *state;

	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: there is no operation of 100 ms and no reading of the devices");
	samples(x, &idle_sdb, 5);
	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: no operation took 100 ms and no device was at its limit");
	assert_string_equal(part(x, "missing")->basis, "");
}

static void test_a_wait_nobody_can_explain_is_unknown(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	operation(x, 2225, "", 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "unknown", "inferred", "no verdict: operations took up to 4.00 s, but what they "
		"waited for is not known and no device was at its limit; what the devices did with each "
		"request was not seen");
}

/* The watchdog alone sees a saturated device, but not by whom. */
static void test_saturated_by_nobody_known(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 5);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb saturated (util 100 %, r_await 300 ms, queue 64)");
	assert_null(part(x, "culprit"));
	assert_non_null(part(x, "missing"));
}

/* At work all the time, and nobody waits: a fast device that serves one after the other. */
static void test_utilisation_alone_is_no_load(void **state)
{
	const struct watch_disk fast = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
		.inflight = 1, .read_await_ms = 0.1, .queue = 1, .read_bytes = 40 * MIB };
	struct fixture *x = *state;

	samples(x, &fast, 5);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
}

/* What was long over when the incident opened is not what it is about. */
static void test_the_calm_before_counts_for_nothing(void **state)
{
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 60 * NSEC_PER_SEC;
	samples(x, &loaded_sdb, 20);
	x->now_ns = TRIGGER_NS;
	samples(x, &idle_sdb, 5);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
}

/* A device mapper and the disk below it: the disk is judged, which knows whose its requests are. */
static void test_the_disk_below_is_judged(void **state)
{
	struct watch_disk dm = loaded_sdb;
	struct fixture *x = *state;

	text_copy(dm.name, sizeof(dm.name), "dm-0");
	dm.major = 253;
	dm.minor = 0;
	samples(x, &dm, 5);
	x->now_ns = TRIGGER_NS;
	scan(x);
	decide(x);
	assert_string_equal(x->v.dev_name, "sdb");
	assert_int_equal(part(x, "culprit")->tid, 2225);
}

/* A loop device and the one below it: the upper one knows who asked, the lower one where it comes from. */
static void test_of_a_loop_device_and_the_one_below(void **state)
{
	struct watch_disk loop = loaded_sdb;
	struct record_device silent = { .dev_major = 7, .dev_name = "loop0", .final = true, .in_flight = 3 };
	struct record_io_by by = { .by = "thread", .dev_major = 7, .dev_name = "loop0", .pid = 42, .tid = 43,
		.comm = "reader", .bytes = MIB, .share_pct = 97 };
	struct record_operation op = { .op = "read", .pid = 42, .tid = 44, .dev_major = 7,
		.dev_name = "loop0", .dur_ns = 90 * NSEC_PER_SEC };
	struct fixture *x = *state;

	text_copy(loop.name, sizeof(loop.name), "loop0");
	loop.major = 7;
	loop.minor = 0;
	scan(x);
	x->now_ns = TRIGGER_NS;
	samples(x, &loop, 10);
	verdict_note_device(&x->f, &silent);
	verdict_note_io_by(&x->f, &by);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
	assert_string_equal(x->v.dev_name, "loop0");
	assert_int_equal(part(x, "culprit")->tid, 43);
	/* Both hang: it is the disk. */
	silent.no_completion_ns = 9 * NSEC_PER_SEC;
	verdict_note_device(&x->f, &silent);
	silent.dev_major = 8;
	silent.dev_minor = 16;
	silent.no_completion_ns = 8 * NSEC_PER_SEC;
	verdict_note_device(&x->f, &silent);
	decide(x);
	assert_string_equal(x->v.class_name, "hung");
	assert_string_equal(x->v.dev_name, "sdb");
}

/* The statement */

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
							"t.ibd, at the worst moment app \"SELECT 1\" running "));
	assert_non_null(strstr(x->v.message, is_sure ? "t.ibd, app, a statement running " :
						       "t.ibd, at the worst moment app, a statement running "));
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

/* It opened a file that nobody could name, for longer than each of its reads from the disk. */
static void test_a_longer_wait_for_what_is_not_known_hides_no_victim(void **state)
{
	struct record_operation open = { .op = "open", .probe = "wait", .pid = 2211, .tid = 2240,
		.comm = "mariadbd", .path = "./big/db.opt", .dur_ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	scan(x);
	operation(x, 2240, "page", 7 * NSEC_PER_SEC, true);
	verdict_note_operation(&x->f, &open, true);
	operation(x, 2240, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_int_equal(part(x, "victims")->threads, 3);
	assert_string_equal(part(x, "victims")->text,
		"3 threads, the longest 12.00 s: mariadbd[2211/2230] for the device");
	open.tid = 2230;
	open.dur_ns = 20 * NSEC_PER_SEC;
	verdict_note_operation(&x->f, &open, true);
	decide(x);
	assert_string_equal(part(x, "victims")->text,
		"3 threads, the longest 12.00 s: mariadbd[2211/2230] for the device");
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

/* They do not change what was wrong, and may tell why. */
static void test_what_goes_with_any_verdict(void **state)
{
	const struct record_kernel line = { .text = "nvme nvme0: I/O 12 QID 3 timeout, aborting" };
	struct record_sample s = { .sample = { .mono_ns = TRIGGER_NS, .interval_ns = NSEC_PER_SEC } };
	struct fixture *x = *state;

	scan(x);
	decide(x);
	assert_null(part(x, "kernel"));
	assert_null(part(x, "memory"));
	verdict_note_kernel(&x->f, &line);
	verdict_note_kernel(&x->f, &line);
	s.sample.psi_memory = (struct watch_psi){ true, 40, 31 };
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
	assert_string_equal(part(x, "kernel")->text, "2 lines about storage in the kernel's log, the "
		"first: nvme nvme0: I/O 12 QID 3 timeout, aborting");
	assert_string_equal(part(x, "memory")->text, "all runnable tasks waited for memory in up to 31 % "
		"of the time (pressure, full)");
}

/* The facts */

static void test_kinds_of_waits(void **state)
{
	(void)state;
	assert_int_equal(verdict_wait_of(""), VERDICT_WAIT_none);
	assert_int_equal(verdict_wait_of("what nobody has heard of"), VERDICT_WAIT_other);
	/* Each of the words that there are has its kind. */
#define WAITS(prefix, waits_for) assert_true(*waits_for && (verdict_wait_of(waits_for) != VERDICT_WAIT_other || \
		strcmp(waits_for, "kernel worker") == 0 || strcmp(waits_for, "core dump") == 0));
#define WEAK(prefix, waits_for) WAITS(prefix, waits_for)
#include "enrich/waits.def"
#undef WEAK
#undef WAITS
}

static void test_more_than_there_is_room_for(void **state)
{
	struct fixture *x = *state;

	for (int32_t tid = 1; tid <= VERDICT_THREADS_MAX + 23; tid++)
		operation(x, tid, "page", NSEC_PER_SEC, false);
	assert_int_equal(x->f.threads_left_out, 23);
	for (uint32_t i = 0; i < VERDICT_DEVICES_MAX + 3; i++) {
		struct watch_disk disk = loaded_sdb;

		disk.major = 100 + i;
		sample(x, &disk);
	}
	assert_int_equal(x->f.devices_count, VERDICT_DEVICES_MAX);
	assert_int_equal(x->f.devices_left_out, 3);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
}

/* The files' device is a partition, whatever comes first. */
static void test_a_partition_is_its_disk(void **state)
{
	struct fixture *x = *state;

	operation(x, 2230, "page", NSEC_PER_SEC, true);
	sample(x, &loaded_sdb);
	operation(x, 2231, "page", NSEC_PER_SEC, true);
	assert_int_equal(x->f.devices_count, 1);
	assert_string_equal(x->f.devices[0].name, "sdb");
	assert_int_equal(x->f.devices[0].operations, 2);
}

/* An operation that hangs has a line each second, and is one wait. */
static void test_stuck_lines_do_not_add_up(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 1);
	sample(x, &loaded_sdb);
	for (unsigned int i = 1; i <= 5; i++)
		operation(x, 2230, "page", i * NSEC_PER_SEC, false);
	assert_int_equal(verdict_waited_ns(&x->f.devices[0]), 5 * NSEC_PER_SEC);
	operation(x, 2230, "page", 6 * NSEC_PER_SEC, true);
	assert_int_equal(verdict_waited_ns(&x->f.devices[0]), 6 * NSEC_PER_SEC);
	assert_int_equal(x->f.operations, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_nothing_is_unknown),
		verdict_test(test_a_wait_nobody_can_explain_is_unknown),
		verdict_test(test_saturated_by_nobody_known),
		verdict_test(test_utilisation_alone_is_no_load),
		verdict_test(test_the_calm_before_counts_for_nothing),
		verdict_test(test_the_disk_below_is_judged),
		verdict_test(test_of_a_loop_device_and_the_one_below),
		verdict_test(test_a_statement_stays_out_of_the_logs_of_others),
		verdict_test(test_a_statement_that_began_later_is_not_passed_off_as_the_reason),
		verdict_test(test_who_works_for_the_statement_is_no_victim),
		verdict_test(test_the_culprits_leader_is_looked_up_once),
		verdict_test(test_the_statement_of_a_process_is_none_of_the_others),
		verdict_test(test_workers_of_one_statement_are_one),
		verdict_test(test_a_leader_that_moved_nothing),
		verdict_test(test_workers_with_less_than_half),
		verdict_test(test_a_longer_wait_for_what_is_not_known_hides_no_victim),
		verdict_test(test_only_the_load_is_a_statement),
		verdict_test(test_a_server_is_to_blame_without_a_statement),
		verdict_test(test_a_thread_of_a_server_without_a_statement),
		verdict_test(test_what_goes_with_any_verdict),
		cmocka_unit_test(test_kinds_of_waits),
		verdict_test(test_more_than_there_is_room_for),
		verdict_test(test_a_partition_is_its_disk),
		verdict_test(test_stuck_lines_do_not_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
