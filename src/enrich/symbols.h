/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the symbol of a kernel address, from /proc/kallsyms and /proc/modules.
 * Made by symbols_reader.c, and by doctor as a check. The kernel needs 0.1 s to generate the
 * first, and module_mutex for the second, which may be held for long: too much for the event loop.
 * Never keeps other symbols than functions; never takes an address behind the end of a module or of
 * the kernel for one of its functions.
 */
#ifndef IOSTALL_ENRICH_SYMBOLS_H
#define IOSTALL_ENRICH_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "iostall/event.h"
#include "util/text.h"

struct symbols;

/*
 * The descriptor is that of "/proc" or a fixture. 0, -EPERM when the addresses are hidden
 * (kernel.kptr_restrict, no CAP_SYSLOG), or another negative errno.
 */
int symbols_new(int procfs_fd, struct symbols **ret_symbols);
/* What to do about its error, in brackets; "". */
const char *symbols_hint(int error);
struct symbols *symbols_free(struct symbols *symbols);

/* A number for the modules that were loaded then, and where. */
uint64_t symbols_stamp(const struct symbols *symbols);
/* The same for those that are loaded now. 0 or a negative errno. */
int symbols_read_stamp(int procfs_fd, uint64_t *ret_stamp);

/*
 * Where the functions of server_waits.def are, as far as this kernel has them now. False: one was
 * left out, since there is no room.
 */
bool symbols_find_server_waits(const struct symbols *symbols, struct event_server_waits *ret_waits);

/* Appends "name+0x1f", or "0xffffffff81..." when the symbol is unknown or symbols is NULL. */
void symbols_add_name(const struct symbols *symbols, uint64_t address, struct text *out);

#endif
