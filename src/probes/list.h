/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declares the descriptors of all probes, one for each line of probes.def.
 * Included by probe_open.h and list.c.
 * Never included outside this room, where probe_ops_get() gives the descriptors.
 */
#ifndef IOSTALL_PROBES_LIST_H
#define IOSTALL_PROBES_LIST_H

#include "probes/probe.h"

#define PROBE(name, ...) extern const struct probe_ops probe_##name##_ops;
#include "probes/probes.def"
#undef PROBE

#endif
