/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * The control socket: one daemon at a time, and clients that say nothing, too much, or do not
 * listen.
 */
#include "test_waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/control.h"
#include "util/loop.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define SILENT_CLIENTS 8 /* as many as are listened to at once */

struct fixture {
	char dir[64];
	char socket[108];
	struct loop *loop;
	struct control *control;
	int stop_fd;
	pthread_t thread;
	bool running;
	char last_request[256];
	uid_t last_uid;
	unsigned int requests;
};

static void answer(void *userdata, const char *request, uid_t uid, struct text *out)
{
	struct fixture *f = userdata;

	f->requests++;
	f->last_uid = uid;
	snprintf(f->last_request, sizeof(f->last_request), "%s", request);
	if (strcmp(request, "long") == 0)
		for (int i = 0; i < 200; i++)
			text_add(out, "ten bytes.");
	else if (strcmp(request, "nothing") != 0)
		text_addf(out, "{\"length\":%zu}", strlen(request));
}

static void on_stop(void *userdata, uint64_t events)
{
	struct fixture *f = userdata;

	(void)events;
	loop_stop(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f || loop_new(&f->loop) < 0)
		return -1;
	strcpy(f->dir, "/tmp/iostall-control-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->socket, sizeof(f->socket), "%s/run/control.sock", f->dir);
	f->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop_add_fd(f->loop, f->stop_fd, EPOLLIN, on_stop, f, NULL) < 0)
		return -1;
	*state = f;
	return 0;
}

static void *serve(void *arg)
{
	loop_run(((struct fixture *)arg)->loop);
	return NULL;
}

static void listen_only(struct fixture *f)
{
	assert_int_equal(control_new(f->loop, f->socket, answer, f, &f->control), 0);
}

static void start(struct fixture *f)
{
	if (!f->control)
		listen_only(f);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
	f->running = true;
}

static void stop(struct fixture *f)
{
	uint64_t one = 1;

	if (!f->running)
		return;
	assert_int_equal(write(f->stop_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(f->thread, NULL);
	f->running = false;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[160];

	stop(f);
	control_free(f->control);
	loop_free(f->loop);
	close(f->stop_fd);
	unlink(f->socket);
	snprintf(path, sizeof(path), "%s.lock", f->socket);
	unlink(path);
	snprintf(path, sizeof(path), "%s/run", f->dir);
	rmdir(path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void connect_socket(const struct fixture *f, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static int connect_client(const struct fixture *f)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	connect_socket(f, fd);
	return fd;
}

static void test_asks_and_answers(void **state)
{
	struct fixture *f = *state;
	char got[CONTROL_MESSAGE_MAX];

	start(f);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(control_ask(f->socket, "status", got), 0);
		assert_string_equal(got, "{\"length\":6}");
	}
	assert_int_equal(control_ask(f->socket, "long", got), 0);
	assert_int_equal(strlen(got), 2000);
	stop(f);
	assert_int_equal(f->requests, 51);
	assert_int_equal(f->last_uid, getuid());
}

static void test_mode_of_the_socket(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	start(f);
	assert_int_equal(stat(f->socket, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	/* Root, and who is in the group adm: nobody else. */
	assert_int_equal(st.st_mode & 0117, 0);
	assert_int_equal(st.st_uid, getuid());
}

/* A thread that has just been started may not yet have closed its copy of the socket. */
static void assert_nobody_answers(struct fixture *f)
{
	char got[CONTROL_MESSAGE_MAX];
	int r = control_ask(f->socket, "status", got);

	assert_true(r == -ECONNREFUSED || r == -ECONNRESET);
}

static void test_second_daemon(void **state)
{
	struct fixture *f = *state;
	struct control *second = NULL;
	char got[CONTROL_MESSAGE_MAX];

	start(f);
	assert_int_equal(control_new(f->loop, f->socket, answer, f, &second), -EADDRINUSE);
	assert_null(second);
	/* The first one is still there. */
	assert_int_equal(control_ask(f->socket, "status", got), 0);
	stop(f);
	f->control = control_free(f->control);
	assert_nobody_answers(f);
	assert_int_equal(control_new(f->loop, f->socket, answer, f, &f->control), 0);
}

/*
 * In the process that reads the directory: a page of its buffer is not given to it, as when that
 * has to be read from a disk that hangs. It keeps the lock of the directory meanwhile.
 */
static void read_directory_for_ever(const char *path)
{
	const long page_bytes = sysconf(_SC_PAGESIZE);
	/* Not the lock of the daemon. */
	int closed = close_range(STDERR_FILENO + 1, ~0U, 0);
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), fd = open(path, O_RDONLY);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = mmap(NULL, (size_t)page_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	range.range.start = (uintptr_t)page;
	range.range.len = (uint64_t)page_bytes;
	if (closed < 0 || uffd < 0 || fd < 0 || page == MAP_FAILED ||
		ioctl(uffd, UFFDIO_API, &api) < 0 || ioctl(uffd, UFFDIO_REGISTER, &range) < 0)
		_exit(1);
	syscall(SYS_getdents64, fd, page, page_bytes);
	_exit(2);
}

static bool is_in_getdents(pid_t pid)
{
	char path[64], buf[64], expected[16];
	int n = snprintf(expected, sizeof(expected), "%d ", SYS_getdents64);
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, buf, sizeof(buf)) > n && memcmp(buf, expected, (size_t)n) == 0;
}

/* Whoever may read the directory keeps the daemon neither from ending nor from starting. */
static void test_a_reader_of_the_directory(void **state)
{
	struct fixture *f = *state;
	char dir[128], got[CONTROL_MESSAGE_MAX];
	pid_t reader;
	int status;

	listen_only(f);
	snprintf(dir, sizeof(dir), "%s/run", f->dir);
	reader = fork();
	if (reader == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		read_directory_for_ever(dir);
	}
	while (!is_in_getdents(reader)) {
		if (waitpid(reader, &status, WNOHANG) == reader)
			skip();
		usleep(5000);
	}
	f->control = control_free(f->control);
	listen_only(f);
	start(f);
	assert_nobody_answers(f);
	kill(reader, SIGKILL);
	assert_int_equal(waitpid(reader, &status, 0), reader);
	for (int i = 0; i < WAITS_MAX && control_ask(f->socket, "status", got) < 0; i++)
		usleep(5000);
	assert_int_equal(control_ask(f->socket, "status", got), 0);
}

/* What a daemon leaves behind that was killed: the socket, and a lock that nobody holds. */
static void test_after_a_daemon_was_killed(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char dir[100], got[CONTROL_MESSAGE_MAX];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(dir, sizeof(dir), "%s/run", f->dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->socket);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_int_equal(control_ask(f->socket, "status", got), -ECONNREFUSED);
	start(f);
	assert_int_equal(control_ask(f->socket, "status", got), 0);
}

/* Whoever can list a directory can keep it locked, and the records may be in it, too. */
static void test_the_directory_is_not_for_everybody(void **state)
{
	struct fixture *f = *state;
	char dir[100];
	struct stat st;

	listen_only(f);
	snprintf(dir, sizeof(dir), "%s/run", f->dir);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
}

static void test_places_that_cannot_be_used(void **state)
{
	struct fixture *f = *state;
	char path[300], got[CONTROL_MESSAGE_MAX];

	snprintf(path, sizeof(path), "%s/a/b/control.sock", f->dir);
	assert_int_equal(control_new(f->loop, path, answer, f, &f->control), -ENOENT);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(control_new(f->loop, path, answer, f, &f->control), -ENAMETOOLONG);
	assert_int_equal(control_ask(path, "status", got), -ENAMETOOLONG);
	assert_null(f->control);
	assert_int_equal(control_ask(f->socket, "status", got), -ENOENT);
}

/* More than a request may be long: what is seen of it is terminated, and it is answered. */
static void test_requests_out_of_bounds(void **state)
{
	struct fixture *f = *state;
	char request[SERVER_REQUEST_MAX + 1000], got[CONTROL_MESSAGE_MAX];

	start(f);
	memset(request, 'r', sizeof(request));
	request[sizeof(request) - 1] = '\0';
	assert_int_equal(control_ask(f->socket, request, got), 0);
	assert_string_equal(got, "{\"length\":2048}");
	assert_int_equal(control_ask(f->socket, "\xff\x01\n garbage", got), 0);
	assert_string_equal(f->last_request, "\xff\x01\n garbage");
	/* Nothing to say ends the connection. */
	assert_int_equal(control_ask(f->socket, "nothing", got), -ECONNRESET);
	assert_int_equal(control_ask(f->socket, "status", got), 0);
}

static void test_client_that_leaves(void **state)
{
	struct fixture *f = *state;
	char got[CONTROL_MESSAGE_MAX];

	listen_only(f);
	for (int i = 0; i < SILENT_CLIENTS / 2; i++) {
		_cleanup_close_ int fd = connect_client(f);

		/* Gone before the answer, which must not raise SIGPIPE. */
		assert_int_equal(send(fd, "long", 4, MSG_NOSIGNAL), 4);
	}
	start(f);
	for (int i = 0; i < 3 * SILENT_CLIENTS; i++)
		close(connect_client(f));
	assert_int_equal(control_ask(f->socket, "status", got), 0);
}

/* Whoever connects and says nothing must not keep others out. */
static void test_silent_clients(void **state)
{
	struct fixture *f = *state;
	int unresponsive[3 * SILENT_CLIENTS];
	char got[CONTROL_MESSAGE_MAX];

	start(f);
	for (size_t i = 0; i < ARRAY_SIZE(unresponsive); i++) {
		unresponsive[i] = connect_client(f);
		assert_int_equal(control_ask(f->socket, "status", got), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(unresponsive); i++)
		close(unresponsive[i]);
	assert_int_equal(control_ask(f->socket, "status", got), 0);
}

/* The one that came first makes room, and no other. */
static void test_which_silent_client_goes(void **state)
{
	struct fixture *f = *state;
	int unresponsive[SILENT_CLIENTS];
	char got[CONTROL_MESSAGE_MAX];

	start(f);
	for (size_t i = 0; i < ARRAY_SIZE(unresponsive); i++)
		unresponsive[i] = connect_client(f);
	assert_int_equal(control_ask(f->socket, "status", got), 0);
	assert_int_equal(recv(unresponsive[0], got, sizeof(got), 0), 0);
	for (size_t i = 1; i < ARRAY_SIZE(unresponsive); i++) {
		assert_int_equal(send(unresponsive[i], "status", 6, MSG_NOSIGNAL), 6);
		assert_int_equal(recv(unresponsive[i], got, sizeof(got), 0), 12);
	}
	for (size_t i = 0; i < ARRAY_SIZE(unresponsive); i++)
		close(unresponsive[i]);
}

/* The answer fits into the socket's buffer: nobody waits for a client to take it. */
static void test_client_that_never_reads(void **state)
{
	struct fixture *f = *state;
	int fds[2 * SILENT_CLIENTS];
	char got[CONTROL_MESSAGE_MAX];

	start(f);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = connect_client(f);
		assert_int_equal(send(fds[i], "long", 4, MSG_NOSIGNAL), 4);
	}
	assert_int_equal(control_ask(f->socket, "status", got), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* The client waits until there is a descriptor for it, and the loop uses no CPU meanwhile. */
static void test_no_descriptor(void **state)
{
	struct fixture *f = *state;
	struct rlimit was, limit;
	struct timespec used;
	clockid_t clock;
	char got[CONTROL_MESSAGE_MAX];
	int client, next;

	start(f);
	client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	next = dup(client);
	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	limit = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	connect_socket(f, client);
	assert_int_equal(send(client, "status", 6, MSG_NOSIGNAL), 6);
	assert_int_equal(pthread_getcpuclockid(f->thread, &clock), 0);
	usleep(500 * 1000);
	assert_int_equal(clock_gettime(clock, &used), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(recv(client, got, sizeof(got), 0) > 0);
	assert_int_equal(used.tv_sec, 0);
	assert_true(used.tv_nsec < 100 * (long)NSEC_PER_MSEC);
	close(client);
}

/* A daemon that hangs: the client gives up, and says so. */
static void test_no_answer(void **state)
{
	struct fixture *f = *state;
	char got[CONTROL_MESSAGE_MAX];

	listen_only(f);
	assert_int_equal(control_ask(f->socket, "status", got), -ETIMEDOUT);
}

#define control_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		control_test(test_asks_and_answers),
		control_test(test_mode_of_the_socket),
		control_test(test_second_daemon),
		control_test(test_a_reader_of_the_directory),
		control_test(test_after_a_daemon_was_killed),
		control_test(test_the_directory_is_not_for_everybody),
		control_test(test_places_that_cannot_be_used),
		control_test(test_requests_out_of_bounds),
		control_test(test_client_that_leaves),
		control_test(test_silent_clients),
		control_test(test_which_silent_client_goes),
		control_test(test_client_that_never_reads),
		control_test(test_no_descriptor),
		control_test(test_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
