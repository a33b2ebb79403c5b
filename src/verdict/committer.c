/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who has the journal of a file system committed again and again, as a program does that syncs each
 * line of its log: what the kernel's journal thread writes for that is that program's work.
 */
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "verdict/culprit.h"
#include "verdict/devices.h"
#include "verdict/writers.h"

/*
 * It sends a request of its own for each commit, or nearly so; others wait for commits that it
 * asked for.
 */
#define REQUESTS_PER_COMMIT_PCT 50

/* Of the file systems on the device, the one whose commits took longest. */
static const struct verdict_journal *find_journal(const struct verdict_finding *v)
{
	const struct verdict_facts *f = v->f;
	const struct verdict_journal *longest = NULL;

	for (uint32_t i = 0; i < f->devices_count; i++) {
		const struct verdict_journal *j = &f->journals[i];

		if (j->commits > 0 && verdict_stands_on(f, &f->devices[i], v->device) &&
			(!longest || j->commit_ns > longest->commit_ns))
			longest = j;
	}
	return longest && *longest->committer.comm ? longest : NULL;
}

static bool is_journal_thread(const char *comm)
{
	return strncmp(comm, "jbd2/", 5) == 0;
}

/* "jbd2/sdb1-8" of "sdb1"; the kernel cuts the names of its threads. */
static bool is_thread_of(const struct verdict_journal *j, const char *comm)
{
	char name[sizeof("jbd2/-") + sizeof(j->name)];

	snprintf(name, sizeof(name), "jbd2/%s-", j->name);
	return strncmp(comm, name, strnlen(name, RECORD_COMM_SIZE - 1)) == 0;
}

/* Whether the disk has other file systems whose journals were committed. */
static bool has_other_journal(const struct verdict_finding *v, const struct verdict_journal *j)
{
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (verdict_is_on_device(v, share) && share->kernel &&
			is_journal_thread(share->comm) && !is_thread_of(j, share->comm))
			return true;
	}
	return false;
}

/*
 * The thread of the journal, and workers that send the last block of a commit once the cache of the
 * disk has been flushed. Workers that write back files do not flush.
 */
static bool is_of_journal(const struct verdict_journal *j, const struct verdict_share *share,
	bool with_workers)
{
	const uint32_t flushes = share->requests[VERDICT_FLUSH];

	if (!share->kernel)
		return false;
	if (is_journal_thread(share->comm))
		return is_thread_of(j, share->comm);
	return with_workers && flushes > 0 && 2 * flushes >= share->requests[VERDICT_WRITE];
}

static bool is_of_committer(const struct verdict_journal *j, const struct verdict_share *share)
{
	if (share->kernel)
		return false;
	return j->committer.pid ? share->pid == j->committer.pid
				: strcmp(share->comm, j->committer.comm) == 0;
}

/* With metadata the inode is 0. */
static uint64_t files_ns(const struct verdict_finding *v)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < v->f->files_count; i++)
		if (v->f->files[i].device == v->device - v->f->devices && v->f->files[i].id.inode)
			ns += v->f->files[i].busy_ns;
	return ns;
}

/*
 * Before it commits the metadata of new blocks, the journal thread writes the data in them, whoever
 * wrote that. At least what is more than other kernel threads sent was the journal's.
 */
static bool writes_data(const struct verdict_finding *v, uint64_t journal_ns)
{
	uint64_t others_ns = verdict_kernel_ns(v) - journal_ns, data_ns = files_ns(v);

	return data_ns > others_ns && data_ns - others_ns >= journal_ns / 2;
}

void verdict_find_committer(struct verdict_finding *v)
{
	const struct verdict_journal *j = find_journal(v);
	struct verdict_load sum = { .uncertain = true };
	const struct verdict_share *through = NULL;
	uint64_t journal_ns = 0;
	bool with_workers;

	if (!j)
		return;
	for (uint32_t i = 0; i < v->f->shares_count; i++)
		if (verdict_is_on_device(v, &v->f->shares[i]) &&
			is_of_committer(j, &v->f->shares[i]))
			verdict_add_share(&sum, &v->f->shares[i], 1);
	if (100 * sum.requests[VERDICT_WRITE] < REQUESTS_PER_COMMIT_PCT * j->commits)
		return;
	with_workers = !has_other_journal(v, j);
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (!verdict_is_on_device(v, share) || !is_of_journal(j, share, with_workers))
			continue;
		verdict_add_share(&sum, share, j->committer_pct / 100);
		journal_ns += share->busy_ns;
		if (is_journal_thread(share->comm))
			through = share;
	}
	if (!through || writes_data(v, journal_ns))
		return;
	sum.count = 1;
	sum.who = j->committer;
	v->group = sum;
	v->group_shares = 0;
	v->committers = j->committers;
	verdict_set_who(&v->through, through->pid, through->tid, through->comm);
	v->culprit = &v->group;
	v->culprit_by = VERDICT_BY_PROCESS;
	/* Most of it was for the journal itself. */
	v->file = "";
}
