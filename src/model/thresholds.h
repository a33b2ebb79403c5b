/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From where on something counts, each with its reason in thresholds.def.
 * Included by the model and the verdict.
 * Never anything that a host or a user may set: the same record has the same verdict everywhere.
 */
#ifndef IOSTALL_MODEL_THRESHOLDS_H
#define IOSTALL_MODEL_THRESHOLDS_H

#include "util/clock.h"

#define THRESHOLD(name, value, why) static const __typeof__(value) name = value;
#include "model/thresholds.def"
#undef THRESHOLD

#endif
