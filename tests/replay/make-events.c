/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events that no test machine sends on demand, in the form of `iostall watch --capture`, on
 * standard output: each flag, each end of each range, and everything that must be refused.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../lib/event_pack.h"
#include "util/cleanup.h"

#define SECOND 1000000000ull
#define FIXED_SIZE EVENT_FIXED_SIZE
#define DEV(major, minor) ((major) << 20 | (minor))

/* `components` is from the file to the root, each ended by NUL, as the kernel side sends it. */
static struct event_operation make(const char *components, uint32_t path_len)
{
	struct event_operation e = {
		.header = { .type = EVENT_OPERATION,
			.version = EVENT_VERSION,
			.ts_ns = 77 * SECOND },
		.start_ns = 70 * SECOND,
		.dur_ns = 1234567890,
		.offset = 12345,
		.bytes = 777,
		.ret = 777,
		.inode = 131,
		.cgroup_id = 4242,
		.process_start_ns = 1234 * (SECOND / 100),
		.pid = 2211,
		.tid = 2217,
		.uid = 0,
		.dev = DEV(254u, 1u),
		.mount_ns = 4026531840u,
		.fd = 41,
		.op = EVENT_OP_READ,
		.syscall = 17,
		.flags = EVENT_FINISHED | EVENT_PATH_COMPLETE,
		.path_len = path_len,
		.comm = "mariadbd",
	};

	memcpy(e.path, components, path_len);
	return e;
}

#define MAKE(components) make(components, sizeof(components) - 1)

static void put_sized(struct event_operation *e, uint32_t header_size, uint32_t size)
{
	e->header.size = header_size;
	fwrite(&size, sizeof(size), 1, stdout);
	fwrite(e, size, 1, stdout);
}

static void put(struct event_operation e)
{
	uint32_t size = event_pack(&e);

	put_sized(&e, size, size);
}

static void put_finished(void)
{
	struct event_operation e = MAKE("ibdata1\0mysql\0lib\0var\0");

	put(e);
	e.op = EVENT_OP_WRITE;
	e.ret = -EIO;
	e.fd = INT32_MAX;
	put(e);
	e.stack_len = 3;
	e.stack_base = 0xffffffff81000110;
	e.stack[1] = 0xf5;
	e.stack[2] = 0x3effff32;
	put(e);
	/* Not in the fixture: before the first symbol, and nothing at all behind a 0. */
	e.stack_base = 0x1000;
	e.stack[1] = -0x1000;
	put(e);
	memset(e.stack, 0, sizeof(e.stack));
	e.stack_len = EVENT_STACK_DEPTH;
	for (unsigned int i = 0; i < EVENT_STACK_DEPTH; i++)
		e.stack[i] = (int32_t)i;
	e.stack_base = 0xffffffff81000100;
	put(e);
}

static void put_paths(void)
{
	struct event_operation e = MAKE("table.ibd\0db\0data\0");

	e.flags |= EVENT_PATH_DELETED;
	put(e);
	e.flags = EVENT_FINISHED | EVENT_PATH_COMPLETE | EVENT_PATH_DETACHED;
	put(e);
	/* The walk was cut off, and the descriptor's link knows the rest. */
	e.flags = EVENT_FINISHED;
	e.fd = 43;
	put(e);
	/* The link names another file by now. */
	e.fd = 44;
	put(e);
	e.flags |= EVENT_PATH_DELETED | EVENT_PATH_DETACHED;
	put(e);
	put(MAKE(""));
	e = MAKE("");
	e.flags = EVENT_FINISHED;
	put(e);
	/* Empty names are what the kernel never sends; nothing may break. */
	put(MAKE("\0\0\0"));
	put(MAKE("a \"quoted\"\\name\0with\nnewline\tand \x1b[31m\0"));
	put(MAKE("\xff\xfe\xc3(\xe2\x82\0caf\xc3\xa9\0\xed\xa0\x80\0\xc2\x85\xe2\x80\xae\0"));
}

/* The longest of each: one name of every byte there is room for, and as many names as fit. */
static void put_long_paths(void)
{
	struct event_operation e = MAKE("x\0");

	e.path_len = EVENT_PATH_SIZE;
	memset(e.path, 'n', EVENT_PATH_SIZE - 1);
	e.path[EVENT_PATH_SIZE - 1] = '\0';
	put(e);
	for (unsigned int i = 0; i < EVENT_PATH_SIZE; i++)
		e.path[i] = i % 2 ? '\0' : 'd';
	put(e);
}

static void put_threads(void)
{
	struct event_operation e = MAKE("f\0");

	e.fd = -1;
	e.offset = -1;
	put(e);
	memcpy(e.comm, "\xff\x80\x1b]0;evil\x07\n\xc3\xa9z", sizeof(e.comm));
	put(e);
	memset(e.comm, 'c', sizeof(e.comm)); /* not terminated */
	put(e);
	memset(e.comm, 0, sizeof(e.comm));
	put(e);
	/* A process that has gone, one whose id was given away, users without a name. */
	e = MAKE("f\0");
	e.pid = 99999;
	e.tid = 99999;
	put(e);
	e = MAKE("f\0");
	e.process_start_ns += 5 * SECOND;
	put(e);
	e.uid = 4000000000u;
	put(e);
	/* A container's: another mount namespace, another process. */
	e = MAKE("WAL\0pg\0");
	e.pid = 3300;
	e.tid = 3300;
	e.process_start_ns = 5678 * (SECOND / 100);
	e.mount_ns = 4026532999u;
	e.dev = DEV(7u, 3u);
	put(e);
}

static void put_extremes(void)
{
	struct event_operation e = { 0 };

	e.header.type = EVENT_OPERATION;
	e.header.version = EVENT_VERSION;
	put(e);
	e.flags = EVENT_FINISHED;
	put(e);
	memset(&e, 0xff, FIXED_SIZE);
	e.header.type = EVENT_OPERATION;
	e.header.version = EVENT_VERSION;
	e.op = EVENT_OP_WRITE;
	e.stack_len = EVENT_STACK_DEPTH;
	e.path_len = 0;
	e.fd = -1;
	put(e);
	e.fd = INT32_MAX;
	e.offset = INT64_MAX;
	e.ret = INT64_MIN;
	put(e);
}

/*
 * In flight: the fixture's thread 2217 is in D, 99999 has ended; the return brings the stack along.
 */
static void put_stuck(void)
{
	struct event_operation e = MAKE("redo.log\0log\0");

	e.flags = EVENT_PATH_COMPLETE;
	e.op = EVENT_OP_WRITE;
	e.start_ns = 50 * SECOND;
	for (unsigned int i = 1; i <= 3; i++) {
		e.dur_ns = i * SECOND;
		put(e);
	}
	e.flags |= EVENT_FINISHED;
	e.dur_ns = 3500 * (SECOND / 1000);
	e.stack_len = 1;
	e.stack_base = 0xffffffff81000110;
	put(e);
	e.flags = EVENT_PATH_COMPLETE;
	e.tid = 99999;
	put(e);
}

static void put_refused(void)
{
	const struct event_operation good = MAKE("refused\0");
	const uint32_t size = (uint32_t)FIXED_SIZE + good.path_len;
	struct event_operation bad[] = { good, good, good, good, good, good, good, good };
	struct event_operation e = good;

	bad[0].header.version = 0;
	bad[1].header.version = EVENT_VERSION + 1;
	bad[2].header.type = EVENT_OPERATION + 1;
	bad[3].op = EVENT_OP_COUNT;
	bad[4].stack_len = EVENT_STACK_DEPTH + 1;
	bad[5].fd = -2;
	bad[6].path[good.path_len - 1] = 'x';
	bad[7].path_len = UINT32_MAX;
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++)
		put_sized(&bad[i], size, size);
	put_sized(&e, size + 1, size);
	put_sized(&e, size - 1, size - 1);
	put_sized(&e, size + 1, size + 1);
	put_sized(&e, FIXED_SIZE - 1, FIXED_SIZE - 1);
	put_sized(&e, sizeof(e.header), sizeof(e.header));
	put_sized(&e, 0, 0);
	put_sized(&e, 1, 1);
}

int main(void)
{
	put_finished();
	put_paths();
	put_long_paths();
	put_threads();
	put_extremes();
	put_stuck();
	put_refused();
	/* What came before must not have done any harm. */
	put(MAKE("last\0"));
	return fflush(stdout) != 0 || ferror(stdout);
}
