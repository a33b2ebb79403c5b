/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel stack as people read it: names instead of addresses, without the frames that stand for
 * no call of the kernel.
 * Used by enrich.c, for the stacks of operations and of blocked time.
 */
#ifndef IOSTALL_ENRICH_STACK_H
#define IOSTALL_ENRICH_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "enrich/symbols.h"
#include "record/record.h"

/*
 * Lines of "symbol+0xoff", innermost first, up to an address of 0 or to the last that has room.
 * `asleep`: it was taken in the scheduler, whose functions are left out. symbols may be NULL.
 */
void stack_write(const struct symbols *symbols, const uint64_t *addresses, uint32_t count,
	bool asleep, char ret_stack[RECORD_STACK_SIZE]);

#endif
