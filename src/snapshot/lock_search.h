/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One look for locks at which threads stand still, by each kind of lock that is known.
 * Runs on the thread of held_locks.c, which it may keep waiting. Never allocates.
 */
#ifndef IOSTALL_SNAPSHOT_LOCK_SEARCH_H
#define IOSTALL_SNAPSHOT_LOCK_SEARCH_H

#include "snapshot/held_locks.h"
#include "util/renewable_worker.h"

/* Threads waiting for mutexes that are remembered from one look to the next. */
#define LOCK_SEARCH_WAITERS_MAX 2048

/* A thread that waits for a mutex. */
struct lock_waiter {
	int32_t pid;
	int32_t tid;
	uint64_t address;
	uint64_t switches;
	uint64_t since_ns;
	uint64_t seen_ns;	/* the look that found it last */
	uint64_t held_since_ns; /* by that owner */
	uint64_t root;		/* address of the mutex at the end of its chain */
	int32_t owner;
};

/* Of the thread while it is busy. */
struct lock_search {
	uint32_t pids_count;
	int32_t pids[WATCH_PROCESSES_MAX];
	bool armed;	    /* an incident is open */
	bool only_known;    /* it looks at the threads that waited the last time */
	int32_t looking_at; /* the process; the loop reads it when the thread hangs */
	int32_t skip[RENEWABLE_WORKER_HUNG_MAX]; /* processes in which others hang; 0: none */
	int procfs_fd;
	uint64_t begin_ns;
	uint64_t deadline_ns;
	uint64_t cpu_ns; /* that it took */
	uint32_t count;
	bool has_new; /* some were not known to wait */
	struct lock_waiter waiters[LOCK_SEARCH_WAITERS_MAX];
	struct held_locks_answer last;	 /* of the look before */
	struct held_locks_answer answer; /* with those that were not waited for then */
};

/* Each finds the locks of its kind, from whom they are to the circle that they are in. */
#define SOURCE(name) void lock_search_##name(struct lock_search *search);
#include "snapshot/lock_sources.def"
#undef SOURCE

bool lock_search_skips(const struct lock_search *search, int32_t pid);
/* Says that it looks at that process now. False: another thread hangs in it. */
bool lock_search_may_look_at(struct lock_search *search, int32_t pid);
/* A place in the answer; NULL: there are as many locks of that kind with as many waiters. */
struct held_lock *lock_search_find_place(struct lock_search *search, enum record_kernel_lock kind,
	uint32_t waiters);

#endif
