/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of an incident as facts: samples of a disk, operations on its files, who loaded it.
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
#include "verdict/figures.h"
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

/* One sample of one disk, a second after the last one. */
static inline void sample(struct fixture *x, const struct record_disk *disk)
{
	struct record_sample s = { .before_trigger = x->now_ns < TRIGGER_NS };

	s.reading.mono_ns = x->now_ns;
	s.reading.interval_ns = NSEC_PER_SEC;
	s.reading.devices_count = 1;
	s.reading.devices[0] = *disk;
	/* As many reads as make that queue with that await. */
	if (disk->reads == 0 && disk->read_await_ms > 0 && disk->queue > 0) {
		s.reading.devices[0].reads = (uint32_t)(1000 * disk->queue / disk->read_await_ms);
		s.reading.devices[0].read_ticks_ms = (uint32_t)(1000 * disk->queue);
	}
	verdict_note_sample(&x->f, &s);
	x->now_ns += NSEC_PER_SEC;
}

static const struct record_disk idle_sdb = { .dev = { 8, 16 }, .dev_name = "sdb" };
/* 64 requests at a time, 300 ms each: 213 a second, of 16 KiB. */
static const struct record_disk loaded_sdb = { .dev = { 8, 16 },
	.dev_name = "sdb",
	.util_pct = 100,
	.inflight = 64,
	.read_await_ms = 300,
	.queue = 64,
	.read_bytes = 213 * 16384 };
/* One request at a time, 125 ms each: 8 a second, of 4 KiB. */
static const struct record_disk slow_sdb = { .dev = { 8, 16 },
	.dev_name = "sdb",
	.util_pct = 100,
	.inflight = 1,
	.read_await_ms = 125,
	.queue = 1,
	.read_bytes = 8 * 4096 };

static inline void samples(struct fixture *x, const struct record_disk *disk, unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds; i++)
		sample(x, disk);
}

/* An operation of mariadbd, process 2211, on a file of sdb1, which is a partition. */
static inline void operation(struct fixture *x, int32_t tid, const char *waits_for, uint64_t ns,
	bool finished)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_vfs,
		.sleeps = 1,
		.pid = 2211,
		.tid = tid,
		.comm = "mariadbd",
		.path = "/var/lib/mysql/shop/orders.ibd",
		.dev.major = 8,
		.dev.minor = 17,
		.dev_name = "sdb1",
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = ns };

	op.waits_for = record_enum_find(&record_cause_enum, waits_for);
	verdict_note_operation(&x->f, &op, finished);
}

static inline void kernel_thread(struct fixture *x, const char *waits_for, uint64_t ns)
{
	struct record_operation op = { .op = RECORD_OP_kernel,
		.probe = RECORD_PROBE_wait,
		.pid = 77,
		.tid = 77,
		.comm = "kworker/u8:2",
		.dur_ns = ns };

	op.waits_for = record_enum_find(&record_cause_enum, waits_for);
	verdict_note_operation(&x->f, &op, false);
}

/* What sdb did. */
static inline double sdb_work_ns(const struct fixture *x)
{
	double ns = 0;

	for (uint32_t i = 0; i < x->f.devices_count; i++)
		if (strcmp(x->f.devices[i].name, "sdb") == 0)
			ns = verdict_work_ns(&x->f.devices[i]);
	return ns > 0 ? ns : 10.0 * NSEC_PER_SEC;
}

/* All that the samples say was traced. */
static inline void totals(struct fixture *x, uint64_t requests, uint64_t read_bytes,
	uint64_t device_max_ns)
{
	struct record_device d = { .dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.final = true,
		.requests = requests,
		.read_requests = requests,
		.read_bytes = read_bytes,
		.read_busy_ns = (uint64_t)sdb_work_ns(x),
		.device = { device_max_ns / 2, device_max_ns, device_max_ns } };

	verdict_note_device(&x->f, &d);
}

static inline void load(struct fixture *x, const char *by, int32_t pid, int32_t tid,
	const char *comm, double share_pct, bool inferred)
{
	struct record_io_by b = { .dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.pid = pid,
		.tid = tid,
		.requests = 1000,
		.read_requests = 1000,
		.bytes = 100 * MIB,
		.busy_ns = (uint64_t)(share_pct / 100 * sdb_work_ns(x)),
		.busy_share_pct = share_pct,
		.inferred = inferred };

	b.by = record_enum_find(&record_by_enum, by);
	text_copy(b.comm, sizeof(b.comm), comm);
	if (strcmp(by, "file") == 0)
		text_copy(b.path, sizeof(b.path), "/var/lib/mysql/big/t.ibd");
	verdict_note_io_by(&x->f, &b);
}

/* Thread 2225 scans a table, and other threads wait. */
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
		if (strcmp(record_what_text(x->v.parts[i].what), what) == 0)
			return &x->v.parts[i];
	return NULL;
}

static inline void assert_verdict(const struct fixture *x, const char *class_name,
	const char *basis, const char *sentence)
{
	assert_string_equal(x->v.sentence, sentence);
	assert_string_equal(record_class_text(x->v.class), class_name);
	assert_string_equal(record_basis_text(x->v.basis), basis);
	/* The others blame nobody. */
	if (strcmp(class_name, "saturated") != 0 && strcmp(class_name, "full") != 0 &&
		strcmp(class_name, "locked") != 0 && strcmp(class_name, "stopped") != 0) {
		assert_null(part(x, "culprit"));
		assert_null(part(x, "largest"));
	}
}

#define verdict_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* A thread that waited, for as long as `ns`. */
struct wait {
	const char *waits_for;
	const char *dev_name;
	uint32_t major, minor;
	int32_t pid, tid;
	uint64_t start_ns, ns;
};

static inline void note_wait(struct fixture *x, const struct wait *w, bool finished)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_wait,
		.pid = w->pid,
		.tid = w->tid,
		.comm = "victim",
		.path = "/srv/file",
		.dev = { w->major, w->minor },
		.start_mono_ns = w->start_ns ? w->start_ns : TRIGGER_NS,
		.dur_ns = w->ns,
		.waits_for = record_enum_find(&record_cause_enum, w->waits_for) };

	text_copy(op.dev_name, sizeof(op.dev_name), w->dev_name ? w->dev_name : "");
	verdict_note_operation(&x->f, &op, finished);
}

static inline void waits(struct fixture *x, const struct wait *w)
{
	note_wait(x, w, true);
}

static inline void freeze(struct fixture *x, int32_t pid, uint64_t ns)
{
	waits(x, &(struct wait){ "frozen file system", "loop7", 7, 7, pid, pid, 0, ns });
}

#endif
