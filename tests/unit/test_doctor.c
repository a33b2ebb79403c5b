/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What doctor says of servers and of the users that ask them. */
#include "test_watch_tree.h"

#include "cli/doctor.h"

#define POSTGRES(number) { .pid = (number), .comm = "postgres" }

struct fixture {
	struct tree *tree;
	struct options o;
	struct config config;
	struct doctor d;
	char *out;
	size_t out_size;
};

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	void *tree;

	tree_setup(&tree);
	f->tree = tree;
	config_set_defaults(&f->config);
	f->o.procfs = f->tree->procfs;
	f->o.json = true;
	f->d = (struct doctor){ .o = &f->o, .config = &f->config };
	f->d.out = open_memstream(&f->out, &f->out_size);
	*state = f;
	return f->d.out ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *tree = f->tree;

	fclose(f->d.out);
	free(f->out);
	tree_teardown(&tree);
	test_free(f);
	return 0;
}

static void assert_said(struct fixture *f, const char *expected)
{
	fflush(f->d.out);
	assert_string_equal(f->out, expected);
}

static void parse(struct fixture *f, const char *text)
{
	char error[CONFIG_ERROR_SIZE];

	assert_int_equal(config_parse_text(&f->config, "x", text, strlen(text), error), 0);
}

static void put_parent(struct fixture *f, int pid, const char *comm, int parent)
{
	char name[32];

	snprintf(name, sizeof(name), "proc/%d/stat", pid);
	tree_put(f->tree, name, "%d (%s) S %d 1 1\n", pid, comm, parent);
}

/* Two servers of one program, one of them with a worker of a worker and started by another program. */
static void test_processes(void **state)
{
	static const struct watch_process list[] = { POSTGRES(20), POSTGRES(10), POSTGRES(21),
		POSTGRES(22), { .pid = 30, .comm = "mariadbd" }, { .pid = 40, .comm = "gone" } };
	struct fixture *f = *state;

	put_parent(f, 10, "postgres", 1);
	put_parent(f, 20, "post) gres", 30);
	put_parent(f, 21, "postgres", 20);
	put_parent(f, 22, "postgres", 21);
	put_parent(f, 30, "mariadbd", 1);
	f->o.json = false;
	doctor_report_processes(&f->d, list, 6);
	assert_said(f, "ok        trigger   processes      postgres, pid 20, and 2 more of it\n"
		       "ok        trigger   processes      postgres, pid 10\n"
		       "ok        trigger   processes      mariadbd, pid 30\n"
		       "ok        trigger   processes      gone, pid 40\n");
}

static void test_user(void **state)
{
	struct fixture *f = *state;

	doctor_report_user(&f->d, "main", "root");
	assert_said(f, "");
	doctor_report_user(&f->d, "main", "iostall-nosuch");
	assert_said(f, "{\"area\":\"sql\",\"name\":\"main.run_as\",\"result\":\"fails\",\"detail\":"
		       "\"there is no user iostall-nosuch on this host: the helper runs as nobody, whom "
		       "unix_socket and peer do not let in; right would be: a user that exists, or "
		       "useradd --system iostall-nosuch\"}\n");
	assert_int_equal(f->d.counts[FAILS], 1);
}

static void test_lost_server(void **state)
{
	static const struct watch_process list[] = { POSTGRES(20), POSTGRES(21) };
	struct fixture *f = *state;

	put_parent(f, 20, "postgres", 1);
	put_parent(f, 21, "postgres", 20);
	doctor_report_unasked(&f->d, NULL, list, 2);
	assert_said(f, "{\"area\":\"sql\",\"name\":\"targets\",\"result\":\"degraded\",\"detail\":"
		       "\"postgres, pid 20, is not asked: it is not at "
		       "/run/postgresql/.s.PGSQL.5432; right would be a section [sql.NAME] with type "
		       "= postgresql and socket = its path\"}\n");
}

static void test_no_server(void **state)
{
	static const struct watch_process list[] = { { .pid = 7, .comm = "redis" } };
	struct fixture *f = *state;

	doctor_report_unasked(&f->d, NULL, list, 1);
	assert_said(f, "{\"area\":\"sql\",\"name\":\"targets\",\"result\":\"ok\",\"detail\":"
		       "\"none is configured, and no server runs\"}\n");
}

/* Who has sections is asked nothing else, and knows it. */
static void test_disabled_target(void **state)
{
	static const struct watch_process list[] = { POSTGRES(20) };
	struct fixture *f = *state;

	parse(f, "[sql.main]\nenabled = no\n");
	doctor_report_unasked(&f->d, NULL, list, 1);
	assert_said(f, "{\"area\":\"sql\",\"name\":\"main\",\"result\":\"ok\",\"detail\":"
		       "\"disabled by sql.main.enabled\"}\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_processes),
		TEST(test_user),
		TEST(test_lost_server),
		TEST(test_no_server),
		TEST(test_disabled_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
