/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/fields.h"

#include "util/cleanup.h"

#define FIELD(kind_, type, member, key_)                                                           \
	{                                                                                          \
		.key = (key_), .kind = FIELD_##kind_, .offset = offsetof(type, member),            \
		.size = sizeof(((type *)NULL)->member)                                             \
	}
#define OBJECT(kind_, type, member, key_, members_)                                                \
	{                                                                                          \
		.key = (key_), .kind = FIELD_##kind_, .offset = offsetof(type, member),            \
		.members = (members_)                                                              \
	}
#define ARRAY(type, member, count, key_, members_)                                                 \
	{                                                                                          \
		.key = (key_), .kind = FIELD_ARRAY, .offset = offsetof(type, member),              \
		.size = sizeof(((type *)NULL)->member[0]), .members = (members_),                  \
		.count_offset = offsetof(type, count),                                             \
		.count_max = ARRAY_SIZE(((type *)NULL)->member)                                    \
	}
#define COUNTS(type, member, key_)                                                                 \
	{                                                                                          \
		.key = (key_), .kind = FIELD_COUNTS, .offset = offsetof(type, member),             \
		.count_max = ARRAY_SIZE(((type *)NULL)->member)                                    \
	}
#define END { .key = NULL }

static const struct field trigger_fields[] = {
	FIELD(TEXT, struct record_trigger, rule, "rule"),
	FIELD(TEXT, struct record_trigger, device, "device"),
	FIELD(TEXT, struct record_trigger, subject, "subject"),
	FIELD(PID, struct record_trigger, pid, "pid"),
	FIELD(PID, struct record_trigger, tid, "tid"),
	FIELD(REAL, struct record_trigger, value, "value"),
	FIELD(REAL, struct record_trigger, threshold, "threshold"),
	FIELD(TEXT, struct record_trigger, unit, "unit"),
	END,
};

static const struct field coverage_fields[] = {
	FIELD(TEXT, struct record_coverage, path, "path"),
	FIELD(TEXT, struct record_coverage, probe, "probe"),
	FIELD(TEXT, struct record_coverage, backend, "backend"),
	FIELD(TEXT, struct record_coverage, reason, "reason"),
	END,
};

static const struct field open_fields[] = {
	OBJECT(OBJECT, struct record, open.trigger, "trigger", trigger_fields),
	FIELD(TEXT, struct record, open.host, "host"),
	FIELD(TEXT, struct record, open.kernel, "kernel"),
	FIELD(TEXT, struct record, open.boot_id, "boot_id"),
	FIELD(TEXT, struct record, open.version, "version"),
	FIELD(U64, struct record, open.min_stall_ns, "min_stall_ns"),
	FIELD(U64, struct record, open.armed_ns, "armed_ns"),
	ARRAY(struct record, open.coverage, open.coverage_count, "coverage", coverage_fields),
	END,
};

#define SAMPLE(kind, member, key) FIELD(kind, struct watch_sample, member, key)

static const struct field cpu_fields[] = {
	SAMPLE(REAL, iowait_pct, "iowait_pct"),
	SAMPLE(REAL, busy_pct, "busy_pct"),
	SAMPLE(REAL, iowait_cpus, "iowait_cpus"),
	END,
};

static const struct field pressure_fields[] = {
	FIELD(REAL, struct watch_psi, some_pct, "some_pct"),
	FIELD(REAL, struct watch_psi, full_pct, "full_pct"),
	END,
};
_Static_assert(offsetof(struct watch_psi, present) == 0, "FIELD_OPTIONAL looks there");

static const struct field psi_fields[] = {
	OBJECT(OPTIONAL, struct watch_sample, psi_io, "io", pressure_fields),
	OBJECT(OPTIONAL, struct watch_sample, psi_memory, "memory", pressure_fields),
	OBJECT(OPTIONAL, struct watch_sample, psi_cpu, "cpu", pressure_fields),
	END,
};

static const struct field threads_fields[] = {
	FIELD(U32, struct watch_threads, scanned, "scanned"),
	FIELD(U32, struct watch_threads, blocked, "blocked"),
	FIELD(PID, struct watch_threads, blocked_pid, "blocked_pid"),
	FIELD(PID, struct watch_threads, blocked_tid, "blocked_tid"),
	FIELD(BOOL, struct watch_threads, complete, "complete"),
	END,
};

#define FILESYSTEM(kind, member, key) FIELD(kind, struct watch_filesystem, member, key)
_Static_assert(offsetof(struct watch_filesystem, minor) ==
		offsetof(struct watch_filesystem, major) + 4, "FIELD_DEV looks there");

static const struct field filesystem_fields[] = {
	FILESYSTEM(TEXT, mount, "mount"),
	FILESYSTEM(DEV, major, "dev"),
	FILESYSTEM(REAL, used_pct, "used_pct"),
	FILESYSTEM(U64, free_bytes, "free_bytes"),
	FILESYSTEM(REAL, inodes_pct, "inodes_used_pct"),
	END,
};

#define CGROUP(kind, member, key) FIELD(kind, struct watch_cgroup, member, key)

static const struct field cgroup_fields[] = {
	CGROUP(TEXT, path, "path"),
	CGROUP(U64, limit_bytes, "limit_bytes"),
	CGROUP(U64, current_bytes, "current_bytes"),
	CGROUP(U64, held_bytes, "held_bytes"),
	CGROUP(REAL, used_pct, "used_pct"),
	CGROUP(REAL, growth_pct, "growth_pct_per_min"),
	END,
};

static const struct field health_fields[] = {
	FIELD(REAL, struct watch_health, failing_s, "failing_s"),
	FIELD(REAL, struct watch_health, answer_ms, "answer_ms"),
	END,
};
_Static_assert(offsetof(struct watch_health, present) == 0, "FIELD_OPTIONAL looks there");

static const struct field sample_sql_fields[] = {
	FIELD(FD, struct watch_sql, active, "active"),
	FIELD(REAL, struct watch_sql, longest_s, "longest_s"),
	FIELD(FD, struct watch_sql, in_state, "in_state"),
	FIELD(REAL, struct watch_sql, unanswered_s, "unanswered_s"),
	END,
};
_Static_assert(offsetof(struct watch_sql, present) == 0, "FIELD_OPTIONAL looks there");

#define DISK(kind, member, key) FIELD(kind, struct watch_disk, member, key)
_Static_assert(offsetof(struct watch_disk, minor) == offsetof(struct watch_disk, major) + 4 &&
		offsetof(struct record_operation, dev_minor) ==
			offsetof(struct record_operation, dev_major) + 4,
	"FIELD_DEV looks there");

static const struct field disk_fields[] = {
	DISK(DEV, major, "dev"),
	DISK(TEXT, name, "dev_name"),
	DISK(REAL, util_pct, "util_pct"),
	DISK(U64, inflight, "inflight"),
	DISK(REAL, read_await_ms, "read_await_ms"),
	DISK(REAL, write_await_ms, "write_await_ms"),
	DISK(REAL, queue, "queue"),
	DISK(U64, read_bytes, "read_bytes"),
	DISK(U64, write_bytes, "write_bytes"),
	DISK(U64, no_completion_ns, "no_completion_ns"),
	END,
};

static const struct field sample_fields[] = {
	FIELD(BOOL, struct record, sample.before_trigger, "before_trigger"),
	FIELD(U64, struct record, sample.sample.interval_ns, "interval_ns"),
	OBJECT(OBJECT, struct record, sample.sample, "cpu", cpu_fields),
	OBJECT(OBJECT, struct record, sample.sample, "psi", psi_fields),
	FIELD(U64, struct record, sample.sample.procs_running, "procs_running"),
	FIELD(U64, struct record, sample.sample.procs_blocked, "procs_blocked"),
	OBJECT(OBJECT, struct record, sample.sample.threads, "threads", threads_fields),
	ARRAY(struct record, sample.sample.disks, sample.sample.disks_count, "devices",
		disk_fields),
	FIELD(U32, struct record, sample.sample.disks_left_out, "devices_left_out"),
	ARRAY(struct record, sample.limits.filesystems, sample.limits.filesystems_count,
		"file_systems", filesystem_fields),
	ARRAY(struct record, sample.limits.cgroups, sample.limits.cgroups_count, "cgroups",
		cgroup_fields),
	OBJECT(OPTIONAL, struct record, sample.sample.health, "health", health_fields),
	OBJECT(OPTIONAL, struct record, sample.sample.sql, "sql", sample_sql_fields),
	END,
};

#define OPERATION(kind, member, key) FIELD(kind, struct record, operation.member, key)

/* What `stall` and `stuck` share, before and after the length. */
#define OPERATION_WHAT                                                                             \
	OPERATION(TEXT, op, "op"), OPERATION(PID, pid, "pid"), OPERATION(PID, tid, "tid"),         \
		OPERATION(TEXT, comm, "comm"), OPERATION(TEXT, exe, "exe"),                        \
		OPERATION(TEXT, user, "user"), OPERATION(TEXT, unit, "unit"),                      \
		OPERATION(U64_KNOWN, cgroup_id, "cgroup"),                                         \
		OPERATION(U64_KNOWN, connection_id, "connection_id"), OPERATION(FD, fd, "fd"),     \
		OPERATION(TEXT, path, "path"), OPERATION(BOOL, path_truncated, "path_truncated"),  \
		OPERATION(U32_KNOWN, mount_ns, "mount_ns"), OPERATION(DEV, dev_major, "dev"),      \
		OPERATION(TEXT, dev_name, "dev_name"), OPERATION(U64_KNOWN, inode, "inode"),       \
		OPERATION(OFFSET, offset, "offset"), OPERATION(U64_KNOWN, bytes, "bytes"),         \
		OPERATION(FD, syscall, "syscall"), OPERATION(BOOL, path_given, "path_given")
#define OPERATION_HOW                                                                              \
	OPERATION(SINCE, before_arm, "since"), OPERATION(U32_KNOWN, sleeps, "sleeps"),             \
		OPERATION(U64_KNOWN, slept_ns, "slept_ns"), OPERATION(BOOL, iowait, "iowait"),     \
		OPERATION(TEXT, waits_for, "waits_for"),                                           \
	OPERATION(TEXT, probe, "probe"), OPERATION(TEXT, backend, "backend"),                      \
		OPERATION(LINES, kstack, "kstack"),                                                \
		OPERATION(BOOL, kstack_while_blocked, "kstack_while_blocked")

static const struct field stall_fields[] = {
	OPERATION_WHAT,
	OPERATION(I64_KNOWN, ret, "ret"),
	OPERATION(U64_KNOWN, start_mono_ns, "start_mono_ns"),
	OPERATION(U64, dur_ns, "dur_ns"),
	OPERATION_HOW,
	END,
};

static const struct field stuck_fields[] = {
	OPERATION_WHAT,
	OPERATION(U64_KNOWN, start_mono_ns, "start_mono_ns"),
	OPERATION(U64, dur_ns, "age_ns"),
	OPERATION(CHAR, state, "state"),
	OPERATION(TEXT, wchan, "wchan"),
	OPERATION_HOW,
	END,
};

static const struct field latency_fields[] = {
	FIELD(MS, struct record_latency, p50_ns, "p50"),
	FIELD(MS, struct record_latency, p99_ns, "p99"),
	FIELD(MS, struct record_latency, max_ns, "max"),
	END,
};

static const struct field oldest_fields[] = {
	FIELD(U64_KNOWN, struct record, device.oldest_age_ns, "age_ns"),
	FIELD(PID, struct record, device.oldest_pid, "pid"),
	FIELD(PID, struct record, device.oldest_tid, "tid"),
	FIELD(TEXT, struct record, device.oldest_comm, "comm"),
	FIELD(TEXT, struct record, device.oldest_path, "path"),
	END,
};

#define DEVICE(kind, member, key) FIELD(kind, struct record, device.member, key)
_Static_assert(offsetof(struct record_device, dev_minor) ==
			offsetof(struct record_device, dev_major) + 4 &&
		offsetof(struct record_io_by, dev_minor) ==
			offsetof(struct record_io_by, dev_major) + 4 &&
		offsetof(struct record_io_by, fs_minor) ==
			offsetof(struct record_io_by, fs_major) + 4 &&
		offsetof(struct record_verdict, dev_minor) ==
			offsetof(struct record_verdict, dev_major) + 4,
	"FIELD_DEV looks there");

static const struct field device_fields[] = {
	DEVICE(DEV, dev_major, "dev"),
	DEVICE(TEXT, dev_name, "dev_name"),
	DEVICE(BOOL, final, "final"),
	DEVICE(U64, requests, "requests"),
	DEVICE(U64, read_requests, "read_requests"),
	DEVICE(U64, write_requests, "write_requests"),
	DEVICE(U64, read_bytes, "read_bytes"),
	DEVICE(U64, write_bytes, "write_bytes"),
	OBJECT(OBJECT, struct record, device.queue, "queue_ms", latency_fields),
	OBJECT(OBJECT, struct record, device.device, "device_ms", latency_fields),
	COUNTS(struct record, device.queue_histogram, "queue_histogram"),
	COUNTS(struct record, device.device_histogram, "device_histogram"),
	DEVICE(U64, in_flight, "in_flight"),
	DEVICE(U64, no_completion_ns, "no_completion_ns"),
	{ .key = "oldest", .kind = FIELD_OBJECT, .members = oldest_fields },
	END,
};

#define IO_BY(kind, member, key) FIELD(kind, struct record, io_by.member, key)

static const struct field io_by_fields[] = {
	IO_BY(TEXT, by, "by"),
	IO_BY(DEV, dev_major, "dev"),
	IO_BY(TEXT, dev_name, "dev_name"),
	IO_BY(PID, pid, "pid"),
	IO_BY(PID, tid, "tid"),
	IO_BY(TEXT, comm, "comm"),
	IO_BY(U64_KNOWN, cgroup_id, "cgroup"),
	IO_BY(TEXT, unit, "unit"),
	IO_BY(TEXT, path, "path"),
	IO_BY(BOOL, path_truncated, "path_truncated"),
	IO_BY(DEV, fs_major, "fs_dev"),
	IO_BY(U64_KNOWN, inode, "inode"),
	IO_BY(U64, requests, "requests"),
	IO_BY(U64, read_bytes, "read_bytes"),
	IO_BY(U64, write_bytes, "write_bytes"),
	IO_BY(U64, bytes, "bytes"),
	IO_BY(REAL, share_pct, "share_pct"),
	IO_BY(MS, device_ns, "device_ms"),
	IO_BY(BOOL, inferred, "inferred"),
	END,
};

static const struct field kernel_fields[] = {
	FIELD(TEXT, struct record, kernel.level, "level"),
	FIELD(U64, struct record, kernel.kernel_ns, "kernel_ns"),
	FIELD(TEXT, struct record, kernel.text, "text"),
	END,
};

#define SQL_LINE(kind, member, key) FIELD(kind, struct record, sql.member, key)

static const struct field sql_line_fields[] = {
	SQL_LINE(TEXT, target, "target"),
	SQL_LINE(TEXT, server, "server"),
	SQL_LINE(TEXT, moment, "moment"),
	SQL_LINE(OFFSET, active, "active"),
	SQL_LINE(OFFSET, idle, "idle"),
	SQL_LINE(OFFSET, left_out, "left_out"),
	SQL_LINE(U64_KNOWN, server_ns, "server_ns"),
	SQL_LINE(U64_KNOWN, answer_ns, "answer_ns"),
	SQL_LINE(TEXT, version, "version"),
	SQL_LINE(TEXT, account, "account"),
	SQL_LINE(TEXT, error, "error"),
	SQL_LINE(TEXT, missing, "missing"),
	SQL_LINE(U64_KNOWN, unanswered_ns, "unanswered_ns"),
	SQL_LINE(U64_KNOWN, connection_id, "connection_id"),
	SQL_LINE(U64_KNOWN, query_id, "query_id"),
	SQL_LINE(TEXT, user, "user"),
	SQL_LINE(TEXT, database, "database"),
	SQL_LINE(TEXT, command, "command"),
	SQL_LINE(TEXT, state, "state"),
	SQL_LINE(U64_KNOWN, elapsed_ns, "elapsed_ns"),
	SQL_LINE(TEXT, text, "text"),
	SQL_LINE(U64_KNOWN, text_bytes, "text_bytes"),
	SQL_LINE(PID, pid, "pid"),
	SQL_LINE(PID, tid, "tid"),
	SQL_LINE(TEXT, tid_reason, "tid_reason"),
	COUNTS(struct record, sql.candidates, "candidates"),
	SQL_LINE(PID, leader_pid, "leader_pid"),
	SQL_LINE(BOOL, background, "background"),
	END,
};

#define PART(kind, member, key) FIELD(kind, struct record_verdict_part, member, key)

static const struct field part_fields[] = {
	PART(TEXT, what, "what"),
	PART(TEXT, basis, "basis"),
	PART(TEXT, text, "text"),
	PART(PID, pid, "pid"),
	PART(PID, tid, "tid"),
	PART(TEXT, comm, "comm"),
	PART(TEXT, path, "path"),
	PART(U32_KNOWN, threads, "threads"),
	PART(U64_KNOWN, longest_ns, "longest_ns"),
	PART(U64_KNOWN, requests, "requests"),
	PART(U64_KNOWN, bytes, "bytes"),
	PART(REAL, share_pct, "share_pct"),
	PART(REAL, util_pct, "util_pct"),
	PART(REAL, await_ms, "await_ms"),
	PART(REAL, queue, "queue"),
	END,
};

#define VERDICT(kind, member, key) FIELD(kind, struct record, verdict.member, key)

static const struct field verdict_fields[] = {
	VERDICT(TEXT, class_name, "class"),
	VERDICT(TEXT, basis, "basis"),
	VERDICT(TEXT, sentence, "sentence"),
	VERDICT(TEXT, message, "message"),
	VERDICT(DEV, dev_major, "dev"),
	VERDICT(TEXT, dev_name, "dev_name"),
	VERDICT(TEXT, waits_for, "waits_for"),
	ARRAY(struct record, verdict.parts, verdict.parts_count, "parts", part_fields),
	END,
};

static const struct field lost_fields[] = {
#define LOST(name, help) FIELD(U64, struct record, close.lost[RECORD_LOST_##name], #name),
#include "record/lost.def"
#undef LOST
	END,
};

static const struct field cost_fields[] = {
	FIELD(MS, struct record, close.cpu_ns, "cpu_ms"),
	FIELD(MS, struct record, close.armed_ns, "armed_ms"),
	FIELD(MS, struct record, close.attach_ns, "attach_ms"),
	FIELD(MS, struct record, close.detach_ns, "detach_ms"),
	FIELD(MS, struct record, close.turn_ns, "turn_ms"),
	FIELD(U64, struct record, close.rss_bytes, "rss_bytes"),
	END,
};

static const struct field close_fields[] = {
	FIELD(TEXT, struct record, close.reason, "reason"),
	FIELD(U64, struct record, close.duration_ns, "duration_ns"),
	FIELD(U64, struct record, close.stalls, "stalls"),
	FIELD(U64, struct record, close.stuck_lines, "stuck_lines"),
	FIELD(U64, struct record, close.stuck_threads, "stuck_threads"),
	FIELD(U64, struct record, close.longest_ns, "longest_ns"),
	FIELD(U64, struct record, close.samples, "samples"),
	{ .key = "lost", .kind = FIELD_OBJECT, .members = lost_fields },
	{ .key = "cost", .kind = FIELD_OBJECT, .members = cost_fields },
	END,
};

const struct field *const record_fields[RECORD_TYPE_COUNT] = {
	[RECORD_OPEN] = open_fields,
	[RECORD_SAMPLE] = sample_fields,
	[RECORD_STALL] = stall_fields,
	[RECORD_STUCK] = stuck_fields,
	[RECORD_DEVICE] = device_fields,
	[RECORD_IO_BY] = io_by_fields,
	[RECORD_KERNEL] = kernel_fields,
	[RECORD_SQL] = sql_line_fields,
	[RECORD_VERDICT] = verdict_fields,
	[RECORD_CLOSE] = close_fields,
};

const char *record_type_name(enum record_type type)
{
	static const char *const names[RECORD_TYPE_COUNT] = {
		[RECORD_OPEN] = "open",
		[RECORD_SAMPLE] = "sample",
		[RECORD_STALL] = "stall",
		[RECORD_STUCK] = "stuck",
		[RECORD_DEVICE] = "device",
		[RECORD_IO_BY] = "io_by",
		[RECORD_KERNEL] = "kernel",
		[RECORD_SQL] = "sql",
		[RECORD_VERDICT] = "verdict",
		[RECORD_CLOSE] = "close",
	};

	return names[type];
}

const char *record_lost_name(enum record_lost lost)
{
	return lost_fields[lost].key;
}

uint64_t record_line_real_ns(const struct record *r)
{
	if (r->type == RECORD_SAMPLE && r->sample.sample.real_ns)
		return r->sample.sample.real_ns;
	return r->real_ns;
}

uint64_t record_line_mono_ns(const struct record *r)
{
	if (r->type == RECORD_SAMPLE && r->sample.sample.mono_ns)
		return r->sample.sample.mono_ns;
	return r->mono_ns;
}
