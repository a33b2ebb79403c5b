/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The check of one's own: sockets that answer, refuse, or hang, and programs that do. */
#include "test_watch_tree.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "health/health.h"
#include "util/address.h"
#include "util/cleanup.h"
#include "util/passwd.h"

#define MS NSEC_PER_MSEC
/* What answers, answers long before. */
#define LONG_NS (20 * NSEC_PER_SEC)
#define CLIENTS_MAX 64

struct rig;
/* Called with the result of each check; the next one takes over when it returns true. */
typedef bool (*step)(struct rig *r, int result);

struct rig {
	struct tree *t;
	struct loop *loop;
	struct loop_source *guard;
	struct loop_source *accepting;
	struct config config;
	struct health_accounts accounts;
	struct health *health;
	struct watch *watch;
	struct record_health said;
	char path[PATH_MAX + 16];
	int listen_fd;
	int clients[CLIENTS_MAX];
	unsigned int clients_count;
	const step *steps;
	bool guarded;
	bool incident_open;
};

static void on_result(void *userdata, int result)
{
	struct rig *r = userdata;

	health_tell(r->health, r->watch, r->incident_open);
	health_get(r->health, clock_mono_ns() + 3 * NSEC_PER_SEC, &r->said);
	if ((*r->steps)(r, result) && !*++r->steps)
		loop_stop(r->loop);
}

static void on_guard(void *userdata, uint64_t expirations)
{
	struct rig *r = userdata;

	(void)expirations;
	r->guarded = true;
	loop_stop(r->loop);
}

static void run(struct rig *r, const step *steps)
{
	r->steps = steps;
	health_find_accounts(PASSWD_FILE, &r->config, &r->accounts);
	assert_int_equal(health_new(r->loop, &r->config, &r->accounts, &r->health), 0);
	assert_non_null(r->health);
	health_set_callback(r->health, on_result, r);
	loop_set_timer(r->guard, 60 * NSEC_PER_SEC, 0);
	assert_int_equal(loop_run(r->loop), 0);
	assert_false(r->guarded);
}

static int setup(void **state)
{
	struct rig *r = tree_fixture_new(sizeof(*r));

	r->listen_fd = -1;
	r->watch = tree_watch(r->t);
	assert_int_equal(loop_new(&r->loop), 0);
	assert_int_equal(loop_add_timer(r->loop, on_guard, r, &r->guard), 0);
	config_set_defaults(&r->config);
	r->config.health.interval_ns = 5 * MS;
	r->config.health.timeout_ns = LONG_NS;
	snprintf(r->path, sizeof(r->path), "%s/s", r->t->root);
	snprintf(r->config.health.connect, sizeof(r->config.health.connect), "unix:%.100s",
		r->path);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	health_free(r->health);
	for (unsigned int i = 0; i < r->clients_count; i++)
		close(r->clients[i]);
	close_fd(r->listen_fd);
	watch_free(r->watch);
	loop_free(r->loop);
	return tree_fixture_free(r);
}

static int unix_socket(struct rig *r, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%.100s", r->path);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void serve(struct rig *r, int backlog)
{
	struct sockaddr_un address;

	r->listen_fd = unix_socket(r, &address);
	assert_int_equal(bind(r->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(r->listen_fd, backlog), 0);
}

static bool stop_serving(struct rig *r, int result)
{
	assert_int_equal(result, 0);
	assert_true(r->said.present && r->said.failing_s <= 0 && r->said.answer_ms > 0);
	r->listen_fd = close_fd(r->listen_fd);
	return true;
}

static bool is_refused(struct rig *r, int result)
{
	assert_int_equal(result, -ECONNREFUSED);
	/* As of 3 s later. */
	assert_true(r->said.failing_s > 2.9);
	unlink(r->path);
	return true;
}

static bool is_missing(struct rig *r, int result)
{
	assert_int_equal(result, -ENOENT);
	assert_true(r->said.failing_s > 2.9);
	serve(r, 8);
	return true;
}

static bool is_well(struct rig *r, int result)
{
	assert_int_equal(result, 0);
	assert_true(r->said.failing_s <= 0);
	return true;
}

static void test_connection(void **state)
{
	static const step steps[] = { stop_serving, is_refused, is_missing, is_well, NULL };
	struct rig *r = *state;

	serve(r, 8);
	run(r, steps);
	assert_string_equal(health_target(r->health), r->config.health.connect);
}

static bool is_not_judged(struct rig *r, int result)
{
	assert_int_equal(result, -ENOENT);
	assert_true(r->said.present && isnan(r->said.failing_s));
	return true;
}

/* What has never worked says nothing of a freeze. */
static void test_never_well(void **state)
{
	static const step steps[] = { is_not_judged, is_not_judged, NULL };

	run(*state, steps);
}

static void fill_backlog(struct rig *r)
{
	struct sockaddr_un address;

	for (;;) {
		int fd = unix_socket(r, &address);

		assert_true(r->clients_count < CLIENTS_MAX);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
			close(fd);
			return;
		}
		r->clients[r->clients_count++] = fd;
	}
}

static bool is_late(struct rig *r, int result)
{
	(void)r;
	assert_int_equal(result, -ETIMEDOUT);
	return true;
}

static void on_accept(void *userdata, uint64_t events)
{
	struct rig *r = userdata;
	int fd = accept(r->listen_fd, NULL, NULL);

	(void)events;
	if (fd >= 0) {
		/* It may have given up already. */
		(void)send(fd, "hello", 5, MSG_NOSIGNAL | MSG_DONTWAIT);
		assert_true(r->clients_count < CLIENTS_MAX);
		r->clients[r->clients_count++] = fd;
	}
}

static bool accept_all(struct rig *r, int result)
{
	assert_int_equal(result, -ETIMEDOUT);
	assert_int_equal(loop_add_fd(r->loop, r->listen_fd, EPOLLIN, on_accept, r, &r->accepting),
		0);
	return true;
}

static bool is_well_again(struct rig *r, int result)
{
	(void)r;
	/* On a busy machine one more may be late. */
	return result == 0;
}

static void test_full_backlog(void **state)
{
	static const step steps[] = { is_late, accept_all, is_well_again, NULL };
	struct rig *r = *state;

	r->config.health.timeout_ns = r->config.health.interval_ns = 30 * MS;
	serve(r, 0);
	fill_backlog(r);
	run(r, steps);
	loop_remove(r->accepting);
}

/* The kernel takes the connection for a server that is stopped; only its word tells. */
static void test_greeting(void **state)
{
	static const step steps[] = { is_late, accept_all, is_well_again, NULL };
	struct rig *r = *state;

	r->config.health.greeting = true;
	r->config.health.timeout_ns = r->config.health.interval_ns = 30 * MS;
	serve(r, 32);
	run(r, steps);
	loop_remove(r->accepting);
}

static bool close_tcp(struct rig *r, int result)
{
	assert_int_equal(result, 0);
	r->listen_fd = close_fd(r->listen_fd);
	return true;
}

static bool is_refused_tcp(struct rig *r, int result)
{
	(void)r;
	assert_int_equal(result, -ECONNREFUSED);
	return true;
}

static void test_tcp(void **state)
{
	static const step steps[] = { close_tcp, is_refused_tcp, NULL };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct rig *r = *state;
	socklen_t size = sizeof(in);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(r->listen_fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(r->listen_fd, 8), 0);
	assert_int_equal(getsockname(r->listen_fd, (struct sockaddr *)&in, &size), 0);
	snprintf(r->config.health.connect, sizeof(r->config.health.connect), "127.0.0.1:%u",
		ntohs(in.sin_port));
	run(r, steps);
}

static void put_program(struct rig *r, const char *body)
{
	char path[PATH_MAX + 16];

	tree_put(r->t, "program", "#!/bin/sh\n%s\n", body);
	snprintf(path, sizeof(path), "%s/program", r->t->root);
	assert_int_equal(chmod(path, 0755), 0);
	/* It runs as another user if we are root. */
	assert_int_equal(chmod(r->t->root, 0777), 0);
	snprintf(r->config.health.command, sizeof(r->config.health.command), "%.200s", path);
}

static void test_command(void **state)
{
	static const step steps[] = { is_well, is_well, is_well, NULL };
	const struct timespec pause = { .tv_nsec = 10 * MS };
	struct rig *r = *state;

	/* One process for all checks, with nothing that it would inherit. */
	put_program(r,
		"n=0\n"
		"grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && exit 1\n"
		"[ \"$(id -u)\" = 0 ] && exit 1\n"
		"grep -q '^SigBlk:.*[1-9a-f]' /proc/self/status && exit 1\n"
		"while read -r line; do\n"
		"	[ \"$line\" = check ] && n=$((n + 1)) && echo ok\n"
		"	[ $n = 3 ] && : >\"${0%/*}/three\"\n"
		"done");
	run(r, steps);
	/* Written after the answer. */
	for (unsigned int i = 0; i < 1000 && access(r->path, F_OK) < 0; i++) {
		snprintf(r->path, sizeof(r->path), "%s/three", r->t->root);
		nanosleep(&pause, NULL);
	}
	assert_int_equal(access(r->path, F_OK), 0);
}

static bool is_no(struct rig *r, int result)
{
	(void)r;
	assert_int_equal(result, -EPROTO);
	return true;
}

static void test_other_answers(void **state)
{
	static const step steps[] = { is_no, is_no, is_no, is_well, is_no, is_well, NULL };

	put_program(*state,
		"read -r l; echo okay\n"
		"read -r l; echo 'ok '\n"
		"read -r l; echo\n"
		"read -r l; echo ok\n"
		"read -r l; printf '%0500d\\n' 1\n"
		"while read -r l; do echo ok; done");
	run(*state, steps);
}

static bool let_it_answer(struct rig *r, int result)
{
	assert_int_equal(result, -ETIMEDOUT);
	assert_int_equal(write(r->clients[0], "go\n", 3), 3);
	return true;
}

static bool is_no_in_the_end(struct rig *r, int result)
{
	(void)r;
	assert_true(result == -EPROTO || result == -ETIMEDOUT);
	return result == -EPROTO;
}

/* A late answer is to the question before, and does not pass for the next one's. */
static void test_late_answer(void **state)
{
	static const step steps[] = { is_late, let_it_answer, is_no_in_the_end, NULL };
	struct rig *r = *state;
	char fifo[PATH_MAX + 16];

	r->config.health.timeout_ns = r->config.health.interval_ns = 50 * MS;
	snprintf(fifo, sizeof(fifo), "%s/go", r->t->root);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(chmod(fifo, 0666), 0);
	r->clients[r->clients_count++] = open(fifo, O_RDWR | O_CLOEXEC);
	put_program(r,
		"read -r l; read -r x <\"${0%/*}/go\"; echo ok; while read -r l; do echo no; done");
	run(r, steps);
}

static bool has_ended(struct rig *r, int result)
{
	(void)r;
	/* The second check may find it dead, or find it die. */
	assert_int_equal(result, -EPIPE);
	return true;
}

static bool is_not_known(struct rig *r, int result)
{
	assert_int_equal(result, -EPIPE);
	assert_true(r->said.present && isnan(r->said.failing_s));
	return true;
}

/* It is not started again, and its end says nothing of the service. */
static void test_program_that_ends_in_an_incident(void **state)
{
	static const step steps[] = { is_well, is_not_known, is_not_known, NULL };
	struct rig *r = *state;

	r->incident_open = true;
	put_program(r, "read -r l; echo ok");
	run(r, steps);
}

static void test_another_configuration(void **state)
{
	struct rig *r = *state;
	struct config other = r->config;

	health_replace(&r->health, r->loop, NULL, &r->config, &r->accounts);
	health_get(r->health, 0, &r->said);
	assert_int_equal(r->said.serial, 0);
	health_replace(&r->health, r->loop, &r->config, &other, &r->accounts);
	health_get(r->health, 0, &r->said);
	assert_int_equal(r->said.serial, 0);
	other.health.greeting = !other.health.greeting;
	health_replace(&r->health, r->loop, &r->config, &other, &r->accounts);
	health_get(r->health, 0, &r->said);
	assert_int_equal(r->said.serial, 1);
}

static bool is_well_in_the_end(struct rig *r, int result)
{
	(void)r;
	assert_true(result == 0 || result == -EPIPE);
	return result == 0;
}

static void test_program_that_ends(void **state)
{
	static const step steps[] = { is_well, has_ended, is_well_in_the_end, has_ended, NULL };

	/* Started again each time, it answers one question. */
	put_program(*state, "read -r l; echo ok");
	run(*state, steps);
}

static bool talks_too_much(struct rig *r, int result)
{
	(void)r;
	/* What is said before the next question passes for its answer when it is read after it. */
	assert_true(result == 0 || result == -EBADMSG);
	return result == -EBADMSG;
}

static bool is_well_or_ended(struct rig *r, int result)
{
	(void)r;
	assert_true(result == 0 || result == -EBADMSG);
	return result == 0;
}

/* The loop goes on, and it is started again. */
static void test_program_that_talks(void **state)
{
	static const step steps[] = { is_well, talks_too_much, is_well_or_ended, NULL };

	put_program(*state, "read -r l; exec yes ok 2>/dev/null");
	run(*state, steps);
}

static bool is_no_or_ended(struct rig *r, int result)
{
	(void)r;
	assert_true(result == -EPROTO || result == -EBADMSG);
	return result == -EBADMSG;
}

static void test_program_without_an_end_of_line(void **state)
{
	static const step steps[] = { is_no, is_no_or_ended, NULL };

	put_program(*state, "read -r l; exec cat /dev/zero");
	run(*state, steps);
}

static bool is_not_there(struct rig *r, int result)
{
	(void)r;
	assert_int_equal(result, -ENOENT);
	return true;
}

static bool may_not_be_executed(struct rig *r, int result)
{
	(void)r;
	assert_int_equal(result, -EACCES);
	return true;
}

static void test_program_that_is_missing(void **state)
{
	static const step steps[] = { is_not_there, is_not_there, is_not_there, NULL };
	struct rig *r = *state;

	snprintf(r->config.health.command, sizeof(r->config.health.command), "/nonexistent");
	run(r, steps);
}

static void test_program_that_is_none(void **state)
{
	static const step steps[] = { may_not_be_executed, may_not_be_executed, NULL };
	struct rig *r = *state;

	put_program(r, "echo ok");
	assert_int_equal(chmod(r->config.health.command, 0644), 0);
	run(r, steps);
}

static void test_none(void **state)
{
	struct rig *r = *state;
	struct record_health said = { .present = true };

	r->config.health.connect[0] = '\0';
	assert_int_equal(health_new(r->loop, &r->config, &r->accounts, &r->health), 0);
	assert_null(r->health);
	health_get(NULL, 0, &said);
	assert_false(said.present);
	assert_string_equal(health_target(NULL), "");
	health_tell(NULL, r->watch, false);
	tree_sample(r->t, r->watch, 1000);
	assert_false(watch_last(r->watch)->health.present);
	assert_null(health_free(NULL));
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text;
		int family; /* 0: it is none */
	} cases[] = {
		{ "unix:/run/s", AF_UNIX },
		{ "unix:s", 0 },
		{ "unix:", 0 },
		{ "/run/s", 0 },
		{ "127.0.0.1:3306", AF_INET },
		{ "127.0.0.1", 0 },
		{ "127.0.0.1:", 0 },
		{ "127.0.0.1:0", 0 },
		{ "127.0.0.1:65535", AF_INET },
		{ "127.0.0.1:65536", 0 },
		{ "[::1]:3306", AF_INET6 },
		{ "::1:3306", 0 },
		{ "[::1]", 0 },
		{ "[::1:33", 0 },
		{ "localhost:3306", 0 },
		{ ":3306", 0 },
		{ "[]:1", 0 },
		{ "", 0 },
	};
	struct sockaddr_storage address;
	char text[200];
	socklen_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = address_parse(cases[i].text, &address, &size);

		assert_int_equal(r, cases[i].family ? 0 : -EINVAL);
		if (r == 0)
			assert_int_equal(address.ss_family, cases[i].family);
	}
	for (int len = 107; len <= 108; len++) {
		snprintf(text, sizeof(text), "unix:/%0*d", len - 1, 0);
		assert_int_equal(address_parse(text, &address, &size), len == 107 ? 0 : -EINVAL);
	}
}

#define health_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		health_test(test_connection),
		health_test(test_never_well),
		health_test(test_full_backlog),
		health_test(test_greeting),
		health_test(test_tcp),
		health_test(test_command),
		health_test(test_other_answers),
		health_test(test_late_answer),
		health_test(test_program_that_ends),
		health_test(test_program_that_ends_in_an_incident),
		health_test(test_another_configuration),
		health_test(test_program_that_talks),
		health_test(test_program_without_an_end_of_line),
		health_test(test_program_that_is_missing),
		health_test(test_program_that_is_none),
		health_test(test_none),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
