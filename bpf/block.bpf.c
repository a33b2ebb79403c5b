/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `block`: requests of block devices, from the queue through the device to their completion.
 *
 * Each request in flight has an entry, keyed by its address. When it completes it is charged to its
 * device, and to the thread and the file that it was for. No event is emitted: user space reads the
 * tables.
 */

/* They may interrupt one another, so each has a slot, in `fresh_files` too. */
enum scratch_slot {
	SCRATCH_BEGIN,
	SCRATCH_ISSUE,
	SCRATCH_COMPLETE,
	SCRATCH_COUNT,
};

#include "charge.bpf.h"
#include "flushes.bpf.h"
#include "journal.bpf.h"

/* Values from include/uapi/linux/magic.h. */
#define BDEVFS_MAGIC 0x62646576
#define TMPFS_MAGIC 0x01021994
#define HUGETLBFS_MAGIC 0x958458f6

/* include/linux/blk_types.h; from 32 on they are private commands of the driver. */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_WRITE_SAME 7
#define REQ_OP_WRITE_ZEROES 9
#define REQ_OP_DRIVER 32

/* A split bio is chained to its remainder, which may have been split again. */
#define BIO_PARENTS_MAX 4

/*
 * The function that ends a bio tells whose it is. The address is 0 where the kernel has none. User
 * space finds them for all objects at once: for a __ksym, libbpf reads all symbols of the kernel.
 */
const volatile __u64 cfg_iomap_dio_bio_end_io = 0;
const volatile __u64 cfg_bio_chain_endio = 0;
const volatile __u64 cfg_end_swap_bio_read = 0;

/* Not an LRU map: the oldest request is the one that matters. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct event_block_request);
} block_requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_DEVICES_MAX);
	__type(key, __u32);
	__type(value, struct event_block_device);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_FILES_MAX);
	__type(key, struct event_block_file_key);
	__type(value, struct event_block_file);
} files SEC(".maps");

/* Too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_COUNT);
	__type(key, __u32);
	__type(value, struct event_block_file);
} fresh_files SEC(".maps");

static __always_inline __u32 request_kind(__u32 op)
{
	switch (op) {
	case REQ_OP_READ:
		return EVENT_BLOCK_READ;
	case REQ_OP_WRITE:
	case REQ_OP_WRITE_SAME:
	case REQ_OP_WRITE_ZEROES:
		return EVENT_BLOCK_WRITE;
	case REQ_OP_FLUSH:
		return EVENT_BLOCK_FLUSH;
	}
	return EVENT_BLOCK_DISCARD;
}

/* The kind of a request and its disk; false when it is a command and not I/O. */
static __always_inline bool request_describe(struct request *rq, __u32 *kind, __u32 *dev)
{
	__u32 op = BPF_CORE_READ(rq, cmd_flags) & REQ_OP_MASK;
	struct gendisk *disk;

	if (op >= REQ_OP_DRIVER)
		return false;
	disk = compat_request_disk(rq);
	if (!disk)
		return false;
	*kind = request_kind(op);
	*dev = (__u32)BPF_CORE_READ(disk, major) << 20 | (__u32)BPF_CORE_READ(disk, first_minor);
	return true;
}

static const struct event_block_device no_device = {};

static __always_inline struct event_block_device *device_get(__u32 dev, __u64 now)
{
	struct event_block_device *device = bpf_map_lookup_elem(&devices, &dev);

	if (device)
		return device;
	bpf_map_update_elem(&devices, &dev, &no_device, BPF_NOEXIST);
	device = bpf_map_lookup_elem(&devices, &dev);
	if (device)
		device->seen_ns = now;
	else
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
	return device;
}

/*
 * Whether it moves a page to or from swap, which belongs to no file operation. Only writes have the
 * flag, so reads are known by the function that ends them.
 */
static __always_inline bool bio_is_swap(struct request *rq, struct bio *bio)
{
	__u64 end = (__u64)BPF_CORE_READ(bio, bi_end_io);

	if (end && end == cfg_end_swap_bio_read)
		return true;
	if (!bpf_core_enum_value_exists(enum req_flag_bits, __REQ_SWAP))
		return false;
	return BPF_CORE_READ(rq, cmd_flags) >>
		(bpf_core_enum_value(enum req_flag_bits, __REQ_SWAP) & 31) &
		1;
}

/* The file of direct I/O through iomap, as on ext4 and XFS, whichever thread submits it. */
static __always_inline struct inode *inode_of_direct(struct bio *bio)
{
	__u64 end = (__u64)BPF_CORE_READ(bio, bi_end_io);
	struct iomap_dio *dio;

	for (int i = 0; i < BIO_PARENTS_MAX && end && end == cfg_bio_chain_endio; i++) {
		bio = BPF_CORE_READ(bio, bi_private);
		end = (__u64)BPF_CORE_READ(bio, bi_end_io);
	}
	if (!end || end != cfg_iomap_dio_bio_end_io)
		return NULL;
	dio = BPF_CORE_READ(bio, bi_private);
	return BPF_CORE_READ(dio, iocb, ki_filp, f_inode);
}

/* The file of buffered I/O, which owns the page; NULL when it is memory of a process. */
static __always_inline struct inode *inode_of_page(struct bio *bio)
{
	__u32 index = BPF_CORE_READ(bio, bi_iter.bi_idx);
	struct bio_vec *vec = BPF_CORE_READ(bio, bi_io_vec);
	struct address_space *mapping;
	struct inode *inode;
	struct page *page;
	unsigned long magic;

	vec = (void *)vec + index * bpf_core_type_size(struct bio_vec);
	page = BPF_CORE_READ(vec, bv_page);
	if (!page)
		return NULL;
	mapping = compat_page_mapping(page);
	/* Bits 0 and 1: anonymous, movable, KSM. */
	if (!mapping || ((unsigned long)mapping & 3))
		return NULL;
	inode = BPF_CORE_READ(mapping, host);
	/* A page of a slab, as of a buffer of the journal, has something else there. */
	if (!inode || BPF_CORE_READ(inode, i_mapping) != mapping)
		return NULL;
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	/* Shared memory of a process, used as the buffer of direct I/O. */
	if (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC)
		return NULL;
	return inode;
}

/* The file of the current thread's read or write, or of its last submission of a request. */
static __always_inline struct inode *inode_of_thread(struct task_struct *task, __u32 tid,
	__u32 flags)
{
	struct event_thread_file *submitted;
	struct compat_syscall call = {};
	struct inode *inode;
	struct file *file;

	if (!tid)
		return NULL;
	if (!compat_task_is_kernel(flags)) {
		if (!cfg_common.registers_offset)
			return NULL;
		compat_syscall_read(task, &call);
		if (compat_syscall_is_transfer(call.nr)) {
			file = file_of_fd(task, (__u32)call.args[0]);
			return file ? BPF_CORE_READ(file, f_inode) : NULL;
		}
		if (!compat_syscall_is_submit(call.nr))
			return NULL;
	}
	submitted = bpf_map_lookup_elem(&thread_files, &tid);
	if (!submitted || submitted->task != (__u64)task)
		return NULL;
	inode = (struct inode *)submitted->inode;
	return BPF_CORE_READ(inode, i_ino) == submitted->ino ? inode : NULL;
}

/* Makes an entry with the file's present name, if it has none. False when there is no room. */
static __always_inline bool file_note(struct event_block_file_key *key, struct inode *inode,
	__u32 slot)
{
	struct event_block_file *fresh, *known;
	struct event_operation *e;

	known = bpf_map_lookup_elem(&files, key);
	if (known) {
		known->noted_ns = bpf_ktime_get_ns();
		return true;
	}
	fresh = bpf_map_lookup_elem(&fresh_files, &slot);
	e = scratch_get(slot);
	if (!fresh || !e)
		return false;
	e->flags = 0;
	e->path_len = 0;
	if (key->inode)
		inode_path_collect(inode, e, slot);
	fresh->noted_ns = bpf_ktime_get_ns();
	fresh->size = key->inode ? BPF_CORE_READ(inode, i_size) : 0;
	fresh->flags = e->flags;
	fresh->path_len = e->path_len;
	if (fresh->path_len > EVENT_BLOCK_PATH_SIZE) {
		fresh->path_len = EVENT_BLOCK_PATH_SIZE;
		fresh->flags &= ~EVENT_PATH_COMPLETE;
	}
	bpf_probe_read_kernel(fresh->path, sizeof(fresh->path), e->path);
	if (bpf_map_update_elem(&files, key, fresh, BPF_ANY) == 0)
		return true;
	loss_count(EVENT_LOSS_ACCOUNT_FULL);
	return false;
}

/*
 * Notes the file that the request is for, if that can be found out. Not wanted: it is sent by a
 * kernel thread, and counts only where a program of trace.process or trace.cgroup has dirtied the
 * file. False: it does not count.
 */
static __always_inline bool request_note_file(struct request *rq, struct task_struct *task,
	__u32 task_flags, struct event_block_request *r, bool is_wanted, __u32 slot)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);
	struct inode *inode, *named;
	bool is_metadata = false;

	if (!bio || r->kind >= EVENT_BLOCK_DISCARD || bio_is_swap(rq, bio))
		return is_wanted;
	inode = inode_of_direct(bio);
	if (!inode)
		inode = inode_of_page(bio);
	if (!inode) {
		inode = inode_of_thread(task, r->tid, task_flags);
	} else if (BPF_CORE_READ(inode, i_sb, s_magic) == BDEVFS_MAGIC) {
		/*
		 * A page of the device itself is metadata of its file system, unless the thread
		 * reads or writes the device.
		 */
		named = inode_of_thread(task, r->tid, task_flags);
		is_metadata = !named || (BPF_CORE_READ(named, i_mode) & S_IFMT) != S_IFBLK;
		inode = is_metadata ? inode : named;
	}
	if (!inode)
		return is_wanted;
	r->file.dev = r->dev;
	if (is_metadata)
		r->file.fs_dev = BPF_CORE_READ(inode, i_rdev);
	else
		file_identify(&r->file, inode);
	if (!is_wanted && !dirtier_of(r))
		return false;
	r->has_file = file_note(&r->file, inode, slot);
	return true;
}

/* What is swapped out belongs to the group whose memory it is, not to the one that takes it. */
static __always_inline struct bio *bio_of_owner(struct request *rq)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);

	return bio && !bio_is_swap(rq, bio) ? bio : NULL;
}

/* A disk that never completes anything is known from its first request on, or counted as lost. */
static __always_inline void request_note_disk(struct request *rq, __u32 dev, __u64 now)
{
	struct event_block_device *device = device_get(dev, now);
	struct gendisk *disk;

	if (!device || *device->name)
		return;
	disk = compat_request_disk(rq);
	if (disk)
		BPF_CORE_READ_STR_INTO(&device->name, disk, disk_name);
}

/* How a request was seen first. */
enum begin {
	BEGIN_START,
	BEGIN_INSERT,
	BEGIN_ISSUE,
};

/*
 * An issue in the context of the submitter follows the start at once, or at the end of his plug,
 * and on his CPU.
 */
#define LATE_NS 1000000

/*
 * One that the kernel put aside, without an insert, because the device had enough to do: whoever
 * came next, or a kworker, sends it.
 */
static __always_inline bool is_sent_by_another(struct request *rq,
	const struct event_block_request *r, enum begin begin)
{
	return begin == BEGIN_ISSUE && r->issue_ns - r->start_ns > LATE_NS &&
		BPF_CORE_READ(rq, mq_ctx, cpu) != bpf_get_smp_processor_id();
}

/*
 * Called when a request is seen first: at its start or its first insert, which runs in the
 * submitter's context, or else at its first issue. A later one may run in a kworker or in whichever
 * thread was interrupted.
 */
static __always_inline void request_begin(struct request *rq, enum begin begin, __u32 slot)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 key = (__u64)rq, now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
	struct event_block_request r = {};
	struct event_block_flusher *flusher;
	bool is_shared, is_wanted;
	__u32 kind, flags;

	if (!request_describe(rq, &kind, &r.dev))
		return;
	r.bytes = BPF_CORE_READ(rq, __data_len);
	/* A flush without data, for which the queue has a request of its own. */
	if (begin == BEGIN_START && !r.bytes && kind == EVENT_BLOCK_WRITE)
		return;
	request_note_disk(rq, r.dev, now);
	r.kind = (__u8)kind;
	r.stamp = BPF_CORE_READ(rq, start_time_ns);
	/* From 6.13 on the kernel sets it a moment after the start. */
	r.is_new = begin == BEGIN_START;
	r.start_ns = r.stamp && r.stamp < now && !r.is_new ? r.stamp : now;
	r.issue_ns = begin == BEGIN_ISSUE ? now : 0;
	r.sector = BPF_CORE_READ(rq, __sector);
	flusher = flusher_of(rq, kind, &is_shared);
	flags = BPF_CORE_READ(task, flags);
	is_wanted = flusher || filter_task(id >> 32);
	if ((!cfg_common.filter_dev || bpf_map_lookup_elem(&filter_devs, &r.dev)) &&
		(is_wanted || (flags & PF_KTHREAD))) {
		r.thread_start_ns = BPF_CORE_READ(task, start_boottime);
		r.is_inferred = flusher ? flusher->is_kernel : !!(flags & PF_KTHREAD);
		r.is_uncertain = flusher && (is_shared || flusher->is_uncertain);
		if (flusher || r.is_inferred || !is_sent_by_another(rq, &r, begin))
			r.tid = (__u32)id;
		if (!request_note_file(rq, task, flags, &r, is_wanted, slot))
			r.tid = 0;
		if (r.tid)
			thread_note(task, id, flusher ? &flusher->who : NULL, bio_of_owner(rq), &r,
				slot);
	}
	if (bpf_map_update_elem(&block_requests, &key, &r, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
}

/*
 * Whether the noted request is still the one at this address: a later one there has begun later. A
 * request that another one was merged into has the earlier of the two starts.
 */
static __always_inline bool request_is(struct request *rq, const struct event_block_request *r)
{
	__u64 stamp = BPF_CORE_READ(rq, start_time_ns);

	if (r->is_new)
		return true;
	if (r->stamp)
		return stamp && stamp <= r->stamp;
	return !stamp && BPF_CORE_READ(rq, __sector) == r->sector;
}

/*
 * At block_io_start, which is called once for each request, or where the kernel has none (before
 * 6.5) at block_rq_insert.
 */
SEC("raw_tp")
int block_begin_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = compat_block_request(ctx,
		bpf_core_type_exists(btf_trace_block_rq_insert___request));
	struct event_block_request *known;
	__u64 key = (__u64)rq;

	if (bpf_core_type_exists(btf_trace_block_io_start)) {
		request_begin(rq, BEGIN_START, SCRATCH_BEGIN);
		return 0;
	}
	known = bpf_map_lookup_elem(&block_requests, &key);
	/* The driver has put it back into the queue; its submitter is known already. */
	if (known && request_is(rq, known))
		return 0;
	request_begin(rq, BEGIN_INSERT, SCRATCH_BEGIN);
	return 0;
}

SEC("raw_tp/block_rq_issue")
int block_rq_issue_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq =
		compat_block_request(ctx, bpf_core_type_exists(btf_trace_block_rq_issue___request));
	struct event_block_request *known;
	__u64 key = (__u64)rq;

	known = bpf_map_lookup_elem(&block_requests, &key);
	if (!known || !request_is(rq, known)) {
		request_begin(rq, BEGIN_ISSUE, SCRATCH_ISSUE);
		return 0;
	}
	if (known->is_new) {
		known->stamp = BPF_CORE_READ(rq, start_time_ns);
		known->sector = BPF_CORE_READ(rq, __sector);
		known->is_new = 0;
	}
	/*
	 * The first issue counts: when the driver requeues or retries, that is the device's delay.
	 */
	if (!known->issue_ns)
		known->issue_ns = bpf_ktime_get_ns();
	/* Merges may have made it larger. */
	known->bytes = BPF_CORE_READ(rq, __data_len);
	return 0;
}

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u64 us = ns / 1000;
	__u32 bucket = 0;

	if (us >> (EVENT_BLOCK_BUCKETS - 2))
		return EVENT_BLOCK_BUCKETS - 1;
	for (__u32 shift = 16; shift > 0; shift >>= 1) {
		if (us >> shift) {
			us >>= shift;
			bucket += shift;
		}
	}
	return bucket + (us > 0);
}

/* What the completion of a request, or of a part of it, adds to the tables. */
struct completion {
	__u64 queue_ns;
	__u64 device_ns;
	__u64 busy_ns;
	__u64 bytes;
	__u32 kind;
	bool is_last;	/* no part of the request is left */
	bool is_issued; /* when that was is known, and so what of its time it was in the queue */
	bool is_inferred;
	bool is_uncertain;
};

static __always_inline bool has_bytes(const struct completion *c)
{
	return c->kind == EVENT_BLOCK_READ || c->kind == EVENT_BLOCK_WRITE;
}

static __always_inline void work_add(struct event_block_work *work, const struct completion *c)
{
	__sync_fetch_and_add(&work->requests, (__u64)c->is_last);
	__sync_fetch_and_add(&work->bytes, c->bytes);
	__sync_fetch_and_add(&work->busy_ns, c->busy_ns);
}

static __always_inline void load_add(struct event_block_load *load, const struct completion *c)
{
	work_add(&load->kinds[c->kind & (EVENT_BLOCK_KINDS - 1)], c);
	if (c->is_last && c->is_issued && has_bytes(c))
		__sync_fetch_and_add(&load->device_ns, c->device_ns);
	if (c->is_inferred)
		__sync_fetch_and_add(&load->inferred_ns, c->busy_ns);
	if (c->is_uncertain)
		__sync_fetch_and_add(&load->uncertain_ns, c->busy_ns);
}

/*
 * The time that the device spent on this completion: since the one before, or since the request was
 * begun if that was later. Two completions at once may both have it, an error that does not matter.
 */
static __always_inline __u64 device_busy_ns(const struct event_block_device *device, __u64 begin,
	__u64 now)
{
	__u64 since = device && device->completed_ns > begin ? device->completed_ns : begin;

	return since && since < now ? now - since : 0;
}

static __always_inline void device_add(struct event_block_device *device,
	const struct completion *c, __u64 now)
{
	if (!device)
		return;
	load_add(&device->load, c);
	device->completed_ns = now;
	if (!c->is_last || !has_bytes(c))
		return;
	/* Two updates at once may keep the smaller value, an error that does not matter. */
	if (c->device_ns > device->device_max_ns)
		device->device_max_ns = c->device_ns;
	if (!c->is_issued)
		return;
	__sync_fetch_and_add(&device->queue[bucket_of(c->queue_ns) & (EVENT_BLOCK_BUCKETS - 1)], 1);
	__sync_fetch_and_add(&device->device[bucket_of(c->device_ns) & (EVENT_BLOCK_BUCKETS - 1)],
		1);
	if (c->queue_ns > device->queue_max_ns)
		device->queue_max_ns = c->queue_ns;
}

static __always_inline void submitter_add(struct request *rq, const struct event_block_request *r,
	const struct completion *c)
{
	struct kernfs_node *owner = r->is_inferred ? owner_of(bio_of_owner(rq)) : NULL;
	struct event_block_thread_key key = { r->dev, r->tid, r->thread_start_ns, 0 };
	struct event_block_file_key file_key = r->file;
	struct event_block_thread *thread;
	struct event_block_file *file;
	bool is_lost = false;

	if (r->tid) {
		if (owner)
			key.owner = BPF_CORE_READ(owner, id);
		thread = bpf_map_lookup_elem(&threads, &key);
		if (!thread && owner) {
			key.owner = 0;
			thread = bpf_map_lookup_elem(&threads, &key);
		}
		is_lost = !thread;
		if (thread)
			load_add(&thread->load, c);
	}
	if (r->has_file) {
		file = bpf_map_lookup_elem(&files, &file_key);
		is_lost |= !file;
		if (file)
			load_add(&file->load, c);
	}
	if (is_lost && c->is_last)
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
}

/* Its pages, or the request of a direct write, still say which file it was for. */
static __always_inline void file_add_before(struct request *rq, __u32 dev,
	const struct completion *c)
{
	struct event_block_file_key key = { .dev = dev };
	struct bio *bio = BPF_CORE_READ(rq, bio);
	struct event_block_file *file;
	struct inode *inode;

	/* Whose it was is what a filter would ask for. */
	if (!bio || !has_bytes(c) || bio_is_swap(rq, bio) || cfg_common.filter_pid ||
		cfg_common.filter_cgroups ||
		(cfg_common.filter_dev && !bpf_map_lookup_elem(&filter_devs, &dev)))
		return;
	inode = inode_of_direct(bio);
	if (!inode)
		inode = inode_of_page(bio);
	if (!inode || BPF_CORE_READ(inode, i_sb, s_magic) == BDEVFS_MAGIC)
		return;
	file_identify(&key, inode);
	if (!file_note(&key, inode, SCRATCH_COMPLETE))
		return;
	file = bpf_map_lookup_elem(&files, &key);
	if (file)
		work_add(&file->before, c);
}

/* A request that began before the attach: its length is known, its submitter is not. */
static __always_inline void complete_unknown(struct request *rq, struct completion *c, __u64 now)
{
	struct event_block_device *device;
	__u64 stamp;
	__u32 dev;

	if (!request_describe(rq, &c->kind, &dev))
		return;
	/*
	 * A flush without data, or the second completion of a write that is flushed. The flush
	 * itself is a request of the device's queue and is counted as such.
	 */
	if (!c->bytes && has_bytes(c))
		return;
	stamp = BPF_CORE_READ(rq, start_time_ns);
	c->device_ns = stamp && stamp < now ? now - stamp : 0;
	device = device_get(dev, now);
	c->busy_ns = device_busy_ns(device, stamp, now);
	device_add(device, c, now);
	/*
	 * A later one found the map of requests full, or block_request_check() deleted its entry.
	 * Both have been counted as a loss.
	 */
	if (!device || stamp > device->seen_ns)
		return;
	work_add(&device->before, c);
	file_add_before(rq, dev, c);
}

SEC("raw_tp/block_rq_complete")
int block_rq_complete_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = (struct request *)ctx->args[0];
	struct event_block_device *device;
	struct event_block_request *known;
	struct completion c = { .bytes = (__u32)ctx->args[2] };
	__u64 key = (__u64)rq, now = bpf_ktime_get_ns();

	c.is_last = c.bytes >= BPF_CORE_READ(rq, __data_len);
	known = bpf_map_lookup_elem(&block_requests, &key);
	if (!known || !request_is(rq, known)) {
		complete_unknown(rq, &c, now);
		return 0;
	}
	c.kind = known->kind;
	c.is_inferred = known->is_inferred;
	c.is_uncertain = known->is_uncertain;
	c.is_issued = known->issue_ns > 0;
	c.queue_ns = known->issue_ns > known->start_ns ? known->issue_ns - known->start_ns : 0;
	c.device_ns = known->issue_ns ? now - known->issue_ns : 0;
	device = device_get(known->dev, now);
	c.busy_ns =
		device_busy_ns(device, known->issue_ns ? known->issue_ns : known->start_ns, now);
	device_add(device, &c, now);
	submitter_add(rq, known, &c);
	if (c.is_last)
		bpf_map_delete_elem(&block_requests, &key);
	return 0;
}

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN. Args are the address and the stamp
 * of a request. Returns 1 while that is in flight. A request that was merged into another one has
 * no completion of its own; its entry is deleted here.
 */
SEC("raw_tp")
int block_request_check(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = (struct request *)ctx->args[0];
	__u64 key = (__u64)rq;
	struct event_block_request *known = bpf_map_lookup_elem(&block_requests, &key);
	__u64 stamp = BPF_CORE_READ(rq, start_time_ns), noted = ctx->args[1];
	int references = 0;

	if (!known || known->stamp != noted)
		return 0;
	/* An atomic_t, or a refcount_t that holds one (up to 6.0). */
	bpf_probe_read_kernel(&references, sizeof(references),
		(void *)rq + bpf_core_field_offset(struct request, ref));
	if (request_is(rq, known) && references && (!known->bytes || BPF_CORE_READ(rq, bio)))
		return 1;
	/* It may have completed meanwhile, and the entry be that of the next request here. */
	known = bpf_map_lookup_elem(&block_requests, &key);
	if (!known || known->stamp != noted)
		return 0;
	bpf_map_delete_elem(&block_requests, &key);
	/* The next one may have begun between these two calls. */
	if (BPF_CORE_READ(rq, start_time_ns) != stamp && BPF_CORE_READ(rq, bio) &&
		!bpf_map_lookup_elem(&block_requests, &key))
		loss_count(EVENT_LOSS_MAP_FULL);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
