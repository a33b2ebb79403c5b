/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `fault`: the user side of bpf/fault.bpf.c. */
#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "util/cleanup.h"

/* After iostall/event.h, whose types it uses. */
#include "fault.skel.h"

static const struct probe_program fentry_programs[] = {
	{ "filemap_fault_fentry", PROBE_ATTACH_BTF, "filemap_fault" },
	{ "page_mkwrite_fentry", PROBE_ATTACH_BTF, "do_page_mkwrite" },
};

static const struct probe_program kprobe_programs[] = {
	{ "filemap_fault_kprobe", PROBE_ATTACH_KPROBE, "filemap_fault" },
	{ "page_mkwrite_kprobe", PROBE_ATTACH_KPROBE, "do_page_mkwrite" },
};

static const struct probe_program tracepoint_programs[] = {
	{ "filemap_fault_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "mm_filemap_fault" },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, RECORD_BACKEND_fentry, fentry_programs,
		ARRAY_SIZE(fentry_programs), true, NULL, NULL },
	{ CONFIG_BACKEND_KPROBE, RECORD_BACKEND_kprobe, kprobe_programs,
		ARRAY_SIZE(kprobe_programs), false, NULL, NULL },
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_raw_tp, tracepoint_programs,
		ARRAY_SIZE(tracepoint_programs), true, NULL, NULL },
};

PROBE_OPEN(fault, NULL)

#define WITHOUT_MKWRITE "the first write to a page that is mapped already is not seen"

/* do_page_mkwrite() is static, so a compiler may have inlined it. */
static const struct probe_part parts[] = {
	{ "page_mkwrite", RECORD_IO_PATH_NONE, WITHOUT_MKWRITE, NULL },
};

static const char *fault_describe_limit(const struct probe *probe)
{
	return probe->backend->id == CONFIG_BACKEND_TRACEPOINT ? WITHOUT_MKWRITE : NULL;
}

/* The path `fault` belongs to `wait`, which sees the sleep itself. */
static const enum record_io_path paths[] = { RECORD_IO_PATH_fault_file, RECORD_IO_PATH_NONE };

const struct probe_ops probe_fault_ops = {
	.name = "fault",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.parts = parts,
	.parts_count = ARRAY_SIZE(parts),
	.describe_limit = fault_describe_limit,
	.elf = fault_elf,
	.open = fault_open,
	.destroy = fault_destroy,
};
