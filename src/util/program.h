/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program of the operator as a child, as another user and without capabilities.
 * Used by who starts one ahead of time: in a freeze, its file may hang with the disk.
 * Never waits for it: what it reads and writes is a socket, and if it cannot be executed that says
 * so.
 */
#ifndef IOSTALL_UTIL_PROGRAM_H
#define IOSTALL_UTIL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The user that a program runs as; 0: the one we are, which is not root. */
struct program_user {
	uid_t uid;
	gid_t gid;
};

struct program {
	const char *path;
	struct program_user user;
	uint64_t capabilities; /* bits of those that it keeps; without one it is not executed */
	/* kill(-pid) ends what it has started, too, unless that has made a group of its own. */
	bool leads_session;
	bool with_stderr; /* standard error goes to the socket, not to ours */
};

/*
 * Forks a child that ends with this process. *ret_fd is the other side of its standard input and
 * output, a stream socket. 0 or a negative errno.
 */
int program_start(const struct program *program, pid_t *ret_pid, int *ret_fd);

/* What the child writes if the program cannot be executed has this length; no text begins so. */
#define PROGRAM_ERROR_LEN 3
/* 0, or the negative errno for which it was not executed. */
int program_error(const char *written, size_t len);

#endif
