/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The descriptors of all probes, one of each line of probes.def.
 * Used by the probes' own files and list.c.
 * Never used outside this room: others ask probe_ops_get().
 */
#ifndef IOSTALL_PROBES_LIST_H
#define IOSTALL_PROBES_LIST_H

#include "probes/probe.h"

#define PROBE(name, ...) extern const struct probe_ops probe_##name##_ops;
#include "probes/probes.def"
#undef PROBE

#endif
