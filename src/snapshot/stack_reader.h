/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that read the kernel stacks of stuck threads from /proc, where the kernel may keep a
 * reader waiting for ever (see thread.h).
 * Called by the session for threads whose stack no BPF program has taken, mostly because they fell
 * asleep before it was attached.
 * Never waited for: one thread reads at a time, and the next one takes over when it hangs.
 */
#ifndef IOSTALL_SNAPSHOT_STACK_READER_H
#define IOSTALL_SNAPSHOT_STACK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/thread.h"

/* All are started at once, since starting a thread allocates. When all hang, no stack is read. */
#define STACK_READER_THREADS 4
/* A stack takes about 20 us. Whoever needs longer than this hangs or has no CPU. */
#define STACK_READER_LIMIT_NS 500000000ULL
#define STACK_READER_QUEUE_MAX 4096

/* The operation of which the stack is wanted; thread and start identify it. */
struct stack_request {
	uint64_t start_ns;
	uint32_t tid;
	uint32_t probe; /* enum config_probe_name, for the one who asks */
};

struct stack_answer {
	struct stack_request request;
	char kstack[THREAD_STACK_SIZE]; /* empty: it could not be read */
};

struct stack_reader;

/* The descriptor is duplicated. 0 or a negative errno. */
int stack_reader_new(int procfs_fd, struct stack_reader **ret_reader);
/* Returns at once; threads that hang free what they use when they return. Accepts NULL. */
struct stack_reader *stack_reader_free(struct stack_reader *reader);

/* Readable when there are answers. */
int stack_reader_fd(const struct stack_reader *reader);
/*
 * False: a thread hangs in the stack of that one already; or, counted as unread: too many are
 * waiting, or all threads hang.
 */
bool stack_reader_ask(struct stack_reader *reader, const struct stack_request *request,
	uint64_t now_ns);
/* Whether the next question would find room. */
bool stack_reader_has_room(const struct stack_reader *reader);
/* The next answer, valid until the next call; NULL: there is none now. */
const struct stack_answer *stack_reader_take(struct stack_reader *reader, uint64_t now_ns);
/* Call it about once a second, after the answers have been taken: replaces a thread that hangs. */
void stack_reader_check(struct stack_reader *reader, uint64_t now_ns);
/* Forgets what has not been read yet, and counts anew. */
void stack_reader_reset(struct stack_reader *reader);
/* Stacks that were asked for since the last reset and will never be read. */
uint64_t stack_reader_unread(const struct stack_reader *reader);

#endif
