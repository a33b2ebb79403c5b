/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `block`: requests of block devices, from the queue to the device to their end.
 *
 * Every request in flight has an entry, keyed by its address; when it ends it is charged to its device and
 * to the thread and the file it was for. Nothing leaves by the ring buffer: user space reads the tables.
 */

/* Insert and issue may interrupt one another: a slot for each, in `fresh_files` too. */
enum scratch_slot {
	SCRATCH_INSERT,
	SCRATCH_ISSUE,
	SCRATCH_COUNT,
};

#include "common.bpf.h"

/* Values from include/uapi/linux/magic.h. */
#define BDEVFS_MAGIC 0x62646576
#define TMPFS_MAGIC 0x01021994
#define HUGETLBFS_MAGIC 0x958458f6

/* include/linux/blk_types.h; what is from 32 on is a command of the driver's own. */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_WRITE_SAME 7
#define REQ_OP_WRITE_ZEROES 9
#define REQ_OP_DRIVER 32

/* A bio that was split hangs below what is left of it, that perhaps below another. */
#define BIO_PARENTS_MAX 4

/* Where what a bio ends in says whose it is; 0 where the kernel has no such function. */
extern const void iomap_dio_bio_end_io __ksym __weak;
extern const void bio_chain_endio __ksym __weak;
extern const void end_swap_bio_read __ksym __weak;

/* Not an LRU map: the oldest request is the one that matters. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct event_block_request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_DEVICES_MAX);
	__type(key, __u32);
	__type(value, struct event_block_device);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_THREADS_MAX);
	__type(key, struct event_block_thread_key);
	__type(value, struct event_block_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_FILES_MAX);
	__type(key, struct event_block_file_key);
	__type(value, struct event_block_file);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_CGROUPS_MAX);
	__type(key, __u64);
	__type(value, struct event_block_cgroup);
} cgroups SEC(".maps");

/* Too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_COUNT);
	__type(key, __u32);
	__type(value, struct event_block_file);
} fresh_files SEC(".maps");

static const struct event_block_device no_device = {};

static __always_inline __u32 request_kind(__u32 op)
{
	switch (op) {
	case REQ_OP_READ:
		return EVENT_BLOCK_READ;
	case REQ_OP_WRITE:
	case REQ_OP_WRITE_SAME:
	case REQ_OP_WRITE_ZEROES:
		return EVENT_BLOCK_WRITE;
	}
	return EVENT_BLOCK_OTHER;
}

/* False for what is no I/O of a disk. */
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

static __always_inline struct event_block_device *device_get(__u32 dev)
{
	struct event_block_device *device = bpf_map_lookup_elem(&devices, &dev);

	if (device)
		return device;
	bpf_map_update_elem(&devices, &dev, &no_device, BPF_NOEXIST);
	device = bpf_map_lookup_elem(&devices, &dev);
	if (!device)
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
	return device;
}

/* Between memory and swap: no operation's own, whichever was under way. Only a write has the flag. */
static __always_inline bool bio_is_swap(struct request *rq, struct bio *bio)
{
	void *end = BPF_CORE_READ(bio, bi_end_io);

	if (end && end == &end_swap_bio_read)
		return true;
	if (!bpf_core_enum_value_exists(enum req_flag_bits, __REQ_SWAP))
		return false;
	return BPF_CORE_READ(rq, cmd_flags) >>
		       (bpf_core_enum_value(enum req_flag_bits, __REQ_SWAP) & 31) & 1;
}

/* Direct I/O by way of iomap, as on ext4 and XFS, by whichever thread submits it. */
static __always_inline struct inode *inode_of_direct(struct bio *bio)
{
	void *end = BPF_CORE_READ(bio, bi_end_io);
	struct iomap_dio *dio;

	for (int i = 0; i < BIO_PARENTS_MAX && end && end == &bio_chain_endio; i++) {
		bio = BPF_CORE_READ(bio, bi_private);
		end = BPF_CORE_READ(bio, bi_end_io);
	}
	if (!end || end != &iomap_dio_bio_end_io)
		return NULL;
	dio = BPF_CORE_READ(bio, bi_private);
	return BPF_CORE_READ(dio, iocb, ki_filp, f_inode);
}

/* Buffered I/O: whose page it is; NULL when it is a page of a process. */
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
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	/* Shared memory of a process, the buffer of direct I/O. */
	if (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC)
		return NULL;
	return inode;
}

/* The file of the operation that the current thread is in, or of its last submission. */
static __always_inline struct inode *inode_of_thread(struct task_struct *task, __u32 tid, __u32 flags)
{
	struct event_thread_file *submitted;
	struct compat_syscall call = {};
	struct inode *inode;
	struct file *file;

	if (!(flags & (PF_KTHREAD | PF_IO_WORKER))) {
		compat_syscall_read(task, &call);
		if (compat_syscall_is_transfer(call.nr)) {
			file = file_of_fd(task, (__u32)call.args[0]);
			return file ? BPF_CORE_READ(file, f_inode) : NULL;
		}
		if (!compat_syscall_is_submit(call.nr))
			return NULL;
	}
	submitted = bpf_map_lookup_elem(&thread_files, &tid);
	if (!submitted)
		return NULL;
	inode = (struct inode *)submitted->inode;
	return BPF_CORE_READ(inode, i_ino) == submitted->ino ? inode : NULL;
}

/* Makes the file's entry when it has none, with its name of now. False when there is no room. */
static __always_inline bool file_note(struct event_block_file_key *key, struct inode *inode, __u32 slot)
{
	struct event_block_file *fresh;
	struct event_operation *e;

	if (bpf_map_lookup_elem(&files, key))
		return true;
	fresh = bpf_map_lookup_elem(&fresh_files, &slot);
	e = bpf_map_lookup_elem(&scratch, &slot);
	if (!fresh || !e)
		return false;
	e->flags = 0;
	e->path_len = 0;
	if (key->inode)
		inode_path_collect(inode, e);
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

/* Which file the request is for, if it can be told. */
static __always_inline void request_note_file(struct request *rq, struct task_struct *task,
	__u32 task_flags, struct event_block_request *r, __u32 slot)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);
	struct inode *inode, *named;
	bool is_metadata = false;

	if (!bio || r->kind == EVENT_BLOCK_OTHER || bio_is_swap(rq, bio))
		return;
	inode = inode_of_direct(bio);
	if (!inode)
		inode = inode_of_page(bio);
	if (!inode) {
		inode = inode_of_thread(task, r->tid, task_flags);
	} else if (BPF_CORE_READ(inode, i_sb, s_magic) == BDEVFS_MAGIC) {
		/* Of the file system on the device, unless somebody has opened the device itself. */
		named = inode_of_thread(task, r->tid, task_flags);
		is_metadata = !named || (BPF_CORE_READ(named, i_mode) & S_IFMT) != S_IFBLK;
		inode = is_metadata ? inode : named;
	}
	if (!inode)
		return;
	r->file.dev = r->dev;
	r->file.fs_dev = is_metadata ? BPF_CORE_READ(inode, i_rdev) :
				       BPF_CORE_READ(inode, i_sb, s_dev);
	r->file.inode = is_metadata ? 0 : BPF_CORE_READ(inode, i_ino);
	r->has_file = file_note(&r->file, inode, slot);
}

static __always_inline void cgroup_note(struct task_struct *task, __u64 *ret_id)
{
	struct kernfs_node *node = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	struct kernfs_node *parent = compat_cgroup_parent(node);
	struct event_block_cgroup fresh = {};

	*ret_id = BPF_CORE_READ(node, id);
	if (bpf_map_lookup_elem(&cgroups, ret_id))
		return;
	bpf_probe_read_kernel_str(fresh.names[0], EVENT_CGROUP_NAME_SIZE,
		BPF_CORE_READ(node, name));
	if (parent)
		bpf_probe_read_kernel_str(fresh.names[1], EVENT_CGROUP_NAME_SIZE,
			BPF_CORE_READ(parent, name));
	if (bpf_map_update_elem(&cgroups, ret_id, &fresh, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
}

static __always_inline void thread_note(struct task_struct *task, __u32 pid,
	struct event_block_request *r)
{
	struct event_block_thread_key key = { r->dev, r->tid };
	struct event_block_thread fresh = {};

	if (bpf_map_lookup_elem(&threads, &key))
		return;
	cgroup_note(task, &fresh.cgroup_id);
	fresh.pid = pid;
	BPF_CORE_READ_INTO(&fresh.comm, task, comm);
	BPF_CORE_READ_INTO(&fresh.process_comm, task, group_leader, comm);
	if (bpf_map_update_elem(&threads, &key, &fresh, BPF_ANY) < 0) {
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
		r->tid = 0;
	}
}

/*
 * At the first of insert and issue, which is in the submitter's context: later ones may be in that of a
 * kworker or of whoever was interrupted.
 */
static __always_inline void request_begin(struct request *rq, bool is_issued, __u32 slot)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 key = (__u64)rq, now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
	struct event_block_request r = {};
	__u32 kind, flags;

	if (!request_describe(rq, &kind, &r.dev))
		return;
	r.kind = (__u8)kind;
	r.stamp = BPF_CORE_READ(rq, start_time_ns);
	r.start_ns = r.stamp && r.stamp < now ? r.stamp : now;
	r.issue_ns = is_issued ? now : 0;
	r.sector = BPF_CORE_READ(rq, __sector);
	r.bytes = BPF_CORE_READ(rq, __data_len);
	if ((!cfg_filter_dev || bpf_map_lookup_elem(&filter_devs, &r.dev)) && filter_task(id >> 32)) {
		flags = BPF_CORE_READ(task, flags);
		r.tid = (__u32)id;
		r.is_inferred = !!(flags & PF_KTHREAD);
		request_note_file(rq, task, flags, &r, slot);
		thread_note(task, id >> 32, &r);
	}
	if (bpf_map_update_elem(&requests, &key, &r, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
}

/*
 * The very request that is noted, and not a later one that lives in the same place: that has begun later.
 * One that another was merged into takes the earlier beginning of the two.
 */
static __always_inline bool request_is(struct request *rq, const struct event_block_request *r)
{
	__u64 stamp = BPF_CORE_READ(rq, start_time_ns);

	if (r->stamp)
		return stamp && stamp <= r->stamp;
	return !stamp && BPF_CORE_READ(rq, __sector) == r->sector;
}

SEC("raw_tp/block_rq_insert")
int block_rq_insert_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = compat_block_request(ctx,
		bpf_core_type_exists(btf_trace_block_rq_insert___request));
	struct event_block_request *known;
	__u64 key = (__u64)rq;

	known = bpf_map_lookup_elem(&requests, &key);
	/* Put back by the driver: it waits on, and it was its submitter's before. */
	if (known && request_is(rq, known))
		return 0;
	request_begin(rq, false, SCRATCH_INSERT);
	return 0;
}

SEC("raw_tp/block_rq_issue")
int block_rq_issue_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = compat_block_request(ctx,
		bpf_core_type_exists(btf_trace_block_rq_issue___request));
	struct event_block_request *known;
	__u64 key = (__u64)rq;

	known = bpf_map_lookup_elem(&requests, &key);
	if (!known || !request_is(rq, known)) {
		request_begin(rq, true, SCRATCH_ISSUE);
		return 0;
	}
	/* The first one counts: what the driver puts back or repeats is the device's delay. */
	if (!known->issue_ns)
		known->issue_ns = bpf_ktime_get_ns();
	/* Grown by merges. */
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

/* How one request, or a part of it, adds to what is counted. */
struct completion {
	__u64 queue_ns;
	__u64 device_ns;
	__u64 bytes;
	__u32 kind;
	bool is_last; /* part of the request */
	bool is_inferred;
};

static __always_inline void load_add(struct event_block_load *load, const struct completion *c)
{
	__u64 last = c->is_last;

	if (c->kind == EVENT_BLOCK_READ) {
		__sync_fetch_and_add(&load->read_requests, last);
		__sync_fetch_and_add(&load->read_bytes, c->bytes);
	} else if (c->kind == EVENT_BLOCK_WRITE) {
		__sync_fetch_and_add(&load->write_requests, last);
		__sync_fetch_and_add(&load->write_bytes, c->bytes);
	} else {
		__sync_fetch_and_add(&load->other_requests, last);
		return;
	}
	if (c->is_last)
		__sync_fetch_and_add(&load->device_ns, c->device_ns);
	if (c->is_inferred)
		__sync_fetch_and_add(&load->inferred_bytes, c->bytes);
}

static __always_inline void device_add(__u32 dev, const struct completion *c, __u64 now)
{
	struct event_block_device *device = device_get(dev);

	if (!device)
		return;
	load_add(&device->load, c);
	device->completed_ns = now;
	if (!c->is_last || c->kind == EVENT_BLOCK_OTHER)
		return;
	__sync_fetch_and_add(&device->queue[bucket_of(c->queue_ns) & (EVENT_BLOCK_BUCKETS - 1)], 1);
	__sync_fetch_and_add(&device->device[bucket_of(c->device_ns) & (EVENT_BLOCK_BUCKETS - 1)], 1);
	/* Two at once may leave the lesser one, by which it is off a little. */
	if (c->queue_ns > device->queue_max_ns)
		device->queue_max_ns = c->queue_ns;
	if (c->device_ns > device->device_max_ns)
		device->device_max_ns = c->device_ns;
}

static __always_inline void submitter_add(const struct event_block_request *r, const struct completion *c)
{
	struct event_block_thread_key key = { r->dev, r->tid };
	struct event_block_file_key file_key = r->file;
	struct event_block_thread *thread;
	struct event_block_file *file;

	if (r->tid) {
		thread = bpf_map_lookup_elem(&threads, &key);
		if (thread)
			load_add(&thread->load, c);
	}
	if (r->has_file) {
		file = bpf_map_lookup_elem(&files, &file_key);
		if (file)
			load_add(&file->load, c);
	}
}

SEC("raw_tp/block_rq_complete")
int block_rq_complete_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = (struct request *)ctx->args[0];
	struct event_block_request *known;
	struct completion c = { .bytes = (__u32)ctx->args[2] };
	__u64 key = (__u64)rq, now = bpf_ktime_get_ns(), stamp;
	__u32 dev;

	c.is_last = c.bytes >= BPF_CORE_READ(rq, __data_len);
	known = bpf_map_lookup_elem(&requests, &key);
	if (known && request_is(rq, known)) {
		c.kind = known->kind;
		c.is_inferred = known->is_inferred;
		c.queue_ns = known->issue_ns > known->start_ns ? known->issue_ns - known->start_ns : 0;
		c.device_ns = known->issue_ns ? now - known->issue_ns : 0;
		device_add(known->dev, &c, now);
		submitter_add(known, &c);
		if (c.is_last)
			bpf_map_delete_elem(&requests, &key);
		return 0;
	}
	/* In flight since before the attach: how long it took is known, who sent it is not. */
	if (!request_describe(rq, &c.kind, &dev))
		return 0;
	/*
	 * A flush that carries nothing, or the second end of a write that is flushed: the flush itself is a
	 * request of the device's queue and is counted as that.
	 */
	if (!c.bytes && c.kind != EVENT_BLOCK_OTHER)
		return 0;
	stamp = BPF_CORE_READ(rq, start_time_ns);
	c.device_ns = stamp && stamp < now ? now - stamp : 0;
	device_add(dev, &c, now);
	return 0;
}

/*
 * Run by user space through BPF_PROG_TEST_RUN, never attached: args are the address and the stamp of a
 * request in flight. Returns 1 when it still is. One that was merged into another leaves the queue without
 * an end of its own: its entry is removed here.
 */
SEC("raw_tp")
int block_request_check(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = (struct request *)ctx->args[0];
	__u64 key = (__u64)rq;
	struct event_block_request *known = bpf_map_lookup_elem(&requests, &key);
	int references = 0;

	if (!known || known->stamp != ctx->args[1])
		return 0;
	/* atomic_t, or refcount_t around one (up to 6.0). */
	bpf_probe_read_kernel(&references, sizeof(references),
		(void *)rq + bpf_core_field_offset(struct request, ref));
	if (request_is(rq, known) && references && (!known->bytes || BPF_CORE_READ(rq, bio)))
		return 1;
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
