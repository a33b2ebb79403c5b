/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Servers that were found running: who is asked beside the sections of the configuration. */
#include "test_sql_setup.h"

#include "test_waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "watch/watch.h"

static void make_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void make_dir(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	text_copy(address.sun_path, sizeof(address.sun_path), path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

/* Which section there is beside a mariadbd at its usual socket, and who is asked then. */
static const struct {
	const char *section;
	enum config_sql_type type;
	const char *socket; /* "RUN" stands for the directory */
	const char *host;
	const char *found; /* the target beside that of the section; NULL: none */
} beside[] = {
	{ "sql.pg", CONFIG_SQL_POSTGRESQL, "", "", "mariadb" },
	{ "sql.other", CONFIG_SQL_MARIADB, "/srv/other.sock", "", "mariadb" },
	{ "sql.mariadb", CONFIG_SQL_MARIADB, "/srv/other.sock", "", "mariadb-found" },
	{ "sql.remote", CONFIG_SQL_MARIADB, "", "db2.example.org", "mariadb" },
	{ "sql.local", CONFIG_SQL_MARIADB, "", "127.0.0.1", NULL },
	{ "sql.usual", CONFIG_SQL_MYSQL, "", "", NULL },
	{ "sql.named", CONFIG_SQL_MARIADB, "RUN/mysqld/mysqld.sock", "", NULL },
};

/* A thread looks for the sockets; the next tick knows what it has found. */
static void tick(struct sql *sql)
{
	sql_tick(sql, false);
	for (int i = 0; i < WAITS_MAX && sql_is_looking(sql); i++) {
		usleep(500);
		sql_tick(sql, false);
	}
	assert_false(sql_is_looking(sql));
}

static void check_section_beside(struct fixture *f, const struct watch *watch, const char *dir,
	size_t i)
{
	struct config_sql_target *target = &f->config.sql.targets[0];
	struct sql_evidence e;

	f->config.sql.targets_count = 0;
	assert_int_equal(sql_new(&(struct sql_options){ .config = &f->config,
					 .procfs = "/proc",
					 .loop = f->loop,
					 .watch = watch,
					 .run_dir = dir,
					 .helper = "/nonexistent" },
				 &f->sql),
		0);
	tick(f->sql);
	assert_int_equal(sql_targets_count(f->sql), 1);
	f->config.sql.targets_count = 1;
	assert_int_equal(config_sql_default_target(beside[i].section, target), 0);
	target->type = beside[i].type;
	if (strncmp(beside[i].socket, "RUN", 3) == 0)
		snprintf(target->socket, sizeof(target->socket), "%s%s", dir, beside[i].socket + 3);
	else
		text_copy(target->socket, sizeof(target->socket), beside[i].socket);
	text_copy(target->host, sizeof(target->host), beside[i].host);
	/* One that was found goes at a reload when a section names it, be that disabled. */
	for (unsigned int enabled = 0; enabled < 2; enabled++) {
		target->enabled = enabled;
		assert_int_equal(sql_reload(f->sql, &f->config), 0);
		tick(f->sql);
		assert_int_equal(sql_targets_count(f->sql), enabled + (beside[i].found ? 1 : 0));
		for (unsigned int j = 0; j < sql_targets_count(f->sql); j++) {
			sql_get_evidence(f->sql, j, &e);
			assert_string_equal(e.target,
				e.detected ? beside[i].found : beside[i].section + 4);
		}
	}
	f->sql = sql_free(f->sql);
}

/* A mariadbd that runs and has its socket is tried; a postgres without one is not. */
static void test_detection(void **state)
{
	char dir[] = "/tmp/test_sql.XXXXXX", path[128], moved[128], command[128];
	struct config_list names = { 2, { "mariadbd", "postgres" } }, every = { 1, { "*" } };
	struct config_list none = { 0 };
	struct watch *watch;
	struct fixture f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	make_file(dir, "stat", "cpu  1 0 1 1 1 0 0 0 0 0\n");
	make_dir(dir, "70");
	make_dir(dir, "71");
	make_dir(dir, "mysqld");
	make_file(dir, "70/comm", "mariadbd\n");
	make_file(dir, "71/comm", "postgres\n");
	make_file(dir, "70/status", "Name:\tmariadbd\nState:\tS\nTgid:\t70\nPid:\t70\nPPid:\t1\n");
	make_file(dir, "71/status", "Name:\tpostgres\nState:\tS\nTgid:\t71\nPid:\t71\nPPid:\t1\n");
	setup_with(&f, "sql.good");
	f.sql = sql_free(f.sql);
	f.config.sql.targets_count = 0;
	assert_int_equal(watch_new(&(struct watch_options){ .procfs = dir,
					   .sysfs = dir,
					   .interval_ns = NSEC_PER_SEC,
					   .process = &names,
					   .device = &every,
					   .device_ignore = &none },
				 &watch),
		0);
	snprintf(path, sizeof(path), "%s/mysqld/mysqld.sock", dir);
	make_socket(path);
	assert_int_equal(sql_new(&(struct sql_options){ .config = &f.config,
					 .procfs = "/proc",
					 .loop = f.loop,
					 .watch = watch,
					 .run_dir = dir,
					 .helper = "/nonexistent" },
				 &f.sql),
		0);
	sql_tick(f.sql, true);
	assert_int_equal(sql_targets_count(f.sql), 0);
	/* A link is not followed: it may lead to a disk that hangs. */
	snprintf(moved, sizeof(moved), "%s/elsewhere.sock", dir);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink(moved, path), 0);
	tick(f.sql);
	assert_int_equal(sql_targets_count(f.sql), 0);
	assert_int_equal(rename(moved, path), 0);
	assert_int_equal(sql_reload(f.sql, &f.config), 0);
	tick(f.sql);
	assert_int_equal(sql_targets_count(f.sql), 1);
	assert_string_equal(evidence(&f).target, "mariadb");
	f.sql = sql_free(f.sql);
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
		check_section_beside(&f, watch, dir, i);
	teardown(&f);
	watch_free(watch);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_detection),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
