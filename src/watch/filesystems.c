/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/filesystems.h"

#include <math.h>
#include <string.h>

#include "util/clock.h"
#include "watch/statvfs_worker.h"

static void ask(struct filesystems *f, uint64_t now_ns)
{
	f->asking = true;
	f->asked_ns = now_ns;
	statvfs_worker_ask(f->worker, now_ns);
}

void filesystems_stop(struct filesystems *f)
{
	f->worker = statvfs_worker_free(f->worker);
}

int filesystems_start(struct filesystems *f, int procfs_fd, const struct config_list *patterns,
	uint64_t now_ns)
{
	struct statvfs_worker *worker;
	int r;

	if (f->worker && config_list_is_same(&f->patterns, patterns))
		return 0;
	r = statvfs_worker_new(procfs_fd, patterns, &worker);
	if (r < 0)
		return r;
	filesystems_stop(f);
	f->worker = worker;
	f->patterns = *patterns;
	ask(f, now_ns);
	return 0;
}

static struct filesystems_slot *find_slot(struct filesystems *f,
	const struct record_file_system *fs)
{
	for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++) {
		struct filesystems_slot *slot = &f->slots[i];

		if (slot->used && record_dev_is_same(slot->view.dev, fs->dev))
			return slot;
	}
	return NULL;
}

static bool table_has(const struct fs_usage_table *table, const struct record_file_system *fs)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (record_dev_is_same(table->list[i].dev, fs->dev))
			return true;
	return false;
}

static void forget_values(struct filesystems_slot *slot)
{
	slot->view.used_pct = NAN;
	slot->view.inodes_used_pct = NAN;
}

/* There is a free slot: there are as many as rows in the table. */
static void add_slot(struct filesystems *f, const struct record_file_system *fs)
{
	struct filesystems_slot *slot = f->slots;

	while (slot->used)
		slot++;
	*slot = (struct filesystems_slot){ .used = true, .serial = ++f->serial, .view = *fs };
}

/* A file system keeps its slot as long as it is mounted: rules keep their state by slot. */
static void take_answer(struct filesystems *f, const struct fs_usage_table *table)
{
	if (table->is_missing) {
		for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++)
			forget_values(&f->slots[i]);
		return;
	}
	for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++)
		if (f->slots[i].used && !table_has(table, &f->slots[i].view))
			f->slots[i].used = false;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct record_file_system *fs = &table->list[i];
		struct filesystems_slot *slot = find_slot(f, fs);

		if (!slot)
			add_slot(f, fs);
		else if (isnan(fs->used_pct))
			forget_values(slot);
		else
			slot->view = *fs;
	}
	f->left_out = table->left_out;
}

void filesystems_replace_hung(struct filesystems *f, uint64_t now_ns)
{
	if (f->asking && statvfs_worker_replace_hung(f->worker, now_ns))
		ask(f, now_ns);
}

void filesystems_update(struct filesystems *f, uint64_t now_ns, bool armed)
{
	const struct fs_usage_table *answer;

	if (!f->worker)
		return;
	answer = f->asking ? statvfs_worker_answer(f->worker) : NULL;
	if (answer) {
		take_answer(f, answer);
		f->answered_ns = f->asked_ns;
		f->asking = false;
	}
	if (!f->asking && (armed || now_ns - f->asked_ns >= FILESYSTEMS_PERIOD_NS))
		ask(f, now_ns);
	if (now_ns - f->answered_ns > FILESYSTEMS_UNKNOWN_AFTER_NS)
		for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++)
			forget_values(&f->slots[i]);
}

static double fullness(const struct record_file_system *fs)
{
	double pct = isnan(fs->used_pct) ? -1 : fs->used_pct;

	return fs->inodes_used_pct > pct ? fs->inodes_used_pct : pct;
}

void filesystems_fill_limits(const struct filesystems *f, struct record_limits *limits)
{
	const struct record_file_system *top[RECORD_FILE_SYSTEMS_MAX];
	uint32_t count = 0;

	for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++) {
		const struct record_file_system *fs = &f->slots[i].view;
		uint32_t at = count;

		if (!f->slots[i].used)
			continue;
		while (at > 0 && fullness(fs) > fullness(top[at - 1]))
			at--;
		if (at == RECORD_FILE_SYSTEMS_MAX)
			continue;
		if (count < RECORD_FILE_SYSTEMS_MAX)
			count++;
		memmove(top + at + 1, top + at, (count - at - 1) * sizeof(top[0]));
		top[at] = fs;
	}
	for (uint32_t i = 0; i < count; i++)
		limits->file_systems[i] = *top[i];
	limits->file_systems_count = count;
}
