/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For whom a device writes its cache. The kernel sends such a request, and the data of one that
 * comes after or before it, from a kworker. So whoever submits the bio is noted.
 * Included by block.bpf.c after charge.bpf.h.
 * Never looks at any other bio than one that flushes.
 */
#ifndef IOSTALL_FLUSHES_BPF_H
#define IOSTALL_FLUSHES_BPF_H

#include "charge.bpf.h"

/* An LRU map: an entry stays behind, and another bio at its address replaces it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EVENT_BLOCK_FLUSHERS_MAX);
	__type(key, __u64);
	__type(value, struct event_block_flusher);
} flushers SEC(".maps");

static __always_inline bool bio_is_flush(struct bio *bio)
{
	__u32 flags = BPF_CORE_READ(bio, bi_opf);

	return (flags >> (bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH) & 31) |
		       flags >> (bpf_core_enum_value(enum req_flag_bits, __REQ_FUA) & 31)) &
		1;
}

/* Not inlined: most bios flush nothing, and what is zeroed here costs more than a look at them. */
static __noinline void flusher_note(struct bio *bio)
{
	struct event_block_flusher fresh = {}, *known;
	struct event_block_cgroup cgroup = {};
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 key = (__u64)bio, id = bpf_get_current_pid_tgid();

	if (!filter_task(id >> 32)) {
		/* An earlier bio at this address may have been of another thread. */
		bpf_map_delete_elem(&flushers, &key);
		return;
	}
	fresh.is_kernel = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	who_note(task, id, &fresh.who, &cgroup);
	/* Written in place where it can be: an update of an LRU map takes a lock. */
	known = bpf_map_lookup_elem(&flushers, &key);
	if (known)
		*known = fresh;
	else
		/* Without it the request is charged to the kernel thread that sends it. */
		bpf_map_update_elem(&flushers, &key, &fresh, BPF_ANY);
}

/* Runs in the context of whoever submits the bio, or whom the interrupt that does so came upon. */
SEC("raw_tp/block_bio_queue")
int block_flush_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct bio *bio = compat_queued_bio(ctx);

	if (bio_is_flush(bio))
		flusher_note(bio);
	return 0;
}

/*
 * The bio for which a request flushes the device: of the first request that waits for the flush, or
 * of one with data that is flushed before or after. NULL: none. One flush may serve several
 * requests. A request that has sent its data has no `bio` any more, but the last one is its only
 * one.
 */
static __always_inline struct bio *bio_of_flush(struct request *rq, __u32 kind, bool *ret_is_shared)
{
	struct list_head *head, *first;
	struct blk_flush_queue *fq;
	struct bio *bio;

	*ret_is_shared = false;
	if (kind != EVENT_BLOCK_FLUSH) {
		bio = BPF_CORE_READ(rq, bio);
		return bio && bio_is_flush(bio) ? bio : NULL;
	}
	fq = BPF_CORE_READ(rq, mq_hctx, fq);
	if (BPF_CORE_READ(fq, flush_rq) != rq)
		return NULL;
	head = (void *)fq + bpf_core_field_offset(struct blk_flush_queue, flush_queue) +
		(BPF_CORE_READ_BITFIELD_PROBED(fq, flush_running_idx) & 1) *
			bpf_core_type_size(struct list_head);
	first = BPF_CORE_READ(head, next);
	if (!first || first == head)
		return NULL;
	*ret_is_shared = BPF_CORE_READ(first, next) != head;
	return BPF_CORE_READ(compat_request_of_flush(first), biotail);
}

/* NULL: it flushes nothing, or for whom is not known. */
static __always_inline struct event_block_flusher *flusher_of(struct request *rq, __u32 kind,
	bool *ret_is_shared)
{
	__u64 key = (__u64)bio_of_flush(rq, kind, ret_is_shared);

	return key ? bpf_map_lookup_elem(&flushers, &key) : NULL;
}

#endif
