/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/parse.h"

struct record_reader {
	int fd;
	off_t offset; /* of buf[0] in the file */
	size_t start; /* of what is not yet handed out */
	size_t end;
	bool at_end;		  /* of the file */
	bool too_long;		  /* inside a line that has already been counted */
	uint64_t pending_garbage; /* since the last good line: the last of them may be torn */
	struct record_reader_counts counts;
	char buf[RECORD_LINE_SIZE];
};

int record_reader_new(int fd, struct record_reader **ret_reader)
{
	struct record_reader *reader;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* Such as a sparse file of a terabyte, which would be read for hours. */
	if (st.st_size > RECORD_FILE_BYTES_MAX)
		return -EFBIG;
	reader = malloc(sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	memset(reader, 0, offsetof(struct record_reader, buf));
	reader->fd = fd;
	*ret_reader = reader;
	return 0;
}

struct record_reader *record_reader_free(struct record_reader *reader)
{
	free(reader);
	return NULL;
}

const struct record_reader_counts *record_reader_get_counts(const struct record_reader *reader)
{
	return &reader->counts;
}

static void cleanup_reader(struct record_reader **reader)
{
	record_reader_free(*reader);
}

/* Moves what is left to the front and reads behind it; -errno, or 0 with at_end set at the end. */
static int reader_fill(struct record_reader *reader)
{
	ssize_t n;

	memmove(reader->buf, reader->buf + reader->start, reader->end - reader->start);
	reader->offset += (off_t)reader->start;
	reader->end -= reader->start;
	reader->start = 0;
	do {
		n = pread(reader->fd, reader->buf + reader->end, sizeof(reader->buf) - reader->end,
			reader->offset + (off_t)reader->end);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	reader->end += (size_t)n;
	reader->at_end = n == 0;
	return 0;
}

static void reader_skip_long_line(struct record_reader *reader)
{
	if (!reader->too_long)
		reader->pending_garbage++;
	reader->too_long = true;
	reader->start = reader->end;
}

/* 1 with a line that is not blank and fits, 0 at the end, -errno. */
static int reader_next_line(struct record_reader *reader, struct record_line *ret_line)
{
	for (;;) {
		char *line = reader->buf + reader->start;
		size_t left = reader->end - reader->start;
		char *newline = left ? memchr(line, '\n', left) : NULL;
		size_t len = newline ? (size_t)(newline - line) : left;
		bool skip = len == 0 || reader->too_long;
		int r;

		if (newline || (reader->at_end && left > 0)) {
			reader->start += len + (newline ? 1 : 0);
			reader->too_long = false;
			if (skip)
				continue;
			ret_line->text = line;
			ret_line->len = len;
			ret_line->end = reader->offset + (off_t)reader->start;
			return 1;
		}
		if (reader->at_end)
			return 0;
		if (left == sizeof(reader->buf))
			reader_skip_long_line(reader);
		r = reader_fill(reader);
		if (r < 0)
			return r;
	}
}

int record_reader_next(struct record_reader *reader, struct record *ret_record,
	struct record_line *ret_line)
{
	int r;

	while ((r = reader_next_line(reader, ret_line)) > 0) {
		r = record_decode_json(ret_line->text, ret_line->len, ret_record);
		if (r < 0 && r != -EPROTONOSUPPORT) {
			reader->pending_garbage++;
			continue;
		}
		ret_line->decoded = r == 0;
		reader->counts.records += r == 0;
		reader->counts.newer += r != 0;
		reader->counts.unknown_values += r == 0 ? ret_record->unknown_values : 0;
		reader->counts.garbage += reader->pending_garbage;
		reader->pending_garbage = 0;
		return 1;
	}
	if (r == 0 && reader->pending_garbage > 0) {
		reader->counts.torn = true;
		reader->counts.garbage += reader->pending_garbage - 1;
		reader->pending_garbage = 0;
	}
	return r;
}

static void summary_add_verdict(struct record_summary *s, const struct record_verdict *v)
{
	s->class = v->class;
	memcpy(s->sentence, v->sentence, sizeof(s->sentence));
	memset(&s->culprit, 0, sizeof(s->culprit));
	for (uint32_t i = 0; i < v->parts_count && i < RECORD_PARTS_MAX; i++)
		if (v->parts[i].what == RECORD_WHAT_culprit)
			s->culprit = v->parts[i];
}

static void summary_add(struct record_summary *s, const struct record *r, bool *opened)
{
	switch (r->type) {
	case RECORD_OPEN:
		if (*opened)
			return;
		*opened = true;
		memcpy(s->incident, r->incident, sizeof(s->incident));
		s->trigger = r->open.trigger;
		memcpy(s->continues, r->open.continues, sizeof(s->continues));
		memcpy(s->host, r->open.host, sizeof(s->host));
		s->opened_real_ns = r->real_ns;
		s->opened_mono_ns = r->mono_ns;
		return;
	case RECORD_STALL:
	case RECORD_STUCK:
		if (r->type == RECORD_STALL)
			s->stalls += 1 + r->operation.alike.count;
		else
			s->stuck_lines++;
		if (r->operation.dur_ns > s->longest_ns)
			s->longest_ns = r->operation.dur_ns;
		if (r->operation.alike.max_ns > s->longest_ns)
			s->longest_ns = r->operation.alike.max_ns;
		break;
	case RECORD_VERDICT:
		summary_add_verdict(s, &r->verdict);
		break;
	case RECORD_CLOSE:
		s->closed = true;
		s->duration_ns = r->close.duration_ns;
		s->stalls = r->close.stalls;
		s->stuck_threads = r->close.stuck_threads;
		s->stuck_lines = r->close.stuck_lines;
		s->longest_ns = r->close.longest_ns;
		s->lost = 0;
		for (unsigned int i = 0; i < RECORD_LOST_COUNT; i++)
			s->lost += r->close.lost[i];
		return;
	default:
		break;
	}
	if (!s->closed && r->mono_ns > s->opened_mono_ns)
		s->duration_ns = r->mono_ns - s->opened_mono_ns;
}

static bool fd_is_being_written(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

int record_read_summary(int fd, struct record_summary *ret_summary)
{
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	_cleanup_free_ struct record *record = malloc(sizeof(*record));
	struct record_summary summary = { 0 };
	struct record_line line;
	bool opened = false;
	int r;

	if (!record)
		return -ENOMEM;
	r = record_reader_new(fd, &reader);
	if (r < 0)
		return r;
	/*
	 * Asked before reading: a file that is finished meanwhile is then read to its close line.
	 */
	summary.being_written = fd_is_being_written(fd);
	while ((r = record_reader_next(reader, record, &line)) > 0)
		if (line.decoded)
			summary_add(&summary, record, &opened);
	if (r < 0)
		return r;
	if (!opened)
		return -ENODATA;
	summary.counts = reader->counts;
	*ret_summary = summary;
	return 0;
}

int record_find_end(int fd, off_t *ret_end)
{
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	_cleanup_free_ struct record *record = malloc(sizeof(*record));
	struct record_line line;
	off_t end = 0;
	int r;

	if (!record)
		return -ENOMEM;
	r = record_reader_new(fd, &reader);
	if (r < 0)
		return r;
	while ((r = record_reader_next(reader, record, &line)) > 0)
		end = line.end;
	if (r < 0)
		return r;
	if (end == 0)
		return -ENODATA;
	*ret_end = end;
	return 0;
}

int record_fd_incident(int fd, char ret_incident[static RECORD_ID_SIZE])
{
	char head[128];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	struct cursor c = { head, head + (n > 0 ? n : 0) };
	uint64_t version;

	if (n < 0)
		return -errno;
	if (!cursor_take(&c, "{\"v\":") || cursor_u64(&c, &version) < 0 ||
		!cursor_take(&c, ",\"type\":\"open\",\"incident\":\"") ||
		c.end - c.p < RECORD_ID_SIZE || c.p[RECORD_ID_SIZE - 1] != '"' ||
		!record_id_is_valid(c.p, RECORD_ID_SIZE - 1))
		return -ENODATA;
	memcpy(ret_incident, c.p, RECORD_ID_SIZE - 1);
	ret_incident[RECORD_ID_SIZE - 1] = '\0';
	return 0;
}

int record_fd_check(int fd, const char *name)
{
	char incident[RECORD_ID_SIZE];
	int r = record_fd_incident(fd, incident);

	if (r < 0)
		return r;
	return record_file_name_is_valid(name) && strncmp(name, incident, RECORD_ID_SIZE - 1) == 0
		? 0
		: -ENODATA;
}
