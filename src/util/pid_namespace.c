/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/pid_namespace.h"

#include <errno.h>
#include <sys/stat.h>

/* PROC_PID_INIT_INO of include/linux/proc_ns.h, the same on all kernels since 3.8. */
#define HOST_INODE 0xeffffffc

const char pid_namespace_own[] =
	"this is a pid namespace of its own, so /proc does not have the processes that the kernel "
	"reports; run it in that of the host, in a container with --pid=host";

int pid_namespace_is_host(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		return -errno;
	return st.st_ino == HOST_INODE;
}
