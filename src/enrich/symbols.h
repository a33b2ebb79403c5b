/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel addresses to symbols, from /proc/kallsyms.
 * Loaded once at start by enrich.c: making that file costs the kernel 0.1 s, too much while armed.
 * Never holds more than the text symbols.
 */
#ifndef IOSTALL_ENRICH_SYMBOLS_H
#define IOSTALL_ENRICH_SYMBOLS_H

#include <stdint.h>

#include "util/text.h"

struct symbols;

/* -EPERM when the addresses are hidden (kernel.kptr_restrict, no CAP_SYSLOG). */
int symbols_new(const char *kallsyms, struct symbols **ret_symbols);
struct symbols *symbols_free(struct symbols *symbols);

/* "name+0x1f"; "0xffffffff81..." when unknown or symbols is NULL. */
void symbols_add_name(const struct symbols *symbols, uint64_t address, struct text *out);

#endif
