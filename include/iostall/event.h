/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The wire format from kernel to user: what the BPF objects put into the ring buffer and share in maps.
 * Included by bpf/ and src/; the only header both sides see.
 * Never holds a pointer that user space may follow.
 */
#ifndef IOSTALL_EVENT_H
#define IOSTALL_EVENT_H

#ifndef __bpf__
#include <assert.h>
#include <stdint.h>
typedef uint8_t __event_u8;
typedef int8_t __event_s8;
typedef uint16_t __event_u16;
typedef uint32_t __event_u32;
typedef int32_t __event_s32;
typedef uint64_t __event_u64;
typedef int64_t __event_s64;
#else
typedef __u8 __event_u8;
typedef __s8 __event_s8;
typedef __u16 __event_u16;
typedef __u32 __event_u32;
typedef __s32 __event_s32;
typedef __u64 __event_u64;
typedef __s64 __event_s64;
#define static_assert _Static_assert
#endif

#define EVENT_VERSION 1
#define EVENT_COMM_SIZE 16
#define EVENT_STACK_DEPTH 32
#define EVENT_PATH_MAX 4096
/* A name is at most 255 bytes (NAME_MAX); room behind the last byte that may begin one. */
#define EVENT_PATH_SIZE (EVENT_PATH_MAX + 256)

enum event_type {
	EVENT_OPERATION = 1,
};

/* Entries of the filter maps. */
#define EVENT_FILTER_CGROUPS_MAX 8
#define EVENT_FILTER_ENTRIES_MAX 1024
/* A cgroup's own name and its parent's, which is enough to know a unit or a container. */
#define EVENT_CGROUP_NAMES 2
#define EVENT_CGROUP_NAME_SIZE 96

/* `size` is that of the whole event; a reader skips types and versions it does not know. */
struct event_header {
	__event_u32 size;
	__event_u16 type;
	__event_u16 version;
	__event_u64 ts_ns; /* CLOCK_MONOTONIC */
};

enum event_op {
	EVENT_OP_READ,
	EVENT_OP_WRITE,
	EVENT_OP_FSYNC,
	EVENT_OP_SYNC,	   /* a range or a whole file system */
	EVENT_OP_OPEN,
	EVENT_OP_LOOKUP,   /* stat, access, readlink, getdents */
	EVENT_OP_UNLINK,   /* rmdir too */
	EVENT_OP_RENAME,   /* link, symlink, mkdir, mknod too: an entry is made */
	EVENT_OP_TRUNCATE,
	EVENT_OP_ALLOCATE, /* fallocate */
	EVENT_OP_COPY,	   /* sendfile, splice, copy_file_range */
	EVENT_OP_FAULT,	   /* a page of a mapping */
	EVENT_OP_SUBMIT,   /* inside io_submit() or io_uring_enter() */
	EVENT_OP_OTHER,	   /* any other system call */
	EVENT_OP_KERNEL,   /* a kernel thread */
	EVENT_OP_COUNT,
	EVENT_OP_NONE = EVENT_OP_COUNT, /* sleeps in it are of no interest */
};

enum event_flags {
	EVENT_FINISHED = 1 << 0,       /* returned; else in flight, and dur_ns is its age */
	EVENT_PATH_COMPLETE = 1 << 1,  /* the walk reached the root of the mount namespace */
	EVENT_PATH_DELETED = 1 << 2,   /* the name was unlinked */
	EVENT_PATH_DETACHED = 1 << 3,  /* ended at a mount or tree that hangs nowhere */
	EVENT_PATH_IN_FS = 1 << 4,     /* begins at the root of the file system, not of the namespace */
	EVENT_PATH_GIVEN = 1 << 5,     /* one string, as the program passed it */
	EVENT_BEFORE_ARM = 1 << 6,     /* was found asleep: the start is the latest it can be */
	EVENT_NO_RET = 1 << 7,	       /* the result is not known */
	EVENT_IOWAIT = 1 << 8,	       /* the scheduler counts the sleep as waiting for I/O */
	EVENT_STACK_ASLEEP = 1 << 9,   /* the stack is that of the sleep, not of the return */
};

/*
 * One operation on a file. `path` holds path_len bytes: the names from the file up to the root, each
 * ended by NUL. `dev` is the device of the file system, or of the block device itself when the file is
 * one; encoded as in the kernel: major << 20 | minor.
 */
struct event_operation {
	struct event_header header;
	__event_u64 start_ns;
	__event_u64 dur_ns;
	__event_s64 offset; /* -1: not known */
	__event_u64 bytes;
	__event_s64 ret;
	__event_u64 inode;
	__event_u64 cgroup_id;
	__event_u64 process_start_ns; /* CLOCK_BOOTTIME, of the thread group's leader */
	__event_u32 pid;
	__event_u32 tid;
	__event_u32 uid;
	__event_u32 dev;
	__event_u32 mount_ns; /* inode number of the mount namespace */
	__event_s32 fd;	      /* -1: not found in the thread's file table */
	__event_u16 op;
	__event_u16 flags;
	__event_u32 stack_len; /* frames */
	__event_u32 path_len;  /* bytes */
	char comm[EVENT_COMM_SIZE];
	__event_u32 probe;     /* enum config_probe_name of the user side */
	__event_u64 slept_ns;  /* of dur_ns, in all sleeps together; 0: not measured */
	__event_u32 sleeps;    /* how many of them; 0: not counted */
	__event_s32 syscall;   /* number of the system call; -1: in none, or not known */
	char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE];
	__event_u64 stack[EVENT_STACK_DEPTH];
	char path[EVENT_PATH_SIZE];
};

enum event_inflight_flags {
	EVENT_INFLIGHT_POS_IS_ADDRESS = 1 << 0, /* of an loff_t on the caller's stack */
	EVENT_INFLIGHT_VECTOR = 1 << 1,		/* `buf` is an iovec of the caller, `bytes` its length */
	EVENT_INFLIGHT_BARE = 1 << 2,		/* `buf` and `bytes` say nothing */
	EVENT_INFLIGHT_SYSCALL = 1 << 3,	/* the function inside is no operation of its own */
	/* Not a flag but a unit: calls of the same kind that are in flight inside this one. */
	EVENT_INFLIGHT_NESTED = 1 << 4,
};

/* An operation in flight, of one thread: the pairing maps' value. start_ns 0: none. */
struct event_inflight {
	__event_u64 start_ns;
	__event_u64 file; /* struct file * */
	__event_u64 pos;  /* the offset itself, unless flags say otherwise */
	__event_u64 buf;  /* user address, to compare with the thread's system call arguments */
	__event_u64 bytes;
	__event_u64 task; /* struct task_struct * */
	__event_u32 pid;
	__event_u32 tid; /* whose the entry is; 0: nobody's */
	__event_s32 fd; /* -1: not known at entry */
	__event_u8 op; /* enum event_op */
	__event_u8 probe; /* enum config_probe_name of the user side */
	__event_u8 flags; /* enum event_inflight_flags */
	__event_u8 shared; /* of a slot: another thread has an entry elsewhere for want of it */
};

/*
 * A request in flight, which no thread need wait for: keyed by its address in the kernel, or by what
 * else names it. All behind `op` is there to tell whether it still is that request.
 */
struct event_request {
	struct event_inflight op; /* pos is the offset, tid that of the submitter */
	__event_u64 request;
	__event_u64 context;   /* ring or context it was submitted to */
	__event_u64 user_data; /* by which the program knows it */
	__event_u64 inode;     /* number; 0: the file was not known at the submission */
};

/* Which argument of a system call is what, by number; -1: none. Made by user space, per architecture. */
struct event_syscall {
	__event_u8 op; /* enum event_op */
	__event_s8 fd;
	__event_s8 path; /* a string of the caller */
	__event_s8 offset;
	__event_s8 bytes;
	__event_u8 reserved[3];
};
#define EVENT_SYSCALLS_MAX 512

/* The file whose page a thread is about to fault in, keyed by thread id: probe `fault`. */
struct event_fault {
	__event_u64 inode; /* struct inode * */
	__event_u64 file;  /* struct file *; 0: only the inode is known */
	__event_u64 pos;
	__event_u64 faults; /* of the thread so far: counted when one is done */
};

/* What a thread slept in, keyed by thread id. op.start_ns is when it first fell asleep in it; 0: none. */
#define EVENT_SLEEP_PATH_SIZE 128
struct event_sleep {
	struct event_inflight op;
	__event_u64 asleep_ns; /* since when; 0: awake */
	__event_u64 woken_ns;
	__event_u64 slept_ns;
	__event_u64 inode; /* struct inode *: whether the file is still that file, or all there is */
	__event_u64 ino;   /* its number */
	__event_u64 identity[4]; /* what differs between two calls alike */
	__event_s32 syscall;
	__event_u32 sleeps;
	__event_u32 flags; /* enum event_flags */
	__event_u32 stack_len;
	__event_u64 stack[EVENT_STACK_DEPTH];
	char path[EVENT_SLEEP_PATH_SIZE]; /* as given by the program, when it gave one */
};

/*
 * Which file a thread submitted I/O on last: by thread id in the map `thread_files`, written by the probes
 * of asynchronous paths, read by `block` in the same thread.
 */
struct event_thread_file {
	__event_u64 inode; /* struct inode *, which may be another file's by now: then ino tells */
	__event_u64 ino;
};

/* Tables of probe `block`; a request that finds one full is counted. */
#define EVENT_BLOCK_DEVICES_MAX 64
#define EVENT_BLOCK_THREADS_MAX 4096
#define EVENT_BLOCK_FILES_MAX 2048
#define EVENT_BLOCK_CGROUPS_MAX 256
#define EVENT_THREAD_FILES_MAX 4096
/* Bucket 0 holds what took less than 1 us, bucket i what took from 2^(i-1) us to 2^i, the last the rest. */
#define EVENT_BLOCK_BUCKETS 32
#define EVENT_BLOCK_PATH_SIZE 512

/* Requests that were completed. */
struct event_block_load {
	__event_u64 read_requests;
	__event_u64 write_requests;
	__event_u64 other_requests; /* flushes, discards: without bytes */
	__event_u64 read_bytes;
	__event_u64 write_bytes;
	__event_u64 device_ns;	    /* from issue to completion, added up */
	__event_u64 inferred_bytes; /* that a kernel thread submitted, for somebody else */
};

struct event_block_device {
	struct event_block_load load;
	__event_u64 queue_max_ns;
	__event_u64 device_max_ns;
	__event_u64 completed_ns; /* when the last was; 0: none yet */
	__event_u64 queue[EVENT_BLOCK_BUCKETS];
	__event_u64 device[EVENT_BLOCK_BUCKETS];
};

struct event_block_thread_key {
	__event_u32 dev;
	__event_u32 tid;
};

struct event_block_thread {
	struct event_block_load load;
	__event_u64 cgroup_id;
	__event_u32 pid;
	__event_u32 reserved;
	char comm[EVENT_COMM_SIZE];
	char process_comm[EVENT_COMM_SIZE];
};

/* Inode 0: metadata of the file system on the block device fs_dev. */
struct event_block_file_key {
	__event_u64 inode;
	__event_u32 fs_dev; /* of the file system */
	__event_u32 dev;    /* of the disk */
};

struct event_block_file {
	struct event_block_load load;
	__event_u32 flags; /* enum event_flags */
	__event_u32 path_len;
	char path[EVENT_BLOCK_PATH_SIZE]; /* as in struct event_operation, maybe cut off in a name */
};

struct event_block_cgroup {
	char names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE];
};

enum event_block_kind {
	EVENT_BLOCK_READ,
	EVENT_BLOCK_WRITE,
	EVENT_BLOCK_OTHER,
};

/* A request in flight, keyed by the address of its struct request. */
struct event_block_request {
	__event_u64 stamp; /* start_time_ns of the request: another one, another request */
	__event_u64 start_ns;
	__event_u64 issue_ns; /* 0: not yet given to the device */
	__event_u64 sector;
	struct event_block_file_key file; /* all zero: not known */
	__event_u32 bytes;
	__event_u32 dev;
	__event_u32 tid; /* 0: nobody is charged */
	__event_u8 kind; /* enum event_block_kind */
	__event_u8 is_inferred;
	__event_u8 has_file;
	__event_u8 reserved;
};

/* What the BPF side itself can lose; indices of the per-CPU map `losses`. */
enum event_loss {
	EVENT_LOSS_RING_FULL,
	EVENT_LOSS_MAP_FULL,
	EVENT_LOSS_RETURN_MISSED,
	EVENT_LOSS_PATH_TRUNCATED,
	EVENT_LOSS_ACCOUNT_FULL,
	EVENT_LOSS_COUNT,
};

static_assert(sizeof(struct event_header) == 16, "wire format");
static_assert(__builtin_offsetof(struct event_operation, stack) == 344, "wire format");
static_assert(__builtin_offsetof(struct event_operation, path) == 600, "wire format");
static_assert(sizeof(struct event_inflight) == 64, "wire format");
static_assert(sizeof(struct event_request) == 96, "wire format");
static_assert(sizeof(struct event_block_device) == 592, "wire format");
static_assert(sizeof(struct event_block_thread) == 104, "wire format");
static_assert(sizeof(struct event_block_file) == 576, "wire format");
static_assert(sizeof(struct event_block_request) == 64, "wire format");

#endif
