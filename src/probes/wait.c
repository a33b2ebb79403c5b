/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `wait`: the user side of bpf/wait.bpf.c. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probes/btf.h"
#include "probes/list.h"
#include "util/cleanup.h"
#include "wait.skel.h"

static const struct probe_program programs[] = {
	{ "wait_sched_switch_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "sched_switch" },
	{ "wait_seed", PROBE_ATTACH_NONE, NULL },
	{ "wait_resolve", PROBE_ATTACH_NONE, NULL },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_TRACEPOINT, "raw_tp", programs, ARRAY_SIZE(programs), false },
};

/* SYSCALL(name, op, fd, path, offset, bytes): which argument is what, -1 for none. */
static const struct {
	int nr;
	struct event_syscall is;
} syscalls[] = {
#define SYSCALL(name, op, fd, path, offset, bytes)                                                 \
	{ SYS_##name, { EVENT_OP_##op, fd, path, offset, bytes, {} } },
#include "probes/syscalls.def"
#undef SYSCALL
};

static int wait_open(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_skeleton, struct bpf_object **ret_object)
{
	struct wait_bpf *skeleton = wait_bpf__open();
	int args;

	(void)backend;
	if (!skeleton)
		return -errno;
	skeleton->rodata->cfg_min_stall_ns = settings->min_stall_ns;
	skeleton->rodata->cfg_filter_pid = settings->filter_pid;
	skeleton->rodata->cfg_filter_dev = settings->filter_dev;
	skeleton->rodata->cfg_filter_cgroups = settings->filter_cgroups_count;
	skeleton->rodata->cfg_probe = CONFIG_PROBE_wait;
	skeleton->rodata->cfg_self_pid = (uint32_t)getpid();
	args = btf_count_tracepoint_args("sched_switch");
	if (args < 0) {
		wait_bpf__destroy(skeleton);
		return args;
	}
	skeleton->rodata->cfg_switch_tells_state = args > 3;
	skeleton->rodata->cfg_uring_seen =
		settings->loaded[CONFIG_PROBE_uring] != CONFIG_BACKEND_AUTO;
	/* Its tracepoints see what goes to the disk directly, not what sleeps in io_submit(). */
	skeleton->rodata->cfg_aio_seen =
		settings->loaded[CONFIG_PROBE_aio] != CONFIG_BACKEND_AUTO &&
		settings->loaded[CONFIG_PROBE_aio] != CONFIG_BACKEND_TRACEPOINT;
	skeleton->rodata->cfg_sync_seen =
		settings->loaded[CONFIG_PROBE_sync] != CONFIG_BACKEND_AUTO;
	skeleton->rodata->cfg_nr_io_submit = SYS_io_submit;
	skeleton->rodata->cfg_nr_io_uring_enter = SYS_io_uring_enter;
	for (unsigned int i = 0; i < EVENT_SYSCALLS_MAX; i++)
		skeleton->rodata->cfg_syscalls[i] =
			(struct event_syscall){ EVENT_OP_OTHER, -1, -1, -1, -1, {} };
	for (unsigned int i = 0; i < ARRAY_SIZE(syscalls); i++)
		if (syscalls[i].nr < EVENT_SYSCALLS_MAX)
			skeleton->rodata->cfg_syscalls[syscalls[i].nr] = syscalls[i].is;
	*ret_skeleton = skeleton;
	*ret_object = skeleton->obj;
	return 0;
}

static void wait_destroy(void *skeleton)
{
	wait_bpf__destroy(skeleton);
}

static const char *const paths[] = { "read", "write", "pread64", "pwrite64", "vectored", "fsync",
	"sync_range", "copy", "metadata", "fault", "io_submit", "journal", NULL };

const struct probe_ops probe_wait_ops = {
	.name = "wait",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.inflight_map = "sleeps",
	.resolve_program = "wait_resolve",
	.seed_program = "wait_seed",
	.open = wait_open,
	.destroy = wait_destroy,
};
