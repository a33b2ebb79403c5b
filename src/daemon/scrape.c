/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/scrape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/http.h"
#include "daemon/server.h"
#include "util/activation.h"

#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_ERROR "text/plain; charset=utf-8"

struct scrape {
	struct server *server;
	scrape_handler handler;
	void *userdata;
};

static void add_answer(const struct scrape *scrape, const struct http_request *request,
	struct text *answer)
{
	switch (request->status) {
	case 200:
		http_begin(answer, request,
			request->takes_openmetrics ? TYPE_OPENMETRICS : TYPE_TEXT);
		scrape->handler(scrape->userdata,
			request->takes_openmetrics ? METRICS_OPENMETRICS : METRICS_TEXT, answer);
		break;
	case 404:
		http_begin(answer, request, TYPE_ERROR);
		text_add(answer, "no such page; expected /metrics\n");
		break;
	case 405:
		http_begin(answer, request, TYPE_ERROR);
		text_add(answer, "no such method; expected GET or HEAD\n");
		break;
	default:
		http_begin(answer, request, TYPE_ERROR);
		text_add(answer, "not a request of HTTP/1.1; expected GET /metrics HTTP/1.1\n");
	}
	http_end(answer, request);
}

static bool on_request(void *userdata, const struct server_request *request, struct text *answer)
{
	/* The kernel takes the whole answer at once, so nothing is kept for a slow reader. */
	static const int room = SERVER_ANSWER_MAX;
	struct http_request http;

	http_parse(request->text, &http);
	if (http.status == 0)
		return false;
	setsockopt(request->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	add_answer(userdata, &http, answer);
	return true;
}

static int listen_on(struct scrape *scrape, int fd)
{
	int listens = 0;
	socklen_t size = sizeof(listens);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0)
		return -errno;
	/* With Accept=yes it would be a connection. */
	if (!listens)
		return -EINVAL;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return -errno;
	return server_listen(scrape->server, fd);
}

int scrape_new(struct loop *loop, scrape_handler handler, void *userdata,
	struct scrape **ret_scrape)
{
	int sockets = (int)activation_take();
	struct scrape *scrape;
	int r;

	*ret_scrape = NULL;
	if (sockets == 0)
		return 0;
	scrape = calloc(1, sizeof(*scrape));
	if (!scrape)
		return -ENOMEM;
	scrape->handler = handler;
	scrape->userdata = userdata;
	r = server_new(loop, on_request, scrape, &scrape->server);
	for (int i = 0; r == 0 && i < sockets; i++)
		r = listen_on(scrape, ACTIVATION_FIRST_FD + i);
	if (r < 0) {
		scrape_free(scrape);
		return r;
	}
	*ret_scrape = scrape;
	return 0;
}

struct scrape *scrape_free(struct scrape *scrape)
{
	if (!scrape)
		return NULL;
	server_free(scrape->server);
	free(scrape);
	return NULL;
}
