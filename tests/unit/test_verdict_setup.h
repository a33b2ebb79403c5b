/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines of an incident as facts: samples of a disk, operations on its files, who loaded it.
 * Included by the tests of the verdict.
 * Never depends on the clock or on the host.
 */
#ifndef IOSTALL_TESTS_TEST_VERDICT_SETUP_H
#define IOSTALL_TESTS_TEST_VERDICT_SETUP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/rules.h"
#include "verdict/verdict.h"

#define MS NSEC_PER_MSEC
#define TRIGGER_NS (100 * NSEC_PER_SEC)
#define MIB (1ULL << 20)

struct fixture {
	struct verdict_facts f;
	struct record_verdict v;
	uint64_t now_ns;
};

static inline int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	*state = x;
	return 0;
}

static inline int teardown(void **state)
{
	free(*state);
	return 0;
}

/* A second of what the watchdog sees of one disk. */
static inline void sample(struct fixture *x, const struct watch_disk *disk)
{
	struct record_sample s = { .before_trigger = x->now_ns < TRIGGER_NS };

	s.sample.mono_ns = x->now_ns;
	s.sample.interval_ns = NSEC_PER_SEC;
	s.sample.disks_count = 1;
	s.sample.disks[0] = *disk;
	verdict_note_sample(&x->f, &s);
	x->now_ns += NSEC_PER_SEC;
}

static const struct watch_disk idle_sdb = { .name = "sdb", .major = 8, .minor = 16 };
/* 64 requests at a time, 300 ms each: 213 a second, of 16 KiB. */
static const struct watch_disk loaded_sdb = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
	.inflight = 64, .read_await_ms = 300, .queue = 64, .read_bytes = 213 * 16384 };
/* One request at a time, 125 ms each: 8 a second, of 4 KiB. */
static const struct watch_disk slow_sdb = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
	.inflight = 1, .read_await_ms = 125, .queue = 1, .read_bytes = 8 * 4096 };

static inline void samples(struct fixture *x, const struct watch_disk *disk, unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds; i++)
		sample(x, disk);
}

/* Of mariadbd, process 2211, on a file of sdb1, which is no disk. */
static inline void operation(struct fixture *x, int32_t tid, const char *waits_for, uint64_t ns, bool finished)
{
	struct record_operation op = { .op = "read", .probe = "vfs", .pid = 2211, .tid = tid,
		.comm = "mariadbd", .path = "/var/lib/mysql/shop/orders.ibd", .dev_major = 8,
		.dev_minor = 17, .dev_name = "sdb1", .dur_ns = ns };

	text_copy(op.waits_for, sizeof(op.waits_for), waits_for);
	verdict_note_operation(&x->f, &op, finished);
}

static inline void kernel_thread(struct fixture *x, const char *waits_for, uint64_t ns)
{
	struct record_operation op = { .op = "kernel", .probe = "wait", .pid = 77, .tid = 77,
		.comm = "kworker/u8:2", .dur_ns = ns };

	text_copy(op.waits_for, sizeof(op.waits_for), waits_for);
	verdict_note_operation(&x->f, &op, false);
}

static inline void totals(struct fixture *x, uint64_t requests, uint64_t read_bytes, uint64_t device_max_ns)
{
	struct record_device d = { .dev_major = 8, .dev_minor = 16, .dev_name = "sdb", .final = true,
		.requests = requests, .read_requests = requests, .read_bytes = read_bytes,
		.device = { device_max_ns / 2, device_max_ns, device_max_ns } };

	verdict_note_device(&x->f, &d);
}

static inline void load(struct fixture *x, const char *by, int32_t pid, int32_t tid, const char *comm,
	double share_pct, bool inferred)
{
	struct record_io_by b = { .dev_major = 8, .dev_minor = 16, .dev_name = "sdb", .pid = pid,
		.tid = tid, .requests = 1000, .bytes = 100 * MIB, .share_pct = share_pct,
		.inferred = inferred };

	text_copy(b.by, sizeof(b.by), by);
	text_copy(b.comm, sizeof(b.comm), comm);
	if (strcmp(by, "file") == 0)
		text_copy(b.path, sizeof(b.path), "/var/lib/mysql/big/t.ibd");
	verdict_note_io_by(&x->f, &b);
}

/* A scan by thread 2211, and everybody else waits. */
static inline void scan(struct fixture *x)
{
	samples(x, &loaded_sdb, 10);
	operation(x, 2230, "page", 12 * NSEC_PER_SEC, true);
	operation(x, 2231, "journal commit", 2 * NSEC_PER_SEC, true);
	operation(x, 2225, "device", 400 * MS, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2211, 0, "mariadbd", 98, false);
	load(x, "thread", 2211, 2225, "mariadbd", 92.4, false);
	load(x, "thread", 2211, 2230, "mariadbd", 6, false);
	load(x, "file", 0, 0, "", 91, false);
}

static inline void decide(struct fixture *x)
{
	verdict_decide(&x->f, NULL, &x->v);
}

static const struct record_verdict_part *part(const struct fixture *x, const char *what)
{
	for (uint32_t i = 0; i < x->v.parts_count; i++)
		if (strcmp(x->v.parts[i].what, what) == 0)
			return &x->v.parts[i];
	return NULL;
}

static inline void assert_verdict(const struct fixture *x, const char *class_name, const char *basis,
	const char *sentence)
{
	assert_string_equal(x->v.sentence, sentence);
	assert_string_equal(x->v.class_name, class_name);
	assert_string_equal(x->v.basis, basis);
	/* Only the load has somebody to blame. */
	if (strcmp(class_name, "saturated") != 0)
		assert_null(part(x, "culprit"));
}

#define verdict_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

#endif
