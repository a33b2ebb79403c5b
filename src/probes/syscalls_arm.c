/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/syscalls_32.h"

#include "util/cleanup.h"

#ifdef SYS_open
#error "the older calls of syscalls.def are to be counted apart"
#endif

enum {
#define NUMBER(name, number) NR_##name = number,
#include "probes/syscalls_arm.def"
#undef NUMBER
};

/* Of the calls that arm64 has, too. The older ones, for which it has no number, are behind them. */
static const unsigned int own_count = 0
#define SYSCALL(...) +1
#define COPY(...) +1
#include "probes/syscalls.def"
#undef SYSCALL
#undef COPY
	;

#define SYS_open NR_open

static const struct {
	int nr;
	struct event_syscall is;
} syscalls[] = {
#define SYSCALL(name, op, fd, path, offset, bytes)                                                 \
	{ NR_##name, { EVENT_OP_##op, fd, path, offset, bytes, -1, 0, 0, -1 } },
#define COPY(name, from, to, bytes)                                                                \
	{ NR_##name, { EVENT_OP_COPY, from, -1, -1, bytes, to, 0, 0, -1 } },
#include "probes/syscalls.def"
/* Later rows replace earlier ones. */
#define WIDE_ROW(name, op, fd, path, offset, bytes, wide)                                          \
	{ NR_##name, { EVENT_OP_##op, fd, path, offset, bytes, -1, 0, wide, -1 } },
#define WIDE(...) WIDE_ROW(__VA_ARGS__, EVENT_WIDE_OFFSET | EVENT_WIDE_BYTES)
#define WIDE_OFFSET(...) WIDE_ROW(__VA_ARGS__, EVENT_WIDE_OFFSET)
#include "probes/syscalls_arm.def"
};

void syscalls_arm_fill(const int *own, struct event_syscall calls[EVENT_SYSCALLS_MAX])
{
	for (unsigned int i = 0; i < ARRAY_SIZE(syscalls); i++) {
		struct event_syscall *call = &calls[syscalls[i].nr];
		int16_t own_nr = i < own_count ? (int16_t)own[i] : call->own_nr;

		*call = syscalls[i].is;
		call->own_nr = own_nr;
	}
}
