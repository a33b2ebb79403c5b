/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All probes together with the maps they share: load, attach, detach, count, tell what is covered.
 * Owned by the session (and by doctor for a moment).
 * Never decides when; a probe that fails costs its own coverage only.
 */
#ifndef IOSTALL_PROBES_SET_H
#define IOSTALL_PROBES_SET_H

#include "config.h"
#include "probes/maps.h"
#include "probes/probe.h"
#include "record/record.h"

#define PROBE_SET_LINKS_MAX (CONFIG_PROBE_COUNT * PROBE_PROGRAMS_MAX)

struct probe_set {
	struct trace_maps maps;
	struct probe_settings settings;
	struct probe probes[CONFIG_PROBE_COUNT];
	bool enabled[CONFIG_PROBE_COUNT];
	bool attached[CONFIG_PROBE_COUNT];
};

/* Since the maps were made; differences are what an incident lost. */
struct probe_counters {
	uint64_t losses[EVENT_LOSS_COUNT];
	uint64_t skipped_runs;
	uint64_t missed_hits;
};

/* Makes libbpf's messages ours: warnings at debug level, since we say ourselves what failed. */
void probe_set_redirect_libbpf_log(void);

/*
 * Maps, filters and one backend for each enabled probe. 0 when at least one probe works; -EINVAL when a
 * filter is malformed (logged); else why the last probe failed. generation: another one than that of any
 * set this process has loaded now.
 */
int probe_set_load(struct probe_set *set, const struct config *config, const char *sysfs,
	uint32_t generation);

/* Every backend of every probe is tried; nothing stays loaded. For doctor. */
int probe_set_try_all(struct probe_set *set, const struct config *config, const char *sysfs);

/* Accepts a zeroed or an unloaded set. */
void probe_set_unload(struct probe_set *set);

/* Makes everything attachable (again); nothing may be attached. The pairing maps stay as they are. */
void probe_set_prepare(struct probe_set *set);

/*
 * In two steps, since what sleeps is looked for in between: first what notes who falls asleep, then the rest.
 * Failures are logged.
 */
void probe_set_attach_seeded(struct probe_set *set);
void probe_set_attach_rest(struct probe_set *set);
/* Has the probes that are live, or were up to now, write the lines they have of their own. */
void probe_set_summarize(struct probe_set *set, const struct probe_report *report);
unsigned int probe_set_take_links(struct probe_set *set,
	struct bpf_link *ret_links[PROBE_SET_LINKS_MAX]);

void probe_set_read_counters(const struct probe_set *set, struct probe_counters *ret_counters);
void probe_set_describe_coverage(const struct probe_set *set, struct record_open *open);

#endif
