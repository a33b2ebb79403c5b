/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/preemption.h"

#include <stdint.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "probes/kernel_types.h"

#include "preemption.skel.h"

/* preempt_dynamic_none and preempt_dynamic_voluntary of kernel/sched/core.c */
#define MODE_NONE 0
#define MODE_VOLUNTARY 1

bool preemption_skips_runs(const char *version, int mode)
{
	/*
	 * scripts/mkcompile_h writes PREEMPT for each kernel that can preempt itself,
	 * PREEMPT_DYNAMIC where that is decided at boot, and PREEMPT_RT for the real-time kernel.
	 */
	if (!strstr(version, "PREEMPT"))
		return false;
	if (!strstr(version, "PREEMPT_DYNAMIC"))
		return true;
	return mode != MODE_NONE && mode != MODE_VOLUNTARY;
}

/*
 * 8b62645b09f8 ("bpf: Use raw_spinlock_t in ringbuf", 6.12) made it a struct raw_spinlock. A struct
 * spinlock of the real-time kernel has an rt_mutex as its member `lock`; of other kernels it is a
 * raw spin lock under another name.
 */
bool preemption_ring_sleeps(const struct btf *btf)
{
	const struct btf_type *ring = kernel_types_find_struct(btf, "bpf_ringbuf");
	const struct btf_type *lock = ring ? kernel_types_find_member(btf, ring, "spinlock") : NULL;

	/* Without these types nothing is known, and without a ring buffer nothing works. */
	return !lock || !btf_is_struct(lock) || kernel_types_find_member(btf, lock, "lock");
}

/* The mode of a kernel with dynamic preemption; -1: unknown. */
static int read_mode(const struct kernel_types *types)
{
	struct preemption_bpf *skeleton;
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	uint64_t context;
	int mode = -1;

	if (kernel_types_find_address(types, "preempt_dynamic_mode", &context) < 0)
		return -1;
	skeleton = preemption_bpf__open_and_load();
	if (!skeleton)
		return -1;
	opts.ctx_in = &context;
	opts.ctx_size_in = sizeof(context);
	if (bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.preemption_mode), &opts) == 0)
		mode = (int)opts.retval;
	preemption_bpf__destroy(skeleton);
	return mode;
}

void preemption_read(const struct kernel_types *types, struct preemption *ret_preemption)
{
	struct utsname name;

	*ret_preemption = (struct preemption){ true, true };
	if (uname(&name) < 0)
		return;
	ret_preemption->skips_runs = preemption_skips_runs(name.version,
		strstr(name.version, "PREEMPT_DYNAMIC") ? read_mode(types) : -1);
	/* Reading the kernel's types takes 6 MB of memory, which is given back. */
	ret_preemption->ring_sleeps = false;
	if (strstr(name.version, "PREEMPT_RT")) {
		struct btf *btf = btf__load_vmlinux_btf();

		ret_preemption->ring_sleeps = !btf || preemption_ring_sleeps(btf);
		btf__free(btf);
	}
}
