/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One look for locks at which threads stand still, by each kind of lock that is known.
 * Runs on the thread of held_locks.c, which it may keep waiting. Never allocates.
 */
#ifndef IOSTALL_SNAPSHOT_LOCK_SEARCH_H
#define IOSTALL_SNAPSHOT_LOCK_SEARCH_H

#include "snapshot/held_locks.h"
#include "util/renewable_worker.h"

/* Threads that are remembered from one look to the next. */
#define LOCK_SEARCH_WAITERS_MAX 2048

/* A thread that waits for a mutex, or for somebody who reads from a pipe or socket. */
struct lock_waiter {
	enum record_kernel_lock kind;
	int32_t pid;
	int32_t tid;
	uint64_t address; /* of the mutex; the inode of the pipe, or of its end of the socket */
	uint64_t switches;
	uint64_t since_ns;
	uint64_t seen_ns; /* the look that found it last */
	/* Address of the mutex at the end of its chain; inode of the other end; 0: unknown. */
	uint64_t root;
	uint64_t held_since_ns; /* by that owner; since when nobody is known to have read */
	int32_t owner;		/* of a mutex */
	int32_t fd;		/* by which it writes to a pipe or socket */
	bool is_asked;		/* what that socket is connected to */
	bool is_alone;		/* its process has no other thread */
};

/* Of the thread while it is busy. */
struct lock_search {
	uint32_t pids_count;
	int32_t pids[WATCH_PROCESSES_MAX];
	uint32_t refusals_count;
	struct held_locks_refusal refusals[HELD_LOCKS_REFUSALS_MAX];
	bool armed;	       /* an incident is open */
	bool only_known;       /* it looks at the threads that waited the last time */
	bool may_have_mutexes; /* the process that is looked at */
	bool is_alone;	       /* the same */
	int32_t looking_at;    /* the process; the loop reads it when the thread hangs */
	int32_t skip[RENEWABLE_WORKER_HUNG_MAX]; /* processes in which others hang; 0: none */
	int32_t next_pid;    /* at which the last look at all was cut off; 0: at none */
	int64_t next_thread; /* its place in there */
	int procfs_fd;
	uint64_t begin_ns;
	uint64_t deadline_ns;
	uint64_t cpu_ns; /* that it took */
	uint32_t count;
	bool has_new; /* some were not known to wait */
	struct lock_waiter waiters[LOCK_SEARCH_WAITERS_MAX];
	bool was_cut_off;		 /* the look before, by its time limit */
	struct held_locks_answer last;	 /* of the last one that was not */
	struct held_locks_answer answer; /* with those that were not waited for then */
};

/*
 * Each finds the locks of its kind, from whom they are to the circle that they are in; and says of
 * a line of /proc/TID/syscall whether it waits for one, and fills in kind, address and owner.
 */
#define SOURCE(name) void lock_search_##name(struct lock_search *search);
#define CALL(name)                                                                                 \
	bool lock_search_##name##_waits(struct lock_search *search, const char *line,              \
		struct lock_waiter *waiter);
#include "snapshot/lock_sources.def"
#undef CALL
#undef SOURCE

/* Which threads wait now, before the sources are asked. */
void lock_search_look(struct lock_search *search);
/* NULL: it does not wait. */
struct lock_waiter *lock_search_find_waiter(struct lock_search *search, int32_t tid);
/* It waited in an earlier look, too. */
bool lock_search_stands(const struct lock_search *search, const struct lock_waiter *waiter);

bool lock_search_skips(const struct lock_search *search, int32_t pid);
/* Whether it is one of those that the question is about. */
bool lock_search_is_about(const struct lock_search *search, int32_t pid);
/* Says that it looks at that process now. False: another thread hangs in it. */
bool lock_search_may_look_at(struct lock_search *search, int32_t pid);
/*
 * Asks the kernel what the sockets are connected to at which threads stood in the last look. Called
 * on the event loop, between two looks: the thread has no descriptor of the program.
 */
void lock_search_ask_sockets(struct lock_search *search, int program_fd);
/* A place in the answer; NULL: there are as many locks of that kind with as many waiters. */
struct held_lock *lock_search_find_place(struct lock_search *search, enum record_kernel_lock kind,
	uint32_t waiters);

#endif
