/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `fault`: the user side of bpf/fault.bpf.c. */
#include <errno.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "fault.skel.h"
#include "probes/list.h"
#include "util/cleanup.h"

static const struct probe_program fentry_programs[] = {
	{ "filemap_fault_fentry", PROBE_ATTACH_BTF, "filemap_fault" },
};

static const struct probe_program kprobe_programs[] = {
	{ "filemap_fault_kprobe", PROBE_ATTACH_KPROBE, "filemap_fault" },
};

static const struct probe_program tracepoint_programs[] = {
	{ "filemap_fault_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "mm_filemap_fault" },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_FENTRY, "fentry", fentry_programs, ARRAY_SIZE(fentry_programs), true },
	{ CONFIG_BACKEND_KPROBE, "kprobe", kprobe_programs, ARRAY_SIZE(kprobe_programs), false },
	{ CONFIG_BACKEND_TRACEPOINT, "raw_tp", tracepoint_programs,
		ARRAY_SIZE(tracepoint_programs), true },
};

static int fault_open(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_skeleton, struct bpf_object **ret_object)
{
	struct fault_bpf *skeleton = fault_bpf__open();

	(void)backend;
	if (!skeleton)
		return -errno;
	skeleton->rodata->cfg_filter_pid = settings->filter_pid;
	skeleton->rodata->cfg_filter_cgroups = settings->filter_cgroups_count;
	skeleton->rodata->cfg_self_pid = (uint32_t)getpid();
	*ret_skeleton = skeleton;
	*ret_object = skeleton->obj;
	return 0;
}

static void fault_destroy(void *skeleton)
{
	fault_bpf__destroy(skeleton);
}

/* The sleep itself is seen by `wait`, which has the path. */
static const char *const paths[] = { "fault_file", NULL };

const struct probe_ops probe_fault_ops = {
	.name = "fault",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.open = fault_open,
	.destroy = fault_destroy,
};
