/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `sync`: the user side of bpf/sync.bpf.c. */
#include <sys/syscall.h>

#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "util/cleanup.h"

/* After iostall/event.h, whose types it uses. */
#include "sync.skel.h"

#if defined(__x86_64__)
#define SYSCALL_FUNCTION(name) "__x64_sys_" #name
#elif defined(__aarch64__)
#define SYSCALL_FUNCTION(name) "__arm64_sys_" #name
#endif

/* The returns are attached before the entries, which only note a file or end what is over. */
static const struct probe_program fentry_programs[] = {
	{ "sys_fsync_fexit", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_fexit", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fdatasync) },
	{ "vfs_fsync_range_fexit", PROBE_ATTACH_BTF, "vfs_fsync_range" },
	{ "vfs_fsync_range_fentry", PROBE_ATTACH_BTF, "vfs_fsync_range" },
	{ "sys_fsync_fentry", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_fentry", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fdatasync) },
	{ "sys_msync_fentry", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(msync) },
};

static const struct probe_program kprobe_programs[] = {
	{ "sys_fsync_kretprobe", PROBE_ATTACH_KRETPROBE, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_kretprobe", PROBE_ATTACH_KRETPROBE, SYSCALL_FUNCTION(fdatasync) },
	{ "vfs_fsync_range_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_fsync_range" },
	{ "vfs_fsync_range_kprobe", PROBE_ATTACH_KPROBE, "vfs_fsync_range" },
	{ "sys_fsync_kprobe", PROBE_ATTACH_KPROBE, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_kprobe", PROBE_ATTACH_KPROBE, SYSCALL_FUNCTION(fdatasync) },
	{ "sys_msync_kprobe", PROBE_ATTACH_KPROBE, SYSCALL_FUNCTION(msync) },
};

static const struct probe_program tracepoint_programs[] = {
	{ "sys_exit_fsync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_exit_fsync" },
	{ "sys_exit_fdatasync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_exit_fdatasync" },
	{ "sys_exit_msync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_exit_msync" },
};

static const int reported_syscalls[] = { SYS_fsync, SYS_fdatasync, SYS_msync, -1 };

/* The kernel of arm64 has one function for programs of both kinds, that of x86 has two. */
#if defined(__aarch64__)
static const int reported_syscalls_32[] = { SYS_fsync, SYS_fdatasync, -1 };
#else
static const int reported_syscalls_32[] = { -1 };
#endif

/*
 * Where the kernel skips the runs of a return and of the next entry, two calls in a row on one file
 * look like one to `wait`.
 */
static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, RECORD_BACKEND_fentry, fentry_programs,
		ARRAY_SIZE(fentry_programs), true, reported_syscalls, reported_syscalls_32 },
	{ CONFIG_BACKEND_KPROBE, RECORD_BACKEND_kprobe, kprobe_programs,
		ARRAY_SIZE(kprobe_programs), false, reported_syscalls, reported_syscalls_32 },
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_tracepoint, tracepoint_programs,
		ARRAY_SIZE(tracepoint_programs), true, reported_syscalls, NULL },
};

static int sync_configure(struct sync_bpf *skeleton, const struct probe_settings *settings,
	const struct probe_backend *backend)
{
	(void)settings;
	(void)backend;
	skeleton->rodata->cfg_nr_fsync = SYS_fsync;
	skeleton->rodata->cfg_nr_fdatasync = SYS_fdatasync;
	skeleton->rodata->cfg_nr_msync = SYS_msync;
	return 0;
}

PROBE_OPEN(sync, sync_configure)

static const enum record_io_path paths[] = { RECORD_IO_PATH_fsync, RECORD_IO_PATH_NONE };

const struct probe_ops probe_sync_ops = {
	.name = "sync",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.needs_wait = true,
	.elf = sync_elf,
	.open = sync_open,
	.destroy = sync_destroy,
};
