/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `fault`: notes which file a page fault is about before the fault can sleep.
 *
 * `wait` sees the sleep, but a fault has no descriptor that would tell the file. There are hooks at
 * entries only, so no return can be missed. Fault-around maps cached pages without calling
 * filemap_fault(). The first write to a page that is mapped already calls do_page_mkwrite() alone,
 * where it waits for the journal, for a frozen file system or for a page that is being written.
 */
enum scratch_slot {
	SCRATCH_COUNT = 1, /* this object makes no event, but a map needs an entry */
};

#include "sleeps.bpf.h"

static __always_inline void fault_note(struct file *file, struct inode *inode, __u64 page)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)pid_tgid;
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct event_fault *known;
	struct event_fault fault = {
		.task = (__u64)task,
		.inode = (__u64)inode,
		.file = (__u64)file,
		.pos = page << cfg_common.page_shift,
		.faults = faults_of(task),
	};

	if (!filter_task(pid_tgid >> 32))
		return;
	/* Written in place where it can be: an update of an LRU map takes a lock. */
	known = bpf_map_lookup_elem(&faults, &tid);
	if (known)
		*known = fault;
	else if (bpf_map_update_elem(&faults, &tid, &fault, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
}

/* For fentry, whose programs read what the kernel passes directly. */
static __always_inline int fault_note_direct(struct vm_fault *vmf)
{
	struct file *file = vmf->vma->vm_file;

	fault_note(file, file->f_inode, vmf->pgoff);
	return 0;
}

static __always_inline int fault_note_copied(struct vm_fault *vmf)
{
	struct file *file = BPF_CORE_READ(vmf, vma, vm_file);

	fault_note(file, BPF_CORE_READ(file, f_inode), BPF_CORE_READ(vmf, pgoff));
	return 0;
}

SEC("fentry/filemap_fault")
int BPF_PROG(filemap_fault_fentry, struct vm_fault *vmf)
{
	return fault_note_direct(vmf);
}

SEC("kprobe")
int BPF_KPROBE(filemap_fault_kprobe, struct vm_fault *vmf)
{
	return fault_note_copied(vmf);
}

SEC("fentry/do_page_mkwrite")
int BPF_PROG(page_mkwrite_fentry, struct vm_fault *vmf)
{
	return fault_note_direct(vmf);
}

SEC("kprobe")
int BPF_KPROBE(page_mkwrite_kprobe, struct vm_fault *vmf)
{
	return fault_note_copied(vmf);
}

/* Not every kernel has this tracepoint (6.12 does); its arguments are mapping and page index. */
SEC("raw_tp/mm_filemap_fault")
int filemap_fault_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct address_space *mapping = (struct address_space *)ctx->args[0];

	fault_note(NULL, BPF_CORE_READ(mapping, host), ctx->args[1]);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
