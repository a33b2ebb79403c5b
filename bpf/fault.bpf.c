/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `fault`: which file a page fault is about, told before it may sleep.
 *
 * `wait` sees the sleep, but in a fault there is no descriptor to ask. An entry hook only: nothing is
 * paired, so nothing can be lost. Faults on cached pages mostly do not come by here (fault-around).
 */
enum scratch_slot {
	SCRATCH_COUNT = 1, /* a map has an entry at least; this object makes no event */
};

#include "sleeps.bpf.h"

static __always_inline void fault_note(struct file *file, struct inode *inode, __u64 page)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)pid_tgid;
	struct event_fault fault = {
		.inode = (__u64)inode,
		.file = (__u64)file,
		.pos = page << 12,
		.faults = faults_of((struct task_struct *)bpf_get_current_task()),
	};

	if (!filter_task(pid_tgid >> 32))
		return;
	if (bpf_map_update_elem(&faults, &tid, &fault, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
}

SEC("fentry/filemap_fault")
int BPF_PROG(filemap_fault_fentry, struct vm_fault *vmf)
{
	struct file *file = vmf->vma->vm_file;

	fault_note(file, file->f_inode, vmf->pgoff);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(filemap_fault_kprobe, struct vm_fault *vmf)
{
	struct file *file = BPF_CORE_READ(vmf, vma, vm_file);

	fault_note(file, BPF_CORE_READ(file, f_inode), BPF_CORE_READ(vmf, pgoff));
	return 0;
}

/* Where it exists (6.12 has it); arguments: mapping, page index. */
SEC("raw_tp/mm_filemap_fault")
int filemap_fault_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct address_space *mapping = (struct address_space *)ctx->args[0];

	fault_note(NULL, BPF_CORE_READ(mapping, host), ctx->args[1]);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
