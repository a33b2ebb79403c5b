/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches and detaches the probes of a set: those that note who falls asleep, and the rest. */
#include <string.h>

#include <bpf/bpf.h>

#include "probes/set.h"
#include "util/log.h"

bool probe_set_is_scanned(unsigned int probe)
{
	return probe_ops_get(probe)->task_scan_program != NULL;
}

static void attach_where(struct probe_set *set, bool scanned)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];
		int r;

		if (!set->enabled[i] || !probe->backend || probe_set_is_scanned(i) != scanned)
			continue;
		/* A program that still ran when its link went has noted what it saw. */
		if (probe->links_count == 0)
			probe_clear_maps(probe);
		if (probe->ops->reset && probe->object)
			probe->ops->reset(probe);
		r = probe_attach(probe);
		if (r < 0)
			log_warning("probe %s: cannot attach: %s", probe->ops->name, strerror(-r));
		set->attached[i] = r == 0;
	}
}

void probe_set_begin_attaching(struct probe_set *set)
{
	memset(set->attached, 0, sizeof(set->attached));
}

void probe_set_attach_scanned(struct probe_set *set)
{
	attach_where(set, true);
}

void probe_set_attach_rest(struct probe_set *set)
{
	probe_set_prepare(set);
	attach_where(set, false);
}

void probe_set_detach_scanned(struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		while (probe_set_is_scanned(i) && probe_detach_next(&set->probes[i]))
			;
}

bool probe_set_detach_next(struct probe_set *set)
{
	for (unsigned int i = CONFIG_PROBE_COUNT; i-- > 0;) {
		struct probe *probe = &set->probes[i];

		if (probe_set_is_scanned(i) || !probe_detach_next(probe))
			continue;
		/*
		 * While it is not detached as a whole, each end is still seen: completions are
		 * detached last.
		 */
		if (probe->links_count == 0)
			probe_clear_maps(probe);
		return true;
	}
	return false;
}

static bool is_attached_where(const struct probe_set *set, bool scanned)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (probe_set_is_scanned(i) == scanned && set->probes[i].links_count > 0)
			return true;
	return false;
}

bool probe_set_scanned_is_attached(const struct probe_set *set)
{
	return is_attached_where(set, true);
}

bool probe_set_rest_is_attached(const struct probe_set *set)
{
	return is_attached_where(set, false);
}

void probe_set_forget_scanned(struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (probe_set_is_scanned(i))
			set->probes[i] = (struct probe){};
}

void probe_set_forget_replaced(struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];

		if (probe_set_is_scanned(i) || !set->enabled[i] || !probe_needs_prepare(probe))
			continue;
		probe->object = NULL;
		probe->skeleton = NULL;
	}
}

static void copy_where(struct probe_set *set, const struct probe_set *from, bool scanned,
	bool attached)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		if (probe_set_is_scanned(i) != scanned)
			continue;
		set->probes[i] = from->probes[i];
		if (attached)
			set->attached[i] = from->attached[i];
	}
}

void probe_set_copy_scanned(struct probe_set *set, const struct probe_set *from, bool attached)
{
	copy_where(set, from, true, attached);
}

void probe_set_copy_rest(struct probe_set *set, const struct probe_set *from, bool attached)
{
	copy_where(set, from, false, attached);
}
