/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the symbols of the kernel on a thread, at the start and whenever its modules have changed.
 * Used by enrich.c, while no incident is open.
 * Never waits, except at the start. The thread may hang: /proc/modules takes module_mutex. It is
 * one lock for all modules, so a thread that hangs is not replaced, and the symbols stay as they
 * are.
 */
#ifndef IOSTALL_ENRICH_SYMBOLS_READER_H
#define IOSTALL_ENRICH_SYMBOLS_READER_H

#include <stdint.h>

#include "enrich/symbols.h"
#include "util/renewable_worker.h"

struct symbols_reader {
	struct renewable_worker worker;
	unsigned int calls;
};

/* procfs_fd must stay open. 0 or a negative errno. */
int symbols_reader_init(struct symbols_reader *reader, int procfs_fd);
/* Returns at once. A reader of zeros is accepted. */
void symbols_reader_done(struct symbols_reader *reader);

/*
 * Has them read, and waits for so long at most. 0, an error of symbols_new(), or -ETIMEDOUT: the
 * thread goes on.
 */
int symbols_reader_wait(struct symbols_reader *reader, uint64_t at_most_ns,
	struct symbols **ret_symbols);
/*
 * Call it each second: every tenth call has the thread look at the modules. Returns what was read
 * since the last call, which is the caller's; NULL: nothing was.
 */
struct symbols *symbols_reader_take(struct symbols_reader *reader);

#endif
