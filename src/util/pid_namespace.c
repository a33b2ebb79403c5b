/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/pid_namespace.h"

#include <errno.h>
#include <sys/stat.h>

/* PROC_PID_INIT_INO of include/linux/proc_ns.h, the same on all kernels since 3.8. */
#define HOST_INODE 0xeffffffc

int pid_namespace_is_host(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		return -errno;
	return st.st_ino == HOST_INODE;
}
