/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/syscalls.h"

#include <sys/syscall.h>

#include "util/cleanup.h"

bool syscall_may_wait_for_work(char state, int32_t number)
{
	static const int32_t calls[] = {
		SYS_futex,
		SYS_ppoll,
		SYS_pselect6,
		SYS_epoll_pwait,
		SYS_epoll_pwait2,
		SYS_io_uring_enter,
		SYS_io_getevents,
		SYS_io_pgetevents,
		SYS_accept,
		SYS_accept4,
		SYS_rt_sigtimedwait,
#ifdef SYS_poll /* which newer architectures do not have */
		SYS_poll,
		SYS_select,
		SYS_epoll_wait,
#endif
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == number)
			return state == 'S';
	return false;
}
