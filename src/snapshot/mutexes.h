/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mutexes of watched programs that threads stand still at, and who holds them.
 * Called by the session, for each sample and each scan of the operations in flight.
 * Never looks at other processes on the event loop: for the system call and for the memory of a
 * thread the kernel takes locks that a process may hold for long. Its thread may hang.
 *
 * A thread that waits for a mutex of the C library sleeps in futex(2), in S state. The library
 * keeps the id of the owner beside the word that is waited on (struct __pthread_mutex_s of
 * glibc). An owner is named only if it is a
 * thread of the same process. Condition variables, semaphores, locks of other libraries and
 * processes in a container with ids of its own have none.
 */
#ifndef IOSTALL_SNAPSHOT_MUTEXES_H
#define IOSTALL_SNAPSHOT_MUTEXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/thread.h"
#include "watch/processes.h"

/* Mutexes in an answer, those with most waiters. */
#define MUTEXES_MAX 4
/* Waiting threads that are remembered from one look to the next. */
#define MUTEXES_WAITERS_MAX 2048
/* Whoever has no answer after this time hangs or has no CPU. */
#define MUTEXES_LIMIT_NS 2000000000ULL

/* A mutex at which threads have stood still since an earlier look. */
struct mutex_seen {
	int32_t pid;
	uint64_t address;	    /* of the word, in that process */
	uint32_t waiters;	    /* also those of mutexes whose holder waits for this one */
	uint64_t since_ns;	    /* when the one that waits longest was seen first to wait */
	char comm[WATCH_COMM_SIZE]; /* of the program */
	int32_t holder;		    /* thread id; 0: several had it one after the other */
	uint64_t held_since_ns;	    /* when it was seen first to hold it */
	/*
	 * Threads wait for each other: the one whose mutex the holder waits for, and that waits for
	 * this mutex or for another one in the circle. 0: no deadlock.
	 */
	int32_t deadlocked_with;
	char holder_comm[WATCH_COMM_SIZE];
	char holder_state;	/* as in /proc/TID/stat; '\0': not known */
	int32_t holder_syscall; /* -1: none, or not known */
	char holder_stack[THREAD_STACK_SIZE];
};

struct mutexes_answer {
	uint64_t look_ns; /* CLOCK_MONOTONIC, when it was made; 0: there is none yet */
	uint32_t count;
	struct mutex_seen list[MUTEXES_MAX];
};

struct mutexes;

/* The descriptor must stay open as long as the owner lives. 0 or a negative errno. */
int mutexes_new(int procfs_fd, struct mutexes **ret_mutexes);
/* Returns at once. NULL is accepted; returns NULL. */
struct mutexes *mutexes_free(struct mutexes *mutexes);

/*
 * Makes another thread in place of one that has not answered for MUTEXES_LIMIT_NS. Allocates: only
 * while no incident is open. If it cannot, the next call tries again.
 */
void mutexes_replace_hung(struct mutexes *mutexes, uint64_t now_ns);

/*
 * Begins another look at these processes, unless one is under way or it is too early for one: looks
 * take a fifth of a CPU at most while `armed`, a thousandth else. Where threads have begun to wait,
 * these alone are looked at once more a second later, and each second while some stand still. A
 * process in which an earlier thread hangs is left out. Returns what the last look has found,
 * nothing while one hangs; valid until the next call.
 */
const struct mutexes_answer *mutexes_find(struct mutexes *mutexes,
	const struct watch_process *processes, unsigned int count, bool armed, uint64_t now_ns);

/*
 * The looks lack processes: one hangs for too long, or an earlier one hangs in a process that was
 * to be looked at.
 */
bool mutexes_lacks(const struct mutexes *mutexes, uint64_t now_ns);

/*
 * The mutex at which most threads stand, of those whose holder is known and does not wait for work,
 * and at which none has stood for minutes; NULL: there is none.
 */
const struct mutex_seen *mutexes_worst(const struct mutexes_answer *answer);

/*
 * Line of /proc/TID/syscall: whether it waits in futex(2), for which word, and the value that it
 * expects there. Pure.
 */
bool mutexes_parse_syscall(const char *line, int32_t *ret_number, uint64_t *ret_address,
	uint32_t *ret_value);

/*
 * The owner by the words of a mutex of the C library, of which `expected` is what a waiter saw;
 * 0: it is none, or nobody waits for it. Pure.
 */
#define MUTEX_WORDS 5
int32_t mutexes_owner(const uint32_t words[static MUTEX_WORDS], uint32_t expected);

#endif
