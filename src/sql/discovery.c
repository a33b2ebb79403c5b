/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which servers run on this host, and which targets are the same server. */
#include "sql/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

/* The list of watched processes is made anew every 10 s, too. */
#define DETECT_INTERVAL_NS (10 * NSEC_PER_SEC)
#define THREAD_STACK_BYTES (16 * 1024)

/* Servers that are found although nobody configured them. */
static const struct default_server {
	const char *comm;
	const char *section;
	enum config_sql_type type;
	enum record_server server;
	const char *socket; /* below /run */
} default_servers[] = {
#define DATABASE(NAME, name, comm, socket, ...)                                                    \
	{ comm, "sql." #name, CONFIG_SQL_##NAME, RECORD_SERVER_##name, socket },
#include "sql/databases.def"
#undef DATABASE
};

bool sql_find_default_server(const char *comm, enum record_server *ret_server,
	const char **ret_socket)
{
	for (size_t i = 0; i < ARRAY_SIZE(default_servers); i++) {
		if (strcmp(default_servers[i].comm, comm) != 0)
			continue;
		*ret_server = default_servers[i].server;
		*ret_socket = default_servers[i].socket;
		return true;
	}
	return false;
}

/* /var/run is a link to /run. Nothing is looked up: a path may lead to a disk that hangs. */
static const char *skip_var(const char *path)
{
	return strncmp(path, "/var/run/", 9) == 0 ? path + 4 : path;
}

/* Also "db1" and "db1.example" are the same. */
static bool is_own_name(const char *host)
{
	char own[HOST_NAME_MAX + 1] = "";
	size_t len, host_len = strcspn(host, ".");

	if (gethostname(own, sizeof(own) - 1) < 0)
		return false;
	len = strcspn(own, ".");
	if (len == 0 || len != host_len || strncasecmp(host, own, len) != 0)
		return false;
	return !host[len] || !own[len] || strcasecmp(host, own) == 0;
}

/*
 * Only a host that is surely this one: another has a server of its own. Other addresses of this
 * host are recognised by what the server says, see sql_stop_duplicates().
 */
static bool is_this_host(const char *host)
{
	return is_own_name(host) || strcmp(host, "localhost") == 0 ||
		strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* MariaDB and MySQL share a socket, so each name means the other, too. */
static bool is_same_kind(enum config_sql_type a, enum config_sql_type b)
{
	return (a == CONFIG_SQL_POSTGRESQL) == (b == CONFIG_SQL_POSTGRESQL);
}

/* A section with `enabled = no` names its server as well: it is not to be asked. */
static bool names_server(const struct config_sql_target *target, enum config_sql_type type,
	const char *path)
{
	if (target->socket[0])
		return strcmp(skip_var(target->socket), skip_var(path)) == 0;
	return is_same_kind(target->type, type) && (!target->host[0] || is_this_host(target->host));
}

bool sql_is_named(const struct config_sql *config, enum config_sql_type type, const char *path)
{
	for (unsigned int i = 0; i < config->targets_count; i++)
		if (names_server(&config->targets[i], type, path))
			return true;
	return false;
}

static bool is_running(const struct sql *sql, const char *comm)
{
	unsigned int count;
	const struct watch_process *processes = watch_processes(sql->watch, &count);

	for (unsigned int i = 0; i < count; i++)
		if (strcmp(processes[i].comm, comm) == 0)
			return true;
	return false;
}

static bool has_detected(const struct sql *sql, const char *path)
{
	for (unsigned int i = 0; i < sql->count; i++)
		if (sql->targets[i]->detected && strcmp(sql->targets[i]->config.socket, path) == 0)
			return true;
	return false;
}

/* A section of that name may be about another server, and may be disabled. */
static bool is_section(const struct config_sql *config, const char *section)
{
	for (unsigned int i = 0; i < config->targets_count; i++)
		if (strcmp(config->targets[i].section, section) == 0)
			return true;
	return false;
}

/*
 * Looks whether the sockets are there, on a thread that may hang: an account of a database owns
 * their directories, and whoever reads one of these may keep all others from looking up a name.
 */
struct look {
	struct {
		char path[sizeof(((struct config_sql_target *)0)->socket)]; /* "": not asked */
		bool is_socket;
	} servers[ARRAY_SIZE(default_servers)];
};

/* On the thread. */
static void run_look(void *state, const int *fds)
{
	struct look *look = state;

	(void)fds;
	for (size_t i = 0; i < ARRAY_SIZE(default_servers); i++) {
		struct stat st;

		/* A link may lead to a disk that hangs, and the database may have made one. */
		look->servers[i].is_socket = *look->servers[i].path &&
			lstat(look->servers[i].path, &st) == 0 && S_ISSOCK(st.st_mode);
	}
}

static const struct renewable_worker_kind look_kind = {
	.run = run_look,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct look),
	/* Another thread would hang, too. */
	.limit_ns = UINT64_MAX,
};

void sql_init_look(struct sql *sql)
{
	renewable_worker_init_resting(&sql->looker, &look_kind, -1);
}

static bool is_wanted(const struct sql *sql, const struct default_server *server, const char *path)
{
	return sql->count < CONFIG_SQL_TARGETS_MAX && !has_detected(sql, path) &&
		is_running(sql, server->comm) && !sql_is_named(&sql->config, server->type, path);
}

static void start_look(struct sql *sql)
{
	const uint64_t now_ns = clock_mono_ns();
	struct look wanted = { 0 };
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(default_servers); i++) {
		char *path = wanted.servers[i].path;
		int n = snprintf(path, sizeof(wanted.servers[i].path), "%s/%s", sql->run_dir,
			default_servers[i].socket);

		if (n >= (int)sizeof(wanted.servers[i].path) ||
			!is_wanted(sql, &default_servers[i], path))
			*path = '\0';
		any |= *path != '\0';
	}
	if (!any || (!sql->looker.thread && renewable_worker_renew(&sql->looker, now_ns) < 0))
		return;
	*(struct look *)sql->looker.state = wanted;
	sql->is_looking = true;
	sql->look_logged = false;
	renewable_worker_start(&sql->looker, now_ns);
}

static void add_detected(struct sql *sql, const struct default_server *server, const char *path)
{
	struct config_sql_target target;
	char section[CONFIG_SECTION_SIZE];
	int r;

	snprintf(section, sizeof(section), "%s%s", server->section,
		is_section(&sql->config, server->section) ? "-found" : "");
	r = config_sql_default_target(section, &target);
	if (r == 0) {
		target.type = server->type;
		text_copy(target.socket, sizeof(target.socket), path);
		r = sql_add_target(sql, &target, true);
	}
	if (r == 0)
		log_info("%s runs, has the socket %s, and no section [sql.NAME] names it: trying "
			 "to log in as %s",
			server->comm, path, target.user);
	else
		log_warning("%s cannot be asked: %s", section, strerror(-r));
}

/* The configuration and the processes may have changed meanwhile. */
static void take_look(struct sql *sql)
{
	const struct look *look = sql->looker.state;

	sql->is_looking = false;
	for (size_t i = 0; i < ARRAY_SIZE(default_servers); i++)
		if (look->servers[i].is_socket &&
			is_wanted(sql, &default_servers[i], look->servers[i].path))
			add_detected(sql, &default_servers[i], look->servers[i].path);
}

bool sql_is_looking(const struct sql *sql)
{
	return sql->is_looking;
}

/* One server that is asked in two ways */

/* With socket activation, process 1 is the one that listens. */
static bool is_same_server(const struct sql_target *a, const struct sql_target *b)
{
	if (!a->connected || !b->connected || !is_same_kind(a->config.type, b->config.type))
		return false;
	/* What a server says of itself is believed only where the kernel does not say more. */
	if (a->server.server_pid > 1 && b->server.server_pid > 1)
		return a->server.server_pid == b->server.server_pid;
	return a->server.identity && a->server.identity == b->server.identity;
}

/* Over a local socket threads are known, and the kernel says which process answers. */
static unsigned int rank(const struct sql_target *t)
{
	return (t->server.server_pid ? 2U : 0U) + (t->detected ? 0U : 1U);
}

void sql_stop_duplicates(struct sql *sql)
{
	for (unsigned int i = 0; i < sql->count; i++) {
		for (unsigned int j = i + 1; j < sql->count; j++) {
			struct sql_target *a = sql->targets[i], *b = sql->targets[j];

			if (!is_same_server(a, b))
				continue;
			if (rank(b) > rank(a))
				sql_target_stop(a, b->config.section);
			else
				sql_target_stop(b, a->config.section);
		}
	}
}

static bool is_connected(const struct sql *sql, const char *section)
{
	for (unsigned int i = 0; i < sql->count; i++)
		if (strcmp(sql->targets[i]->config.section, section) == 0)
			return sql->targets[i]->connected;
	return false;
}

/* The other way to the server may have ended. */
static void resume_duplicates(struct sql *sql)
{
	for (unsigned int i = 0; i < sql->count; i++)
		if (sql->targets[i]->same_as[0] && !is_connected(sql, sql->targets[i]->same_as))
			sql_target_resume(sql->targets[i]);
}

void sql_look_for_servers(struct sql *sql, uint64_t now_ns)
{
	const bool is_busy = renewable_worker_is_busy(&sql->looker);

	if (!sql->config.enabled)
		return;
	if (sql->is_looking && !is_busy)
		take_look(sql);
	if (now_ns < sql->detect_ns)
		return;
	sql->detect_ns = now_ns + DETECT_INTERVAL_NS;
	resume_duplicates(sql);
	if (!is_busy && sql->watch)
		start_look(sql);
	if (is_busy && !sql->look_logged) {
		log_warning("looking for the sockets of database servers takes more than %d s: "
			    "those that no section [sql.NAME] names are not found meanwhile",
			(int)(DETECT_INTERVAL_NS / NSEC_PER_SEC));
		sql->look_logged = true;
	}
}
