/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `uring`: the user side of bpf/uring.bpf.c. */
#include <errno.h>

#include <bpf/libbpf.h>

#include "probes/probe_open.h"
#include "util/cleanup.h"

/* After iostall/event.h, whose types it uses. */
#include "uring.skel.h"

/* Completions are attached first, so that no request is noted whose completion is missed. */
static const struct probe_program raw_tp_programs[] = {
	{ "uring_complete_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "io_uring_complete" },
	{ "uring_complete_again_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "io_uring_complete" },
	{ "uring_submit_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT,
		"io_uring_submit_req|io_uring_submit_sqe" },
	{ "uring_submit_again_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT,
		"io_uring_submit_req|io_uring_submit_sqe" },
	{ "uring_resolve", PROBE_ATTACH_NONE, NULL },
};

/* A thread that sleeps in io_uring_enter() for anything but completions is seen by `wait`. */
static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_raw_tp, raw_tp_programs,
		ARRAY_SIZE(raw_tp_programs), true, NULL, NULL },
};

/* Arguments where it passes no request: before 5.14, and in 5.10 before 5.10.162. */
#define ARGS_WITHOUT_REQUEST 5

static int uring_configure(struct uring_bpf *skeleton, const struct probe_settings *settings,
	const struct probe_backend *backend)
{
	(void)skeleton;
	(void)backend;
	return kernel_types_count_args(settings->types, "io_uring_submit_sqe") ==
			ARGS_WITHOUT_REQUEST
		? -EOPNOTSUPP
		: 0;
}

PROBE_OPEN(uring, uring_configure)

static const enum record_io_path paths[] = { RECORD_IO_PATH_io_uring, RECORD_IO_PATH_NONE };

const struct probe_ops probe_uring_ops = {
	.name = "uring",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.inflight_map = "uring_requests",
	.resolve_program = "uring_resolve",
	.elf = uring_elf,
	.open = uring_open,
	.destroy = uring_destroy,
};
