/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `uring`: the user side of bpf/uring.bpf.c. */
#include <errno.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probes/list.h"
#include "util/cleanup.h"
#include "uring.skel.h"

/* The end is attached before the beginning, so that no request is noted whose end is not seen. */
static const struct probe_program raw_tp_programs[] = {
	{ "uring_complete_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "io_uring_complete" },
	{ "uring_complete_again_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "io_uring_complete" },
	{ "uring_submit_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT,
		"io_uring_submit_req|io_uring_submit_sqe" },
	{ "uring_submit_again_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT,
		"io_uring_submit_req|io_uring_submit_sqe" },
	{ "uring_resolve", PROBE_ATTACH_NONE, NULL },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_TRACEPOINT, "raw_tp", raw_tp_programs, ARRAY_SIZE(raw_tp_programs), true },
};

static int uring_open(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_skeleton, struct bpf_object **ret_object)
{
	struct uring_bpf *skeleton = uring_bpf__open();

	(void)backend;
	if (!skeleton)
		return -errno;
	skeleton->rodata->cfg_min_stall_ns = settings->min_stall_ns;
	skeleton->rodata->cfg_filter_pid = settings->filter_pid;
	skeleton->rodata->cfg_filter_dev = settings->filter_dev;
	skeleton->rodata->cfg_filter_cgroups = settings->filter_cgroups_count;
	skeleton->rodata->cfg_probe = CONFIG_PROBE_uring;
	skeleton->rodata->cfg_self_pid = (uint32_t)getpid();
	bpf_map__set_max_entries(skeleton->maps.requests, (uint32_t)settings->inflight_max);
	*ret_skeleton = skeleton;
	*ret_object = skeleton->obj;
	return 0;
}

static void uring_destroy(void *skeleton)
{
	uring_bpf__destroy(skeleton);
}

static const char *const paths[] = { "io_uring", NULL };

const struct probe_ops probe_uring_ops = {
	.name = "uring",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.inflight_map = "requests",
	.resolve_program = "uring_resolve",
	.operations_are_requests = true,
	.open = uring_open,
	.destroy = uring_destroy,
};
