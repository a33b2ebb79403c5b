/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What would mend a refused login, with client libraries that a test speaks for. */
#include <errno.h>
#include <libpq-fe.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/driver.h"

#define STRANGER "iostall-nosuch"
#define CREATE(account, how)                                                                       \
	"CREATE USER " account " IDENTIFIED " how "; GRANT PROCESS ON *.* TO " account

static char session;
static unsigned int code;
static const char *message;
static int needs_password;
static char login_user[64]; /* "": the library chose */

static MYSQL *my_init(MYSQL *mysql)
{
	(void)mysql;
	return (MYSQL *)(void *)&session;
}

static int my_optionsv(MYSQL *mysql, enum mysql_option option, ...)
{
	(void)mysql;
	(void)option;
	return 0;
}

static MYSQL *my_connect(MYSQL *mysql, const char *host, const char *user, const char *password,
	const char *db, unsigned int port, const char *socket, unsigned long flags)
{
	(void)mysql;
	(void)host;
	snprintf(login_user, sizeof(login_user), "%s", user ? user : "");
	(void)password;
	(void)db;
	(void)port;
	(void)socket;
	(void)flags;
	return NULL;
}

static unsigned int my_errno(MYSQL *mysql)
{
	(void)mysql;
	return code;
}

static const char *my_error(MYSQL *mysql)
{
	(void)mysql;
	return "refused";
}

static void my_close(MYSQL *mysql)
{
	(void)mysql;
}

static PGconn *pg_connect(const char *const *keys, const char *const *values, int expand)
{
	for (; *keys; keys++, values++)
		if (strcmp(*keys, "user") == 0)
			snprintf(login_user, sizeof(login_user), "%s", *values ? *values : "");
	(void)expand;
	return (PGconn *)(void *)&session;
}

static ConnStatusType pg_status(const PGconn *pg)
{
	(void)pg;
	return CONNECTION_BAD;
}

static char *pg_error(const PGconn *pg)
{
	static char buf[256];

	(void)pg;
	snprintf(buf, sizeof(buf), "%s", message);
	return buf;
}

static int pg_needs_password(const PGconn *pg)
{
	(void)pg;
	return needs_password;
}

static void pg_finish(PGconn *pg)
{
	(void)pg;
}

static const struct {
	const char *name;
	void (*function)(void);
} fakes[] = {
#define FAKE(name, function) { name, (void (*)(void))function }
	FAKE("mysql_init", my_init),
	FAKE("mysql_optionsv", my_optionsv),
	FAKE("mysql_real_connect", my_connect),
	FAKE("mysql_errno", my_errno),
	FAKE("mysql_error", my_error),
	FAKE("mysql_close", my_close),
	FAKE("PQconnectdbParams", pg_connect),
	FAKE("PQstatus", pg_status),
	FAKE("PQerrorMessage", pg_error),
	FAKE("PQconnectionNeedsPassword", pg_needs_password),
	FAKE("PQfinish", pg_finish),
#undef FAKE
};

/* What a driver advises to the target "main". */
static const char *advise(const struct sql_driver *driver, struct sql_frame_setup *setup)
{
	static char missing_buf[SQL_ERROR_SIZE];
	char error_buf[SQL_ERROR_SIZE];
	struct text missing = TEXT_ON(missing_buf), error = TEXT_ON(error_buf);
	struct sql_frame_server server;
	char *link = test_calloc(1, driver->link_size);

	text_reset(&missing);
	text_reset(&error);
	snprintf(setup->name, sizeof(setup->name), "main");
	for (const struct sql_function *f = driver->functions; f->name; f++)
		for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++)
			if (strcmp(f->name, fakes[i].name) == 0)
				memcpy(link + f->offset, &fakes[i].function, sizeof(void *));
	memcpy(link, &setup, sizeof(setup));
	assert_int_equal(driver->connect((struct sql_link *)(void *)link, NULL, &server, &error,
				 &missing),
		-EACCES);
	test_free(link);
	return missing_buf;
}

static const char *own_user(void)
{
	return getpwuid(geteuid())->pw_name;
}

static struct sql_frame_setup setup_as(const char *user)
{
	struct sql_frame_setup setup = { .type = SQL_TYPE_MARIADB };

	snprintf(setup.user, sizeof(setup.user), "%s", user);
	return setup;
}

static void test_mariadb_socket(void **state)
{
	struct sql_frame_setup setup = setup_as(own_user());
	char expected[512];

	(void)state;
	code = ER_ACCESS_DENIED_NO_PASSWORD_ERROR;
	snprintf(expected, sizeof(expected),
		"sql.main.password_file, if the account has a password; or, if there is no such account, "
		"CREATE USER '%s'@'localhost' IDENTIFIED VIA unix_socket; GRANT PROCESS ON *.* TO "
		"'%s'@'localhost'",
		own_user(), own_user());
	assert_string_equal(advise(&sql_driver_mariadb, &setup), expected);
}

/* unix_socket would never let us in. */
static void test_mariadb_other_user(void **state)
{
	struct sql_frame_setup setup = setup_as(STRANGER);
	char expected[512];

	(void)state;
	code = ER_ACCESS_DENIED_NO_PASSWORD_ERROR;
	snprintf(expected, sizeof(expected),
		"sql.main.run_as = " STRANGER ", a user of this system (now: %s); or, if the account has "
		"a password, sql.main.password_file",
		own_user());
	assert_string_equal(advise(&sql_driver_mariadb, &setup), expected);
}

static void test_mariadb_password(void **state)
{
	struct sql_frame_setup setup = setup_as(STRANGER);

	(void)state;
	code = ER_ACCESS_DENIED_ERROR;
	snprintf(setup.password_file, sizeof(setup.password_file), "/p");
	assert_string_equal(advise(&sql_driver_mariadb, &setup),
		"ALTER USER '" STRANGER "'@'localhost' IDENTIFIED BY 'PASSWORD'; or, if there is no such "
		"account, " CREATE("'" STRANGER "'@'localhost'", "BY 'PASSWORD'"));
	/* No account is known there: nothing can be altered. */
	code = ER_HOST_NOT_PRIVILEGED;
	snprintf(setup.host, sizeof(setup.host), "db");
	assert_string_equal(advise(&sql_driver_mariadb, &setup),
		CREATE("'" STRANGER "'@'%'", "BY 'PASSWORD'"));
}

static void test_postgres_peer(void **state)
{
	struct sql_frame_setup setup = setup_as("some-one");
	char expected[512];

	(void)state;
	needs_password = 0;
	message = "FATAL:  Peer authentication failed for user \"some-one\"\n";
	snprintf(expected, sizeof(expected),
		"sql.main.run_as = some-one, a user of this system (now: %s); or a line for \"some-one\" "
		"without peer in pg_hba.conf, and sql.main.password_file",
		own_user());
	assert_string_equal(advise(&sql_driver_postgresql, &setup), expected);
	setup = setup_as(own_user());
	snprintf(expected, sizeof(expected), "a line for %s in pg_hba.conf that lets it in",
		own_user());
	assert_string_equal(advise(&sql_driver_postgresql, &setup), expected);
}

static void test_postgres_password(void **state)
{
	struct sql_frame_setup setup = setup_as("a");

	(void)state;
	needs_password = 0;
	message = "FATAL:  password authentication failed for user \"a\"\n";
	snprintf(setup.password_file, sizeof(setup.password_file), "/p");
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"ALTER ROLE a PASSWORD 'PASSWORD'; or, if there is no such role, CREATE ROLE a LOGIN "
		"PASSWORD 'PASSWORD'; GRANT pg_monitor TO a");
	setup = setup_as("a");
	needs_password = 1;
	message = "fe_sendauth: no password supplied\n";
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"sql.main.password_file; and, if there is no such role, CREATE ROLE a LOGIN PASSWORD "
		"'PASSWORD'; GRANT pg_monitor TO a");
}

static void test_postgres_unknown(void **state)
{
	struct sql_frame_setup setup = setup_as("a");

	(void)state;
	needs_password = 0;
	message = "FATAL:  role \"a\" does not exist\n";
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"CREATE ROLE a LOGIN; GRANT pg_monitor TO a");
	message = "FATAL:  no pg_hba.conf entry for host \"[local]\", user \"a\"\n";
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"a line for a in pg_hba.conf that lets it in");
}

/* A user that is only the default does not hide that of the file. */
static void test_option_file(void **state)
{
	static const struct sql_driver *const drivers[] = { &sql_driver_mariadb,
		&sql_driver_postgresql };

	(void)state;
	code = ER_ACCESS_DENIED_ERROR;
	message = "FATAL:  password authentication failed for user \"a\"\n";
	for (size_t i = 0; i < 2; i++) {
		struct sql_frame_setup setup = setup_as("iostall");

		advise(drivers[i], &setup);
		assert_string_equal(login_user, "iostall");
		snprintf(setup.option_file, sizeof(setup.option_file), "/etc/a.cnf");
		assert_string_equal(advise(drivers[i], &setup),
			"in /etc/a.cnf a user and a password that the server knows");
		assert_string_equal(login_user, "");
		snprintf(setup.user, sizeof(setup.user), "b");
		advise(drivers[i], &setup);
		assert_string_equal(login_user, "b");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mariadb_socket),
		cmocka_unit_test(test_mariadb_other_user),
		cmocka_unit_test(test_mariadb_password),
		cmocka_unit_test(test_postgres_peer),
		cmocka_unit_test(test_postgres_password),
		cmocka_unit_test(test_postgres_unknown),
		cmocka_unit_test(test_option_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
