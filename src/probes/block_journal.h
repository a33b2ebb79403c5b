/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns what bpf/journal.bpf.h has noted of the journals of ext4 into lines of the record.
 * Called by block.c and by tests.
 * Never allocates memory.
 */
#ifndef IOSTALL_PROBES_BLOCK_JOURNAL_H
#define IOSTALL_PROBES_BLOCK_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "iostall/event.h"
#include "record/record.h"

struct probe_report;

struct block_journal_user {
	struct event_journal_user_key key;
	struct event_journal_user value;
};

/*
 * Fills in everything but the name of the device. Who changed most of the metadata is named when
 * that is no kernel thread and at least half of all.
 */
void block_journal_fill(uint32_t dev, const struct event_journal *journal,
	const struct block_journal_user *users, size_t count, const struct probe_report *report,
	struct record_journal *ret_journal);

/*
 * Writes a line for each journal that had a commit. The descriptors are those of the two maps, and
 * `users` is room for the second one.
 */
void block_journal_report(int journals_fd, int users_fd,
	struct block_journal_user users[EVENT_JOURNAL_USERS_MAX],
	const struct probe_report *report);

#endif
