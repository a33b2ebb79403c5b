/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers on sockets that listen: one request and one answer for each connection.
 * Owned by control.c and scrape.c.
 * Never waits for a client and allocates nothing for one: who does not take the answer at once is
 * dropped, and so is the one who has been connected longest when all places are taken. However many
 * ask, it answers 50 of them in a second, since the loop goes before all other programs.
 */
#ifndef IOSTALL_DAEMON_SERVER_H
#define IOSTALL_DAEMON_SERVER_H

#include <stdbool.h>

#include "util/text.h"

/* Longer requests are not read. */
#define SERVER_REQUEST_MAX 2048
#define SERVER_ANSWER_MAX 32768
/* How many connections are open at a time. */
#define SERVER_CLIENTS_MAX 8
#define SERVER_SOCKETS_MAX 4

struct loop;
struct server;

struct server_request {
	int fd;		  /* of the connection */
	const char *text; /* what has come so far, terminated */
};

/* Fills in the answer. False: the request is not whole yet. */
typedef bool (
	*server_handler)(void *userdata, const struct server_request *request, struct text *answer);

/* 0 or a negative errno. */
int server_new(struct loop *loop, server_handler handler, void *userdata,
	struct server **ret_server);
struct server *server_free(struct server *server);

/* The socket listens, does not block, and stays the caller's. -ENOSPC: there are enough. */
int server_listen(struct server *server, int listen_fd);

#endif
