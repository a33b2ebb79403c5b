/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `aio`: reads and writes of io_submit() on regular files and block devices, from their submission to
 * their completion.
 *
 * Two functions' entries, no return: what is submitted is named by its kiocb, which is what completes.
 * Where functions cannot be probed, tracepoints of iomap see the direct I/O of its file systems.
 */
#include "requests.bpf.h"

/* Of aio_complete_rw(), for the tracepoints: who is called at the end tells who submitted. */
const volatile __u64 cfg_aio_complete_rw = 0;

/* struct iocb, include/uapi/linux/aio_abi.h, as far as it is used */
struct aio_command {
	__u64 data;
	__u64 key_and_flags;
	__u16 opcode;
	__s16 priority;
	__u32 fd;
	__u64 buf;
	__u64 bytes;
	__s64 offset;
};

static __always_inline void aio_begin(struct kiocb *iocb, struct event_request *fresh)
{
	struct aio_kiocb *aio = (struct aio_kiocb *)iocb;
	struct file *file = (struct file *)fresh->op.file;

	fresh->request = (__u64)iocb;
	fresh->context = (__u64)BPF_CORE_READ(aio, ki_ctx);
	fresh->user_data = BPF_CORE_READ(aio, ki_res.data);
	/* Where an appending write goes is known only when it has been done. */
	if (fresh->op.op == EVENT_OP_WRITE && (BPF_CORE_READ(file, f_flags) & O_APPEND))
		fresh->op.pos = (__u64)-1;
	request_begin((__u64)iocb, fresh);
}

/* What aio_read() and aio_write() would refuse never completes. */
static __always_inline bool aio_is_refused(struct file *file, __s64 offset, __u32 op)
{
	__u32 need = op == EVENT_OP_READ ? FMODE_READ : FMODE_WRITE;

	return offset < 0 || !(BPF_CORE_READ(file, f_mode) & need);
}

/* `flag` is a register: only its lowest byte is the function's bool. */
static __always_inline int aio_submit(struct kiocb *iocb, const void *command, unsigned long flag,
	__u32 op)
{
	bool vectored = flag & 0xff;
	struct event_request fresh = {};
	struct aio_command c = {};
	struct file *file;

	if (!filter_task(bpf_get_current_pid_tgid() >> 32))
		return 0;
	file = BPF_CORE_READ(iocb, ki_filp);
	if (!file || !request_file_is_wanted(file) ||
		bpf_probe_read_kernel(&c, sizeof(c), command) < 0 ||
		aio_is_refused(file, c.offset, op))
		return 0;
	fresh.op.op = (__u8)op;
	fresh.op.file = (__u64)file;
	fresh.op.fd = (__s32)c.fd;
	fresh.op.pos = (__u64)c.offset;
	fresh.op.buf = c.buf;
	fresh.op.bytes = vectored ? request_vector_bytes(c.buf, c.bytes) : c.bytes;
	/* Its vector could not be read: refused, too. */
	if (vectored && fresh.op.bytes == 0)
		return 0;
	aio_begin(iocb, &fresh);
	return 0;
}

static __always_inline int aio_complete(struct kiocb *iocb, __s64 ret)
{
	__u64 key = (__u64)iocb;
	struct event_request *known = bpf_map_lookup_elem(&requests, &key);
	struct request_end end;

	if (!known || !known->op.start_ns)
		return 0;
	end.file = (struct file *)known->op.file;
	end.ret = ret;
	end.slot = SCRATCH_END;
	end.position = BPF_CORE_READ(iocb, ki_pos);
	request_end(key, known, &end);
	return 0;
}

/* fentry */

SEC("fentry/aio_read")
int BPF_PROG(aio_read_fentry, struct kiocb *iocb, const void *command, unsigned long vectored)
{
	return aio_submit(iocb, command, vectored, EVENT_OP_READ);
}

SEC("fentry/aio_write")
int BPF_PROG(aio_write_fentry, struct kiocb *iocb, const void *command, unsigned long vectored)
{
	return aio_submit(iocb, command, vectored, EVENT_OP_WRITE);
}

SEC("fentry/aio_complete_rw")
int BPF_PROG(aio_complete_rw_fentry, struct kiocb *iocb, long ret)
{
	return aio_complete(iocb, ret);
}

/* kprobe */

SEC("kprobe")
int BPF_KPROBE(aio_read_kprobe, struct kiocb *iocb, const void *command, unsigned long vectored)
{
	return aio_submit(iocb, command, vectored, EVENT_OP_READ);
}

SEC("kprobe")
int BPF_KPROBE(aio_write_kprobe, struct kiocb *iocb, const void *command, unsigned long vectored)
{
	return aio_submit(iocb, command, vectored, EVENT_OP_WRITE);
}

SEC("kprobe")
int BPF_KPROBE(aio_complete_rw_kprobe, struct kiocb *iocb, long ret)
{
	return aio_complete(iocb, ret);
}

/* Tracepoints: direct I/O through iomap, from the kernel 6.6 on. What is carried out inside io_submit()
 * itself has no need of them. */

static __always_inline bool aio_is_submitter_of(struct kiocb *iocb)
{
	return (__u64)BPF_CORE_READ(iocb, ki_complete) == cfg_aio_complete_rw;
}

SEC("raw_tp")
int aio_iomap_begin_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct kiocb *iocb = (struct kiocb *)ctx->args[0];
	struct iov_iter *iter = (struct iov_iter *)ctx->args[1];
	struct event_request fresh = {};
	struct file *file;

	if (!aio_is_submitter_of(iocb) || !filter_task(bpf_get_current_pid_tgid() >> 32))
		return 0;
	file = BPF_CORE_READ(iocb, ki_filp);
	if (!file || !request_file_is_wanted(file))
		return 0;
	/* ITER_SOURCE, include/linux/uio.h: the data comes from the iterator. */
	fresh.op.op = BPF_CORE_READ(iter, data_source) ? EVENT_OP_WRITE : EVENT_OP_READ;
	fresh.op.file = (__u64)file;
	fresh.op.fd = -1;
	fresh.op.pos = (__u64)BPF_CORE_READ(iocb, ki_pos);
	fresh.op.bytes = BPF_CORE_READ(iter, count);
	aio_begin(iocb, &fresh);
	return 0;
}

/* In an interrupt or a worker, after the position was moved; args: iocb, error, result. */
SEC("raw_tp")
int aio_iomap_complete_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct kiocb *iocb = (struct kiocb *)ctx->args[0];
	__s32 error = (__s32)ctx->args[1];

	if (!aio_is_submitter_of(iocb))
		return 0;
	return aio_complete(iocb, error ? error : (__s64)ctx->args[2]);
}

/* Run by user space through BPF_PROG_TEST_RUN: args are the key and the start of a request. */
SEC("raw_tp")
int aio_resolve(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 key = ctx->args[0], start_ns = ctx->args[1];
	struct event_request *known = bpf_map_lookup_elem(&requests, &key), r;
	struct aio_kiocb *aio;
	struct file *file;

	if (!known)
		return 0;
	r = *known;
	if (r.op.start_ns != start_ns)
		return 0;
	aio = (struct aio_kiocb *)r.request;
	file = (struct file *)r.op.file;
	/* The last reference goes with the completion. */
	if (BPF_CORE_READ(aio, ki_refcnt.refs.counter) <= 0 ||
		(__u64)BPF_CORE_READ(aio, ki_ctx) != r.context ||
		BPF_CORE_READ(aio, ki_res.data) != r.user_data ||
		BPF_CORE_READ(aio, rw.ki_filp) != file || request_file_has_changed(&r, file)) {
		request_drop(key, start_ns);
		return 0;
	}
	if (request_is_done(&r, &aio->rw))
		return 0;
	return request_resolve(key, &r, file);
}

char LICENSE[] SEC("license") = "GPL";
