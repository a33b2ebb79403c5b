/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `aio`: the user side of bpf/aio.bpf.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "aio.skel.h"
#include "probes/btf.h"
#include "probes/list.h"
#include "util/cleanup.h"

/* The end is attached before the beginning, so that no request is noted whose end is not seen. */
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

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, "fentry", fentry_programs, ARRAY_SIZE(fentry_programs), true },
	{ CONFIG_BACKEND_KPROBE, "kprobe", kprobe_programs, ARRAY_SIZE(kprobe_programs), false },
	{ CONFIG_BACKEND_TRACEPOINT, "raw_tp", raw_tp_programs, ARRAY_SIZE(raw_tp_programs), true },
};

/* -ENOENT: the kernel has no such function; -EPERM: it hides addresses (kernel.kptr_restrict). */
static int find_function(const char *function, uint64_t *ret_address)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	uint64_t address;

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 " %*c %255s", &address, name) != 2 ||
			strcmp(name, function) != 0)
			continue;
		if (address == 0)
			return -EPERM;
		*ret_address = address;
		return 0;
	}
	return -ENOENT;
}

static int aio_open(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_skeleton, struct bpf_object **ret_object)
{
	bool by_iomap = backend->id == CONFIG_BACKEND_TRACEPOINT;
	uint64_t complete_rw = 0;
	struct aio_bpf *skeleton;
	int r;

	if (by_iomap) {
		r = btf_count_tracepoint_args("iomap_dio_rw_begin");
		if (r >= 0)
			r = find_function("aio_complete_rw", &complete_rw);
		if (r < 0)
			return r;
	}
	skeleton = aio_bpf__open();
	if (!skeleton)
		return -errno;
	skeleton->rodata->cfg_min_stall_ns = settings->min_stall_ns;
	skeleton->rodata->cfg_filter_pid = settings->filter_pid;
	skeleton->rodata->cfg_filter_dev = settings->filter_dev;
	skeleton->rodata->cfg_filter_cgroups = settings->filter_cgroups_count;
	skeleton->rodata->cfg_probe = CONFIG_PROBE_aio;
	skeleton->rodata->cfg_self_pid = (uint32_t)getpid();
	skeleton->rodata->cfg_aio_complete_rw = complete_rw;
	/* What iomap begins, it need not end: a read at the end of the file, a turn to buffered I/O. */
	skeleton->rodata->cfg_reuse_tells = !by_iomap;
	bpf_map__set_max_entries(skeleton->maps.requests, (uint32_t)settings->inflight_max);
	*ret_skeleton = skeleton;
	*ret_object = skeleton->obj;
	return 0;
}

static void aio_destroy(void *skeleton)
{
	aio_bpf__destroy(skeleton);
}

static const char *aio_describe_limit(const struct probe_backend *backend)
{
	return backend->id == CONFIG_BACKEND_TRACEPOINT ?
		"only direct I/O on file systems that use iomap (ext4, XFS)" :
		"reads and writes, not IOCB_CMD_FSYNC";
}

static const char *const paths[] = { "libaio", NULL };

const struct probe_ops probe_aio_ops = {
	.name = "aio",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.inflight_map = "requests",
	.resolve_program = "aio_resolve",
	.operations_are_requests = true,
	.describe_limit = aio_describe_limit,
	.open = aio_open,
	.destroy = aio_destroy,
};
