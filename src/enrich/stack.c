/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/stack.h"

#include <string.h>

#include "util/text.h"

/* NULL: it is the last. */
static char *next_frame(char *frame)
{
	frame += strcspn(frame, "\n");
	return *frame ? frame + 1 : NULL;
}

/* The stack was taken in the scheduler; its frames up to schedule() say nothing about the wait. */
static void drop_scheduler_frames(char *kstack)
{
	char *frame = kstack;

	for (unsigned int i = 0; i < 8 && frame; i++) {
		bool is_last = strncmp(frame, "schedule+", strlen("schedule+")) == 0;

		frame = next_frame(frame);
		if (!is_last)
			continue;
		memmove(kstack, frame ? frame : "", frame ? strlen(frame) + 1 : 1);
		return;
	}
}

static bool is_same_function(const char *a, const char *b)
{
	size_t len = strcspn(a, "+\n");

	return a[len] == '+' && strncmp(a, b, len + 1) == 0;
}

static bool is_no_function(const char *frame)
{
	return strncmp(frame, "0x", 2) == 0 ||
		strncmp(frame, "bpf_trampoline_", strlen("bpf_trampoline_")) == 0 ||
		strncmp(frame, "ftrace_trampoline+", strlen("ftrace_trampoline+")) == 0;
}

/*
 * Who watches the return of a function has it called by generated code, which has no name: one
 * frame between two functions. Where the function itself called that code when it was entered, it
 * is there a second time: "vfs_read+0x95", the code, "vfs_read+0x9". It is one call. A module that
 * has no names yet would hardly have a single frame.
 */
static void drop_trampolines(char *kstack)
{
	char *previous = kstack, *frame = next_frame(kstack);

	while (frame) {
		char *caller = next_frame(frame);

		if (!caller || !is_no_function(frame) || is_no_function(previous) ||
			is_no_function(caller)) {
			previous = frame;
			frame = caller;
			continue;
		}
		if (is_same_function(previous, caller))
			caller = next_frame(caller);
		if (!caller) {
			frame[-1] = '\0';
			return;
		}
		memmove(frame, caller, strlen(caller) + 1);
	}
}

void stack_write(const struct symbols *symbols, const uint64_t *addresses, uint32_t count,
	bool asleep, char ret_stack[RECORD_STACK_SIZE])
{
	struct text stack = { .buf = ret_stack, .size = RECORD_STACK_SIZE };

	text_reset(&stack);
	for (uint32_t i = 0; i < count && addresses[i]; i++) {
		size_t len = stack.len;

		if (i > 0)
			text_add(&stack, "\n");
		symbols_add_name(symbols, addresses[i], &stack);
		if (stack.overflow) {
			ret_stack[len] = '\0';
			break;
		}
	}
	drop_trampolines(ret_stack);
	if (asleep)
		drop_scheduler_frames(ret_stack);
}
