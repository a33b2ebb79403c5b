/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sql/threads.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/*
 * Frames handled before the loop looks at its other sources; each takes 2 us, with a look at /proc.
 */
#define FRAMES_PER_WAKE 64
/* The helper logs in at its start, and perhaps again for the question that was asked meanwhile. */
#define SERVERS_MAX 2
#define NAMES_MAX (2 * SQL_RELATIONS_MAX)
#define BACKOFF_MAX_NS (60 * NSEC_PER_SEC)
/*
 * While idle a database spends at most a thousandth of a CPU on us, and at most a hundredth while
 * an answer is suspicious; but it is always asked once a minute.
 */
#define IDLE_COST_TIMES 1000
#define SUSPICIOUS_COST_TIMES 100
#define COST_STEP_NS (100 * NSEC_PER_USEC)
#define PAUSE_MAX_NS (60 * NSEC_PER_SEC)
/* From so many statements at once they may be a pile-up that begins: it is asked twice as often. */
#define MANY_ACTIVE 5
/* Questions are asked once a second; so much earlier than planned is not too early. */
#define EARLY_NS (125 * NSEC_PER_MSEC)

static uint64_t or_default(uint64_t value, uint64_t standard)
{
	return value ? value : standard;
}

/* Logs a new reason. It is no warning when nobody configured the database that refuses us. */
static void set_why(struct sql_target *t, const char *why)
{
	text_copy(t->why, sizeof(t->why), why);
	t->is_known = true;
	if (!*why || strcmp(t->logged, why) == 0)
		return;
	text_copy(t->logged, sizeof(t->logged), why);
	log_line(t->detected ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARNING, "%s: %s%s%s",
		t->config.section, why, *t->missing ? "; to fix this: " : "", t->missing);
}

/* The helper */

static void end_helper(struct sql_target *t)
{
	t->source = loop_remove(t->source);
	t->fd = close_fd(t->fd);
	t->connected = false;
	t->asked_ns = t->unresponsive_since_ns = 0;
	if (t->pid > 0 && !t->killed) {
		kill(t->pid, SIGKILL);
		t->killed = true;
	}
}

/* A process in D state does not end even after SIGKILL, so this never waits for it. */
static bool reap(struct sql_target *t)
{
	if (t->pid > 0 && t->killed && waitpid(t->pid, NULL, WNOHANG) == 0)
		return false;
	if (t->killed)
		t->pid = 0;
	t->killed = false;
	return t->pid == 0;
}

static uint64_t double_backoff(uint64_t backoff_ns)
{
	return backoff_ns * 2 < BACKOFF_MAX_NS ? backoff_ns * 2 : BACKOFF_MAX_NS;
}

/*
 * Not before it is due: in an incident the old helper is better than none, as no other can be
 * started.
 */
static void renew_helper(struct sql_target *t, uint64_t now_ns)
{
	end_helper(t);
	t->renew = false;
	t->start_ns = now_ns;
	t->backoff_ns = double_backoff(t->backoff_ns);
}

static void lose_helper(struct sql_target *t, const char *why)
{
	uint64_t first_ns = or_default(t->o->timing.backoff_ns, NSEC_PER_SEC);

	if (t->backoff_ns < first_ns)
		t->backoff_ns = first_ns;
	t->start_ns = clock_mono_ns() + t->backoff_ns;
	t->backoff_ns = double_backoff(t->backoff_ns);
	end_helper(t);
	t->renew = false;
	t->missing[0] = '\0';
	set_why(t, why);
	reap(t);
}

/* Runs between fork and exec, so it calls nothing that takes a lock another thread may hold. */
__attribute__((noreturn)) static void become_helper(const char *program, int fd, char *name)
{
	char *const argv[] = { (char[]){ "iostall" }, (char[]){ "sql-helper" }, name, NULL };
	/* No variables of the service manager, and none that a client library would read. */
	char *const environment[] = { (char[]){ "LANG=C.UTF-8" }, NULL };
	sigset_t none;
	int null_fd;

	/* Ctrl-C in `watch` must not end the helper: the incident still asks a last question. */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null_fd = open("/dev/null", O_RDWR);
	if (null_fd < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		_exit(127);
	/* dup2() of a descriptor to itself does not clear FD_CLOEXEC. */
	if (fd == STDIN_FILENO ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, STDIN_FILENO) < 0)
		_exit(127);
	/* If its file is on a disk that hangs, it keeps no lock of the daemon meanwhile. */
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execve(program, argv, environment);
	_exit(127);
}

static void on_frames(void *userdata, uint64_t events);

static int start_helper(struct sql_target *t)
{
	const char *program = t->o->helper ? t->o->helper : "/proc/self/exe";
	_cleanup_close_ int ours = -1, theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = loop_add_fd(t->o->loop, ours, EPOLLIN, on_frames, t, &t->source);
	if (r < 0)
		return r;
	t->pid = fork();
	if (t->pid == 0)
		become_helper(program, theirs, t->config.section + strlen(CONFIG_SQL_SECTION));
	if (t->pid < 0) {
		r = -errno;
		t->pid = 0;
		t->source = loop_remove(t->source);
		return r;
	}
	t->fd = TAKE_FD(ours);
	/* The first datagram always fits into the buffer of a new socket. */
	if (send(t->fd, &t->setup, sizeof(t->setup), MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

static void try_to_start(struct sql_target *t, uint64_t now_ns)
{
	char why[128];
	int r;

	r = start_helper(t);
	t->next_ns = now_ns;
	t->servers = 0;
	if (r == 0)
		return;
	snprintf(why, sizeof(why), "its helper process could not be started: %s", strerror(-r));
	lose_helper(t, why);
}

/* Answers */

static void take_server(struct sql_target *t, const struct sql_frame_server *f)
{
	bool is_news = !t->connected || strcmp(f->version, t->server.version) != 0;

	if (f->server_pid != t->server.server_pid) {
		t->has_own_ids = sql_has_own_ids(t->o->procfs_fd, f->server_pid);
		/* Their ids may be given to anything else by now. */
		memset(t->roles, 0, sizeof(t->roles));
	}
	t->server = *f;
	t->connected = true;
	if (!is_news)
		return;
	t->logged[0] = '\0';
	log_info("%s: connected to %s as %s", t->config.section, f->version, f->account);
	if (*f->missing)
		log_notice("%s: the account cannot see all sessions and threads; to fix this: %s",
			t->config.section, f->missing);
}

/* What a thread of the server is for: as PostgreSQL says it, or the name of MariaDB's command. */
static const char *role_of(const char *command)
{
	if (strcmp(command, "Slave_SQL") == 0 || strcmp(command, "Slave_worker") == 0)
		return "replica applier";
	if (strcmp(command, "Sleep") == 0)
		return "cluster applier";
	return strcmp(command, "Slave_IO") == 0 ? "replica receiver" : command;
}

/*
 * Keeps the role of a thread while it works, since it is in no answer when it does not. A client's
 * session may have the number of a process that has ended.
 */
static void note_role(struct sql_target *t, const struct sql_frame_session *f)
{
	struct sql_role role = { .tid = f->background ? f->tid : 0 };
	unsigned int at = 0;

	if (!f->tid)
		return;
	while (at < SQL_ROLES_MAX - 1 && t->roles[at].tid && t->roles[at].tid != f->tid)
		at++;
	if (!role.tid) {
		if (t->roles[at].tid == f->tid)
			t->roles[at] = (struct sql_role){ .tid = -1 };
		return;
	}
	text_copy(role.name, sizeof(role.name), role_of(f->command));
	memmove(&t->roles[1], &t->roles[0], at * sizeof(role));
	t->roles[0] = role;
}

static bool is_of_server(const struct sql_target *t, int32_t tid)
{
	return sql_thread_is_of(t->o->procfs_fd, tid, t->server.server_pid,
		t->sessions_are_processes);
}

/* A worker that has ended in the incident keeps its role, unless another thread has its id now. */
const char *sql_target_find_role(const struct sql_target *t, int32_t tid)
{
	for (unsigned int i = 0; tid > 0 && i < SQL_ROLES_MAX; i++)
		if (t->roles[i].tid == tid)
			return is_of_server(t, tid) || !sql_thread_exists(t->o->procfs_fd, tid)
				? t->roles[i].name
				: "";
	return "";
}

static void forget_ended_roles(struct sql_target *t)
{
	for (unsigned int i = 0; i < SQL_ROLES_MAX; i++)
		if (t->roles[i].tid > 0 && !is_of_server(t, t->roles[i].tid))
			t->roles[i] = (struct sql_role){ .tid = -1 };
}

/* False when a helper sends more than it should. */
static bool take_session(struct sql_target *t, struct sql_frame_session *f)
{
	if (f->tid && (!t->server.server_pid || t->has_own_ids)) {
		f->tid = 0;
		text_copy(f->no_tid, sizeof(f->no_tid),
			t->has_own_ids ? "the server has thread ids of its own, in a container"
				       : "the server process is unknown (TCP, or in a container)");
	} else if (f->tid && !is_of_server(t, f->tid)) {
		f->tid = 0;
		text_copy(f->no_tid, sizeof(f->no_tid), "no thread of the server on this host");
	}
	f->worker |= f->leader_pid > 0;
	/* It names a process of this host as much as tid does. */
	if (t->has_own_ids || !is_of_server(t, f->leader_pid))
		f->leader_pid = 0;
	note_role(t, f);
	return sql_snapshot_add(t->building, f) == 0;
}

static void tell(const struct sql_target *t)
{
	if (t->o->answered)
		t->o->answered(t->o->userdata);
}

/*
 * Answers also take long because the host is busy, and that is when the database must be asked: the
 * estimate falls at once, and rises slowly.
 */
uint64_t sql_target_estimate_cost(uint64_t cost_ns, uint64_t server_ns)
{
	uint64_t most_ns = cost_ns + cost_ns / 4 + COST_STEP_NS;

	return server_ns < most_ns ? server_ns : most_ns;
}

uint64_t sql_target_choose_pause(uint64_t interval_ns, uint64_t cost_ns, uint32_t active)
{
	bool is_often = active >= MANY_ACTIVE && interval_ns >= 2 * NSEC_PER_SEC;
	uint64_t pause_ns = is_often ? interval_ns / 2 : interval_ns;
	uint64_t max_ns = interval_ns > PAUSE_MAX_NS ? interval_ns : PAUSE_MAX_NS;

	if (cost_ns > pause_ns / IDLE_COST_TIMES)
		pause_ns = cost_ns < max_ns / IDLE_COST_TIMES ? cost_ns * IDLE_COST_TIMES : max_ns;
	return pause_ns;
}

/* How long after a question the next one follows while no incident is open. */
static uint64_t choose_pause(struct sql_target *t, bool failed)
{
	uint64_t retry_ns = or_default(t->o->timing.retry_ns, 10 * NSEC_PER_SEC);

	if (!t->renew)
		t->backoff_ns = 0;
	if (!failed && t->o->timing.idle_ns)
		return t->o->timing.idle_ns;
	if (!failed)
		return sql_target_choose_pause(t->interval_ns, t->cost_ns, t->current->active) -
			EARLY_NS;
	if (t->renew && t->backoff_ns < retry_ns)
		t->backoff_ns = retry_ns;
	return t->renew ? t->backoff_ns : retry_ns;
}

static void take_end(struct sql_target *t, const struct sql_frame_end *f)
{
	uint64_t now_ns = clock_mono_ns();
	bool failed = f->error[0] != '\0';
	bool unresponsive =
		strncmp(f->error, SQL_ERROR_UNRESPONSIVE, strlen(SQL_ERROR_UNRESPONSIVE)) == 0;
	uint64_t asked_ns = t->asked_ns, pause_ns;
	struct sql_snapshot *last = t->current;

	t->asked_ns = 0;
	t->renew = failed && f->renew;
	t->servers = t->names = 0;
	text_copy(t->missing, sizeof(t->missing), f->missing);
	/* Without the time that the helper adds, or the text would change each second. */
	if (!unresponsive)
		t->unresponsive_since_ns = 0;
	else if (!t->unresponsive_since_ns)
		t->unresponsive_since_ns = asked_ns;
	set_why(t, unresponsive ? SQL_ERROR_UNRESPONSIVE : f->error);
	t->connected = !failed;
	if (failed) {
		pause_ns = choose_pause(t, failed);
		/* It may answer a moment later, and until it is asked it counts as silent. */
		if (unresponsive && pause_ns > NSEC_PER_SEC)
			pause_ns = NSEC_PER_SEC;
		t->next_ns = now_ns + pause_ns;
		tell(t);
		return;
	}
	sql_snapshot_end(t->building, f, now_ns);
	sql_snapshot_note_waits(t->building, t->current);
	/*
	 * What each thread has moved belongs to the statement that it runs now. The probes tell
	 * only what it moved in the whole incident.
	 */
	if (t->armed)
		sql_moved_note(&t->moved, t->building);
	t->invalid += t->building->invalid;
	t->cost_ns = sql_target_estimate_cost(t->cost_ns, t->building->server_ns);
	t->answers++;
	t->answered_ns = clock_mono_ns();
	t->current = t->building;
	t->building = last;
	t->next_ns = asked_ns + choose_pause(t, failed);
	sql_statements_take(&t->statements, t->current);
	sql_io_workers_take(&t->io_workers, t->current);
	tell(t);
}

static bool take_name(struct sql_target *t, int type)
{
	if (!t->relations || ++t->names > NAMES_MAX)
		return false;
	if (type == SQL_FRAME_RELATION)
		sql_relations_add(t->relations, &t->in.relation);
	else
		sql_relations_add_directory(t->relations, &t->in.directory);
	return true;
}

/* False when the frame breaks the protocol. */
static bool take_frame(struct sql_target *t, size_t size)
{
	int type = sql_frame_check(&t->in, size);

	if (type < 0)
		return false;
	t->building->invalid += sql_frame_correct(&t->in);
	if (type == SQL_FRAME_SERVER) {
		if (++t->servers > SERVERS_MAX)
			return false;
		take_server(t, &t->in.server);
		return true;
	}
	if (type == SQL_FRAME_RELATION || type == SQL_FRAME_DIRECTORY)
		return take_name(t, type);
	if (!t->asked_ns || t->in.frame.ask != t->ask)
		return false;
	if (type == SQL_FRAME_SESSION)
		return take_session(t, &t->in.session);
	if (type == SQL_FRAME_LOCK) {
		/* Of a session that had no room, nothing is to be known. */
		(void)sql_snapshot_add_lock(t->building, &t->in.lock);
		return ++t->locks <= SQL_LOCKS_MAX;
	}
	take_end(t, &t->in.end);
	return true;
}

static void on_frames(void *userdata, uint64_t events)
{
	struct sql_target *t = userdata;

	(void)events;
	for (unsigned int i = 0; i < FRAMES_PER_WAKE; i++) {
		ssize_t size = recv(t->fd, &t->in, sizeof(t->in), MSG_DONTWAIT | MSG_TRUNC);

		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (size <= 0) {
			lose_helper(t, "its helper process has ended; it is started again");
			return;
		}
		if (!take_frame(t, (size_t)size)) {
			lose_helper(t,
				"its helper process sent an invalid message; it is started again");
			return;
		}
	}
}

/* Questions */

static void ask_helper(struct sql_target *t, uint64_t now_ns, enum sql_frame_type type)
{
	struct sql_frame ask = { .type = type, .size = sizeof(ask) };

	if (t->fd < 0 || t->asked_ns)
		return;
	ask.ask = ++t->ask;
	t->asked_ns = now_ns;
	t->locks = 0;
	sql_snapshot_begin(t->building, now_ns);
	if (t->armed)
		sql_moved_ask(&t->moved, t->current, t->server.server_pid,
			t->sessions_are_processes, now_ns);
	/* If the socket is full, the question is lost; it is then reported as unanswered. */
	if (send(t->fd, &ask, sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		lose_helper(t, "its helper process has ended; it is started again");
}

void sql_target_ask(struct sql_target *t, uint64_t now_ns)
{
	ask_helper(t, now_ns, SQL_FRAME_ASK);
}

void sql_target_look_again(struct sql_target *t, uint64_t now_ns)
{
	if (now_ns >= t->current->asked_ns + t->cost_ns * SUSPICIOUS_COST_TIMES)
		ask_helper(t, now_ns, SQL_FRAME_GLANCE);
}

uint64_t sql_target_unanswered_ns(const struct sql_target *t, uint64_t now_ns)
{
	uint64_t late_ns = or_default(t->o->timing.late_ns, 2 * NSEC_PER_SEC);

	if (t->unresponsive_since_ns)
		return now_ns - t->unresponsive_since_ns;
	if (!t->asked_ns || now_ns < t->asked_ns + late_ns)
		return 0;
	return now_ns - t->asked_ns;
}

void sql_target_begin_incident(struct sql_target *t, uint64_t now_ns)
{
	sql_statements_begin(&t->statements, now_ns);
	sql_io_workers_begin(&t->io_workers);
	forget_ended_roles(t);
	t->invalid = 0;
	t->armed = true;
	sql_moved_forget(&t->moved);
}

void sql_target_stop(struct sql_target *t, const char *same_as)
{
	char why[64 + CONFIG_SECTION_SIZE];

	text_copy(t->same_as, sizeof(t->same_as), same_as);
	end_helper(t);
	sql_snapshot_begin(t->current, 0);
	t->missing[0] = '\0';
	snprintf(why, sizeof(why), "it is the same server as %s, and asked there", same_as);
	set_why(t, why);
}

void sql_target_resume(struct sql_target *t)
{
	if (!t->same_as[0])
		return;
	t->same_as[0] = '\0';
	t->start_ns = 0;
}

void sql_target_tick(struct sql_target *t, uint64_t now_ns, bool armed)
{
	uint64_t kill_ns = or_default(t->o->timing.kill_ns, 30 * NSEC_PER_SEC);

	t->armed = armed;
	if (!armed)
		sql_moved_replace_hung(&t->moved, now_ns);
	if ((!reap(t) && t->killed) || t->same_as[0])
		return;
	if (t->pid == 0) {
		if (!armed && now_ns >= t->start_ns)
			try_to_start(t, now_ns);
	} else if (t->asked_ns) {
		/* While an incident is open, no other helper could be started. */
		if (!armed && now_ns - t->asked_ns > kill_ns)
			lose_helper(t, "its helper process did not answer; it is started again");
	} else if (t->renew && !armed && now_ns >= t->next_ns) {
		renew_helper(t, now_ns);
	} else if (armed || now_ns >= t->next_ns) {
		ask_helper(t, now_ns, armed ? SQL_FRAME_ASK : SQL_FRAME_GLANCE);
	}
}

/* Life cycle */

static bool sessions_are_processes(enum config_sql_type type)
{
	static const bool processes[] = {
#define THREADS false
#define PROCESSES true
#define DATABASE(NAME, name, comm, socket, sessions) [CONFIG_SQL_##NAME] = sessions,
#include "sql/databases.def"
#undef DATABASE
#undef THREADS
#undef PROCESSES
	};

	return processes[type];
}

static void fill_setup(struct sql_target *t, const struct config_sql *all)
{
	static const uint32_t types[] = {
#define DATABASE(NAME, name, ...) [CONFIG_SQL_##NAME] = SQL_TYPE_##NAME,
#include "sql/databases.def"
#undef DATABASE
	};
	static const uint32_t modes[] = {
		[CONFIG_SQL_TEXT_REDACTED] = SQL_TEXT_REDACTED,
		[CONFIG_SQL_TEXT_FULL] = SQL_TEXT_FULL,
		[CONFIG_SQL_TEXT_OFF] = SQL_TEXT_OFF,
	};
	const struct config_sql_target *c = &t->config;
	struct sql_frame_setup *s = &t->setup;

	s->frame = (struct sql_frame){ .type = SQL_FRAME_SETUP, .size = sizeof(*s) };
	s->type = types[c->type];
	s->text_mode = modes[all->text];
	s->text_bytes = (uint32_t)all->text_bytes;
	s->port = (uint32_t)c->port;
	text_copy(s->name, sizeof(s->name), t->name);
	text_copy(s->socket, sizeof(s->socket), c->socket);
	text_copy(s->host, sizeof(s->host), c->host);
	text_copy(s->user, sizeof(s->user), c->user);
	text_copy(s->password_file, sizeof(s->password_file), c->password_file);
	text_copy(s->option_file, sizeof(s->option_file), c->option_file);
	s->tls = c->tls == CONFIG_SQL_TLS_VERIFY;
	text_copy(s->server_user, sizeof(s->server_user), c->server_user);
	text_copy(s->tls_ca, sizeof(s->tls_ca), c->tls_ca);
	text_copy(s->run_as, sizeof(s->run_as), c->run_as);
}

int sql_target_new(const struct sql_target_options *options, const struct config_sql_target *config,
	const struct config_sql *all, struct sql_target **ret_target)
{
	struct sql_target *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->o = options;
	t->fd = -1;
	t->config = *config;
	t->name = t->config.section + strlen(CONFIG_SQL_SECTION);
	text_copy(t->why, sizeof(t->why), "not connected yet");
	t->building = calloc(1, sizeof(*t->building));
	t->current = calloc(1, sizeof(*t->current));
	if (!t->building || !t->current) {
		sql_target_free(t);
		return -ENOMEM;
	}
	r = sql_moved_init(&t->moved, options->procfs_fd);
	if (r < 0) {
		sql_target_free(t);
		return r;
	}
	t->interval_ns = all->interval_ns;
	t->sessions_are_processes = sessions_are_processes(t->config.type);
	if (t->config.type == CONFIG_SQL_POSTGRESQL &&
		!(t->relations = calloc(1, sizeof(*t->relations)))) {
		sql_target_free(t);
		return -ENOMEM;
	}
	fill_setup(t, all);
	*ret_target = t;
	return 0;
}

pid_t sql_target_free(struct sql_target *t)
{
	pid_t pid;

	if (!t)
		return 0;
	end_helper(t);
	pid = reap(t) ? 0 : t->pid;
	sql_moved_done(&t->moved);
	free(t->building);
	free(t->current);
	free(t->relations);
	free(t);
	return pid;
}
