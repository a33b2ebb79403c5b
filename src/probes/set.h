/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All probes with the maps that they share: loads, attaches and detaches them, counts losses,
 * describes coverage.
 * Called by the session and by doctor, which own a set.
 * Never decides when to attach. A probe that fails costs its own coverage only.
 */
#ifndef IOSTALL_PROBES_SET_H
#define IOSTALL_PROBES_SET_H

#include "config/config.h"
#include "probes/maps.h"
#include "probes/probe.h"
#include "record/record.h"

struct kernel_types;

struct probe_set {
	struct trace_maps maps;
	struct probe_settings settings;
	struct probe probes[CONFIG_PROBE_COUNT];
	/* As configured; the sizes in `settings` may be larger. */
	enum config_backend backend;
	uint64_t ring_bytes;
	uint64_t inflight_max;
	bool enabled[CONFIG_PROBE_COUNT];
	bool attached[CONFIG_PROBE_COUNT];
	uint64_t kernel_bytes; /* of its maps and programs */
	bool server_waits_unknown;
};

/* Counted since the maps were created; an incident takes the difference. */
struct probe_counters {
	uint64_t losses[EVENT_LOSS_COUNT];
	uint64_t skipped_runs;
};

/* Logs libbpf's warnings at debug level, since iostall itself says what failed. */
void probe_set_redirect_libbpf_log(void);

/*
 * Creates the maps, fills the filters and loads one backend of each enabled probe. 0 when at least
 * one probe works; else the error of the last probe, or one that may pass if there was any.
 * `generation` must differ from that of any other set that this process has loaded; the first set
 * has 0.
 * `types` is made by the first call, and must outlive all sets.
 * `like`: the set that this one will replace, or NULL. Where it has these probes, as configured
 * now, and room for as many threads, its maps are taken over and nothing is tried; then an error
 * says that a probe could not be loaded.
 */
int probe_set_load(struct probe_set *set, const struct config *config, const char *sysfs,
	uint32_t generation, struct kernel_types **types, const struct probe_set *like);

/*
 * Copies what probe_set_load() needs of a set, for another thread; probe_set_forget() frees the
 * copy. 0 or a negative errno.
 */
int probe_set_remember(const struct probe_set *set, struct probe_set *ret_copy);
void probe_set_forget(struct probe_set *copy);

/*
 * Whether the host has come to have more threads than there is room for, in the map of operations
 * in flight or in the ring buffer, or more CPUs: the highest number of one on-line, plus 1. A set
 * that is loaded now has room.
 */
bool probe_set_is_outgrown(const struct probe_set *set, uint32_t cpus);
/*
 * The highest number in the text of /sys/devices/system/cpu/online, "0-3,8-11", plus 1; 0: it is no
 * such text. Pure.
 */
uint32_t probe_set_parse_cpus(const char *text);

/*
 * Tries every backend of every probe in child processes and leaves nothing loaded. For doctor. 0,
 * or why the shared maps cannot be made.
 */
int probe_set_try_all(struct probe_set *set, const struct config *config, const char *sysfs);

/* Accepts a zeroed or an unloaded set. */
void probe_set_unload(struct probe_set *set);

/*
 * Makes every probe attachable (again); nothing may be attached. Leaves the maps of operations in
 * flight as they are.
 */
void probe_set_prepare(struct probe_set *set);
bool probe_set_needs_prepare(const struct probe_set *set);

/*
 * Attaching has two parts, each in a copy of the set on a thread of its own: the probes that note
 * who falls asleep, whose links are all gone, and the rest, of which some may still be attached.
 * Both may wait for whoever else attaches or detaches something, and the second loads fentry
 * programs again on 5.10. Failures are logged.
 */
void probe_set_attach_scanned(struct probe_set *set);
/* Whether it is of the first part: threads that sleep already are looked for with it. */
bool probe_set_is_scanned(unsigned int probe);
void probe_set_attach_rest(struct probe_set *set);
/* Before both, in the set itself: nothing of it has been attached in this incident. */
void probe_set_begin_attaching(struct probe_set *set);
/*
 * Before both: in which functions threads wait for file servers. `known`: these are all that there
 * are; else the coverage says so.
 */
void probe_set_tell_server_waits(struct probe_set *set, const struct event_server_waits *waits,
	bool known);
/*
 * Detaching has the same two parts. The second function detaches one program of the rest, which
 * may wait for RCU, and returns false when there is none left.
 */
void probe_set_detach_scanned(struct probe_set *set);
bool probe_set_detach_next(struct probe_set *set);
bool probe_set_scanned_is_attached(const struct probe_set *set);
bool probe_set_rest_is_attached(const struct probe_set *set);
/* A copy of the set in which only the rest can be attached, detached and unloaded. */
void probe_set_forget_scanned(struct probe_set *set);
/*
 * After a copy was made that is about to be prepared or attached: that closes the objects of
 * programs that have to be loaded anew, so nothing here refers to them any more.
 */
void probe_set_forget_replaced(struct probe_set *set);
/* Takes over a part from a copy; `attached`: also which of its probes have been attached. */
void probe_set_copy_scanned(struct probe_set *set, const struct probe_set *from, bool attached);
void probe_set_copy_rest(struct probe_set *set, const struct probe_set *from, bool attached);

/* Has the probes that are or were attached in this incident write their own lines. */
void probe_set_summarize(struct probe_set *set, const struct probe_report *report);

void probe_set_read_counters(const struct probe_set *set, struct probe_counters *ret_counters);
bool probe_set_uses_kprobes(const struct probe_set *set);
/* Hits that kprobes have missed since load. May wait, see tracefs_count_misses(). */
uint64_t probe_set_count_misses(const struct probe_set *set);
/* coverage.c. Those that are scanned, or the rest, are about to be attached if they are not yet. */
void probe_set_describe_coverage(const struct probe_set *set, bool attaching_scanned,
	bool attaching_rest, struct record_open *open);

#endif
