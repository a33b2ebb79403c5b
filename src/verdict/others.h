/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whom to look at next where no program had half of a device.
 * Used inside this room only.
 * Pure; never changes the facts.
 */
#ifndef IOSTALL_VERDICT_OTHERS_H
#define IOSTALL_VERDICT_OTHERS_H

#include "verdict/rules.h"

/*
 * "; next came beta pid 2310 with 27 % and gamma pid 2312 with 24 %" of the device time; nothing if
 * the culprit had half of it, or no other process had nearly as much.
 */
void verdict_add_others(const struct verdict_finding *v, struct text *t);

#endif
