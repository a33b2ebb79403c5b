/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of capabilities, see capabilities(7).
 * Used by the configuration and by who starts programs.
 * Never changes those of the process.
 */
#ifndef IOSTALL_UTIL_CAPABILITY_H
#define IOSTALL_UTIL_CAPABILITY_H

#include <stdint.h>

/*
 * Names with blanks between them, as "CAP_SYS_PTRACE CAP_KILL", to bits. -EINVAL: there is one that
 * is not known; *ret_bits has those before it.
 */
int capability_parse(const char *names, uint64_t *ret_bits);

#endif
