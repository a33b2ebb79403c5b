/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/reclaim.h"

#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/assets.h"
#include "util/log.h"
#include "util/memory.h"

/*
 * Fixed, or it would grow with what libbpf frees; then holes in the heap would stay locked, too.
 */
#define MMAP_THRESHOLD_BYTES (16 * 1024)

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

void reclaim_set_heap(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
	/* Else the reserve would be given back when something above it is freed. */
	mallopt(M_TOP_PAD, MEMORY_HEAP_RESERVE_BYTES);
}

void reclaim_lock_memory(void)
{
	munlockall();
	mallopt(M_MMAP_THRESHOLD, 2 * MEMORY_HEAP_RESERVE_BYTES);
	free(malloc(MEMORY_HEAP_RESERVE_BYTES));
	mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
	malloc_trim(MEMORY_HEAP_RESERVE_BYTES);
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		log_warning(
			"memory cannot be locked (%s), so iostall itself may stall with the disk; "
			"raise LimitMEMLOCK or grant CAP_IPC_LOCK",
			strerror(errno));
	report_unlock_assets();
}
