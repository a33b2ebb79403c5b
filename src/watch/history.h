/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The samples that are kept: a ring, from the oldest to the newest.
 * Used by watch.c only.
 * Never allocates but in history_resize().
 */
#ifndef IOSTALL_WATCH_HISTORY_H
#define IOSTALL_WATCH_HISTORY_H

#include "record/structs.h"

/* Of zeros at first. */
struct history {
	struct record_reading *samples;
	unsigned int size;
	unsigned int count;
	unsigned int newest;
};

/* Keeps the newest of the old samples, as many as fit. 0, or -ENOMEM when nothing has changed. */
int history_resize(struct history *h, unsigned int size);
void history_free(struct history *h);

/* The oldest makes room for it when there is none. */
void history_add(struct history *h, const struct record_reading *sample);

/* The newest; NULL before the first. */
const struct record_reading *history_last(const struct history *h);
/* 0 is the oldest; NULL beyond the count. */
const struct record_reading *history_get(const struct history *h, unsigned int i);

#endif
