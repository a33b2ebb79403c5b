/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/reclaim.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/log.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

static void drop_capability(unsigned int cap)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct *word = &data[CAP_TO_INDEX(cap)];

	if (syscall(SYS_capget, &header, data) < 0)
		return;
	word->effective &= ~CAP_TO_MASK(cap);
	word->permitted &= ~CAP_TO_MASK(cap);
	word->inheritable &= ~CAP_TO_MASK(cap);
	if (syscall(SYS_capset, &header, data) < 0)
		log_debug("cannot give up a capability: %s, ignoring", strerror(errno));
}

void reclaim_avoid_disks(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0)
		log_info(
			"the kernel may wait for a disk when iostall needs memory: %s; grant CAP_SYS_RESOURCE",
			strerror(errno));
	drop_capability(CAP_SYS_RESOURCE);
}
