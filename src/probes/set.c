/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/set.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "probes/filter.h"
#include "probes/tracefs.h"
#include "snapshot/inflight.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

/* Of the verifier's log, which can be 100,000 lines, the end says why. */
#define LIBBPF_LINES_MAX 60

__attribute__((format(printf, 2, 0)))
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	size_t lines = 0;

	if (level == LIBBPF_DEBUG || vasprintf(&text, format, ap) < 0)
		return 0;
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line && lines-- <= LIBBPF_LINES_MAX)
			log_debug("%s", line);
	return 0;
}

void probe_set_redirect_libbpf_log(void)
{
	libbpf_set_print(print_libbpf);
}

static int set_begin(struct probe_set *set, const struct config *config, const char *sysfs,
	uint32_t generation)
{
	int r;

	*set = (struct probe_set){ .maps = TRACE_MAPS_NONE };
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		set->enabled[i] = config->probes[i].enabled;
	set->settings = (struct probe_settings){
		.min_stall_ns = config->trace.min_stall_ns,
		.inflight_max = config->trace.inflight_max,
		.generation = generation,
	};
	r = tracefs_mount();
	if (r < 0)
		log_info("tracefs cannot be mounted at /sys/kernel/tracing: %s", strerror(-r));
	r = tracefs_clear_stale();
	if (r > 0)
		log_info("removed %d tracefs events that a dead iostall left behind", r);
	filter_settings(config, &set->settings);
	r = trace_maps_new(config->trace.ring_bytes, config->trace.inflight_max, &set->maps);
	if (r < 0)
		return r;
	set->settings.inflight_mask = set->maps.inflight.slots_count - 1;
	return filter_fill(&set->maps, config, sysfs);
}

/* What came in while the backends were tried. */
static void clear_inflight(const struct probe_set *set)
{
	inflight_clear(&set->maps.inflight);
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &set->probes[i];
		const struct bpf_map *map = probe->backend && probe->ops->inflight_map ?
			probe_map(probe, probe->ops->inflight_map) : NULL;

		if (map)
			inflight_clear(&(struct inflight_map){ .fd = bpf_map__fd(map) });
	}
}

int probe_set_load(struct probe_set *set, const struct config *config, const char *sysfs,
	uint32_t generation)
{
	bool any = false;
	int r = set_begin(set, config, sysfs, generation), error = -ENOENT;

	if (r < 0) {
		probe_set_unload(set);
		return r;
	}
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];

		if (!set->enabled[i])
			continue;
		r = probe_load(probe, probe_ops_get(i), config->trace.backend, &set->settings,
			&set->maps);
		for (unsigned int b = 0; b < probe->ops->backends_count; b++)
			if (probe->reasons[b][0])
				log_info("probe %s: no %s backend: %s; %s", probe->ops->name,
					probe->ops->backends[b].name, probe->reasons[b],
					probe->hints[b]);
		if (r < 0) {
			log_warning("probe %s cannot be armed on this host", probe->ops->name);
			error = r;
			continue;
		}
		log_info("probe %s: %s backend", probe->ops->name, probe->backend->name);
		set->settings.loaded[i] = probe->backend->id;
		any = true;
	}
	if (!any) {
		probe_set_unload(set);
		return error;
	}
	clear_inflight(set);
	return 0;
}

int probe_set_try_all(struct probe_set *set, const struct config *config, const char *sysfs)
{
	int r = set_begin(set, config, sysfs, 0);

	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		set->probes[i].ops = probe_ops_get(i);
		if (r == 0)
			probe_try_all(&set->probes[i], probe_ops_get(i), &set->settings, &set->maps);
	}
	trace_maps_close(&set->maps);
	return r;
}

void probe_set_unload(struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (set->probes[i].ops)
			probe_unload(&set->probes[i]);
	trace_maps_close(&set->maps);
}

void probe_set_prepare(struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];
		int r;

		if (!set->enabled[i] || !probe->backend)
			continue;
		r = probe_prepare(probe, &set->settings, &set->maps);
		if (r < 0)
			log_warning("probe %s cannot be made ready: %s", probe->ops->name,
				strerror(-r));
	}
}

static void attach_where(struct probe_set *set, bool seeded)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];
		int r;

		if (!set->enabled[i] || !probe->backend ||
			(probe->ops->seed_program != NULL) != seeded)
			continue;
		if (probe->ops->reset && probe->object)
			probe->ops->reset(probe);
		r = probe_attach(probe);
		if (r < 0)
			log_warning("probe %s cannot be attached: %s", probe->ops->name,
				strerror(-r));
		set->attached[i] = r == 0;
	}
}

void probe_set_attach_seeded(struct probe_set *set)
{
	memset(set->attached, 0, sizeof(set->attached));
	attach_where(set, true);
}

void probe_set_attach_rest(struct probe_set *set)
{
	attach_where(set, false);
}

void probe_set_summarize(struct probe_set *set, const struct probe_report *report)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];

		if (set->attached[i] && probe->object && probe->ops->summarize)
			probe->ops->summarize(probe, report);
	}
}

unsigned int probe_set_take_links(struct probe_set *set,
	struct bpf_link *ret_links[PROBE_SET_LINKS_MAX])
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		count += probe_take_links(&set->probes[i], ret_links + count);
	return count;
}

void probe_set_read_counters(const struct probe_set *set, struct probe_counters *ret_counters)
{
	*ret_counters = (struct probe_counters){};
	if (trace_maps_read_losses(&set->maps, ret_counters->losses) < 0)
		log_warning("the loss counters cannot be read");
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		ret_counters->skipped_runs += probe_skipped_runs(&set->probes[i]);
		ret_counters->missed_hits += probe_missed_hits(&set->probes[i]);
	}
}

/* Why the better backends are not in use, or why none is. */
static void describe_reasons(const struct probe *probe, char *reason, size_t size)
{
	struct text out = { .buf = reason, .size = size };

	text_reset(&out);
	for (unsigned int i = 0; i < probe->ops->backends_count; i++)
		if (probe->reasons[i][0])
			text_addf(&out, "%s%s: %s", out.len ? "; " : "",
				probe->ops->backends[i].name, probe->reasons[i]);
}

static void describe_limit(const struct probe *probe, struct text *out)
{
	const char *limit = probe->ops->describe_limit ?
		probe->ops->describe_limit(probe->backend) : NULL;

	if (limit)
		text_addf(out, "%s%s", out->len ? "; " : "", limit);
}

static bool names_path(const struct probe_ops *ops, const char *name)
{
	for (const char *const *path = ops->paths; *path; path++)
		if (strcmp(*path, name) == 0)
			return true;
	return false;
}

/* Why this probe does not see the path; empty when it does. */
static void describe_absence(const struct probe_set *set, unsigned int index, const char *path,
	char *reason, size_t size)
{
	const struct probe *probe = &set->probes[index];

	reason[0] = '\0';
	if (!set->enabled[index])
		snprintf(reason, size, "probe.%s.enabled=no", probe_ops_get(index)->name);
	else if (probe->ops && !probe->backend)
		describe_reasons(probe, reason, size);
	else if (!set->attached[index])
		text_copy(reason, size, "attaching failed");
	else if (probe->ops && probe_misses_path(probe, path))
		text_copy(reason, size, probe_misses_path(probe, path));
}

/* The first probe that names the path and is live; the reason says why no nearer one is, or no better way. */
static void describe_path(const struct probe_set *set, struct record_coverage *c)
{
	struct text out = TEXT_ON(c->reason);

	text_reset(&out);
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &set->probes[i];
		char reason[RECORD_LIST_SIZE];

		if (!names_path(probe_ops_get(i), c->path))
			continue;
		describe_absence(set, i, c->path, reason, sizeof(reason));
		if (!reason[0]) {
			text_copy(c->probe, sizeof(c->probe), probe->ops->name);
			text_copy(c->backend, sizeof(c->backend), probe->backend->name);
			describe_reasons(probe, reason, sizeof(reason));
			describe_limit(probe, &out);
		}
		if (reason[0])
			text_addf(&out, "%s%s", out.len ? "; " : "", reason);
		if (c->probe[0])
			return;
	}
	if (out.len == 0)
		text_add(&out, "no probe for this path");
}

void probe_set_describe_coverage(const struct probe_set *set, struct record_open *open)
{
	static const char *const paths[] = {
#define PATH(name, help) #name,
#include "probes/paths.def"
#undef PATH
	};

	static_assert(ARRAY_SIZE(paths) <= RECORD_COVERAGE_MAX, "coverage holds every path");
	open->coverage_count = ARRAY_SIZE(paths);
	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		open->coverage[i] = (struct record_coverage){};
		text_copy(open->coverage[i].path, sizeof(open->coverage[i].path), paths[i]);
		describe_path(set, &open->coverage[i]);
	}
}
