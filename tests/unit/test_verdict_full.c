/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A file system that is full, and who filled it. */
#include "test_verdict_setup.h"

/* The rule `space` opened the incident. */
static void fill_up(struct fixture *x, const char *rule)
{
	struct record_sample s = { .reading = { .mono_ns = TRIGGER_NS,
					   .interval_ns = NSEC_PER_SEC } };
	struct record_open *open = calloc(1, sizeof(*open));

	assert_non_null(open);
	text_copy(open->trigger.rule, sizeof(open->trigger.rule), rule);
	text_copy(open->trigger.subject, sizeof(open->trigger.subject), "/var/lib/mysql");
	open->trigger.value = 97.2;
	verdict_note_open(&x->f, open);
	free(open);
	s.limits.file_systems_count = 1;
	s.limits.file_systems[0] = (struct record_file_system){ .mount = "/var/lib/mysql",
		.dev = { 8, 17 },
		.dev_name = "sdb1",
		.used_pct = 99.8,
		.inodes_used_pct = 3,
		.free_bytes = 3 * MIB };
	verdict_note_sample(&x->f, &s);
}

static void test_a_full_file_system_and_who_wrote_there(void **state)
{
	struct record_io_by by = { .by = RECORD_BY_process,
		.dev = { 8, 16 },
		.pid = 2300,
		.comm = "sort",
		.write_requests = 700,
		.bytes = 600 * MIB,
		.busy_ns = 9100 * MS,
		.busy_share_pct = 91 };
	struct fixture *x = *state;

	fill_up(x, "space");
	samples(x, &idle_sdb, 3);
	totals(x, 700, 0, 400 * MS);
	verdict_note_io_by(&x->f, &by);
	by.by = RECORD_BY_file;
	text_copy(by.path, sizeof(by.path), "/var/lib/mysql/tmp/sort.1");
	verdict_note_io_by(&x->f, &by);
	decide(x);
	assert_verdict(x, "full", "measured",
		"file system /var/lib/mysql on sdb was full, with 3.0 MiB free: sort pid 2300 used 91 % of the device time (700 writes, "
		"600.0 MiB), mostly on tmp/sort.1");
	assert_int_equal(part(x, "culprit")->pid, 2300);
}

/* The incident was opened by a disk at its limit: of the two what has victims comes first. */
static void test_a_file_system_that_becomes_full_later(void **state)
{
	struct record_trigger trigger = { .rule = "space",
		.subject = "/var/lib/mysql",
		.value = 98 };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2301, "dump", 92, false);
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	assert_true(verdict_note_full(&x->f, &trigger, true));
	assert_false(verdict_note_full(&x->f, &trigger, true));
	fill_up(x, "utilisation");
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(strstr(x->v.sentence,
		". Besides, file system /var/lib/mysql on sdb was full, with 3.0 MiB free"));
	/* Only who loads the disk waits for it. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 92, false);
	operation(x, 2225, "page", 3 * NSEC_PER_SEC, true);
	verdict_note_full(&x->f, &trigger, true);
	fill_up(x, "utilisation");
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* Nobody waits for the disk. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	verdict_note_full(&x->f, &trigger, true);
	fill_up(x, "utilisation");
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "full");
	trigger.rule[0] = '\0';
	assert_false(verdict_note_full(&x->f, &trigger, true));
}

/* What it wrote is still in the page cache, so its disk shows nothing. */
static void test_a_full_file_system_and_who_has_the_largest_file_open(void **state)
{
	struct record_sample s = { .reading = { .mono_ns = TRIGGER_NS,
					   .interval_ns = NSEC_PER_SEC },
		.writer = { .present = true,
			.search = RECORD_SEARCH_complete,
			.pid = 2300,
			.comm = "sort",
			.path = "/var/lib/mysql/tmp/sort.1",
			.bytes = 44 * MIB } };
	/* The superblock is written nevertheless. */
	const struct record_io_by by = { .by = RECORD_BY_process,
		.dev = { 8, 16 },
		.pid = 77,
		.comm = "kworker/1:0H",
		.inferred = true,
		.write_requests = 1,
		.flush_requests = 2,
		.bytes = 1024,
		.busy_ns = 20 * MS,
		.busy_share_pct = 96 };
	struct fixture *x = *state;

	fill_up(x, "space");
	samples(x, &idle_sdb, 1);
	totals(x, 3, 0, 10 * MS);
	verdict_note_io_by(&x->f, &by);
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_verdict(x, "full", "measured",
		"file system /var/lib/mysql on sdb was full, with 3.0 MiB free; the largest file "
		"open for writing was /var/lib/mysql/tmp/sort.1 (44.0 MiB), held open by sort pid 2300");
	assert_null(part(x, "culprit"));
	assert_string_equal(record_basis_text(part(x, "largest")->basis), "inferred");
	assert_string_equal(part(x, "largest")->path, "/var/lib/mysql/tmp/sort.1");
}

/* There is still room: what threads waited for matters more. */
static void test_a_file_system_that_is_nearly_full_beside_a_saturated_disk(void **state)
{
	struct fixture *x = *state;

	fill_up(x, "inodes");
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"file system /var/lib/mysql on sdb1 had 97 % of its inodes in use"));
	scan(x);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_non_null(strstr(x->v.sentence,
		". Besides, file system /var/lib/mysql on sdb had 97 % of its inodes in use"));
}

static void note_writer(struct fixture *x, const struct record_writer *writer)
{
	const struct record_sample s = { .reading = { .mono_ns = TRIGGER_NS,
						 .interval_ns = NSEC_PER_SEC },
		.writer = *writer };

	verdict_note_sample(&x->f, &s);
}

/* The large one may lie there for years. */
static void test_a_full_file_system_and_whose_file_grows(void **state)
{
	const struct record_writer large = { .present = true,
		.search = RECORD_SEARCH_complete,
		.pid = 2300,
		.comm = "keeper",
		.path = "/var/lib/mysql/large",
		.bytes = 44 * MIB };
	struct record_writer small = { .present = true,
		.search = RECORD_SEARCH_complete,
		.pid = 2400,
		.comm = "logger",
		.path = "/var/lib/mysql/small",
		.bytes = 3 * MIB,
		.grown_bytes = 2 * MIB };
	struct fixture *x = *state;

	fill_up(x, "space");
	samples(x, &idle_sdb, 1);
	note_writer(x, &large);
	note_writer(x, &small);
	note_writer(x, &large);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"; the file that grew fastest was /var/lib/mysql/small (by 2.0 MiB), written by logger "
		"pid 2400"));
	assert_int_equal(part(x, "largest")->bytes, 2 * MIB);
	assert_null(strstr(x->v.sentence, "not all open files"));
	small.grown_bytes = 4 * MIB;
	small.search = RECORD_SEARCH_cut_off;
	note_writer(x, &small);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"(by 4.0 MiB), written by logger pid 2400 (not all open files were looked at)"));
}

/*
 * What writes most may write a log that is there already, and a statement that failed leaves a file
 * that was changed.
 */
static void test_a_full_file_system_and_a_file_that_was_changed(void **state)
{
	struct record_writer writer = { .present = true,
		.search = RECORD_SEARCH_complete,
		.pid = 2300,
		.comm = "keeper",
		.path = "/var/lib/mysql/large",
		.bytes = 44 * MIB };
	const struct record_io_by by = { .by = RECORD_BY_process,
		.dev = { 8, 16 },
		.pid = 2400,
		.comm = "checkpointer",
		.write_requests = 100,
		.bytes = 100 * MIB,
		.busy_ns = 9 * NSEC_PER_SEC,
		.busy_share_pct = 96 };
	struct fixture *x = *state;

	fill_up(x, "space");
	x->f.full.used_pct = 100;
	samples(x, &loaded_sdb, 2);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_io_by(&x->f, &by);
	note_writer(x, &writer);
	decide(x);
	assert_string_equal(part(x, "culprit")->comm, "checkpointer");
	writer.pid = 2500;
	text_copy(writer.comm, sizeof(writer.comm), "postgres");
	writer.bytes = 3 * MIB;
	writer.changed = true;
	note_writer(x, &writer);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_non_null(strstr(x->v.sentence,
		"; the largest file that was written to meanwhile was /var/lib/mysql/large (3.0 MiB), "
		"written by postgres pid 2500"));
}

static void assert_no_writer(struct fixture *x, enum record_search search, const char *text)
{
	note_writer(x, &(struct record_writer){ .present = true, .search = search });
	decide(x);
	assert_string_equal(part(x, "missing")->text, text);
}

static void test_a_full_file_system_and_nobody_found(void **state)
{
	struct fixture *x = *state;

	fill_up(x, "space");
	samples(x, &idle_sdb, 1);
	assert_no_writer(x, RECORD_SEARCH_complete,
		"it is not known who wrote there: no file was open for writing that had been "
		"changed in the last minute");
	assert_no_writer(x, RECORD_SEARCH_cut_off,
		"it is not known who wrote there: not all open files were looked at, and none of "
		"the others was open for writing and had been changed in the last minute");
	assert_no_writer(x, RECORD_SEARCH_timed_out,
		"it is not known who wrote there: the search among the files that processes have "
		"open did not end");
}

/* A reader does not fill it. What else cost more stands second. */
static void test_a_full_file_system_beside_a_saturated_disk(void **state)
{
	struct fixture *x = *state;

	fill_up(x, "inodes");
	x->f.full.used_pct = 99.8;
	scan(x);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_full);
	assert_null(part(x, "culprit"));
	assert_non_null(strstr(x->v.sentence,
		"file system /var/lib/mysql on sdb had no inodes left. Besides, device sdb was "
		"saturated for 10.00 s"));
	assert_string_equal(part(x, "missing")->text,
		"it is not known who wrote there: no file was open for writing that had been "
		"changed in the last minute");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_full_file_system_and_who_wrote_there),
		verdict_test(test_a_file_system_that_becomes_full_later),
		verdict_test(test_a_full_file_system_and_who_has_the_largest_file_open),
		verdict_test(test_a_file_system_that_is_nearly_full_beside_a_saturated_disk),
		verdict_test(test_a_full_file_system_and_whose_file_grows),
		verdict_test(test_a_full_file_system_and_a_file_that_was_changed),
		verdict_test(test_a_full_file_system_and_nobody_found),
		verdict_test(test_a_full_file_system_beside_a_saturated_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
