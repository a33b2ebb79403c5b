/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What the daemon does with requests and signals while it runs and while it stops. */
#include "test_session_setup.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/control.h"
#include "daemon/internal.h"

static const char *ask(struct daemon *d, const char *request, uid_t uid)
{
	static char buf[CONTROL_MESSAGE_MAX];
	struct text answer = TEXT_ON(buf);

	text_reset(&answer);
	daemon_answer(d, request, uid, &answer);
	return buf;
}

static void test_a_trigger_opens_an_incident(void **state)
{
	struct fixture *f = *state;
	struct daemon d = { .config = &f->config, .session = f->session, .watch = f->watch };

	assert_non_null(strstr(ask(&d, "trigger 1000000000", 1000), "only root"));
	assert_int_equal(state_of(f), SESSION_IDLE);
	assert_non_null(strstr(ask(&d, "trigger 1000000000", 0), "\"incident\":\""));
	assert_int_equal(state_of(f), SESSION_TRACING);
	session_stop(f->session, RECORD_REASON_stopped);
}

/* It would have to wait for the incident, and a manager kills who does not end. */
static void test_a_daemon_that_stops_opens_no_incident(void **state)
{
	struct fixture *f = *state;
	struct daemon d = { .config = &f->config, .session = f->session, .stopping = true };
	const char *answer = ask(&d, "trigger 1000000000", 0);

	assert_non_null(strstr(answer, "\"error\":\"the daemon is stopping"));
	assert_null(strstr(answer, "\"incident\""));
	assert_null(daemon_trigger(&d, DAEMON_HOLD_NS));
	assert_int_equal(state_of(f), SESSION_IDLE);
	assert_int_equal(session_incidents_count(f->session), 0);
}

/* Or whoever repeats a request to stop would put off the end. */
static void test_a_repeated_request_to_stop_does_not_put_off_the_end(void **state)
{
	struct fixture *f = *state;
	const struct daemon_options foreground = { .foreground = true };
	struct daemon d = { .o = &foreground,
		.loop = f->loop,
		.session = f->session,
		.stop_timer = f->step_timer };
	uint64_t limit_ns;

	daemon_handle_signal(&d, SIGHUP);
	assert_true(d.stopping);
	limit_ns = d.stop_limit_ns;
	assert_true(limit_ns > clock_mono_ns());
	daemon_handle_signal(&d, SIGHUP);
	assert_int_equal(d.stop_limit_ns, limit_ns);
}

/* The manager would wait for the end of a reload that never comes. */
static void test_a_daemon_that_stops_announces_no_reload(void **state)
{
	struct fixture *f = *state;
	const struct daemon_options background = { .foreground = false };
	struct daemon d = { .o = &background, .session = f->session, .watch = f->watch };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char message[64];

	snprintf(address.sun_path, sizeof(address.sun_path), "%.64s/notify", f->t->procfs);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	/* The reload itself would wait until it is closed. */
	daemon_trigger(&d, DAEMON_HOLD_NS);
	d.stopping = true;
	daemon_handle_signal(&d, SIGHUP);
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(recv(fd, message, sizeof(message), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_false(d.reload_wanted);
	session_stop(f->session, RECORD_REASON_stopped);
}

static void on_limit(void *userdata, uint64_t expirations)
{
	(void)userdata;
	(void)expirations;
}

/* Whose threads are still being scanned: it is older than the incident, and so in its history. */
static void test_a_trigger_ends_the_sample_that_has_begun(void **state)
{
	struct fixture *f = *state;
	struct daemon d = { .session = f->session, .watch = f->watch };
	unsigned int count;

	assert_int_equal(loop_add_timer(f->loop, on_limit, NULL, &d.sample_limit), 0);
	tree_sample(f->t, f->watch, 1000);
	count = watch_history_count(f->watch);
	assert_int_equal(watch_begin_sample(f->watch, false), 0);
	assert_int_equal(watch_history_count(f->watch), count);
	daemon_trigger(&d, DAEMON_HOLD_NS);
	assert_int_equal(watch_history_count(f->watch), count + 1);
	session_stop(f->session, RECORD_REASON_stopped);
	loop_remove(d.sample_limit);
}

/* Memory that was short once is not short for ever, and a try takes CPU time. */
static void test_more_room_is_tried_more_and_more_seldom(void **state)
{
	static const uint64_t minutes[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
	struct fixture *f = *state;
	struct daemon d = { .config = &f->config, .session = f->session };

	for (size_t i = 0; i < ARRAY_SIZE(minutes); i++) {
		uint64_t pause_ns = minutes[i] * 60 * NSEC_PER_SEC, before_ns = clock_mono_ns();

		daemon_next_loaded(&d, -ENOMEM);
		assert_int_equal(d.grow_pause_ns, pause_ns);
		assert_in_range(d.grow_after_ns, before_ns + pause_ns, clock_mono_ns() + pause_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		session_test(test_a_trigger_opens_an_incident),
		session_test(test_a_daemon_that_stops_opens_no_incident),
		session_test(test_a_repeated_request_to_stop_does_not_put_off_the_end),
		session_test(test_a_trigger_ends_the_sample_that_has_begun),
		session_test(test_a_daemon_that_stops_announces_no_reload),
		session_test(test_more_room_is_tried_more_and_more_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
