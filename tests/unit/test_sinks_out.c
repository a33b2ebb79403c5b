/* SPDX-License-Identifier: GPL-2.0-or-later */
/* journald, syslog and the terminal: what they are told, and that none of them makes us wait. */
#include "test_sinks_dirs.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* For a hundred messages to a receiver that would have to be waited for without end. */
#define MESSAGES_NS (50 * NSEC_PER_MSEC)
/* For two thousand lines, encoded under a sanitizer on a loaded machine; nobody reads them ever. */
#define LINES_NS (10 * NSEC_PER_SEC)

#define ATTEMPTS 5

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

/* Its length, or 0 when there is no message. */
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
		"operations stuck, longest 4.20 s, 2 things lost; opened by utilisation 97.25 %, "
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

static void test_a_value_cannot_become_a_field(void **state)
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
static size_t receive_close(const struct dirs *d, enum sink_name sink, int fd, const char *statement,
	char *buf, size_t size)
{
	struct sinks *sinks = dirs_start(d, 1U << sink, -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	size_t len;

	dirs_record(r, RECORD_VERDICT, 0);
	r->verdict.parts[1] = (struct record_verdict_part){ .what = "statement", .basis = "measured" };
	text_copy(r->verdict.parts[1].text, RECORD_PART_SIZE, statement);
	r->verdict.parts_count = 2;
	sinks_write(sinks, r);
	dirs_write_record(sinks, RECORD_CLOSE, 0);
	len = receive(fd, buf, size);
	sinks_free(sinks);
	return len;
}

static void test_a_statement_only_when_asked_for(void **state)
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
	/* Each for itself. */
	d->config.journal.statements = true;
	assert_true(receive_close(d, SINK_syslog, syslog, statement, buf, sizeof(buf)) > 0);
	assert_null(strstr(buf, "SELECT"));
	assert_true(receive_close(d, SINK_journald, journal, statement, buf, sizeof(buf)) > 0);
	assert_memory_equal(buf, "MESSAGE=", 8);
	assert_in_range(strstr(buf, "orders.ibd, app@localhost \"SELECT 1\" running 31.00 s; 12 stalls") - buf,
		8, strchr(buf, '\n') - buf);
	assert_non_null(strstr(buf, "\nIOSTALL_STATEMENT=app@localhost \"SELECT 1\" running 31.00 s\n"));
	d->config.journal.statements = false;
	d->config.syslog.statements = true;
	assert_true(receive_close(d, SINK_journald, journal, statement, buf, sizeof(buf)) > 0);
	assert_null(strstr(buf, "SELECT"));
	assert_true(receive_close(d, SINK_syslog, syslog, statement, buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "orders.ibd, app@localhost \"SELECT 1\" running 31.00 s; 12 stalls"));
	d->config.syslog.statements = false;
}

/* A journal shows a field as it is, and a name from outside may be anything. */
static void test_a_statement_is_escaped(void **state)
{
	struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	char buf[8192];

	d->config.journal.statements = true;
	assert_true(receive_close(d, SINK_journald, fd, "a\x1b[2Jpp\nX=1 \xe2\x80\xae\"SELECT\" running 1 s", buf,
			    sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "\nIOSTALL_STATEMENT=a\\x1b[2Jpp\\x0aX=1 \\xe2\\x80\\xae\"SELECT\" "
				    "running 1 s\n"));
	d->config.journal.statements = false;
}

/* What does not fit is left out as a whole: half of a value with a newline would break the entry. */
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

static void test_a_receiver_that_reads_nothing_costs_messages_and_no_time(void **state)
{
	const struct dirs *d = *state;
	_cleanup_close_ int journal = bind_receiver(d->config.journal.socket);
	_cleanup_close_ int syslog = bind_receiver(d->config.syslog.socket);
	struct sinks *sinks = dirs_start(d, SINK_BIT(journald) | SINK_BIT(syslog), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	uint64_t lost[RECORD_LOST_COUNT], begin_ns, took_ns, best_ns = UINT64_MAX;
	uint64_t taken[2] = { 0, 0 };
	char buf[8192], last[8192] = "";

	dirs_record(r, RECORD_OPEN, 0);
	sinks_write(sinks, r);
	/* The best of some, since the machine may make us wait as well. */
	for (unsigned int attempt = 0; attempt < ATTEMPTS; attempt++) {
		begin_ns = clock_mono_ns();
		for (unsigned int i = 0; i < 100; i++) {
			dirs_record(r, RECORD_CLOSE, i);
			sinks_write(sinks, r);
		}
		sinks_tick(sinks, clock_mono_ns());
		took_ns = clock_mono_ns() - begin_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	assert_true(best_ns < MESSAGES_NS);
	sinks_dropped(sinks, lost);
	/* As soon as it reads again it gets what was kept, in order and the newest last. */
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
	assert_int_equal(taken[0] + taken[1] + lost[RECORD_LOST_sink_dropped],
		2 * (1 + 100 * ATTEMPTS));
	assert_non_null(strstr(last, "\nIOSTALL_INCIDENT=20261120T031346Z-0063\n"));
	sinks_free(sinks);
}

static void test_a_receiver_that_is_not_there_yet(void **state)
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
	/* And one that never comes back. */
	fd = close_fd(fd);
	dirs_write_record(sinks, RECORD_CLOSE, 0);
	for (unsigned int i = 0; i < 100; i++)
		sinks_tick(sinks, 0);
	sinks_dropped(sinks, lost);
	assert_int_equal(lost[RECORD_LOST_sink_dropped], 1);
	sinks_free(sinks);
}

static void test_disabled_sinks_are_left_out(void **state)
{
	struct dirs *d = *state;
	_cleanup_close_ int fd = bind_receiver(d->config.journal.socket);
	struct sinks *sinks;
	char buf[8192];

	d->config.journal.enabled = false;
	sinks = dirs_start(d, SINK_BIT(journald), -1, false);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	assert_int_equal(receive(fd, buf, sizeof(buf)), 0);
	sinks_free(sinks);
}

/* Reads until the other end is closed. */
static char *read_all(int fd, size_t *ret_len)
{
	char *all = calloc(1, 8 << 20);
	ssize_t n;

	*ret_len = 0;
	while ((n = read(fd, all + *ret_len, (8 << 20) - 1 - *ret_len)) > 0)
		*ret_len += (size_t)n;
	return all;
}

static void test_a_terminal_that_reads_nothing_costs_lines_and_no_time(void **state)
{
	const struct dirs *d = *state;
	const unsigned int count = 2000;
	uint64_t lost[RECORD_LOST_COUNT], begin_ns, newlines = 0;
	_cleanup_free_ char *all = NULL;
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	struct sinks *sinks;
	int ends[2];
	size_t len;
	ssize_t n;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	sinks = dirs_start(d, SINK_BIT(terminal), ends[1], true);
	/* Blocking for everybody else who has it. */
	assert_false(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	dirs_record(r, RECORD_STALL, 0);
	/* Longer than what a pipe takes whole or not at all. */
	memset(r->operation.path, 'p', sizeof(r->operation.path) - 1);
	begin_ns = clock_mono_ns();
	for (unsigned int i = 0; i < count; i++)
		sinks_write(sinks, r);
	sinks_tick(sinks, 0);
	assert_true(clock_mono_ns() - begin_ns < LINES_NS);
	sinks_dropped(sinks, lost);
	assert_in_range(lost[RECORD_LOST_sink_dropped], count / 2, count - 1);
	/* The line that was taken in part gets its rest. */
	all = malloc(65536);
	n = read(ends[0], all, 65536);
	assert_true(n > 0);
	for (ssize_t i = 0; i < n; i++)
		newlines += all[i] == '\n';
	assert_true(all[n - 1] != '\n');
	dirs_settle(sinks);
	sinks_free(sinks);
	close(ends[1]);
	free(all);
	all = read_all(ends[0], &len);
	for (size_t i = 0; i < len; i++)
		newlines += all[i] == '\n';
	assert_true(len > 0);
	assert_int_equal(all[len - 1], '\n');
	assert_int_equal(newlines, 1 + count - lost[RECORD_LOST_sink_dropped]);
	close(ends[0]);
}

static void test_a_stopped_pty(void **state)
{
	const struct dirs *d = *state;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	uint64_t lost[RECORD_LOST_COUNT], begin_ns;
	struct sinks *sinks;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) {
		print_message("no pseudo terminal here: %s\n", strerror(errno));
		skip();
	}
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	sinks = dirs_start(d, SINK_BIT(terminal), slave, false);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	begin_ns = clock_mono_ns();
	for (unsigned int i = 0; i < 2000; i++)
		dirs_write_record(sinks, RECORD_STALL, 0);
	assert_true(clock_mono_ns() - begin_ns < LINES_NS);
	sinks_dropped(sinks, lost);
	assert_true(lost[RECORD_LOST_sink_dropped] > 1000);
	sinks_free(sinks);
	close(slave);
	close(master);
}

static void test_a_file_gets_everything(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *buf = malloc(1 << 20);
	_cleanup_close_ int fd = -1;
	struct sinks *sinks;
	char path[128];

	snprintf(path, sizeof(path), "%s/out", d->root);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	sinks = dirs_start(d, SINK_BIT(terminal), fd, false);
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		dirs_write_record(sinks, type, 0);
	dirs_settle(sinks);
	sinks_free(sinks);
	file_read_fd(fd, buf, 1 << 20);
	assert_memory_equal(buf, "incident 20261120T031207Z-0000\n  opened", 39);
	assert_non_null(strstr(buf, "\n   -3.000s  sample  "));
	assert_non_null(strstr(buf, "MiB\n"));
}

/* A socket cannot be opened anew. */
static void test_a_socket_as_output(void **state)
{
	const struct dirs *d = *state;
	uint64_t lost[RECORD_LOST_COUNT];
	struct sinks *sinks;
	int ends[2];
	char buf[65536];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	sinks = dirs_start(d, SINK_BIT(terminal), ends[0], true);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	for (unsigned int i = 0; i < 3000; i++)
		dirs_write_record(sinks, RECORD_STALL, 0);
	sinks_dropped(sinks, lost);
	assert_true(lost[RECORD_LOST_sink_dropped] > 0);
	assert_true(read(ends[1], buf, sizeof(buf)) > 0);
	assert_memory_equal(buf, "{\"v\":1,\"type\":\"open\"", 20);
	sinks_free(sinks);
	close(ends[0]);
	close(ends[1]);
}

static void test_every_sink_of_the_list_is_in_the_table(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < SINK_COUNT; i++) {
		assert_non_null(sinks_table[i]);
		assert_non_null(sinks_table[i]->open);
		assert_non_null(sinks_table[i]->write);
		assert_non_null(sinks_table[i]->tick);
		assert_non_null(sinks_table[i]->dropped);
		assert_non_null(sinks_table[i]->close);
	}
	assert_string_equal(sinks_table[SINK_spool]->name, "spool");
	assert_string_equal(sinks_table[SINK_journald]->name, "journald");
	assert_string_equal(sinks_table[SINK_syslog]->name, "syslog");
	assert_string_equal(sinks_table[SINK_terminal]->name, "terminal");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sink_of_the_list_is_in_the_table),
		WITH_SOCKETS(test_journald_gets_two_entries),
		WITH_SOCKETS(test_a_value_cannot_become_a_field),
		WITH_SOCKETS(test_priority_follows_the_outcome),
		WITH_SOCKETS(test_a_directory_of_any_length),
		WITH_SOCKETS(test_syslog_gets_two_lines),
		WITH_SOCKETS(test_a_statement_only_when_asked_for),
		WITH_SOCKETS(test_a_statement_is_escaped),
		WITH_SOCKETS(test_a_statement_that_does_not_fit),
		WITH_SOCKETS(test_a_receiver_that_reads_nothing_costs_messages_and_no_time),
		WITH_SOCKETS(test_a_receiver_that_is_not_there_yet),
		WITH_SOCKETS(test_disabled_sinks_are_left_out),
		WITH_SOCKETS(test_a_terminal_that_reads_nothing_costs_lines_and_no_time),
		WITH_SOCKETS(test_a_stopped_pty),
		WITH_SOCKETS(test_a_file_gets_everything),
		WITH_SOCKETS(test_a_socket_as_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
