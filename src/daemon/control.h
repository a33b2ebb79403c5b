/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: one request and one answer, a JSON object but for metrics, for each
 * connection.
 * The daemon owns the server; `trigger`, `status`, `metrics` and `doctor` use the client.
 * The server never waits for a client: it drops one that does not take its answer.
 */
#ifndef IOSTALL_DAEMON_CONTROL_H
#define IOSTALL_DAEMON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/server.h"
#include "util/text.h"

#define CONTROL_MESSAGE_MAX SERVER_ANSWER_MAX

struct control;
struct loop;

/* Answers a request ("status", "metrics", "trigger 10000000000") from a client with that user id. */
typedef void (
	*control_handler)(void *userdata, const char *request, uid_t uid, struct text *answer);

/*
 * Takes the lock beside the socket and listens. -EADDRINUSE: another daemon holds the lock; other
 * errors are those of the directory. The socket has mode 0660 and the group adm where that exists.
 * Where the directory does not answer in 0.5 s, it goes on and listens later.
 */
int control_new(struct loop *loop, const char *socket_path, control_handler handler, void *userdata,
	struct control **ret_control);
/* The socket stays, and is removed by the next control_new(). NULL is accepted. */
struct control *control_free(struct control *control);

/* 0, -ENOENT or -ECONNREFUSED: nobody listens; -EACCES; -ETIMEDOUT: no answer within 5 s. */
int control_ask(const char *socket_path, const char *request, char ret_answer[CONTROL_MESSAGE_MAX]);

#endif
