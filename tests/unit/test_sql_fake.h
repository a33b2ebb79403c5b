/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A helper process that says what a test wants: the test program itself, started as one.
 * Used by the tests of targets and of the session's lines; the mode is the target's name.
 * Never asks a database.
 */
#ifndef IOSTALL_TESTS_TEST_SQL_FAKE_H
#define IOSTALL_TESTS_TEST_SQL_FAKE_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sql/protocol.h"
#include "util/clock.h"

/* Of "worker", which are in no /proc but that of the test. */
#define FAKE_SERVER_PID 700
#define FAKE_WORKER_TID 701

static inline void fake_send(const void *frame, size_t size)
{
	if (send(STDIN_FILENO, frame, size, MSG_NOSIGNAL) < 0)
		_exit(1);
}

static inline void fake_server_of(int32_t server_pid, const char *missing)
{
	struct sql_frame_server f = {
		.frame = { SQL_FRAME_SERVER, sizeof(f), 0 },
		.server_pid = server_pid,
		.can_see_others = 1,
		.has_tid = 1,
		.version = "10.11.6-MariaDB",
		.account = "iostall@localhost",
	};

	snprintf(f.missing, sizeof(f.missing), "%s", missing);
	fake_send(&f, sizeof(f));
}

static inline void fake_server(void)
{
	fake_server_of(getpid(), "");
}

static inline void fake_row_in(uint64_t ask, uint64_t id, int32_t tid, uint64_t elapsed_ns,
	bool idle, const char *in_state)
{
	struct sql_frame_session f = {
		.frame = { SQL_FRAME_SESSION, 0, ask },
		.connection_id = id,
		.query_id = id + 1000,
		.tid = tid,
		.idle = idle,
		.elapsed_ns = elapsed_ns,
		.user = "app@localhost",
		.database = "shop",
		.command = "Query",
		.text = "SELECT ?",
		.text_bytes = 12,
	};
	size_t size = offsetof(struct sql_frame_session, text) + strlen(f.text) + 1;

	snprintf(f.state, sizeof(f.state), "%s", in_state);
	if (!tid)
		snprintf(f.no_tid, sizeof(f.no_tid), "thread pool");
	f.frame.size = (uint32_t)size;
	fake_send(&f, size);
}

static inline void fake_row(uint64_t ask, uint64_t id, int32_t tid, uint64_t elapsed_ns, bool idle)
{
	fake_row_in(ask, id, tid, elapsed_ns, idle, "Sending data");
}

static inline void fake_session(uint64_t ask, uint64_t id, int32_t tid, uint64_t elapsed_ns)
{
	fake_row(ask, id, tid, elapsed_ns, false);
}

static inline void fake_end_after(uint64_t ask, uint64_t server_ns, const char *error, bool renew)
{
	struct sql_frame_end f = {
		.frame = { SQL_FRAME_END, sizeof(f), ask },
		.sessions_idle = 7,
		.connections = { .used = 120, .allowed = 150, .user = "app" },
		.server_ns = server_ns,
		.renew = renew,
	};

	snprintf(f.error, sizeof(f.error), "%s", error);
	if (*error)
		snprintf(f.missing, sizeof(f.missing), "CREATE USER iostall@localhost");
	fake_send(&f, sizeof(f));
}

static inline void fake_end_with(uint64_t ask, const char *error, bool renew)
{
	fake_end_after(ask, 500000, error, renew);
}

static inline void fake_end(uint64_t ask, const char *error)
{
	fake_end_with(ask, error, false);
}

/* One server, which is reached in two ways. */
static inline void fake_twin(uint64_t ask, int32_t server_pid)
{
	struct sql_frame_server f = {
		.frame = { SQL_FRAME_SERVER, sizeof(f), 0 },
		.server_pid = server_pid,
		.identity = 42,
		.version = "10.11.6-MariaDB",
	};

	fake_send(&f, sizeof(f));
	fake_session(ask, 17, 0, NSEC_PER_SEC);
	fake_end(ask, "");
}

/* A process of the server itself that has no statement. */
static inline void fake_background(uint64_t ask, int32_t tid, const char *command)
{
	struct sql_frame_session f = {
		.frame = { SQL_FRAME_SESSION, offsetof(struct sql_frame_session, text) + 1, ask },
		.connection_id = 7,
		.tid = tid,
		.background = 1,
	};

	snprintf(f.command, sizeof(f.command), "%s", command);
	fake_send(&f, f.frame.size);
}

/* A parallel worker of a leader, init for example. */
static inline void fake_worker(uint64_t ask, uint64_t id, int32_t tid, int32_t leader_pid)
{
	struct sql_frame_session f = {
		.frame = { SQL_FRAME_SESSION, offsetof(struct sql_frame_session, text) + 1, ask },
		.connection_id = id,
		.tid = tid,
		.leader_pid = leader_pid,
	};

	fake_send(&f, f.frame.size);
}

/* The third answer has most to say: that is the worst. */
static inline void fake_answer(uint64_t ask)
{
	fake_server();
	fake_session(ask, 17, getpid(), 3 * NSEC_PER_SEC);
	fake_session(ask, 18, 0, 2 * NSEC_PER_SEC);
	/* Init is no thread of ours. */
	fake_session(ask, 19, 1, NSEC_PER_SEC);
	if (ask == 3)
		fake_session(ask, 20, 0, NSEC_PER_SEC / 2);
	fake_end(ask, "");
}

/* As the real one: the file that was there at its start. Beside it is a byte for each start. */
static int fake_password_fd = -1;

static inline void fake_start(const char *password_file)
{
	char path[SQL_PATH_SIZE + 16];
	int fd;

	if (!*password_file)
		return;
	fake_password_fd = open(password_file, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s.starts", password_file);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0 && write(fd, ".", 1) != 1)
		_exit(1);
	close(fd);
}

static inline bool fake_is_right(void)
{
	char password[16] = "";

	return pread(fake_password_fd, password, sizeof(password) - 1, 0) > 0 &&
		strcmp(password, "right\n") == 0;
}

#define FAKE_FIRST_ANSWERS 20

/*
 * 17 runs from the beginning, 21 since a little later; then, with neither, come 18, 19 and once 20.
 */
static inline void fake_ending(uint64_t ask, unsigned int nth)
{
	static uint64_t start_ns;

	if (!start_ns)
		start_ns = clock_mono_ns();
	fake_server();
	if (nth <= FAKE_FIRST_ANSWERS) {
		if (nth > FAKE_FIRST_ANSWERS / 2)
			fake_session(ask, 21, 0, clock_mono_ns() - start_ns + 2 * NSEC_PER_SEC);
		fake_session(ask, 17, getpid(), clock_mono_ns() - start_ns + 5 * NSEC_PER_SEC);
	} else {
		for (uint64_t i = 18; i < (nth == FAKE_FIRST_ANSWERS + 1 ? 21 : 20); i++)
			fake_session(ask, i, 0, 11 * NSEC_PER_SEC);
	}
	fake_end(ask, "");
}

/* False: it is a mode that does not fail like that. */
static inline bool fake_fail(const char *mode, uint64_t ask, unsigned int nth)
{
	if (strcmp(mode, "refused") == 0) {
		fake_end(ask, "Access denied for user 'iostall'@'localhost'");
	} else if (strcmp(mode, "starts") == 0) {
		fake_end(ask, nth % 16 < 8 ? "it is starting up" : "it accepts none yet");
	} else if (strcmp(mode, "password") == 0) {
		if (fake_is_right())
			fake_answer(ask);
		else
			fake_end_with(ask, "Access denied for user 'iostall'@'localhost'", true);
	} else if (strcmp(mode, "silent") == 0) {
		if (nth == 1)
			fake_answer(ask);
		else
			fake_end(ask, SQL_ERROR_UNRESPONSIVE " for 1.7 s");
	} else if (strcmp(mode, "hiccup") == 0) {
		if (nth == 2)
			fake_end(ask, SQL_ERROR_UNRESPONSIVE " for 1.7 s");
		else
			fake_answer(ask);
	} else {
		return false;
	}
	return true;
}

/* `nth` question of this process. */
static inline void fake_be(const char *mode, uint64_t ask, unsigned int nth)
{
	static const char garbage[100] = "garbage";

	if (strcmp(mode, "alone") == 0) {
		fake_server_of(getpid(), "GRANT PROCESS ON *.* TO iostall@localhost");
		fake_end(ask, "");
	} else if (strcmp(mode, "good") == 0) {
		fake_answer(ask);
	} else if (fake_fail(mode, ask, nth)) {
		return;
	} else if (strcmp(mode, "garbage") == 0) {
		fake_send(garbage, sizeof(garbage));
	} else if (strcmp(mode, "other") == 0) {
		fake_end(ask + 1, "");
	} else if (strcmp(mode, "dies") == 0) {
		if (nth > 1)
			_exit(1);
		fake_answer(ask);
	} else if (strcmp(mode, "stops") == 0) {
		if (nth > 1)
			raise(SIGSTOP);
		fake_answer(ask);
	} else if (strcmp(mode, "flood") == 0) {
		for (uint64_t i = 0; i < 5000; i++)
			fake_session(ask, i, 0, i);
		fake_end(ask, "");
	} else if (strcmp(mode, "backend") == 0) {
		fake_server_of(getppid(), "");
		fake_session(ask, 17, getpid(), 3 * NSEC_PER_SEC);
		fake_end(ask, "");
	} else if (strcmp(mode, "grows") == 0) {
		fake_server();
		for (uint64_t i = 1; i <= ask && i < SQL_SESSIONS_MAX; i++)
			fake_session(ask, i, 0, NSEC_PER_SEC);
		fake_end(ask, "");
	} else if (strcmp(mode, "ends") == 0) {
		fake_ending(ask, nth);
	} else if (strcmp(mode, "changes") == 0) {
		/* Another one each time, and the newest is the worst. */
		fake_server();
		fake_session(ask, 100 + ask, 0, NSEC_PER_SEC + ask);
		fake_end(ask, "");
	} else if (strcmp(mode, "idle") == 0) {
		fake_server();
		fake_row(ask, 17, getpid(), 3 * NSEC_PER_SEC, true);
		fake_session(ask, 18, 0, NSEC_PER_SEC);
		fake_end(ask, "");
	} else if (strcmp(mode, "mixed") == 0) {
		fake_server();
		fake_session(ask, 17, 0, 3 * NSEC_PER_SEC);
		fake_session(ask, 18, 0, NSEC_PER_SEC - 1);
		fake_row_in(ask, 19, 0, 2 * NSEC_PER_SEC, false, "User sleep");
		fake_row_in(ask, 20, 0, 2 * NSEC_PER_SEC, false, "updating");
		fake_row(ask, 21, 0, 3 * NSEC_PER_SEC, true);
		fake_end(ask, "");
	} else if (strcmp(mode, "roles") == 0) {
		/* It works, and is in the second answer no more; then a client has its number. */
		fake_server();
		fake_background(ask, nth == 1 ? getpid() : 0, "checkpointer");
		if (nth > 5)
			fake_session(ask, 17, getpid(), NSEC_PER_SEC);
		fake_end(ask, "");
	} else if (strcmp(mode, "worker") == 0) {
		fake_server_of(FAKE_SERVER_PID, "");
		fake_background(ask, nth == 1 ? FAKE_WORKER_TID : 0, "autovacuum worker");
		fake_end(ask, "");
	} else if (strcmp(mode, "logins") == 0) {
		for (unsigned int i = 0; i < 5000; i++)
			fake_server();
		fake_end(ask, "");
	} else if (strcmp(mode, "absurd") == 0) {
		fake_server();
		fake_session(ask, 17, -1, UINT64_MAX);
		fake_worker(ask, 18, getpid(), 1);
		fake_end(ask, "");
	} else if (strcmp(mode, "slow") == 0) {
		fake_server();
		fake_end_after(ask, 3000000, "", false);
	} else if (strcmp(mode, "twin") == 0) {
		fake_twin(ask, 0);
	} else if (strcmp(mode, "local-twin") == 0) {
		fake_twin(ask, getpid());
	} else if (strcmp(mode, "most") == 0) {
		fake_server();
		fake_server();
		for (uint64_t i = 0; i < SQL_SESSIONS_MAX; i++)
			fake_session(ask, i, 0, i);
		fake_end(ask, "");
	}
}

static inline int fake_main(const char *mode)
{
	union {
		struct sql_frame frame;
		struct sql_frame_setup setup;
	} in;
	ssize_t size;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	size = recv(STDIN_FILENO, &in, sizeof(in), 0);
	if (size != sizeof(in.setup) || in.frame.type != SQL_FRAME_SETUP ||
		strcmp(in.setup.name, mode) != 0 || strcmp(in.setup.user, "iostall") != 0)
		return 1;
	fake_start(in.setup.password_file);
	for (unsigned int nth = 1; recv(STDIN_FILENO, &in, sizeof(in), 0) == sizeof(in.frame);
		nth++)
		fake_be(mode, in.frame.ask, nth);
	return 0;
}

#endif
