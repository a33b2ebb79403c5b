/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The settings trace.cgroup and trace.device put into the maps that the BPF side asks.
 * Called when probes are loaded and again before each arming. trace.process is the session's.
 * Never reads but from sysfs and the cgroup tree, never touches anything but the maps.
 */
#ifndef IOSTALL_PROBES_FILTER_H
#define IOSTALL_PROBES_FILTER_H

#include "config.h"
#include "probes/maps.h"
#include "probes/probe.h"

/* Which filters are asked at all: by what is named, whether it exists at the moment or not. */
void filter_settings(const struct config *config, struct probe_settings *settings);

/*
 * Looks up what is named and replaces what the maps held: a restarted service has a new cgroup, a
 * device that comes back may have another number. What does not exist matches nothing until a later
 * call finds it, and is logged when that changes. -EINVAL, logged, for values that can never be
 * right: a path for a device, more than EVENT_FILTER_CGROUPS_MAX cgroups; another negative errno
 * when the maps cannot be written.
 */
int filter_fill(struct trace_maps *maps, const struct config *config, const char *sysfs);

#endif
