/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which files of a spool directory are being written: for each of them its writer holds a lock on
 * one byte of the file ".lock" there, the byte whose offset is the inode number.
 * Used by the preallocator, which takes and drops locks, and by writer and retention, which ask.
 * Never locks a record itself: everybody who may read a record could hold that lock for ever, but
 * only root can open ".lock". The file stays, since it could not be removed without a race.
 */
#ifndef IOSTALL_SINKS_LOCK_H
#define IOSTALL_SINKS_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#define LOCK_NAME ".lock"

/*
 * A descriptor, or a negative errno; -EPERM: the file belongs to another user. Locks that are taken
 * through it last until it is closed, which the kernel does for a process that dies. The holder of
 * one descriptor does not exclude itself.
 */
int lock_open(int spool_fd);

/* 0, or -EAGAIN when another process or thread holds it. */
int lock_take(int lock_fd, ino_t inode);
void lock_drop(int lock_fd, ino_t inode);

/* Whether anybody else holds it. When the kernel does not tell, somebody does. */
bool lock_is_taken(int lock_fd, ino_t inode);

#endif
