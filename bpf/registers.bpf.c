/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a system call from each place where the kernel may have saved the registers of its program.
 * It belongs to no probe.
 *
 * The registers are at the top of the thread's kernel stack, but no type has its size, which is the
 * macro THREAD_SIZE: 16 KB, more with KASAN, and a page or more on arm64 with pages of 64 KB. Nor
 * has one what lies above them: 16 bytes on x86 since "x86/fred: reserve space for the FRED stack
 * frame" (6.9), if the kernel was built with FRED.
 */
#include "kernel.bpf.h"
#include "compat.bpf.h"

#define SIZE_MIN 16384

struct event_registers places[EVENT_REGISTERS_PLACES] = {};

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN, which is the system call that the
 * right place has. The sizes are 16 to 128 KB, each with and without 16 bytes above.
 */
SEC("raw_tp")
int registers_read(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	unsigned long stack = (unsigned long)BPF_CORE_READ(task, stack);

#pragma unroll
	for (unsigned int i = 0; i < EVENT_REGISTERS_PLACES; i++) {
		unsigned long offset =
			(SIZE_MIN << i / 2) - i % 2 * 16 - bpf_core_type_size(struct pt_regs);
		struct compat_syscall call;

		compat_syscall_read_from((struct pt_regs *)(stack + offset), task, &call);
		places[i].offset = offset;
		places[i].nr = call.nr;
		places[i].args[0] = call.args[0];
		places[i].args[1] = call.args[1];
		places[i].args[2] = call.args[2];
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
