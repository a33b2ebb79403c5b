/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `aio`: the user side of bpf/aio.bpf.c. */

#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "util/cleanup.h"

/* After iostall/event.h, whose types it uses. */
#include "aio.skel.h"

/* Completions are attached first, so that no request is noted whose completion is missed. */
static const struct probe_program fentry_programs[] = {
	{ "aio_complete_rw_fentry", PROBE_ATTACH_BTF, "aio_complete_rw" },
	{ "aio_read_fentry", PROBE_ATTACH_BTF, "aio_read" },
	{ "aio_write_fentry", PROBE_ATTACH_BTF, "aio_write" },
	{ "aio_resolve", PROBE_ATTACH_NONE, NULL },
};

static const struct probe_program kprobe_programs[] = {
	{ "aio_complete_rw_kprobe", PROBE_ATTACH_KPROBE, "aio_complete_rw" },
	{ "aio_read_kprobe", PROBE_ATTACH_KPROBE, "aio_read" },
	{ "aio_write_kprobe", PROBE_ATTACH_KPROBE, "aio_write" },
	{ "aio_resolve", PROBE_ATTACH_NONE, NULL },
};

static const struct probe_program raw_tp_programs[] = {
	{ "aio_iomap_complete_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "iomap_dio_complete" },
	{ "aio_iomap_begin_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "iomap_dio_rw_begin" },
	{ "aio_resolve", PROBE_ATTACH_NONE, NULL },
};

/*
 * Requests are seen whoever submits them. A thread that sleeps in io_submit(), as for a lock or a
 * frozen file system, is seen by `wait`.
 */
static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, RECORD_BACKEND_fentry, fentry_programs,
		ARRAY_SIZE(fentry_programs), true, NULL, NULL },
	{ CONFIG_BACKEND_KPROBE, RECORD_BACKEND_kprobe, kprobe_programs,
		ARRAY_SIZE(kprobe_programs), false, NULL, NULL },
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_raw_tp, raw_tp_programs,
		ARRAY_SIZE(raw_tp_programs), true, NULL, NULL },
};

static int aio_configure(struct aio_bpf *skeleton, const struct probe_settings *settings,
	const struct probe_backend *backend)
{
	bool by_iomap = backend->id == CONFIG_BACKEND_TRACEPOINT;
	uint64_t complete_rw = 0;
	int r = 0;

	if (by_iomap) {
		r = kernel_types_count_args(settings->types, "iomap_dio_rw_begin");
		if (r >= 0)
			r = kernel_types_find_address(settings->types, "aio_complete_rw",
				&complete_rw);
		if (r < 0)
			return r;
	}
	skeleton->rodata->cfg_aio_complete_rw = complete_rw;
	/*
	 * iomap need not end what it begins: a read at the end of the file, or a request that turns
	 * to buffered I/O.
	 */
	skeleton->rodata->cfg_reuse_tells = !by_iomap;
	return 0;
}

PROBE_OPEN(aio, aio_configure)

static const char *aio_describe_limit(const struct probe *probe)
{
	return probe->backend->id == CONFIG_BACKEND_TRACEPOINT
		? "only direct I/O on file systems that use iomap (ext4, XFS)"
		: "reads and writes, not IOCB_CMD_FSYNC";
}

static const enum record_io_path paths[] = { RECORD_IO_PATH_libaio, RECORD_IO_PATH_NONE };

const struct probe_ops probe_aio_ops = {
	.name = "aio",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.inflight_map = "aio_requests",
	.resolve_program = "aio_resolve",
	.describe_limit = aio_describe_limit,
	.elf = aio_elf,
	.open = aio_open,
	.destroy = aio_destroy,
};
