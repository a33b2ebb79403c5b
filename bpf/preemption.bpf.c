/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells in which mode a kernel with dynamic preemption runs. It belongs to no probe.
 *
 * /sys/kernel/debug/sched/preempt says the same, but the systemd unit hides that directory, and no
 * other file has the mode: the kernel's configuration and command line tell only how it began.
 */
#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN with the address of
 * preempt_dynamic_mode (kernel/sched/core.c). Returns the mode; -1: unknown.
 */
SEC("raw_tp")
int preemption_mode(struct bpf_raw_tracepoint_args *ctx)
{
	int mode = -1;

	if (bpf_probe_read_kernel(&mode, sizeof(mode), (void *)ctx->args[0]) < 0)
		mode = -1;
	return mode;
}

char LICENSE[] SEC("license") = "GPL";
