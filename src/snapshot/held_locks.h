/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of programs that threads stand still at, and who holds them; also pipes and sockets from
 * which nobody reads. What kinds there are and how each is looked for is in lock_search.h.
 * Called by the session, for each sample and each scan of the operations in flight.
 * Never looks at other processes on the event loop: for the system call and for the memory of a
 * thread the kernel takes locks that a process may hold for long. Its thread may hang.
 */
#ifndef IOSTALL_SNAPSHOT_HELD_LOCKS_H
#define IOSTALL_SNAPSHOT_HELD_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"
#include "snapshot/thread.h"
#include "watch/processes.h"

/* Locks of each kind in an answer, those with most waiters; and of all four kinds. */
#define HELD_LOCKS_OF_KIND 4
#define HELD_LOCKS_MAX (4 * HELD_LOCKS_OF_KIND)
#define HELD_LOCK_PATH_SIZE 256
/* Whoever has no answer after this time hangs or has no CPU. */
#define HELD_LOCKS_LIMIT_NS 2000000000ULL

/* Threads that are told to try for locks of files. */
#define HELD_LOCKS_REFUSALS_MAX 256

/* Those of fcntl(2) are POSIX, of a process, and OFD, of an open file. */
enum held_locks_file_kind {
	HELD_LOCKS_FLOCK = 1,
	HELD_LOCKS_POSIX,
	HELD_LOCKS_OFD,
	HELD_LOCKS_LEASE,
};

/* A thread that is refused a lock of a file, and tries for it again and again. */
struct held_locks_refusal {
	int32_t pid;
	int32_t tid;
	struct record_dev dev;
	uint64_t inode;
	uint64_t begin;	   /* of its range, in bytes */
	uint64_t end;	   /* the last byte of it */
	uint64_t tries_ns; /* from the first try to the last one */
	bool is_flock;	   /* else it is of fcntl(2) */
	bool is_read;	   /* it would share the lock with others that read */
};

/* A lock at which threads have stood still since an earlier look. */
struct held_lock {
	enum record_kernel_lock kind;
	/* Of its word in the process that waits; the inode of what is to be read; 0: of a file. */
	uint64_t address;
	struct record_dev dev;
	uint64_t inode;
	enum held_locks_file_kind file_kind;
	uint64_t range_begin;		/* of that file, in bytes */
	uint64_t range_end;		/* the last byte of it */
	char path[HELD_LOCK_PATH_SIZE]; /* of that file; "": not known, or too long */
	uint32_t waiters;		/* also those of locks whose holder waits for this one */
	uint64_t since_ns;		/* when the one that waits longest was seen first to wait */
	int32_t pid;			/* of that one */
	int32_t waiter;			/* its thread, of locks of files; 0: it was not found */
	bool tries;			/* it does not wait, but tries again and again */
	bool is_alone;	   /* of a pipe or socket: no process that waits has another thread */
	uint64_t switches; /* context switches of that thread */
	char comm[WATCH_COMM_SIZE]; /* of its program */
	int32_t fd;		    /* by which it writes to a pipe or socket */
	int32_t holder_pid;	    /* 0: several had it one after the other, or it is not known */
	bool is_inferred;	    /* it is the likeliest of several */
	int32_t holder;		    /* thread id; 0: the process as a whole */
	uint64_t held_since_ns;	    /* when it was seen first to hold it */
	/*
	 * Threads wait for each other: the one whose lock the holder waits for, and that waits for
	 * this lock or for another one in the circle. 0: no deadlock.
	 */
	int32_t deadlocked_with;
	char holder_comm[WATCH_COMM_SIZE];
	char holder_state;	/* as in /proc/TID/stat; '\0': not known */
	int32_t holder_syscall; /* -1: none, or not known */
	char holder_stack[THREAD_STACK_SIZE];
};

struct held_locks_answer {
	uint64_t look_ns; /* CLOCK_MONOTONIC, when it was made; 0: there is none yet */
	uint32_t count;
	struct held_lock list[HELD_LOCKS_MAX];
};

struct held_locks;

/* The descriptor must stay open as long as the owner lives. 0 or a negative errno. */
int held_locks_new(int procfs_fd, struct held_locks **ret_locks);
/* Returns at once. NULL is accepted; returns NULL. */
struct held_locks *held_locks_free(struct held_locks *locks);

/*
 * The program that knows what sockets are connected to, see bpf/sockets.bpf.h; below 0: there is
 * none, and only pipes are told. It must stay loaded until the next call of this or of
 * held_locks_find() has returned.
 */
void held_locks_set_socket_program(struct held_locks *locks, int program_fd);

/* Who is refused locks of files now, for the next look: forgets all, and adds one. */
void held_locks_clear_refusals(struct held_locks *locks);
void held_locks_add_refusal(struct held_locks *locks, const struct held_locks_refusal *refusal);

/*
 * Makes another thread in place of one that has not answered for HELD_LOCKS_LIMIT_NS. Allocates:
 * only while no incident is open. If it cannot, the next call tries again.
 */
void held_locks_replace_hung(struct held_locks *locks, uint64_t now_ns);

/*
 * Begins another look at these processes, unless one is under way or it is too early for one: looks
 * take a fifth of a CPU at most while `armed`, a thousandth else. Where threads have begun to wait,
 * these alone are looked at once more a second later, and each second while some stand still. A
 * process in which an earlier thread hangs is left out. Returns what the last look has found,
 * nothing while one hangs; valid until the next call. Processes that are frozen are left out.
 */
const struct held_locks_answer *held_locks_find(struct held_locks *locks,
	const struct watch_process *processes, unsigned int count, bool armed, uint64_t now_ns);

/*
 * The looks lack processes: one hangs for too long, or an earlier one hangs in a process that was
 * to be looked at.
 */
bool held_locks_lacks(const struct held_locks *locks, uint64_t now_ns);

/*
 * The mutex at which most threads stand, of those whose holder is known and does not wait for work,
 * and at which none has stood for minutes; NULL: there is none.
 */
const struct held_lock *held_locks_worst_mutex(const struct held_locks_answer *answer);
/*
 * Of what held_locks_find() returned last, the lock of a file, or the full pipe, at which a thread
 * of the processes that were asked about has stood longest, but not for minutes; NULL: there is
 * none.
 */
const struct held_lock *held_locks_longest_lock(const struct held_locks *locks);

#endif
