/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel types in use, declared by hand with the members in use, relocated at load (CO-RE).
 * Included first by every BPF object, instead of the vmlinux.h of some build host.
 * Never describes a layout: offsets and sizes come from the running kernel's BTF.
 */
#ifndef IOSTALL_KERNEL_BPF_H
#define IOSTALL_KERNEL_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>

/* Makes bpf_tracing.h use the register names of the declarations below. */
#define __VMLINUX_H__

typedef __u32 dev_t;
typedef __kernel_loff_t loff_t;
#ifndef bool
#define bool _Bool
#define true 1
#define false 0
#endif
#define NULL ((void *)0)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct hlist_node {
	struct hlist_node *next;
};

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

/* dentry from 7.1 on, see compat_dentry_of_alias(). */
struct dentry___anonymous {
	struct hlist_node d_alias;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mnt_namespace;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns; /* NULL: it has been unmounted */
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct super_block {
	dev_t s_dev;
	unsigned long s_magic;
};

/*
 * Up to 5.7 the lock of a memory map has another name, and the lock of a real-time kernel neither
 * of the two members; see compat_rwsem_tells_owner().
 */
struct rw_semaphore {
	struct {
		long counter;
	} count;
	struct {
		long counter;
	} owner;
};

struct mm_struct {
	struct rw_semaphore mmap_lock;
};

struct inode {
	struct rw_semaphore i_rwsem;
	unsigned short i_mode;
	dev_t i_rdev;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	unsigned int i_generation;
	loff_t i_size;
	struct hlist_head i_dentry;
};

/* Since 6.9 its members are in a part of it. */
struct file_lock_core {
	unsigned char flc_type;
};

struct file_lock {
	struct file_lock_core c;
	unsigned char fl_type;
	loff_t fl_start;
	loff_t fl_end;
};

struct mutex {
	struct {
		long counter;
	} owner;
};

struct file {
	struct mutex f_pos_lock;
	struct path f_path;
	struct inode *f_inode;
	unsigned int f_flags;
	unsigned int f_mode;
	loff_t f_pos;
	void *private_data;
};

struct sock_common {
	unsigned short skc_family;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
};

struct unix_sock {
	struct sock *peer;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct address_space {
	struct inode *host;
};

struct vm_area_struct {
	struct file *vm_file;
};

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct kernfs_node {
	struct kernfs_node *parent;
	const char *name;
	__u64 id;
};

/* kernfs_node before and after 6.15, see compat_cgroup_parent(). */
struct kernfs_node___rcu {
	struct kernfs_node *__parent;
};

struct cgroup_root;

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct xarray {
	void *xa_head;
};

struct xa_node {
	unsigned char shift;
	void *slots[64];
};

struct idr {
	struct xarray idr_rt;
};

struct pid_namespace {
	struct idr idr;
};

struct upid {
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct hlist_head tasks[4];
	struct upid numbers[1];
};

struct sched_entity {
	__u64 exec_start;
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
};

struct task_io_accounting {
	__u64 syscr;
	__u64 syscw;
	__u64 write_bytes;
};

struct thread_info {
	unsigned int status;
	unsigned int cpu;
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int flags;
	unsigned int __state;
	int pid;
	int tgid;
	struct list_head children;
	struct list_head sibling;
	struct pid *thread_pid;
	struct hlist_node pid_links[4];
	void *vfork_done;
	int prio;
	unsigned int in_iowait : 1;
	int on_cpu;
	struct mm_struct *mm;
	struct sched_entity se;
	struct sched_info sched_info;
	struct task_io_accounting ioac;
	unsigned long nvcsw;
	unsigned long min_flt;
	unsigned long maj_flt;
	__u64 start_boottime;
	struct task_struct *group_leader;
	const struct cred *cred;
	char comm[16];
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct css_set *cgroups;
	unsigned long blocker;
};

/* task_struct before 2f064a59a11f ("sched: Change task_struct::state", 5.14). */
struct task_struct___state {
	long state;
};

/* task_struct before bcf9033e5449 ("sched: move CPU field back into thread_info", 5.16). */
struct task_struct___cpu {
	unsigned int cpu;
};

/* Both are members of unions, which are looked through by name. */
struct page {
	unsigned long compound_head;
	struct address_space *mapping;
};

/* page from 7.1 on, see compat_page_mapping(). */
struct page___info {
	unsigned long compound_info;
};

/* page up to 6.2, folio from 6.1 to 6.5 and folio from then on, see compat_folio_order(). */
struct page___order {
	unsigned char compound_order;
};

struct folio___order {
	unsigned char _folio_order;
};

struct folio {
	unsigned long _flags_1;
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter {
	unsigned int bi_idx;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
	struct blkcg_gq *bi_blkg;
};

struct kiocb;

struct iomap_dio {
	struct kiocb *iocb;
};

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
};

struct request_queue {
	struct gendisk *disk;
};

/* Its numbers are the running kernel's. */
enum req_flag_bits {
	__REQ_FUA,
	__REQ_PREFLUSH,
	__REQ_SWAP,
};

struct request;

struct blk_flush_queue {
	unsigned int flush_running_idx : 1;
	struct list_head flush_queue[2];
	struct request *flush_rq;
};

struct blk_mq_hw_ctx {
	struct blk_flush_queue *fq;
};

struct blk_mq_ctx {
	unsigned int cpu;
};

struct request {
	struct request_queue *q;
	struct blk_mq_ctx *mq_ctx;
	struct blk_mq_hw_ctx *mq_hctx;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 __sector;
	struct bio *bio;
	struct bio *biotail;
	struct list_head queuelist;
	__u64 start_time_ns;
	struct {
		int counter;
	} ref;
};

/* request before 5.17, see compat_request_disk(). */
struct request___disk {
	struct gendisk *rq_disk;
};

/* request before 6.6, see compat_request_of_flush(). */
struct request___flush {
	struct {
		struct list_head list;
	} flush;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp;
	unsigned long bx;
	unsigned long ax;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long cx;
	unsigned long r8;
	unsigned long r9;
	unsigned long r10;
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
};
struct pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
	__u64 orig_x0;
	int syscallno;
};
#endif

struct kiocb {
	struct file *ki_filp;
	loff_t ki_pos;
	void (*ki_complete)(struct kiocb *iocb, long ret);
	int ki_flags;
};

struct iov_iter {
	bool data_source;
	unsigned long count;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	atomic_t refs;
} refcount_t;

struct io_event {
	__u64 data;
};

struct aio_kiocb {
	struct kiocb rw;
	struct kioctx *ki_ctx;
	struct io_event ki_res;
	refcount_t ki_refcnt;
};

struct io_fixed_file {
	unsigned long file_ptr;
};

struct io_file_table {
	struct io_fixed_file *files;
};

struct io_ring_ctx {
	unsigned int nr_user_files;
	struct io_file_table file_table;
};

struct io_cqe {
	__u64 user_data;
	int fd;
};

struct io_kiocb {
	struct file *file;
	__u8 opcode;
	unsigned int flags;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
};

/* What begins at io_kiocb.file, by opcode. */
struct io_rw {
	struct kiocb kiocb;
	__u64 addr;
	__u64 len;
};

struct io_sync {
	loff_t len;
	loff_t off;
};

struct io_uring_cqe {
	__u64 user_data;
	__s32 res;
};

/* As they were before or became later, see the compat_uring_*() functions. */
struct io_kiocb___user_data {
	__u64 user_data;
};

struct io_rsrc_node {
	unsigned long file_ptr;
};

struct io_rsrc_data___nodes {
	unsigned int nr;
	struct io_rsrc_node **nodes;
};

struct io_file_table___nodes {
	struct io_rsrc_data___nodes data;
};

struct io_ring_ctx___nodes {
	struct io_file_table___nodes file_table;
};

/* 54e6842d0775 ("fork/vm: Move common PF_IO_WORKER behavior to new flag", 6.4) */
struct kernel_clone_args {
	unsigned int user_worker : 1;
};

#pragma clang attribute pop

/* Prototypes of tracepoints, see compat.bpf.h. */
typedef void (*btf_trace_io_uring_submit_sqe___with_ctx)(void *data, void *ctx, void *req,
	__u8 opcode, __u64 user_data, __u32 flags, bool force_nonblock, bool sq_thread);
typedef void (*btf_trace_io_uring_complete___without_req)(void *data, void *ctx, __u64 user_data,
	int res, unsigned int cflags);
typedef void (*btf_trace_io_uring_complete___with_cqe)(void *data, struct io_ring_ctx *ctx,
	void *req, struct io_uring_cqe *cqe);
/*
 * The tracepoints' own prototypes, to be asked for: a54895fa057c ("block: remove the request_queue
 * to argument request based tracepoints", 5.11, and 5.10 stable) took the queue away.
 */
typedef void (*btf_trace_block_rq_insert___request)(void *, struct request *);
typedef void (*btf_trace_block_io_start)(void *, struct request *);
typedef void (*btf_trace_block_rq_issue___request)(void *, struct request *);
/* e8a676d61c07 ("block: simplify and extend the block_bio_merge tracepoint class", 5.11) */
typedef void (*btf_trace_block_bio_queue___bio)(void *, struct bio *);

/* User space's, include/uapi/linux/uio.h: a stable layout, so not relocated. */
struct iovec {
	void *iov_base;
	unsigned long iov_len;
};

/* User space's, include/uapi/linux/aio_abi.h: a stable layout, so not relocated. */
struct iocb {
	__u64 aio_data;
	__u64 aio_key_and_flags;
	__u16 aio_lio_opcode;
	__s16 aio_reqprio;
	__u32 aio_fildes;
	__u64 aio_buf;
	__u64 aio_nbytes;
	__s64 aio_offset;
};

/*
 * Tracepoint contexts: a stable layout, so not relocated. The number was a long; now what follows
 * it is not initialized.
 */
struct syscall_enter_context {
	__u64 common;
	int id;
	int reserved;
	unsigned long args[6];
};

struct syscall_exit_context {
	__u64 common;
	int id;
	int reserved;
	long ret;
};

#define PF_EXITING 0x4
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000
#define PF_KTHREAD 0x200000
#define S_IFMT 0170000
#define S_IFDIR 0040000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFSOCK 0140000
#define AF_UNIX 1
#define O_APPEND 02000
#define E2BIG 7
#define EEXIST 17
#define ENOSYS 38
#define FMODE_READ 0x1
#define FMODE_WRITE 0x2

#endif
