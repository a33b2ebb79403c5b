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

/* Of modules, read by src/probes/block.c; 0: there is no such function, as from 6.12 on. */
const volatile __u64 cfg_md_end_flush = 0;

#define MD_MAJOR 9

/*
 * By the address of the bio; for an md device, whose number is no address, whoever asked it last.
 * An LRU map: an entry stays behind, and another bio at its address replaces it.
 */
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

static __always_inline __u64 dev_of_disk(__u32 major, __u32 minor)
{
	return (__u64)major << 20 | minor;
}

/*
 * An md device has a kworker flush each of its disks, for the one bio that it works on. Modules
 * have no types here, but these two places did not change while there was this function:
 * md_rdev.mddev and mddev.unit. If they had, there would be no entry of that number.
 */
static __always_inline struct event_block_flusher *flusher_of_array(struct bio *bio)
{
	struct event_block_flusher *flusher;
	__u64 mddev = 0, key;
	__u32 unit = 0;

	if (!cfg_md_end_flush || (__u64)BPF_CORE_READ(bio, bi_end_io) != cfg_md_end_flush ||
		bpf_probe_read_kernel(&mddev, sizeof(mddev), BPF_CORE_READ(bio, bi_private) + 24) <
			0 ||
		bpf_probe_read_kernel(&unit, sizeof(unit), (void *)mddev + 16) < 0)
		return NULL;
	key = unit;
	flusher = bpf_map_lookup_elem(&flushers, &key);
	if (flusher)
		flusher->is_taken = 1;
	return flusher;
}

/* Written in place where it can be: an update of an LRU map takes a lock. */
static __always_inline void flusher_put(__u64 key, const struct event_block_flusher *flusher)
{
	struct event_block_flusher *known = bpf_map_lookup_elem(&flushers, &key);

	if (known)
		*known = *flusher;
	else
		/* Without it the request is charged to the kernel thread that sends it. */
		bpf_map_update_elem(&flushers, &key, flusher, BPF_ANY);
}

/* Of the md device that the bio goes to; 0: it goes to none, or the device passes it on. */
static __always_inline __u64 key_of_array(struct bio *bio)
{
	struct gendisk *disk = compat_bio_disk(bio);

	if (!cfg_md_end_flush || BPF_CORE_READ(disk, major) != MD_MAJOR)
		return 0;
	return dev_of_disk(MD_MAJOR, BPF_CORE_READ(disk, first_minor));
}

/* An md device flushes for one at a time, and what came meanwhile may need no flush any more. */
static __always_inline void flusher_put_of_array(struct bio *bio,
	struct event_block_flusher *flusher)
{
	struct event_block_flusher *before;
	__u64 key = key_of_array(bio);

	if (!key)
		return;
	before = bpf_map_lookup_elem(&flushers, &key);
	flusher->is_uncertain = before && !before->is_taken && before->who.tid != flusher->who.tid;
	flusher_put(key, flusher);
}

/* Not inlined: most bios flush nothing, and what is zeroed here costs more than a look at them. */
static __noinline void flusher_note(struct bio *bio)
{
	struct event_block_flusher fresh = {}, *of_array = flusher_of_array(bio);
	struct event_block_cgroup cgroup = {};
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 key = (__u64)bio, id = bpf_get_current_pid_tgid();

	if (of_array) {
		fresh = *of_array;
		flusher_put(key, &fresh);
		return;
	}
	if (!filter_task(id >> 32)) {
		/* What is known of this address, or of the array, is another thread's. */
		bpf_map_delete_elem(&flushers, &key);
		key = key_of_array(bio);
		if (key)
			bpf_map_delete_elem(&flushers, &key);
		return;
	}
	fresh.is_kernel = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	who_note(task, id, &fresh.who, &cgroup);
	flusher_put(key, &fresh);
	flusher_put_of_array(bio, &fresh);
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
