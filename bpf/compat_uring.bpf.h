/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kernels do differently in io_uring: the arguments of its tracepoints and the form of a
 * request.
 * Included by uring.bpf.c.
 * Never asks for a kernel version: a prototype is compared with the one in the kernel's BTF.
 */
#ifndef IOSTALL_COMPAT_URING_BPF_H
#define IOSTALL_COMPAT_URING_BPF_H

#include "compat.bpf.h"

/*
 * Loads argument i of a raw tracepoint where i differs between kernels. Plain C would let the
 * compiler merge two loads into one at a computed place, which 5.10 refuses ("dereference of
 * modified ctx ptr").
 */
#define compat_raw_arg(ctx, i)                                                                     \
	({                                                                                         \
		__u64 arg;                                                                         \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(arg) : "r"(ctx), "i"((i)*8));         \
		arg;                                                                               \
	})

/* IOSQE_* are the lowest bits of io_kiocb.flags, include/uapi/linux/io_uring.h. */
#define COMPAT_URING_FIXED_FILE (1U << 0)
#define COMPAT_URING_CQE_SKIP (1U << 6)

/*
 * 48863ffd3e81 ("io_uring: clean up tracing events", 6.0) left the request only; 2ad57931db64
 * ("io_uring: rename trace_io_uring_submit_sqe() tracepoint", 6.4) made it io_uring_submit_req.
 */
static __always_inline struct io_kiocb *compat_uring_submitted(struct bpf_raw_tracepoint_args *ctx)
{
	if (bpf_core_type_exists(btf_trace_io_uring_submit_sqe___with_ctx))
		return (struct io_kiocb *)compat_raw_arg(ctx, 1);
	return (struct io_kiocb *)compat_raw_arg(ctx, 0);
}

struct compat_uring_end {
	__u64 request; /* 0: this kernel does not pass it */
	__u64 context;
	__u64 user_data;
	__s32 ret;
};

/*
 * The tracepoint passes the request since 502c87d65564 ("io-uring: Make tracepoints consistent.",
 * 5.18), and the whole completion entry since "io_uring: clean up cqe trace points" (6.13). 5.10
 * has the io_uring of 5.15 since 5.10.162.
 */
static __always_inline bool compat_uring_end_names_request(void)
{
	return !bpf_core_type_exists(btf_trace_io_uring_complete___without_req);
}

static __always_inline void compat_uring_end_read(struct bpf_raw_tracepoint_args *ctx,
	struct compat_uring_end *end)
{
	end->context = compat_raw_arg(ctx, 0);
	if (!compat_uring_end_names_request()) {
		end->request = 0;
		end->user_data = compat_raw_arg(ctx, 1);
		end->ret = (__s32)compat_raw_arg(ctx, 2);
	} else if (bpf_core_type_exists(btf_trace_io_uring_complete___with_cqe)) {
		struct io_uring_cqe *cqe = (struct io_uring_cqe *)compat_raw_arg(ctx, 2);

		end->request = compat_raw_arg(ctx, 1);
		end->user_data = BPF_CORE_READ(cqe, user_data);
		end->ret = BPF_CORE_READ(cqe, res);
	} else {
		end->request = compat_raw_arg(ctx, 1);
		end->user_data = compat_raw_arg(ctx, 2);
		end->ret = (__s32)compat_raw_arg(ctx, 3);
	}
}

/* cef216fc32d7 ("io_uring: explicitly keep a CQE in io_kiocb", 5.19) moved it there. */
static __always_inline __u64 compat_uring_user_data(struct io_kiocb *req)
{
	struct io_kiocb___user_data *old = (void *)req;

	if (bpf_core_field_exists(req->cqe))
		return BPF_CORE_READ(req, cqe.user_data);
	return BPF_CORE_READ(old, user_data);
}

/*
 * A registered file by its index. 3597f2786b68 ("io_uring/rsrc: unify file and buffer resource
 * tables", 6.13) replaced the table of files by one of nodes.
 */
static __always_inline struct file *compat_uring_fixed_file(struct io_ring_ctx *ring, __u32 index)
{
	struct io_ring_ctx___nodes *newer = (void *)ring;
	struct io_fixed_file *files;
	struct io_rsrc_node **nodes, *node = NULL;
	unsigned long file = 0;

	if (bpf_core_field_exists(struct io_file_table___nodes, data)) {
		if (index >= BPF_CORE_READ(newer, file_table.data.nr))
			return NULL;
		nodes = BPF_CORE_READ(newer, file_table.data.nodes);
		bpf_probe_read_kernel(&node, sizeof(node), &nodes[index]);
		file = BPF_CORE_READ(node, file_ptr);
	} else {
		if (index >= BPF_CORE_READ(ring, nr_user_files))
			return NULL;
		files = BPF_CORE_READ(ring, file_table.files);
		bpf_probe_read_kernel(&file, sizeof(file), (void *)files + index * sizeof(file));
	}
	/* The lowest bits are flags (FFS_MASK). */
	return (struct file *)(file & ~7UL);
}

/*
 * The file that a request names by descriptor or as a registered file; NULL when it is not known
 * yet. Since 6bf9c47a3989 ("io_uring: defer file assignment", 5.18) the kernel looks it up when it
 * issues the request, which is after the tracepoint.
 */
static __always_inline struct file *compat_uring_file(struct io_kiocb *req, __u32 flags,
	__s32 *ret_fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	*ret_fd = -1;
	if (!bpf_core_field_exists(req->cqe))
		return BPF_CORE_READ(req, file);
	if (flags & COMPAT_URING_FIXED_FILE)
		return compat_uring_fixed_file(BPF_CORE_READ(req, ctx),
			(__u32)BPF_CORE_READ(req, cqe.fd));
	*ret_fd = BPF_CORE_READ(req, cqe.fd);
	return file_of_fd(task, (__u32)*ret_fd);
}

#endif
