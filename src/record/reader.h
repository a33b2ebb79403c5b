/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A record file read line by line, and what one file says in short.
 * Called by the commands that read incidents, by the writer for what a dead daemon left, by tests.
 * Never fails on what a file contains: what is not a line of ours is counted and passed over.
 */
#ifndef IOSTALL_RECORD_READER_H
#define IOSTALL_RECORD_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/record.h"

struct record_reader;

struct record_reader_counts {
	uint64_t records;	 /* lines that decoded */
	uint64_t newer;		 /* lines of a later version, passed over */
	uint64_t unknown_values; /* enumerated values of a later version in the others */
	uint64_t garbage;	 /* lines that are not records */
	bool torn;		 /* the last line is the beginning of one */
};

/* One stored line; text is valid until the next call, without its newline. */
struct record_line {
	const char *text;
	size_t len;
	off_t end;    /* offset behind the line and its newline */
	bool decoded; /* false: of a later version, *ret_record says nothing */
};

/* record.spool_bytes is at most 64 MiB, so a larger file than this is no record. */
#define RECORD_FILE_BYTES_MAX (1LL << 30)

/* Reads fd from offset 0 by pread(); fd stays the caller's. -EFBIG: the file is too large. */
int record_reader_new(int fd, struct record_reader **ret_reader);
struct record_reader *record_reader_free(struct record_reader *reader);

/*
 * 1 with the next line that is a record of ours (of this version or a later one), 0 at the end, or
 * a negative errno of reading. Blank lines are the padding of a file that is still being written.
 */
int record_reader_next(struct record_reader *reader, struct record *ret_record,
	struct record_line *ret_line);

/* Of the lines so far; at the end, of all. */
const struct record_reader_counts *record_reader_get_counts(const struct record_reader *reader);

/* What `list` shows of an incident. */
struct record_summary {
	char incident[RECORD_ID_SIZE];
	struct record_trigger trigger;
	char continues[RECORD_ID_SIZE]; /* the incident that has the beginning; "": this one */
	char host[RECORD_NAME_SIZE];
	uint64_t opened_real_ns;
	uint64_t opened_mono_ns;
	uint64_t duration_ns; /* of a closed incident, else up to its last line */
	uint64_t stalls;
	uint64_t stuck_threads; /* 0 unless closed: stuck_lines tells */
	uint64_t stuck_lines;
	uint64_t longest_ns;
	uint64_t lost;
	enum record_class class; /* of the verdict; NONE: there is none */
	char sentence[RECORD_SENTENCE_SIZE];
	struct record_verdict_part culprit; /* what is NONE: the verdict has none */
	bool closed;
	bool being_written; /* somebody holds the lock of a file that is being written */
	struct record_reader_counts counts;
};

/* -ENODATA: not a record, no valid `open` line; or a negative errno. */
int record_read_summary(int fd, struct record_summary *ret_summary);

/*
 * Where the last line that is a record ends, which is where a file that was cut off is cut.
 * -ENODATA when there is none.
 */
int record_find_end(int fd, off_t *ret_end);

/*
 * The id of the incident whose `open` line fd begins with: 0, -ENODATA when there is none, or the
 * negative errno of reading. Reads 128 bytes.
 */
int record_fd_incident(int fd, char ret_incident[static RECORD_ID_SIZE]);

/* 0 when that is the incident that the name of the file says, else -ENODATA or that errno. */
int record_fd_check(int fd, const char *name);

#endif
