/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A time as a person gives it to --since: how long ago, or when, by the local clock.
 * Used by `iostall list` and its tests.
 * Never guesses: what is neither is refused.
 */
#ifndef IOSTALL_CLI_SINCE_H
#define IOSTALL_CLI_SINCE_H

#include <stdint.h>

/*
 * "2h", "90m", "1d" before now_real_ns, or "2026-11-20", "2026-11-20 04:12", "2026-11-20T04:12:07".
 * 0 with nanoseconds since the epoch, or -EINVAL.
 */
int since_parse(const char *s, uint64_t now_real_ns, uint64_t *ret_real_ns);

#endif
