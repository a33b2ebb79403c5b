/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "watch/watch.h"

/* The list of watched processes is made anew every 10 s, too. */
#define DETECT_INTERVAL_NS (10 * NSEC_PER_SEC)
/* Targets are asked each second when it matters; an answer is a little late now and then. */
#define FRESH_NS (2 * NSEC_PER_SEC)
/* An older one says nothing any more of a database that is asked each second. */
#define KNOWN_NS (10 * NSEC_PER_SEC)
/* Helpers that hang in the kernel although they were killed; more stay zombies as long as the daemon lives. */
#define ORPHANS_MAX 16

struct sql {
	struct sql_target_options target_options;
	struct config_sql config;
	const struct watch *watch;
	char run_dir[PATH_MAX];
	uint64_t detect_ns;
	uint64_t begin_ns; /* of the incident; 0 before the first */
	unsigned int count;
	struct sql_target *targets[CONFIG_SQL_TARGETS_MAX];
	pid_t orphans[ORPHANS_MAX];
};

static const char *const type_names[] = {
	[CONFIG_SQL_MARIADB] = "mariadb",
	[CONFIG_SQL_MYSQL] = "mysql",
	[CONFIG_SQL_POSTGRESQL] = "postgresql",
};

/* Where a server that nobody configured is looked for. */
static const struct usual {
	const char *comm;
	const char *section;
	enum config_sql_type type;
	const char *socket; /* below /run */
} usuals[] = {
	{ "mariadbd", "sql.mariadb", CONFIG_SQL_MARIADB, "mysqld/mysqld.sock" },
	/* That name has a MariaDB before 10.5, too; the helper asks the server itself. */
	{ "mysqld", "sql.mysql", CONFIG_SQL_MYSQL, "mysqld/mysqld.sock" },
	{ "postgres", "sql.postgresql", CONFIG_SQL_POSTGRESQL, "postgresql/.s.PGSQL.5432" },
};

/* Targets */

static void remember_orphan(struct sql *sql, pid_t pid)
{
	for (unsigned int i = 0; pid > 0 && i < ORPHANS_MAX; i++) {
		if (sql->orphans[i] == 0) {
			sql->orphans[i] = pid;
			return;
		}
	}
}

static void reap_orphans(struct sql *sql)
{
	for (unsigned int i = 0; i < ORPHANS_MAX; i++)
		if (sql->orphans[i] > 0 && waitpid(sql->orphans[i], NULL, WNOHANG) != 0)
			sql->orphans[i] = 0;
}

static void remove_target(struct sql *sql, unsigned int index)
{
	remember_orphan(sql, sql_target_free(sql->targets[index]));
	sql->targets[index] = sql->targets[--sql->count];
}

static int add_target(struct sql *sql, const struct config_sql_target *config, bool detected)
{
	struct sql_target *target;
	int r;

	if (sql->count == CONFIG_SQL_TARGETS_MAX)
		return -ENOSPC;
	r = sql_target_new(&sql->target_options, config, &sql->config, &target);
	if (r < 0)
		return r;
	target->detected = detected;
	sql->targets[sql->count++] = target;
	return 0;
}

static bool has_target(const struct sql *sql, const char *section)
{
	for (unsigned int i = 0; i < sql->count; i++)
		if (strcmp(sql->targets[i]->config.section, section) == 0)
			return true;
	return false;
}

static int add_configured(struct sql *sql)
{
	int r = 0;

	for (unsigned int i = 0; sql->config.enabled && i < sql->config.targets_count; i++) {
		const struct config_sql_target *config = &sql->config.targets[i];

		if (config->enabled && !has_target(sql, config->section) && r == 0)
			r = add_target(sql, config, false);
	}
	return r;
}

/* Finding servers */

static bool is_running(const struct sql *sql, const char *comm)
{
	unsigned int count;
	const struct watch_process *processes = watch_processes(sql->watch, &count);

	for (unsigned int i = 0; i < count; i++)
		if (strcmp(processes[i].comm, comm) == 0)
			return true;
	return false;
}

static void detect(struct sql *sql, const struct usual *usual)
{
	struct config_sql_target target;
	char path[PATH_MAX + 64];
	struct stat st;
	int r;

	if (has_target(sql, usual->section) || !is_running(sql, usual->comm))
		return;
	snprintf(path, sizeof(path), "%s/%s", sql->run_dir, usual->socket);
	if (strlen(path) >= sizeof(target.socket) || stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	r = config_sql_default_target(usual->section, &target);
	if (r == 0) {
		target.type = usual->type;
		text_copy(target.socket, sizeof(target.socket), path);
		r = add_target(sql, &target, true);
	}
	if (r == 0)
		log_info("%s runs and has %s: trying to log in as %s", usual->comm, path,
			target.user);
	else
		log_warning("%s cannot be asked: %s", usual->section, strerror(-r));
}

static void detect_all(struct sql *sql, uint64_t now_ns)
{
	if (!sql->config.enabled || sql->config.targets_count > 0 || !sql->watch ||
		now_ns < sql->detect_ns)
		return;
	sql->detect_ns = now_ns + DETECT_INTERVAL_NS;
	for (size_t i = 0; i < ARRAY_SIZE(usuals); i++)
		detect(sql, &usuals[i]);
}

/* Each second and in an incident */

void sql_tick(struct sql *sql, bool armed)
{
	uint64_t now_ns = clock_mono_ns();

	if (!sql)
		return;
	reap_orphans(sql);
	if (!armed)
		detect_all(sql, now_ns);
	for (unsigned int i = 0; i < sql->count; i++)
		sql_target_tick(sql->targets[i], now_ns, armed);
}

void sql_ask_all(struct sql *sql)
{
	uint64_t now_ns = clock_mono_ns();

	for (unsigned int i = 0; i < sql->count; i++)
		sql_target_ask(sql->targets[i], now_ns);
}

void sql_set_callback(struct sql *sql, void (*answered)(void *userdata), void *userdata)
{
	sql->target_options.answered = answered;
	sql->target_options.userdata = userdata;
}

void sql_begin_incident(struct sql *sql)
{
	sql->begin_ns = clock_mono_ns();
	for (unsigned int i = 0; i < sql->count; i++)
		sql_target_begin_incident(sql->targets[i], sql->begin_ns);
	sql_ask_all(sql);
}

/* What was answered */

unsigned int sql_targets_count(const struct sql *sql)
{
	return sql ? sql->count : 0;
}

static const struct sql_snapshot *of_incident(
	const struct sql *sql, const struct sql_snapshot *snapshot)
{
	return snapshot->asked_ns && snapshot->answered_ns >= sql->begin_ns ? snapshot : NULL;
}

/* A login that takes its time says nothing about what is asked in a session. */
static bool is_in_session(const struct sql_target *t)
{
	return t->connected || t->silent_since_ns;
}

void sql_get_evidence(const struct sql *sql, unsigned int index, struct sql_evidence *ret_evidence)
{
	const struct sql_target *t = sql->targets[index];

	*ret_evidence = (struct sql_evidence){
		.target = t->name,
		.type = type_names[t->config.type],
		.server_pid = t->server.server_pid,
		.has_tid = t->server.has_tid,
		.grant = t->server.missing,
		.version = t->server.version,
		.account = t->server.account,
		.current = of_incident(sql, t->current),
		.worst = of_incident(sql, t->worst),
		.longest = &t->longest,
		.why = t->why,
		.is_told = t->is_told,
		.missing = t->missing,
		.unanswered_ns = sql_target_unanswered_ns(t, clock_mono_ns()),
		.in_session = is_in_session(t),
	};
}

bool sql_find_thread(const struct sql *sql, int32_t tid, struct sql_session_view *ret_view)
{
	for (unsigned int i = 0; i < sql->count; i++) {
		const struct sql_target *t = sql->targets[i];

		if (sql_longest_find_thread(&t->longest, of_incident(sql, t->worst),
			    of_incident(sql, t->current), tid, ret_view))
			return true;
	}
	return false;
}

uint64_t sql_find_connection(const struct sql *sql, const struct sql_operation *op)
{
	uint64_t connection_id = 0;

	for (unsigned int i = 0; i < sql_targets_count(sql) && connection_id == 0; i++) {
		const struct sql_snapshot *newest = of_incident(sql, sql->targets[i]->current);

		if (newest)
			connection_id = sql_snapshot_find_connection(newest, op,
				sql->targets[i]->config.type == CONFIG_SQL_POSTGRESQL);
	}
	return connection_id;
}

bool sql_is_server(const struct sql *sql, int32_t pid)
{
	for (unsigned int i = 0; pid > 0 && i < sql->count; i++)
		if (sql->targets[i]->server.server_pid == pid)
			return true;
	return false;
}

int32_t sql_leader(const struct sql *sql, int32_t tid)
{
	int32_t leader = tid;

	for (unsigned int i = 0; i < sql->count && leader == tid; i++) {
		const struct sql_snapshot *worst = of_incident(sql, sql->targets[i]->worst);

		if (worst)
			leader = sql_snapshot_leader(worst, tid);
	}
	return leader;
}

uint32_t sql_count_others(const struct sql *sql, int32_t tid, uint64_t *ret_longest_ns)
{
	uint32_t count = 0;

	*ret_longest_ns = 0;
	for (unsigned int i = 0; i < sql->count; i++) {
		const struct sql_snapshot *worst = of_incident(sql, sql->targets[i]->worst);

		if (worst)
			count += sql_snapshot_count_others(worst, tid, ret_longest_ns);
	}
	return count;
}

static bool is_in_state(const struct sql_snapshot *snapshot, uint32_t row,
	const struct config_list *states)
{
	struct sql_session_view view;

	sql_snapshot_view(snapshot, row, &view);
	for (unsigned int i = 0; i < states->count && !view.background; i++)
		if (fnmatch(states->items[i], view.state, 0) == 0)
			return true;
	return false;
}

static uint32_t count_in_state(const struct sql_snapshot *snapshot, const struct config_list *states)
{
	uint32_t count = 0;

	for (uint32_t row = 0; row < snapshot->count; row++)
		count += is_in_state(snapshot, row, states);
	return count;
}

/* The highest so far of one of the values, and whose it is. */
struct highest {
	uint64_t value;
	char *name;
};

static void take_highest(struct highest *highest, const struct sql_target *t, uint64_t value)
{
	if (value <= highest->value)
		return;
	highest->value = value;
	text_copy(highest->name, WATCH_SQL_TARGET_SIZE, t->name);
}

void sql_get_activity(const struct sql *sql, const struct config_list *states,
	struct sql_activity *ret_activity)
{
	uint64_t now_ns = clock_mono_ns();
	struct sql_activity activity = { 0 };
	struct highest active = { 0, activity.targets.active };
	struct highest longest = { 0, activity.targets.longest };
	struct highest in_state = { 0, activity.targets.in_state };
	struct highest unanswered = { 0, activity.targets.unanswered };

	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		const struct sql_target *t = sql->targets[i];
		uint64_t unanswered_ns = is_in_session(t) ? sql_target_unanswered_ns(t, now_ns) : 0;
		uint32_t count;

		take_highest(&unanswered, t, unanswered_ns);
		activity.present |= unanswered_ns > 0 ||
			(t->current->asked_ns && now_ns - t->current->answered_ns <= KNOWN_NS);
		if (!t->current->asked_ns || now_ns - t->current->answered_ns > FRESH_NS)
			continue;
		count = count_in_state(t->current, states);
		activity.fresh = true;
		activity.active += t->current->active;
		activity.in_state += count;
		take_highest(&active, t, t->current->active);
		take_highest(&longest, t, t->current->longest_ns);
		take_highest(&in_state, t, count);
	}
	activity.longest_ns = longest.value;
	activity.unanswered_ns = unanswered.value;
	*ret_activity = activity;
}

void sql_describe_target(const struct sql *sql, unsigned int index, struct text *out)
{
	struct sql_evidence e;

	sql_get_evidence(sql, index, &e);
	if (e.unanswered_ns)
		text_addf(out, "has not answered for %.1f s",
			(double)e.unanswered_ns / (double)NSEC_PER_SEC);
	else if (*e.why)
		text_add_printable(out, e.why, strlen(e.why));
	else
		text_add(out, "connected to ");
	if (*e.why || e.unanswered_ns)
		return;
	text_add_printable(out, e.version, strlen(e.version));
	text_add(out, " as ");
	text_add_printable(out, e.account, strlen(e.account));
}

void sql_add_status(const struct sql *sql, struct text *answer)
{
	char buf[200];
	struct text state = TEXT_ON(buf);

	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		text_reset(&state);
		sql_describe_target(sql, i, &state);
		text_json_string(answer, sql->targets[i]->config.section, buf);
	}
}

/* Making and freeing */

/* A helper has its password's file open, which may be another file by now. */
static bool is_kept(const struct sql_target *t, const struct config *config)
{
	const struct config_sql_target *other = NULL;

	for (unsigned int i = 0; i < config->sql.targets_count; i++)
		if (strcmp(config->sql.targets[i].section, t->config.section) == 0)
			other = &config->sql.targets[i];
	if (t->detected)
		return config->sql.targets_count == 0;
	return other && other->enabled && !other->password_file[0] &&
	       memcmp(other, &t->config, sizeof(*other)) == 0;
}

int sql_reload(struct sql *sql, const struct config *config)
{
	const struct config_sql *old = &sql->config;
	bool all_anew = !config->sql.enabled || old->text != config->sql.text ||
			old->text_bytes != config->sql.text_bytes ||
			old->interval_ns != config->sql.interval_ns;

	for (unsigned int i = sql->count; i > 0; i--)
		if (all_anew || !is_kept(sql->targets[i - 1], config))
			remove_target(sql, i - 1);
	sql->config = config->sql;
	sql->detect_ns = 0;
	return add_configured(sql);
}

int sql_new(const struct sql_options *options, struct sql **ret_sql)
{
	struct sql *sql = calloc(1, sizeof(*sql));
	int r;

	if (!sql)
		return -ENOMEM;
	sql->config = options->config->sql;
	sql->watch = options->watch;
	text_copy(sql->run_dir, sizeof(sql->run_dir), options->run_dir ? options->run_dir : "/run");
	sql->target_options = (struct sql_target_options){
		.loop = options->loop,
		.procfs_fd = open(options->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.helper = options->helper,
		.timing = options->timing,
	};
	r = sql->target_options.procfs_fd < 0 ? -errno : add_configured(sql);
	if (r < 0) {
		sql_free(sql);
		return r;
	}
	*ret_sql = sql;
	return 0;
}

struct sql *sql_free(struct sql *sql)
{
	if (!sql)
		return NULL;
	while (sql->count > 0)
		remove_target(sql, sql->count - 1);
	reap_orphans(sql);
	close_fd(sql->target_options.procfs_fd);
	free(sql);
	return NULL;
}
