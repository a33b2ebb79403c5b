/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/block_journal.h"

#include <math.h>
#include <string.h>

#include <bpf/bpf.h>

#include "probes/probe.h"
#include "util/text.h"

#define HALF_PCT 50

struct journal_part {
	const struct block_journal_user *user; /* one of them */
	uint64_t blocks;
	uint32_t processes;
};

/* What the process changed, or with by_name all programs of its name did. */
static struct journal_part part_of(const struct block_journal_user *user,
	const struct block_journal_user *users, size_t count, bool by_name)
{
	struct journal_part part = { .user = user };

	for (size_t i = 0; i < count; i++) {
		if (users[i].key.dev != user->key.dev || users[i].value.kernel ||
			(by_name ? strcmp(users[i].value.comm, user->value.comm) != 0
				 : users[i].key.pid != user->key.pid ||
						users[i].key.process_start_ns !=
							user->key.process_start_ns))
			continue;
		part.blocks += users[i].value.blocks;
		part.processes++;
	}
	return part;
}

/* One process, or else several of one name, that changed at least half. False: there are none. */
static bool find_half(uint32_t dev, const struct block_journal_user *users, size_t count,
	uint64_t blocks, struct journal_part *ret_part)
{
	for (int by_name = 0; by_name <= 1; by_name++)
		for (size_t i = 0; i < count; i++) {
			if (users[i].key.dev != dev)
				continue;
			*ret_part = part_of(&users[i], users, count, by_name);
			if (blocks && 100 * ret_part->blocks >= HALF_PCT * blocks)
				return true;
		}
	return false;
}

static void fill_user(uint32_t dev, const struct block_journal_user *users, size_t count,
	uint64_t others_blocks, struct record_journal *j)
{
	struct journal_part part;

	j->share_pct = NAN;
	for (size_t i = 0; i < count; i++)
		if (users[i].key.dev == dev)
			j->blocks += users[i].value.blocks;
	j->blocks += others_blocks;
	if (!find_half(dev, users, count, j->blocks, &part))
		return;
	j->share_pct = 100.0 * (double)part.blocks / (double)j->blocks;
	j->processes = part.processes;
	j->pid = part.processes == 1 ? (int32_t)part.user->key.pid : 0;
	text_copy(j->comm, sizeof(j->comm), part.user->value.comm);
}

void block_journal_fill(uint32_t dev, const struct event_journal *journal,
	const struct block_journal_user *users, size_t count, const struct probe_report *report,
	struct record_journal *j)
{
	j->dev.major = dev >> 20;
	j->dev.minor = dev & 0xfffff;
	j->commits = journal->commits;
	j->commit_ns = journal->commit_ns;
	j->longest_ns = journal->longest_ns;
	j->longest_blocks = journal->longest_blocks;
	j->longest_data_pct = journal->longest_data_pct;
	if (journal->early_end_ns > report->attached_ns)
		j->early_ns = journal->early_end_ns - report->attached_ns;
	if (journal->start_ns && report->now_ns > journal->start_ns)
		j->under_way_ns = report->now_ns - journal->start_ns;
	fill_user(dev, users, count, journal->others_blocks, j);
}

static size_t read_users(int fd, struct block_journal_user *users)
{
	struct event_journal_user_key *previous = NULL;
	size_t count = 0;

	while (count < EVENT_JOURNAL_USERS_MAX) {
		struct block_journal_user *u = &users[count];

		if (bpf_map_get_next_key(fd, previous, &u->key) < 0)
			break;
		previous = &u->key;
		if (bpf_map_lookup_elem(fd, &u->key, &u->value) == 0)
			count++;
	}
	return count;
}

void block_journal_report(int journals_fd, int users_fd,
	struct block_journal_user users[EVENT_JOURNAL_USERS_MAX], const struct probe_report *report)
{
	size_t count = read_users(users_fd, users);
	const struct probe_line_names names = { 0 };
	uint32_t dev, *previous = NULL, next;
	struct event_journal journal;
	struct record_journal *line;

	while (bpf_map_get_next_key(journals_fd, previous, &next) == 0) {
		dev = next;
		previous = &dev;
		if (bpf_map_lookup_elem(journals_fd, &dev, &journal) < 0 ||
			(!journal.commits && !journal.start_ns && !journal.early_end_ns))
			continue;
		line = &report->begin(report->userdata, RECORD_JOURNAL)->journal;
		line->final = report->final;
		block_journal_fill(dev, &journal, users, count, report, line);
		report->write(report->userdata, &names);
	}
}
