/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/journal.h"

#include <inttypes.h>

#include "util/clock.h"
#include "verdict/devices.h"
#include "verdict/words.h"

/* As a wait that is noticed. */
#define LONG_NS (NSEC_PER_SEC / 4)
#define MOSTLY_PCT 50

/* A commit of fewer blocks is small: who changed them did not make it long. */
#define LARGE_BLOCKS 256

static uint64_t longest_ns(const struct verdict_journal *j)
{
	return j->at_least_ns > j->longest_ns ? j->at_least_ns : j->longest_ns;
}

void verdict_note_journal(struct verdict_facts *f, const struct record_journal *line)
{
	struct verdict_journal j = {
		.longest_ns = line->longest_ns,
		.at_least_ns =
			line->early_ns > line->under_way_ns ? line->early_ns : line->under_way_ns,
		.blocks = line->longest_blocks,
		.data_pct = line->longest_data_pct,
		.commits = line->commits,
		.commit_ns = line->commit_ns,
		.committers = line->processes,
		.committer_pct = line->share_pct,
	};
	int device = verdict_get_fs_device(f, line->dev.major, line->dev.minor, line->dev_name);

	if (device < 0 || longest_ns(&j) <= longest_ns(&f->journals[device]))
		return;
	if (line->pid && j.blocks >= LARGE_BLOCKS) {
		verdict_set_who(&j.who, line->pid, 0, line->comm);
		j.share_pct = line->share_pct;
	}
	text_copy(j.name, sizeof(j.name), line->dev_name);
	if (line->processes)
		verdict_set_who(&j.committer, line->pid, 0, line->comm);
	f->journals[device] = j;
}

const struct verdict_journal *verdict_find_journal(const struct verdict_finding *v)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *w = &v->f->waiters[i];

		if (!verdict_has_row(&v->concerned, i) || w->wait != VERDICT_WAIT_journal ||
			w->longest_ns < LONG_NS || w->device < 0)
			continue;
		if (longest_ns(&v->f->journals[w->device]) >= LONG_NS)
			return &v->f->journals[w->device];
	}
	return NULL;
}

/* "at least 6.20 s"; "up to 3.10 s for 1203 blocks of metadata, 95 % of it to write the data of files first" */
static void add_length(const struct verdict_journal *j, struct text *t)
{
	text_add(t, j->at_least_ns > j->longest_ns ? "at least " : "up to ");
	record_add_duration(t, longest_ns(j));
	if (j->at_least_ns > j->longest_ns)
		return;
	text_add(t, " for ");
	text_add_count(t, j->blocks, "block", "blocks");
	text_add(t, " of metadata");
	if (j->data_pct >= MOSTLY_PCT)
		text_addf(t, ", %" PRIu64 " %% of it to write the data of files first",
			j->data_pct);
}

void verdict_add_journal(const struct verdict_finding *v, const struct verdict_journal *j,
	struct text *t)
{
	text_add(t, "a commit of the journal on ");
	verdict_add_device(t, &v->f->devices[j - v->f->journals]);
	text_add(t, " took ");
	add_length(j, t);
	if (!j->who.pid)
		return;
	text_add(t, "; ");
	verdict_add_who(t, &j->who);
	text_addf(t, " changed %.0f %% of the metadata", j->share_pct);
}
