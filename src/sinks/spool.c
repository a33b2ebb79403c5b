/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sinks/files.h"
#include "sinks/sink.h"
#include "sinks/spare.h"
#include "sinks/writer.h"
#include "util/cleanup.h"
#include "util/log.h"

/*
 * Kept free for `close`, what comes before it and what after, so that a record that is full still says
 * how it ended, who loaded the disks and what it lost.
 */
#define RESERVED_BYTES (64 * 1024)
/* Of these: what lines about the disks leave to the verdict and `close`, and the verdict to `close`. */
#define RESERVED_AFTER_DISKS (RESERVED_BYTES / 4)
#define RESERVED_AFTER_VERDICT (RESERVED_BYTES / 16)

struct spool {
	int dir_fd;
	struct spare *spare;
	struct writer *writer;
	struct spool_file live; /* of the open incident, fd -1 when there is none */
	size_t used;
	size_t repeated_bytes; /* of them, by lines that come again and again */
	uint64_t dropped;
	uint64_t dropped_at_open;
	/* The `open` line of an incident for which no file was ready. */
	char incident[RECORD_ID_SIZE];
	size_t waiting_len;
	char waiting[RECORD_LINE_SIZE];
};

/*
 * Byte after byte and not by memcpy(), which copies in any order: a daemon killed in here leaves
 * the beginning of a line, never a hole.
 */
static void copy_in_order(volatile char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i];
}

/*
 * One hung thread gives a `stuck` line each second, a `stall` line comes once: the former, and
 * samples, share half of the file, so that the latter find room however long it lasts.
 */
static bool is_repeated(enum record_type type)
{
	return type == RECORD_STUCK || type == RECORD_SAMPLE;
}

/* What is kept free for those that come later: the end is said when stalls have perhaps filled the file. */
static size_t reserved_after(const struct record *r)
{
	switch (r->type) {
	case RECORD_CLOSE:
		return 0;
	case RECORD_VERDICT:
		return RESERVED_AFTER_VERDICT;
	case RECORD_IO_BY:
		return RESERVED_AFTER_DISKS;
	case RECORD_DEVICE:
		return r->device.final ? RESERVED_AFTER_DISKS : RESERVED_BYTES;
	default:
		return RESERVED_BYTES;
	}
}

static bool spool_has_room(const struct spool *s, enum record_type type, size_t reserved, size_t len)
{
	/* A quarter of a small file, and the shares of it as of a large one. */
	if (s->live.bytes < 4 * RESERVED_BYTES)
		reserved = reserved * (s->live.bytes / 4) / RESERVED_BYTES;
	if (is_repeated(type) && s->repeated_bytes + len > s->live.bytes / 2)
		return false;
	return s->used + len + reserved <= s->live.bytes;
}

static void spool_append(struct spool *s, enum record_type type, size_t reserved, const char *line,
	size_t len)
{
	if (!spool_has_room(s, type, reserved, len)) {
		if (s->dropped == s->dropped_at_open)
			log_warning("incident %s outgrew record.spool_bytes, some of its lines are "
				    "dropped",
				s->incident);
		s->dropped++;
		return;
	}
	copy_in_order(s->live.map + s->used, line, len);
	s->used += len;
	if (is_repeated(type))
		s->repeated_bytes += len;
}

static bool spool_is_live(const struct spool *s)
{
	return s->live.fd >= 0;
}

static void spool_release(struct spool *s)
{
	munmap(s->live.map, s->live.bytes);
	/* Its lock goes with the descriptor. */
	s->live.fd = close_fd(s->live.fd);
	spare_set_live(s->spare, false);
}

/* Takes the spare, if there is one, and writes the line that waits for it. */
static void spool_begin(struct spool *s)
{
	char name[RECORD_FILE_SIZE];

	if (!spare_take(s->spare, &s->live))
		return;
	spare_set_live(s->spare, true);
	s->used = 0;
	s->repeated_bytes = 0;
	snprintf(name, sizeof(name), "%s" RECORD_FILE_SUFFIX, s->incident);
	if (renameat2(s->dir_fd, s->live.name, s->dir_fd, name, RENAME_NOREPLACE) == 0) {
		spool_append(s, RECORD_OPEN, RESERVED_BYTES, s->waiting, s->waiting_len);
	} else {
		/* Two processes drew the same id in the same second: the first one keeps it. */
		log_warning("incident %s is not recorded: %s", s->incident, strerror(errno));
		unlinkat(s->dir_fd, s->live.name, 0);
		spool_release(s);
		s->dropped++;
	}
	s->waiting_len = 0;
}

static void spool_end(struct spool *s)
{
	if (s->waiting_len > 0) {
		s->dropped++;
		s->waiting_len = 0;
		log_warning("incident %s found no spool file, it is not recorded", s->incident);
	}
	if (!spool_is_live(s))
		return;
	/* Without its padding it is a finished record. */
	if (ftruncate(s->live.fd, (off_t)s->used) < 0)
		log_warning("cannot cut the spool file of %s: %s, ignoring", s->incident,
			strerror(errno));
	spool_release(s);
	writer_wake(s->writer);
}

static void spool_open_incident(struct spool *s, const struct record *r, const struct text *json)
{
	/* One that never was closed. */
	spool_end(s);
	memcpy(s->incident, r->incident, sizeof(s->incident));
	s->dropped_at_open = s->dropped;
	memcpy(s->waiting, json->buf, json->len);
	s->waiting_len = json->len;
	spool_begin(s);
	if (!spool_is_live(s))
		spare_set_live(s->spare, false);
}

static void spool_write(void *state, const struct record *r, const struct text *json)
{
	struct spool *s = state;

	if (json->overflow) {
		s->dropped++;
		return;
	}
	if (r->type == RECORD_OPEN) {
		spool_open_incident(s, r, json);
		return;
	}
	if (s->waiting_len > 0)
		spool_begin(s);
	if (spool_is_live(s))
		spool_append(s, r->type, reserved_after(r), json->buf, json->len);
	else
		s->dropped++;
	if (r->type == RECORD_CLOSE)
		spool_end(s);
}

static void spool_tick(void *state, uint64_t now_mono_ns)
{
	struct spool *s = state;

	(void)now_mono_ns;
	if (s->waiting_len == 0)
		return;
	spool_begin(s);
	if (!spool_is_live(s))
		spare_set_live(s->spare, false);
}

static uint64_t spool_dropped(const void *state)
{
	return ((const struct spool *)state)->dropped;
}

static bool spool_settled(void *state)
{
	const struct spool *s = state;

	/* The spare too, or its thread would leave a half-made file behind at exit. */
	return writer_is_settled(s->writer) && spare_is_settled(s->spare);
}

static void spool_close(void *state)
{
	struct spool *s = state;

	if (s->writer && s->spare)
		spool_end(s);
	spare_free(s->spare);
	writer_free(s->writer);
	close_fd(s->dir_fd);
	free(s);
}

static void cleanup_spool(struct spool **s)
{
	if (*s)
		spool_close(*s);
}

/* The service finds it made by systemd; `watch` on a host without the service makes it. */
static int open_spool_dir(const char *path, gid_t group)
{
	bool made = mkdir(path, 0750) == 0;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return -errno;
	if (made)
		files_set_access(fd, 0750, group);
	if (fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC)
		log_warning("%s is not on a tmpfs: a hung disk may stop the recording", path);
	return TAKE_FD(fd);
}

static int spool_open(const struct sinks_options *options, void **ret_state)
{
	const struct config *config = options->config;
	_cleanup_(cleanup_spool) struct spool *s = calloc(1, sizeof(*s));
	gid_t group = files_find_group();
	int r;

	if (!s)
		return -ENOMEM;
	s->live.fd = -1;
	s->dir_fd = open_spool_dir(config->record.spool_dir, group);
	if (s->dir_fd < 0)
		return s->dir_fd;
	r = spare_new(&(struct spare_options){ .spool_dir = config->record.spool_dir,
			      .bytes = config->record.spool_bytes,
			      .group = group },
		&s->spare);
	if (r < 0)
		return r;
	r = writer_new(&(struct writer_options){ .spool_dir = config->record.spool_dir,
			       .dir = config->record.dir,
			       .limits = { .max_bytes = config->record.max_bytes,
				       .max_count = config->record.max_count,
				       .max_age_ns = config->record.max_age_ns },
			       .group = group,
			       .retry_ns = WRITER_RETRY_NS,
			       .age_check_ns = WRITER_AGE_CHECK_NS },
		&s->writer);
	if (r < 0)
		return r;
	*ret_state = TAKE_PTR(s);
	return 0;
}

const struct sink sink_spool = {
	.name = "spool",
	.open = spool_open,
	.write = spool_write,
	.tick = spool_tick,
	.dropped = spool_dropped,
	.settled = spool_settled,
	.close = spool_close,
};
