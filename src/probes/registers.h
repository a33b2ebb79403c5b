/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where in a thread's kernel stack the kernel has saved the registers of the program.
 * Called by set.c before it loads or tries probes.
 * Never guesses: what was not found is an error.
 */
#ifndef IOSTALL_PROBES_REGISTERS_H
#define IOSTALL_PROBES_REGISTERS_H

#include <stddef.h>
#include <stdint.h>

#include "iostall/event.h"

struct kernel_types;

/* The object file, which kernel_types_new() reads. */
const void *registers_elf(size_t *ret_size);

/*
 * Makes a system call and looks for it. The offset is in bytes from the beginning of the stack.
 * -ENODATA: it is in none of the places; else why the kernel does not let it be looked for.
 */
int registers_find(const struct kernel_types *types, uint32_t *ret_offset);

/*
 * The offset of the only place with the system call `made`; 0: none has it, or several have. Pure.
 */
uint32_t registers_choose(const struct event_registers places[EVENT_REGISTERS_PLACES],
	const struct event_registers *made);

#endif
