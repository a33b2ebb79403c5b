/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* `iostall show --format folded` and `pprof`: each operation counts once, below its stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <zlib.h>

#include "cli/folded.h"
#include "cli/pprof.h"
#include "util/clock.h"
#include "util/text.h"

#define MS NSEC_PER_MSEC

static const struct folded_options all = { .thread = true, .program = true, .kernel = true };

struct line {
	enum record_type type;
	int32_t tid;
	uint64_t start_ns;
	uint64_t dur_ns;
	const char *stack;
	struct record_alike alike;
};

static void add(struct folded *folded, const struct line *line)
{
	struct record *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->type = line->type;
	r->mono_ns = line->start_ns + line->dur_ns;
	r->operation = (struct record_operation){ .op = RECORD_OP_read,
		.probe = RECORD_PROBE_wait,
		.pid = 2211,
		.tid = line->tid,
		.start_mono_ns = line->start_ns,
		.dur_ns = line->dur_ns,
		.kstack_while_blocked = line->stack != NULL,
		.alike = line->alike };
	text_copy(r->operation.comm, sizeof(r->operation.comm), "con;nect\n");
	text_copy(r->operation.exe, sizeof(r->operation.exe), "/usr/sbin/mariadbd");
	if (line->stack)
		text_copy(r->operation.kstack, sizeof(r->operation.kstack), line->stack);
	assert_int_equal(folded_add(folded, r), 0);
	free(r);
}

static void assert_folded(const struct line *lines, size_t count, const char *expected)
{
	struct folded *folded = folded_new(&all);
	char buf[4096] = "";
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	assert_non_null(folded);
	assert_non_null(out);
	for (size_t i = 0; i < count; i++)
		add(folded, &lines[i]);
	folded_print(folded, out);
	fclose(out);
	folded_free(folded);
	assert_string_equal(buf, expected);
}

static void add_offcpu(struct folded *folded, const char *exe, char state, uint64_t ns,
	const char *kstack, const char *ustack)
{
	struct record *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->type = RECORD_OFFCPU;
	r->offcpu = (struct record_offcpu){ .pid = 2211, .state = state, .time_ns = ns };
	text_copy(r->offcpu.exe, sizeof(r->offcpu.exe), exe);
	text_copy(r->offcpu.comm, sizeof(r->offcpu.comm), "connection");
	text_copy(r->offcpu.kstack, sizeof(r->offcpu.kstack), kstack);
	text_copy(r->offcpu.ustack, sizeof(r->offcpu.ustack), ustack);
	assert_int_equal(folded_add(folded, r), 0);
	free(r);
}

/* What a process did has its time off the CPU already, with more of its stack. */
static void test_time_off_the_cpu(void **state)
{
	const struct line of_mariadbd = { RECORD_STALL, 1, 10, 2000 * MS, "vfs_read+0x9", { 0 } };
	struct folded *folded = folded_new(&all);
	char buf[4096] = "";
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	(void)state;
	assert_non_null(folded);
	add(folded, &of_mariadbd);
	add_offcpu(folded, "/usr/bin/other", 'R', 3 * MS, "", "");
	folded_print(folded, out);
	fflush(out);
	assert_string_equal(buf,
		"mariadbd;con:nect\\x0a;vfs_read 2000000\n"
		"other;connection;(waits for a CPU) 3000\n");
	folded_free(folded);
	rewind(out);
	folded = folded_new(&all);
	assert_non_null(folded);
	add(folded, &of_mariadbd);
	/* Two windows. */
	for (unsigned int i = 0; i < 2; i++)
		add_offcpu(folded, "/usr/sbin/mariadbd", 'D', 1500 * MS,
			"io_schedule+0x1\nvfs_read+0x9",
			"os_file_read\nrow::operator+=<a;b>\nmariadbd+0x7f12");
	add_offcpu(folded, "/usr/sbin/mariadbd", 'S', 5 * MS, "", "pread64");
	folded_print(folded, out);
	fclose(out);
	folded_free(folded);
	assert_string_equal(buf,
		"mariadbd;connection;mariadbd+0x7f12;row::operator+=<a:b>;os_file_read;vfs_read;io_schedule 3000000\n"
		"mariadbd;connection;pread64;(stack not known) 5000\n");
}

static void assert_offcpu(const struct folded_options *options, const char *kstack,
	const char *ustack, const char *expected)
{
	struct folded *folded = folded_new(options);
	char buf[512] = "";
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	assert_non_null(folded);
	assert_non_null(out);
	add_offcpu(folded, "/usr/sbin/mariadbd", 'D', 5 * MS, kstack, ustack);
	folded_print(folded, out);
	fclose(out);
	folded_free(folded);
	assert_string_equal(buf, expected);
}

static void test_frames_that_are_asked_for(void **state)
{
	const struct folded_options kernel = { .kernel = true };
	const struct folded_options program = { .thread = true, .program = true };

	(void)state;
	assert_offcpu(&kernel, "io_schedule+0x1\nvfs_read+0x9", "pread64",
		"mariadbd;vfs_read;io_schedule 5000\n");
	assert_offcpu(&program, "io_schedule+0x1\nvfs_read+0x9", "pread64",
		"mariadbd;connection;pread64 5000\n");
	assert_offcpu(&program, "io_schedule+0x1", "",
		"mariadbd;connection;(stack not known) 5000\n");
	assert_offcpu(&kernel, "", "pread64", "mariadbd;(stack not known) 5000\n");
}

static void test_an_operation_counts_once(void **state)
{
	static const struct line lines[] = {
		{ RECORD_STUCK, 1, 10, 500 * MS,
			"io_schedule+0x12\nfolio_wait+0x1/0x20\nvfs_read+0x9", { 0 } },
		{ RECORD_STUCK, 1, 10, 1500 * MS,
			"io_schedule+0x12\nfolio_wait+0x1/0x20\nvfs_read+0x9", { 0 } },
		/* Its return does not know where it hung. */
		{ RECORD_STALL, 1, 10, 2000 * MS, NULL, { 0 } },
		{ RECORD_STALL, 2, 10, 100 * MS,
			"io_schedule+0x12\nfolio_wait+0x1/0x20\nvfs_read+0x9", { 0 } },
		/* The same thread later. */
		{ RECORD_STALL, 1, 20, 300 * MS, NULL, { 0 } },
		{ RECORD_SAMPLE, 1, 30, 300 * MS, NULL, { 0 } },
	};

	(void)state;
	assert_folded(lines, sizeof(lines) / sizeof(lines[0]),
		"mariadbd;con:nect\\x0a;read (stack not known) 300000\n"
		"mariadbd;con:nect\\x0a;vfs_read;folio_wait;io_schedule 2100000\n");
}

/*
 * Of 100 that hang, two have lines of their own first, later one of them. Then 60 return, one of
 * the two with a line of its own.
 */
static void test_many_in_one_line(void **state)
{
	static const struct line lines[] = {
		{ RECORD_STUCK, 1, 10, 1000 * MS, "io_schedule\nvfs_read", { 0 } },
		{ RECORD_STUCK, 2, 10, 1000 * MS, "io_schedule\nvfs_read",
			{ .present = true, .count = 98, .min_ns = 900 * MS, .max_ns = 1100 * MS } },
		{ RECORD_STUCK, 1, 10, 2000 * MS, "io_schedule\nvfs_read",
			{ .present = true,
				.count = 99,
				.min_ns = 1900 * MS,
				.max_ns = 2100 * MS } },
		{ RECORD_STALL, 2, 10, 2500 * MS, NULL, { 0 } },
		{ RECORD_STALL, 3, 10, 2500 * MS, "io_schedule\nvfs_read",
			{ .present = true,
				.count = 58,
				.min_ns = 2400 * MS,
				.max_ns = 2600 * MS } },
	};

	(void)state;
	/* 60 for 2.5 s, and 40 for 2 s. */
	assert_folded(lines, sizeof(lines) / sizeof(lines[0]),
		"mariadbd;con:nect\\x0a;vfs_read;io_schedule 230000000\n");
}

static void test_nothing_that_waited(void **state)
{
	(void)state;
	assert_folded(NULL, 0, "");
	assert_null(folded_free(NULL));
}

/* A reader of protocol buffers of its own: a field and its number, or its bytes. */
struct field {
	unsigned int number;
	uint64_t value;
	const unsigned char *bytes;
};

static uint64_t read_varint(const unsigned char **at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return value;
	}
}

static bool read_field(const unsigned char **at, const unsigned char *end, struct field *ret)
{
	uint64_t key;

	if (*at >= end)
		return false;
	key = read_varint(at);
	*ret = (struct field){ .number = (unsigned int)(key >> 3), .value = read_varint(at) };
	if ((key & 7) == 2) {
		ret->bytes = *at;
		*at += ret->value;
	}
	assert_true(*at <= end);
	return true;
}

#define STRINGS_MAX 16

/* Appends "name<name<name value". */
static void describe_sample(const struct field *sample, char names[STRINGS_MAX][64], char *buf)
{
	const unsigned char *at = sample->bytes;
	struct field f;

	while (read_field(&at, sample->bytes + sample->value, &f)) {
		const unsigned char *p = f.bytes, *end = p + f.value;

		if (f.number == 1)
			while (p < end)
				sprintf(buf + strlen(buf), "%s<", names[read_varint(&p)]);
		else
			sprintf(buf + strlen(buf), " %llu\n", (unsigned long long)read_varint(&p));
	}
}

static size_t print_profile(const struct line *lines, size_t count, unsigned char *buf, size_t size)
{
	const struct pprof_times times = { 1700000000000000000ULL, 3000000000ULL };
	struct folded *folded = folded_new(&all);
	char path[] = "/tmp/iostall-pprof-XXXXXX";
	int fd = mkstemp(path);
	FILE *out = fdopen(fd, "w");
	gzFile in;
	int n;

	for (size_t i = 0; i < count; i++)
		add(folded, &lines[i]);
	assert_int_equal(pprof_print(folded, &times, out), 0);
	assert_int_equal(fclose(out), 0);
	folded_free(folded);
	in = gzopen(path, "re");
	unlink(path);
	assert_non_null(in);
	n = gzread(in, buf, (unsigned int)size);
	assert_int_equal(gzclose(in), Z_OK);
	assert_true(n > 0);
	return (size_t)n;
}

/* The id of a message's field 1. */
static uint64_t id_of(const struct field *message)
{
	const unsigned char *at = message->bytes;
	struct field f;

	assert_true(read_field(&at, message->bytes + message->value, &f));
	assert_int_equal(f.number, 1);
	return f.value;
}

/* What has the name of a type is a function of its own, too. */
static void test_a_profile(void **state)
{
	static const struct line lines[] = {
		{ RECORD_STALL, 1, 10, 2000 * MS, "io_schedule+0x12\nblocked+0x9", { 0 } },
		{ RECORD_STALL, 2, 10, 300 * MS, "schedule+0x12\nblocked+0x9", { 0 } },
	};
	unsigned char buf[4096];
	const unsigned char *at = buf, *end = buf + print_profile(lines, 2, buf, sizeof(buf));
	char names[STRINGS_MAX][64] = { "" }, samples[512] = "";
	bool functions[STRINGS_MAX] = { 0 }, locations[STRINGS_MAX] = { 0 };
	unsigned int count = 0;
	struct field f;

	(void)state;
	while (read_field(&at, end, &f)) {
		assert_in_range(count, 0, STRINGS_MAX - 1);
		if (f.number == 6)
			memcpy(names[count++], f.bytes, f.value);
		else if (f.number == 5)
			functions[id_of(&f)] = true;
		else if (f.number == 4)
			locations[id_of(&f)] = true;
		else if (f.number == 2)
			describe_sample(&f, names, samples);
		else if (f.number == 9)
			assert_int_equal(f.value, 1700000000000000000ULL);
	}
	assert_string_equal(names[0], "");
	assert_string_equal(names[1], "blocked");
	assert_string_equal(names[2], "microseconds");
	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(functions[i], i != 0 && i != 2);
		assert_int_equal(locations[i], i != 0 && i != 2);
	}
	assert_string_equal(samples,
		"io_schedule<blocked<con:nect\\x0a<mariadbd< 2000000\n"
		"schedule<blocked<con:nect\\x0a<mariadbd< 300000\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_operation_counts_once),
		cmocka_unit_test(test_time_off_the_cpu),
		cmocka_unit_test(test_frames_that_are_asked_for),
		cmocka_unit_test(test_many_in_one_line),
		cmocka_unit_test(test_nothing_that_waited),
		cmocka_unit_test(test_a_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
