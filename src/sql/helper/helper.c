/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sql/helper/answer.h"
#include "sql/helper/driver.h"
#include "sql/helper/kind.h"
#include "sql/helper/sandbox.h"
#include "sql/helper/secrets.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

#define BACKOFF_NS_MIN NSEC_PER_SEC
#define BACKOFF_NS_MAX (60 * NSEC_PER_SEC)
/*
 * Each login that hangs may take one connection of the server until it continues: five in the first
 * quarter of an hour.
 */
#define UNRESPONSIVE_NS_MIN (30 * NSEC_PER_SEC)
#define UNRESPONSIVE_NS_MAX (600 * NSEC_PER_SEC)
/* A message of a server may be longer than what is passed on. */
#define MESSAGE_SIZE 1024

struct helper {
	int fd;
	int password_fd; /* read at each login; -1: none. A file that replaces it is not seen. */
	struct sql_frame_setup setup;
	const struct sql_driver *driver;
	struct sql_link *link; /* NULL: the library could not be loaded */
	bool connected;
	bool refused; /* the last login was refused */
	bool knows_kind;
	bool is_other_kind;
	uint64_t backoff_ns; /* 0: the last attempt succeeded */
	uint64_t retry_at_ns;
	/* From the last attempt. */
	char error[SQL_ERROR_SIZE];
	char missing[SQL_ERROR_SIZE];
};

/* --- the session ------------------------------------------------------------------- */

static void note_error(struct helper *h, const char *what, const struct text *message)
{
	struct text error = TEXT_ON(h->error);
	size_t room;

	text_reset(&error);
	text_add(&error, what);
	/* Client libraries keep a whole row, and end the session when there is no memory for it. */
	if (strstr(message->buf, "memory"))
		text_add(&error, "the answer is too large: ");
	room = sql_cut_text(message->buf, message->len, error.size - error.len - 1);
	text_add_bytes(&error, message->buf, room);
	log_debug("sql.%s: %s", h->setup.name, h->error);
}

/* An empty error would mean a complete answer to the daemon. */
static void add_reason(struct text *message, int r)
{
	if (r < 0 && message->len == 0)
		text_add(message, strerror(-r));
}

/*
 * Whether the server is not of the section's type. It is looked for after each attempt, since
 * another one may be there by then, but only once on the network: a connection without a login
 * counts against the host, which MySQL blocks after a hundred (max_connect_errors). Only PostgreSQL
 * lets the login of a MariaDB client wait for ever, and a socket of another user is often that of
 * another kind of server.
 */
static bool is_other_kind(struct helper *h, bool is_silent)
{
	bool may_ask = is_silent && h->driver->dialect != SQL_DIALECT_POSTGRESQL;
	enum sql_dialect dialect;

	if (h->setup.host[0] && h->knows_kind)
		return h->is_other_kind;
	h->knows_kind = sql_find_dialect(&h->setup, may_ask, &dialect);
	h->is_other_kind = h->knows_kind && dialect != h->driver->dialect;
	return h->is_other_kind;
}

static void say_wrong_type(const struct helper *h, struct text *message, struct text *missing)
{
	const bool is_postgresql = h->driver->dialect != SQL_DIALECT_POSTGRESQL;

	text_reset(message);
	text_reset(missing);
	text_addf(message, "the server there is %s, but sql.%s.type is %s",
		is_postgresql ? "PostgreSQL" : "MariaDB or MySQL", h->setup.name, h->driver->name);
	text_addf(missing, "set sql.%s.type = %s", h->setup.name,
		is_postgresql ? "postgresql" : "mariadb");
}

/* `error` is that of the driver: a server that is starting is asked again soon. */
static void note_failure(struct helper *h, int error, const struct text *message)
{
	const bool is_unresponsive = error == -ETIMEDOUT;
	const uint64_t min_ns = is_unresponsive ? UNRESPONSIVE_NS_MIN : BACKOFF_NS_MIN;
	const uint64_t max_ns = is_unresponsive ? UNRESPONSIVE_NS_MAX : BACKOFF_NS_MAX;
	char what[96] = "";

	h->backoff_ns = error == -EAGAIN ? 0 : 2 * h->backoff_ns;
	if (h->backoff_ns < min_ns)
		h->backoff_ns = min_ns;
	if (h->backoff_ns > max_ns)
		h->backoff_ns = max_ns;
	h->retry_at_ns = clock_mono_ns() + h->backoff_ns;
	if (is_unresponsive)
		snprintf(what, sizeof(what),
			"the server did not finish the login, next attempt in %u s: ",
			(unsigned int)(h->backoff_ns / NSEC_PER_SEC));
	note_error(h, what, message);
}

/*
 * Logs in if there is no session and it is time to try. Returns 0 also when there is no session;
 * h->error says why then. Negative only when the socket of the daemon fails.
 */
static int connect_session(struct helper *h)
{
	char message_buf[MESSAGE_SIZE], password[256];
	struct text message = TEXT_ON(message_buf), missing = TEXT_ON(h->missing);
	struct sql_frame_server server = { 0 };
	int r;

	if (h->connected || !h->link || clock_mono_ns() < h->retry_at_ns)
		return 0;
	text_reset(&message);
	text_reset(&missing);
	r = h->driver->connect(h->link,
		secrets_read_password(h->password_fd, password, sizeof(password)), &server,
		&message, &missing);
	explicit_bzero(password, sizeof(password));
	h->refused = r == -EACCES;
	if (r < 0 && r != -EACCES && is_other_kind(h, r == -ETIMEDOUT || r == -EPERM)) {
		r = -EPROTONOSUPPORT;
		say_wrong_type(h, &message, &missing);
	}
	if (r < 0) {
		add_reason(&message, r);
		note_failure(h, r, &message);
		return 0;
	}
	h->connected = true;
	h->backoff_ns = 0;
	h->error[0] = '\0';
	log_debug("sql.%s: connected to %s as %s", h->setup.name, server.version, server.account);
	return sql_send_frame(h->fd, &server.frame, SQL_FRAME_SERVER, 0, sizeof(server));
}

/*
 * 0 when the server answered, also with an error, then in h->error. -ENOTCONN: the session is lost.
 */
static int take_snapshot(struct helper *h, struct sql_answer *answer)
{
	char message_buf[MESSAGE_SIZE];
	struct text message = TEXT_ON(message_buf);
	int r;

	text_reset(&message);
	r = h->driver->snapshot(h->link, answer, &message);
	if (r >= 0) {
		h->error[0] = '\0';
		return 0;
	}
	if (r == -ENOTCONN) {
		h->driver->disconnect(h->link);
		h->connected = false;
	}
	add_reason(&message, r);
	note_error(h, r == -ENOTCONN ? "lost the session: " : "", &message);
	return r == -ENOTCONN ? r : 0;
}

static int answer_ask(struct helper *h, const struct sql_frame *ask)
{
	struct sql_answer answer = {
		.fd = h->fd,
		.ask = ask->ask,
		.is_glance = ask->type == SQL_FRAME_GLANCE,
		.setup = &h->setup,
		.dialect = h->driver->dialect,
	};
	struct sql_frame_end end = { 0 };
	bool was_connected = h->connected;
	uint64_t begin_ns;
	int r = connect_session(h);

	begin_ns = clock_mono_ns();
	/* A session that was lost while idle is only noticed now: log in and ask once more. */
	if (r == 0 && h->connected && take_snapshot(h, &answer) == -ENOTCONN && was_connected &&
		answer.sent == 0) {
		r = connect_session(h);
		begin_ns = clock_mono_ns();
		if (r == 0 && h->connected)
			take_snapshot(h, &answer);
	}
	if (r < 0 || answer.r < 0)
		return r < 0 ? r : answer.r;
	end.server_ns = h->connected ? clock_mono_ns() - begin_ns : 0;
	end.sessions_left_out = (uint32_t)answer.left_out;
	end.sessions_idle = (uint32_t)answer.idle;
	end.connections = answer.connections;
	end.values_invalid = answer.invalid < UINT32_MAX ? (uint32_t)answer.invalid : UINT32_MAX;
	text_copy(end.error, sizeof(end.error), h->error);
	if (!h->connected)
		text_copy(end.missing, sizeof(end.missing), h->missing);
	end.renew = !h->link || (h->refused && h->password_fd >= 0);
	return sql_send_frame(h->fd, &end.frame, SQL_FRAME_END, ask->ask, sizeof(end));
}

/* Only while the daemon waits for nothing, and the server is well. */
static void name_files(struct helper *h)
{
	char password[256];

	if (!h->driver->name_files || !h->connected || h->error[0])
		return;
	h->driver->name_files(h->link,
		secrets_read_password(h->password_fd, password, sizeof(password)), h->fd);
	explicit_bzero(password, sizeof(password));
}

/* --- the daemon -------------------------------------------------------------------- */

/* Returns the length of the datagram, 0 at the end, or a negative errno. */
static ssize_t receive(int fd, void *buf, size_t size)
{
	ssize_t n;

	do
		n = recv(fd, buf, size, MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	return n < 0 ? (errno == ECONNRESET ? 0 : -errno) : n;
}

static const struct sql_driver *find_driver(uint32_t type)
{
#define DATABASE(NAME, name, ...)                                                                  \
	if (type == SQL_TYPE_##NAME)                                                               \
		return &sql_driver_##name;
#include "sql/databases.def"
#undef DATABASE
	return NULL;
}

static bool is_terminated(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static bool is_valid(const struct sql_frame_setup *s, ssize_t size)
{
	return size == sizeof(*s) && s->frame.type == SQL_FRAME_SETUP && find_driver(s->type) &&
		s->text_mode >= SQL_TEXT_REDACTED && s->text_mode <= SQL_TEXT_OFF &&
		s->text_bytes < SQL_TEXT_SIZE && is_terminated(s->name, sizeof(s->name)) &&
		is_terminated(s->socket, sizeof(s->socket)) &&
		is_terminated(s->host, sizeof(s->host)) &&
		is_terminated(s->user, sizeof(s->user)) &&
		is_terminated(s->database, sizeof(s->database)) &&
		is_terminated(s->password_file, sizeof(s->password_file)) &&
		is_terminated(s->option_file, sizeof(s->option_file)) &&
		is_terminated(s->run_as, sizeof(s->run_as)) &&
		is_terminated(s->server_user, sizeof(s->server_user)) &&
		is_terminated(s->tls_ca, sizeof(s->tls_ca));
}

static int receive_setup(struct helper *h)
{
	ssize_t n = receive(h->fd, &h->setup, sizeof(h->setup));

	if (n < 0)
		return (int)n;
	return is_valid(&h->setup, n) ? 0 : -EPROTO;
}

/*
 * An error that a new attempt would not fix stays in h->error. Every question is answered with it
 * until the daemon starts a new helper.
 */
static int prepare(struct helper *h)
{
	char message_buf[MESSAGE_SIZE], error_buf[SQL_ERROR_SIZE];
	struct text message = TEXT_ON(message_buf), error = TEXT_ON(error_buf);
	int r;

	text_reset(&message);
	text_reset(&error);
	/* Before root is given up: only root needs to be able to read the file. */
	h->password_fd = secrets_open_password(&h->setup, &message);
	r = sandbox_enter(h->setup.run_as, &h->password_fd, &error);
	if (r < 0) {
		log_error("sql.%s: %s", h->setup.name, error.buf);
		return r;
	}
	if (message.len == 0)
		secrets_check_option_file(&h->setup, &message);
	if (message.len == 0)
		add_reason(&message, sql_driver_load(h->driver, &h->setup, &h->link, &message));
	if (message.len > 0)
		note_error(h, "", &message);
	sandbox_lock_memory();
	return connect_session(h);
}

static int serve(struct helper *h)
{
	struct sql_frame ask;
	ssize_t n;
	int r;

	while ((n = receive(h->fd, &ask, sizeof(ask))) != 0) {
		if (n < 0)
			return (int)n;
		if (n != sizeof(ask) || (ask.type != SQL_FRAME_ASK && ask.type != SQL_FRAME_GLANCE))
			return -EPROTO;
		r = answer_ask(h, &ask);
		/* The daemon has gone. It is the end, as when it closes its socket. */
		if (r == -EPIPE || r == -ECONNRESET)
			return 0;
		if (r < 0)
			return r;
		if (ask.type == SQL_FRAME_GLANCE)
			name_files(h);
	}
	return 0;
}

/* Ctrl-C and systemd signal the daemon, which still asks at its end; we end with its socket. */
static void ignore_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

int sql_helper_main(int fd)
{
	struct helper h = { .fd = fd, .password_fd = -1 };
	int r;

	ignore_signals();
	r = receive_setup(&h);
	if (r < 0) {
		log_error("sql-helper: no valid setup from the daemon: %s", strerror(-r));
		return r;
	}
	h.driver = find_driver(h.setup.type);
	r = prepare(&h);
	if (r == 0)
		r = serve(&h);
	if (r == -EPIPE)
		r = 0;
	if (r < 0)
		log_error("sql.%s: the helper process ends: %s", h.setup.name, strerror(-r));
	return r;
}
