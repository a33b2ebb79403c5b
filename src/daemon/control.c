/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/server.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/detached_worker.h"
#include "util/file.h"
#include "util/log.h"
#include "util/loop.h"

#define ASK_TIMEOUT_S 5
/*
 * So long the start waits for the directory of the socket, in which any reader may keep others from
 * making files. After that the daemon starts, and listens when it can.
 */
#define LISTEN_PATIENCE_NS (500 * NSEC_PER_MSEC)
#define LISTEN_STEP_US 1000
#define THREAD_STACK_BYTES (16 * 1024)

/* Of the thread that makes the socket, while it is busy. */
struct listening {
	struct sockaddr_un address;
	gid_t group;
	int error; /* 0, or a negative errno */
};

struct control {
	struct loop *loop;
	control_handler handler;
	void *userdata;
	struct server *server;
	int lock_fd;
	int listen_fd;
	int done_fd; /* the thread has made the socket */
	struct loop_source *done;
	struct detached_worker *thread;
	const struct listening *listening;
};

static int fill_address(const char *path, struct sockaddr_un *ret_address)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	*ret_address = address;
	return 0;
}

static bool on_request(void *userdata, const struct server_request *request, struct text *answer)
{
	struct control *control = userdata;
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);

	if (getsockopt(request->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		control->handler(control->userdata, request->text, peer.uid, answer);
	return true;
}

/*
 * A service has its RuntimeDirectory=. Started by hand, the daemon makes the directory itself; the
 * records are in it, too, and whoever can list a directory can keep it locked.
 */
static int make_directory(const char *socket_path)
{
	_cleanup_close_ int fd = -1;
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	text_copy(dir, sizeof(dir), socket_path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	if (access(dir, F_OK) == 0)
		return 0;
	if (mkdir(dir, 0750) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	file_set_access(fd, 0750, file_find_group());
	return 0;
}

static int take_lock(const char *socket_path)
{
	_cleanup_close_ int fd = -1;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];

	snprintf(path, sizeof(path), "%s.lock", socket_path);
	/* With O_CREAT the kernel waits for readers of the directory, even if the file exists. */
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	return TAKE_FD(fd);
}

static int listen_at(int fd, const struct sockaddr_un *address, gid_t group)
{
	const char *path = address->sun_path;

	/* With the lock held, a socket that exists is left from a daemon that has ended. */
	unlink(path);
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	if (chmod(path, 0660) < 0)
		return -errno;
	/* Without that group only root can ask. */
	if (group != FILE_NO_GROUP && chown(path, (uid_t)-1, group) < 0)
		chmod(path, 0600);
	return listen(fd, SERVER_CLIENTS_MAX) < 0 ? -errno : 0;
}

/* On the thread. */
static void run(void *state, const int *fds)
{
	struct listening *l = state;

	l->error = listen_at(fds[0], &l->address, l->group);
}

/* The thread is done: accepts connections, if it could make the socket. */
static int take_socket(struct control *control)
{
	const int error = control->listening->error;

	control->done = loop_remove(control->done);
	/* It has the socket open, too. */
	control->listening = NULL;
	control->thread = detached_worker_free(control->thread);
	if (error < 0)
		return error;
	return server_listen(control->server, control->listen_fd);
}

static void on_done(void *userdata, uint64_t events)
{
	struct control *control = userdata;
	int r = take_socket(control);

	(void)events;
	if (r < 0)
		log_error("control.socket cannot be created: %s", strerror(-r));
	else
		log_info("control.socket could be created only now");
}

static int start_thread(struct control *control, const char *socket_path)
{
	struct listening *l = calloc(1, sizeof(*l));
	struct detached_worker_options options = { .run = run, .stack_bytes = THREAD_STACK_BYTES };
	int r;

	if (!l)
		return -ENOMEM;
	l->group = file_find_group();
	r = fill_address(socket_path, &l->address);
	control->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	control->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r == 0 && (control->listen_fd < 0 || control->done_fd < 0))
		r = -errno;
	if (r < 0) {
		free(l);
		return r;
	}
	options.fds[options.fds_count++] = control->listen_fd;
	options.done_fd = control->done_fd;
	r = detached_worker_new(&options, l, &control->thread);
	if (r < 0)
		return r;
	control->listening = l;
	detached_worker_start(control->thread);
	return 0;
}

static int listen_on(struct control *control, const char *socket_path)
{
	const uint64_t begin_ns = clock_mono_ns();
	int r = start_thread(control, socket_path);

	if (r < 0)
		return r;
	while (detached_worker_is_busy(control->thread)) {
		if (clock_mono_ns() - begin_ns >= LISTEN_PATIENCE_NS) {
			log_warning("control.socket: its directory does not answer; iostall starts "
				    "without, and listens when it can");
			return loop_add_fd(control->loop, control->done_fd, EPOLLIN, on_done,
				control, &control->done);
		}
		usleep(LISTEN_STEP_US);
	}
	return take_socket(control);
}

int control_new(struct loop *loop, const char *socket_path, control_handler handler, void *userdata,
	struct control **ret_control)
{
	struct control *control = calloc(1, sizeof(*control));
	int r;

	if (!control)
		return -ENOMEM;
	*control = (struct control){
		.loop = loop,
		.handler = handler,
		.userdata = userdata,
		.lock_fd = -1,
		.listen_fd = -1,
		.done_fd = -1,
	};
	r = strlen(socket_path) < sizeof(((struct sockaddr_un *)0)->sun_path)
		? make_directory(socket_path)
		: -ENAMETOOLONG;
	if (r == 0)
		r = control->lock_fd = take_lock(socket_path);
	if (r >= 0)
		r = server_new(loop, on_request, control, &control->server);
	if (r >= 0)
		r = listen_on(control, socket_path);
	if (r < 0) {
		control_free(control);
		return r;
	}
	*ret_control = control;
	return 0;
}

struct control *control_free(struct control *control)
{
	if (!control)
		return NULL;
	server_free(control->server);
	loop_remove(control->done);
	detached_worker_free(control->thread);
	/*
	 * The next daemon removes the socket: here a reader of the directory could keep this one
	 * from ending, and with it the lock.
	 */
	close_fd(control->listen_fd);
	close_fd(control->done_fd);
	close_fd(control->lock_fd);
	free(control);
	return NULL;
}

int control_ask(const char *socket_path, const char *request, char ret_answer[CONTROL_MESSAGE_MAX])
{
	const struct timeval timeout = { .tv_sec = ASK_TIMEOUT_S };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	ssize_t n;
	int r;

	if (fd < 0)
		return -errno;
	r = fill_address(socket_path, &address);
	if (r < 0)
		return r;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return -errno;
	n = recv(fd, ret_answer, CONTROL_MESSAGE_MAX - 1, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? -ETIMEDOUT : -errno;
	if (n == 0)
		return -ECONNRESET;
	ret_answer[n] = '\0';
	return 0;
}
