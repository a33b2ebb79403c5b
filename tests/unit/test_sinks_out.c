/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* journald and syslog: their messages, and that neither of them makes the writer wait. */
#include "test_sinks_dirs.h"

#include <sys/socket.h>
#include <sys/un.h>

#define MESSAGES 500

static int setup(void **state)
{
	struct dirs *d;
	int r = dirs_setup(state);

	if (r < 0)
		return r;
	d = *state;
	d->config.journal.enabled = true;
	d->config.syslog.enabled = true;
	snprintf(d->config.journal.socket, sizeof(d->config.journal.socket), "%s/journal", d->root);
	snprintf(d->config.syslog.socket, sizeof(d->config.syslog.socket), "%s/devlog", d->root);
	text_copy(d->config.record.dir, PATH_MAX, "/var/log/iostall");
	return 0;
}

#define WITH_SOCKETS(test) cmocka_unit_test_setup_teardown(test, setup, dirs_teardown)

static int bind_receiver(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	text_copy(address.sun_path, sizeof(address.sun_path), path);
	assert_int_equal(bind(fd, (const void *)&address, sizeof(address)), 0);
	return fd;
}

/* Returns the length of the message, or 0 when there is none. */
static size_t receive(int fd, char *buf, size_t size)
{
	ssize_t n = recv(fd, buf, size - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void test_journald_gets_two_entries(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	char buf[8192];

	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		dirs_write_record(sinks, type, 0);
	assert_true(receive(fd, buf, sizeof(buf)) > 0);
	assert_string_equal(buf,
		"MESSAGE=I/O incident 20261120T031207Z-0000 opened by utilisation 97.25 %, "
		"threshold 90 %, device sdb; record "
		"/var/log/iostall/20261120T031207Z-0000.jsonl\n"
		"MESSAGE_ID=8800df6988ea42819272e240613bf201\n"
		"PRIORITY=4\n"
		"SYSLOG_IDENTIFIER=iostall\n"
		"IOSTALL_INCIDENT=20261120T031207Z-0000\n"
		"IOSTALL_RULE=utilisation\n"
		"IOSTALL_DEVICE=sdb\n"
		"IOSTALL_VALUE=97.25\n"
		"IOSTALL_THRESHOLD=90.00\n"
		"IOSTALL_UNIT=%\n"
		"IOSTALL_RECORD=/var/log/iostall/20261120T031207Z-0000.jsonl\n");
	assert_true(receive(fd, buf, sizeof(buf)) > 0);
	assert_string_equal(buf,
		"MESSAGE=I/O incident 20261120T031207Z-0000 closed after 23.40 s: device sdb saturated "
		"(util 100 %): 92 % of 204.1 MiB read by mariadbd tid 2230, shop/orders.ibd, "
		"app@localhost, a statement running 31.00 s; 12 stalls, 3 "
		"stuck operations, the longest 4.20 s, 2 events or lines lost; opened by utilisation 97.25 %, "
		"threshold 90 %, device sdb; record "
		"/var/log/iostall/20261120T031207Z-0000.jsonl\n"
		"MESSAGE_ID=8ed725ce37e54f3184e9797a3706e25a\n"
		"PRIORITY=3\n"
		"SYSLOG_IDENTIFIER=iostall\n"
		"IOSTALL_INCIDENT=20261120T031207Z-0000\n"
		"IOSTALL_RULE=utilisation\n"
		"IOSTALL_DEVICE=sdb\n"
		"IOSTALL_VALUE=97.25\n"
		"IOSTALL_THRESHOLD=90.00\n"
		"IOSTALL_UNIT=%\n"
		"IOSTALL_VERDICT=saturated\n"
		"IOSTALL_REASON=clear\n"
		"IOSTALL_DURATION_NS=23400000000\n"
		"IOSTALL_STALLS=12\n"
		"IOSTALL_STUCK=3\n"
		"IOSTALL_LONGEST_NS=4200000000\n"
		"IOSTALL_LOST=2\n"
		"IOSTALL_RECORD=/var/log/iostall/20261120T031207Z-0000.jsonl\n");
	assert_int_equal(receive(fd, buf, sizeof(buf)), 0);
	sinks_free(sinks);
}

/* Then somebody has to look for the cause, and the message says where. */
static void test_without_a_verdict_the_message_says_what_to_run(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int journal = bind_receiver(d->config.journal.socket);
	_cleanup_close_ int syslog = bind_receiver(d->config.syslog.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald) | SINK_BIT(syslog), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	char buf[8192];

	dirs_record(r, RECORD_VERDICT, 0);
	r->verdict.class = RECORD_CLASS_unknown;
	text_copy(r->verdict.message, sizeof(r->verdict.message), "no verdict: it is not known");
	sinks_write(sinks, r);
	dirs_write_record(sinks, RECORD_CLOSE, 0);
	assert_true(receive(journal, buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf,
		"closed after 23.40 s: no verdict: it is not known; `iostall show "
		"20261120T031207Z-0000` has all that was seen; 12 stalls, 3 stuck operations"));
	assert_true(receive(syslog, buf, sizeof(buf)) > 0);
	assert_non_null(
		strstr(buf, "; `iostall show 20261120T031207Z-0000` has all that was seen; "));
	sinks_free(sinks);
}

static size_t receive_so_far(struct sinks *sinks, int fd, struct record *r, char *buf, size_t size)
{
	r->verdict.final = false;
	sinks_write(sinks, r);
	return receive(fd, buf, size);
}

/* Each cause once, and nothing where the cause is not known yet. */
static void test_the_verdict_so_far_is_told_when_it_names_another_cause(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	char buf[8192];

	dirs_record(r, RECORD_VERDICT, 0);
	r->verdict.class = RECORD_CLASS_unknown;
	assert_int_equal(receive_so_far(sinks, fd, r, buf, sizeof(buf)), 0);
	dirs_record(r, RECORD_VERDICT, 0);
	assert_true(receive_so_far(sinks, fd, r, buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf,
		"MESSAGE=I/O incident 20261120T031207Z-0000 so far: device sdb saturated"));
	assert_non_null(strstr(buf, "\nPRIORITY=4\n"));
	assert_non_null(strstr(buf, "\nIOSTALL_VERDICT=saturated\n"));
	text_copy(r->verdict.message, sizeof(r->verdict.message), "the same in other words");
	assert_int_equal(receive_so_far(sinks, fd, r, buf, sizeof(buf)), 0);
	r->verdict.class = RECORD_CLASS_hung;
	assert_true(receive_so_far(sinks, fd, r, buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "so far: the same in other words; record "));
	sinks_free(sinks);
}

static void test_a_disk_that_only_its_culprit_waits_for_is_a_notice(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	char buf[8192];

	dirs_record(r, RECORD_VERDICT, 0);
	r->verdict.class = RECORD_CLASS_busy;
	assert_true(receive_so_far(sinks, fd, r, buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "\nPRIORITY=5\n"));
	dirs_record(r, RECORD_CLOSE, 0);
	assert_true(r->close.stuck_threads > 0);
	sinks_write(sinks, r);
	assert_true(receive(fd, buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "\nPRIORITY=5\n"));
	sinks_free(sinks);
}

static void test_a_value_cannot_forge_a_field(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	static const char expected[] = "IOSTALL_DEVICE\n\x10\0\0\0\0\0\0\0sda\nMESSAGE=evil\n";
	char buf[8192];
	size_t len;

	dirs_record(r, RECORD_OPEN, 0);
	text_copy(r->open.trigger.device, sizeof(r->open.trigger.device), "sda\nMESSAGE=evil");
	sinks_write(sinks, r);
	len = receive(fd, buf, sizeof(buf));
	assert_memory_equal(buf, "MESSAGE=I/O incident", 20);
	assert_non_null(memmem(buf, len, "device sda\\x0aMESSAGE=evil; record", 34));
	assert_non_null(memmem(buf, len, expected, sizeof(expected) - 1));
	sinks_free(sinks);
}

static void test_priority_follows_the_outcome(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	char buf[8192];

	dirs_record(r, RECORD_CLOSE, 0);
	r->close.stuck_threads = 0;
	sinks_write(sinks, r);
	receive(fd, buf, sizeof(buf));
	assert_non_null(strstr(buf, "\nPRIORITY=4\n"));
	r->close.stalls = 0;
	sinks_write(sinks, r);
	receive(fd, buf, sizeof(buf));
	assert_non_null(strstr(buf, "\nPRIORITY=5\n"));
	sinks_free(sinks);
}

static void test_a_directory_of_any_length(void **state)
{
	struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks;
	char buf[8192];
	size_t len;

	memset(d->config.record.dir, 'd', PATH_MAX - 1);
	sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	len = receive(fd, buf, sizeof(buf));
	assert_true(len > 0);
	assert_int_equal(buf[len - 1], '\n');
	assert_non_null(strstr(buf, "\nIOSTALL_INCIDENT=20261120T031207Z-0000\n"));
	sinks_free(sinks);
	d->config.record.dir[0] = '\0';
}

static void test_syslog_gets_two_lines(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.syslog.socket);
	struct sinks *sinks;
	char buf[8192], expected[512];

	setenv("TZ", "UTC", 1);
	sinks = dirs_start(d, SINK_BIT(syslog), -1, false);
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		dirs_write_record(sinks, type, 0);
	receive(fd, buf, sizeof(buf));
	snprintf(expected, sizeof(expected),
		"<28>Nov 20 03:12:07 iostall[%d]: I/O incident 20261120T031207Z-0000 opened by "
		"utilisation 97.25 %%, threshold 90 %%, device sdb; record "
		"/var/log/iostall/20261120T031207Z-0000.jsonl",
		(int)getpid());
	assert_string_equal(buf, expected);
	receive(fd, buf, sizeof(buf));
	assert_memory_equal(buf, "<27>Nov 20 ", 11);
	assert_int_equal(receive(fd, buf, sizeof(buf)), 0);
	sinks_free(sinks);
}

/* The entry at close of an incident whose verdict has a statement. */
static size_t receive_close(const struct dirs *d, enum sink_name sink, int fd,
	const char *statement, char *buf, size_t size)
{
	struct sinks *sinks = dirs_start(d, 1U << sink, -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	size_t len;

	dirs_record(r, RECORD_VERDICT, 0);
	r->verdict.parts[1] = (struct record_verdict_part){ .what = RECORD_WHAT_statement,
		.basis = RECORD_BASIS_measured };
	text_copy(r->verdict.parts[1].text, RECORD_PART_SIZE, statement);
	r->verdict.parts_count = 2;
	sinks_write(sinks, r);
	dirs_write_record(sinks, RECORD_CLOSE, 0);
	len = receive(fd, buf, size);
	sinks_free(sinks);
	return len;
}

static void test_a_statement_is_logged_only_when_configured(void **state)
{
	static const char statement[] = "app@localhost \"SELECT 1\" running 31.00 s";
	struct dirs *d = *state;
	_cleanup_close_ int journal = bind_receiver(d->config.journal.socket);
	_cleanup_close_ int syslog = bind_receiver(d->config.syslog.socket);
	char buf[8192];

	assert_true(receive_close(d, SINK_journald, journal, statement, buf, sizeof(buf)) > 0);
	assert_null(strstr(buf, "SELECT"));
	assert_null(strstr(buf, "IOSTALL_STATEMENT"));
	assert_true(receive_close(d, SINK_syslog, syslog, statement, buf, sizeof(buf)) > 0);
	assert_null(strstr(buf, "SELECT"));
	/* Each sink has its own setting. */
	d->config.journal.statements = true;
	assert_true(receive_close(d, SINK_syslog, syslog, statement, buf, sizeof(buf)) > 0);
	assert_null(strstr(buf, "SELECT"));
	assert_true(receive_close(d, SINK_journald, journal, statement, buf, sizeof(buf)) > 0);
	assert_memory_equal(buf, "MESSAGE=", 8);
	assert_in_range(
		strstr(buf, "orders.ibd, app@localhost \"SELECT 1\" running 31.00 s; 12 stalls") -
			buf,
		8, strchr(buf, '\n') - buf);
	assert_non_null(
		strstr(buf, "\nIOSTALL_STATEMENT=app@localhost \"SELECT 1\" running 31.00 s\n"));
	d->config.journal.statements = false;
	d->config.syslog.statements = true;
	assert_true(receive_close(d, SINK_journald, journal, statement, buf, sizeof(buf)) > 0);
	assert_null(strstr(buf, "SELECT"));
	assert_true(receive_close(d, SINK_syslog, syslog, statement, buf, sizeof(buf)) > 0);
	assert_non_null(
		strstr(buf, "orders.ibd, app@localhost \"SELECT 1\" running 31.00 s; 12 stalls"));
	d->config.syslog.statements = false;
}

/* The journal shows a field unescaped, and a name from outside may contain anything. */
static void test_a_statement_is_escaped(void **state)
{
	struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	char buf[8192];

	d->config.journal.statements = true;
	assert_true(receive_close(d, SINK_journald, fd,
			    "a\x1b[2Jpp\nX=1 \xe2\x80\xae\"SELECT\" running 1 s", buf,
			    sizeof(buf)) > 0);
	assert_non_null(strstr(buf,
		"\nIOSTALL_STATEMENT=a\\x1b[2Jpp\\x0aX=1 \\xe2\\x80\\xae\"SELECT\" "
		"running 1 s\n"));
	d->config.journal.statements = false;
}

/*
 * A field that does not fit is left out as a whole: half of a value with a newline would break the
 * entry.
 */
static void test_a_statement_that_does_not_fit(void **state)
{
	struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	char buf[8192], statement[RECORD_PART_SIZE];
	size_t len;

	memset(statement, '\n', sizeof(statement) - 1);
	statement[sizeof(statement) - 1] = '\0';
	memset(d->config.record.dir, 'd', 3000);
	d->config.record.dir[3000] = '\0';
	d->config.journal.statements = true;
	len = receive_close(d, SINK_journald, fd, statement, buf, sizeof(buf));
	assert_true(len > 3000);
	assert_null(strstr(buf, "IOSTALL_STATEMENT"));
	assert_string_equal(strrchr(buf, '/'), "/20261120T031207Z-0000.jsonl\n");
	d->config.journal.statements = false;
	d->config.record.dir[0] = '\0';
}

static void test_a_receiver_that_does_not_read(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int journal = bind_receiver(d->config.journal.socket);
	_cleanup_close_ int syslog = bind_receiver(d->config.syslog.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald) | SINK_BIT(syslog), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	uint64_t lost[RECORD_LOST_COUNT], taken[2] = { 0, 0 };
	char buf[8192], last[8192] = "";

	dirs_record(r, RECORD_OPEN, 0);
	sinks_write(sinks, r);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		dirs_record(r, RECORD_CLOSE, i % 100);
		sinks_write(sinks, r);
		if (i % 100 == 99)
			sinks_tick(sinks, clock_mono_ns());
	}
	sinks_dropped(sinks, lost);
	/* As soon as it reads again, be it after minutes, it gets the kept messages in order. */
	for (unsigned int i = 0; i < 200; i++)
		sinks_tick(sinks, 0);
	for (unsigned int tick = 0; tick < 20; tick++) {
		while (receive(journal, buf, sizeof(buf)) > 0) {
			taken[0]++;
			text_copy(last, sizeof(last), buf);
		}
		while (receive(syslog, buf, sizeof(buf)) > 0)
			taken[1]++;
		sinks_tick(sinks, clock_mono_ns());
	}
	assert_true(taken[0] > 8 && taken[1] > 8);
	assert_int_equal(taken[0] + taken[1] + lost[RECORD_LOST_sink_dropped], 2 * (1 + MESSAGES));
	assert_non_null(strstr(last, "\nIOSTALL_INCIDENT=20261120T031346Z-0063\n"));
	sinks_free(sinks);
}

static void test_a_receiver_that_starts_later_gets_the_messages(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	uint64_t lost[RECORD_LOST_COUNT];
	_cleanup_close_ int fd = -1;
	char buf[8192];

	dirs_write_record(sinks, RECORD_OPEN, 0);
	sinks_tick(sinks, 0);
	fd = bind_receiver(d->config.journal.socket);
	sinks_tick(sinks, 0);
	assert_true(receive(fd, buf, sizeof(buf)) > 0);
	/* A receiver that never comes back. */
	fd = close_fd(fd);
	dirs_write_record(sinks, RECORD_CLOSE, 0);
	for (unsigned int i = 0; i < 100; i++)
		sinks_tick(sinks, 0);
	sinks_dropped(sinks, lost);
	assert_int_equal(lost[RECORD_LOST_sink_dropped], 1);
	sinks_free(sinks);
}

/* It was there at the start, and gone before the first message. */
static void test_a_receiver_that_ends_before_the_first_message(void **state)
{
	const struct dirs *d = *state;
	int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	uint64_t lost[RECORD_LOST_COUNT];

	close(fd);
	assert_int_equal(unlink(d->config.journal.socket), 0);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	for (unsigned int i = 0; i < 100; i++)
		sinks_tick(sinks, 0);
	sinks_dropped(sinks, lost);
	assert_int_equal(lost[RECORD_LOST_sink_dropped], 1);
	sinks_free(sinks);
}

/* All that is lost is in some record, also what `close` displaces and what is given up later. */
static void test_each_lost_message_is_counted_in_a_record(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	uint64_t lost = 0, taken = 0;
	char buf[8192];

	for (unsigned int incident = 0; incident < 20; incident++) {
		dirs_write_record(sinks, RECORD_OPEN, incident);
		lost += dirs_close(sinks, incident).lost[RECORD_LOST_sink_dropped];
	}
	for (unsigned int tick = 0; tick < 20; tick++) {
		while (receive(fd, buf, sizeof(buf)) > 0)
			taken++;
		sinks_tick(sinks, 0);
	}
	assert_true(taken > 8);
	assert_int_equal(taken + lost, 2 * 20);
	/* It is gone, and what is kept for it is given up. */
	fd = close_fd(fd);
	dirs_write_record(sinks, RECORD_OPEN, 20);
	dirs_close(sinks, 20);
	for (unsigned int i = 0; i < 200; i++)
		sinks_tick(sinks, 0);
	dirs_write_record(sinks, RECORD_OPEN, 21);
	assert_int_equal(dirs_close(sinks, 21).lost[RECORD_LOST_sink_dropped], 2);
	sinks_free(sinks);
}

/* As on a host without systemd: that is no loss, however many incidents there are. */
static void test_a_receiver_that_never_was_there(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald) | SINK_BIT(syslog), -1, false);
	uint64_t lost[RECORD_LOST_COUNT];

	for (unsigned int incident = 0; incident < 20; incident++) {
		dirs_write_record(sinks, RECORD_OPEN, incident);
		for (unsigned int i = 0; i < 100; i++)
			sinks_tick(sinks, 0);
		dirs_write_record(sinks, RECORD_CLOSE, incident);
		sinks_dropped(sinks, lost);
		assert_int_equal(lost[RECORD_LOST_sink_dropped], 0);
	}
	sinks_free(sinks);
}

static void test_unwanted_sinks_are_left_out(void **state)
{
	struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(syslog), -1, false);
	char buf[8192];

	dirs_write_record(sinks, RECORD_OPEN, 0);
	assert_int_equal(receive(fd, buf, sizeof(buf)), 0);
	sinks_free(sinks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKETS(test_journald_gets_two_entries),
		WITH_SOCKETS(test_without_a_verdict_the_message_says_what_to_run),
		WITH_SOCKETS(test_the_verdict_so_far_is_told_when_it_names_another_cause),
		WITH_SOCKETS(test_a_disk_that_only_its_culprit_waits_for_is_a_notice),
		WITH_SOCKETS(test_a_value_cannot_forge_a_field),
		WITH_SOCKETS(test_priority_follows_the_outcome),
		WITH_SOCKETS(test_a_directory_of_any_length),
		WITH_SOCKETS(test_syslog_gets_two_lines),
		WITH_SOCKETS(test_a_statement_is_logged_only_when_configured),
		WITH_SOCKETS(test_a_statement_is_escaped),
		WITH_SOCKETS(test_a_statement_that_does_not_fit),
		WITH_SOCKETS(test_a_receiver_that_does_not_read),
		WITH_SOCKETS(test_a_receiver_that_starts_later_gets_the_messages),
		WITH_SOCKETS(test_a_receiver_that_ends_before_the_first_message),
		WITH_SOCKETS(test_each_lost_message_is_counted_in_a_record),
		WITH_SOCKETS(test_a_receiver_that_never_was_there),
		WITH_SOCKETS(test_unwanted_sinks_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
