/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Describes which I/O paths a set of probes sees, by which backend, and why not by a better one. */
#include <assert.h>
#include <stdio.h>

#include "probes/set.h"
#include "util/text.h"

/* Why the better backends are not in use, or why no backend is. */
static void describe_reasons(const struct probe *probe, char *reason, size_t size)
{
	struct text out = { .buf = reason, .size = size };

	text_reset(&out);
	for (unsigned int i = 0; i < probe->ops->backends_count; i++)
		if (probe->reasons[i][0])
			text_addf(&out, "%s%s: %s", out.len ? "; " : "",
				record_backend_text(probe->ops->backends[i].name),
				probe->reasons[i]);
}

static void describe_limit(const struct probe *probe, struct text *out)
{
	const char *limit = probe->ops->describe_limit ? probe->ops->describe_limit(probe) : NULL;

	if (limit)
		text_addf(out, "%s%s", out->len ? "; " : "", limit);
	for (unsigned int i = 0; i < probe->ops->parts_count; i++)
		if (!probe->ops->parts[i].path && probe_find_loss(probe, i))
			text_addf(out, "%s%s", out->len ? "; " : "", probe->ops->parts[i].costs);
}

/* Leaves the reason as it is where the path is seen. */
static void describe_lost_path(const struct probe *probe, enum record_io_path path, char *reason,
	size_t size)
{
	char why[PROBE_REASON_SIZE];

	for (unsigned int i = 0; i < probe->ops->parts_count; i++) {
		const struct probe_loss *loss = probe_find_loss(probe, i);

		if (!loss || probe->ops->parts[i].path != path)
			continue;
		probe_explain_loss(loss, why, sizeof(why));
		snprintf(reason, size, "%s: %s", record_backend_text(probe->backend->name), why);
	}
}

static bool names_path(const struct probe_ops *ops, enum record_io_path wanted)
{
	for (const enum record_io_path *path = ops->paths; *path; path++)
		if (*path == wanted)
			return true;
	return false;
}

/* Which probes are still being attached: each of two threads attaches its own. */
struct attaching {
	bool scanned;
	bool rest;
};

static bool will_have(const struct probe_set *set, struct attaching attaching, unsigned int i)
{
	return set->attached[i] ||
		(set->enabled[i] && (probe_set_is_scanned(i) ? attaching.scanned : attaching.rest));
}

/* Why this probe does not see the I/O path; empty when it does, or will when it is attached. */
static void describe_absence(const struct probe_set *set, struct attaching attaching,
	unsigned int index, enum record_io_path path, char *reason, size_t size)
{
	const struct probe *probe = &set->probes[index];

	reason[0] = '\0';
	if (!set->enabled[index])
		snprintf(reason, size, "probe.%s.enabled=no", probe_ops_get(index)->name);
	else if (probe->ops && !probe->backend)
		describe_reasons(probe, reason, size);
	else if (!will_have(set, attaching, index))
		text_copy(reason, size, "it could not be attached");
	else if (probe_ops_get(index)->needs_wait && !will_have(set, attaching, CONFIG_PROBE_wait))
		text_copy(reason, size, "it needs the probe wait");
	else if (probe->ops)
		describe_lost_path(probe, path, reason, size);
}

/* Whether the probe is attached, with that which it needs. */
static bool is_attached(const struct probe_set *set, unsigned int i)
{
	return set->attached[i] &&
		(!probe_ops_get(i)->needs_wait || set->attached[CONFIG_PROBE_wait]);
}

/*
 * Names the first probe that sees the path and is attached. The reason says why no nearer probe and
 * no better backend is in use, and whether the probe is still being attached.
 */
static void describe_path(const struct probe_set *set, struct attaching attaching,
	struct record_coverage *c)
{
	struct text out = TEXT_ON(c->reason);

	text_reset(&out);
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &set->probes[i];
		char reason[RECORD_LIST_SIZE];

		if (!names_path(probe_ops_get(i), c->path))
			continue;
		describe_absence(set, attaching, i, c->path, reason, sizeof(reason));
		if (!reason[0]) {
			c->probe = probe_in_record(i);
			c->backend = probe->backend->name;
			c->pairing = probe->ops->pairing;
			describe_reasons(probe, reason, sizeof(reason));
			describe_limit(probe, &out);
			if (i == CONFIG_PROBE_wait && set->server_waits_unknown)
				text_addf(&out,
					"%snot of all threads that wait for a file server, because its "
					"kernel functions are not known",
					out.len ? "; " : "");
			if (!is_attached(set, i))
				text_addf(&out,
					"%sit was still being attached when the record began",
					out.len ? "; " : "");
		}
		if (reason[0])
			text_addf(&out, "%s%s", out.len ? "; " : "", reason);
		if (c->probe)
			return;
	}
	if (out.len == 0)
		text_add(&out, "no probe covers this path");
}

void probe_set_describe_coverage(const struct probe_set *set, bool attaching_scanned,
	bool attaching_rest, struct record_open *open)
{
	const struct attaching attaching = { attaching_scanned, attaching_rest };

	static_assert(RECORD_IO_PATH_COUNT - 1 <= RECORD_COVERAGE_MAX, "coverage holds every path");
	open->coverage_count = RECORD_IO_PATH_COUNT - 1;
	for (unsigned int i = 0; i < open->coverage_count; i++) {
		open->coverage[i] = (struct record_coverage){ .path = i + 1 };
		describe_path(set, attaching, &open->coverage[i]);
	}
}
