/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which errors may be over a moment later.
 * Used where something is tried again, and where an exit code must not be final.
 * Never says that trying again helps: only that it is not in vain from the beginning.
 */
#ifndef IOSTALL_UTIL_ERROR_H
#define IOSTALL_UTIL_ERROR_H

#include <errno.h>
#include <stdbool.h>

static inline bool error_is_transient(int error)
{
	switch (-error) {
	case EAGAIN:
	case EBUSY:
	case EINTR:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case ENOSPC: /* also a second load of a program by libbpf, whose messages do not fit */
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

#endif
