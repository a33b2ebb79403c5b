/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What processes of PostgreSQL are for, by their titles; a fifo in /proc is a title that hangs. */
#include "test_fifo.h"
#include "test_watch_tree.h"

#include "enrich/titles.h"
#include "util/cleanup.h"

#define INCIDENT_NS 1

struct fixture {
	struct tree *t;
	int procfs_fd;
	struct titles *titles;
};

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->procfs_fd = tree_open_procfs(f->t);
	assert_int_equal(titles_new(f->procfs_fd, &f->titles), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	titles_free(f->titles);
	close(f->procfs_fd);
	return tree_fixture_free(f);
}

static void test_titles(void **state)
{
	(void)state;
	assert_string_equal(title_role("postgres: checkpointer "), "checkpointer");
	assert_string_equal(title_role("postgres: 15/main: checkpointer "), "checkpointer");
	assert_string_equal(title_role("postgres: checkpointer process   "), "checkpointer");
	assert_string_equal(title_role(
				    "postgres: checkpointer performing end-of-recovery checkpoint"),
		"checkpointer");
	assert_string_equal(title_role("postgres: startup "), "startup process");
	assert_string_equal(title_role("postgres: startup   recovering 000000010000000000000003"),
		"startup process");
	assert_string_equal(title_role("postgres: startup performing end-of-recovery checkpoint"),
		"startup process");
	assert_string_equal(
		title_role("postgres: 17/main: startup recovering 000000010000000000000003"),
		"startup process");
	assert_string_equal(
		title_role("postgres: walsender replica 10.0.0.2(51234) streaming 0/3000148"),
		"walsender");
	assert_string_equal(title_role("postgres: autovacuum worker shop"), "autovacuum worker");
	assert_string_equal(title_role("postgres: io worker 2"), "io worker");
	assert_string_equal(title_role("postgres: archiver last was 000000010000000000000002"),
		"archiver");
}

/* Users may be called as they like. */
static void test_who_serves_a_client_has_no_role(void **state)
{
	(void)state;
	assert_string_equal(title_role("postgres: shop shop 10.0.0.7(40022) SELECT"), "");
	assert_string_equal(title_role("postgres: startup shop [local] idle"), "");
	assert_string_equal(title_role(
				    "postgres: 15/main: archiver shop [local] idle in transaction"),
		"");
	assert_string_equal(title_role("postgres: a b: checkpointer"), "");
	assert_string_equal(title_role("postgres: checkpointers shop [local] idle"), "");
	assert_string_equal(title_role("/usr/lib/postgresql/15/bin/postgres"), "");
	assert_string_equal(title_role("postgres"), "");
	assert_string_equal(title_role("postgres: "), "");
	assert_string_equal(title_role(""), "");
}

static void assert_role(struct fixture *f, int32_t pid, uint64_t incident_ns, const char *role)
{
	for (unsigned int i = 0; i < 5000; i++) {
		if (strcmp(titles_find(f->titles, pid, incident_ns, 1), role) == 0)
			return;
		usleep(1000);
	}
	fail_msg("process %d is no %s", pid, role);
}

static void test_processes(void **state)
{
	struct fixture *f = *state;

	tree_put(f->t, "proc/100/cmdline", "postgres: checkpointer ");
	tree_put(f->t, "proc/101/cmdline", "postgres: walwriter ");
	/* It is asked for, and known later. */
	assert_string_equal(titles_find(f->titles, 100, INCIDENT_NS, 1), "");
	assert_role(f, 100, INCIDENT_NS, "checkpointer");
	assert_role(f, 101, INCIDENT_NS, "walwriter");
	/* One that has ended is asked for with the next one, and neither hides the other. */
	titles_find(f->titles, 102, INCIDENT_NS, 1);
	tree_put(f->t, "proc/103/cmdline", "postgres: logger ");
	assert_role(f, 103, INCIDENT_NS, "logger");
	assert_string_equal(titles_find(f->titles, 102, INCIDENT_NS, 1), "");
	/* Nor is it asked for again: its number may be of another process. */
	tree_put(f->t, "proc/102/cmdline", "postgres: archiver ");
	tree_put(f->t, "proc/104/cmdline", "postgres: walwriter ");
	assert_role(f, 104, INCIDENT_NS, "walwriter");
	assert_string_equal(titles_find(f->titles, 102, INCIDENT_NS, 1), "");
	/* A title is read once in an incident. */
	tree_put(f->t, "proc/100/cmdline", "postgres: shop shop [local] idle");
	assert_string_equal(titles_find(f->titles, 100, INCIDENT_NS, 1), "checkpointer");
	assert_string_equal(titles_find(f->titles, 100, INCIDENT_NS + 1, 1), "");
	assert_role(f, 101, INCIDENT_NS + 1, "walwriter");
	assert_string_equal(titles_find(f->titles, 100, INCIDENT_NS + 1, 1), "");
}

/* More than there is room for; they come one after the other. */
static void test_clients_leave_room(void **state)
{
	struct fixture *f = *state;

	tree_put(f->t, "proc/100/cmdline", "postgres: checkpointer ");
	assert_role(f, 100, INCIDENT_NS, "checkpointer");
	for (int32_t i = 0; i < 300; i++)
		titles_find(f->titles, 1000 + i, INCIDENT_NS, 1);
	tree_put(f->t, "proc/101/cmdline", "postgres: walwriter ");
	assert_role(f, 101, INCIDENT_NS, "walwriter");
	assert_string_equal(titles_find(f->titles, 100, INCIDENT_NS, 1), "checkpointer");
}

/* As where its memory map is locked. */
static void test_a_title_that_hangs(void **state)
{
	struct fixture *f = *state;
	int writer;

	tree_put(f->t, "proc/100/comm", "postgres\n");
	tree_put(f->t, "proc/101/cmdline", "postgres: walwriter ");
	assert_int_equal(mkfifoat(f->procfs_fd, "100/cmdline", 0600), 0);
	titles_find(f->titles, 100, INCIDENT_NS, 1);
	while ((writer = openat(f->procfs_fd, "100/cmdline", O_WRONLY | O_NONBLOCK | O_CLOEXEC)) <
		0)
		usleep(1000);
	assert_string_equal(titles_find(f->titles, 101, INCIDENT_NS, 1), "");
	titles_replace_hung(f->titles, 10 * NSEC_PER_SEC);
	assert_role(f, 101, INCIDENT_NS + 1, "walwriter");
	close(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_titles),
		cmocka_unit_test(test_who_serves_a_client_has_no_role),
		cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clients_leave_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_title_that_hangs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
