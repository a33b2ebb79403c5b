/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sinks/dir.h"
#include "sinks/namer.h"
#include "sinks/preallocator.h"
#include "sinks/sink.h"
#include "sinks/writer.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/log.h"

/*
 * The end of the file is reserved for the last lines of an incident, so that a full record still
 * says who loaded the disks, what the verdict is, how it ended and what was lost.
 */
#define RESERVED_BYTES (64 * 1024)
/*
 * These parts of it stay free after lines about the disks, for the verdict and `close`, and after
 * the verdict, for `close`.
 */
#define RESERVED_AFTER_DISKS (RESERVED_BYTES / 4)
#define RESERVED_AFTER_VERDICT (RESERVED_BYTES / 16)

struct spool {
	int dir_fd;
	struct preallocator *preallocator;
	struct namer *namer;
	struct writer *writer;
	struct spool_file live; /* file of the open incident; map NULL: there is none */
	/* Its incident: the next one may open before it has its name. */
	char live_incident[RECORD_ID_SIZE];
	bool named; /* it has the name of the record */
	bool ended; /* the record, but the file has no name yet */
	uint64_t lines;
	size_t used;
	size_t stuck_bytes;  /* used by `stuck` lines of one operation each */
	size_t sample_bytes; /* used by samples, and by lines that stand for many operations */
	uint64_t dropped;
	uint64_t dropped_at_open;
	/* The `open` line of an incident that has no file yet. */
	char incident[RECORD_ID_SIZE];
	size_t waiting_len;
	char waiting[RECORD_LINE_SIZE];
};

/*
 * Copies byte by byte, because memcpy() may copy in any order: a daemon that is killed here must
 * leave the beginning of a line and never a hole.
 */
static void copy_in_order(volatile char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i];
}

/* What the last lines say again. */
static bool is_so_far(const struct record *r)
{
	return (r->type == RECORD_VERDICT && !r->verdict.final) ||
		(r->type == RECORD_IO_BY && !r->io_by.final) ||
		(r->type == RECORD_JOURNAL && !r->journal.final) ||
		(r->type == RECORD_DEVICE && !r->device.final);
}

/*
 * Samples, lines that stand for many operations, and what is known so far say most in the fewest
 * bytes, so an eighth of the file is theirs alone. They and `stuck` lines are repeated as long as
 * the incident lasts, so each of the two gets at most half. The rest stays for `stall` lines, which
 * come once for each operation.
 */
#define SAMPLE_SHARE 8

static bool is_sample(const struct record *r)
{
	return r->type == RECORD_SAMPLE || is_so_far(r) ||
		((r->type == RECORD_STUCK || r->type == RECORD_STALL) &&
			r->operation.alike.present);
}

static bool is_stuck(const struct record *r)
{
	return r->type == RECORD_STUCK && !is_sample(r);
}

/* How much of the file must stay free after this line for those that come later. */
static size_t reserved_after(const struct record *r)
{
	if (is_so_far(r))
		return RESERVED_BYTES;
	switch (r->type) {
	case RECORD_CLOSE:
		return 0;
	case RECORD_VERDICT:
		return RESERVED_AFTER_VERDICT;
	case RECORD_IO_BY:
	case RECORD_DEVICE:
	case RECORD_JOURNAL:
		return RESERVED_AFTER_DISKS;
	default:
		return RESERVED_BYTES;
	}
}

/* What must stay free after this line for samples to come; none come before the last lines. */
static size_t reserved_for_samples(const struct spool *s, const struct record *r)
{
	size_t share = s->live.bytes / SAMPLE_SHARE;

	if (is_sample(r) || s->sample_bytes >= share || reserved_after(r) < RESERVED_BYTES)
		return 0;
	return share - s->sample_bytes;
}

static bool spool_has_room(const struct spool *s, const struct record *r, size_t len)
{
	size_t reserved = reserved_after(r);

	/* In a small file a quarter is reserved, and divided in the same proportions. */
	if (s->live.bytes < 4 * RESERVED_BYTES)
		reserved = reserved * (s->live.bytes / 4) / RESERVED_BYTES;
	if (is_stuck(r) && s->stuck_bytes + len > s->live.bytes / 2)
		return false;
	if (is_sample(r) && s->sample_bytes + len > s->live.bytes / 2)
		return false;
	return s->used + len + reserved + reserved_for_samples(s, r) <= s->live.bytes;
}

static void spool_append(struct spool *s, const struct record *r, const char *line, size_t len)
{
	if (!spool_has_room(s, r, len)) {
		if (s->dropped == s->dropped_at_open)
			log_warning("incident %s: the record is full, some lines are dropped; "
				    "increase record.spool_bytes",
				s->incident);
		s->dropped++;
		return;
	}
	copy_in_order(s->live.map + s->used, line, len);
	s->used += len;
	s->lines++;
	writer_note_bytes(s->writer, s->used);
	if (is_stuck(r))
		s->stuck_bytes += len;
	if (is_sample(r))
		s->sample_bytes += len;
}

static bool spool_is_live(const struct spool *s)
{
	return s->live.map && !s->ended;
}

/*
 * With its name the file is known to the writer. When the record has ended, too, or when the file
 * cannot have its name, nothing more is written to it.
 */
static void spool_look_at_name(struct spool *s)
{
	int r = s->live.map ? namer_result(s->namer) : -EINPROGRESS;

	if (r == -EINPROGRESS)
		return;
	if (r < 0)
		s->dropped += s->lines;
	else if (!s->named && !s->ended)
		writer_begin(s->writer, s->live_incident);
	s->named = r == 0;
	if (s->named && !s->ended)
		return;
	preallocator_give_back(s->preallocator, &s->live, s->used);
	s->ended = false;
	writer_end(s->writer, s->live_incident);
}

/* Takes the preallocated file, if it is ready, and writes the line that waits for it. */
static void spool_begin(struct spool *s)
{
	static const struct record open = { .type = RECORD_OPEN };

	if (!preallocator_take(s->preallocator, &s->live))
		return;
	s->used = s->lines = 0;
	s->stuck_bytes = s->sample_bytes = 0;
	s->named = false;
	memcpy(s->live_incident, s->incident, sizeof(s->live_incident));
	namer_start(s->namer, s->live.name, s->live_incident);
	spool_append(s, &open, s->waiting, s->waiting_len);
	s->waiting_len = 0;
}

static void spool_end(struct spool *s)
{
	if (s->waiting_len > 0) {
		s->dropped++;
		s->waiting_len = 0;
		log_warning("incident %s is not recorded: there was no spool file for it",
			s->incident);
	}
	if (!spool_is_live(s))
		return;
	s->ended = true;
	spool_look_at_name(s);
}

static void spool_open_incident(struct spool *s, const struct record *r, const struct text *json)
{
	/* Ends an incident that was never closed. */
	spool_end(s);
	memcpy(s->incident, r->incident, sizeof(s->incident));
	s->dropped_at_open = s->dropped;
	memcpy(s->waiting, json->buf, json->len);
	s->waiting_len = json->len;
	spool_begin(s);
}

static void spool_write(void *state, const struct record *r, const struct text *json)
{
	struct spool *s = state;

	if (json->overflow) {
		s->dropped++;
		return;
	}
	spool_look_at_name(s);
	if (r->type == RECORD_OPEN) {
		spool_open_incident(s, r, json);
		return;
	}
	if (s->waiting_len > 0)
		spool_begin(s);
	if (spool_is_live(s))
		spool_append(s, r, json->buf, json->len);
	else
		s->dropped++;
	if (r->type == RECORD_CLOSE)
		spool_end(s);
}

static void spool_tick(void *state, uint64_t now_mono_ns)
{
	struct spool *s = state;

	spool_look_at_name(s);
	preallocator_tick(s->preallocator, now_mono_ns);
	if (s->waiting_len > 0)
		spool_begin(s);
}

static uint64_t spool_dropped(const void *state)
{
	return ((const struct spool *)state)->dropped;
}

static bool spool_is_flushed(void *state)
{
	struct spool *s = state;

	spool_look_at_name(s);
	/*
	 * The preallocator must have finished, too, or its thread would leave an incomplete file at
	 * exit.
	 */
	return !s->ended && writer_is_flushed(s->writer) && preallocator_is_ready(s->preallocator);
}

static bool spool_keeps_records(const void *state)
{
	const struct spool *s = state;

	return s->ended || !writer_dir_works(s->writer) || !writer_is_flushed(s->writer);
}

static void spool_close(void *state)
{
	struct spool *s = state;

	if (s->writer && s->preallocator) {
		spool_end(s);
		/* Without a name the record is found by the next start, or by this writer. */
		if (s->ended)
			preallocator_give_back(s->preallocator, &s->live, s->used);
	}
	preallocator_free(s->preallocator);
	namer_free(s->namer);
	writer_free(s->writer);
	close_fd(s->dir_fd);
	free(s);
}

static void cleanup_spool(struct spool **s)
{
	if (*s)
		spool_close(*s);
}

static int spool_open(const struct sinks_options *options, void **ret_state)
{
	const struct config *config = options->config;
	_cleanup_(cleanup_spool) struct spool *s = calloc(1, sizeof(*s));
	gid_t group = file_find_group();
	int r;

	if (!s)
		return -ENOMEM;
	s->dir_fd = dir_open_or_make(config->record.spool_dir, DIR_SPOOL, group);
	if (s->dir_fd < 0)
		return s->dir_fd;
	/* Asked about what was opened: the path may lead elsewhere a moment later. */
	if (!file_fd_is_in_memory(s->dir_fd))
		return -EMEDIUMTYPE;
	r = preallocator_new(&(struct preallocator_options){ .spool_dir = config->record.spool_dir,
				     .spool_fd = s->dir_fd,
				     .bytes = config->record.spool_bytes,
				     .group = group },
		&s->preallocator);
	if (r == 0)
		r = namer_new(s->dir_fd, &s->namer);
	if (r < 0)
		return r;
	r = writer_new(&(struct writer_options){ .spool_dir = config->record.spool_dir,
			       .dir = config->record.dir,
			       .limits = { .max_bytes = config->record.max_bytes,
				       .max_count = config->record.max_count,
				       .max_age_ns = config->record.max_age_ns },
			       .group = group,
			       .retry_ns = WRITER_RETRY_NS,
			       .save_ns = WRITER_SAVE_NS,
			       .age_check_ns = WRITER_AGE_CHECK_NS },
		&s->writer);
	if (r < 0)
		return r;
	*ret_state = TAKE_PTR(s);
	return 0;
}

static bool spool_is_used(const struct config *config, bool foreground)
{
	(void)config;
	(void)foreground;
	return true;
}

const struct sink sink_spool = {
	.name = "spool",
	.is_used = spool_is_used,
	.open = spool_open,
	.write = spool_write,
	.tick = spool_tick,
	.dropped = spool_dropped,
	.flushed = spool_is_flushed,
	.keeps_records = spool_keeps_records,
	.close = spool_close,
};
