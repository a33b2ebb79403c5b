/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folds what the lines of a record say of disks.
 * Part of model_add().
 */
#ifndef IOSTALL_MODEL_DISK_LINES_H
#define IOSTALL_MODEL_DISK_LINES_H

#include "model/disks.h"
#include "record/record.h"

struct model;

void model_disks_add_open(struct model_disks *disks, const struct record_open *open);
/* is_before: it ended MODEL_LEAD_NS before the trigger. */
void model_disks_add_sample(struct model *model, const struct record_sample *sample,
	bool is_before);
void model_disks_add_device(struct model *model, const struct record_device *device);

#endif
