/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "health/health.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "health/child.h"
#include "util/address.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/detached_worker.h"
#include "util/log.h"
#include "util/passwd.h"
#include "util/text.h"
#include "watch/watch.h"

/* The deepest call connects. */
#define THREAD_STACK_BYTES (24 * 1024)
/* 100 ms at most, at exit and at a reload. */
#define REAP_TRIES 20

/* Of the thread while it is busy. */
struct connection {
	struct sockaddr_storage address;
	socklen_t address_size;
	bool greeting;
	uint64_t timeout_ns;
	int result;
};

struct health {
	struct loop *loop;
	char target[sizeof(((struct config *)NULL)->health.command)];
	bool is_command;
	char run_as[sizeof(((struct config *)NULL)->health.run_as)];
	struct health_accounts accounts;
	bool greeting;
	uint64_t interval_ns;
	uint64_t timeout_ns;
	struct loop_source *begin_timer;
	struct loop_source *limit_timer;
	struct loop_source *source; /* answers of the thread or the program */
	struct detached_worker *thread;
	struct connection *connection; /* owned by the thread */
	int done_fd;
	struct health_child child;
	int child_error; /* why there is no child */
	uint64_t revive_ns;
	uint32_t serial; /* counts the configurations of the check */
	health_callback callback;
	void *userdata;

	bool checking;
	bool asked;    /* the program or the thread was asked in this check */
	bool was_well; /* a check has succeeded once; before that, no failure counts */
	int result;    /* result of the last check */
	uint64_t began_ns;
	uint64_t failing_since_ns; /* when the first failed check began; 0: the last succeeded */
	uint64_t answer_ns;	   /* how long the last good answer took */
};

const char *health_describe(int result)
{
	switch (-result) {
	case EPROTO:
		return "the answer is not \"ok\"";
	case EBADMSG:
		return "the program wrote more than one line for a check";
	case EPIPE:
		return "the program has ended";
	case ETIMEDOUT:
		return "no answer within health.timeout";
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

/* A connection, on the thread: the kernel looks up the path of a socket on a disk that may hang */

static int set_limit(int fd, int option, uint64_t end_ns)
{
	uint64_t now_ns = clock_mono_ns();
	/* 0 would be no limit. */
	uint64_t left_ns = now_ns + NSEC_PER_USEC < end_ns ? end_ns - now_ns : NSEC_PER_USEC;
	const struct timeval limit = {
		.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
		.tv_usec = (suseconds_t)(left_ns % NSEC_PER_SEC / NSEC_PER_USEC),
	};

	return setsockopt(fd, SOL_SOCKET, option, &limit, sizeof(limit));
}

static int check_connection(const struct connection *c)
{
	uint64_t end_ns = clock_mono_ns() + c->timeout_ns;
	_cleanup_close_ int fd = socket(c->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;
	ssize_t n;

	if (fd < 0 || set_limit(fd, SO_SNDTIMEO, end_ns) < 0 ||
		connect(fd, (const struct sockaddr *)&c->address, c->address_size) < 0)
		return errno == EINPROGRESS || errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (!c->greeting)
		return 0;
	if (set_limit(fd, SO_RCVTIMEO, end_ns) < 0)
		return -errno;
	n = recv(fd, &byte, sizeof(byte), 0);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return n > 0 ? 0 : -ECONNRESET;
}

static void run(void *state, const int *fds)
{
	struct connection *c = state;

	(void)fds;
	c->result = check_connection(c);
}

/* A connection, on the event loop */

/* If it still tries for the check before, on_connection() asks. */
static void ask_thread(struct health *h)
{
	if (detached_worker_is_busy(h->thread))
		return;
	h->asked = true;
	detached_worker_start(h->thread);
}

static void on_connection(void *userdata, uint64_t events)
{
	struct health *h = userdata;
	eventfd_t ignored;

	(void)events;
	eventfd_read(h->done_fd, &ignored);
	if (!h->checking || detached_worker_is_busy(h->thread))
		return;
	if (h->asked)
		finish_check(h, h->connection->result);
	else
		ask_thread(h);
}

static int start_thread(struct health *h)
{
	struct detached_worker_options options = {
		.run = run,
		.stack_bytes = THREAD_STACK_BYTES,
	};
	struct connection *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->greeting = h->greeting;
	c->timeout_ns = h->timeout_ns;
	r = address_parse(h->target, &c->address, &c->address_size);
	h->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r == 0 && h->done_fd < 0)
		r = -errno;
	if (r < 0) {
		free(c);
		return r;
	}
	options.done_fd = h->done_fd;
	r = detached_worker_new(&options, c, &h->thread);
	if (r < 0)
		return r;
	h->connection = c;
	return loop_add_fd(h->loop, h->done_fd, EPOLLIN, on_connection, h, &h->source);
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

/* If the program has just ended, on_child() will find out why. */
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
	/*
	 * A program that writes without being asked is killed, so that it cannot keep the loop
	 * busy.
	 */
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
			ask_child(h); /* this was the answer to an older question */
	}
	if (r < 0)
		lose_child(h, r);
}

struct account_search {
	const char *run_as;
	struct health_accounts *accounts;
};

static void take_account(bool *has, struct program_user *account, const struct passwd_user *user)
{
	/* The first one of a name counts, as for everybody else. */
	if (!*has)
		*account = (struct program_user){ user->uid, user->gid };
	*has = true;
}

static void compare_account(void *userdata, const struct passwd_user *user)
{
	struct account_search *search = userdata;
	struct health_accounts *a = search->accounts;

	if (strcmp(user->name, search->run_as) == 0)
		take_account(&a->has_run_as, &a->run_as, user);
	if (strcmp(user->name, "nobody") == 0)
		take_account(&a->has_nobody, &a->nobody, user);
}

void health_find_accounts(const char *path, const struct config *config,
	struct health_accounts *ret_accounts)
{
	struct account_search search = { config->health.run_as, ret_accounts };

	*ret_accounts = (struct health_accounts){ 0 };
	/* Where the file cannot be read, no account is found, and start_child() says so. */
	if (config->health.command[0])
		(void)passwd_read(path, compare_account, &search);
}

/* 0 also when there is no user to change to, because we are not root. */
static int choose_user(const struct health *h, struct program_user *ret_user)
{
	const struct health_accounts *a = &h->accounts;

	*ret_user = (struct program_user){ 0 };
	if (geteuid() != 0)
		return 0;
	if (!a->has_run_as) {
		log_notice("there is no user %s in /etc/passwd; health.command runs as nobody. "
			   "Create the user or set health.run_as, then reload the configuration",
			h->run_as);
		if (!a->has_nobody)
			return -ENOENT;
	}
	*ret_user = a->has_run_as ? a->run_as : a->nobody;
	if (ret_user->uid == 0)
		log_error("health.command is not started: %s is root; set health.run_as to a user "
			  "without privileges",
			h->run_as);
	return ret_user->uid == 0 ? -EPERM : 0;
}

static void start_child(struct health *h)
{
	struct program_user user;
	int r = choose_user(h, &user);

	if (r == 0)
		r = health_child_start(&h->child, h->target, &user);
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
	/* When timeout and interval are the same, both timers expire together. */
	if (h->checking && now_ns - h->began_ns < h->timeout_ns)
		return;
	finish_check(h, -ETIMEDOUT);
	h->checking = true;
	h->asked = false;
	h->began_ns = now_ns;
	loop_set_timer(h->limit_timer, h->timeout_ns, 0);
	if (!h->is_command)
		ask_thread(h);
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
	if (r == 0 && !h->is_command)
		r = start_thread(h);
	if (r < 0)
		return r;
	if (h->is_command)
		start_child(h);
	return loop_set_timer(h->begin_timer, 1, h->interval_ns);
}

int health_new(struct loop *loop, const struct config *config,
	const struct health_accounts *accounts, struct health **ret_health)
{
	struct health *h;
	int r;

	*ret_health = NULL;
	if (!config->health.connect[0] && !config->health.command[0])
		return 0;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->loop = loop;
	h->accounts = *accounts;
	h->done_fd = -1;
	h->child = HEALTH_CHILD_NONE;
	h->is_command = config->health.command[0] != '\0';
	h->greeting = config->health.greeting;
	h->interval_ns = config->health.interval_ns;
	h->timeout_ns = config->health.timeout_ns;
	text_copy(h->target, sizeof(h->target),
		h->is_command ? config->health.command : config->health.connect);
	text_copy(h->run_as, sizeof(h->run_as), config->health.run_as);
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
	loop_remove(h->source);
	detached_worker_free(h->thread);
	close_fd(h->done_fd);
	loop_remove(h->limit_timer);
	loop_remove(h->begin_timer);
	health_child_kill(&h->child);
	/*
	 * A program that hangs in the kernel stays a zombie: that is better than to hang with it.
	 */
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

void health_get(const struct health *h, uint64_t now_ns, struct record_health *ret_health)
{
	uint64_t since_ns = 0;

	*ret_health = (struct record_health){ .present = h != NULL, .failing_s = NAN };
	if (h)
		ret_health->serial = h->serial;
	/* If the service is not asked, nothing is known about it. */
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
	struct record_health said;

	if (h && !incident_open)
		revive_child(h, now_ns);
	health_get(h, now_ns, &said);
	watch_set_health(watch, &said, health_target(h));
}

void health_replace(struct health **health, struct loop *loop, const struct config *before,
	const struct config *config, const struct health_accounts *accounts)
{
	uint32_t serial = *health ? (*health)->serial + 1 : 0;
	int r;

	if (before && memcmp(&before->health, &config->health, sizeof(config->health)) == 0) {
		if (*health)
			(*health)->accounts = *accounts;
		return;
	}
	*health = health_free(*health);
	r = health_new(loop, config, accounts, health);
	if (r < 0)
		log_warning("the check of [health] cannot be started: %s", strerror(-r));
	else if (*health)
		(*health)->serial = serial;
}

const char *health_target(const struct health *h)
{
	return h ? h->target : "";
}
