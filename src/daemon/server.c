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
#include "util/log.h"
#include "util/loop.h"

/* Without a descriptor or memory a connection stays where it is, and its socket readable. */
#define ACCEPT_RETRY_NS (100 * NSEC_PER_MSEC)
#define ACCEPT_PAUSE_NS (20 * NSEC_PER_MSEC)

struct client {
	struct server *server;
	struct loop_source *source;
	uint64_t number; /* of the connection */
	int fd;		 /* -1: free */
	size_t len;
	char request[SERVER_REQUEST_MAX + 1];
};

struct listener {
	struct server *server;
	struct loop_source *source;
	int fd;
};

struct server {
	struct loop *loop;
	server_handler handler;
	void *userdata;
	struct listener listeners[SERVER_SOCKETS_MAX];
	unsigned int listeners_count;
	struct loop_source *pause; /* runs while no connection is accepted */
	bool has_cut;		   /* it has been logged that an answer was not taken */
	uint64_t connections;
	struct client clients[SERVER_CLIENTS_MAX];
	char answer[SERVER_ANSWER_MAX];
};

static void drop_client(struct client *client)
{
	client->source = loop_remove(client->source);
	client->fd = close_fd(client->fd);
}

static void answer_client(const struct client *client, const struct text *answer)
{
	struct server *server = client->server;
	ssize_t n = send(client->fd, answer->buf, answer->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* Whoever asked sees that it is not whole. */
	if (n >= 0 && (size_t)n < answer->len && !server->has_cut) {
		server->has_cut = true;
		log_warning("the kernel took %zd of the %zu bytes of an answer; expected "
			    "net.core.wmem_max to allow them",
			n, answer->len);
	}
}

static void on_client(void *userdata, uint64_t events)
{
	struct client *client = userdata;
	struct server *server = client->server;
	const struct server_request request = { .fd = client->fd, .text = client->request };
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
	text_reset(&answer);
	if (server->handler(server->userdata, &request, &answer))
		answer_client(client, &answer);
	else if (client->len < SERVER_REQUEST_MAX)
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

static void accept_none_for(struct server *server, uint64_t pause_ns)
{
	if (loop_set_timer(server->pause, pause_ns, 0) < 0)
		return;
	for (unsigned int i = 0; i < server->listeners_count; i++)
		loop_set_events(server->listeners[i].source, 0);
}

static void on_pause(void *userdata, uint64_t expirations)
{
	struct server *server = userdata;

	(void)expirations;
	for (unsigned int i = 0; i < server->listeners_count; i++)
		loop_set_events(server->listeners[i].source, EPOLLIN);
}

static void on_connection(void *userdata, uint64_t events)
{
	const struct listener *listener = userdata;
	struct server *server = listener->server;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	(void)events;
	accept_none_for(server, fd < 0 ? ACCEPT_RETRY_NS : ACCEPT_PAUSE_NS);
	if (fd < 0)
		return;
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
	r = loop_add_timer(loop, on_pause, server, &server->pause);
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
	for (unsigned int i = 0; i < server->listeners_count; i++)
		loop_remove(server->listeners[i].source);
	loop_remove(server->pause);
	free(server);
	return NULL;
}

int server_listen(struct server *server, int listen_fd)
{
	struct listener *listener = &server->listeners[server->listeners_count];
	int r;

	if (server->listeners_count == SERVER_SOCKETS_MAX)
		return -ENOSPC;
	*listener = (struct listener){ .server = server, .fd = listen_fd };
	r = loop_add_fd(server->loop, listen_fd, EPOLLIN, on_connection, listener,
		&listener->source);
	if (r == 0)
		server->listeners_count++;
	return r;
}
