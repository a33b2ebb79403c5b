/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What BPF programs and the daemon exchange: events in the ring buffer, and the values of maps.
 * Included by bpf/ and src/. It is the only header that both include.
 * Never has a pointer that user space may follow.
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
typedef int16_t __event_s16;
typedef int32_t __event_s32;
typedef uint64_t __event_u64;
typedef int64_t __event_s64;
#define __event_inline inline
#else
typedef __u8 __event_u8;
typedef __s8 __event_s8;
typedef __u16 __event_u16;
typedef __u32 __event_u32;
typedef __s16 __event_s16;
typedef __s32 __event_s32;
typedef __u64 __event_u64;
typedef __s64 __event_s64;
#define __event_inline inline __attribute__((always_inline))
#define INT32_MIN (-2147483647 - 1)
#define static_assert _Static_assert
#endif

#define EVENT_VERSION 2
#define EVENT_COMM_SIZE 16
#define EVENT_DISK_NAME_SIZE 32 /* DISK_NAME_LEN */
#define EVENT_STACK_DEPTH 32
#define EVENT_PATH_MAX 4096
/* A name has at most 255 bytes (NAME_MAX) and may begin at the last byte of the path. */
#define EVENT_PATH_SIZE (EVENT_PATH_MAX + 256)
/* Path, names of the control group, stack. */
#define EVENT_TAIL_SIZE                                                                            \
	(EVENT_PATH_SIZE + EVENT_CGROUP_NAMES * EVENT_CGROUP_NAME_SIZE + EVENT_STACK_DEPTH * 4)

enum event_type {
	EVENT_OPERATION = 1,
};

/* Entries of the filter maps. */
#define EVENT_FILTER_CGROUPS_MAX 8
#define EVENT_FILTER_PIDS_MAX 2048
#define EVENT_FILTER_DEVS_MAX 1024
/* A cgroup's own name and its parent's; these tell the unit or the container. */
#define EVENT_CGROUP_NAMES 2
#define EVENT_CGROUP_NAME_SIZE 96

/*
 * `size` is the size of the whole event. A reader skips types and versions that it does not know.
 */
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
	EVENT_OP_SYNC, /* sync_file_range(), sync() or syncfs() */
	EVENT_OP_OPEN,
	EVENT_OP_LOOKUP, /* stat, access, readlink, getdents */
	EVENT_OP_UNLINK, /* also rmdir */
	EVENT_OP_RENAME, /* also link, symlink, mkdir, mknod: they add a directory entry */
	EVENT_OP_TRUNCATE,
	EVENT_OP_ALLOCATE, /* fallocate */
	EVENT_OP_COPY,	   /* sendfile, splice, copy_file_range */
	EVENT_OP_FAULT,	   /* a page fault on a mapped file */
	EVENT_OP_SUBMIT,   /* inside io_submit() or io_uring_enter() */
	EVENT_OP_OTHER,	   /* any other system call */
	EVENT_OP_KERNEL,   /* a kernel thread */
	EVENT_OP_COUNT,
};

enum event_flags {
	EVENT_FINISHED = 1 << 0, /* it has returned; else it is in flight and dur_ns is its age */
	EVENT_PATH_COMPLETE = 1 << 1, /* the names reach up to the root of the mount namespace */
	EVENT_PATH_DELETED = 1 << 2,  /* the name was unlinked */
	EVENT_PATH_DETACHED =
		1 << 3, /* the names end at a mount or tree that is not attached anywhere */
	EVENT_PATH_IN_FS =
		1 << 4, /* it begins at the root of its file system, not of the namespace */
	EVENT_PATH_GIVEN = 1 << 5, /* one string, as the program passed it */
	EVENT_BEFORE_ARM = 1 << 6, /* it was found asleep; it began at start_ns or earlier */
	EVENT_NO_RET = 1 << 7,	   /* the result is unknown */
	EVENT_IOWAIT = 1 << 8,	   /* the scheduler counts the sleep as waiting for I/O */
	EVENT_STACK_ASLEEP =
		1 << 9,		  /* the stack was taken when it fell asleep, not at the return */
	EVENT_FAILED = 1 << 10,	  /* it failed, however short it was; dur_ns is not known */
	EVENT_UNPROVEN = 1 << 11, /* only its stack can say whether it waits for a file server */
	EVENT_AWAKE = 1 << 12,	  /* no thread slept in it: slept_ns and sleeps 0 are measured */
	EVENT_UNINTERRUPTIBLE = 1 << 13, /* each sleep of its thread in it was in D state */
};

/* What every BPF object is told when it is loaded: its constant cfg_common. */
struct event_settings {
	__event_u64 min_stall_ns;
	__event_u32 probe;	    /* enum config_probe_name of the user side */
	__event_u32 self_pid;	    /* this process is left out; 0: none is */
	__event_u32 cpus;	    /* the highest number of a CPU that is on-line, plus 1 */
	__event_u32 filter_cgroups; /* entries of the map filter_cgroups; 0: every cgroup */
	/* Where a thread's kernel stack has the registers of its program, in bytes; 0: unknown. */
	__event_u32 registers_offset;
	/* Of a thread that the freezer keeps in D state; 0: the kernel has another state for it. */
	__event_u32 frozen_flag;
	__event_u8 filter_pid;
	__event_u8 filter_dev;
	__event_u8 page_shift; /* a page has 1 << page_shift bytes */
	__event_u8 reserved[5];
};

/*
 * A place in a thread's kernel stack, and what it says of the system call if the registers of the
 * program are saved there.
 */
#define EVENT_REGISTERS_PLACES 8
struct event_registers {
	__event_u64 offset; /* from the beginning of the stack, in bytes */
	__event_s64 nr;
	__event_u64 args[3];
};

/*
 * One operation on a file. Only what is used of `path` is sent, since thousands of threads may
 * return at once: path_len bytes are the names from the file up to the root, each ended by NUL;
 * names_len bytes the names of the control group, its own and its parent's, each ended by NUL; then
 * stack_len offsets of 4 bytes from stack_base, the functions of the stack; see event_stack_pack().
 * `dev` is the device of the file system, or the device itself if the file is a block device. It is
 * encoded as in the kernel: major << 20 | minor.
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
	__event_u8 op;
	/* In flight: 'D', 'S' or 'R', as in proc_pid_stat(5), of the thread; 0: it has returned. */
	__event_u8 state;
	__event_u16 flags;
	__event_u16 stack_len; /* frames */
	__event_u16 names_len; /* bytes */
	__event_u32 path_len;  /* bytes */
	char comm[EVENT_COMM_SIZE];
	__event_u32 probe;    /* enum config_probe_name of the user side */
	__event_u64 slept_ns; /* the part of dur_ns in all sleeps together; 0: not measured */
	union {
		__event_u32 sleeps; /* how many sleeps; 0: not counted */
		/* EVENT_FAILED: how many of the process had this error since the last event. */
		__event_u32 failures;
	};
	__event_s32 syscall; /* its number in the machine's own table; -1: none, or unknown */
	__event_u64 stack_base;
	char path[EVENT_TAIL_SIZE];
	/* Not sent: what is put behind the path. */
	char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE];
	__event_s32 stack[EVENT_STACK_DEPTH];
};

/* An operation in flight, with which each value of a map of such begins. start_ns 0: none. */
struct event_inflight {
	__event_u64 start_ns;
	__event_u64 file; /* struct file * */
	__event_u64 pos;  /* the offset; -1: not known */
	__event_u64 bytes;
	__event_u64 task; /* struct task_struct * */
	__event_u32 pid;
	__event_u32 tid;
	__event_s32 fd;	  /* -1: not known */
	__event_u8 op;	  /* enum event_op */
	__event_u8 probe; /* enum config_probe_name of the user side */
	__event_u8 reserved[2];
};

/*
 * A read or write in flight that probe `vfs` has seen begin. The key is the thread id, and in the
 * low half the descriptor.
 */
struct event_call {
	struct event_inflight op;
	__event_u64 inode;    /* struct inode *, to check the file */
	__event_u64 position; /* address of an loff_t that will be behind the operation; 0: none */
	__event_u64 counter; /* reads and writes that the thread had done, where they are counted */
	__event_u64 switches; /* how often the thread had left its CPU by itself */
	__event_u32 nested;   /* calls of these functions inside it that have not returned */
	__event_u32 suspect;  /* so many looks in a row have not found its thread in it */
};

/*
 * A request in flight, for which no thread may be waiting. The key is its address in the kernel, or
 * another number that identifies it. All members after `op` tell whether it is still that request.
 */
struct event_request {
	struct event_inflight op; /* pos is the offset, tid that of the submitter */
	__event_u64 request;
	__event_u64 context;   /* ring or AIO context that it was submitted to */
	__event_u64 user_data; /* the value by which the program identifies it */
	__event_u64 inode;     /* inode number; 0: the file was unknown at submission */
};

/* Which numbers take two arguments each, the low half first: 64-bit ones in the 32-bit table. */
enum event_wide {
	EVENT_WIDE_OFFSET = 1 << 0,
	EVENT_WIDE_BYTES = 1 << 1,
};

/*
 * Which argument of a system call has which meaning; -1: none has. User space fills one entry for
 * each system call number of the architecture.
 */
struct event_syscall {
	__event_u8 op; /* enum event_op */
	__event_s8 fd;
	__event_s8 path; /* a string in the memory of the caller */
	__event_s8 offset;
	__event_s8 bytes;
	__event_s8 other_fd; /* for a copy: the other side */
	__event_u8 reported; /* 1: a probe reports every operation of this call */
	__event_u8 wide;     /* enum event_wide */
	__event_s16 own_nr;  /* of the same call in the machine's own table; -1: unknown */
};
#define EVENT_SYSCALLS_MAX 512
/* Added to the number of a system call of the 32-bit table, which has numbers of its own. */
#define EVENT_SYSCALL_32BIT 0x10000
#define EVENT_SYSCALL_OTHER ((struct event_syscall){ EVENT_OP_OTHER, -1, -1, -1, -1, -1, 0, 0, -1 })

/*
 * The file whose page a thread is about to fault in, or whose mapping msync() is about to write;
 * the key is the thread id. Of the probes `fault` and `sync`.
 */
struct event_fault {
	__event_u64 task;  /* struct task_struct *: the id may be that of another thread by now */
	__event_u64 inode; /* struct inode * */
	__event_u64 file;  /* struct file *; 0: only the inode is known */
	__event_u64 pos;
	__event_u64 faults; /* faults of the thread so far; one is counted when it is done */
};

/*
 * The operation that a thread slept in; the key is the thread id. op.start_ns is when it first fell
 * asleep in it; 0: none.
 */
#define EVENT_SLEEP_PATH_SIZE 128
struct event_sleep {
	struct event_inflight op;
	__event_u64 asleep_ns; /* since when it sleeps; 0: it is awake */
	__event_u64 woken_ns;
	__event_u64 slept_ns;
	__event_u64 inode;   /* struct inode *, to check the file, or used instead of it */
	__event_u64 ino;     /* number of the inode */
	__event_u64 args[4]; /* of the system call */
	__event_u64 counter; /* what the call will have counted when it is done */
	__event_s32 syscall; /* as in struct compat_syscall */
	__event_u32 sleeps;
	__event_s16 own_nr; /* of struct event_syscall */
	__event_u16 flags;  /* enum event_flags */
	__event_u16 stack_len;
	__event_u16 stack_sleep; /* low bits of `sleeps` when the stack was taken */
	__event_u64 stack_base;
	__event_s32 stack[EVENT_STACK_DEPTH]; /* see event_stack_pack() */
	char path[EVENT_SLEEP_PATH_SIZE];     /* as the program passed it; "": none */
};

/*
 * Where functions lie in which threads sleep interruptibly for a file server; the only value of the
 * map `server_waits`. User space fills it before it attaches, since modules come and go.
 */
#define EVENT_SERVER_WAITS_MAX 8

struct event_server_waits {
	__event_u32 count;
	__event_u32 reserved;
	struct {
		__event_u64 begin;
		__event_u64 size; /* 0: unused */
	} ranges[EVENT_SERVER_WAITS_MAX];
};

/* Which lock of the kernel a thread waits for. */
enum event_lock_kind {
	EVENT_LOCK_MEMORY_MAP, /* mmap_lock of its process */
	EVENT_LOCK_INODE,      /* i_rwsem of the file that it works on */
	EVENT_LOCK_CONTENDED,  /* the one of which bpf/contention.bpf.h knows */
};

/*
 * A lock that threads wait for, and who holds it, as wait_lock() found it; the only value of the
 * map `locks`. wait_lock_stack() adds the stack.
 */
struct event_lock {
	__event_u64 address; /* of the lock: never for anything but to compare */
	/*
	 * The struct task_struct * of the writer. When readers hold the lock it is the thread that
	 * became one last, which may have gone since; 0: not known.
	 */
	__event_u64 task;
	__event_u32 readers; /* 0: a writer holds it */
	__event_u32 pid;
	__event_u32 tid;
	__event_s32 syscall; /* as in struct event_operation */
	__event_s32 cpu;     /* that it runs on; -1: on none */
	__event_u8 state;    /* as in struct event_operation */
	__event_u8 is_other; /* than that of the memory map or the inode */
	__event_u8 is_mutex; /* else it is a read-write semaphore */
	__event_u8 reserved;
	char comm[EVENT_COMM_SIZE];
	__event_u64 stack[EVENT_STACK_DEPTH]; /* functions, from the innermost one on; 0: the end */
};

/* Stands for a function that is more than 2 GiB away from the base; readers leave it out. */
#define EVENT_STACK_FAR INT32_MIN

/*
 * The index in a table of the machine's own numbers, which are below EVENT_SYSCALLS_MAX, and behind
 * them of those of 32 bits.
 */
static __event_inline __event_u64 event_syscall_index(__event_u64 nr)
{
	const __event_u64 is_32bit = nr & EVENT_SYSCALL_32BIT;

	return (nr & (EVENT_SYSCALLS_MAX - 1)) |
		is_32bit / (EVENT_SYSCALL_32BIT / EVENT_SYSCALLS_MAX);
}

/*
 * Keeps a stack of 1 to EVENT_STACK_DEPTH frames, the innermost first, in half the space. The base
 * is the outermost frame: a function of the kernel, and all of those are within 2 GiB of one
 * another. A BPF program is not: arm64 has them at the beginning of its virtual memory, and a
 * kernel with KASLR terabytes away from there.
 */
static __event_inline void event_stack_pack(const __event_u64 frames[EVENT_STACK_DEPTH],
	__event_u32 count, __event_u64 *ret_base, __event_s32 ret_stack[EVENT_STACK_DEPTH])
{
	const __event_u64 base = frames[(count - 1) & (EVENT_STACK_DEPTH - 1)];

	for (__event_u32 i = 0; i < EVENT_STACK_DEPTH; i++) {
		const __event_s64 offset = (__event_s64)(frames[i] - base);

		ret_stack[i] =
			offset == (__event_s32)offset ? (__event_s32)offset : EVENT_STACK_FAR;
	}
	*ret_base = base;
}

/* How many threads whose address has this hash have an entry in the map of sleeps. */
#define EVENT_SLEEP_MARKS_BITS 13
struct event_sleep_marks {
	__event_u32 counts[1 << EVENT_SLEEP_MARKS_BITS];
};

/*
 * Sizes of the tables of probe `offcpu`, and how deep its stacks are. Each process is a kind, and
 * a PostgreSQL has one for each session.
 */
#define EVENT_OFFCPU_KINDS_MAX 2048
#define EVENT_OFFCPU_STACKS_MAX 1024
#define EVENT_OFFCPU_KERNEL_DEPTH 32
#define EVENT_OFFCPU_USER_DEPTH 32
#define EVENT_OFFCPU_TIDS_BITS 256
/* A bit for the low bits of each process id that is looked at; the map `offcpu_pids` is exact. */
#define EVENT_OFFCPU_PID_BITS 4096
#define EVENT_OFFCPU_MARKS_BITS 12

struct event_offcpu_pids {
	__event_u64 bits[EVENT_OFFCPU_PID_BITS / 64];
};

struct event_offcpu_marks {
	__event_u32 counts[1 << EVENT_OFFCPU_MARKS_BITS];
};

/* A hash of all that tells one kind of waiting from another: never of addresses alone. */
struct event_offcpu_key {
	__event_u64 hash[2];
};

/* A thread that is looked at; the key is its id. */
struct event_offcpu_thread {
	/* Its kind of waiting; 0: nobody has asked yet, since most times are over too soon. */
	struct event_offcpu_key key;
	__event_u64 task;	  /* struct task_struct * */
	__event_u64 off_ns;	  /* since when it is off the CPU; 0: it runs */
	__event_u64 paid_ns;	  /* until when the stacks that were taken are paid for */
	__event_u64 run_delay_ns; /* how long it had waited for a CPU when it left that */
	__event_u64 slept_ns;	  /* its last time off the CPU, if that counted; 0: it did not */
	__event_u32 tid;
	__event_u8 has_stack;
	__event_u8 state; /* as in struct event_offcpu */
	__event_u8 reserved[2];
};

/* Who ended one; the key in the map `offcpu_wakers` is that of the thread. */
#define EVENT_OFFCPU_WAKER_DEPTH 32
struct event_offcpu_waker {
	__event_u64 off_ns; /* the begin of what it ended */
	__event_u32 pid;
	__event_u32 tid;
	char comm[EVENT_COMM_SIZE];
	__event_u32 kernel_len; /* frames, the innermost first */
	__event_u32 reserved;
	__event_u64 kernel[EVENT_OFFCPU_WAKER_DEPTH];
};

/* A place in a program, as the kernel has it (struct bpf_stack_build_id). */
enum event_frame_status {
	EVENT_FRAME_NONE,
	EVENT_FRAME_BUILD_ID, /* `place` is an offset in the file with this build-id */
	EVENT_FRAME_ADDRESS,
};
#define EVENT_BUILD_ID_SIZE 20

struct event_frame {
	__event_s32 status;
	__event_u8 build_id[EVENT_BUILD_ID_SIZE];
	__event_u64 place;
};

/* The time that threads of one name of a process spent off the CPU with one stack. */
struct event_offcpu {
	__event_u64 ns; /* sum over the times that were long enough */
	__event_u64 times;
	__event_u64 runnable_ns; /* the part of it in which they waited for a CPU */
	__event_u64 longest_ns;
	__event_u64 longest_start_ns;
	__event_u64 process_start_ns;		       /* CLOCK_BOOTTIME */
	__event_u64 bare_ns;			       /* when `bare` has grown */
	__event_u64 tids[EVENT_OFFCPU_TIDS_BITS / 64]; /* a bit for the low bits of each id */
	__event_u32 longest_tid;
	__event_u32 pid;
	__event_u32 off;       /* threads that are off the CPU now */
	__event_s32 syscall;   /* as in struct event_operation */
	__event_u8 state;      /* 'D' or 'S' as in proc_pid_stat(5); 'R': it was to run on */
	__event_u8 has_stack;  /* in the map `offcpu_stacks`, with the same key */
	__event_u8 kernel_len; /* frames, the innermost first */
	__event_u8 user_len;
	__event_u8 bare; /* tries to tell the stack by files that have failed; 0: it is */
	__event_u8 reserved[3];
	char comm[EVENT_COMM_SIZE];
};

struct event_offcpu_stack {
	__event_u64 kernel[EVENT_OFFCPU_KERNEL_DEPTH];
	struct event_frame user[EVENT_OFFCPU_USER_DEPTH];
};

/*
 * The file on which a thread submitted I/O last, in the map `thread_files` with the thread id as
 * key. Probes of asynchronous paths write it, and `block` reads it in the same thread.
 */
struct event_thread_file {
	__event_u64 task;  /* struct task_struct *: the id may be that of another thread by now */
	__event_u64 inode; /* struct inode *; another file by now if its number is not ino */
	__event_u64 ino;
};

/*
 * Sizes of the tables of probe `block`. User space makes room in those of threads and files once a
 * second. A request that finds a table full, or its thread or file gone, is counted as lost.
 */
#define EVENT_BLOCK_DEVICES_MAX 512
#define EVENT_BLOCK_THREADS_MAX 3072
#define EVENT_BLOCK_FILES_MAX 1536
#define EVENT_BLOCK_CGROUPS_MAX 256
#define EVENT_BLOCK_DIRTIERS_MAX 1024
#define EVENT_BLOCK_FLUSHERS_MAX 1024
#define EVENT_THREAD_FILES_MAX 4096
#define EVENT_JOURNALS_MAX 32
#define EVENT_JOURNAL_USERS_MAX 128
/*
 * Bucket 0 counts requests that took less than 1 us, bucket i those from 2^(i-1) us to below 2^i
 * us, and the last bucket all longer ones.
 */
#define EVENT_BLOCK_BUCKETS 32
#define EVENT_BLOCK_PATH_SIZE 256

enum event_block_kind {
	EVENT_BLOCK_READ,
	EVENT_BLOCK_WRITE,
	EVENT_BLOCK_DISCARD, /* and commands for zones */
	EVENT_BLOCK_FLUSH,
	EVENT_BLOCK_KINDS,
};

/*
 * The device was busy for busy_ns with these requests: a completion adds the time since the one
 * before it, or since its own issue if that was later. So all of them together are the time in
 * which the device was busy, however many requests it had at once.
 */
struct event_block_work {
	__event_u64 requests;
	__event_u64 bytes;
	__event_u64 busy_ns;
};

/* Sums over completed requests. */
struct event_block_load {
	struct event_block_work kinds[EVENT_BLOCK_KINDS];
	__event_u64 device_ns;	 /* sum of the times from issue to completion */
	__event_u64 inferred_ns; /* the part of busy_ns for another, unknown thread */
	/* The part for a thread that perhaps had not dirtied it, or not asked alone for a flush. */
	__event_u64 uncertain_ns;
};

struct event_block_device {
	struct event_block_load load;
	struct event_block_work before; /* the part of it that had begun before the attach */
	__event_u64 queue_max_ns;
	__event_u64 device_max_ns;
	__event_u64 completed_ns; /* when the last one completed; 0: none yet */
	__event_u64 seen_ns;	  /* since when its requests are seen */
	__event_u64 queue[EVENT_BLOCK_BUCKETS];
	__event_u64 device[EVENT_BLOCK_BUCKETS];
	char name[EVENT_DISK_NAME_SIZE]; /* nothing else names paths of NVMe up to 5.10 */
};

/*
 * What a kernel thread sends for a control group other than the root counts in an entry of its own.
 * The one without `owner` is there for each thread.
 */
struct event_block_thread_key {
	__event_u32 dev;
	__event_u32 tid;
	__event_u64 start_ns; /* as in struct event_block_who */
	__event_u64 owner;    /* id of that control group; 0: it is the thread's own */
};

/* A thread. Another one may have its ids later, but not with the same starts. */
struct event_block_who {
	__event_u64 start_ns;	      /* CLOCK_BOOTTIME */
	__event_u64 process_start_ns; /* the same, of the thread group's leader */
	__event_u64 cgroup_id;
	__event_u32 pid;
	__event_u32 tid;
	char comm[EVENT_COMM_SIZE];
	char process_comm[EVENT_COMM_SIZE];
};

struct event_block_thread {
	struct event_block_load load;
	struct event_block_who who;
	__event_u64 noted_ns; /* when it began its last request */
};

/*
 * Who made a page of a file dirty last: a kernel thread writes it back on that thread's behalf. The
 * disk in the key is 0.
 */
struct event_block_dirtier {
	struct event_block_who who;
	__event_u64 dirty_bytes; /* of the folios that became dirty */
	__event_u64 written_bytes;
	__event_u32 is_shared; /* other threads have dirtied pages, too */
	__event_u32 reserved;
};

/* Who sent a bio that makes the device write its cache; the key is the bio's address. */
struct event_block_flusher {
	struct event_block_who who;
	__event_u8 is_kernel;
	__event_u8 is_taken;	 /* a flush has been charged to it */
	__event_u8 is_uncertain; /* it may be that of another one that asked at the same time */
	__event_u8 reserved[5];
};

/*
 * The address tells files apart that have one number, as in several subvolumes of btrfs. A file has
 * another one when the kernel has dropped its inode and reads it again. Inode 0 stands for metadata
 * of the file system on the block device fs_dev.
 */
struct event_block_file_key {
	__event_u64 inode;	/* struct inode *: never for anything but to compare */
	__event_u64 ino;	/* its number */
	__event_u32 fs_dev;	/* of the file system */
	__event_u32 dev;	/* of the disk */
	__event_u32 generation; /* of the number: the file that has it next has another */
	__event_u32 zero;
};

struct event_block_file {
	struct event_block_load load;
	struct event_block_work before; /* what had begun before the attach; not in `load` */
	__event_u64 noted_ns;		/* when a request for it was last seen to begin */
	__event_u64 size;		/* of the file, at its first request; 0: of metadata */
	__event_u32 flags;		/* enum event_flags */
	__event_u32 path_len;
	char path[EVENT_BLOCK_PATH_SIZE]; /* as in struct event_operation, but may be cut */
};

struct event_block_cgroup {
	char names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE];
};

/* The journal (jbd2) of the file system on a device; the key is its number. */
struct event_journal {
	__event_u64 start_ns; /* of the commit that is under way; 0: none is */
	__event_u64 commits;  /* that have ended, and were seen from their begin */
	__event_u64 commit_ns;
	__event_u64 longest_ns;
	__event_u64 early_end_ns;  /* of the commit that was under way at the attach; 0: none was */
	__event_u64 others_blocks; /* changed by those that found no room in journal_users */
	__event_u32 blocks;	   /* of the commit that is under way, known near its end */
	__event_u32 data_pct;	   /* of its time, to write the data of files first */
	__event_u32 longest_blocks;
	__event_u32 longest_data_pct;
};

struct event_journal_user_key {
	__event_u32 dev;
	__event_u32 pid;
	__event_u64 process_start_ns; /* as in struct event_block_who */
};

/* What a process changed of the metadata. */
struct event_journal_user {
	__event_u64 blocks;
	char comm[EVENT_COMM_SIZE];
	__event_u32 kernel; /* it is a kernel thread */
	__event_u32 reserved;
};

#define EVENT_CONTENDED_MAX 1024

/* The lock of the kernel that a thread waits for; the key is the id of the thread. */
struct event_contended {
	__event_u64 address; /* of a struct mutex, or a struct rw_semaphore */
	__event_u32 is_mutex;
	__event_u32 reserved;
};

#define EVENT_REFUSALS_MAX 256
/* Whoever tries less often does something else meanwhile. SQLite pauses for 100 ms at most. */
#define EVENT_REFUSAL_PAUSE_NS 500000000ull

/* A thread that the kernel refuses a lock of a file. */
struct event_refusal_key {
	__event_u64 inode;
	__event_u32 dev;
	__event_u32 tid;
	__event_u32 is_flock; /* else it is of fcntl(2) */
	__event_u32 reserved;
};

/* Times are CLOCK_MONOTONIC. */
struct event_refusal {
	__event_u64 first_ns; /* since when it has tried for that range without a long pause */
	__event_u64 last_ns;
	__event_u64 begin; /* of the range of the file, in bytes */
	__event_u64 end;   /* the last byte of it */
	__event_u32 pid;
	__event_u32 is_read; /* it would share the lock with others that read */
};

/* A request in flight; the key is the address of its struct request. */
struct event_block_request {
	__event_u64 stamp; /* start_time_ns of the request; if it differs, it is another request */
	__event_u64 start_ns;
	__event_u64 issue_ns; /* 0: not issued to the device yet */
	__event_u64 sector;
	__event_u64 thread_start_ns;	  /* as in struct event_block_who */
	struct event_block_file_key file; /* all zero: unknown */
	__event_u32 bytes;
	__event_u32 dev;
	__event_u32 tid; /* 0: it is charged to nobody */
	__event_u8 kind; /* enum event_block_kind */
	__event_u8 is_inferred;
	__event_u8 has_file : 1;
	__event_u8 is_new : 1; /* `stamp` is not known before its first issue */
	__event_u8 is_uncertain;
};

/*
 * What BPF programs count as lost; indices of the per-CPU map `losses`, in the order of lost.def.
 */
enum event_loss {
	EVENT_LOSS_RING_FULL,
	EVENT_LOSS_MAP_FULL,
	EVENT_LOSS_RETURN_MISSED,
	EVENT_LOSS_PATH_TRUNCATED,
	EVENT_LOSS_ACCOUNT_FULL,
	EVENT_LOSS_COUNT,
};

static_assert(sizeof(struct event_header) == 16, "wire format");
static_assert(__builtin_offsetof(struct event_operation, path) == 160, "wire format");
static_assert(sizeof(struct event_registers) == 40, "wire format");
static_assert(sizeof(struct event_inflight) == 56, "wire format");
static_assert(sizeof(struct event_call) == 96, "wire format");
static_assert(sizeof(struct event_request) == 88, "wire format");
static_assert(sizeof(struct event_lock) == 56 + 8 * EVENT_STACK_DEPTH, "wire format");
static_assert(sizeof(struct event_block_device) == 720, "wire format");
static_assert(sizeof(struct event_block_thread) == 192, "wire format");
static_assert(sizeof(struct event_block_file) == 424, "wire format");
static_assert(sizeof(struct event_block_request) == 88, "wire format");
static_assert(sizeof(struct event_journal) == 64, "wire format");
static_assert(sizeof(struct event_frame) == 32, "of the kernel");
static_assert(sizeof(struct event_offcpu_thread) == 64, "wire format");
static_assert(sizeof(struct event_journal_user) == 32, "wire format");
static_assert(sizeof(struct event_refusal_key) == 24, "wire format");
static_assert(sizeof(struct event_refusal) == 40, "wire format");

#endif
