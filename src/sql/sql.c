/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "watch/watch.h"

static const enum record_server servers[] = {
#define DATABASE(NAME, name, ...) [CONFIG_SQL_##NAME] = RECORD_SERVER_##name,
#include "sql/databases.def"
#undef DATABASE
};

/* Targets */

/* What somebody configured comes before what was found. */
static void make_room(struct sql *sql)
{
	for (unsigned int i = sql->count; i > 0 && sql->count == CONFIG_SQL_TARGETS_MAX; i--)
		if (sql->targets[i - 1]->detected)
			sql_remove_target(sql, i - 1);
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

		if (!config->enabled || has_target(sql, config->section) || r < 0)
			continue;
		make_room(sql);
		r = sql_add_target(sql, config, false);
	}
	return r;
}

/* Asking */

void sql_tick(struct sql *sql, bool armed)
{
	uint64_t now_ns = clock_mono_ns();

	if (!sql)
		return;
	sql_reap_orphans(sql);
	if (!armed)
		sql_look_for_servers(sql, now_ns);
	sql_stop_duplicates(sql);
	for (unsigned int i = 0; i < sql->count; i++)
		sql_target_tick(sql->targets[i], now_ns, armed);
}

void sql_ask_all(struct sql *sql)
{
	uint64_t now_ns = clock_mono_ns();

	for (unsigned int i = 0; i < sql->count; i++)
		sql_target_ask(sql->targets[i], now_ns);
}

void sql_look_again(struct sql *sql)
{
	uint64_t now_ns = clock_mono_ns();

	for (unsigned int i = 0; i < sql_targets_count(sql); i++)
		sql_target_look_again(sql->targets[i], now_ns);
}

bool sql_is_answered(const struct sql *sql)
{
	for (unsigned int i = 0; sql && i < sql->count; i++)
		if (sql->targets[i]->fd >= 0 && sql->targets[i]->asked_ns)
			return false;
	return true;
}

void sql_set_callback(struct sql *sql, void (*answered)(void *userdata), void *userdata)
{
	sql->target_options.answered = answered;
	sql->target_options.userdata = userdata;
}

void sql_unset_callback(struct sql *sql, const void *userdata)
{
	if (sql && sql->target_options.userdata == userdata)
		sql_set_callback(sql, NULL, NULL);
}

void sql_begin_incident(struct sql *sql)
{
	sql->begin_ns = clock_mono_ns();
	for (unsigned int i = 0; i < sql->count; i++)
		sql_target_begin_incident(sql->targets[i], sql->begin_ns);
	sql_ask_all(sql);
}

/* Answers */

unsigned int sql_targets_count(const struct sql *sql)
{
	return sql ? sql->count : 0;
}

static const struct sql_snapshot *of_incident(const struct sql *sql,
	const struct sql_snapshot *snapshot)
{
	return snapshot->asked_ns && snapshot->answered_ns >= sql->begin_ns ? snapshot : NULL;
}

/* A slow login does not mean that the server leaves a question unanswered. */
static bool is_in_session(const struct sql_target *t)
{
	return t->connected || t->unresponsive_since_ns;
}

void sql_get_evidence(const struct sql *sql, unsigned int index, struct sql_evidence *ret_evidence)
{
	struct sql_target *t = sql->targets[index];
	uint64_t pause_ns = sql_target_choose_pause(t->interval_ns, t->cost_ns, 0);

	*ret_evidence = (struct sql_evidence){
		.target = t->name,
		.server = servers[t->config.type],
		.sessions_are_processes = t->sessions_are_processes,
		.detected = t->detected,
		.server_pid = t->server.server_pid,
		.has_tid = t->server.has_tid,
		.grant = t->server.missing,
		.version = t->server.version,
		.account = t->server.account,
		.current = of_incident(sql, t->current),
		.statements = &t->statements,
		.why = t->why,
		.is_duplicate = *t->same_as,
		.is_known = t->is_known,
		.missing = t->missing,
		.unanswered_ns = sql_target_unanswered_ns(t, clock_mono_ns()),
		.in_session = is_in_session(t),
		.slowed_ns = pause_ns > t->interval_ns ? pause_ns : 0,
	};
}

bool sql_find_thread(const struct sql *sql, int32_t tid, struct sql_session_view *ret_view)
{
	for (unsigned int i = 0; i < sql->count; i++) {
		const struct sql_target *t = sql->targets[i];

		if (sql_statements_find_thread(&t->statements, of_incident(sql, t->current), tid,
			    ret_view))
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
				sql->targets[i]->sessions_are_processes);
	}
	return connection_id;
}

uint64_t sql_count_invalid(const struct sql *sql)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < sql_targets_count(sql); i++)
		count += sql->targets[i]->invalid;
	return count;
}

const char *sql_find_relation(const struct sql *sql, const char *path)
{
	const char *relation = "";

	for (unsigned int i = 0; i < sql_targets_count(sql) && !*relation; i++)
		relation = sql_relations_find(sql->targets[i]->relations, path);
	return relation;
}

const char *sql_find_role(const struct sql *sql, int32_t tid)
{
	const char *role = "";

	for (unsigned int i = 0; i < sql_targets_count(sql) && !*role; i++)
		role = sql_target_find_role(sql->targets[i], tid);
	return role;
}

/*
 * What a thread of MySQL (ib_...) or MariaDB does that serves no client. The readers and writers of
 * InnoDB (ib_io_rd, ib_io_wr) are not here: they work for statements.
 */
static const char *role_of_name(const char *comm)
{
	static const struct {
		const char *prefix;
		const char *role;
	} roles[] = {
		{ "ib_pg_flush", "page cleaner" },
		{ "page_cleaner", "page cleaner" },
		{ "ib_srv_purge", "purge" },
		{ "ib_srv_wkr", "purge" },
		{ "ib_log_", "redo log" },
		{ "ib_buf_dump", "dump or load of the buffer pool" },
		{ "ib_dict_stats", "statistics of tables" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(roles); i++)
		if (strncmp(comm, roles[i].prefix, strlen(roles[i].prefix)) == 0)
			return roles[i].role;
	return "";
}

const char *sql_find_role_of(const struct sql *sql, int32_t pid, int32_t tid, const char *comm)
{
	const char *role = sql_find_role(sql, tid);

	return *role || pid == tid ? role : role_of_name(comm);
}

static int32_t find_served(const struct sql *sql, int32_t tid, uint32_t *ret_sessions)
{
	*ret_sessions = 0;
	for (unsigned int i = 0; i < sql->count; i++) {
		const struct sql_target *t = sql->targets[i];

		if (t->statements.worst_ns &&
			strcmp(sql_target_find_role(t, tid), SQL_IO_WORKERS_ROLE) == 0)
			return sql_io_workers_find(&t->io_workers, ret_sessions);
	}
	return 0;
}

int32_t sql_leader(const struct sql *sql, int32_t tid)
{
	uint32_t sessions;
	int32_t leader = find_served(sql, tid, &sessions);

	for (unsigned int i = 0; i < sql->count && leader <= 0; i++)
		leader = sql_statements_find_leader(&sql->targets[i]->statements, tid);
	return leader > 0 ? leader : tid;
}

uint32_t sql_count_served(const struct sql *sql, int32_t tid)
{
	uint32_t sessions;

	find_served(sql, tid, &sessions);
	return sessions;
}

static bool is_in_state(const struct sql_snapshot *snapshot, uint32_t row,
	const struct config_list *states)
{
	struct sql_session_view view;

	if (!sql_row_is_lasting(&snapshot->rows[row]))
		return false;
	sql_snapshot_view(snapshot, row, &view);
	/* InnoDB has no state of its own for a statement that waits for a row. */
	return view.lock == RECORD_LOCK_row || config_list_matches(states, view.state);
}

static uint32_t count_in_state(const struct sql_snapshot *snapshot,
	const struct config_list *states)
{
	uint32_t count = 0;

	for (uint32_t row = 0; row < snapshot->count; row++)
		count += is_in_state(snapshot, row, states);
	return count;
}

/* The highest of one of the values so far, and the name of its target. */
struct highest {
	uint64_t value;
	char *name;
	uint64_t answered_ns; /* by the target that has it; with the value 0 the last of all */
};

static void take_highest(struct highest *highest, const struct sql_target *t, uint64_t value)
{
	if (!highest->value && t->answered_ns > highest->answered_ns)
		highest->answered_ns = t->answered_ns;
	if (value <= highest->value)
		return;
	highest->value = value;
	highest->answered_ns = t->answered_ns;
	text_copy(highest->name, WATCH_SQL_TARGET_SIZE, t->name);
}

static uint64_t connections_permille(const struct sql_snapshot *s)
{
	const struct sql_connections *c = &s->connections;

	/* Rounded down: one is free in a thousand, or none. */
	return c->allowed ? 1000ull * c->used / c->allowed : 0;
}

void sql_get_activity(const struct sql *sql, const struct config_list *states, uint64_t since_ns,
	struct sql_activity *ret_activity)
{
	uint64_t now_ns = clock_mono_ns();
	struct sql_activity activity = { 0 };
	struct highest lasting = { .name = activity.targets.active };
	struct highest longest = { .name = activity.targets.longest };
	struct highest in_state = { .name = activity.targets.in_state };
	struct highest unanswered = { .name = activity.targets.unanswered };
	struct highest connections = { .name = activity.targets.connections };

	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		const struct sql_target *t = sql->targets[i];
		uint64_t unanswered_ns = is_in_session(t) ? sql_target_unanswered_ns(t, now_ns) : 0;
		uint32_t count;

		take_highest(&unanswered, t, unanswered_ns);
		activity.answers += t->answers;
		activity.present |= unanswered_ns > 0;
		/* The last answer of one that is silent would stand before what others answer. */
		if (!t->connected || !t->current->asked_ns || unanswered_ns)
			continue;
		count = count_in_state(t->current, states);
		activity.present = true;
		activity.active += t->current->active;
		activity.lasting += t->current->lasting;
		activity.in_state += count;
		take_highest(&lasting, t, t->current->lasting);
		take_highest(&longest, t, t->current->longest_ns);
		take_highest(&in_state, t, count);
		take_highest(&connections, t, connections_permille(t->current));
	}
	activity.connections_pct = (double)connections.value / 10;
	activity.longest_ns = longest.value;
	activity.unanswered_ns = unanswered.value;
	activity.is_new.active = lasting.answered_ns >= since_ns;
	activity.is_new.longest = longest.answered_ns >= since_ns;
	activity.is_new.in_state = in_state.answered_ns >= since_ns;
	activity.is_new.connections = connections.answered_ns >= since_ns;
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
	if (e.slowed_ns)
		text_addf(out, "; it answers slowly, so while idle it is asked only every %.1f s",
			(double)e.slowed_ns / (double)NSEC_PER_SEC);
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

/* Life cycle */

/* A helper keeps its password file open, which may have been replaced. */
static bool is_kept(const struct sql_target *t, const struct config *config)
{
	const struct config_sql_target *other = NULL;

	for (unsigned int i = 0; i < config->sql.targets_count; i++)
		if (strcmp(config->sql.targets[i].section, t->config.section) == 0)
			other = &config->sql.targets[i];
	if (t->detected)
		return !other && !sql_is_named(&config->sql, t->config.type, t->config.socket);
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
			sql_remove_target(sql, i - 1);
	for (unsigned int i = 0; i < sql->count; i++)
		sql_target_resume(sql->targets[i]);
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
	sql_init_look(sql);
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
		sql_remove_target(sql, sql->count - 1);
	sql_reap_orphans(sql);
	renewable_worker_done(&sql->looker);
	close_fd(sql->target_options.procfs_fd);
	free(sql);
	return NULL;
}
