/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `sync`: the user side of bpf/sync.bpf.c. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probes/list.h"
#include "sync.skel.h"
#include "util/cleanup.h"

#if defined(__x86_64__)
#define SYSCALL_FUNCTION(name) "__x64_sys_" #name
#elif defined(__aarch64__)
#define SYSCALL_FUNCTION(name) "__arm64_sys_" #name
#endif

#define COMMON_PROGRAMS                                                                            \
	{ "sync_thread_exit_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "sched_process_exit" },          \
	{ "sync_inflight_resolve", PROBE_ATTACH_NONE, NULL }

static const struct probe_program fentry_programs[] = {
	{ "sys_fsync_fexit", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_fexit", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fdatasync) },
	{ "vfs_fsync_range_fexit", PROBE_ATTACH_BTF, "vfs_fsync_range" },
	{ "sys_fsync_fentry", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_fentry", PROBE_ATTACH_BTF, SYSCALL_FUNCTION(fdatasync) },
	{ "vfs_fsync_range_fentry", PROBE_ATTACH_BTF, "vfs_fsync_range" },
	COMMON_PROGRAMS,
};

static const struct probe_program kprobe_programs[] = {
	{ "sys_fsync_kretprobe", PROBE_ATTACH_KRETPROBE, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_kretprobe", PROBE_ATTACH_KRETPROBE, SYSCALL_FUNCTION(fdatasync) },
	{ "vfs_fsync_range_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_fsync_range" },
	{ "sys_fsync_kprobe", PROBE_ATTACH_KPROBE, SYSCALL_FUNCTION(fsync) },
	{ "sys_fdatasync_kprobe", PROBE_ATTACH_KPROBE, SYSCALL_FUNCTION(fdatasync) },
	{ "vfs_fsync_range_kprobe", PROBE_ATTACH_KPROBE, "vfs_fsync_range" },
	COMMON_PROGRAMS,
};

static const struct probe_program tracepoint_programs[] = {
	{ "sys_exit_fsync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_exit_fsync" },
	{ "sys_exit_fdatasync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_exit_fdatasync" },
	{ "sys_exit_msync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_exit_msync" },
	{ "sys_enter_fsync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_enter_fsync" },
	{ "sys_enter_fdatasync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_enter_fdatasync" },
	{ "sys_enter_msync_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_enter_msync" },
	COMMON_PROGRAMS,
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, "fentry", fentry_programs, ARRAY_SIZE(fentry_programs), true },
	{ CONFIG_BACKEND_KPROBE, "kprobe", kprobe_programs, ARRAY_SIZE(kprobe_programs), false },
	{ CONFIG_BACKEND_TRACEPOINT, "tracepoint", tracepoint_programs,
		ARRAY_SIZE(tracepoint_programs), true },
};

static int sync_open(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_skeleton, struct bpf_object **ret_object)
{
	struct sync_bpf *skeleton = sync_bpf__open();

	(void)backend;
	if (!skeleton)
		return -errno;
	skeleton->rodata->cfg_min_stall_ns = settings->min_stall_ns;
	skeleton->rodata->cfg_filter_pid = settings->filter_pid;
	skeleton->rodata->cfg_filter_dev = settings->filter_dev;
	skeleton->rodata->cfg_filter_cgroups = settings->filter_cgroups_count;
	skeleton->rodata->cfg_probe = CONFIG_PROBE_sync;
	skeleton->rodata->cfg_self_pid = (uint32_t)getpid();
	skeleton->rodata->cfg_inflight_mask = settings->inflight_mask;
	skeleton->rodata->cfg_nr_fsync = SYS_fsync;
	skeleton->rodata->cfg_nr_fdatasync = SYS_fdatasync;
	skeleton->rodata->cfg_nr_msync = SYS_msync;
	*ret_skeleton = skeleton;
	*ret_object = skeleton->obj;
	return 0;
}

static void sync_destroy(void *skeleton)
{
	sync_bpf__destroy(skeleton);
}

static const char *const paths[] = { "fsync", NULL };

const struct probe_ops probe_sync_ops = {
	.name = "sync",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.resolve_program = "sync_inflight_resolve",
	.open = sync_open,
	.destroy = sync_destroy,
};
