/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs of the operator, [hook.NAME]: each is started, or connected to, while the host is well,
 * gets the lines of the next record, and its output is kept beside the record.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sinks/hook_output.h"
#include "sinks/sink.h"
#include "util/capability.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/passwd.h"
#include "util/program.h"

/*
 * Lines that the program has not read yet, beside what its socket holds: half of the room is for
 * those that few records have many of.
 */
#define QUEUE_BYTES (4 * (size_t)RECORD_LINE_SIZE)
#define QUEUE_BYTES_OF_MANY (QUEUE_BYTES / 2)

/* One that ends early, or cannot be started, is tried again so much later; then twice as late. */
#define RETRY_NS (10 * NSEC_PER_SEC)
#define RETRY_MAX_NS (300 * NSEC_PER_SEC)

/* Output that is not on disk by then is lost, so that the next one can be started. */
#define FILED_NS (10 * NSEC_PER_SEC)

/* How long one may run on when the daemon exits. */
#define EXIT_NS (1 * NSEC_PER_SEC)

enum hook_state {
	HOOK_NONE,     /* it does not run */
	HOOK_READY,    /* it waits for the first line */
	HOOK_TOLD,     /* it gets the lines of the open incident */
	HOOK_FINISHES, /* it has got all, and has until its limit */
	HOOK_FILED,    /* it has ended, and its output is to be kept */
};

struct hook {
	const char *name;
	char section[CONFIG_SECTION_SIZE];
	char command[sizeof(((struct config_hook *)NULL)->command)];
	struct sockaddr_un address;
	struct program program;
	uint64_t time_limit_ns;
	size_t output_max;
	enum hook_state state;
	int fd;
	pid_t pid; /* 0: none, or not a child of ours */
	char id[RECORD_ID_SIZE];
	uint64_t retry_ns; /* when the next one may be started */
	uint64_t pause_ns;
	uint64_t told_ns;  /* when it got its first line */
	uint64_t limit_ns; /* until it has to end, or its output to be on disk */
	uint64_t left_out; /* lines of this record */
	int logged_error;
	bool is_cut;
	char how[64]; /* "ended with status 1" */
	size_t queue_len;
	size_t output_len;
	char *queue;
	char *output;
};

struct hooks {
	bool is_open; /* an incident is */
	bool is_exit; /* none is started any more */
	struct hook_output *keeper;
	unsigned int count;
	struct hook list[CONFIG_HOOKS_MAX];
};

/* Starting it, while no incident is open */

static int connect_to(const struct sockaddr_un *address)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static void try_later(struct hook *h, uint64_t now_ns)
{
	h->retry_ns = now_ns + h->pause_ns;
	h->pause_ns = h->pause_ns * 2 < RETRY_MAX_NS ? h->pause_ns * 2 : RETRY_MAX_NS;
}

static void log_failure(const struct hook *h, int error)
{
	if (error == -ECHILD)
		log_warning("hook %s: it %s and was told of no incident; it is tried again",
			h->name, h->how);
	else
		log_warning("hook %s: cannot %s %s: %s; it is tried again", h->name,
			*h->command ? "run" : "connect to",
			*h->command ? h->command : h->address.sun_path, strerror(-error));
}

/* -ECHILD: it ran, and ended before an incident. Each error is told once. */
static void fail(struct hook *h, int error, uint64_t now_ns)
{
	if (error != h->logged_error)
		log_failure(h, error);
	h->logged_error = error;
	try_later(h, now_ns);
}

static void start(struct hook *h, uint64_t now_ns)
{
	int r;

	h->pid = 0;
	h->queue_len = h->output_len = 0;
	h->left_out = 0;
	h->is_cut = false;
	text_copy(h->how, sizeof(h->how), "closed its connection");
	if (*h->command) {
		r = program_start(&h->program, &h->pid, &h->fd);
	} else {
		h->fd = connect_to(&h->address);
		r = h->fd;
	}
	if (r < 0)
		fail(h, r, now_ns);
	else
		h->state = HOOK_READY;
}

/* Its output */

/* Whoever writes without end gets so much taken off in a second, and otherwise waits. */
#define DISCARD_BYTES (64 * 1024)

/* False when there will be no more. What does not fit is read all the same: it may end well. */
static bool read_output(struct hook *h)
{
	char rest[4096];
	size_t discarded = 0;

	while (h->fd >= 0 && discarded < DISCARD_BYTES) {
		const bool is_full = h->output_len == h->output_max;
		ssize_t n = is_full ? recv(h->fd, rest, sizeof(rest), MSG_DONTWAIT)
				    : recv(h->fd, h->output + h->output_len,
					      h->output_max - h->output_len, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		if (is_full)
			discarded += (size_t)n;
		else
			h->output_len += (size_t)n;
		h->is_cut |= is_full;
	}
	return h->fd >= 0;
}

/* How it ended, if it has. */
static bool has_ended(struct hook *h, bool is_silent)
{
	siginfo_t info = { 0 };

	if (h->pid == 0)
		return is_silent;
	if (waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid)
		return false;
	/* What it has started, and left behind. Until it is reaped, nobody else has the number. */
	kill(-h->pid, SIGKILL);
	waitpid(h->pid, NULL, WNOHANG);
	h->pid = 0;
	snprintf(h->how, sizeof(h->how), "ended with %s %d",
		info.si_code == CLD_EXITED ? "status" : "signal", info.si_status);
	/* What it wrote at last. */
	read_output(h);
	return true;
}

/* What it gets */

static void send_queue(struct hook *h)
{
	size_t sent = 0;

	while (sent < h->queue_len) {
		ssize_t n = send(h->fd, h->queue + sent, h->queue_len - sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		/* Where it has closed its side, has_ended() will tell. */
		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	h->queue_len -= sent;
	memmove(h->queue, h->queue + sent, h->queue_len);
}

static bool is_one_of_few(enum record_type type)
{
	return type == RECORD_OPEN || type == RECORD_VERDICT || type == RECORD_CLOSE;
}

static void add_line(struct hook *h, enum record_type type, const struct text *json)
{
	const size_t room = is_one_of_few(type) ? QUEUE_BYTES : QUEUE_BYTES_OF_MANY;

	send_queue(h);
	if (h->queue_len + json->len > room) {
		h->left_out++;
		return;
	}
	memcpy(h->queue + h->queue_len, json->buf, json->len);
	h->queue_len += json->len;
	send_queue(h);
}

/* Its end */

static void log_end(const struct hook *h, uint64_t now_ns)
{
	char buf[512];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_addf(&t, "hook %s: %s %.1f s after incident %s began", h->name, h->how,
		(double)(now_ns - h->told_ns) / NSEC_PER_SEC, h->id);
	if (h->left_out)
		text_addf(&t, "; it read too slowly, so %llu lines were left out",
			(unsigned long long)h->left_out);
	if (h->output_len)
		text_addf(&t, "; its output, %zu bytes%s, goes to %s.d/%s.out", h->output_len,
			h->is_cut ? " and cut there (output_bytes)" : "", h->id, h->name);
	log_notice("%s", buf);
}

static void stop(struct hook *h)
{
	h->fd = close_fd(h->fd);
	if (h->pid <= 0)
		return;
	kill(-h->pid, SIGKILL);
	/* Where it leads no session yet. */
	kill(h->pid, SIGKILL);
}

static void finish(struct hook *h, uint64_t now_ns)
{
	const int error = program_error(h->output, h->output_len);

	/* Its file hung when it was started. */
	if (error < 0) {
		snprintf(h->how, sizeof(h->how), "could not be run (%s)", strerror(-error));
		h->output_len = 0;
	}
	log_end(h, now_ns);
	stop(h);
	h->pause_ns = RETRY_NS;
	h->retry_ns = 0;
	h->limit_ns = now_ns + FILED_NS;
	h->state = h->output_len ? HOOK_FILED : HOOK_NONE;
}

/* It was to wait for an incident. */
static void tick_ready(struct hook *h, uint64_t now_ns)
{
	const bool is_silent = !read_output(h);
	int r;

	if (!has_ended(h, is_silent))
		return;
	r = program_error(h->output, h->output_len);
	stop(h);
	h->state = HOOK_NONE;
	fail(h, r < 0 ? r : -ECHILD, now_ns);
}

static void tick_finishing(struct hook *h, uint64_t now_ns)
{
	const bool is_silent = !read_output(h);

	if (h->queue_len) {
		send_queue(h);
		if (!h->queue_len)
			shutdown(h->fd, SHUT_WR);
	}
	if (has_ended(h, is_silent)) {
		finish(h, now_ns);
	} else if (now_ns >= h->limit_ns) {
		text_copy(h->how, sizeof(h->how), "was ended at its limit (time_limit),");
		finish(h, now_ns);
	}
}

static void tick_told(struct hook *h, uint64_t now_ns)
{
	const bool is_silent = !read_output(h);

	send_queue(h);
	if (has_ended(h, is_silent))
		finish(h, now_ns);
}

/* Where the disk hangs under another output, the next incident has to be told all the same. */
static void tick_filed(struct hooks *hooks, struct hook *h, uint64_t now_ns)
{
	if (hook_output_keep(hooks->keeper, h->id, h->name, h->output, h->output_len)) {
		h->state = HOOK_NONE;
	} else if (now_ns >= h->limit_ns) {
		log_warning(
			"hook %s: its output for incident %s is lost: record.dir does not answer",
			h->name, h->id);
		h->state = HOOK_NONE;
	}
}

static void hook_tick(void *state, uint64_t now_ns)
{
	struct hooks *hooks = state;

	for (unsigned int i = 0; i < hooks->count; i++) {
		struct hook *h = &hooks->list[i];

		switch (h->state) {
		case HOOK_NONE:
			/* The one before is reaped first. */
			if (has_ended(h, true) && !hooks->is_open && !hooks->is_exit &&
				now_ns >= h->retry_ns)
				start(h, now_ns);
			break;
		case HOOK_READY:
			tick_ready(h, now_ns);
			break;
		case HOOK_TOLD:
			tick_told(h, now_ns);
			break;
		case HOOK_FINISHES:
			tick_finishing(h, now_ns);
			break;
		case HOOK_FILED:
			tick_filed(hooks, h, now_ns);
			break;
		}
	}
}

static void begin(struct hook *h, const struct record *r)
{
	if (h->state != HOOK_READY) {
		log_warning("hook %s: not told of incident %s: %s", h->name, r->incident,
			h->state == HOOK_NONE ? "it does not run"
					      : "it is busy with the one before");
		return;
	}
	h->state = HOOK_TOLD;
	h->told_ns = r->mono_ns;
	h->logged_error = 0;
	text_copy(h->id, sizeof(h->id), r->incident);
}

static void end(struct hook *h, const struct record *r)
{
	h->state = HOOK_FINISHES;
	h->limit_ns = r->mono_ns + h->time_limit_ns;
	if (!h->queue_len)
		shutdown(h->fd, SHUT_WR);
}

static void hook_write(void *state, const struct record *r, const struct text *json)
{
	struct hooks *hooks = state;

	hooks->is_open = r->type != RECORD_CLOSE;
	for (unsigned int i = 0; i < hooks->count; i++) {
		struct hook *h = &hooks->list[i];

		if (r->type == RECORD_OPEN)
			begin(h, r);
		if (h->state != HOOK_TOLD)
			continue;
		add_line(h, r->type, json);
		if (r->type == RECORD_CLOSE)
			end(h, r);
	}
}

/* One that reads no more than it needs is no loss; log_end() tells. */
static uint64_t hook_dropped(const void *state)
{
	(void)state;
	return 0;
}

/* Those that have got all have a moment to end. */
static bool hook_flushed(void *state)
{
	const uint64_t now_ns = clock_mono_ns();
	struct hooks *hooks = state;

	for (unsigned int i = 0; i < hooks->count && !hooks->is_exit; i++)
		if (hooks->list[i].limit_ns > now_ns + EXIT_NS)
			hooks->list[i].limit_ns = now_ns + EXIT_NS;
	hooks->is_exit = true;
	hook_tick(hooks, now_ns);
	for (unsigned int i = 0; i < hooks->count; i++)
		if (hooks->list[i].state > HOOK_TOLD)
			return false;
	return !hook_output_is_busy(hooks->keeper);
}

static void hook_close(void *state)
{
	struct hooks *hooks = state;

	for (unsigned int i = 0; i < hooks->count; i++) {
		stop(&hooks->list[i]);
		free(hooks->list[i].queue);
		free(hooks->list[i].output);
	}
	hook_output_free(hooks->keeper);
	free(hooks);
}

struct search {
	const char *name;
	struct program_user user;
	bool found;
};

static void take_user(void *userdata, const struct passwd_user *user)
{
	struct search *s = userdata;

	if (s->found || strcmp(user->name, s->name) != 0)
		return;
	s->found = true;
	s->user = (struct program_user){ user->uid, user->gid };
}

/* -ENOENT: there is no such user. */
static int find_user(const char *name, struct program_user *ret_user)
{
	struct search s = { .name = name };

	/* Nobody but root can become another one. */
	*ret_user = (struct program_user){ 0 };
	if (geteuid() != 0)
		return 0;
	passwd_read(PASSWD_FILE, take_user, &s);
	*ret_user = s.user;
	return s.found && s.user.uid != 0 ? 0 : -ENOENT;
}

static int add_hook(struct hooks *hooks, const struct config_hook *config)
{
	struct hook *h = &hooks->list[hooks->count++];
	int r;

	*h = (struct hook){ .fd = -1,
		.pause_ns = RETRY_NS,
		.time_limit_ns = config->time_limit_ns,
		.output_max = config->output_bytes,
		.address = { .sun_family = AF_UNIX } };
	text_copy(h->section, sizeof(h->section), config->section);
	text_copy(h->command, sizeof(h->command), config->command);
	text_copy(h->address.sun_path, sizeof(h->address.sun_path), config->socket);
	h->name = h->section + strlen(CONFIG_HOOK_SECTION);
	h->program =
		(struct program){ .path = h->command, .leads_session = true, .with_stderr = true };
	h->queue = malloc(QUEUE_BYTES);
	h->output = malloc(h->output_max + 1);
	if (!h->queue || !h->output)
		return -ENOMEM;
	capability_parse(config->capabilities, &h->program.capabilities);
	r = *h->command ? find_user(config->run_as, &h->program.user) : 0;
	if (r < 0) {
		log_warning(
			"hook %s: there is no user %s (hook.%s.run_as), or it is root; the hook is off",
			h->name, config->run_as, h->name);
		free(h->queue);
		free(h->output);
		hooks->count--;
	}
	return 0;
}

static int hook_open(const struct sinks_options *options, void **ret_state)
{
	const struct config *config = options->config;
	struct hooks *hooks = calloc(1, sizeof(*hooks));
	size_t output_max = 0;
	int r = hooks ? 0 : -ENOMEM;

	for (unsigned int i = 0; r == 0 && i < config->hooks_count; i++) {
		if (!*config->hooks[i].command && !*config->hooks[i].socket)
			continue;
		r = add_hook(hooks, &config->hooks[i]);
		if (config->hooks[i].output_bytes > output_max)
			output_max = config->hooks[i].output_bytes;
	}
	if (r == 0)
		r = hook_output_new(config->record.dir, output_max, &hooks->keeper);
	if (r < 0) {
		if (hooks)
			hook_close(hooks);
		return r;
	}
	hook_tick(hooks, clock_mono_ns());
	*ret_state = hooks;
	return 0;
}

static bool hook_is_used(const struct config *config, bool foreground)
{
	return !foreground && config->hooks_count > 0;
}

const struct sink sink_hook = {
	.name = "hook",
	.is_used = hook_is_used,
	.open = hook_open,
	.write = hook_write,
	.tick = hook_tick,
	.dropped = hook_dropped,
	.flushed = hook_flushed,
	.close = hook_close,
};
