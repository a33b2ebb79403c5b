/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts the settings trace.cgroup and trace.device into the maps that the BPF side looks up. The
 * session does the same with trace.process.
 * Called by set.c at load, and by the session each second while no incident is open: in one, a
 * look-up takes locks that others may hold while they wait for memory.
 * Never reads anything but sysfs and the cgroup tree, never writes anything but the maps.
 */
#ifndef IOSTALL_PROBES_FILTER_H
#define IOSTALL_PROBES_FILTER_H

#include "config/config.h"
#include "enrich/enrich.h"
#include "probes/maps.h"
#include "probes/probe.h"

/* Turns on the filters that the configuration names, whether or not the items exist now. */
void filter_settings(const struct config *config, struct probe_settings *settings);

/*
 * Looks up what is named and replaces the contents of the maps: a restarted service has a new
 * cgroup, and a device that comes back may have another number. An item that does not exist matches
 * nothing until a later call finds it; each change is logged. Of a device `enrich` knows what else
 * belongs to it; NULL: that is not known yet. A negative errno when the maps cannot be written.
 */
int filter_fill(struct trace_maps *maps, const struct config *config, const char *sysfs,
	const struct enrich *enrich);
/* The same, if anything is named. */
void filter_refresh(struct trace_maps *maps, const struct config *config, const char *sysfs,
	const struct enrich *enrich);

#endif
