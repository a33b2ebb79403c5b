/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `vfs`: the user side of bpf/vfs.bpf.c. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probes/list.h"
#include "util/cleanup.h"
#include "vfs.skel.h"

/* In every backend: the clearing up behind ended threads, and the program that describes one in flight. */
#define COMMON_PROGRAMS                                                                            \
	{ "vfs_thread_exit_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "sched_process_exit" },           \
	{ "vfs_inflight_resolve", PROBE_ATTACH_NONE, NULL }

/* Returns are attached before entries, so that no entry is noted whose return is not seen. */
static const struct probe_program fentry_programs[] = {
	{ "vfs_read_fexit", PROBE_ATTACH_BTF, "vfs_read" },
	{ "vfs_write_fexit", PROBE_ATTACH_BTF, "vfs_write" },
	{ "vfs_readv_fexit", PROBE_ATTACH_BTF, "vfs_readv" },
	{ "vfs_writev_fexit", PROBE_ATTACH_BTF, "vfs_writev" },
	{ "vfs_read_fentry", PROBE_ATTACH_BTF, "vfs_read" },
	{ "vfs_write_fentry", PROBE_ATTACH_BTF, "vfs_write" },
	{ "vfs_readv_fentry", PROBE_ATTACH_BTF, "vfs_readv" },
	{ "vfs_writev_fentry", PROBE_ATTACH_BTF, "vfs_writev" },
	COMMON_PROGRAMS,
};

static const struct probe_program kprobe_programs[] = {
	{ "vfs_read_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_read" },
	{ "vfs_write_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_write" },
	{ "vfs_readv_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_readv" },
	{ "vfs_writev_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_writev" },
	{ "vfs_read_kprobe", PROBE_ATTACH_KPROBE, "vfs_read" },
	{ "vfs_write_kprobe", PROBE_ATTACH_KPROBE, "vfs_write" },
	{ "vfs_readv_kprobe", PROBE_ATTACH_KPROBE, "vfs_readv" },
	{ "vfs_writev_kprobe", PROBE_ATTACH_KPROBE, "vfs_writev" },
	COMMON_PROGRAMS,
};

#define SYSCALL_PROGRAM(side, call)                                                                \
	{ "sys_" side "_" call "_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_" side "_" call }
#define SYSCALL_PROGRAMS(side)                                                                     \
	SYSCALL_PROGRAM(side, "read"), SYSCALL_PROGRAM(side, "write"),                             \
		SYSCALL_PROGRAM(side, "pread64"), SYSCALL_PROGRAM(side, "pwrite64"),               \
		SYSCALL_PROGRAM(side, "readv"), SYSCALL_PROGRAM(side, "writev"),                   \
		SYSCALL_PROGRAM(side, "preadv"), SYSCALL_PROGRAM(side, "pwritev"),                 \
		SYSCALL_PROGRAM(side, "preadv2"), SYSCALL_PROGRAM(side, "pwritev2")

static const struct probe_program tracepoint_programs[] = {
	SYSCALL_PROGRAMS("exit"),
	SYSCALL_PROGRAMS("enter"),
	COMMON_PROGRAMS,
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, "fentry", fentry_programs, ARRAY_SIZE(fentry_programs), true },
	{ CONFIG_BACKEND_KPROBE, "kprobe", kprobe_programs, ARRAY_SIZE(kprobe_programs), false },
	{ CONFIG_BACKEND_TRACEPOINT, "tracepoint", tracepoint_programs,
		ARRAY_SIZE(tracepoint_programs), true },
};

static int vfs_open(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_skeleton, struct bpf_object **ret_object)
{
	struct vfs_bpf *skeleton = vfs_bpf__open();

	(void)backend;
	if (!skeleton)
		return -errno;
	skeleton->rodata->cfg_min_stall_ns = settings->min_stall_ns;
	skeleton->rodata->cfg_filter_pid = settings->filter_pid;
	skeleton->rodata->cfg_filter_dev = settings->filter_dev;
	skeleton->rodata->cfg_filter_cgroups = settings->filter_cgroups_count;
	skeleton->rodata->cfg_probe = CONFIG_PROBE_vfs;
	skeleton->rodata->cfg_self_pid = (uint32_t)getpid();
	skeleton->rodata->cfg_inflight_mask = settings->inflight_mask;
	*ret_skeleton = skeleton;
	*ret_object = skeleton->obj;
	return 0;
}

static void vfs_destroy(void *skeleton)
{
	vfs_bpf__destroy(skeleton);
}

/* Static functions of the kernel, which a compiler may have inlined. */
static const char *vfs_optional_path(const char *program)
{
	return strstr(program, "readv") || strstr(program, "writev") ? "vectored" : NULL;
}

static const char *const paths[] = { "read", "write", "pread64", "pwrite64", "vectored", NULL };

const struct probe_ops probe_vfs_ops = {
	.name = "vfs",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.resolve_program = "vfs_inflight_resolve",
	.optional_path = vfs_optional_path,
	.open = vfs_open,
	.destroy = vfs_destroy,
};
