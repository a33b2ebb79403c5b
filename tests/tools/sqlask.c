/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A database helper without a daemon: starts one, asks it, prints what it answers as JSON lines.
 *
 * usage: sqlask IOSTALL KEY=VALUE...
 *
 * Keys: type text text_bytes tls server_user tls_ca port socket host user database password_file
 * option_file run_as. Each line of standard input is a command:
 *   ask MS      one question, and all frames until its end or until MS have passed without one
 *   glance MS   the same with the question of an idle daemon
 *   wait MS     the same without a question
 * The first line printed has the pid of the helper, the last one its exit status.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sql/protocol.h"
#include "util/text.h"

union frame {
	struct sql_frame head;
	struct sql_frame_server server;
	struct sql_frame_session session;
	struct sql_frame_lock lock;
	struct sql_frame_relation relation;
	struct sql_frame_directory directory;
	struct sql_frame_end end;
};

static void __attribute__((noreturn)) usage(const char *what)
{
	fprintf(stderr, "sqlask: %s; usage: sqlask IOSTALL KEY=VALUE...\n", what);
	exit(2);
}

static uint32_t number_of(const char *value, const char *const *names, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(value, names[i]) == 0)
			return i + 1;
	usage(value);
}

static void set_number(struct sql_frame_setup *s, const char *key, const char *value)
{
	static const char *const types[] = { "mariadb", "mysql", "postgresql" };
	static const char *const texts[] = { "redacted", "full", "off" };

	if (strcmp(key, "type") == 0)
		s->type = number_of(value, types, 3);
	else if (strcmp(key, "text") == 0)
		s->text_mode = number_of(value, texts, 3);
	else if (strcmp(key, "text_bytes") == 0)
		s->text_bytes = (uint32_t)atoi(value);
	else if (strcmp(key, "tls") == 0)
		s->tls = strcmp(value, "off") != 0;
	else if (strcmp(key, "port") == 0)
		s->port = (uint32_t)atoi(value);
	else
		usage(key);
}

static void set(struct sql_frame_setup *s, char *setting)
{
	char *value = strchr(setting, '=');
	const struct {
		const char *key;
		char *dst;
		size_t size;
	} texts[] = {
		{ "socket", s->socket, sizeof(s->socket) },
		{ "host", s->host, sizeof(s->host) },
		{ "user", s->user, sizeof(s->user) },
		{ "database", s->database, sizeof(s->database) },
		{ "password_file", s->password_file, sizeof(s->password_file) },
		{ "option_file", s->option_file, sizeof(s->option_file) },
		{ "run_as", s->run_as, sizeof(s->run_as) },
		{ "server_user", s->server_user, sizeof(s->server_user) },
		{ "tls_ca", s->tls_ca, sizeof(s->tls_ca) },
	};

	if (!value)
		usage(setting);
	*value++ = '\0';
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(setting, texts[i].key) == 0) {
			text_copy(texts[i].dst, texts[i].size, value);
			return;
		}
	}
	set_number(s, setting, value);
}

static pid_t start(const char *iostall, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 || (pid = fork()) < 0) {
		perror("sqlask");
		exit(1);
	}
	if (pid == 0) {
		dup2(fds[1], STDIN_FILENO);
		execl(iostall, iostall, "sql-helper", "test", NULL);
		perror(iostall);
		_exit(127);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

static void add_server(struct text *out, const struct sql_frame_server *s)
{
	text_json_string(out, "type", "server");
	text_json_i64(out, "server_pid", s->server_pid);
	text_json_bool(out, "can_see_others", s->can_see_others);
	text_json_bool(out, "has_tid", s->has_tid);
	text_json_string(out, "version", s->version);
	text_json_string(out, "account", s->account);
	text_json_string(out, "missing", s->missing);
}

static void add_session(struct text *out, const struct sql_frame_session *s)
{
	text_json_string(out, "type", "session");
	text_json_u64(out, "connection_id", s->connection_id);
	text_json_u64(out, "query_id", s->query_id);
	text_json_i64(out, "tid", s->tid);
	text_json_string(out, "no_tid", s->no_tid);
	text_json_bool(out, "background", s->background);
	text_json_u64(out, "elapsed_ns", s->elapsed_ns);
	text_json_i64(out, "leader_pid", s->leader_pid);
	text_json_string(out, "user", s->user);
	text_json_string(out, "database", s->database);
	text_json_string(out, "command", s->command);
	text_json_string(out, "state", s->state);
	text_json_u64(out, "text_bytes", s->text_bytes);
	text_json_string(out, "text", s->text);
}

static void add_lock(struct text *out, const struct sql_frame_lock *l)
{
	text_json_string(out, "type", "lock");
	text_json_u64(out, "connection_id", l->connection_id);
	text_json_u64(out, "blocker_id", l->blocker_id);
	text_json_u64(out, "candidates", l->candidates);
	text_json_string(out, "object", l->object);
}

static void add_relation(struct text *out, const struct sql_frame_relation *r)
{
	text_json_string(out, "type", "relation");
	text_json_u64(out, "database", r->database);
	text_json_u64(out, "file", r->file);
	text_json_string(out, "name", r->name);
}

static void add_directory(struct text *out, const struct sql_frame_directory *d)
{
	text_json_string(out, "type", "directory");
	text_json_string(out, "path", d->path);
}

static void add_end(struct text *out, const struct sql_frame_end *e)
{
	text_json_string(out, "type", "end");
	text_json_u64(out, "left_out", e->sessions_left_out);
	text_json_u64(out, "idle", e->sessions_idle);
	text_json_u64(out, "server_ns", e->server_ns);
	text_json_string(out, "error", e->error);
	text_json_string(out, "missing", e->missing);
	text_json_bool(out, "renew", e->renew);
}

static void print_frame(const union frame *f)
{
	static char buf[64 << 10];
	struct text out = TEXT_ON(buf);

	text_reset(&out);
	text_json_open(&out, NULL, '{');
	text_json_u64(&out, "ask", f->head.ask);
	if (f->head.type == SQL_FRAME_SERVER)
		add_server(&out, &f->server);
	else if (f->head.type == SQL_FRAME_SESSION)
		add_session(&out, &f->session);
	else if (f->head.type == SQL_FRAME_LOCK)
		add_lock(&out, &f->lock);
	else if (f->head.type == SQL_FRAME_RELATION)
		add_relation(&out, &f->relation);
	else if (f->head.type == SQL_FRAME_DIRECTORY)
		add_directory(&out, &f->directory);
	else
		add_end(&out, &f->end);
	text_json_close(&out, '}');
	puts(buf);
}

/* Until an END, or until nothing has come for so long. */
static void print_frames(int fd, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	static union frame f;
	ssize_t n;

	do {
		if (poll(&pfd, 1, timeout_ms) == 0) {
			puts("{\"type\":\"silence\"}");
			return;
		}
		n = recv(fd, &f, sizeof(f), MSG_TRUNC);
		if (n <= 0) {
			puts("{\"type\":\"gone\"}");
			return;
		}
		if ((size_t)n > sizeof(f) || (size_t)n != f.head.size) {
			puts("{\"type\":\"invalid\"}");
			return;
		}
		print_frame(&f);
	} while (f.head.type != SQL_FRAME_END);
}

int main(int argc, char **argv)
{
	struct sql_frame_setup setup = { .text_mode = SQL_TEXT_REDACTED, .text_bytes = 1024 };
	struct sql_frame ask = { .size = sizeof(ask) };
	char line[64];
	pid_t pid;
	int fd, status, ms;

	if (argc < 3)
		usage("arguments are missing");
	setlinebuf(stdout);
	setup.frame = (struct sql_frame){ .type = SQL_FRAME_SETUP, .size = sizeof(setup) };
	setup.tls = 1;
	text_copy(setup.tls_ca, sizeof(setup.tls_ca), "/etc/ssl/certs/ca-certificates.crt");
	text_copy(setup.name, sizeof(setup.name), "test");
	text_copy(setup.user, sizeof(setup.user), "iostall");
	text_copy(setup.run_as, sizeof(setup.run_as), "iostall");
	for (int i = 2; i < argc; i++)
		set(&setup, argv[i]);
	pid = start(argv[1], &fd);
	printf("{\"type\":\"started\",\"pid\":%d}\n", pid);
	if (send(fd, &setup, sizeof(setup), MSG_NOSIGNAL) < 0)
		perror("sqlask: setup");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		bool is_glance = sscanf(line, "glance %d", &ms) == 1;

		if (is_glance || sscanf(line, "ask %d", &ms) == 1) {
			ask.type = is_glance ? SQL_FRAME_GLANCE : SQL_FRAME_ASK;
			ask.ask++;
			if (send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) < 0)
				perror("sqlask: ask");
		} else if (sscanf(line, "wait %d", &ms) != 1) {
			usage(line);
		}
		print_frames(fd, ms);
	}
	close(fd);
	waitpid(pid, &status, 0);
	printf("{\"type\":\"exit\",\"status\":%d}\n", status);
	return 0;
}
