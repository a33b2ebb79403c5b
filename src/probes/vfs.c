/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `vfs`: the user side of bpf/vfs.bpf.c. */
#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "util/cleanup.h"

/* After iostall/event.h, whose types it uses. */
#include "vfs.skel.h"

/* clang-format off */
#define PROGRAM(attach, function, end) { #function "_" #end, PROBE_ATTACH_##attach, #function },
#define FUNCTIONS(attach, end)                                                                     \
	PROGRAM(attach, vfs_read, end)                                                             \
	PROGRAM(attach, vfs_write, end)                                                            \
	PROGRAM(attach, vfs_readv, end)                                                            \
	PROGRAM(attach, vfs_writev, end)

#define CALL(side, call)                                                                           \
	{ "sys_" #side "_" #call "_tp", PROBE_ATTACH_TRACEPOINT, "syscalls/sys_" #side "_" #call },
#define CALLS(side)                                                                                \
	CALL(side, read)                                                                           \
	CALL(side, write)                                                                          \
	CALL(side, pread64)                                                                        \
	CALL(side, pwrite64)                                                                       \
	CALL(side, readv)                                                                          \
	CALL(side, writev)                                                                         \
	CALL(side, preadv)                                                                         \
	CALL(side, pwritev)                                                                        \
	CALL(side, preadv2)                                                                        \
	CALL(side, pwritev2)

static const struct probe_program fentry_programs[] = { FUNCTIONS(BTF, fexit) };
static const struct probe_program kprobe_programs[] = { FUNCTIONS(KRETPROBE, kretprobe) };
static const struct probe_program tracepoint_programs[] = { CALLS(exit) };

/* The returns are attached first, so that nothing is noted whose return is missed. */
#define RESOLVE { "vfs_resolve", PROBE_ATTACH_NONE, NULL },
static const struct probe_program fentry_pairs[] = {
	FUNCTIONS(BTF, fexit) FUNCTIONS(BTF, fentry) RESOLVE };
static const struct probe_program kprobe_pairs[] = {
	FUNCTIONS(KRETPROBE, kretprobe) FUNCTIONS(KPROBE, kprobe) RESOLVE };
static const struct probe_program tracepoint_pairs[] = { CALLS(exit) CALLS(enter) RESOLVE };
/* clang-format on */

/* A run that the kernel skips costs only the result: `wait` reports the operation then. */
static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, RECORD_BACKEND_fentry, fentry_programs,
		ARRAY_SIZE(fentry_programs), false, NULL, NULL },
	{ CONFIG_BACKEND_KPROBE, RECORD_BACKEND_kprobe, kprobe_programs,
		ARRAY_SIZE(kprobe_programs), false, NULL, NULL },
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_tracepoint, tracepoint_programs,
		ARRAY_SIZE(tracepoint_programs), false, NULL, NULL },
};

/* A skipped run at the entry costs what does not sleep, and one at the return leaves an entry. */
static const struct probe_backend backends_at_entry[] = {
	{ CONFIG_BACKEND_FENTRY, RECORD_BACKEND_fentry, fentry_pairs, ARRAY_SIZE(fentry_pairs),
		true, NULL, NULL },
	{ CONFIG_BACKEND_KPROBE, RECORD_BACKEND_kprobe, kprobe_pairs, ARRAY_SIZE(kprobe_pairs),
		false, NULL, NULL },
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_tracepoint, tracepoint_pairs,
		ARRAY_SIZE(tracepoint_pairs), true, NULL, NULL },
};

static int vfs_configure(struct vfs_bpf *skeleton, const struct probe_settings *settings,
	const struct probe_backend *backend)
{
	skeleton->rodata->cfg_paired = settings->pairing == CONFIG_PAIRING_ENTRY;
	skeleton->rodata->cfg_by_syscalls = backend->id == CONFIG_BACKEND_TRACEPOINT;
	return 0;
}

PROBE_OPEN(vfs, vfs_configure)

/* vfs_readv() and vfs_writev() are static, so a compiler may have inlined them. */
static const struct probe_part parts[] = {
	{ "readv", RECORD_IO_PATH_vectored, "the results of readv and preadv2 are not known",
		NULL },
	{ "writev", RECORD_IO_PATH_vectored, "the results of writev and pwritev2 are not known",
		NULL },
};

static const enum record_io_path paths[] = { RECORD_IO_PATH_read, RECORD_IO_PATH_write,
	RECORD_IO_PATH_pread64, RECORD_IO_PATH_pwrite64, RECORD_IO_PATH_vectored,
	RECORD_IO_PATH_NONE };

#define OPS                                                                                        \
	.name = "vfs", .paths = paths, .needs_wait = true, .parts = parts,                         \
	.parts_count = ARRAY_SIZE(parts), .elf = vfs_elf, .open = vfs_open, .destroy = vfs_destroy

static bool vfs_wants_entries(const struct probe_settings *settings)
{
	return settings->pairing == CONFIG_PAIRING_ENTRY;
}

static const struct probe_ops vfs_ops_at_entry = {
	OPS,
	.pairing = RECORD_PAIRING_entry,
	.backends = backends_at_entry,
	.backends_count = ARRAY_SIZE(backends_at_entry),
	.inflight_map = "vfs_calls",
	.resolve_program = "vfs_resolve",
};

const struct probe_ops probe_vfs_ops = {
	OPS,
	.pairing = RECORD_PAIRING_sleep,
	.more = &vfs_ops_at_entry,
	.wants_more = vfs_wants_entries,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
};
