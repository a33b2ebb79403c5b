/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user's check program: it is started once, and gets and answers one line for each check.
 * Used by health.c only.
 * Never waits for the program: it is asked and read without blocking, and reaped once it has ended.
 */
#ifndef IOSTALL_HEALTH_CHILD_H
#define IOSTALL_HEALTH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/program.h"

/* Room for a line with an error message. */
#define HEALTH_ANSWER_SIZE 1024

struct health_child {
	pid_t pid; /* 0: none */
	int fd;	   /* its standard input and output; -1 after it has closed them */
	bool owes; /* it has not answered the last question */
	size_t len;
	char answer[HEALTH_ANSWER_SIZE];
};

#define HEALTH_CHILD_NONE ((struct health_child){ .fd = -1 })

/*
 * Forks a child without capabilities and blocked signals, which ends with this process. 0 or a
 * negative errno. health_child_read() tells if the program cannot be executed.
 */
int health_child_start(struct health_child *child, const char *path,
	const struct program_user *user);
/* Kills the program; pid stays until it is reaped. */
void health_child_kill(struct health_child *child);
/* True when there is no child, or the last one is reaped by this call. */
bool health_child_is_gone(struct health_child *child);

/* 0 or a negative errno; -EAGAIN when the program has not read the earlier questions. */
int health_child_ask(struct health_child *child);

/*
 * 1: there is an answer, and *ret_ok tells whether it is "ok". 0: no answer yet. -EPIPE: the
 * program has ended. Another negative errno: it could not be executed.
 */
int health_child_read(struct health_child *child, bool *ret_ok);

#endif
