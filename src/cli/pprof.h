/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `iostall show --format pprof`: the same as folded.h, as a profile of pprof (profile.proto of
 * github.com/google/pprof), compressed as gzip does it.
 * Used by show.
 * Allocates as much as the profile needs.
 */
#ifndef IOSTALL_CLI_PPROF_H
#define IOSTALL_CLI_PPROF_H

#include "cli/folded.h"

struct pprof_times {
	uint64_t opened_real_ns;
	uint64_t duration_ns;
};

/* 0, -ENOMEM or -EFBIG; ferror(3) tells of errors of `out`. Once for each `folded`. */
int pprof_print(struct folded *folded, const struct pprof_times *times, FILE *out);

#endif
