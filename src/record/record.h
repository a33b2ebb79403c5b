/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line of an incident record as a C structure, its JSON form and its form for people.
 * Made by the session, written by the sinks, read back by `list` and `show`.
 * Encoding and formatting never allocate; nothing here touches a file.
 */
#ifndef IOSTALL_RECORD_RECORD_H
#define IOSTALL_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/structs.h"
#include "util/text.h"

#define RECORD_VERSION 1
/*
 * No line is longer. The worst consists of nothing but bytes that JSON writes in six (\u00NN).
 * tests/unit/test_record.c makes it.
 */
#define RECORD_LINE_SIZE (128 * 1024)
#define RECORD_FILE_SUFFIX ".jsonl"
/* Of the directory beside the file, with the output of hooks. */
#define RECORD_OUTPUT_SUFFIX ".d"
/* "20261120T031207Z-3f9c.jsonl" */
#define RECORD_FILE_SIZE (RECORD_ID_SIZE + sizeof(RECORD_FILE_SUFFIX) - 1)

const char *record_type_name(enum record_type type);

/* "20261120T031207Z-3f9c": the second of real_ns in UTC and the low 16 bits of random. */
void record_make_id(uint64_t real_ns, uint32_t random, char ret_id[static RECORD_ID_SIZE]);
/* Whether it is exactly such an id, or an id and ".jsonl"; s need not be terminated. */
bool record_id_is_valid(const char *s, size_t len);
bool record_file_name_is_valid(const char *name);
/* The second in an id, nanoseconds since the epoch; 0 when it is not a date. */
uint64_t record_id_real_ns(const char *id);

/*
 * One JSON object and a newline; line->overflow tells that it did not fit.
 *
 * Every key of a type is always there; schema.def is the one list of keys and says which value
 * means null. A `sample` line has the times of the sample. A byte of a text that is not UTF-8 is
 * written as U+FFFD. Numbers go up to 2^64 - 1.
 */
void record_encode_json(const struct record *r, struct text *line);

/*
 * Makes it what is read back from its JSON: numbers are rounded, and bytes that are not UTF-8 are
 * 0xff. So what is made of it now is what is made of the record later.
 */
void record_settle(struct record *r);

/*
 * The inverse; len bytes without the newline. -EINVAL (not JSON, or a field of the wrong kind, out
 * of range or longer than its place), -EPROTONOSUPPORT (a `v` or `type` of a later version, to be
 * skipped and counted); *ret_record says nothing then. An enumerated value of a later version is
 * taken as not known and counted in unknown_values. Unknown members are skipped, missing ones are
 * not known; only those of every line must be there. U+FFFD becomes the byte 0xff, which is never
 * UTF-8, so that what was written fits again and is written the same. Does not allocate.
 */
int record_decode_json(const char *line, size_t len, struct record *ret_record);

/*
 * One line or a few for a person, everything from outside escaped; ends in a newline. Times are
 * given since opened_mono_ns, the mono_ns of the incident's `open`.
 */
void record_format_text(const struct record *r, uint64_t opened_mono_ns, struct text *out);
/* "340 us", "512 ms", "3.21 s", "2m03s", "1h02m". */
/* What a verdict blames. */
struct record_blame {
	enum record_class class;
	char waits_for[RECORD_NAME_SIZE];
	struct record_dev dev;
	int32_t pid; /* of the culprit; 0: there is none */
};

/* Whether it is another cause than the one kept so far; then it is kept. */
bool record_blame_is_news(struct record_blame *kept, const struct record_verdict *verdict);

void record_add_duration(struct text *t, uint64_t duration_ns);
/* "19.0 MiB". */
void record_add_size(struct text *t, uint64_t bytes);
/* "400 reads a second", "1.0 MiB of reads a second" */
void record_add_io_limit(struct text *t, enum record_io_limit kind, uint64_t per_s);
/* "utilisation 97.3 %, threshold 90 %, device sdb". */
void record_add_trigger(struct text *t, const struct record_trigger *trigger);
/*
 * A line for each probe and backend, and one for what was lost, as record_format_text() has them.
 */
void record_add_coverage(const struct record_open *open, struct text *t);
void record_add_lost(const uint64_t lost[RECORD_LOST_COUNT], struct text *t);
/* "memory map lock of mariadbd[2211]  16 threads wait, the longest 3.21 s; held by ..." */
void record_add_lock(const struct record_lock_wait *lock, struct text *t);
/* Text from outside or out of a record, for a person. */
void record_add_printable(struct text *t, const char *s);

#endif
