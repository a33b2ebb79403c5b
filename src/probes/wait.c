/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `wait`: the user side of bpf/wait.bpf.c. */
#include <string.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "probes/syscalls_32.h"
#include "util/cleanup.h"

/* After iostall/event.h, whose types it uses. */
#include "wait.skel.h"

static const struct probe_program programs[] = {
	{ "wait_sched_switch_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "sched_switch" },
	{ "wait_exec_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "sched_process_exec" },
	{ "refusals_posix_lock_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "posix_lock_inode" },
	{ "refusals_flock_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "flock_lock_inode" },
	/* The end first: a wait that ends between the two would stay for ever. */
	{ "contention_end_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "contention_end" },
	{ "contention_begin_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "contention_begin" },
	{ "wait_task_scan", PROBE_ATTACH_NONE, NULL },
	{ "wait_resolve", PROBE_ATTACH_NONE, NULL },
	{ "wait_lock", PROBE_ATTACH_NONE, NULL },
	{ "wait_lock_stack", PROBE_ATTACH_NONE, NULL },
	{ "wait_socket_peer", PROBE_ATTACH_NONE, NULL },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_raw_tp, programs, ARRAY_SIZE(programs), false,
		NULL, NULL },
};

static const struct {
	int nr;
	struct event_syscall is;
} syscalls[] = {
#define SYSCALL(name, op, fd, path, offset, bytes)                                                 \
	{ SYS_##name, { EVENT_OP_##op, fd, path, offset, bytes, -1, 0, 0, -1 } },
#define COPY(name, from, to, bytes)                                                                \
	{ SYS_##name, { EVENT_OP_COPY, from, -1, -1, bytes, to, 0, 0, -1 } },
#include "probes/syscalls.def"
#undef SYSCALL
#undef COPY
};

static const int own_numbers[] = {
#define SYSCALL(name, ...) SYS_##name,
#define COPY(name, ...) SYS_##name,
#include "probes/syscalls.def"
#undef SYSCALL
#undef COPY
};

static void mark_reported(struct wait_bpf *skeleton, const struct probe_backend *backend)
{
	for (const int *nr = backend->reported_syscalls; nr && *nr >= 0; nr++)
		skeleton->rodata->cfg_syscalls[*nr].reported = 1;
	for (const int *nr = backend->reported_syscalls_32; nr && *nr >= 0; nr++)
		for (unsigned int i = 0; i < EVENT_SYSCALLS_MAX; i++)
			if (skeleton->rodata->cfg_syscalls_32[i].own_nr == *nr)
				skeleton->rodata->cfg_syscalls_32[i].reported = 1;
}

/*
 * These wait for devices, sockets and pipes more often than for files: looking at the stack each
 * time would cost too much.
 */
static bool waits_for_anything(int nr, const struct event_syscall *is)
{
	return nr == SYS_ioctl || (is->op == EVENT_OP_COPY && nr != SYS_copy_file_range);
}

static bool sleeps_on_file(int nr, const struct event_syscall *is)
{
	/* An msync() has neither descriptor nor path, and a close() has none any more. */
	return !waits_for_anything(nr, is) &&
		(is->fd >= 0 || is->path >= 0 || is->op == EVENT_OP_FSYNC || nr == SYS_close);
}

static void fill_sleeps_on_file(struct wait_bpf *skeleton)
{
	const struct event_syscall *calls = (const void *)skeleton->rodata->cfg_syscalls;
	const struct event_syscall *calls_32 = (const void *)skeleton->rodata->cfg_syscalls_32;

	for (unsigned int i = 0; i < EVENT_SYSCALLS_MAX; i++) {
		skeleton->rodata->cfg_sleeps_on_file[i] = sleeps_on_file((int)i, &calls[i]);
		skeleton->rodata->cfg_sleeps_on_file[EVENT_SYSCALLS_MAX + i] =
			sleeps_on_file(calls_32[i].own_nr, &calls_32[i]);
	}
}

static int wait_configure(struct wait_bpf *skeleton, const struct probe_settings *settings,
	const struct probe_backend *backend)
{
	int args = kernel_types_count_args(settings->types, "sched_switch");

	(void)backend;
	if (args < 0)
		return args;
	skeleton->rodata->cfg_switch_tells_state = args > 3;
	skeleton->rodata->cfg_paired =
		settings->pairing == CONFIG_PAIRING_ENTRY && settings->loaded[CONFIG_PROBE_vfs];
	skeleton->rodata->cfg_nr_io_submit = SYS_io_submit;
	for (unsigned int i = 0; i < EVENT_SYSCALLS_MAX; i++)
		skeleton->rodata->cfg_syscalls[i] = skeleton->rodata->cfg_syscalls_32[i] =
			EVENT_SYSCALL_OTHER;
	for (unsigned int i = 0; i < ARRAY_SIZE(syscalls); i++)
		if (syscalls[i].nr < EVENT_SYSCALLS_MAX)
			skeleton->rodata->cfg_syscalls[syscalls[i].nr] = syscalls[i].is;
	syscalls_32_fill(own_numbers, skeleton->rodata->cfg_syscalls_32);
	fill_sleeps_on_file(skeleton);
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (settings->loaded[i])
			mark_reported(skeleton, settings->loaded[i]);
	return 0;
}

PROBE_OPEN(wait, wait_configure)

static void clear(const struct bpf_map *map)
{
	_Alignas(8) char key[sizeof(struct event_refusal_key)];

	while (map && bpf_map_get_next_key(bpf_map__fd(map), NULL, key) == 0)
		if (bpf_map_delete_elem(bpf_map__fd(map), key) < 0)
			return;
}

/* The map of sleeps is empty by now, so no thread has a mark; and none waits for a lock. */
static void wait_reset(struct probe *probe)
{
	struct wait_bpf *skeleton = probe->skeleton;
	/* Constant data would stay in locked memory for good. */
	const struct event_sleep_marks none = { 0 };
	const struct bpf_map *marks = probe_map(probe, "sleep_marks");
	const uint32_t zero = 0;

	if (marks)
		bpf_map_update_elem(bpf_map__fd(marks), &zero, &none, BPF_ANY);
	clear(probe_map(probe, "refusals"));
	/* A wait that begins meanwhile is counted and not kept, rather than the reverse. */
	if (skeleton)
		memset(skeleton->bss->slept_for, 0, sizeof(skeleton->bss->slept_for));
	clear(probe_map(probe, "contended"));
}

static const struct probe_part parts[] = {
	{ "refusals_posix_lock", RECORD_IO_PATH_NONE,
		"who tries again and again for a lock of fcntl(2), as SQLite does, is not seen",
		NULL },
	{ "refusals_flock", RECORD_IO_PATH_NONE,
		"who tries again and again for a lock of flock(2) is not seen", NULL },
	{ "contention_", RECORD_IO_PATH_NONE,
		"of locks of the kernel only those of memory maps and inodes are known", NULL },
	{ "wait_lock_stack", RECORD_IO_PATH_NONE,
		"where a running holder of a lock of the kernel is, is not known", NULL },
	/* That of a real-time kernel has no owner. */
	{ "wait_lock", RECORD_IO_PATH_NONE, "who holds a lock of the kernel is not known",
		"rw_semaphore.owner" },
	/* The kernel's BTF has none where it is a module's. */
	{ "wait_socket_peer", RECORD_IO_PATH_NONE,
		"who should read from a full unix socket is not known", "unix_sock.peer" },
};

static const enum record_io_path paths[] = { RECORD_IO_PATH_read, RECORD_IO_PATH_write,
	RECORD_IO_PATH_pread64, RECORD_IO_PATH_pwrite64, RECORD_IO_PATH_vectored,
	RECORD_IO_PATH_fsync, RECORD_IO_PATH_sync_range, RECORD_IO_PATH_copy,
	RECORD_IO_PATH_metadata, RECORD_IO_PATH_fault, RECORD_IO_PATH_io_submit,
	RECORD_IO_PATH_journal, RECORD_IO_PATH_NONE };

const struct probe_ops probe_wait_ops = {
	.name = "wait",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.inflight_map = "sleeps",
	.resolve_program = "wait_resolve",
	.task_scan_program = "wait_task_scan",
	.lock_program = "wait_lock",
	.lock_stack_program = "wait_lock_stack",
	.socket_program = "wait_socket_peer",
	.refusals_map = "refusals",
	.parts = parts,
	.parts_count = ARRAY_SIZE(parts),
	.elf = wait_elf,
	.open = wait_open,
	.destroy = wait_destroy,
	.reset = wait_reset,
};
