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
		.trigger = { .rule = "utilisation",
			.device = "sdb",
			.value = 97.25,
			.threshold = 90,
			.unit = "%" },
		.host = "db1",
		.kernel = "6.1.0-28-amd64",
		.boot_id = "0b5c1f5e-7a43-4d0e-9a53-6d1c5cf6d9a1",
		.version = "1.0",
		.min_stall_ns = 100 * NSEC_PER_MSEC,
		.armed_ns = 3412000,
		.coverage_count = 2,
		.coverage = { { RECORD_IO_PATH_read, RECORD_PROBE_vfs, RECORD_BACKEND_fentry,
				      RECORD_PAIRING_entry, "" },
			{ .path = RECORD_IO_PATH_fsync, .reason = "no probe for it is enabled" } },
	};
}

static inline void data_trigger(struct record *r)
{
	data_begin(r, RECORD_TRIGGER);
	r->mono_ns += 2 * NSEC_PER_SEC;
	r->trigger = (struct record_trigger){ .rule = "sql_unanswered",
		.subject = "main",
		.value = 3.25,
		.threshold = 3,
		.unit = "s" };
}

static inline void data_queue(struct record *r)
{
	data_begin(r, RECORD_QUEUE);
	r->mono_ns += 4 * NSEC_PER_SEC;
	r->queue = (struct record_queue){ .target = "main",
		.lock = RECORD_LOCK_metadata,
		.lock_on = "shop.orders",
		.waiters = 12,
		.longest_ns = 3210 * NSEC_PER_MSEC,
		.waited_ns = 30 * NSEC_PER_SEC,
		.holder = { .present = true,
			.connection_id = 42,
			.user = "app@localhost",
			.pid = 2211,
			.tid = 2299,
			.comm = "mariadbd",
			.idle = true,
			.elapsed_ns = 41 * NSEC_PER_SEC,
			.transaction_ns = 42 * NSEC_PER_SEC,
			.text = "UPDATE shop.orders SET n = ?" },
		.basis = RECORD_BASIS_measured,
		.candidates = 1,
		.first = { .present = true,
			.connection_id = 43,
			.user = "app@localhost",
			.elapsed_ns = 3 * NSEC_PER_SEC,
			.text = "DROP TABLE shop.orders" },
		.behind_first = 11 };
}

static inline void data_lock(struct record *r)
{
	data_begin(r, RECORD_LOCK);
	r->mono_ns += 3 * NSEC_PER_SEC;
	r->lock_wait = (struct record_lock_wait){ .kind = RECORD_KERNEL_LOCK_memory_map,
		.id = 1,
		.pid = 2211,
		.comm = "mariadbd",
		.waiters = 16,
		.longest_ns = 3210 * NSEC_PER_MSEC,
		.holder = { .present = true,
			.pid = 2211,
			.tid = 2230,
			.comm = "buffers",
			.state = 'R',
			.syscall = 9,
			.held_ns = 2500 * NSEC_PER_MSEC,
			.connection_id = 17,
			.kstack = "clear_page_erms+0x7\n__get_user_pages+0x6d0" } };
}

static inline void data_operation(struct record *r, enum record_type type)
{
	data_begin(r, type);
	r->mono_ns += 12345 * NSEC_PER_MSEC;
	r->operation = (struct record_operation){
		.op = RECORD_OP_read,
		.probe = RECORD_PROBE_vfs,
		.backend = RECORD_BACKEND_fentry,
		.pid = 2211,
		.tid = 2230,
		.comm = "mariadbd",
		.exe = "/usr/sbin/mariadbd",
		.user = "mysql",
		.unit = "mariadb.service",
		.cgroup = 4711,
		.connection_id = 17,
		.fd = 23,
		.path = "/var/lib/mysql/shop/orders.ibd",
		.dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.inode = 131,
		.offset = 1048576,
		.bytes = 16384,
		.ret = 16384,
		.start_mono_ns = DATA_MONO_NS + 11833 * NSEC_PER_MSEC,
		.dur_ns = 512 * NSEC_PER_MSEC,
		.since = RECORD_SINCE_after_arm,
		.syscall = 17,
		.sleeps = 3,
		.slept_ns = 511 * NSEC_PER_MSEC,
		.iowait = true,
		.waits_for = RECORD_CAUSE_page,
		.kstack = "io_schedule+0x12\nfolio_wait_bit_common+0x13\nfilemap_read+0x14",
		.kstack_while_blocked = true,
	};
	if (type == RECORD_STUCK) {
		r->operation.ret = 0;
		r->operation.since = RECORD_SINCE_before_arm;
		r->operation.state = 'D';
		text_copy(r->operation.wchan, sizeof(r->operation.wchan), "io_schedule");
	}
}

static inline void data_sample(struct record *r)
{
	data_begin(r, RECORD_SAMPLE);
	r->mono_ns -= 3 * NSEC_PER_SEC;
	r->sample.before_trigger = true;
	r->sample.reading = (struct record_reading){
		.mono_ns = r->mono_ns,
		.real_ns = r->real_ns,
		.interval_ns = NSEC_PER_SEC,
		.cpu.iowait_pct = 23.5,
		.cpu.busy_pct = 40,
		.cpu.iowait_cpus = 0.47,
		.procs_running = 2,
		.procs_blocked = 3,
		.psi.io = { true, 74, 48.25 },
		.psi.memory = { true, 0, 0 },
		.memory = { true, 6 << 20, 2 << 20, 1 << 20, 5 << 20, 7 << 20, 31 },
		.threads = { 200, 2, 2211, 2230, true },
		.sql = { true, 31, 12.5, 29, 2.25 },
		.health = { true, 5.5, 0.25, 0 },
		.devices_count = 1,
		.devices = { { .dev = { 8, 16 },
			.dev_name = "sdb",
			.util_pct = 100,
			.inflight = 12,
			.read_await_ms = 510.5,
			.queue = 12.25,
			.read_bytes = 1048576,
			.no_completion_ns = 2 * NSEC_PER_SEC } },
	};
	r->sample.limits = (struct record_limits){
		.file_systems_count = 1,
		.file_systems = { { "/var/lib/mysql", { 8, 17 }, "sda1", 98.5, 12.25, 300 << 20 } },
		.cgroups_count = 1,
		.cgroups = { { "/system.slice/mariadb.service", 1ULL << 30, 900 << 20, 800 << 20,
			96.5, 1.25, 3 << 20, 1 << 20, 2 << 20, 17, 9, 1 } },
	};
}

static inline void data_device(struct record *r)
{
	data_begin(r, RECORD_DEVICE);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->device = (struct record_device){
		.dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.final = true,
		.requests = 1234,
		.read_requests = 1200,
		.write_requests = 30,
		.read_bytes = 19660800,
		.write_bytes = 491520,
		.queue = { 12000, 2000000, 450000000 },
		.device = { 340000000, 1900000000, 4200000000 },
		.queue_histogram = { 0, 0, 7, 1227 },
		.device_histogram = { 0, 1, 0, 0, 1233 },
		.in_flight = 12,
		.no_completion_ns = 2 * NSEC_PER_SEC,
		.oldest.age_ns = 4500 * NSEC_PER_MSEC,
		.oldest.pid = 2211,
		.oldest.tid = 2230,
		.oldest.comm = "mariadbd",
		.oldest.path = "/var/lib/mysql/shop/orders.ibd",
	};
}

static inline void data_io_by(struct record *r)
{
	data_begin(r, RECORD_IO_BY);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->io_by = (struct record_io_by){
		.by = RECORD_BY_file,
		.final = true,
		.rank = 1,
		.dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.pid = 2211,
		.tid = 2230,
		.comm = "mariadbd",
		.cgroup = 4711,
		.unit = "mariadb.service",
		.path = "/var/lib/mysql/shop/orders.ibd",
		.fs_dev = { 8, 17 },
		.inode = 131,
		.file_bytes = 65536,
		.requests = 1200,
		.read_bytes = 19660800,
		.write_bytes = 16384,
		.bytes = 19677184,
		.share_pct = 97.5,
		.device_ns = 410 * NSEC_PER_SEC,
		.inferred = true,
	};
}

static inline void data_journal(struct record *r)
{
	data_begin(r, RECORD_JOURNAL);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->journal = (struct record_journal){
		.final = true,
		.dev = { 8, 17 },
		.dev_name = "sdb1",
		.commits = 4,
		.commit_ns = 5200 * NSEC_PER_MSEC,
		.longest_ns = 3100 * NSEC_PER_MSEC,
		.longest_blocks = 1203,
		.longest_data_pct = 95,
		.early_ns = 700 * NSEC_PER_MSEC,
		.under_way_ns = 40 * NSEC_PER_MSEC,
		.blocks = 1500,
		.pid = 2300,
		.comm = "dd",
		.share_pct = 91.5,
	};
}

static inline void data_offcpu(struct record *r)
{
	data_begin(r, RECORD_OFFCPU);
	r->mono_ns += 15000 * NSEC_PER_MSEC;
	r->offcpu = (struct record_offcpu){
		.window_ns = 15 * NSEC_PER_SEC,
		.pid = 2211,
		.process = "mariadbd",
		.exe = "/usr/sbin/mariadbd",
		.unit = "mariadb.service",
		.comm = "one_connection",
		.state = 'D',
		.syscall = 9,
		.time_ns = 48 * NSEC_PER_SEC,
		.runnable_ns = 12 * NSEC_PER_MSEC,
		.times = 31,
		.threads = 16,
		.off = 15,
		.longest_ns = 3400 * NSEC_PER_MSEC,
		.start_mono_ns = 3600 * NSEC_PER_SEC,
		.tid = 2290,
		.waits_for = RECORD_CAUSE_memory_map_lock,
		.waker = { .present = true,
			.pid = 2211,
			.tid = 2291,
			.comm = "one_connection",
			.kstack =
				"try_to_wake_up+0x2a1\nwake_up_q+0x4e\nrwsem_wake+0x6b\nup_write+0x39" },
		.kstack = "rwsem_down_write_slowpath+0x2ab\ndown_write_killable+0x51\n"
			  "vm_mmap_pgoff+0xc1\ndo_syscall_64+0x55",
		.ustack = "5b1f9e6c3f0a1b7d2c4e8f9a0b1c2d3e4f506172+0x11d2a7\n0x7f3a5c0012ab",
	};
}

static inline void data_kernel(struct record *r)
{
	data_begin(r, RECORD_KERNEL);
	r->mono_ns += 4400 * NSEC_PER_MSEC;
	r->kernel = (struct record_kernel){
		.level = RECORD_LEVEL_warning,
		.kernel_ns = 4321 * NSEC_PER_SEC,
		.text = "nvme nvme0: I/O 12 QID 3 timeout, aborting",
	};
}

static inline void data_sql(struct record *r)
{
	data_begin(r, RECORD_SQL);
	r->mono_ns += 1020 * NSEC_PER_MSEC;
	r->sql = (struct record_sql){
		.target = "main",
		.server = RECORD_SERVER_mariadb,
		.phase = RECORD_PHASE_during,
		.active = -1,
		.idle = -1,
		.left_out = -1,
		.server_ns = 480000,
		.answer_ns = 530000,
		.connection_id = 17,
		.query_id = 4711,
		.user = "app@localhost",
		.database = "shop",
		.command = "Query",
		.state = "Sending data",
		.elapsed_ns = 31 * NSEC_PER_SEC,
		.text = "SELECT COUNT(*) FROM t WHERE c LIKE ?",
		.text_bytes = 44,
		.pid = 2211,
		.tid = 2230,
		.tid_reason = "",
		.candidates = { 2231, 2232 },
		.leader_pid = 12,
		.background = true,
	};
}

/* Of the answer as a whole, which there is not. */
static inline void data_sql_silence(struct record *r)
{
	data_begin(r, RECORD_SQL);
	r->mono_ns += 2020 * NSEC_PER_MSEC;
	r->sql = (struct record_sql){
		.target = "main",
		.server = RECORD_SERVER_mariadb,
		.phase = RECORD_PHASE_end,
		.active = -1,
		.idle = -1,
		.left_out = -1,
		.version = "10.11.6-MariaDB",
		.account = "iostall@localhost",
		.error = "Access denied for user 'iostall'@'localhost'",
		.missing = "CREATE USER iostall@localhost",
		.unanswered_ns = 2000 * NSEC_PER_MSEC,
	};
}

static inline void data_verdict(struct record *r)
{
	data_begin(r, RECORD_VERDICT);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->verdict = (struct record_verdict){
		.class = RECORD_CLASS_saturated,
		.basis = RECORD_BASIS_measured,
		.final = true,
		.sentence =
			"device sdb saturated (util 100 %): 92 % of 204.1 MiB read by mariadbd tid "
			"2230, shop/orders.ibd, app@localhost \"SELECT 1\" running 31.00 s",
		.message =
			"device sdb saturated (util 100 %): 92 % of 204.1 MiB read by mariadbd tid "
			"2230, shop/orders.ibd, app@localhost, a statement running 31.00 s",
		.dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.waits_for = "disk",
		.parts_count = 1,
		.parts = { { .what = RECORD_WHAT_culprit,
			.basis = RECORD_BASIS_measured,
			.text = "92 % of 204.1 MiB",
			.pid = 2211,
			.tid = 2230,
			.comm = "mariadbd",
			.path = "/var/lib/mysql/shop/orders.ibd",
			.threads = 3,
			.longest_ns = 31 * NSEC_PER_SEC,
			.requests = 1200,
			.bytes = 19677184,
			.share_pct = 92.5,
			.util_pct = 100,
			.await_ms = 296.25,
			.queue = 64.5 } },
	};
}

static inline void data_close(struct record *r)
{
	data_begin(r, RECORD_CLOSE);
	r->mono_ns += 23400 * NSEC_PER_MSEC;
	r->close = (struct record_close){
		.reason = RECORD_REASON_clear,
		.duration_ns = 23400 * NSEC_PER_MSEC,
		.stalls = 12,
		.stuck_lines = 14,
		.stuck_threads = 3,
		.longest_ns = 4200 * NSEC_PER_MSEC,
		.samples = 40,
		.cost = { .cpu_ns = 12345678,
			.armed_ns = 3412000,
			.attach_ns = 2100000,
			.disarm_ns = 140000000,
			.turn_ns = 1500000,
			.delay_ns = 2600000,
			.rss_bytes = 9 << 20,
			.kernel_bytes = 11 << 20 },
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
	case RECORD_JOURNAL:
		data_journal(r);
		break;
	case RECORD_OFFCPU:
		data_offcpu(r);
		break;
	case RECORD_LOCK:
		data_lock(r);
		break;
	case RECORD_TRIGGER:
		data_trigger(r);
		break;
	case RECORD_QUEUE:
		data_queue(r);
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

/*
 * What everybody who makes a record sees to: texts end, enumerated values and counts are in range.
 */
static inline void data_make_valid(const struct field *fields, char *base, unsigned int *seed)
{
	for (const struct field *f = fields; f->key; f++) {
		char *value = base + f->offset;
		uint32_t count = (uint32_t)rand_r(seed) % (uint32_t)(f->count_max + 1);

		if (f->kind == FIELD_TEXT || f->kind == FIELD_LINES)
			value[f->size - 1] = '\0';
		else if (f->kind == FIELD_CHOICE)
			*(unsigned int *)(void *)value %= f->values->count;
		/* A bool that is neither 0 nor 1 is undefined to read. */
		else if (f->kind == FIELD_BOOL || (f->kind == FIELD_OBJECT && f->nullable))
			memset(value, rand_r(seed) & 1, 1);
		else if (f->kind == FIELD_ARRAY)
			memcpy(base + f->count_offset, &count, sizeof(count));
		if (f->kind == FIELD_ARRAY)
			for (size_t k = 0; k < f->count_max; k++)
				data_make_valid(f->members, value + k * f->size, seed);
		else if (f->members)
			data_make_valid(f->members, value, seed);
	}
}

static inline char *data_object(struct record *r)
{
	return (char *)r + record_types[r->type].offset;
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
	data_make_valid(record_types[type].fields, data_object(r), seed);
	/* Of the other type that has the same structure. */
	if (type == RECORD_STALL)
		data_make_valid(record_types[RECORD_STUCK].fields, data_object(r), seed);
	r->seq = (uint64_t)rand_r(seed);
	r->real_ns = 8 * NSEC_PER_SEC * (unsigned int)rand_r(seed) +
		NSEC_PER_USEC * ((unsigned int)rand_r(seed) % 1000000);
	r->mono_ns = NSEC_PER_SEC * (unsigned int)rand_r(seed);
	if (type == RECORD_SAMPLE) {
		r->sample.reading.real_ns = r->real_ns;
		r->sample.reading.mono_ns = r->mono_ns;
	}
}

#endif
