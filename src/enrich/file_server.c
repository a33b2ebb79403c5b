/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/file_server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/renewable_worker.h"
#include "util/text.h"
#include "watch/dents.h"
#include "watch/lines.h"
#include "watch/open_files.h"
#include "watch/thread_status.h"

/* Two buffers for directories and one for a file. */
#define THREAD_STACK_BYTES (32 * 1024)
#define FILE_BYTES 4096
/* What the longest record takes of a socket's room: 8970 bytes, in a buffer of the next size. */
#define AUDIT_RECORD_MAX (16 * 1024)
/* FAN_PRE_ACCESS of 6.14 */
#define PRE_ACCESS 0x100000

/* Of the thread while it is busy. */
struct search {
	enum record_cause waits_for;
	uint32_t minor; /* of the connection, or of what is marked: as the kernel numbers devices */
	char mount[MOUNTS_PATH_SIZE];
	/* Of this search: */
	int procfs_fd;
	bool kernel_tells;	/* fdinfo says which connection a descriptor is of, as 6.18 does */
	uint32_t candidates;	/* processes that serve some FUSE file system, or listen */
	int32_t last_candidate; /* their descriptors come in a row */
	uint32_t listeners;	/* those of them that have marked the file system */
	int32_t last_listener;
	uint32_t named; /* those of them whose command line has the mount point */
	int32_t last_named;
	uint64_t full_bytes;	/* that are not read yet where a socket takes no more */
	uint32_t audit_sockets; /* that take no more */
	int32_t audit_port;	/* of the last of them, and what a descriptor of it is of */
	char audit_link[32];
	uint64_t took_ns;
	struct record_file_server found; /* pid, comm, state, basis and search of it */
	char buf[FILE_BYTES];
};

struct file_server {
	struct renewable_worker worker; /* its state is a struct search */
	uint64_t incident_ns;
	bool is_expected; /* the search that is under way is of this incident and file system */
	uint64_t rest_until_ns;
	struct record_file_server answer;
};

/* On the thread */

/* Of mounts with `auto_unmount` it stays, and may keep the descriptor. */
static bool is_mount_helper(struct search *s, int32_t pid)
{
	open_files_read_comm(s->procfs_fd, pid, s->buf, sizeof(s->buf));
	return strncmp(s->buf, "fusermount", strlen("fusermount")) == 0;
}

/* One argument is the mount point, perhaps with a slash behind it. */
static bool has_mount_in_command_line(struct search *s, int32_t pid)
{
	size_t len = strlen(s->mount);
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/cmdline", pid);
	n = *s->mount ? file_read_at(s->procfs_fd, path, s->buf, sizeof(s->buf)) : 0;
	for (const char *p = s->buf; n > 0 && p < s->buf + n; p += strlen(p) + 1)
		if (strncmp(p, s->mount, len) == 0 && strcmp(p + len + (p[len] == '/'), "") == 0)
			return true;
	return false;
}

static void add_candidate(struct search *s, int32_t pid)
{
	if (pid == s->last_candidate)
		return;
	s->last_candidate = pid;
	s->candidates++;
	if (!has_mount_in_command_line(s, pid))
		return;
	s->named++;
	s->last_named = pid;
}

/* 0: that may be several, or one of those that were not looked at. */
static int32_t likeliest_server(const struct search *s)
{
	if (s->named)
		return s->named == 1 ? s->last_named : 0;
	return s->candidates == 1 && s->found.search == RECORD_SEARCH_complete ? s->last_candidate
									       : 0;
}

/* "fuse_connection:\t52"; false: the kernel does not tell, or there is no connection yet. */
static bool read_connection(struct search *s, int32_t pid, const char *fd, uint32_t *ret_minor)
{
	char path[64];
	const char *line;

	snprintf(path, sizeof(path), "%d/fdinfo/%s", pid, fd);
	if (file_read_at(s->procfs_fd, path, s->buf, sizeof(s->buf)) <= 0)
		return false;
	line = strstr(s->buf, "fuse_connection:");
	return line && sscanf(line, "fuse_connection: %" SCNu32, ret_minor) == 1;
}

static bool look_for_fuse(struct search *s, int32_t pid, const char *fd)
{
	uint32_t minor;

	if (is_mount_helper(s, pid))
		return true;
	if (!read_connection(s, pid, fd, &minor)) {
		add_candidate(s, pid);
		return true;
	}
	s->kernel_tells = true;
	if (minor == s->minor)
		s->found.pid = pid;
	return minor != s->minor;
}

/* "fanotify sdev:800013 mflags:0 mask:10000 ignored_mask:0" */
static bool asks_permission(const char *line)
{
	const char *mask = strstr(line, " mask:");
	unsigned int bits = 0;

	return mask && sscanf(mask, " mask:%x", &bits) == 1 &&
		(bits & (FAN_OPEN_PERM | FAN_ACCESS_PERM | FAN_OPEN_EXEC_PERM | PRE_ACCESS));
}

/*
 * Whether it is a mark of the file system as a whole. One of a mount has a number that only its own
 * namespace knows, and one of a file begins with its inode.
 */
static bool is_of_file_system(const char *line, uint32_t minor)
{
	unsigned int number = 0;

	return sscanf(line, "fanotify sdev:%x", &number) == 1 && number == minor;
}

static bool look_for_listener(struct search *s, int32_t pid, const char *fd)
{
	char path[64], *next, *line;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/fdinfo/%s", pid, fd);
	n = file_read_at(s->procfs_fd, path, s->buf, sizeof(s->buf));
	/* There may be thousands of marks, of which the first ones tell enough. */
	if (n <= 0 && n != -ENOBUFS)
		return true;
	for (line = s->buf; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strncmp(line, "fanotify ", strlen("fanotify ")) != 0 || !asks_permission(line))
			continue;
		s->candidates += pid != s->last_candidate;
		s->last_candidate = pid;
		if (!is_of_file_system(line, s->minor))
			continue;
		s->listeners += pid != s->last_listener;
		s->last_listener = pid;
	}
	return true;
}

/* Nobody else can be asked for permission; 0: that may be several. */
static int32_t only_listener(const struct search *s)
{
	if (s->found.search != RECORD_SEARCH_complete)
		return 0;
	if (s->listeners)
		return s->listeners == 1 ? s->last_listener : 0;
	return s->candidates == 1 ? s->last_candidate : 0;
}

static bool look_for_audit_socket(struct search *s, int32_t pid, const char *link)
{
	if (strcmp(link, s->audit_link) != 0)
		return true;
	s->candidates += pid != s->last_candidate;
	s->last_candidate = pid;
	return true;
}

static bool look_at(void *arg, int32_t pid, const char *fd)
{
	struct search *s = arg;
	char path[32];

	if (!open_files_read_link(s->procfs_fd, pid, fd, path, sizeof(path)))
		return true;
	if (s->waits_for == RECORD_CAUSE_audit)
		return look_for_audit_socket(s, pid, path);
	if (s->waits_for == RECORD_CAUSE_access_check)
		return strcmp(path, "anon_inode:[fanotify]") != 0 || look_for_listener(s, pid, fd);
	return strcmp(path, "/dev/fuse") != 0 || look_for_fuse(s, pid, fd);
}

/*
 * "00000000b6559bc2 9   812        00000000 212992   0        0     2        0        4711": the
 * kernel waits for nobody who takes copies as one of a group.
 */
static void take_netlink_socket(void *arg, struct cursor line)
{
	uint64_t protocol, port, groups, unread, inode = 0, other;
	struct search *s = arg;

	if (cursor_hex(&line, &other) < 0 || cursor_u64(&line, &protocol) < 0 ||
		cursor_u64(&line, &port) < 0 || cursor_hex(&line, &groups) < 0 ||
		cursor_u64(&line, &unread) < 0)
		return;
	/* Behind four others. */
	for (unsigned int i = 0; i < 5; i++)
		if (cursor_u64(&line, &inode) < 0)
			return;
	/* Who waits for the daemon may have an answer of the kernel that is not read yet. */
	if (protocol != NETLINK_AUDIT || groups || unread < s->full_bytes)
		return;
	s->audit_sockets++;
	s->audit_port = (int32_t)port;
	snprintf(s->audit_link, sizeof(s->audit_link), "socket:[%" PRIu64 "]", inode);
}

/*
 * Newer kernels (6.12.117) refuse a record that has no room; older ones take one more, and are over
 * the limit then. Less only for a socket that was made smaller; where it is not known, any that are
 * not read.
 */
static uint64_t read_full_bytes(struct search *s)
{
	ssize_t n = file_read_at(s->procfs_fd, "sys/net/core/rmem_default", s->buf, sizeof(s->buf));
	struct cursor text = { s->buf, s->buf + (n > 0 ? n : 0) };
	uint64_t bytes;

	return cursor_u64(&text, &bytes) == 0 && bytes > AUDIT_RECORD_MAX ? bytes - AUDIT_RECORD_MAX
									  : 1;
}

/*
 * Without asking the kernel (AUDIT_GET): who asks while the queue is full is kept waiting as well,
 * for a minute (audit_receive() in kernel/audit.c), and may turn auditing off, too.
 */
static bool visit_audit(struct search *s, const struct open_files *files)
{
	/* iostall may have a network namespace of its own. */
	_cleanup_close_ int fd = openat(s->procfs_fd, "1/net/netlink", O_RDONLY | O_CLOEXEC);

	s->audit_sockets = 0;
	s->full_bytes = read_full_bytes(s);
	if (fd < 0 || lines_read_fd(fd, s->buf, sizeof(s->buf), take_netlink_socket, s) < 0 ||
		s->audit_sockets != 1)
		return true;
	/* The first netlink socket of a process has its id, which others may have meanwhile. */
	if (!open_files_visit_process(files, s->audit_port))
		return false;
	return s->candidates || open_files_visit(files);
}

/* '\0': it is gone. */
static char state_of(const struct search *s, int32_t pid, int32_t tid)
{
	struct watch_thread_status status;
	char path[64];

	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	return thread_status_read_at(s->procfs_fd, path, &status) == 0 ? status.state : '\0';
}

/* That of its first thread, or D where any thread is in D state. */
static char state_of_process(struct search *s, uint64_t deadline_ns)
{
	_cleanup_close_ int fd = -1;
	char path[64], state = state_of(s, s->found.pid, s->found.pid);
	struct dents dents;
	const char *name;
	int32_t tid;

	snprintf(path, sizeof(path), "%d/task", s->found.pid);
	fd = openat(s->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&dents);
	while (fd >= 0 && state != 'D' && dents_next_number(&dents, fd, &tid, &name) > 0 &&
		clock_mono_ns() < deadline_ns)
		if (state_of(s, s->found.pid, tid) == 'D')
			state = 'D';
	return state;
}

static void describe(struct search *s, uint64_t deadline_ns)
{
	struct record_file_server *found = &s->found;

	found->state = state_of_process(s, deadline_ns);
	open_files_read_comm(s->procfs_fd, found->pid, found->comm, sizeof(found->comm));
	if (*found->comm)
		return;
	/* It has ended meanwhile. */
	*found = (struct record_file_server){ .search = found->search, .basis = RECORD_BASIS_NONE };
}

static void run(void *state, const int *fds)
{
	struct search *s = state;
	uint64_t begin_ns = clock_mono_ns(), deadline_ns = begin_ns + OPEN_FILES_LIMIT_NS;
	const struct open_files files = { .procfs_fd = fds[0],
		.deadline_ns = deadline_ns,
		.visit = look_at,
		.arg = s };

	s->procfs_fd = fds[0];
	s->kernel_tells = false;
	s->candidates = 0;
	s->last_candidate = 0;
	s->named = 0;
	s->last_named = 0;
	s->listeners = 0;
	s->last_listener = 0;
	s->found = (struct record_file_server){ .search = RECORD_SEARCH_complete };
	if (s->waits_for == RECORD_CAUSE_audit ? !visit_audit(s, &files)
					       : !open_files_visit(&files))
		s->found.search = RECORD_SEARCH_cut_off;
	if (s->waits_for == RECORD_CAUSE_access_check)
		s->found.pid = only_listener(s);
	s->found.basis = s->found.pid ? RECORD_BASIS_measured : RECORD_BASIS_inferred;
	if (!s->found.pid && !s->kernel_tells && s->waits_for != RECORD_CAUSE_access_check)
		s->found.pid = likeliest_server(s);
	if (s->found.pid)
		describe(s, deadline_ns);
	else
		s->found.basis = RECORD_BASIS_NONE;
	s->took_ns = clock_mono_ns() - begin_ns;
}

/* Questions and answers, on the event loop */

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct search),
	.limit_ns = FILE_SERVER_LIMIT_NS,
};

int file_server_new(int procfs_fd, struct file_server **ret_server)
{
	*ret_server = renewable_worker_new(sizeof(**ret_server), &kind, procfs_fd);
	return *ret_server ? 0 : -errno;
}

struct file_server *file_server_free(struct file_server *w)
{
	return renewable_worker_free(w);
}

void file_server_replace_hung(struct file_server *w, uint64_t now_ns)
{
	if (renewable_worker_renew(&w->worker, now_ns) >= 0)
		w->is_expected = false;
}

static bool is_other(const struct file_server *w, const struct file_server_question *q)
{
	return q->incident_ns != w->incident_ns || q->major != w->answer.dev.major ||
		q->minor != w->answer.dev.minor || q->waits_for != w->answer.waits_for;
}

static void begin(struct file_server *w, const struct file_server_question *q)
{
	const struct mount *m = mounts_find_device(q->mounts, q->major, q->minor);

	w->incident_ns = q->incident_ns;
	w->is_expected = false;
	w->rest_until_ns = 0;
	w->answer = (struct record_file_server){ .present = true,
		.waits_for = q->waits_for,
		.dev = { .major = q->major, .minor = q->minor } };
	if (!m)
		return;
	text_copy(w->answer.source, sizeof(w->answer.source), m->source);
	text_copy_end(w->answer.mount, sizeof(w->answer.mount), m->point, strlen(m->point));
}

static void search(struct file_server *w, const struct file_server_question *q)
{
	const struct mount *m = mounts_find_device(q->mounts, q->major, q->minor);
	struct search *s = w->worker.state;

	/* The connection has the number of the file system, or of the disk below (fuseblk). */
	s->waits_for = q->waits_for;
	s->minor = q->major << 20 | q->minor;
	text_copy(s->mount, sizeof(s->mount), m ? m->point : "");
	w->is_expected = true;
	renewable_worker_start(&w->worker, q->now_ns);
}

static void take_found(struct file_server *w, const struct search *s)
{
	const struct record_file_server *found = &s->found;

	w->answer.search = found->search;
	w->answer.basis = found->basis;
	w->answer.pid = found->pid;
	w->answer.state = found->state;
	text_copy(w->answer.comm, sizeof(w->answer.comm), found->comm);
	w->rest_until_ns = w->worker.started_ns + s->took_ns * (1 + OPEN_FILES_REST_TIMES);
	w->is_expected = false;
}

static void take(struct file_server *w, uint64_t now_ns)
{
	if (renewable_worker_is_busy(&w->worker)) {
		if (renewable_worker_is_late(&w->worker, now_ns))
			w->answer.search = RECORD_SEARCH_timed_out;
	} else if (w->is_expected) {
		take_found(w, w->worker.state);
	}
}

void file_server_find(struct file_server *w, const struct file_server_question *q)
{
	if (is_other(w, q))
		begin(w, q);
	take(w, q->now_ns);
	if (!renewable_worker_is_busy(&w->worker) && record_cause_has_process(q->waits_for) &&
		q->now_ns >= w->rest_until_ns)
		search(w, q);
}

void file_server_get(struct file_server *w, uint64_t incident_ns, uint64_t now_ns,
	struct record_file_server *ret_found)
{
	if (incident_ns != w->incident_ns)
		return;
	take(w, now_ns);
	*ret_found = w->answer;
}
