/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: one request and one answer, a JSON object, per connection.
 * The server is owned by the daemon; the client is called by `trigger` and `status`.
 * The server never waits for a client; what a client does not take is dropped with it.
 */
#ifndef IOSTALL_CONTROL_H
#define IOSTALL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/text.h"

#define CONTROL_MESSAGE_MAX 4096

struct control;
struct loop;

/* Answers a request ("status", "trigger 10000000000") from a client of that user id. */
typedef void (*control_handler)(void *userdata, const char *request, uid_t uid, struct text *answer);

/*
 * Takes the lock beside the socket and listens. -EADDRINUSE: another daemon holds the lock; others
 * say what is wrong with the directory. Mode 0660, group adm where it exists.
 */
int control_new(struct loop *loop, const char *socket_path, control_handler handler, void *userdata,
	struct control **ret_control);
/* Removes the socket. NULL is accepted. */
struct control *control_free(struct control *control);

/* 0, -ENOENT or -ECONNREFUSED: nobody listens; -EACCES; -ETIMEDOUT: no answer within 5 s. */
int control_ask(const char *socket_path, const char *request, char ret_answer[CONTROL_MESSAGE_MAX]);

#endif
