/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `vfs`: the user side of bpf/vfs.bpf.c. */
#include <string.h>

#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "util/cleanup.h"

/* After iostall/event.h, whose types it uses. */
#include "vfs.skel.h"

static const struct probe_program fentry_programs[] = {
	{ "vfs_read_fexit", PROBE_ATTACH_BTF, "vfs_read" },
	{ "vfs_write_fexit", PROBE_ATTACH_BTF, "vfs_write" },
	{ "vfs_readv_fexit", PROBE_ATTACH_BTF, "vfs_readv" },
	{ "vfs_writev_fexit", PROBE_ATTACH_BTF, "vfs_writev" },
};

static const struct probe_program kprobe_programs[] = {
	{ "vfs_read_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_read" },
	{ "vfs_write_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_write" },
	{ "vfs_readv_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_readv" },
	{ "vfs_writev_kretprobe", PROBE_ATTACH_KRETPROBE, "vfs_writev" },
};

#define SYSCALL_PROGRAM(call)                                                                      \
	{                                                                                          \
		"sys_exit_" #call "_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_exit_" #call       \
	}

static const struct probe_program tracepoint_programs[] = {
	SYSCALL_PROGRAM(read),
	SYSCALL_PROGRAM(write),
	SYSCALL_PROGRAM(pread64),
	SYSCALL_PROGRAM(pwrite64),
	SYSCALL_PROGRAM(readv),
	SYSCALL_PROGRAM(writev),
	SYSCALL_PROGRAM(preadv),
	SYSCALL_PROGRAM(pwritev),
	SYSCALL_PROGRAM(preadv2),
	SYSCALL_PROGRAM(pwritev2),
};

/* A run that the kernel skips costs only the result: `wait` reports the operation then. */
static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, RECORD_BACKEND_fentry, fentry_programs,
		ARRAY_SIZE(fentry_programs), false, NULL },
	{ CONFIG_BACKEND_KPROBE, RECORD_BACKEND_kprobe, kprobe_programs,
		ARRAY_SIZE(kprobe_programs), false, NULL },
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_tracepoint, tracepoint_programs,
		ARRAY_SIZE(tracepoint_programs), false, NULL },
};

PROBE_OPEN(vfs, NULL)

/* vfs_readv() and vfs_writev() are static, so a compiler may have inlined them. */
static enum record_io_path vfs_optional_path(const char *program)
{
	return strstr(program, "readv") || strstr(program, "writev") ? RECORD_IO_PATH_vectored
								     : RECORD_IO_PATH_NONE;
}

static const enum record_io_path paths[] = { RECORD_IO_PATH_read, RECORD_IO_PATH_write,
	RECORD_IO_PATH_pread64, RECORD_IO_PATH_pwrite64, RECORD_IO_PATH_vectored,
	RECORD_IO_PATH_NONE };

const struct probe_ops probe_vfs_ops = {
	.name = "vfs",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.needs_wait = true,
	.optional_path = vfs_optional_path,
	.elf = vfs_elf,
	.open = vfs_open,
	.destroy = vfs_destroy,
};
