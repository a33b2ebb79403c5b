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

/* Taken before the loop looks at its other sources: 2 us each with the look at /proc. */
#define FRAMES_PER_WAKE 64
/* One login at the start and one for the question that was asked meanwhile. */
#define SERVERS_MAX 2
#define BACKOFF_MAX_NS (60 * NSEC_PER_SEC)

static uint64_t or_default(uint64_t value, uint64_t standard)
{
	return value ? value : standard;
}

/* Said in the log when it is new; a detected database that refuses us is no fault of anybody. */
static void set_why(struct sql_target *t, const char *why)
{
	text_copy(t->why, sizeof(t->why), why);
	t->is_told = true;
	if (!*why || strcmp(t->said, why) == 0)
		return;
	text_copy(t->said, sizeof(t->said), why);
	log_line(t->detected ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARNING, "%s: %s%s%s",
		t->config.section, why, *t->missing ? "; right would be: " : "", t->missing);
}

/* The helper */

static void end_helper(struct sql_target *t)
{
	t->source = loop_remove(t->source);
	t->fd = close_fd(t->fd);
	t->connected = false;
	t->asked_ns = t->silent_since_ns = 0;
	if (t->pid > 0 && !t->killed) {
		kill(t->pid, SIGKILL);
		t->killed = true;
	}
}

/* A process in D state survives even SIGKILL, so it is asked for and never waited for. */
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

/* Only now: until then it was there for an incident, in which no other can be started. */
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

/* Between fork and exec: nothing that could take a lock of another thread. */
__attribute__((noreturn)) static void become_helper(const char *program, int fd, char *name)
{
	char *const argv[] = { (char[]){ "iostall" }, (char[]){ "sql-helper" }, name, NULL };
	/* Nothing of the service manager's, nor what a client library might look at. */
	char *const environment[] = { (char[]){ "LANG=C.UTF-8" }, NULL };
	sigset_t none;
	int null_fd;

	/* Ctrl-C at the terminal of `watch` ends the incident, which still has a last question. */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null_fd = open("/dev/null", O_RDWR);
	if (null_fd < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		_exit(127);
	/* dup2() of a descriptor to itself would leave it to be closed. */
	if (fd == STDIN_FILENO ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, STDIN_FILENO) < 0)
		_exit(127);
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
	/* The first datagram of a new socket always fits. */
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
	snprintf(why, sizeof(why), "its helper process cannot be started: %s", strerror(-r));
	lose_helper(t, why);
}

/* Answers */

static void take_server(struct sql_target *t, const struct sql_frame_server *f)
{
	bool is_news = !t->connected || strcmp(f->version, t->server.version) != 0;

	t->server = *f;
	t->connected = true;
	if (!is_news)
		return;
	t->said[0] = '\0';
	log_info("%s: connected to %s as %s", t->config.section, f->version, f->account);
	if (*f->missing)
		log_notice("%s: the account cannot see everything; right would be: %s",
			t->config.section, f->missing);
}

/* False for more than a helper sends. */
static bool take_session(struct sql_target *t, struct sql_frame_session *f)
{
	bool is_own_process = t->config.type == CONFIG_SQL_POSTGRESQL;

	if (f->tid && !t->server.server_pid) {
		f->tid = 0;
		text_copy(f->no_tid, sizeof(f->no_tid), "the server's process is not known");
	} else if (f->tid && !sql_thread_is_of(t->o->procfs_fd, f->tid, t->server.server_pid,
				     is_own_process)) {
		f->tid = 0;
		text_copy(f->no_tid, sizeof(f->no_tid), "no thread of the server on this host");
	}
	return sql_snapshot_add(t->building, f) == 0;
}

static void tell(const struct sql_target *t)
{
	if (t->o->answered)
		t->o->answered(t->o->userdata);
}

/* Until the next question while idle. */
static uint64_t choose_pause(struct sql_target *t, bool failed)
{
	uint64_t retry_ns = or_default(t->o->timing.retry_ns, 10 * NSEC_PER_SEC);

	if (!t->renew)
		t->backoff_ns = 0;
	if (!failed)
		return or_default(t->o->timing.idle_ns, t->interval_ns);
	if (t->renew && t->backoff_ns < retry_ns)
		t->backoff_ns = retry_ns;
	return t->renew ? t->backoff_ns : retry_ns;
}

static void take_end(struct sql_target *t, const struct sql_frame_end *f)
{
	uint64_t now_ns = clock_mono_ns();
	bool failed = f->error[0] != '\0';
	bool silent = strncmp(f->error, SQL_ERROR_SILENT, strlen(SQL_ERROR_SILENT)) == 0;
	uint64_t asked_ns = t->asked_ns;
	struct sql_snapshot *last = t->current;

	t->asked_ns = 0;
	t->renew = failed && f->renew;
	t->servers = 0;
	t->next_ns = now_ns + choose_pause(t, failed);
	text_copy(t->missing, sizeof(t->missing), f->missing);
	/* For how long is said beside it: the text would be another one each second. */
	if (!silent)
		t->silent_since_ns = 0;
	else if (!t->silent_since_ns)
		t->silent_since_ns = asked_ns;
	set_why(t, silent ? SQL_ERROR_SILENT : f->error);
	t->connected = !failed;
	if (failed) {
		tell(t);
		return;
	}
	sql_snapshot_end(t->building, f, now_ns);
	t->current = t->building;
	t->building = last;
	if (sql_snapshot_is_worse(t->current, t->worst))
		*t->worst = *t->current;
	sql_longest_take(&t->longest, t->current);
	tell(t);
}

/* False when it is none of the protocol, or has no end. */
static bool take_frame(struct sql_target *t, size_t size)
{
	int type = sql_frame_check(&t->in, size);

	if (type < 0)
		return false;
	if (type == SQL_FRAME_SERVER) {
		if (++t->servers > SERVERS_MAX)
			return false;
		take_server(t, &t->in.server);
		return true;
	}
	if (!t->asked_ns || t->in.frame.ask != t->ask)
		return false;
	if (type == SQL_FRAME_SESSION)
		return take_session(t, &t->in.session);
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
			lose_helper(t, "its helper process has ended");
			return;
		}
		if (!take_frame(t, (size_t)size)) {
			lose_helper(t, "its helper process sent what is no answer");
			return;
		}
	}
}

/* Questions */

void sql_target_ask(struct sql_target *t, uint64_t now_ns)
{
	struct sql_frame ask = { .type = SQL_FRAME_ASK, .size = sizeof(ask) };

	if (t->fd < 0 || t->asked_ns)
		return;
	ask.ask = ++t->ask;
	t->asked_ns = now_ns;
	sql_snapshot_begin(t->building, now_ns);
	/* What a full socket does not take is never answered, which is what will be said. */
	if (send(t->fd, &ask, sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		lose_helper(t, "its helper process has ended");
}

uint64_t sql_target_unanswered_ns(const struct sql_target *t, uint64_t now_ns)
{
	uint64_t late_ns = or_default(t->o->timing.late_ns, 2 * NSEC_PER_SEC);

	if (t->silent_since_ns)
		return now_ns - t->silent_since_ns;
	if (!t->asked_ns || now_ns < t->asked_ns + late_ns)
		return 0;
	return now_ns - t->asked_ns;
}

void sql_target_begin_incident(struct sql_target *t, uint64_t now_ns)
{
	sql_snapshot_begin(t->worst, 0);
	sql_longest_begin(&t->longest, now_ns);
}

void sql_target_tick(struct sql_target *t, uint64_t now_ns, bool armed)
{
	uint64_t kill_ns = or_default(t->o->timing.kill_ns, 30 * NSEC_PER_SEC);

	if (!reap(t) && t->killed)
		return;
	if (t->pid == 0) {
		if (!armed && now_ns >= t->start_ns)
			try_to_start(t, now_ns);
	} else if (t->asked_ns) {
		/* While an incident is open no other could be started. */
		if (!armed && now_ns - t->asked_ns > kill_ns)
			lose_helper(t, "its helper process did not answer");
	} else if (t->renew && !armed && now_ns >= t->next_ns) {
		renew_helper(t, now_ns);
	} else if (armed || now_ns >= t->next_ns) {
		sql_target_ask(t, now_ns);
	}
}

/* Making and freeing */

static void fill_setup(struct sql_target *t, const struct config_sql *all)
{
	static const uint32_t types[] = {
		[CONFIG_SQL_MARIADB] = SQL_TYPE_MARIADB,
		[CONFIG_SQL_MYSQL] = SQL_TYPE_MYSQL,
		[CONFIG_SQL_POSTGRESQL] = SQL_TYPE_POSTGRESQL,
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
	text_copy(s->run_as, sizeof(s->run_as), c->run_as);
}

int sql_target_new(const struct sql_target_options *options, const struct config_sql_target *config,
	const struct config_sql *all, struct sql_target **ret_target)
{
	struct sql_target *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->o = options;
	t->fd = -1;
	t->config = *config;
	t->name = t->config.section + strlen(CONFIG_SQL_SECTION);
	text_copy(t->why, sizeof(t->why), "not connected yet");
	t->building = calloc(1, sizeof(*t->building));
	t->current = calloc(1, sizeof(*t->current));
	t->worst = calloc(1, sizeof(*t->worst));
	if (!t->building || !t->current || !t->worst) {
		sql_target_free(t);
		return -ENOMEM;
	}
	t->interval_ns = all->interval_ns;
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
	free(t->building);
	free(t->current);
	free(t->worst);
	free(t);
	return pid;
}
