/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locals that are freed or closed at the end of their scope, and handing them over before that.
 * Used by every room; depends on no room.
 * Never used for objects that outlive the function.
 */
#ifndef IOSTALL_UTIL_CLEANUP_H
#define IOSTALL_UTIL_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_pointer(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _cleanup_free_ _cleanup_(cleanup_free_pointer)
#define _cleanup_close_ _cleanup_(cleanup_close_fd)
#define _cleanup_fclose_ _cleanup_(cleanup_close_file)
#define _cleanup_closedir_ _cleanup_(cleanup_close_dir)

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Closes and returns -1, so that a member can be closed and reset in one step. */
static inline int close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
	return -1;
}

#endif
