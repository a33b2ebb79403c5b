/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps what hooks have written, as record.dir/ID.d/NAME.out.
 * Used by the hook sink, and by the retention, which removes it with its record.
 * Never waits on the event loop: a thread does, for the disk, one output after the other.
 */
#ifndef IOSTALL_SINKS_HOOK_OUTPUT_H
#define IOSTALL_SINKS_HOOK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

struct hook_output;

/* `most` is the largest output, in bytes. 0 or a negative errno. */
int hook_output_new(const char *dir, size_t most, struct hook_output **ret_output);
/* Returns at once. NULL is accepted. */
struct hook_output *hook_output_free(struct hook_output *output);

/* False while the one before is not on disk. */
bool hook_output_keep(struct hook_output *output, const char *incident, const char *name,
	const char *bytes, size_t len);
bool hook_output_is_busy(const struct hook_output *output);

/* What is kept beside the record of that file name, on the thread of the caller: bytes. */
uint64_t hook_output_bytes(int dir_fd, const char *record);
/* What has another name than an output, the operator has put there: it stays. */
void hook_output_remove(int dir_fd, const char *record);
/* Whether a name is that of outputs of an incident; gives the file name of its record. */
bool hook_output_is_name(const char *name, char ret_record[static RECORD_FILE_SIZE]);

#endif
