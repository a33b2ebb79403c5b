/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `aio`: reads and writes of io_submit() on regular files and block devices, from submission
 * to completion.
 *
 * It hooks the entries of functions and no return, since the address of the kiocb identifies a
 * request at both ends. Where functions cannot be probed, tracepoints of iomap see direct I/O on
 * the file systems that use it.
 */
#define REQUESTS_MAP aio_requests
#include "requests.bpf.h"

/* Address of aio_complete_rw(): the tracepoints know by it which requests are libaio's. */
const volatile __u64 cfg_aio_complete_rw = 0;

static __always_inline void aio_begin(struct kiocb *iocb, struct event_request *fresh)
{
	struct aio_kiocb *aio = (struct aio_kiocb *)iocb;
	struct file *file = (struct file *)fresh->op.file;

	fresh->request = (__u64)iocb;
	fresh->context = (__u64)BPF_CORE_READ(aio, ki_ctx);
	fresh->user_data = BPF_CORE_READ(aio, ki_res.data);
	/* The offset of an appending write is known only when it has been done. */
	if (fresh->op.op == EVENT_OP_WRITE && (BPF_CORE_READ(file, f_flags) & O_APPEND))
		fresh->op.pos = (__u64)-1;
	request_begin((__u64)iocb, fresh);
}

/* aio_read() and aio_write() refuse such a request, so it would never complete. */
static __always_inline bool aio_is_refused(struct file *file, __s64 offset, __u32 op)
{
	__u32 need = op == EVENT_OP_READ ? FMODE_READ : FMODE_WRITE;

	return offset < 0 || !(BPF_CORE_READ(file, f_mode) & need);
}

/* `flag` is a whole register, of which only the lowest byte is the function's bool. */
static __always_inline int aio_submit(struct kiocb *iocb, const void *command, unsigned long flag,
	__u32 op)
{
	bool vectored = flag & 0xff;
	struct event_request fresh = {};
	struct iocb c = {};
	struct file *file;

	if (!filter_task(bpf_get_current_pid_tgid() >> 32))
		return 0;
	file = BPF_CORE_READ(iocb, ki_filp);
	if (!file || !request_file_is_wanted(file) ||
		bpf_probe_read_kernel(&c, sizeof(c), command) < 0 ||
		aio_is_refused(file, c.aio_offset, op))
		return 0;
	fresh.op.op = (__u8)op;
	fresh.op.file = (__u64)file;
	fresh.op.fd = (__s32)c.aio_fildes;
	fresh.op.pos = (__u64)c.aio_offset;
	fresh.op.bytes = vectored ? vector_bytes(c.aio_buf, c.aio_nbytes) : c.aio_nbytes;
	/* The kernel cannot read the vector either, and refuses the request. */
	if (vectored && fresh.op.bytes == 0)
		return 0;
	aio_begin(iocb, &fresh);
	return 0;
}

static __always_inline int aio_complete(struct kiocb *iocb, __s64 ret)
{
	__u64 key = (__u64)iocb;
	struct event_request *known = bpf_map_lookup_elem(&REQUESTS_MAP, &key);
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

/* aio_read_fentry, aio_read_kprobe, aio_write_fentry, aio_write_kprobe */
#define AIO_SUBMIT_PROGRAMS(function, op)                                                          \
	SEC("fentry/" #function)                                                                   \
	int BPF_PROG(function##_fentry, struct kiocb *iocb, const void *command,                   \
		unsigned long vectored)                                                            \
	{                                                                                          \
		return aio_submit(iocb, command, vectored, op);                                    \
	}                                                                                          \
                                                                                                   \
	SEC("kprobe")                                                                              \
	int BPF_KPROBE(function##_kprobe, struct kiocb *iocb, const void *command,                 \
		unsigned long vectored)                                                            \
	{                                                                                          \
		return aio_submit(iocb, command, vectored, op);                                    \
	}

AIO_SUBMIT_PROGRAMS(aio_read, EVENT_OP_READ)
AIO_SUBMIT_PROGRAMS(aio_write, EVENT_OP_WRITE)

SEC("fentry/aio_complete_rw")
int BPF_PROG(aio_complete_rw_fentry, struct kiocb *iocb, long ret)
{
	return aio_complete(iocb, ret);
}

SEC("kprobe")
int BPF_KPROBE(aio_complete_rw_kprobe, struct kiocb *iocb, long ret)
{
	return aio_complete(iocb, ret);
}

/*
 * Tracepoints of iomap (since 6.6): direct I/O. Buffered I/O is carried out inside io_submit()
 * itself, where `wait` sees it.
 */

/* io_uring and the kernel itself use iomap, too. */
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

/* Runs in an interrupt or a worker, after the position has advanced; args: iocb, error, result. */
SEC("raw_tp")
int aio_iomap_complete_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct kiocb *iocb = (struct kiocb *)ctx->args[0];
	__s32 error = (__s32)ctx->args[1];

	if (!aio_is_submitter_of(iocb))
		return 0;
	return aio_complete(iocb, error ? error : (__s64)ctx->args[2]);
}

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN. Args: key and start of a request.
 */
SEC("raw_tp")
int aio_resolve(struct bpf_raw_tracepoint_args *ctx)
{
	struct event_request r;
	struct aio_kiocb *aio;
	struct file *file;

	if (!request_find_asked(ctx, &r))
		return 0;
	aio = (struct aio_kiocb *)r.request;
	file = (struct file *)r.op.file;
	/* The completion drops the last reference. */
	if (BPF_CORE_READ(aio, ki_refcnt.refs.counter) <= 0 ||
		(__u64)BPF_CORE_READ(aio, ki_ctx) != r.context ||
		BPF_CORE_READ(aio, ki_res.data) != r.user_data ||
		BPF_CORE_READ(aio, rw.ki_filp) != file || request_file_has_changed(&r, file)) {
		request_drop(ctx->args[0], r.op.start_ns);
		return 0;
	}
	if (request_is_done(&r, &aio->rw))
		return 0;
	return request_resolve(ctx->args[0], &r, file);
}

char LICENSE[] SEC("license") = "GPL";
