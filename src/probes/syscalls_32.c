/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/syscalls_32.h"

#if defined(__x86_64__)

#include <asm/unistd_32.h>

#include "util/cleanup.h"

/* The older calls of syscalls.def exist here, too. */
#define SYS_open __NR_open
#define __NR_newfstatat __NR_fstatat64

static const struct {
	int nr;
	struct event_syscall is;
} syscalls[] = {
#define SYSCALL(name, op, fd, path, offset, bytes)                                                 \
	{ __NR_##name, { EVENT_OP_##op, fd, path, offset, bytes, -1, 0, 0, -1 } },
#define COPY(name, from, to, bytes)                                                                \
	{ __NR_##name, { EVENT_OP_COPY, from, -1, -1, bytes, to, 0, 0, -1 } },
#include "probes/syscalls.def"
/* A 64-bit offset takes two arguments here. Later rows replace earlier ones. */
#define WIDE(name, op, fd, path, offset, bytes)                                                    \
	{ __NR_##name, { EVENT_OP_##op, fd, path, offset, bytes, -1, 0, 1, -1 } },
	WIDE(sync_file_range, SYNC, 0, -1, 1, 3) WIDE(fallocate, ALLOCATE, 0, -1, 2, 4)
		WIDE(pread64, READ, 0, -1, 3, -1) WIDE(pwrite64, WRITE, 0, -1, 3, -1) WIDE(preadv,
			READ, 0, -1, 3, -1) WIDE(pwritev, WRITE, 0, -1, 3, -1) WIDE(preadv2, READ,
			0, -1, 3, -1) WIDE(pwritev2, WRITE, 0, -1, 3, -1) WIDE(readahead, READ, 0,
			-1, 1, -1) WIDE(fadvise64, READ, 0, -1, 1, -1) WIDE(fadvise64_64, READ, 0,
			-1, 1, 3) SYSCALL(stat64, LOOKUP, -1, 0, -1, -1) SYSCALL(lstat64, LOOKUP,
			-1, 0, -1, -1) SYSCALL(fstat64, LOOKUP, 0, -1, -1, -1) SYSCALL(statfs64,
			LOOKUP, -1, 0, -1, -1) SYSCALL(fstatfs64, LOOKUP, 0, -1, -1, -1)
			SYSCALL(truncate64, TRUNCATE, -1, 0, -1, -1) SYSCALL(ftruncate64, TRUNCATE,
				0, -1, -1, -1) SYSCALL(_llseek, OTHER, 0, -1, -1, -1)
				COPY(sendfile64, 1, 0, 3)
};

/* The first rows of the table are those of syscalls.def. */
static const unsigned int shared_count = 0
#undef SYSCALL
#undef COPY
#define SYSCALL(...) +1
#define COPY(...) +1
#include "probes/syscalls.def"
	;

void syscalls_32_fill(const int *own, struct event_syscall calls[EVENT_SYSCALLS_MAX])
{
	for (unsigned int i = 0; i < ARRAY_SIZE(syscalls); i++) {
		struct event_syscall *call = &calls[syscalls[i].nr];
		int16_t own_nr = i < shared_count ? (int16_t)own[i] : call->own_nr;

		*call = syscalls[i].is;
		call->own_nr = own_nr;
	}
}

#else

void syscalls_32_fill(const int *own, struct event_syscall calls[EVENT_SYSCALLS_MAX])
{
	(void)own;
	(void)calls;
}

#endif
