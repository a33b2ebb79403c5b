/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/TID/syscall and /proc/TID/stack. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/thread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct thread_syscall call = { .nr = 4711 };
	char stack[THREAD_STACK_SIZE + 1];

	if (thread_parse_syscall(text, size, &call) < 0) {
		if (call.nr != 4711 || call.running)
			abort();
	} else if (call.nr < -1 || (call.running && call.nr != 0)) {
		abort();
	}
	memset(stack, 0x7f, sizeof(stack));
	thread_parse_stack(text, size, stack);
	if (!memchr(stack, '\0', THREAD_STACK_SIZE) || stack[THREAD_STACK_SIZE] != 0x7f)
		abort();
	return 0;
}
