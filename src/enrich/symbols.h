/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the symbol of a kernel address, from /proc/kallsyms.
 * Called by enrich.c, and by doctor as a check. The file is read at start only: the kernel
 * needs 0.1 s to generate it, too much during an incident.
 * Never keeps other symbols than functions.
 */
#ifndef IOSTALL_ENRICH_SYMBOLS_H
#define IOSTALL_ENRICH_SYMBOLS_H

#include <stdint.h>

#include "util/text.h"

struct symbols;

/* -EPERM when the addresses are hidden (kernel.kptr_restrict, no CAP_SYSLOG). */
int symbols_new(const char *kallsyms, struct symbols **ret_symbols);
struct symbols *symbols_free(struct symbols *symbols);

/* Appends "name+0x1f", or "0xffffffff81..." when the symbol is unknown or symbols is NULL. */
void symbols_add_name(const struct symbols *symbols, uint64_t address, struct text *out);

#endif
