/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What would mend a refused login, with client libraries that a test speaks for. */
#include <errno.h>
#include <libpq-fe.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test_sql_client.h"

#define STRANGER "iostall-nosuch"
#define CREATE(account, how)                                                                       \
	"CREATE USER " account " IDENTIFIED " how "; GRANT PROCESS ON *.* TO " account

static char session;
static unsigned int code;
static const char *message;
static int needs_password;
static char login_user[64]; /* "": the library chose */
static unsigned int logins;

static MYSQL *my_init(MYSQL *mysql)
{
	(void)mysql;
	return (MYSQL *)(void *)&session;
}

/* What the library was told for the last login. */
static bool enforced, verified;
static char methods[128], ca[64];

static int my_optionsv(MYSQL *mysql, enum mysql_option option, ...)
{
	va_list args;

	(void)mysql;
	va_start(args, option);
	if (option == MYSQL_OPT_SSL_ENFORCE)
		enforced = *va_arg(args, const my_bool *);
	else if (option == MYSQL_OPT_SSL_VERIFY_SERVER_CERT)
		verified = *va_arg(args, const my_bool *);
	else if (option == MYSQL_OPT_SSL_CA)
		snprintf(ca, sizeof(ca), "%s", va_arg(args, const char *));
	else if (option == MARIADB_OPT_RESTRICTED_AUTH)
		snprintf(methods, sizeof(methods), "%s", va_arg(args, const char *));
	va_end(args);
	return 0;
}

static MYSQL *my_connect(MYSQL *mysql, const char *host, const char *user, const char *password,
	const char *db, unsigned int port, const char *socket, unsigned long flags)
{
	(void)mysql;
	(void)host;
	logins++;
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

static int pg_version = 150000;

static int pg_lib_version(void)
{
	return pg_version;
}

/* "key=value ..." of the last login, without what no test looks at. */
static char pg_said[512];

static PGconn *pg_connect(const char *const *keys, const char *const *values, int expand)
{
	static const char *const wanted[] = { "requirepeer", "sslmode", "sslrootcert",
		"require_auth" };

	logins++;
	pg_said[0] = '\0';
	for (; *keys; keys++, values++) {
		if (strcmp(*keys, "user") == 0)
			snprintf(login_user, sizeof(login_user), "%s", *values ? *values : "");
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (strcmp(*keys, wanted[i]) == 0 && **values)
				snprintf(pg_said + strlen(pg_said),
					sizeof(pg_said) - strlen(pg_said), "%s=%s ", *keys,
					*values);
	}
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

static PGVerbosity pg_set_verbosity(PGconn *pg, PGVerbosity verbosity)
{
	(void)pg;
	return verbosity;
}

static PQnoticeProcessor pg_set_notice(PGconn *pg, PQnoticeProcessor processor, void *userdata)
{
	(void)pg, (void)userdata;
	return processor;
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

static const struct client_fake fakes[] = {
	CLIENT_FAKE("mysql_init", my_init),
	CLIENT_FAKE("mysql_optionsv", my_optionsv),
	CLIENT_FAKE("mysql_real_connect", my_connect),
	CLIENT_FAKE("mysql_errno", my_errno),
	CLIENT_FAKE("mysql_error", my_error),
	CLIENT_FAKE("mysql_close", my_close),
	CLIENT_FAKE("PQlibVersion", pg_lib_version),
	CLIENT_FAKE("PQconnectStartParams", pg_connect),
	CLIENT_FAKE("PQsetErrorVerbosity", pg_set_verbosity),
	CLIENT_FAKE("PQsetNoticeProcessor", pg_set_notice),
	CLIENT_FAKE("PQstatus", pg_status),
	CLIENT_FAKE("PQerrorMessage", pg_error),
	CLIENT_FAKE("PQconnectionNeedsPassword", pg_needs_password),
	CLIENT_FAKE("PQfinish", pg_finish),
	{ NULL, NULL },
};

static char missing_buf[SQL_ERROR_SIZE], error_buf[SQL_ERROR_SIZE];

/* Logs in to the target "main"; the password is "p" when the setup has a file for it. */
static int log_in(const struct sql_driver *driver, struct sql_frame_setup *setup)
{
	struct text missing = TEXT_ON(missing_buf), error = TEXT_ON(error_buf);
	struct sql_frame_server server;
	struct sql_link *link = client_link(driver, fakes, setup);
	int r;

	text_reset(&missing);
	text_reset(&error);
	snprintf(setup->name, sizeof(setup->name), "main");
	enforced = verified = false;
	methods[0] = ca[0] = '\0';
	logins = 0;
	r = driver->connect(link, setup->password_file[0] ? "p" : NULL, &server, &error, &missing);
	test_free(link);
	return r;
}

/* What a driver advises to the target "main". */
static const char *advise(const struct sql_driver *driver, struct sql_frame_setup *setup)
{
	assert_int_equal(log_in(driver, setup), -EACCES);
	return missing_buf;
}

static const char *own_user(void)
{
	return getpwuid(geteuid())->pw_name;
}

static struct sql_frame_setup setup_as(const char *user)
{
	struct sql_frame_setup setup = { .type = SQL_TYPE_MARIADB, .tls = 1, .tls_ca = "/ca" };

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
		"set sql.main.password_file, if the account has a password; or, if there is no such account, "
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
		"set sql.main.run_as = " STRANGER
		", a user of this system (now: %s); or, if the account has "
		"a password, set sql.main.password_file",
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
		"ALTER USER '" STRANGER
		"'@'localhost' IDENTIFIED BY 'PASSWORD'; or, if there is no such "
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
	message = "FATAL:  28000: Peer authentication failed for user \"some-one\"\n";
	snprintf(expected, sizeof(expected),
		"set sql.main.run_as = some-one, a user of this system (now: %s); or add a line for "
		"\"some-one\" without peer to pg_hba.conf, and set sql.main.password_file",
		own_user());
	assert_string_equal(advise(&sql_driver_postgresql, &setup), expected);
	setup = setup_as(own_user());
	snprintf(expected, sizeof(expected), "add a line for %s to pg_hba.conf that lets it in",
		own_user());
	assert_string_equal(advise(&sql_driver_postgresql, &setup), expected);
}

static void test_postgres_password(void **state)
{
	struct sql_frame_setup setup = setup_as("a");

	(void)state;
	needs_password = 0;
	message = "FATAL:  28P01: password authentication failed for user \"a\"\n";
	snprintf(setup.password_file, sizeof(setup.password_file), "/p");
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"ALTER ROLE a PASSWORD 'PASSWORD'; or, if there is no such role, CREATE ROLE a LOGIN "
		"PASSWORD 'PASSWORD'; GRANT pg_monitor TO a");
	setup = setup_as("a");
	needs_password = 1;
	message = "fe_sendauth: no password supplied\n";
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"set sql.main.password_file; and, if there is no such role, CREATE ROLE a LOGIN PASSWORD "
		"'PASSWORD'; GRANT pg_monitor TO a");
}

static void test_postgres_unknown(void **state)
{
	struct sql_frame_setup setup = setup_as("a");

	(void)state;
	needs_password = 0;
	message = "FATAL:  28000: role \"a\" does not exist\n";
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"CREATE ROLE a LOGIN; GRANT pg_monitor TO a");
	message = "FATAL:  28000: no pg_hba.conf entry for host \"[local]\", user \"a\"\n";
	assert_string_equal(advise(&sql_driver_postgresql, &setup),
		"add a line for a to pg_hba.conf that lets it in");
}

/* What a server says in its own language has the same code. */
static void test_postgres_language(void **state)
{
	struct sql_frame_setup setup = setup_as("a");

	(void)state;
	needs_password = 0;
	message = "connection to server on socket \"/run/x\" failed: FATAL:  28P01: "
		  "Passwort-Authentifizierung für Benutzer »a« fehlgeschlagen\n"
		  "LOCATION:  auth_failed, auth.c:334\n";
	assert_int_equal(log_in(&sql_driver_postgresql, &setup), -EACCES);
	assert_string_equal(error_buf,
		"connection to server on socket \"/run/x\" failed: FATAL:  "
		"Passwort-Authentifizierung für Benutzer »a« fehlgeschlagen");
	message = "FATAL:  57P03: das Datenbanksystem startet\n";
	assert_int_equal(log_in(&sql_driver_postgresql, &setup), -EAGAIN);
	assert_string_equal(error_buf, "FATAL:  das Datenbanksystem startet");
	message = "FATAL:  53300: sorry, too many clients already\n";
	assert_int_equal(log_in(&sql_driver_postgresql, &setup), -ECONNREFUSED);
}

/* A user that is only the default does not hide that of the file. */
static void test_option_file(void **state)
{
	static const struct sql_driver *const drivers[] = { &sql_driver_mariadb,
		&sql_driver_postgresql };

	(void)state;
	code = ER_ACCESS_DENIED_ERROR;
	message = "FATAL:  28P01: password authentication failed for user \"a\"\n";
	for (size_t i = 0; i < 2; i++) {
		struct sql_frame_setup setup = setup_as("iostall");

		advise(drivers[i], &setup);
		assert_string_equal(login_user, "iostall");
		snprintf(setup.option_file, sizeof(setup.option_file), "/etc/a.cnf");
		assert_string_equal(advise(drivers[i], &setup),
			"put a user and a password that the server knows into /etc/a.cnf");
		assert_string_equal(login_user, "");
		snprintf(setup.user, sizeof(setup.user), "b");
		advise(drivers[i], &setup);
		assert_string_equal(login_user, "b");
	}
}

/* --- who gets the password ----------------------------------------------------------------- */

static void test_mariadb_tls(void **state)
{
	struct sql_frame_setup setup = setup_as("a");

	(void)state;
	code = ER_ACCESS_DENIED_ERROR;
	snprintf(setup.password_file, sizeof(setup.password_file), "/p");
	log_in(&sql_driver_mariadb, &setup);
	assert_false(enforced);
	assert_non_null(strstr(methods, "mysql_native_password"));
	assert_null(strstr(methods, "clear"));
	snprintf(setup.host, sizeof(setup.host), "db");
	log_in(&sql_driver_mariadb, &setup);
	assert_true(enforced && verified);
	assert_string_equal(ca, "/ca");
	/* Without it, nothing that could send the password, or encrypt it with anybody's key. */
	setup.tls = 0;
	log_in(&sql_driver_mariadb, &setup);
	assert_false(enforced);
	assert_non_null(strstr(methods, "mysql_native_password"));
	assert_null(strstr(methods, "clear"));
	assert_null(strstr(methods, "sha2"));
}

static void test_postgres_tls(void **state)
{
	struct sql_frame_setup setup = setup_as("a");

	(void)state;
	message = "FATAL:  28P01: password authentication failed for user \"a\"\n";
	snprintf(setup.password_file, sizeof(setup.password_file), "/p");
	snprintf(setup.host, sizeof(setup.host), "db");
	assert_int_equal(log_in(&sql_driver_postgresql, &setup), -EACCES);
	assert_string_equal(pg_said, "sslmode=verify-full sslrootcert=/ca ");
	/* This library would send it to a server that asks for it. */
	setup.tls = 0;
	assert_int_equal(log_in(&sql_driver_postgresql, &setup), -EPERM);
	assert_int_equal(logins, 0);
	assert_string_equal(missing_buf, "set sql.main.tls = verify, or use the server's socket");
	pg_version = 160000;
	assert_int_equal(log_in(&sql_driver_postgresql, &setup), -EACCES);
	assert_string_equal(pg_said, "sslmode=disable require_auth=scram-sha-256,md5,gss,none ");
	pg_version = 150000;
	setup.password_file[0] = '\0';
	assert_int_equal(log_in(&sql_driver_postgresql, &setup), -EACCES);
	assert_int_equal(logins, 1);
}

static void bind_socket(const char *path, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	*ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*ret_fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

/* A socket of another user gets no login, unless it is the one that is configured. */
static void test_owner_of_socket(void **state)
{
	static const struct sql_driver *const drivers[] = { &sql_driver_mariadb,
		&sql_driver_postgresql };
	char dir[] = "/tmp/iostall-test.XXXXXX", path[64];
	int fd;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root can make a socket of another user\n");
		skip();
	}
	code = ER_ACCESS_DENIED_ERROR;
	message = "FATAL:  28P01: password authentication failed for user \"a\"\n";
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", dir);
	bind_socket(path, &fd);
	for (size_t i = 0; i < 2; i++) {
		struct sql_frame_setup setup = setup_as("a");

		snprintf(setup.socket, sizeof(setup.socket), "%s", path);
		assert_int_equal(chown(path, 0, 0), 0);
		assert_int_equal(log_in(drivers[i], &setup), -EACCES);
		assert_int_equal(chown(path, 4711, 0), 0);
		assert_int_equal(log_in(drivers[i], &setup), -EPERM);
		assert_int_equal(logins, 0);
		assert_non_null(strstr(error_buf, "the socket belongs to user 4711; expected "));
		assert_string_equal(missing_buf,
			"set sql.main.server_user, if this is the user of the server");
		snprintf(setup.server_user, sizeof(setup.server_user), "4711");
		assert_int_equal(log_in(drivers[i], &setup), -EACCES);
		snprintf(setup.server_user, sizeof(setup.server_user), "daemon");
		assert_int_equal(chown(path, getpwnam("daemon")->pw_uid, 0), 0);
		assert_int_equal(log_in(drivers[i], &setup), -EACCES);
	}
	assert_string_equal(pg_said, "requirepeer=daemon sslmode=verify-full sslrootcert=/ca ");
	close(fd);
	unlink(path);
	rmdir(dir);
}

static int forget(void **state)
{
	(void)state;
	code = 0;
	message = "";
	needs_password = 0;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_mariadb_socket, forget),
		cmocka_unit_test_setup(test_mariadb_other_user, forget),
		cmocka_unit_test_setup(test_mariadb_password, forget),
		cmocka_unit_test_setup(test_postgres_peer, forget),
		cmocka_unit_test_setup(test_postgres_password, forget),
		cmocka_unit_test_setup(test_postgres_unknown, forget),
		cmocka_unit_test_setup(test_postgres_language, forget),
		cmocka_unit_test_setup(test_option_file, forget),
		cmocka_unit_test_setup(test_mariadb_tls, forget),
		cmocka_unit_test_setup(test_postgres_tls, forget),
		cmocka_unit_test_setup(test_owner_of_socket, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
