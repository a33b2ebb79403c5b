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
/* Later rows replace earlier ones. */
#define WIDE_ROW(name, op, fd, path, offset, bytes, wide)                                          \
	{ __NR_##name, { EVENT_OP_##op, fd, path, offset, bytes, -1, 0, wide, -1 } },
#define WIDE(...) WIDE_ROW(__VA_ARGS__, EVENT_WIDE_OFFSET | EVENT_WIDE_BYTES)
#define WIDE_OFFSET(...) WIDE_ROW(__VA_ARGS__, EVENT_WIDE_OFFSET)
#include "probes/syscalls_32.def"
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

#elif defined(__aarch64__)

void syscalls_32_fill(const int *own, struct event_syscall calls[EVENT_SYSCALLS_MAX])
{
	syscalls_arm_fill(own, calls);
}

#else

void syscalls_32_fill(const int *own, struct event_syscall calls[EVENT_SYSCALLS_MAX])
{
	(void)own;
	(void)calls;
}

#endif
