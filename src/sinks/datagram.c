/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/datagram.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/log.h"

/*
 * An incident sends two messages, so those of four incidents are kept while the receiver is gone.
 */
#define PENDING_MAX 8
/*
 * Tries once a second where nobody is: a receiver that restarts is back long before that. One whose
 * queue is full hangs as the host does, perhaps for longer.
 */
#define TRIES_MAX 60

struct pending {
	size_t len;
	unsigned int tries;
	char bytes[DATAGRAM_SIZE];
};

struct datagram {
	int fd;
	const char *name;
	struct sockaddr_un address;
	bool was_there; /* a receiver, at the start or at any time since */
	uint64_t dropped;
	int logged_error;
	unsigned int first; /* index of the oldest pending message */
	unsigned int count;
	struct pending pending[PENDING_MAX];
};

int datagram_new(const char *name, const char *path, struct datagram **ret_datagram)
{
	struct datagram *d;
	int r;

	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->name = name;
	d->address.sun_family = AF_UNIX;
	text_copy(d->address.sun_path, sizeof(d->address.sun_path), path);
	d->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0) {
		r = -errno;
		free(d);
		return r;
	}
	/* One that ends before the first message loses it all the same. */
	d->was_there = access(path, F_OK) == 0;
	*ret_datagram = d;
	return 0;
}

struct datagram *datagram_free(struct datagram *d)
{
	if (!d)
		return NULL;
	if (d->count > 0 && d->was_there)
		log_warning("%s at %s has not taken the last %u messages", d->name,
			d->address.sun_path, d->count);
	close_fd(d->fd);
	free(d);
	return NULL;
}

static int send_bytes(struct datagram *d, const char *bytes, size_t len)
{
	/* The socket is not connected, because the receiver may be restarted. */
	int r = sendto(d->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const void *)&d->address,
			sizeof(d->address)) < 0
		? -errno
		: 0;

	d->was_there |= r != -ENOENT;
	return r;
}

static bool is_gone(int error)
{
	return error == -ECONNREFUSED || error == -ENOENT;
}

/* Whether the receiver may accept the message later. */
static bool is_temporary(int error)
{
	return is_gone(error) || error == -EAGAIN || error == -ENOBUFS || error == -EINTR ||
		error == -ENOMEM;
}

/* A host without such a log loses nothing: only what a receiver did not take is counted. */
static void drop(struct datagram *d, int error)
{
	if (!d->was_there)
		error = -ENOENT;
	else
		d->dropped++;
	if (error != d->logged_error)
		log_warning("cannot send messages to %s at %s: %s, ignoring", d->name,
			d->address.sun_path, strerror(-error));
	d->logged_error = error;
}

static void drop_oldest(struct datagram *d, int error)
{
	d->first = (d->first + 1) % PENDING_MAX;
	d->count--;
	drop(d, error);
}

static void keep(struct datagram *d, const char *bytes, size_t len)
{
	struct pending *p;

	/* The newest message is the most useful: `close` repeats what `open` said. */
	if (d->count == PENDING_MAX)
		drop_oldest(d, -EAGAIN);
	p = &d->pending[(d->first + d->count++) % PENDING_MAX];
	memcpy(p->bytes, bytes, len);
	p->len = len;
	p->tries = 0;
}

void datagram_send(struct datagram *d, const struct text *message)
{
	int r;

	if (message->len > DATAGRAM_SIZE) {
		drop(d, -EMSGSIZE);
		return;
	}
	r = d->count > 0 ? -EAGAIN : send_bytes(d, message->buf, message->len);
	if (r == 0)
		d->logged_error = 0;
	else if (is_temporary(r))
		keep(d, message->buf, message->len);
	else
		drop(d, r);
}

void datagram_retry(struct datagram *d)
{
	while (d->count > 0) {
		struct pending *p = &d->pending[d->first];
		int r = send_bytes(d, p->bytes, p->len);

		if (r == 0) {
			d->logged_error = 0;
			d->first = (d->first + 1) % PENDING_MAX;
			d->count--;
		} else if (is_temporary(r) && (!is_gone(r) || ++p->tries < TRIES_MAX)) {
			return;
		} else {
			drop_oldest(d, r);
		}
	}
}

void datagram_make_room(struct datagram *d)
{
	datagram_retry(d);
	if (d->count == PENDING_MAX)
		drop_oldest(d, -EAGAIN);
}

uint64_t datagram_dropped(const struct datagram *d)
{
	return d->dropped;
}
