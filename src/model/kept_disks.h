/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which disks an incident keeps: those without which most would be lost. Whoever waited for one
 * that gives way waited for what it stands on.
 * Used by the model room, for each line that names a disk.
 * Never forgets a disk that hangs for one that works.
 */
#ifndef IOSTALL_MODEL_KEPT_DISKS_H
#define IOSTALL_MODEL_KEPT_DISKS_H

#include "record/record.h"

struct model;

/* What a disk is worth: milliseconds that it was waited for, or worked in a sample. */
#define MODEL_WORTH_NAMED 1e9
/* What it did before the incident is worth less than the least in that. */
double model_worth_of_work(double work_ns, bool is_before);
double model_worth_of_hang(uint64_t ns);

/*
 * The index of the disk, which is added if it is not known. -1: there is no room, or it has neither
 * number nor name.
 */
int model_disks_get(struct model *model, struct record_dev dev, const char *name, double worth);

/*
 * The disk that a file system is on: the whole disk of a partition. Where there is no room, what it
 * stands on. -1: it is on none that is kept.
 */
int model_disks_get_of_fs(struct model *model, struct record_dev dev, const char *name,
	double worth_ms);

#endif
