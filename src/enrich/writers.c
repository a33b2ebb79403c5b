/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"
#include "util/renewable_worker.h"
#include "util/text.h"
#include "watch/lines.h"
#include "watch/open_files.h"
#include "watch/parsers.h"

#define BLOCK_BYTES 512
/* Two buffers for directories, a path of 4 KB, and statx(2). */
#define THREAD_STACK_BYTES (32 * 1024)
/*
 * Files that were there before and whose growth is known; each takes 24 bytes. A database server
 * has so many tables open for writing.
 */
#define FILES_MAX 4096
/* Mounts below the one that is full. With more, the thread may ask about a file of another one. */
#define NESTED_MAX 64
/* A volume may be in a container at several places. */
#define OWN_MOUNTS_MAX 64
/* "mnt:[4026531841]" */
#define NAMESPACE_SIZE 32

struct file {
	uint64_t inode;
	uint64_t dev;
	uint64_t first_bytes; /* when it was seen first */
};

/* Of the thread while it is busy. */
struct search {
	char mount[MOUNTS_PATH_SIZE];
	uint32_t major; /* 0: files may tell another device, as those of btrfs do */
	uint32_t minor;
	unsigned int nested_count;
	char nested[NESTED_MAX][MOUNTS_PATH_SIZE];
	uint64_t first_real_ns; /* when the first look began; 0: this is the first one */
	uint32_t files_count;
	struct file files[FILES_MAX];
	struct open_files_place place; /* the last look was cut off there */
	struct record_writer best;     /* of the looks of this incident; see keep_last() */
	/* Of this look: */
	int procfs_fd;
	char namespace[NAMESPACE_SIZE]; /* of the host's mounts; "": it is not known */
	uint64_t begin_real_ns;
	uint64_t took_ns;
	/* Of the process that it looks at: its mounts of the file system. */
	bool has_own_mounts; /* it is in another mount namespace */
	bool are_mounts_known;
	unsigned int own_mounts_count;
	uint64_t own_mounts[OWN_MOUNTS_MAX];
	char text[8192]; /* the options of an overlay alone may have 4096 */
};

struct writers {
	struct renewable_worker worker; /* its state is a struct search */
	uint64_t incident_ns;
	bool is_first;	  /* the next look is the first one of this incident */
	bool is_expected; /* the look that is under way is of this incident */
	uint64_t rest_until_ns;
	struct record_writer answer;
};

/* Paths */

/* "/": every absolute path is on it. */
static bool is_below(const char *path, const char *mount)
{
	size_t len = strcmp(mount, "/") == 0 ? 0 : strlen(mount);

	return strncmp(path, mount, len) == 0 && path[len] == '/';
}

static bool is_on_mount(const struct search *s, const char *path)
{
	bool is_on = is_below(path, s->mount);

	for (unsigned int i = 0; is_on && i < s->nested_count; i++)
		is_on = !is_below(path, s->nested[i]);
	return is_on;
}

/* Which mount a record means: of a long path it has the end. */
static bool is_meant(const char *point, const char *mount)
{
	char shown[RECORD_MOUNT_SIZE];

	text_copy_end(shown, sizeof(shown), point, strlen(point));
	return strcmp(shown, mount) == 0;
}

/* False: nothing is mounted there, as far as is known, or it is one of several that end alike. */
static bool find_mount(struct search *s, const struct mounts *mounts, const char *mount)
{
	const struct mount *found = NULL;

	for (unsigned int i = 0; i < mounts->count; i++) {
		const struct mount *m = &mounts->list[i];

		if (!is_meant(m->point, mount))
			continue;
		if (found && strcmp(found->point, m->point) != 0)
			return false;
		found = m;
	}
	if (!found)
		return false;
	text_copy(s->mount, sizeof(s->mount), found->point);
	s->major = found->major;
	s->minor = found->minor;
	return true;
}

static bool take_mounts(struct search *s, const struct mounts *mounts, const char *mount)
{
	if (!find_mount(s, mounts, mount))
		return false;
	s->nested_count = 0;
	for (unsigned int i = 0; i < mounts->count && s->nested_count < NESTED_MAX; i++)
		if (is_below(mounts->list[i].point, s->mount))
			text_copy(s->nested[s->nested_count++], MOUNTS_PATH_SIZE,
				mounts->list[i].point);
	return true;
}

/* A look, on the thread */

static void read_namespace(int procfs_fd, const char *process, char *ret_link, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/ns/mnt", process);
	n = readlinkat(procfs_fd, path, ret_link, size - 1);
	ret_link[n > 0 ? n : 0] = '\0';
}

/* That of the mounts that are known: mounts_reader.c reads those of process 1, too, if it can. */
static void read_own_namespace(struct search *s)
{
	read_namespace(s->procfs_fd, "1", s->namespace, sizeof(s->namespace));
	if (!*s->namespace)
		read_namespace(s->procfs_fd, "self", s->namespace, sizeof(s->namespace));
}

/* Always true: all processes are to be looked at. */
static bool begin_process(void *arg, int32_t pid)
{
	struct search *s = arg;
	char link[NAMESPACE_SIZE], process[16];

	snprintf(process, sizeof(process), "%" PRId32, pid);
	read_namespace(s->procfs_fd, process, link, sizeof(link));
	s->has_own_mounts = *link && *s->namespace && strcmp(link, s->namespace) != 0;
	s->are_mounts_known = false;
	return true;
}

/* What a container writes outside of its volumes goes to a directory of the host. */
static bool has_layer_there(const struct search *s, const struct watch_mountinfo *m)
{
	char path[MOUNTS_PATH_SIZE];

	return mounts_read_directory(m, "upperdir=", path) && is_on_mount(s, path);
}

static void take_own_mount(void *arg, struct cursor line)
{
	struct search *s = arg;
	struct watch_mountinfo m;

	if (watch_parse_mountinfo_line(line, &m) < 0 || s->own_mounts_count == OWN_MOUNTS_MAX)
		return;
	if ((m.major == s->major && m.minor == s->minor) || has_layer_there(s, &m))
		s->own_mounts[s->own_mounts_count++] = m.id;
}

/* Of a process in another mount namespace, as of a container: its paths say nothing here. */
static bool is_in_own_mount(struct search *s, int32_t pid, uint64_t mount)
{
	if (!s->are_mounts_known) {
		_cleanup_close_ int fd = -1;
		char path[64];

		snprintf(path, sizeof(path), "%d/mountinfo", pid);
		fd = openat(s->procfs_fd, path, O_RDONLY | O_CLOEXEC);
		s->are_mounts_known = true;
		s->own_mounts_count = 0;
		if (fd >= 0)
			lines_read_fd(fd, s->text, sizeof(s->text), take_own_mount, s);
	}
	for (unsigned int i = 0; i < s->own_mounts_count; i++)
		if (s->own_mounts[i] == mount)
			return true;
	return false;
}

/* By what is known without asking its file system, which may be another one that hangs. */
static bool is_written_there(struct search *s, int32_t pid, const char *fd, const char *path)
{
	struct open_files_info info;

	if (!s->has_own_mounts && !is_on_mount(s, path))
		return false;
	return open_files_read_info(s->procfs_fd, pid, fd, &info) &&
		(info.access_mode == O_WRONLY || info.access_mode == O_RDWR) &&
		(!s->has_own_mounts || is_in_own_mount(s, pid, info.mount));
}

/* Made since the first look, so all of it has grown since. */
static bool is_made_since(const struct search *s, const struct statx *st)
{
	uint64_t made_ns = (uint64_t)st->stx_btime.tv_sec * NSEC_PER_SEC + st->stx_btime.tv_nsec;

	return s->first_real_ns && (st->stx_mask & STATX_BTIME) && made_ns >= s->first_real_ns;
}

/* *ret_first: when it was seen first. False: there is no room to remember it. */
static bool remember(struct search *s, const struct statx *st, uint64_t *ret_first)
{
	uint64_t dev = makedev(st->stx_dev_major, st->stx_dev_minor);
	struct file *f = s->files, *end = f + s->files_count;

	while (f < end && (f->inode != st->stx_ino || f->dev != dev))
		f++;
	if (f == &s->files[FILES_MAX])
		return false;
	if (f == end) {
		*f = (struct file){ st->stx_ino, dev, st->stx_blocks * BLOCK_BYTES };
		s->files_count++;
	}
	*ret_first = f->first_bytes;
	return true;
}

/* Since it was seen first. Space counts, not the size: a file may be sparse. */
static uint64_t grown_bytes(struct search *s, const struct statx *st)
{
	uint64_t first = 0, grown;

	if (!is_made_since(s, st) && !remember(s, st, &first)) {
		s->best.search = RECORD_SEARCH_cut_off;
		return 0;
	}
	grown = minus(st->stx_blocks * BLOCK_BYTES, first);
	return grown < WRITERS_GROWTH_MIN ? 0 : grown;
}

static uint64_t changed_ns(const struct statx *st)
{
	return (uint64_t)st->stx_mtime.tv_sec * NSEC_PER_SEC + st->stx_mtime.tv_nsec;
}

/*
 * Where nothing grows, perhaps because all is full, the largest file counts of those that were
 * changed since the first look, or else in the last minute.
 */
static bool counts(const struct search *s, const struct record_writer *w, const struct statx *st)
{
	return w->grown_bytes || w->changed ||
		changed_ns(st) + WRITERS_RECENT_S * NSEC_PER_SEC >= s->begin_real_ns;
}

static bool is_better(const struct record_writer *a, const struct record_writer *b)
{
	if (a->grown_bytes != b->grown_bytes)
		return a->grown_bytes > b->grown_bytes;
	if (a->changed != b->changed)
		return a->changed;
	return a->bytes > b->bytes;
}

/* The path "/memfd:NAME" only looks like one of a file there. */
static bool is_on_device(const struct search *s, const struct statx *st)
{
	return s->major == 0 || (st->stx_dev_major == s->major && st->stx_dev_minor == s->minor);
}

/* Always true: they all are to be looked at. */
static bool look_at_file(void *arg, int32_t pid, const char *fd)
{
	struct search *s = arg;
	char link[64], path[PATH_MAX];
	struct record_writer found = { .pid = pid };
	struct statx st;
	size_t len;

	snprintf(link, sizeof(link), "%d/fd/%s", pid, fd);
	if (!open_files_read_link(s->procfs_fd, pid, fd, path, sizeof(path)) ||
		!is_written_there(s, pid, fd, path) ||
		statx(s->procfs_fd, link, 0, STATX_BASIC_STATS | STATX_BTIME, &st) < 0 ||
		!S_ISREG(st.stx_mode) || (!s->has_own_mounts && !is_on_device(s, &st)))
		return true;
	found.bytes = st.stx_blocks * BLOCK_BYTES;
	found.grown_bytes = grown_bytes(s, &st);
	found.changed = s->first_real_ns && changed_ns(&st) >= s->first_real_ns;
	if (!counts(s, &found, &st) || !is_better(&found, &s->best))
		return true;
	s->best.pid = pid;
	s->best.bytes = found.bytes;
	s->best.grown_bytes = found.grown_bytes;
	s->best.changed = found.changed;
	len = strlen(path);
	text_copy(s->best.path, sizeof(s->best.path),
		len < sizeof(s->best.path) ? path : path + len + 1 - sizeof(s->best.path));
	return true;
}

/* What a look before has found is not among what this one had time for. */
static void keep_last(struct search *s, const struct record_writer *last)
{
	if (s->best.search != RECORD_SEARCH_cut_off || !is_better(last, &s->best))
		return;
	s->best = *last;
	s->best.search = RECORD_SEARCH_cut_off;
}

static void run(void *state, const int *fds)
{
	struct search *s = state;
	struct record_writer last;
	uint64_t begin_ns = clock_mono_ns();
	const struct open_files files = { .procfs_fd = fds[0],
		.deadline_ns = begin_ns + OPEN_FILES_LIMIT_NS,
		.visit = look_at_file,
		.arg = s,
		.wants = begin_process,
		.place = &s->place };

	s->procfs_fd = fds[0];
	read_own_namespace(s);
	s->begin_real_ns = clock_real_ns();
	last = s->best;
	s->best = (struct record_writer){ .present = true, .search = RECORD_SEARCH_complete };
	if (!open_files_visit(&files))
		s->best.search = RECORD_SEARCH_cut_off;
	if (!s->first_real_ns)
		s->first_real_ns = s->begin_real_ns;
	if (s->best.pid)
		open_files_read_comm(s->procfs_fd, s->best.pid, s->best.comm, sizeof(s->best.comm));
	keep_last(s, &last);
	s->took_ns = clock_mono_ns() - begin_ns;
}

/* Questions and answers, on the event loop */

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct search),
	.limit_ns = WRITERS_LIMIT_NS,
};

int writers_new(int procfs_fd, struct writers **ret_writers)
{
	*ret_writers = renewable_worker_new(sizeof(**ret_writers), &kind, procfs_fd);
	return *ret_writers ? 0 : -errno;
}

struct writers *writers_free(struct writers *w)
{
	return renewable_worker_free(w);
}

void writers_replace_hung(struct writers *w, uint64_t now_ns)
{
	if (renewable_worker_renew(&w->worker, now_ns) >= 0)
		w->is_expected = false;
}

static void begin_incident(struct writers *w, uint64_t incident_ns)
{
	w->incident_ns = incident_ns;
	w->is_first = true;
	w->is_expected = false;
	w->answer = (struct record_writer){ 0 };
}

static void look(struct writers *w, const struct writers_question *q)
{
	struct search *s = w->worker.state;

	if (q->now_ns < w->rest_until_ns || !take_mounts(s, q->mounts, q->mount))
		return;
	if (w->is_first) {
		s->files_count = 0;
		s->first_real_ns = 0;
		s->place = (struct open_files_place){ 0 };
		s->best = (struct record_writer){ 0 };
		w->is_first = false;
	}
	w->is_expected = true;
	renewable_worker_start(&w->worker, q->now_ns);
}

void writers_find(struct writers *w, const struct writers_question *q,
	struct record_writer *ret_writer)
{
	const struct search *s = w->worker.state;

	if (q->incident_ns != w->incident_ns)
		begin_incident(w, q->incident_ns);
	if (!renewable_worker_is_busy(&w->worker)) {
		if (w->is_expected) {
			w->answer = s->best;
			w->rest_until_ns =
				w->worker.started_ns + s->took_ns * (1 + OPEN_FILES_REST_TIMES);
		}
		w->is_expected = false;
		look(w, q);
	} else if (renewable_worker_is_late(&w->worker, q->now_ns)) {
		w->answer.present = true;
		w->answer.search = RECORD_SEARCH_timed_out;
	}
	*ret_writer = w->answer;
}
