/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The users of a file like /etc/passwd, and which of them the program of health.command gets. */
#include "test_watch_tree.h"

#include <errno.h>

#include "health/health.h"
#include "util/passwd.h"
#include "util/text.h"

#define MANY 10000

struct seen {
	unsigned int count;
	struct passwd_user last;
};

static void see(void *userdata, const struct passwd_user *user)
{
	struct seen *seen = userdata;

	seen->count++;
	seen->last = *user;
}

static const char *path_of(const struct tree *t)
{
	static char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/passwd", t->root);
	return path;
}

static struct seen users_of(struct tree *t, const char *text)
{
	struct seen seen = { 0 };

	tree_put(t, "passwd", "%s", text);
	assert_int_equal(passwd_read(path_of(t), see, &seen), 0);
	return seen;
}

static void test_users(void **state)
{
	struct tree *t = *state;
	struct seen seen = users_of(t, "root:x:0:0:root:/root:/bin/sh\nmysql:x:107:114:::\n");

	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.last.name, "mysql");
	assert_int_equal(seen.last.uid, 107);
	assert_int_equal(seen.last.gid, 114);
	assert_int_equal(users_of(t, "").count, 0);
}

static void test_lines_of_another_form(void **state)
{
	static const char *const others[] = { "\n", "+::::::\n", "# root:x:0\n", "a:x:1:\n",
		"a:x:one:1:::\n", "a:x:1:4294967296:::\n", ":x:1:1:::\n", "a:x:1:1",
		"name-of-more-than-thirty-two-chars:x:1:1:::\n" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(users_of(*state, others[i]).count, 0);
}

static void test_no_file(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(passwd_read(path_of(*state), see, &seen), -ENOENT);
	assert_int_equal(seen.count, 0);
}

static struct health_accounts accounts_of(struct tree *t, const char *text)
{
	static struct config config;
	struct health_accounts accounts;

	config_set_defaults(&config);
	text_copy(config.health.command, sizeof(config.health.command), "/bin/check");
	text_copy(config.health.run_as, sizeof(config.health.run_as), "iostall");
	tree_put(t, "passwd", "%s", text);
	health_find_accounts(path_of(t), &config, &accounts);
	return accounts;
}

static void test_accounts(void **state)
{
	struct tree *t = *state;
	struct health_accounts a = accounts_of(t, "root:x:0:0:::\nnobody:x:65534:65533:::\n");

	assert_false(a.has_run_as);
	assert_true(a.has_nobody);
	assert_int_equal(a.nobody.uid, 65534);
	assert_int_equal(a.nobody.gid, 65533);
	a = accounts_of(t, "iostall:x:998:997:::\niostall:x:0:0:::\n");
	assert_true(a.has_run_as);
	assert_int_equal(a.run_as.uid, 998);
	assert_int_equal(a.run_as.gid, 997);
	assert_false(a.has_nobody);
}

/* A host with many users has its system users anywhere in the file. */
static void test_account_behind_many(void **state)
{
	char *text = calloc(MANY + 1, 32), *end = text;

	assert_non_null(text);
	for (unsigned int i = 0; i < MANY; i++)
		end += sprintf(end, "u%u:x:%u:%u:::\n", i, 1000 + i, 1000 + i);
	sprintf(end, "iostall:x:998:997:::\n");
	assert_int_equal(accounts_of(*state, text).run_as.uid, 998);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_users),
		tree_test(test_lines_of_another_form),
		tree_test(test_no_file),
		tree_test(test_accounts),
		tree_test(test_account_behind_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
