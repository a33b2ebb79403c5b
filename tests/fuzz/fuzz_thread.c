/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/TID/stack. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/thread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char stack[THREAD_STACK_SIZE + 1];

	memset(stack, 0x7f, sizeof(stack));
	thread_parse_stack((const char *)data, size, stack);
	if (!memchr(stack, '\0', THREAD_STACK_SIZE) || stack[THREAD_STACK_SIZE] != 0x7f)
		abort();
	return 0;
}
