/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/pprof.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "util/cleanup.h"

/* Fields of profile.proto. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
};

enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2 };
/* The low bits of a key, by how its value is encoded. */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

/* The longest encoding of 64 bits. */
#define VARINT_SIZE 10
#define WINDOW_BITS_OF_GZIP (15 + 16)
#define CHUNK_SIZE 4096

struct bytes {
	unsigned char *p;
	size_t len;
	size_t size;
	bool failed; /* out of memory: it lacks something */
};

/* Its place in the table of strings is also the id of the function and of the location. */
struct string {
	uint64_t index;
	bool has_location;
	char text[];
};

struct profile {
	struct bytes out;
	void *strings; /* tree of tsearch(3) */
	uint64_t strings_count;
	bool failed;
};

static void put_bytes(struct bytes *b, const void *data, size_t len)
{
	if (b->failed)
		return;
	if (b->len + len > b->size) {
		size_t size = 2 * (b->len + len) + CHUNK_SIZE;
		unsigned char *p = realloc(b->p, size);

		if (!p) {
			b->failed = true;
			return;
		}
		b->p = p;
		b->size = size;
	}
	if (len > 0)
		memcpy(b->p + b->len, data, len);
	b->len += len;
}

static void put_varint(struct bytes *b, uint64_t value)
{
	unsigned char buf[VARINT_SIZE];
	size_t len = 0;

	do {
		buf[len++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
	put_bytes(b, buf, len);
}

static void put_number(struct bytes *b, unsigned int field, uint64_t value)
{
	put_varint(b, field << 3 | WIRE_VARINT);
	put_varint(b, value);
}

static void put_field(struct bytes *b, unsigned int field, const void *data, size_t len)
{
	put_varint(b, field << 3 | WIRE_BYTES);
	put_varint(b, len);
	put_bytes(b, data, len);
}

/* Empties the message for the next one. */
static void put_message(struct profile *p, unsigned int field, struct bytes *message)
{
	p->failed = p->failed || message->failed;
	put_field(&p->out, field, message->p, message->failed ? 0 : message->len);
	message->len = 0;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(((const struct string *)a)->text, ((const struct string *)b)->text);
}

/* NULL: out of memory. */
static struct string *find_string(struct profile *p, const char *text, size_t len)
{
	struct string *string = calloc(1, sizeof(*string) + len + 1), **found;

	if (string) {
		memcpy(string->text, text, len);
		string->index = p->strings_count;
	}
	found = string ? tsearch(string, &p->strings, compare_strings) : NULL;
	if (found && *found == string) {
		p->strings_count++;
		put_field(&p->out, PROFILE_STRING, text, len);
	} else {
		free(string);
	}
	p->failed = p->failed || !found;
	return found ? *found : NULL;
}

static uint64_t index_of(struct profile *p, const char *text)
{
	const struct string *string = find_string(p, text, strlen(text));

	return string ? string->index : 0;
}

/* A function has one location, since there are no addresses. */
static void put_location(struct profile *p, uint64_t id)
{
	struct bytes message = { 0 }, line = { 0 };

	put_number(&message, FUNCTION_ID, id);
	put_number(&message, FUNCTION_NAME, id);
	put_message(p, PROFILE_FUNCTION, &message);
	put_number(&message, LOCATION_ID, id);
	put_number(&line, LINE_FUNCTION_ID, id);
	put_field(&message, LOCATION_LINE, line.p, line.len);
	put_message(p, PROFILE_LOCATION, &message);
	p->failed = p->failed || line.failed;
	free(line.p);
	free(message.p);
}

static uint64_t location_of(struct profile *p, const char *name, size_t len)
{
	struct string *string = find_string(p, name, len);

	if (!string)
		return 0;
	if (!string->has_location)
		put_location(p, string->index);
	string->has_location = true;
	return string->index;
}

/* The innermost function comes first. */
static void add_sample(void *userdata, const char *frames, uint64_t usec)
{
	struct profile *p = userdata;
	struct bytes ids = { 0 }, sample = { 0 }, value = { 0 };
	const char *end = frames + strlen(frames);

	while (end > frames) {
		const char *separator = memrchr(frames, ';', (size_t)(end - frames));
		const char *begin = separator ? separator + 1 : frames;

		put_varint(&ids, location_of(p, begin, (size_t)(end - begin)));
		end = separator ? separator : frames;
	}
	put_varint(&value, usec);
	put_field(&sample, SAMPLE_LOCATION_ID, ids.p, ids.len);
	put_field(&sample, SAMPLE_VALUE, value.p, value.len);
	put_message(p, PROFILE_SAMPLE, &sample);
	p->failed = p->failed || ids.failed || value.failed;
	free(ids.p);
	free(value.p);
	free(sample.p);
}

static void add_type(struct profile *p)
{
	struct bytes type = { 0 };

	/* The first string of a profile is the empty one. */
	index_of(p, "");
	put_number(&type, VALUE_TYPE, index_of(p, "blocked"));
	put_number(&type, VALUE_UNIT, index_of(p, "microseconds"));
	put_message(p, PROFILE_SAMPLE_TYPE, &type);
	free(type.p);
}

static int compress_to(FILE *out, struct bytes *b)
{
	unsigned char buf[CHUNK_SIZE];
	z_stream z = { .next_in = b->p, .avail_in = (uInt)b->len };
	int r = Z_OK;

	if (b->len > UINT_MAX)
		return -EFBIG;
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_OF_GZIP, MAX_MEM_LEVEL,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	while (r == Z_OK && !ferror(out)) {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		r = deflate(&z, Z_FINISH);
		fwrite(buf, 1, sizeof(buf) - z.avail_out, out);
	}
	deflateEnd(&z);
	return 0;
}

int pprof_print(struct folded *folded, const struct pprof_times *times, FILE *out)
{
	struct profile p = { 0 };
	int r;

	add_type(&p);
	folded_visit(folded, add_sample, &p);
	put_number(&p.out, PROFILE_TIME_NANOS, times->opened_real_ns);
	put_number(&p.out, PROFILE_DURATION_NANOS, times->duration_ns);
	r = p.failed || p.out.failed ? -ENOMEM : compress_to(out, &p.out);
	tdestroy(p.strings, free);
	free(p.out.p);
	return r;
}
