/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A `lock` line for people. */
#include <inttypes.h>

#include "record/format.h"

/* "memory map lock of mariadbd[2211]", "inode lock of /srv/file", "pipe of mariadbd[2211]" */
static void add_lock(struct text *t, const struct record_lock_wait *lock)
{
	static const bool is_name[RECORD_KERNEL_LOCK_COUNT] = {
		[RECORD_KERNEL_LOCK_mutex] = true,
		[RECORD_KERNEL_LOCK_pipe] = true,
		[RECORD_KERNEL_LOCK_socket] = true,
	};

	format_add_or_unknown(t, record_kernel_lock_text(lock->kind));
	text_add(t, is_name[lock->kind] ? " of " : " lock of ");
	if (*lock->path) {
		record_add_printable(t, lock->path);
		return;
	}
	format_add_or_unknown(t, lock->comm);
	text_addf(t, "[%" PRId32 "]", lock->pid);
	format_add_known(t, " in ", lock->function);
}

static void add_holder(struct text *t, const struct record_lock_wait *lock)
{
	const struct record_lock_holder *h = &lock->holder;

	if (!h->present) {
		if (lock->readers)
			text_addf(t, "held by %" PRIu32 " reader%s", lock->readers,
				lock->readers == 1 ? "" : "s");
		else
			text_add(t,
				record_lock_has_reader(lock->kind)
					? "who should read from it is not known"
					: "its holder is not known");
		return;
	}
	text_add(t, h->basis == RECORD_BASIS_inferred ? "probably " : "");
	text_add(t, record_lock_has_reader(lock->kind) ? "not read by " : "held by ");
	format_add_or_unknown(t, h->comm);
	text_addf(t, "[%" PRId32 "/%" PRId32 "] for at least ", h->pid, h->tid);
	record_add_duration(t, h->held_ns);
	if (h->state) {
		text_add(t, ", state ");
		text_add_printable(t, &h->state, 1);
	}
	format_add_known(t, ", waits for ", record_cause_text(h->waits_for));
	if (h->deadlocked_with)
		text_addf(t, ", deadlocked with thread %" PRId32, h->deadlocked_with);
	if (h->connection_id)
		text_addf(t, ", session %" PRIu64, h->connection_id);
}

void record_add_lock(const struct record_lock_wait *lock, struct text *t)
{
	add_lock(t, lock);
	text_add(t, "  ");
	if (lock->tries)
		text_add_count(t, lock->waiters, "thread tries again and again",
			"threads try again and again");
	else
		text_add_count(t, lock->waiters, "thread waits", "threads wait");
	text_add(t, ", the longest ");
	record_add_duration(t, lock->longest_ns);
	text_add(t, "; ");
	add_holder(t, lock);
}

void format_lock(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	format_add_time(t, r, opened_mono_ns);
	text_add(t, "lock    ");
	record_add_lock(&r->lock_wait, t);
	text_add(t, "\n");
}
