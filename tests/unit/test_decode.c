/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * From the bytes of an event to an operation: each field, each refusal, how a path is put together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/event_pack.h"
#include "enrich/decode.h"
#include "util/cleanup.h"

#define FIXED_SIZE EVENT_FIXED_SIZE

/* No two fields alike, so that none can be taken for another. */
static struct event_operation make_event(void)
{
	struct event_operation e = {
		.header = { .type = EVENT_OPERATION,
			.version = EVENT_VERSION,
			.ts_ns = 0x1000000001 },
		.start_ns = 0x2000000002,
		.dur_ns = 0x3000000003,
		.offset = 0x4000000004,
		.bytes = 0x5000000005,
		.ret = -0x6000000006,
		.inode = 0x7000000007,
		.cgroup_id = 0x8000000008,
		.process_start_ns = 0x9000000009,
		.pid = 1111,
		.tid = 2222,
		.uid = 3333,
		.dev = 0x123 << 20 | 0x45678,
		.mount_ns = 0xf0000004,
		.fd = 57,
		.op = EVENT_OP_WRITE,
		.flags = EVENT_FINISHED | EVENT_PATH_COMPLETE,
		.stack_len = 3,
		.comm = "a comm",
		.stack_base = 0xffffffff81000001,
		/* A module may be below the kernel. */
		.stack = { 0, 1, -0x1000001 },
		.cgroup_names = { "a.service", "system.slice" },
	};

	return e;
}

/* names: from the file to the root, as the kernel side walks. */
static void set_path(struct event_operation *e, const char *names, size_t len)
{
	memcpy(e->path, names, len);
	e->path_len = (uint32_t)len;
}

#define SET_PATH(e, names) set_path(e, names, sizeof(names) - 1)

struct decoded {
	int result;
	struct decoded_operation decoded;
	struct record_operation op;
};

/* In memory of exactly its size, so that a byte read behind it is an error of the sanitizer. */
static struct decoded decode_bytes(const struct event_operation *e, size_t size)
{
	void *bytes = malloc(size);
	struct decoded d;

	memset(&d, 0x5a, sizeof(d));
	assert_true(bytes || size == 0);
	if (size > 0)
		memcpy(bytes, e, size);
	d.result = event_decode(bytes, size, &d.decoded, &d.op);
	free(bytes);
	return d;
}

static struct decoded decode(struct event_operation *e)
{
	return decode_bytes(e, event_pack(e));
}

static void test_each_field(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	SET_PATH(&e, "table\0db\0");
	d = decode(&e);
	assert_int_equal(d.result, 0);
	assert_true(d.decoded.finished);
	assert_int_equal(d.decoded.ts_ns, 0x1000000001);
	assert_int_equal(d.decoded.process_start_ns, 0x9000000009);
	assert_int_equal(d.decoded.uid, 3333);
	assert_int_equal(d.decoded.stack_len, 3);
	assert_int_equal(d.decoded.stack[0], 0xffffffff81000001);
	assert_int_equal(d.decoded.stack[1], 0xffffffff81000002);
	assert_int_equal(d.decoded.stack[2], 0xffffffff80000000);
	assert_int_equal(d.decoded.stack[3], 0);
	assert_string_equal(d.decoded.cgroup_names[0], "a.service");
	assert_string_equal(d.decoded.cgroup_names[1], "system.slice");
	assert_int_equal(d.op.op, RECORD_OP_write);
	assert_int_equal(d.op.pid, 1111);
	assert_int_equal(d.op.tid, 2222);
	assert_string_equal(d.op.comm, "a comm");
	assert_int_equal(d.op.cgroup, 0x8000000008);
	assert_int_equal(d.op.fd, 57);
	assert_string_equal(d.op.path, "/db/table");
	assert_false(d.op.path_truncated);
	assert_int_equal(d.op.mount_ns, 0xf0000004);
	assert_int_equal(d.op.dev.major, 0x123);
	assert_int_equal(d.op.dev.minor, 0x45678);
	assert_int_equal(d.op.inode, 0x7000000007);
	assert_int_equal(d.op.offset, 0x4000000004);
	assert_int_equal(d.op.bytes, 0x5000000005);
	assert_int_equal(d.op.ret, -0x6000000006);
	assert_int_equal(d.op.start_mono_ns, 0x2000000002);
	assert_int_equal(d.op.dur_ns, 0x3000000003);
}

/* A stack of arm64 with KASLR: the BPF program is 48 TB before the kernel and its modules. */
static void test_stack_of_a_kernel_far_from_its_programs(void **state)
{
	static const uint64_t frames[EVENT_STACK_DEPTH] = { 0xffff8000800ed930, 0xffffafb4ecc4f610,
		0xffffafb4f00aa5c4, 0xffffafb4c2001234, 0xffffafb4eca34e60,
		/* Left from another stack. */
		0xdeadbeefdeadbeef };
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	e.stack_len = 5;
	event_stack_pack(frames, e.stack_len, &e.stack_base, e.stack);
	d = decode(&e);
	assert_int_equal(d.result, 0);
	assert_int_equal(d.decoded.stack_len, 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(d.decoded.stack[i], frames[i + 1]);
	assert_int_equal(d.decoded.stack[4], 0);
	e.stack_len = EVENT_STACK_DEPTH;
	event_stack_pack(frames, e.stack_len, &e.stack_base, e.stack);
	assert_int_equal(e.stack_base, frames[EVENT_STACK_DEPTH - 1]);
}

/* What others fill in later must not be what the memory held before. */
static void test_rest_is_zeroed(void **state)
{
	struct event_operation e = make_event();
	struct decoded d = decode(&e);

	(void)state;
	assert_int_equal(d.op.probe, 0);
	assert_int_equal(d.op.backend, 0);
	assert_string_equal(d.op.exe, "");
	assert_string_equal(d.op.user, "");
	assert_string_equal(d.op.unit, "");
	assert_string_equal(d.op.dev_name, "");
	assert_string_equal(d.op.wchan, "");
	assert_string_equal(d.op.kstack, "");
	assert_int_equal(d.op.state, 0);
	assert_false(d.op.since == RECORD_SINCE_before_arm);
	assert_false(d.op.kstack_while_blocked);
}

static void test_state_of_the_thread(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	e.flags = EVENT_PATH_COMPLETE;
	e.state = 'D';
	d = decode(&e);
	assert_int_equal(d.result, 0);
	assert_int_equal(d.op.state, 'D');
	e.state = '"';
	assert_int_equal(decode(&e).result, -EINVAL);
}

static void test_ops_and_in_flight(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	e.op = EVENT_OP_READ;
	e.flags = EVENT_PATH_COMPLETE;
	e.fd = -1;
	e.offset = -1;
	d = decode(&e);
	assert_int_equal(d.result, 0);
	assert_int_equal(d.op.op, RECORD_OP_read);
	assert_false(d.decoded.finished);
	assert_int_equal(d.op.fd, -1);
	assert_int_equal(d.op.offset, -1);
}

static void test_failures(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	d = decode(&e);
	assert_int_equal(d.decoded.failures, 0);
	e.flags = EVENT_PATH_COMPLETE | EVENT_FINISHED | EVENT_FAILED;
	e.failures = 4;
	d = decode(&e);
	assert_int_equal(d.result, 0);
	assert_int_equal(d.decoded.failures, 4);
	assert_int_equal(d.op.sleeps, -1);
	/* One that is in flight has not failed, and none is none. */
	e.flags = EVENT_PATH_COMPLETE | EVENT_FAILED;
	assert_int_equal(decode(&e).result, -EINVAL);
	e.flags |= EVENT_FINISHED;
	e.failures = 0;
	assert_int_equal(decode(&e).result, -EINVAL);
}

static void test_comm_without_end(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	memset(e.comm, 'c', sizeof(e.comm));
	d = decode(&e);
	assert_int_equal(d.result, 0);
	assert_string_equal(d.op.comm, "ccccccccccccccc");
}

static void test_device_limits(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	e.dev = UINT32_MAX;
	d = decode(&e);
	assert_int_equal(d.op.dev.major, 4095);
	assert_int_equal(d.op.dev.minor, 1048575);
}

struct path_case {
	const char *names;
	size_t len;
	uint16_t flags;
	const char *path;
	bool truncated;
};

#define NAMES(s) s, sizeof(s) - 1
#define COMPLETE EVENT_PATH_COMPLETE

static void test_paths(void **state)
{
	static const struct path_case cases[] = {
		{ NAMES("f\0"), COMPLETE, "/f", false },
		{ NAMES("file\0c\0b\0a\0"), COMPLETE, "/a/b/c/file", false },
		/*
		 * The root of the namespace itself: a directory is never read, but a walk may end
		 * so.
		 */
		{ NAMES(""), COMPLETE, "/", false },
		{ NAMES("file\0dir\0"), COMPLETE | EVENT_PATH_DELETED, "/dir/file//deleted",
			false },
		{ NAMES("file\0dir\0"), COMPLETE | EVENT_PATH_DETACHED, "(unreachable)/dir/file",
			false },
		{ NAMES("file\0"), COMPLETE | EVENT_PATH_DETACHED | EVENT_PATH_DELETED,
			"(unreachable)/file//deleted", false },
		{ NAMES("file\0dir\0"), 0, ".../dir/file", true },
		{ NAMES("file\0dir\0"), EVENT_PATH_DETACHED, ".../dir/file", true },
		{ NAMES(""), 0, ".../", true },
		/* Up to the root of the file system: where that is mounted is found out later. */
		{ NAMES("file\0dir\0"), COMPLETE | EVENT_PATH_IN_FS, ".../dir/file", true },
		{ NAMES("file\0dir\0"), EVENT_PATH_IN_FS, ".../dir/file", true },
		{ NAMES("f\0"), COMPLETE | EVENT_PATH_IN_FS | EVENT_PATH_DELETED, ".../f//deleted",
			true },
		{ NAMES(""), EVENT_PATH_IN_FS, "", true },
		{ NAMES("a b\n\xff\0..\0"), COMPLETE, "/../a b\n\xff", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event_operation e = make_event();
		struct decoded d;

		set_path(&e, cases[i].names, cases[i].len);
		e.flags = cases[i].flags;
		d = decode(&e);
		assert_int_equal(d.result, 0);
		assert_string_equal(d.op.path, cases[i].path);
		assert_int_equal(d.op.path_truncated, cases[i].truncated);
		assert_int_equal(d.decoded.path_in_fs,
			(cases[i].flags & EVENT_PATH_IN_FS) && (cases[i].flags & COMPLETE));
	}
}

/* PATH_MAX bytes of names: the longest that the kernel side sends whole. */
static void test_longest_path(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	for (size_t i = 0; i < EVENT_PATH_MAX; i++)
		e.path[i] = (i + 1) % 256 ? 'n' : '\0';
	e.path_len = EVENT_PATH_MAX;
	d = decode(&e);
	assert_int_equal(d.result, 0);
	assert_int_equal(strlen(d.op.path), EVENT_PATH_MAX);
	assert_false(d.op.path_truncated);
}

/* More than a record can hold is said to be truncated and stays terminated. */
static void test_path_with_all_around_it(void **state)
{
	struct event_operation e = make_event();
	struct decoded d;

	(void)state;
	for (size_t i = 0; i < EVENT_PATH_SIZE; i++)
		e.path[i] = i % 2 ? '\0' : 'd';
	e.path_len = EVENT_PATH_SIZE;
	e.flags |= EVENT_PATH_COMPLETE | EVENT_PATH_DETACHED | EVENT_PATH_DELETED;
	d = decode(&e);
	assert_int_equal(d.result, 0);
	/* All of it, with all that may stand before and behind it. */
	assert_false(d.op.path_truncated);
	assert_int_equal(strlen(d.op.path),
		strlen("(unreachable)") + EVENT_PATH_SIZE + strlen("//deleted"));
}

static void assert_refused(const struct event_operation *e, size_t size, int error)
{
	struct decoded d = decode_bytes(e, size), untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	assert_int_equal(d.result, error);
	assert_memory_equal(&d.decoded, &untouched.decoded, sizeof(d.decoded));
	assert_memory_equal(&d.op, &untouched.op, sizeof(d.op));
}

#define SIZE (FIXED_SIZE + 5)

static struct event_operation make_sized(void)
{
	struct event_operation e = make_event();

	SET_PATH(&e, "file\0");
	e.stack_len = 0;
	memset(e.cgroup_names, 0, sizeof(e.cgroup_names));
	assert_int_equal(event_pack(&e), SIZE);
	assert_int_equal(decode_bytes(&e, SIZE).result, 0);
	return e;
}

static void test_sizes_refused(void **state)
{
	struct event_operation e = make_sized();

	(void)state;
	assert_refused(&e, 0, -EINVAL);
	assert_refused(&e, 1, -EINVAL);
	assert_refused(&e, sizeof(e.header) - 1, -EINVAL);
	assert_refused(&e, SIZE - 1, -EINVAL);
	assert_refused(&e, SIZE + 1, -EINVAL);
	/* The header says what came, but the rest does not. */
	e.header.size = sizeof(e.header);
	assert_refused(&e, sizeof(e.header), -EINVAL);
	e.header.size = FIXED_SIZE - 1;
	assert_refused(&e, FIXED_SIZE - 1, -EINVAL);
	e.header.size = FIXED_SIZE;
	assert_refused(&e, FIXED_SIZE, -EINVAL);
	e.header.size = SIZE + 1;
	assert_refused(&e, SIZE + 1, -EINVAL);
	e = make_sized();
	e.path_len = EVENT_PATH_SIZE + 1;
	assert_refused(&e, SIZE, -EINVAL);
	e.path_len = UINT32_MAX;
	assert_refused(&e, SIZE, -EINVAL);
	e.path_len = UINT32_MAX - (uint32_t)FIXED_SIZE + 1;
	assert_refused(&e, SIZE, -EINVAL);
}

static void test_unknown_kinds_refused(void **state)
{
	struct event_operation e = make_sized();

	(void)state;
	e.header.type = 0;
	assert_refused(&e, SIZE, -EPROTONOSUPPORT);
	e.header.type = EVENT_OPERATION + 1;
	assert_refused(&e, SIZE, -EPROTONOSUPPORT);
	/* Of another kind only the header is known: its size may be any. */
	e.header.size = sizeof(e.header);
	assert_refused(&e, sizeof(e.header), -EPROTONOSUPPORT);
	e = make_sized();
	e.header.version = EVENT_VERSION + 1;
	assert_refused(&e, SIZE, -EPROTONOSUPPORT);
	e.header.version = EVENT_VERSION - 1;
	assert_refused(&e, SIZE, -EPROTONOSUPPORT);
}

static void test_values_refused(void **state)
{
	struct event_operation e = make_sized();

	(void)state;
	e.op = EVENT_OP_COUNT;
	assert_refused(&e, SIZE, -EINVAL);
	e.op = UINT8_MAX;
	assert_refused(&e, SIZE, -EINVAL);
	e = make_sized();
	/* One frame more than there may be, one less than came. */
	e.stack_len = EVENT_STACK_DEPTH + 1;
	e.header.size = SIZE + e.stack_len * (uint32_t)sizeof(e.stack[0]);
	assert_refused(&e, e.header.size, -EINVAL);
	e.stack_len = EVENT_STACK_DEPTH;
	assert_int_equal(decode_bytes(&e, event_pack(&e)).result, 0);
	e.stack_len--;
	assert_refused(&e, e.header.size, -EINVAL);
	e = make_sized();
	e.names_len = UINT16_MAX;
	assert_refused(&e, SIZE, -EINVAL);
	/* The last byte of the names is that of a longer one. */
	e = make_sized();
	strcpy(e.cgroup_names[0], "a.service");
	event_pack(&e);
	e.path[e.path_len + e.names_len - 1] = 'x';
	assert_refused(&e, e.header.size, -EINVAL);
	e = make_sized();
	memset(e.path + e.path_len, 'x', EVENT_CGROUP_NAMES * EVENT_CGROUP_NAME_SIZE + 1);
	e.names_len = EVENT_CGROUP_NAMES * EVENT_CGROUP_NAME_SIZE + 1;
	e.path[e.path_len + e.names_len - 1] = '\0';
	e.header.size = SIZE + e.names_len;
	assert_refused(&e, e.header.size, -EINVAL);
	e = make_sized();
	e.fd = -2;
	assert_refused(&e, SIZE, -EINVAL);
	e = make_sized();
	e.path[4] = 'x';
	assert_refused(&e, SIZE, -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_field),
		cmocka_unit_test(test_stack_of_a_kernel_far_from_its_programs),
		cmocka_unit_test(test_rest_is_zeroed),
		cmocka_unit_test(test_state_of_the_thread),
		cmocka_unit_test(test_ops_and_in_flight),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_comm_without_end),
		cmocka_unit_test(test_device_limits),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_longest_path),
		cmocka_unit_test(test_path_with_all_around_it),
		cmocka_unit_test(test_sizes_refused),
		cmocka_unit_test(test_unknown_kinds_refused),
		cmocka_unit_test(test_values_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
