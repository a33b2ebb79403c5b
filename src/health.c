/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "health.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "health_child.h"
#include "util/address.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include "watch/watch.h"

/* A Unix socket whose backlog is full refuses at once, and is asked again until the time is over. */
#define RETRY_NS (50 * NSEC_PER_MSEC)
/* 100 ms at most, at the end and when the configuration is read anew. */
#define REAP_TRIES 20

struct health {
	struct loop *loop;
	char target[sizeof(((struct config *)NULL)->health.command)];
	bool is_command;
	bool greeting;
	uint64_t interval_ns;
	uint64_t timeout_ns;
	struct sockaddr_storage address;
	socklen_t address_size;
	struct loop_source *begin_timer;
	struct loop_source *limit_timer;
	struct loop_source *retry_timer;
	struct loop_source *source;
	int fd; /* of the connection */
	bool connected;
	struct health_child child;
	int child_error; /* why there is none */
	uint64_t revive_ns;
	uint32_t serial; /* counts the checks of other configurations before it */
	health_callback callback;
	void *userdata;

	bool checking;
	bool asked; /* the program, in this check */
	bool was_well; /* once, and nothing is judged before */
	int result; /* of the last check */
	uint64_t began_ns;
	uint64_t failing_since_ns; /* the first check without an answer began then; 0: none */
	uint64_t answer_ns; /* how long the last good one took */
};

static void drop_connection(struct health *h)
{
	if (h->is_command)
		return;
	h->source = loop_remove(h->source);
	h->fd = close_fd(h->fd);
	h->connected = false;
}

const char *health_describe(int result)
{
	switch (-result) {
	case EPROTO:
		return "the answer is not ok";
	case EBADMSG:
		return "the program says more than a line for each check";
	case EPIPE:
		return "the program has ended";
	case ETIMEDOUT:
		return "no answer in time";
	default:
		return strerror(-result);
	}
}

static void log_change(const struct health *h, int result, uint64_t now_ns)
{
	if (result == 0 && h->result < 0)
		log_notice("health: %s answers again after %.1f s", h->target,
			(double)(now_ns - h->failing_since_ns) / NSEC_PER_SEC);
	else if (result < 0 && result != h->result)
		log_warning("health: %s: %s", h->target, health_describe(result));
}

static void finish_check(struct health *h, int result)
{
	uint64_t now_ns = clock_mono_ns();

	if (!h->checking)
		return;
	h->checking = false;
	loop_set_timer(h->limit_timer, 0, 0);
	loop_set_timer(h->retry_timer, 0, 0);
	drop_connection(h);
	if (result < 0 && h->failing_since_ns == 0)
		h->failing_since_ns = h->began_ns;
	log_change(h, result, now_ns);
	if (result == 0) {
		h->failing_since_ns = 0;
		h->answer_ns = now_ns - h->began_ns;
		h->was_well = true;
	}
	h->result = result;
	if (h->callback)
		h->callback(h->userdata, result);
}

/* A connection */

static void on_greeting(struct health *h)
{
	char byte;
	ssize_t n = recv(h->fd, &byte, sizeof(byte), MSG_DONTWAIT);

	if (n > 0)
		finish_check(h, 0);
	else if (n == 0)
		finish_check(h, -ECONNRESET);
	else if (errno != EAGAIN && errno != EINTR)
		finish_check(h, -errno);
}

static void on_connection(void *userdata, uint64_t events);

static void expect(struct health *h, uint32_t events)
{
	int r;

	h->source = loop_remove(h->source);
	r = loop_add_fd(h->loop, h->fd, events, on_connection, h, &h->source);
	if (r < 0)
		finish_check(h, r);
}

static void on_connected(struct health *h)
{
	h->connected = true;
	if (h->greeting)
		expect(h, EPOLLIN);
	else
		finish_check(h, 0);
}

static void on_connection(void *userdata, uint64_t events)
{
	struct health *h = userdata;
	socklen_t size = sizeof(int);
	int error = 0;

	(void)events;
	if (h->connected) {
		on_greeting(h);
		return;
	}
	if (getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error)
		finish_check(h, -error);
	else
		on_connected(h);
}

static void try_connect(struct health *h)
{
	h->fd = socket(h->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (h->fd < 0) {
		finish_check(h, -errno);
	} else if (connect(h->fd, (const struct sockaddr *)&h->address, h->address_size) == 0) {
		on_connected(h);
	} else if (errno == EINPROGRESS) {
		expect(h, EPOLLOUT);
	} else if (errno == EAGAIN) {
		drop_connection(h);
		loop_set_timer(h->retry_timer, RETRY_NS, 0);
	} else {
		finish_check(h, -errno);
	}
}

static void on_retry(void *userdata, uint64_t expirations)
{
	struct health *h = userdata;

	(void)expirations;
	if (h->checking)
		try_connect(h);
}

/* A program */

static void lose_child(struct health *h, int error)
{
	h->source = loop_remove(h->source);
	health_child_kill(&h->child);
	h->child_error = error;
	h->revive_ns = clock_mono_ns() + h->interval_ns;
	finish_check(h, error);
}

/* Why one has just ended that is still to be asked, on_child() will read. */
static void ask_child(struct health *h)
{
	if (h->child.fd < 0)
		finish_check(h, h->child_error);
	else
		h->asked = health_child_ask(&h->child) == 0;
}

static void on_child(void *userdata, uint64_t events)
{
	struct health *h = userdata;
	bool ok = false;
	int r;

	(void)events;
	/* One that talks unasked is ended, so that none keeps the loop here. */
	for (;;) {
		bool owed = h->child.owes;

		r = health_child_read(&h->child, &ok);
		if (r > 0 && !owed)
			r = -EBADMSG;
		if (r <= 0)
			break;
		if (h->checking && h->asked)
			finish_check(h, ok ? 0 : -EPROTO);
		else if (h->checking)
			ask_child(h); /* that was the answer to an older question */
	}
	if (r < 0)
		lose_child(h, r);
}

static void start_child(struct health *h)
{
	int r = health_child_start(&h->child, h->target);

	if (r == 0)
		r = loop_add_fd(h->loop, h->child.fd, EPOLLIN, on_child, h, &h->source);
	if (r < 0) {
		health_child_kill(&h->child);
		h->child_error = r;
		log_warning("health: %s cannot be started: %s", h->target, strerror(-r));
	}
}

static void revive_child(struct health *h, uint64_t now_ns)
{
	if (!h->is_command || h->child.fd >= 0 || now_ns < h->revive_ns ||
		!health_child_is_gone(&h->child))
		return;
	h->revive_ns = now_ns + h->interval_ns;
	start_child(h);
}

/* All checks */

static void on_begin(void *userdata, uint64_t expirations)
{
	struct health *h = userdata;
	uint64_t now_ns = clock_mono_ns();

	(void)expirations;
	/* When timeout is interval, both timers are due at once. */
	if (h->checking && now_ns - h->began_ns < h->timeout_ns)
		return;
	finish_check(h, -ETIMEDOUT);
	h->checking = true;
	h->asked = false;
	h->began_ns = now_ns;
	loop_set_timer(h->limit_timer, h->timeout_ns, 0);
	if (!h->is_command)
		try_connect(h);
	else if (!h->child.owes)
		ask_child(h);
}

static void on_limit(void *userdata, uint64_t expirations)
{
	(void)expirations;
	finish_check(userdata, -ETIMEDOUT);
}

static int health_start(struct health *h)
{
	int r = loop_add_timer(h->loop, on_begin, h, &h->begin_timer);

	if (r == 0)
		r = loop_add_timer(h->loop, on_limit, h, &h->limit_timer);
	if (r == 0)
		r = loop_add_timer(h->loop, on_retry, h, &h->retry_timer);
	if (r < 0)
		return r;
	if (h->is_command)
		start_child(h);
	return loop_set_timer(h->begin_timer, 1, h->interval_ns);
}

int health_new(struct loop *loop, const struct config *config, struct health **ret_health)
{
	struct health *h;
	int r = 0;

	*ret_health = NULL;
	if (!config->health.connect[0] && !config->health.command[0])
		return 0;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->loop = loop;
	h->fd = -1;
	h->child = HEALTH_CHILD_NONE;
	h->is_command = config->health.command[0] != '\0';
	h->greeting = config->health.greeting;
	h->interval_ns = config->health.interval_ns;
	h->timeout_ns = config->health.timeout_ns;
	text_copy(h->target, sizeof(h->target),
		h->is_command ? config->health.command : config->health.connect);
	if (!h->is_command)
		r = address_parse(h->target, &h->address, &h->address_size);
	if (r == 0)
		r = health_start(h);
	if (r < 0) {
		health_free(h);
		return r;
	}
	*ret_health = h;
	return 0;
}

struct health *health_free(struct health *h)
{
	const struct timespec pause = { .tv_nsec = 5 * NSEC_PER_MSEC };

	if (!h)
		return NULL;
	drop_connection(h);
	loop_remove(h->source);
	loop_remove(h->retry_timer);
	loop_remove(h->limit_timer);
	loop_remove(h->begin_timer);
	health_child_kill(&h->child);
	/* One that hangs in the kernel stays a zombie of this process: better than to hang with it. */
	for (unsigned int i = 0; i < REAP_TRIES && !health_child_is_gone(&h->child); i++)
		nanosleep(&pause, NULL);
	free(h);
	return NULL;
}

void health_set_callback(struct health *h, health_callback callback, void *userdata)
{
	h->callback = callback;
	h->userdata = userdata;
}

void health_get(const struct health *h, uint64_t now_ns, struct watch_health *ret_health)
{
	uint64_t since_ns = 0;

	*ret_health = (struct watch_health){ .present = h != NULL, .failing_s = NAN };
	if (h)
		ret_health->serial = h->serial;
	/* That nothing asks it says nothing of the service. */
	if (!h || !h->was_well || (h->is_command && h->child.fd < 0))
		return;
	if (h->failing_since_ns)
		since_ns = h->failing_since_ns;
	else if (h->checking)
		since_ns = h->began_ns;
	ret_health->failing_s = 0;
	if (since_ns && now_ns > since_ns)
		ret_health->failing_s = (double)(now_ns - since_ns) / NSEC_PER_SEC;
	ret_health->answer_ms = (double)h->answer_ns / NSEC_PER_MSEC;
}

void health_tell(struct health *h, struct watch *watch, bool incident_open)
{
	uint64_t now_ns = clock_mono_ns();
	struct watch_health said;

	if (h && !incident_open)
		revive_child(h, now_ns);
	health_get(h, now_ns, &said);
	watch_set_health(watch, &said, health_target(h));
}

void health_replace(struct health **health, struct loop *loop, const struct config *before,
	const struct config *config)
{
	uint32_t serial = *health ? (*health)->serial + 1 : 0;
	int r;

	if (before && memcmp(&before->health, &config->health, sizeof(config->health)) == 0)
		return;
	*health = health_free(*health);
	r = health_new(loop, config, health);
	if (r < 0)
		log_warning("health is not checked: %s", strerror(-r));
	else if (*health)
		(*health)->serial = serial;
}

const char *health_target(const struct health *h)
{
	return h ? h->target : "";
}
