/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What doctor reports about databases and their processes. */
#include "cli/doctor.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>

#include "util/loop.h"
#include "sql/sql.h"
#include "sql/threads.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include "watch/watch.h"

/* Longer than the time limits of the client libraries in the helper processes. */
#define SQL_WAIT_NS (10 * NSEC_PER_SEC)
#define SQL_TICK_NS (20 * NSEC_PER_MSEC)
/* Generations between a process of a server and its main process. */
#define DEPTH_MAX 8
/* The default of run_as. */
#define USER "iostall"

/* --- processes of servers ------------------------------------------------------------ */

/* The parent if it runs the same program; NULL for a main process. */
static const struct watch_process *find_parent(int procfs_fd, const struct watch_process *processes,
	unsigned int count, const struct watch_process *p)
{
	int32_t parent = sql_read_parent(procfs_fd, p->pid);

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

void doctor_report_processes(struct doctor *d, const struct watch_process *processes,
	unsigned int count, unsigned int left_out)
{
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned int members[WATCH_PROCESSES_MAX] = { 0 };

	for (unsigned int i = 0; i < count; i++)
		members[find_main(procfs_fd, processes, count, &processes[i]) - processes]++;
	for (unsigned int i = 0; i < count; i++) {
		const struct watch_process *p = &processes[i];

		if (members[i] == 1)
			doctor_report(d, "trigger", "processes", WORKS, "%s, pid %d", p->comm,
				p->pid);
		else if (members[i] > 1)
			doctor_report(d, "trigger", "processes", WORKS,
				"%s, pid %d, and %u more processes", p->comm, p->pid,
				members[i] - 1);
	}
	if (left_out > 0)
		doctor_report(d, "trigger", "processes", DEGRADED,
			"%u more processes of watch.process are left out: at most %d are watched",
			left_out, WATCH_PROCESSES_MAX);
}

/* --- targets --------------------------------------------------------------------- */

struct sql_check {
	struct loop *loop;
	struct sql *sql;
	uint64_t until_ns;
};

/* Whether each target has answered, or its helper has said why it cannot. */
static bool is_known(const struct sql *sql)
{
	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		struct sql_evidence e;

		sql_get_evidence(sql, i, &e);
		if (!e.current && !e.is_known)
			return false;
	}
	return true;
}

static void on_sql_tick(void *userdata, uint64_t expirations)
{
	struct sql_check *check = userdata;

	(void)expirations;
	sql_tick(check->sql, false);
	if ((!sql_is_looking(check->sql) && is_known(check->sql)) ||
		clock_mono_ns() > check->until_ns)
		loop_stop(check->loop);
}

/* "sql.main" is the section of target "main"; a server that was found running has no section. */
static const char *find_run_as(const struct config *config, const char *target)
{
	for (unsigned int i = 0; i < config->sql.targets_count; i++) {
		const struct config_sql_target *t = &config->sql.targets[i];

		if (strcmp(t->section + strlen(CONFIG_SQL_SECTION), target) == 0)
			return t->run_as;
	}
	return USER;
}

void doctor_report_user(struct doctor *d, const char *target, const char *run_as, bool answers)
{
	bool standard = strcmp(run_as, USER) == 0;
	char name[96];

	if (getpwnam(run_as))
		return;
	snprintf(name, sizeof(name), "%s.run_as", target);
	doctor_report(d, "sql", name, answers ? DEGRADED : FAILS,
		"there is no user %s on this host; the helper runs as nobody, %s; %s, or run "
		"`useradd --system %s`",
		run_as,
		answers ? "and this database answers it"
			: "whom unix_socket and peer do not let in",
		standard ? "run `systemd-sysusers`" : "name a user that exists", run_as);
}

static bool is_postgresql(enum record_server server)
{
	return server == RECORD_SERVER_postgresql;
}

/* The process of a server is not known before a login. */
static bool is_asked(const struct doctor *d, const struct sql *sql, enum record_server server,
	int32_t pid)
{
	const struct config_sql *config = &d->config->sql;

	/* A disabled section says that its server is not to be asked. */
	for (unsigned int i = 0; i < config->targets_count; i++)
		if (!config->targets[i].enabled &&
			(config->targets[i].type == CONFIG_SQL_POSTGRESQL) == is_postgresql(server))
			return true;
	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		struct sql_evidence e;

		sql_get_evidence(sql, i, &e);
		if (is_postgresql(e.server) == is_postgresql(server) &&
			(!e.server_pid || e.server_pid == pid))
			return true;
	}
	return false;
}

/* Servers that are not at their default socket. Returns whether there are any. */
static bool report_lost_servers(struct doctor *d, const struct sql *sql,
	const struct watch_process *processes, unsigned int count)
{
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool any = false;

	for (unsigned int i = 0; i < count; i++) {
		const struct watch_process *p = &processes[i];
		enum record_server server;
		const char *socket;

		if (!sql_find_default_server(p->comm, &server, &socket) ||
			is_asked(d, sql, server, p->pid) ||
			find_parent(procfs_fd, processes, count, p))
			continue;
		any = true;
		doctor_report(d, "sql", "targets", DEGRADED,
			"%s, pid %d, is not asked, since it does not listen at /run/%s; add a section [sql.NAME] with "
			"type = %s and socket = PATH",
			p->comm, p->pid, socket, record_server_text(server));
	}
	return any;
}

void doctor_report_unasked(struct doctor *d, const struct sql *sql,
	const struct watch_process *processes, unsigned int count)
{
	const struct config_sql *config = &d->config->sql;

	for (unsigned int i = 0; i < config->targets_count; i++)
		if (!config->targets[i].enabled)
			doctor_report(d, "sql",
				config->targets[i].section + strlen(CONFIG_SQL_SECTION), WORKS,
				"disabled by %s.enabled", config->targets[i].section);
	if (report_lost_servers(d, sql, processes, count) || config->targets_count > 0 ||
		sql_targets_count(sql) > 0)
		return;
	doctor_report(d, "sql", "targets", WORKS,
		"no section [sql.NAME] is configured, and no database server runs");
}

static void report_target(struct doctor *d, const struct sql *sql, unsigned int index)
{
	char buf[512];
	struct text state = TEXT_ON(buf);
	struct sql_evidence e;

	text_reset(&state);
	sql_get_evidence(sql, index, &e);
	if (e.detected)
		text_add(&state, "found running, no section [sql.NAME] names it: ");
	sql_describe_target(sql, index, &state);
	doctor_report_user(d, e.target, find_run_as(d->config, e.target), e.current != NULL);
	if (!e.current)
		doctor_report(d, "sql", e.target, DEGRADED, "%s%s%s", buf,
			*e.missing ? "; to fix this: " : "", e.missing);
	else if (*e.grant)
		doctor_report(d, "sql", e.target, DEGRADED,
			"%s, but the account does not see everything; to fix this: %s", buf,
			e.grant);
	else
		doctor_report(d, "sql", e.target, e.has_tid ? WORKS : DEGRADED,
			"%s, sees %u active and %u idle sessions, %s", buf, e.current->active,
			e.current->idle,
			e.has_tid ? "with their threads"
				  : "but the server does not tell their threads");
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
	/* What would be logged is reported instead. */
	if (!d->o->verbose)
		log_set_level(LOG_LEVEL_ERROR);
	if (loop_new(&check.loop) == 0 && watch_new(&options, &watch) == 0)
		ask_databases(d, watch, &check);
	else
		doctor_report(d, "sql", "targets", DEGRADED,
			"/proc cannot be searched for processes");
	log_set_level(d->o->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	any = sql_targets_count(check.sql) > 0;
	sql_free(check.sql);
	watch_free(watch);
	loop_free(check.loop);
	return any;
}
