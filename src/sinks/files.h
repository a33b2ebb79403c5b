/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the spool and the writer share: who may read a record, and threads that nobody waits for.
 * Used by the sinks and the control socket.
 * Never called from the event loop once it runs.
 */
#ifndef IOSTALL_SINKS_FILES_H
#define IOSTALL_SINKS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Operators read records through this group where it exists. */
#define FILES_GROUP "adm"
#define FILES_NO_GROUP ((gid_t)-1)
#define FILES_SPARE_PREFIX ".spare-"

/* FILES_NO_GROUP when there is none. */
gid_t files_find_group(void);

/*
 * Sets mode and group; 0 or the negative errno of the group (the mode is what it was created with).
 */
int files_set_access(int fd, mode_t mode, gid_t group);

/* ".spare-" and what follows. */
bool files_name_is_spare(const char *name);

/*
 * A detached thread with all signals blocked. It may hang for ever on a dead disk, so everything it
 * touches must live as long as it does.
 */
int files_start_thread(void *(*run)(void *), void *arg);

#endif
