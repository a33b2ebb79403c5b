/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records for tests: one of each type with plain values, and any number of random ones.
 * Included by the tests of the record and of the sinks.
 * Never depends on the clock or on the host.
 */
#ifndef TEST_RECORD_DATA_H
#define TEST_RECORD_DATA_H

#include <stdlib.h>
#include <string.h>

#include "record/fields.h"
#include "util/clock.h"

#define DATA_ID "20261120T031207Z-3f9c"
#define DATA_REAL_NS 1795144327123456000ULL
#define DATA_MONO_NS 5000000000ULL

static inline void data_begin(struct record *r, enum record_type type)
{
	memset(r, 0, sizeof(*r));
	r->type = type;
	text_copy(r->incident, sizeof(r->incident), DATA_ID);
	r->real_ns = DATA_REAL_NS;
	r->mono_ns = DATA_MONO_NS;
}

static inline void data_open(struct record *r)
{
	data_begin(r, RECORD_OPEN);
	r->open = (struct record_open){
		.trigger = { .rule = "utilisation", .device = "sdb", .value = 97.25,
			.threshold = 90, .unit = "%" },
		.host = "db1",
		.kernel = "6.1.0-28-amd64",
		.boot_id = "0b5c1f5e-7a43-4d0e-9a53-6d1c5cf6d9a1",
		.version = "1.0",
		.min_stall_ns = 100 * NSEC_PER_MSEC,
		.armed_ns = 3412000,
		.coverage_count = 2,
		.coverage = { { "read", "vfs", "fentry", "" },
			{ "fsync", "", "", "no probe for it is enabled" } },
	};
}

static inline void data_operation(struct record *r, enum record_type type)
{
	data_begin(r, type);
	r->mono_ns += 12345 * NSEC_PER_MSEC;
	r->operation = (struct record_operation){
		.op = "read", .probe = "vfs", .backend = "fentry", .pid = 2211, .tid = 2230,
		.comm = "mariadbd", .exe = "/usr/sbin/mariadbd", .user = "mysql",
		.unit = "mariadb.service", .cgroup_id = 4711, .connection_id = 17, .fd = 23,
		.path = "/var/lib/mysql/shop/orders.ibd", .dev_major = 8, .dev_minor = 16,
		.dev_name = "sdb", .inode = 131, .offset = 1048576, .bytes = 16384, .ret = 16384,
		.start_mono_ns = DATA_MONO_NS + 11833 * NSEC_PER_MSEC,
		.dur_ns = 512 * NSEC_PER_MSEC,
		.syscall = 17, .sleeps = 3, .slept_ns = 511 * NSEC_PER_MSEC, .iowait = true,
		.waits_for = "page",
		.kstack = "io_schedule+0x12\nfolio_wait_bit_common+0x13\nfilemap_read+0x14",
		.kstack_while_blocked = true,
	};
	if (type == RECORD_STUCK) {
		r->operation.ret = 0;
		r->operation.before_arm = true;
		r->operation.state = 'D';
		text_copy(r->operation.wchan, sizeof(r->operation.wchan), "io_schedule");
	}
}

static inline void data_sample(struct record *r)
{
	data_begin(r, RECORD_SAMPLE);
	r->mono_ns -= 3 * NSEC_PER_SEC;
	r->sample.before_trigger = true;
	r->sample.sample = (struct watch_sample){
		.mono_ns = r->mono_ns, .real_ns = r->real_ns, .interval_ns = NSEC_PER_SEC,
		.iowait_pct = 23.5, .busy_pct = 40, .iowait_cpus = 0.47, .procs_running = 2,
		.procs_blocked = 3, .psi_io = { true, 74, 48.25 }, .psi_memory = { true, 0, 0 },
		.threads = { 200, 2, 2211, 2230, true }, .sql = { true, 31, 12.5, 29, 2.25 },
		.health = { true, 5.5, 0.25, 0 },
		.disks_count = 1,
		.disks = { { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
			.inflight = 12, .read_await_ms = 510.5, .queue = 12.25,
			.read_bytes = 1048576, .no_completion_ns = 2 * NSEC_PER_SEC } },
	};
	r->sample.limits = (struct watch_limits){
		.filesystems_count = 1,
		.filesystems = { { "/var/lib/mysql", 8, 17, 98.5, 12.25, 300 << 20 } },
		.cgroups_count = 1,
		.cgroups = { { "/system.slice/mariadb.service", 1ULL << 30, 900 << 20, 800 << 20,
			96.5, 1.25 } },
	};
}

static inline void data_device(struct record *r)
{
	data_begin(r, RECORD_DEVICE);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->device = (struct record_device){
		.dev_major = 8, .dev_minor = 16, .dev_name = "sdb", .final = true, .requests = 1234,
		.read_requests = 1200, .write_requests = 30, .read_bytes = 19660800,
		.write_bytes = 491520, .queue = { 12000, 2000000, 450000000 },
		.device = { 340000000, 1900000000, 4200000000 }, .queue_histogram = { 0, 0, 7, 1227 },
		.device_histogram = { 0, 1, 0, 0, 1233 }, .in_flight = 12,
		.no_completion_ns = 2 * NSEC_PER_SEC, .oldest_age_ns = 4500 * NSEC_PER_MSEC,
		.oldest_pid = 2211, .oldest_tid = 2230, .oldest_comm = "mariadbd",
		.oldest_path = "/var/lib/mysql/shop/orders.ibd",
	};
}

static inline void data_io_by(struct record *r)
{
	data_begin(r, RECORD_IO_BY);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->io_by = (struct record_io_by){
		.by = "file", .dev_major = 8, .dev_minor = 16, .dev_name = "sdb", .pid = 2211,
		.tid = 2230, .comm = "mariadbd", .cgroup_id = 4711, .unit = "mariadb.service",
		.path = "/var/lib/mysql/shop/orders.ibd", .fs_major = 8, .fs_minor = 17,
		.inode = 131, .requests = 1200, .read_bytes = 19660800, .write_bytes = 16384,
		.bytes = 19677184, .share_pct = 97.5, .device_ns = 410 * NSEC_PER_SEC,
		.inferred = true,
	};
}

static inline void data_kernel(struct record *r)
{
	data_begin(r, RECORD_KERNEL);
	r->mono_ns += 4400 * NSEC_PER_MSEC;
	r->kernel = (struct record_kernel){
		.level = "warning", .kernel_ns = 4321 * NSEC_PER_SEC,
		.text = "nvme nvme0: I/O 12 QID 3 timeout, aborting",
	};
}

static inline void data_sql(struct record *r)
{
	data_begin(r, RECORD_SQL);
	r->mono_ns += 1020 * NSEC_PER_MSEC;
	r->sql = (struct record_sql){
		.target = "main", .server = "mariadb", .moment = "worst", .active = -1, .idle = -1,
		.left_out = -1, .server_ns = 480000, .answer_ns = 530000, .connection_id = 17, .query_id = 4711,
		.user = "app@localhost", .database = "shop", .command = "Query",
		.state = "Sending data", .elapsed_ns = 31 * NSEC_PER_SEC,
		.text = "SELECT COUNT(*) FROM t WHERE c LIKE ?", .text_bytes = 44, .pid = 2211,
		.tid = 2230, .tid_reason = "", .candidates = { 2231, 2232 }, .leader_pid = 12,
		.background = true,
	};
}

/* Of the answer as a whole, which there is not. */
static inline void data_sql_silence(struct record *r)
{
	data_begin(r, RECORD_SQL);
	r->mono_ns += 2020 * NSEC_PER_MSEC;
	r->sql = (struct record_sql){
		.target = "main", .server = "mariadb", .moment = "end", .active = -1, .idle = -1,
		.left_out = -1, .version = "10.11.6-MariaDB", .account = "iostall@localhost",
		.error = "Access denied for user 'iostall'@'localhost'",
		.missing = "CREATE USER iostall@localhost", .unanswered_ns = 2000 * NSEC_PER_MSEC,
	};
}

static inline void data_verdict(struct record *r)
{
	data_begin(r, RECORD_VERDICT);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->verdict = (struct record_verdict){
		.class_name = "saturated", .basis = "measured",
		.sentence = "device sdb saturated (util 100 %): 92 % of 204.1 MiB read by mariadbd tid "
			    "2230, shop/orders.ibd, app@localhost \"SELECT 1\" running 31.00 s",
		.message = "device sdb saturated (util 100 %): 92 % of 204.1 MiB read by mariadbd tid "
			   "2230, shop/orders.ibd, app@localhost, a statement running 31.00 s",
		.dev_major = 8, .dev_minor = 16, .dev_name = "sdb", .waits_for = "page",
		.parts_count = 1,
		.parts = { { .what = "culprit", .basis = "measured", .text = "92 % of 204.1 MiB",
			.pid = 2211, .tid = 2230, .comm = "mariadbd",
			.path = "/var/lib/mysql/shop/orders.ibd", .threads = 3,
			.longest_ns = 31 * NSEC_PER_SEC, .requests = 1200, .bytes = 19677184,
			.share_pct = 92.5, .util_pct = 100, .await_ms = 296.25, .queue = 64.5 } },
	};
}

static inline void data_close(struct record *r)
{
	data_begin(r, RECORD_CLOSE);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->close = (struct record_close){
		.reason = "clear", .duration_ns = 23400 * NSEC_PER_MSEC, .stalls = 12,
		.stuck_lines = 14, .stuck_threads = 3, .longest_ns = 4200 * NSEC_PER_MSEC,
		.samples = 40, .cpu_ns = 12345678, .armed_ns = 3412000, .attach_ns = 2100000,
		.detach_ns = 140000000, .turn_ns = 1500000, .rss_bytes = 9 << 20,
	};
	r->close.lost[RECORD_LOST_return_missed] = 2;
}

static inline void data_any(struct record *r, enum record_type type)
{
	switch (type) {
	case RECORD_OPEN:
		data_open(r);
		break;
	case RECORD_SAMPLE:
		data_sample(r);
		break;
	case RECORD_DEVICE:
		data_device(r);
		break;
	case RECORD_IO_BY:
		data_io_by(r);
		break;
	case RECORD_KERNEL:
		data_kernel(r);
		break;
	case RECORD_SQL:
		data_sql(r);
		break;
	case RECORD_VERDICT:
		data_verdict(r);
		break;
	case RECORD_CLOSE:
		data_close(r);
		break;
	default:
		data_operation(r, type);
		break;
	}
}

/* Every text is terminated, as everybody who makes a record sees to. */
static inline void data_terminate(const struct field *fields, char *base)
{
	for (const struct field *f = fields; f->key; f++) {
		char *value = base + f->offset;

		if (f->kind == FIELD_TEXT || f->kind == FIELD_LINES)
			value[f->size - 1] = '\0';
		else if (f->kind == FIELD_ARRAY)
			for (size_t i = 0; i < f->count_max; i++)
				data_terminate(f->members, value + i * f->size);
		else if (f->members)
			data_terminate(f->members, value);
	}
}

/* Every byte of the body random, then what a caller guarantees is made true. */
static inline void data_random(struct record *r, enum record_type type, unsigned int *seed)
{
	data_begin(r, type);
	for (size_t i = offsetof(struct record, open); i < sizeof(*r); i++) {
		unsigned int value = (unsigned int)rand_r(seed) >> 7;

		/* Half of it printable, or almost every text would be one byte long. */
		if (value & 0x100)
			value = 0x20 + value % 0x5f;
		((unsigned char *)r)[i] = (unsigned char)value;
	}
	data_terminate(record_fields[type], (char *)r);
	r->real_ns = 8 * NSEC_PER_SEC * (unsigned int)rand_r(seed) +
		NSEC_PER_USEC * ((unsigned int)rand_r(seed) % 1000000);
	r->mono_ns = NSEC_PER_SEC * (unsigned int)rand_r(seed);
	/* A bool that is neither 0 nor 1 is undefined to read. */
	switch (type) {
	case RECORD_OPEN:
		r->open.coverage_count %= RECORD_COVERAGE_MAX + 1;
		break;
	case RECORD_SAMPLE:
		memset(&r->sample.before_trigger, rand_r(seed) & 1, 1);
		memset(&r->sample.sample.psi_io.present, rand_r(seed) & 1, 1);
		memset(&r->sample.sample.psi_memory.present, rand_r(seed) & 1, 1);
		memset(&r->sample.sample.psi_cpu.present, rand_r(seed) & 1, 1);
		memset(&r->sample.sample.threads.complete, rand_r(seed) & 1, 1);
		memset(&r->sample.sample.sql.present, rand_r(seed) & 1, 1);
		memset(&r->sample.sample.health.present, rand_r(seed) & 1, 1);
		r->sample.sample.disks_count %= WATCH_SAMPLE_DISKS_MAX + 1;
		r->sample.limits.filesystems_count %= WATCH_LIMITS_FILESYSTEMS_MAX + 1;
		r->sample.limits.cgroups_count %= WATCH_LIMITS_CGROUPS_MAX + 1;
		r->sample.sample.real_ns = r->real_ns;
		r->sample.sample.mono_ns = r->mono_ns;
		break;
	case RECORD_STALL:
	case RECORD_STUCK:
		memset(&r->operation.path_truncated, rand_r(seed) & 1, 1);
		memset(&r->operation.before_arm, rand_r(seed) & 1, 1);
		memset(&r->operation.path_given, rand_r(seed) & 1, 1);
		memset(&r->operation.iowait, rand_r(seed) & 1, 1);
		memset(&r->operation.kstack_while_blocked, rand_r(seed) & 1, 1);
		break;
	case RECORD_DEVICE:
		memset(&r->device.final, rand_r(seed) & 1, 1);
		break;
	case RECORD_VERDICT:
		r->verdict.parts_count %= RECORD_PARTS_MAX + 1;
		break;
	case RECORD_IO_BY:
		memset(&r->io_by.path_truncated, rand_r(seed) & 1, 1);
		memset(&r->io_by.inferred, rand_r(seed) & 1, 1);
		break;
	case RECORD_SQL:
		memset(&r->sql.background, rand_r(seed) & 1, 1);
		break;
	default:
		break;
	}
}

#endif
