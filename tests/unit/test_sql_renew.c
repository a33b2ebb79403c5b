/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Helpers that are made anew because what their login needs is opened only at their start. */
#include "test_sql_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A shared machine may take its time; there must be time enough for what must not happen. */
#define PATIENCE_NS (600 * MS)

static char dir[64], password_file[80];

static int setup_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/iostall-renew-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(password_file, sizeof(password_file), "%s/password", dir);
	return 0;
}

static int teardown_dir(void **state)
{
	char path[100];

	(void)state;
	snprintf(path, sizeof(path), "%s.starts", password_file);
	unlink(path);
	unlink(password_file);
	return rmdir(dir);
}

static void write_password(const char *path, const char *password)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fprintf(file, "%s\n", password);
	fclose(file);
}

/* As an editor does it: the file of before is another one. */
static void set_password(const char *password)
{
	char path[100];

	snprintf(path, sizeof(path), "%s.new", password_file);
	write_password(path, password);
	assert_int_equal(rename(path, password_file), 0);
}

static unsigned int count_starts(void)
{
	char path[100];
	struct stat st;

	snprintf(path, sizeof(path), "%s.starts", password_file);
	return stat(path, &st) == 0 ? (unsigned int)st.st_size : 0;
}

static bool is_refused(struct fixture *f)
{
	return evidence(f).is_known && *evidence(f).why;
}

static bool is_told(struct fixture *f)
{
	return evidence(f).is_known;
}

static uint64_t wait_until_ns;

static bool is_over(struct fixture *f)
{
	(void)f;
	return clock_mono_ns() > wait_until_ns;
}

static void wait_a_while(struct fixture *f)
{
	wait_until_ns = clock_mono_ns() + PATIENCE_NS;
	run_until(f, is_over);
}

static bool has_started_again(struct fixture *f)
{
	(void)f;
	return count_starts() > 1;
}

static void test_a_new_password_needs_no_reload(void **state)
{
	struct fixture f;

	(void)state;
	set_password("wrong");
	setup_with_password(&f, "sql.password", password_file);
	run_until(&f, is_refused);
	assert_string_equal(evidence(&f).why, "Access denied for user 'iostall'@'localhost'");
	run_until(&f, has_started_again);
	/* What is wrong is said all the time. */
	assert_string_equal(evidence(&f).why, "Access denied for user 'iostall'@'localhost'");
	assert_string_equal(evidence(&f).missing, "CREATE USER iostall@localhost");
	set_password("right");
	run_until(&f, has_answer);
	assert_string_equal(evidence(&f).why, "");
	teardown(&f);
}

/* 20, 40, 80 ... ms after the first, and not with each question. */
static void test_retries_are_further_and_further_apart(void **state)
{
	struct fixture f;

	(void)state;
	set_password("wrong");
	setup_with_password(&f, "sql.password", password_file);
	run_until(&f, is_refused);
	wait_a_while(&f);
	assert_in_range(count_starts(), 2, 6);
	teardown(&f);
}

/* A fork and an exec may wait for the disk that hangs. */
static void test_no_new_helper_while_an_incident_is_open(void **state)
{
	struct fixture f;
	unsigned int starts;

	(void)state;
	set_password("wrong");
	setup_with_password(&f, "sql.password", password_file);
	run_until(&f, is_refused);
	f.armed = true;
	sql_begin_incident(f.sql);
	starts = count_starts();
	set_password("right");
	wait_a_while(&f);
	assert_int_equal(count_starts(), starts);
	assert_true(is_refused(&f));
	/* All the questions of the incident have not made it later. */
	f.armed = false;
	run_until(&f, has_answer);
	teardown(&f);
}

/* Where there cannot be another one, it is asked on. */
static void test_helper_is_kept_while_an_incident_is_open(void **state)
{
	struct fixture f;
	unsigned int starts;

	(void)state;
	set_password("wrong");
	setup_with_password(&f, "sql.password", password_file);
	run_until(&f, is_refused);
	/* It opens just when another one is due. */
	usleep(PATIENCE_NS / NSEC_PER_USEC);
	f.armed = true;
	starts = count_starts();
	wait_a_while(&f);
	write_password(password_file, "right");
	run_until(&f, has_answer);
	assert_int_equal(count_starts(), starts);
	teardown(&f);
}

/* A helper that says that another one would not help, and one whose login is right. */
static void test_other_errors_keep_the_helper(void **state)
{
	static const char *const sections[] = { "sql.refused", "sql.good" };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		setup_with_password(&f, sections[i], password_file);
		run_until(&f, is_told);
		wait_a_while(&f);
		assert_int_equal(count_starts(), i + 1);
		teardown(&f);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_new_password_needs_no_reload, setup_dir,
			teardown_dir),
		cmocka_unit_test_setup_teardown(test_retries_are_further_and_further_apart,
			setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_no_new_helper_while_an_incident_is_open,
			setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_helper_is_kept_while_an_incident_is_open,
			setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_other_errors_keep_the_helper, setup_dir,
			teardown_dir),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
