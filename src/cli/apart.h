/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child process for what may hang in the kernel, such as reading from a disk that does not
 * answer. The command itself can be interrupted then, and ends.
 * Used by doctor and by the symbolizer.
 * Never outlives the command, except in the kernel where it hangs.
 */
#ifndef IOSTALL_CLI_APART_H
#define IOSTALL_CLI_APART_H

#include <sys/types.h>

struct apart {
	pid_t pid;
	int fd; /* SOCK_SEQPACKET to the child */
};

/* `run` is called in the child with its end of the socket. 0 or a negative errno. */
int apart_start(struct apart *ret, void (*run)(int fd, const void *arg), const void *arg);
/*
 * The child's next message. `timeout_ms` as in poll(2). Returns its bytes, -ETIMEDOUT, -EPIPE where
 * the child has ended, or another negative errno.
 */
ssize_t apart_receive(const struct apart *apart, void *buf, size_t size, int timeout_ms);
void apart_end(struct apart *apart);

#endif
