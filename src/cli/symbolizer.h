/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of places in programs, from the files of this host: an `offcpu` line has them as build-id
 * and offset.
 * Called by show and report. A process of its own reads programs with libdw, which is loaded when
 * it is needed, and their debug symbols where libdw finds these, also with debuginfod.
 * Never uses a file with another build-id, nor one that others than root and the caller may write.
 */
#ifndef IOSTALL_CLI_SYMBOLIZER_H
#define IOSTALL_CLI_SYMBOLIZER_H

#include "record/record.h"
#include "util/text.h"

struct symbolizer;

/* NULL is accepted; returns NULL. */
struct symbolizer *symbolizer_free(struct symbolizer *symbolizer);

/*
 * Puts the names of its frames in the place of line->ustack, as far as they fit, one on each line
 * and the innermost first: "function", or "module+0xoffset" where the function is not known, or the
 * frame as it is. *symbolizer is made when it is needed; without memory for it the line stays as it
 * is, and so does every line once the disk that has the programs does not answer.
 */
void symbolizer_name_stack(struct symbolizer **symbolizer, struct record_offcpu *line);

#endif
