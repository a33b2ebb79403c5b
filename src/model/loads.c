/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/loads.h"

#include <string.h>

#include "model/model.h"

const struct model_loads_of *model_loads_find(const struct model_loads *loads, int disk)
{
	for (uint32_t i = 0; i < loads->count; i++)
		if (loads->list[i].disk == disk)
			return &loads->list[i];
	return NULL;
}

static double work_of(const struct model *m, const struct model_loads_of *loads)
{
	return model_disk_work_ns(&m->disks.list[loads->disk]);
}

/* The place for another disk; NULL: all others worked longer. */
static struct model_loads_of *find_place(struct model *m, int disk)
{
	struct model_loads_of *least = m->loads.list;

	if (m->loads.count < MODEL_LOADED_DISKS_MAX)
		return &m->loads.list[m->loads.count++];
	for (uint32_t i = 1; i < m->loads.count; i++)
		if (work_of(m, &m->loads.list[i]) < work_of(m, least))
			least = &m->loads.list[i];
	if (work_of(m, least) >= model_disk_work_ns(&m->disks.list[disk]))
		return NULL;
	memset(least, 0, sizeof(*least));
	return least;
}

/* NULL: there is no room, or the disk is not known. */
static struct model_loads_of *get_loads(struct model *m, int disk)
{
	struct model_loads_of *loads = (struct model_loads_of *)model_loads_find(&m->loads, disk);

	if (loads || disk < 0)
		return loads;
	loads = find_place(m, disk);
	if (!loads)
		return NULL;
	loads->disk = disk;
	return loads;
}

static void set_load(struct model_load *load, const struct record_io_by *line)
{
	*load = (struct model_load){
		.busy_ns = line->busy_ns,
		.bytes = line->bytes + line->discard_bytes,
		.read_bytes = line->read_bytes,
		.discard_bytes = line->discard_bytes,
		.requests = { line->read_requests, line->write_requests, line->discard_requests,
			line->flush_requests },
		.before_ns = line->before_busy_ns,
		.before_bytes = line->before_bytes,
		.before_requests = line->before_requests,
		.cgroup = line->cgroup,
		.who = model_who_of(line->pid, line->tid ? line->tid : line->pid, line->comm),
		.file = model_file_id_of(line->fs_dev, line->inode, line->path),
		.inferred = line->inferred,
		.uncertain = line->uncertain,
	};
	model_set_path(load->name,
		line->by == RECORD_BY_file	       ? line->path
			: line->by == RECORD_BY_cgroup ? line->unit
						       : line->role);
	text_copy(load->relation, sizeof(load->relation), line->relation);
}

static struct model_load *list_of(struct model_loads_of *loads, enum record_by by)
{
	switch (by) {
	case RECORD_BY_process:
		return loads->processes;
	case RECORD_BY_thread:
		return loads->threads;
	case RECORD_BY_file:
		return loads->files;
	case RECORD_BY_cgroup:
		return loads->units;
	default:
		return NULL;
	}
}

const struct model_load *model_loads_list(const struct model_loads_of *loads, enum record_by by,
	uint32_t *ret_count)
{
	*ret_count = loads->counts[by];
	return list_of((struct model_loads_of *)loads, by);
}

/* More than a file has was read more than once. */
static void add_read_again(struct model_disk *disk, const struct record_io_by *line)
{
	if (line->rank == 1)
		disk->files_read_bytes = disk->files_again_bytes = 0;
	if (line->file_bytes == 0)
		return;
	disk->files_read_bytes += line->read_bytes;
	if (line->read_bytes > line->file_bytes)
		disk->files_again_bytes += line->read_bytes - line->file_bytes;
}

/* Each list is told again and again: the first line of a new one forgets the one before. */
void model_loads_add(struct model *m, const struct record_io_by *line)
{
	int disk = model_disks_find(&m->disks, line->dev);
	struct model_loads_of *loads = get_loads(m, disk);
	struct model_load *list;
	uint32_t *count;

	if (!loads || line->by >= RECORD_BY_COUNT)
		return;
	list = list_of(loads, line->by);
	count = &loads->counts[line->by];
	if (line->rank == 1)
		*count = 0;
	if (line->by == RECORD_BY_file)
		add_read_again(&m->disks.list[disk], line);
	if (line->by == RECORD_BY_cgroup && !*line->unit)
		return;
	if (line->by == RECORD_BY_statement && *count < MODEL_STATEMENTS_MAX) {
		loads->statements[*count].statement = line->statement;
		set_load(&loads->statements[(*count)++].load, line);
	} else if (list && *count < MODEL_LOADS_MAX) {
		set_load(&list[(*count)++], line);
	}
}
