/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/server.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/loop.h"

#define ACCEPT_RETRY_NS (100 * NSEC_PER_MSEC)

struct client {
	struct server *server;
	struct loop_source *source;
	uint64_t number; /* of the connection */
	int fd;		 /* -1: free */
	size_t len;
	char request[SERVER_REQUEST_MAX + 1];
};

struct server {
	struct loop *loop;
	server_handler handler;
	void *userdata;
	int listen_fd;
	struct loop_source *source;
	struct loop_source *retry; /* runs while connections are not accepted */
	uint64_t connections;
	struct client clients[SERVER_CLIENTS_MAX];
	char answer[SERVER_ANSWER_MAX];
};

static void drop_client(struct client *client)
{
	client->source = loop_remove(client->source);
	client->fd = close_fd(client->fd);
}

static void on_client(void *userdata, uint64_t events)
{
	struct client *client = userdata;
	struct server *server = client->server;
	struct server_request request = { .fd = client->fd, .text = client->request };
	struct text answer = TEXT_ON(server->answer);
	ssize_t n = recv(client->fd, client->request + client->len,
		SERVER_REQUEST_MAX - client->len, MSG_DONTWAIT);

	(void)events;
	if (n <= 0) {
		drop_client(client);
		return;
	}
	client->len += (size_t)n;
	client->request[client->len] = '\0';
	request.len = client->len;
	request.is_full = client->len == SERVER_REQUEST_MAX;
	text_reset(&answer);
	if (server->handler(server->userdata, &request, &answer))
		send(client->fd, answer.buf, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (!request.is_full)
		return;
	drop_client(client);
}

/* A free place. When clients that send nothing hold all of them, the oldest one is dropped. */
static struct client *take_place(struct server *server)
{
	struct client *oldest = &server->clients[0];

	for (unsigned int i = 0; i < SERVER_CLIENTS_MAX; i++) {
		struct client *client = &server->clients[i];

		if (client->fd < 0)
			return client;
		if (client->number < oldest->number)
			oldest = client;
	}
	drop_client(oldest);
	return oldest;
}

static void on_retry(void *userdata, uint64_t expirations)
{
	struct server *server = userdata;

	(void)expirations;
	loop_set_events(server->source, EPOLLIN);
}

static void on_connection(void *userdata, uint64_t events)
{
	struct server *server = userdata;
	int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	(void)events;
	if (fd < 0) {
		/*
		 * Without a descriptor or memory the connection stays where it is, and the socket
		 * readable: the loop would do nothing else.
		 */
		if (loop_set_timer(server->retry, ACCEPT_RETRY_NS, 0) == 0)
			loop_set_events(server->source, 0);
		return;
	}
	client = take_place(server);
	if (loop_add_fd(server->loop, fd, EPOLLIN, on_client, client, &client->source) < 0) {
		close(fd);
		return;
	}
	client->fd = fd;
	client->len = 0;
	client->number = server->connections++;
}

int server_new(struct loop *loop, server_handler handler, void *userdata,
	struct server **ret_server)
{
	struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	server->loop = loop;
	server->handler = handler;
	server->userdata = userdata;
	for (unsigned int i = 0; i < SERVER_CLIENTS_MAX; i++) {
		server->clients[i].server = server;
		server->clients[i].fd = -1;
	}
	r = loop_add_timer(loop, on_retry, server, &server->retry);
	if (r < 0) {
		server_free(server);
		return r;
	}
	*ret_server = server;
	return 0;
}

struct server *server_free(struct server *server)
{
	if (!server)
		return NULL;
	for (unsigned int i = 0; i < SERVER_CLIENTS_MAX; i++)
		drop_client(&server->clients[i]);
	loop_remove(server->source);
	loop_remove(server->retry);
	free(server);
	return NULL;
}

int server_listen(struct server *server, int listen_fd)
{
	server->listen_fd = listen_fd;
	return loop_add_fd(server->loop, listen_fd, EPOLLIN, on_connection, server,
		&server->source);
}
