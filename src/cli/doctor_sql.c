/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What doctor says of databases and their processes. */
#include "cli/doctor.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>

#include "loop.h"
#include "sql/sql.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"
#include "watch/watch.h"

/* The time limits of a helper's client library end before. */
#define SQL_WAIT_NS (10 * NSEC_PER_SEC)
#define SQL_TICK_NS (20 * NSEC_PER_MSEC)
/* Of a server's processes up to its main one. */
#define DEPTH_MAX 8
/* What run_as is when nothing is set. */
#define USER "iostall"

/* Programs that are found without a setting, as the daemon looks for them. */
static const struct {
	const char *comm;
	const char *type;
	const char *socket;
} servers[] = {
	{ "mariadbd", "mariadb", "/run/mysqld/mysqld.sock" },
	{ "mysqld", "mysql", "/run/mysqld/mysqld.sock" },
	{ "postgres", "postgresql", "/run/postgresql/.s.PGSQL.5432" },
};

/* --- processes of servers ------------------------------------------------------------ */

static int32_t read_parent(int procfs_fd, int32_t pid)
{
	char path[32], buf[1024], state;
	const char *end;
	int32_t parent;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (file_read_at(procfs_fd, path, buf, sizeof(buf)) <= 0)
		return 0;
	/* Behind the command, which may hold anything. */
	end = strrchr(buf, ')');
	return end && sscanf(end, ") %c %d", &state, &parent) == 2 ? parent : 0;
}

/* The process of the same program that is its parent; NULL: it is a main process. */
static const struct watch_process *find_parent(int procfs_fd,
	const struct watch_process *processes, unsigned int count, const struct watch_process *p)
{
	int32_t parent = read_parent(procfs_fd, p->pid);

	for (unsigned int i = 0; parent > 0 && i < count; i++)
		if (processes[i].pid == parent && strcmp(processes[i].comm, p->comm) == 0)
			return &processes[i];
	return NULL;
}

static const struct watch_process *find_main(int procfs_fd, const struct watch_process *processes,
	unsigned int count, const struct watch_process *p)
{
	const struct watch_process *parent;

	for (unsigned int i = 0; i < DEPTH_MAX; i++) {
		parent = find_parent(procfs_fd, processes, count, p);
		if (!parent)
			break;
		p = parent;
	}
	return p;
}

void doctor_report_processes(
	struct doctor *d, const struct watch_process *processes, unsigned int count)
{
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned int members[WATCH_PROCESSES_MAX] = { 0 };

	for (unsigned int i = 0; i < count; i++)
		members[find_main(procfs_fd, processes, count, &processes[i]) - processes]++;
	for (unsigned int i = 0; i < count; i++) {
		const struct watch_process *p = &processes[i];

		if (members[i] == 1)
			doctor_report(d, "trigger", "processes", WORKS, "%s, pid %d", p->comm, p->pid);
		else if (members[i] > 1)
			doctor_report(d, "trigger", "processes", WORKS, "%s, pid %d, and %u more of it",
				p->comm, p->pid, members[i] - 1);
	}
}

/* --- targets --------------------------------------------------------------------- */

struct sql_check {
	struct loop *loop;
	struct sql *sql;
	uint64_t until_ns;
};

/* Each target has answered, or its helper has said why it cannot. */
static bool is_known(const struct sql *sql)
{
	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		struct sql_evidence e;

		sql_get_evidence(sql, i, &e);
		if (!e.current && !e.is_told)
			return false;
	}
	return true;
}

static void on_sql_tick(void *userdata, uint64_t expirations)
{
	struct sql_check *check = userdata;

	(void)expirations;
	sql_tick(check->sql, false);
	if (is_known(check->sql) || clock_mono_ns() > check->until_ns)
		loop_stop(check->loop);
}

/* "sql.main" is the section of target "main"; a server that was found has none. */
static const char *find_run_as(const struct config *config, const char *target)
{
	for (unsigned int i = 0; i < config->sql.targets_count; i++) {
		const struct config_sql_target *t = &config->sql.targets[i];

		if (strcmp(t->section + strlen(CONFIG_SQL_SECTION), target) == 0)
			return t->run_as;
	}
	return USER;
}

void doctor_report_user(struct doctor *d, const char *target, const char *run_as)
{
	bool standard = strcmp(run_as, USER) == 0;
	char name[96];

	if (getpwnam(run_as))
		return;
	snprintf(name, sizeof(name), "%s.run_as", target);
	doctor_report(d, "sql", name, FAILS,
		"there is no user %s on this host: the helper runs as nobody, whom unix_socket and peer do "
		"not let in; right would be: %s, or useradd --system %s",
		run_as, standard ? "systemd-sysusers" : "a user that exists", run_as);
}

/* Which process a server is, is not known before a login. */
static bool is_asked(const struct sql *sql, const char *type, int32_t pid)
{
	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		struct sql_evidence e;

		sql_get_evidence(sql, i, &e);
		if (strcmp(e.type, type) == 0 && (!e.server_pid || e.server_pid == pid))
			return true;
	}
	return false;
}

/* Those that are not at their usual socket. Whether there is one. */
static bool report_lost_servers(struct doctor *d, const struct sql *sql,
	const struct watch_process *processes, unsigned int count)
{
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool any = false;

	for (unsigned int i = 0; i < count * ARRAY_SIZE(servers); i++) {
		const struct watch_process *p = &processes[i / ARRAY_SIZE(servers)];
		unsigned int s = i % ARRAY_SIZE(servers);

		if (strcmp(p->comm, servers[s].comm) != 0 || is_asked(sql, servers[s].type, p->pid) ||
			find_parent(procfs_fd, processes, count, p))
			continue;
		any = true;
		doctor_report(d, "sql", "targets", DEGRADED,
			"%s, pid %d, is not asked: it is not at %s; right would be a section [sql.NAME] "
			"with type = %s and socket = its path",
			p->comm, p->pid, servers[s].socket, servers[s].type);
	}
	return any;
}

void doctor_report_unasked(struct doctor *d, const struct sql *sql,
	const struct watch_process *processes, unsigned int count)
{
	const struct config_sql *config = &d->config->sql;

	for (unsigned int i = 0; i < config->targets_count; i++)
		if (!config->targets[i].enabled)
			doctor_report(d, "sql", config->targets[i].section + strlen(CONFIG_SQL_SECTION), WORKS,
				"disabled by %s.enabled", config->targets[i].section);
	if (config->targets_count > 0 || report_lost_servers(d, sql, processes, count) ||
		sql_targets_count(sql) > 0)
		return;
	doctor_report(d, "sql", "targets", WORKS, "none is configured, and no server runs");
}

static void report_target(struct doctor *d, const struct sql *sql, unsigned int index)
{
	char buf[512];
	struct text state = TEXT_ON(buf);
	struct sql_evidence e;

	text_reset(&state);
	sql_get_evidence(sql, index, &e);
	sql_describe_target(sql, index, &state);
	doctor_report_user(d, e.target, find_run_as(d->config, e.target));
	if (!e.current)
		doctor_report(d, "sql", e.target, DEGRADED, "%s%s%s", buf,
			*e.missing ? "; right would be: " : "", e.missing);
	else if (*e.grant)
		doctor_report(d, "sql", e.target, DEGRADED,
			"%s, but it does not see everything; right would be: %s", buf, e.grant);
	else
		doctor_report(d, "sql", e.target, e.has_tid ? WORKS : DEGRADED,
			"%s, %u active and %u idle sessions seen, %s", buf, e.current->active,
			e.current->idle,
			e.has_tid ? "with their threads"
				  : "but the server does not say which thread each runs on");
}

static void ask_databases(struct doctor *d, const struct watch *watch, struct sql_check *check)
{
	const struct sql_options options = {
		.config = d->config,
		.procfs = d->o->procfs,
		.loop = check->loop,
		.watch = watch,
	};
	const struct watch_process *processes;
	struct loop_source *timer = NULL;
	unsigned int count;
	int r = sql_new(&options, &check->sql);

	if (r == 0)
		r = loop_add_timer(check->loop, on_sql_tick, check, &timer);
	if (r < 0) {
		doctor_report(d, "sql", "targets", DEGRADED, "%s", strerror(-r));
		return;
	}
	check->until_ns = clock_mono_ns() + SQL_WAIT_NS;
	loop_set_timer(timer, 1, SQL_TICK_NS);
	loop_run(check->loop);
	loop_remove(timer);
	processes = watch_processes(watch, &count);
	doctor_report_unasked(d, check->sql, processes, count);
	for (unsigned int i = 0; i < sql_targets_count(check->sql); i++)
		report_target(d, check->sql, i);
}

bool doctor_check_sql(struct doctor *d)
{
	struct watch_options options = { .procfs = d->o->procfs, .sysfs = d->o->sysfs };
	struct sql_check check = { .sql = NULL };
	struct watch *watch = NULL;
	bool any;

	if (!d->config->sql.enabled) {
		doctor_report(d, "sql", "targets", WORKS, "disabled by sql.enabled");
		return false;
	}
	watch_options_from_config(d->config, &options);
	/* What would be logged is reported. */
	if (!d->o->verbose)
		log_set_level(LOG_LEVEL_ERROR);
	if (loop_new(&check.loop) == 0 && watch_new(&options, &watch) == 0)
		ask_databases(d, watch, &check);
	else
		doctor_report(d, "sql", "targets", DEGRADED, "processes cannot be looked for");
	log_set_level(d->o->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	any = sql_targets_count(check.sql) > 0;
	sql_free(check.sql);
	watch_free(watch);
	loop_free(check.loop);
	return any;
}
