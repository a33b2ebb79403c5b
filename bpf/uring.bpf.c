/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `uring`: requests of io_uring on regular files and block devices, from submission to the
 * completion that the program sees, whichever thread carries them out.
 *
 * It hooks tracepoints of io_uring only, so nothing else in the kernel gets slower.
 */
#define REQUESTS_MAP uring_requests
#include "requests.bpf.h"
#include "compat_uring.bpf.h"

/* enum io_uring_op, include/uapi/linux/io_uring.h */
enum uring_opcode {
	URING_READV = 1,
	URING_WRITEV = 2,
	URING_FSYNC = 3,
	URING_READ_FIXED = 4,
	URING_WRITE_FIXED = 5,
	URING_SYNC_FILE_RANGE = 8,
	URING_FALLOCATE = 17,
	URING_READ = 22,
	URING_WRITE = 23,
	URING_FTRUNCATE = 55,
	URING_READV_FIXED = 60,
	URING_WRITEV_FIXED = 61,
};

/*
 * The operation; -1 when the request is not one on a file's data, since it may wait for a peer or a
 * timer then.
 */
static __always_inline int uring_op(__u8 opcode)
{
	switch (opcode) {
	case URING_READV:
	case URING_READ_FIXED:
	case URING_READ:
	case URING_READV_FIXED:
		return EVENT_OP_READ;
	case URING_WRITEV:
	case URING_WRITE_FIXED:
	case URING_WRITE:
	case URING_WRITEV_FIXED:
		return EVENT_OP_WRITE;
	case URING_FSYNC:
		return EVENT_OP_FSYNC;
	case URING_SYNC_FILE_RANGE:
		return EVENT_OP_SYNC;
	case URING_FALLOCATE:
		return EVENT_OP_ALLOCATE;
	case URING_FTRUNCATE:
		return EVENT_OP_TRUNCATE;
	}
	return -1;
}

/*
 * The key of a request: its address or, where the kernel does not pass that at the completion, the
 * ring and the program's user_data. Two requests with the same user_data cannot be told apart
 * there; the second is counted as a missed completion of the first.
 */
static __always_inline __u64 uring_key(__u64 request, __u64 context, __u64 user_data)
{
	if (compat_uring_end_names_request())
		return request;
	/* Fibonacci hashing: user_data is an address or a small number. */
	return user_data * 0x9e3779b97f4a7c15ULL ^ context;
}

static __always_inline struct io_rw *uring_rw(struct io_kiocb *req)
{
	return (void *)req + bpf_core_field_offset(struct io_kiocb, file);
}

/* Which bytes of the file the request is about. */
static __always_inline void uring_describe_range(struct io_kiocb *req, __u8 opcode,
	struct event_inflight *op)
{
	struct io_rw *rw = uring_rw(req);
	struct io_sync *sync = (void *)rw;

	op->pos = (__u64)-1;
	switch (opcode) {
	case URING_READV:
	case URING_WRITEV:
	case URING_READV_FIXED:
	case URING_WRITEV_FIXED:
		op->pos = (__u64)BPF_CORE_READ(rw, kiocb.ki_pos);
		op->bytes = vector_bytes(BPF_CORE_READ(rw, addr),
			BPF_CORE_READ_BITFIELD_PROBED(rw, len));
		break;
	case URING_READ:
	case URING_WRITE:
	case URING_READ_FIXED:
	case URING_WRITE_FIXED:
		op->pos = (__u64)BPF_CORE_READ(rw, kiocb.ki_pos);
		op->bytes = BPF_CORE_READ_BITFIELD_PROBED(rw, len);
		break;
	case URING_SYNC_FILE_RANGE:
	case URING_FALLOCATE:
		op->pos = (__u64)BPF_CORE_READ(sync, off);
		op->bytes = (__u64)BPF_CORE_READ(sync, len);
		break;
	}
}

/* The offset of an appending write is known only when it has been done. */
static __always_inline bool uring_appends(__u32 op, struct file *file)
{
	return op == EVENT_OP_WRITE && file && (BPF_CORE_READ(file, f_flags) & O_APPEND);
}

/*
 * Where programs can be preempted, the kernel skips a run while another thread's run of the same
 * program waits for this CPU: on 7.2 every fifth submission of seven concurrent processes was
 * missed. It does not skip a run of another program, so each program exists twice, and the second
 * does what the first has not done.
 */

static __always_inline int uring_submit(struct bpf_raw_tracepoint_args *ctx, bool again)
{
	struct io_kiocb *req = compat_uring_submitted(ctx);
	__u8 opcode = BPF_CORE_READ(req, opcode);
	struct event_request fresh = {}, *known;
	int op = uring_op(opcode);
	struct file *file;
	__u32 flags;
	__u64 key;

	if (op < 0 || !filter_task(bpf_get_current_pid_tgid() >> 32))
		return 0;
	flags = (__u32)BPF_CORE_READ_BITFIELD_PROBED(req, flags);
	/* The program asked for no completion unless the request fails. */
	if (flags & COMPAT_URING_CQE_SKIP)
		return 0;
	fresh.request = (__u64)req;
	fresh.context = (__u64)BPF_CORE_READ(req, ctx);
	fresh.user_data = compat_uring_user_data(req);
	key = uring_key(fresh.request, fresh.context, fresh.user_data);
	known = again ? bpf_map_lookup_elem(&REQUESTS_MAP, &key) : NULL;
	if (known && known->op.start_ns && known->request == fresh.request &&
		known->context == fresh.context && known->user_data == fresh.user_data)
		return 0;
	file = compat_uring_file(req, flags, &fresh.op.fd);
	if (!request_file_is_wanted(file))
		return 0;
	fresh.op.op = (__u8)op;
	fresh.op.file = (__u64)file;
	uring_describe_range(req, opcode, &fresh.op);
	if (uring_appends((__u32)op, file))
		fresh.op.pos = (__u64)-1;
	request_begin(key, &fresh);
	return 0;
}

SEC("raw_tp")
int uring_submit_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	return uring_submit(ctx, false);
}

SEC("raw_tp")
int uring_submit_again_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	return uring_submit(ctx, true);
}

static __always_inline int uring_complete(struct bpf_raw_tracepoint_args *ctx, __u32 slot)
{
	struct compat_uring_end completion;
	struct event_request *known;
	struct request_end end;
	struct io_kiocb *req;
	__u64 key;

	compat_uring_end_read(ctx, &completion);
	key = uring_key(completion.request, completion.context, completion.user_data);
	known = bpf_map_lookup_elem(&REQUESTS_MAP, &key);
	if (!known || !known->op.start_ns)
		return 0;
	/* Another request at the same address, whose submission was of no interest. */
	if (known->context != completion.context || known->user_data != completion.user_data) {
		request_drop(key, known->op.start_ns);
		return 0;
	}
	req = (struct io_kiocb *)known->request;
	end.file = BPF_CORE_READ(req, file);
	end.ret = completion.ret;
	end.position = BPF_CORE_READ(uring_rw(req), kiocb.ki_pos);
	end.slot = slot;
	request_end(key, known, &end);
	return 0;
}

SEC("raw_tp")
int uring_complete_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	return uring_complete(ctx, SCRATCH_END);
}

SEC("raw_tp")
int uring_complete_again_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	return uring_complete(ctx, SCRATCH_END_AGAIN);
}

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN. Args: key and start of a request.
 */
SEC("raw_tp")
int uring_resolve(struct bpf_raw_tracepoint_args *ctx)
{
	struct event_request r;
	struct io_kiocb *req;
	struct file *file;

	if (!request_find_asked(ctx, &r))
		return 0;
	req = (struct io_kiocb *)r.request;
	file = BPF_CORE_READ(req, file);
	if ((__u64)BPF_CORE_READ(req, ctx) != r.context ||
		compat_uring_user_data(req) != r.user_data ||
		uring_op(BPF_CORE_READ(req, opcode)) != (int)r.op.op ||
		request_file_has_changed(&r, file)) {
		request_drop(ctx->args[0], r.op.start_ns);
		return 0;
	}
	if (request_is_done(&r, &uring_rw(req)->kiocb))
		return 0;
	/* A request that waits for others of its chain has no file yet; its descriptor had one. */
	return request_resolve(ctx->args[0], &r, file ? file : (struct file *)r.op.file);
}

char LICENSE[] SEC("license") = "GPL";
