/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether those who waited for a disk worked for the one who loaded it: then they are no victims.
 * Used by victims.c only.
 * Pure. Never says who loaded it: see blame.h.
 */
#ifndef IOSTALL_VERDICT_OWN_WORK_H
#define IOSTALL_VERDICT_OWN_WORK_H

#include "verdict/blame.h"

bool own_work_of_thread(const struct model *model, const struct culprit *culprit,
	const struct model_wait *wait, const struct model_thread *thread);
/* The same of all threads of a group, as far as lines stand for many. */
bool own_work_of_group(const struct model *model, const struct culprit *culprit,
	const struct model_wait *wait);

#endif
