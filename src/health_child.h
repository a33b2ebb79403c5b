/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program that checks: started once, asked by a line, answers by a line.
 * Used by health.c only.
 * Never waits for it: it is asked and read without blocking, and a dead one is reaped when it is gone.
 */
#ifndef IOSTALL_HEALTH_CHILD_H
#define IOSTALL_HEALTH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A line of an error message fits. */
#define HEALTH_ANSWER_SIZE 1024

struct health_child {
	pid_t pid; /* 0: none */
	int fd;	   /* its standard input and output; -1 when it has closed them */
	bool owes; /* an answer to the last question */
	size_t len;
	char answer[HEALTH_ANSWER_SIZE];
};

#define HEALTH_CHILD_NONE ((struct health_child){ .fd = -1 })

/*
 * Forks. It has no capability, no signal blocked, and ends with this process. 0 or a negative
 * errno; that the program cannot be executed is read from it.
 */
int health_child_start(struct health_child *child, const char *program);
/* Ends it; pid stays until it is reaped. */
void health_child_kill(struct health_child *child);
/* True when there is none, or the last one is reaped now. */
bool health_child_is_gone(struct health_child *child);

/* 0 or a negative errno: -EAGAIN when it has not read the questions before. */
int health_child_ask(struct health_child *child);

/*
 * 1 with its answer taken: *ret_ok tells whether it is "ok"; 0: none yet; -EPIPE: it has ended;
 * another negative errno: it could not be executed.
 */
int health_child_read(struct health_child *child, bool *ret_ok);

#endif
