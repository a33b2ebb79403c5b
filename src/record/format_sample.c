/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A `sample` line for people. */
#include <inttypes.h>

#include "record/format.h"

static void format_pressure(struct text *t, const char *name, const struct record_pressure *psi)
{
	if (!psi->present)
		return;
	text_addf(t, "  %s ", name);
	format_add_real(t, psi->some_pct, "/");
	format_add_real(t, psi->full_pct, "%");
}

static void add_mib(struct text *t, const char *what, uint64_t bytes)
{
	text_addf(t, " %s %.1f MiB", what, (double)bytes / (1 << 20));
}

static void format_memory(const struct record_memory *m, struct text *t)
{
	if (!m->present || m->reread_bytes + m->swapped_in_bytes + m->swapped_out_bytes == 0)
		return;
	text_add(t, " ");
	add_mib(t, "read again", m->reread_bytes);
	if (m->swapped_in_bytes + m->swapped_out_bytes == 0)
		return;
	add_mib(t, "swapped in", m->swapped_in_bytes);
	add_mib(t, "out", m->swapped_out_bytes);
}

static void format_disk(const struct record_disk *d, struct text *t)
{
	format_add_known(t, "  | ", *d->dev_name ? d->dev_name : "?");
	text_add(t, " util ");
	format_add_real(t, d->util_pct, "%");
	text_addf(t, " in-flight %" PRIu64 " r/w await ", d->inflight);
	format_add_real(t, d->read_await_ms, "/");
	format_add_real(t, d->write_await_ms, " ms");
	if (d->no_completion_ns) {
		text_add(t, " nothing finished for ");
		record_add_duration(t, d->no_completion_ns);
	}
}

/* So full that it may be why. */
#define FULL_SHOWN_PCT 90
#define IO_LIMIT_SHOWN_PCT 80
#define CPU_LIMIT_SHOWN_PCT 50

static void format_filesystem(const struct record_file_system *fs, struct text *t)
{
	if (!(fs->used_pct >= FULL_SHOWN_PCT) && !(fs->inodes_used_pct >= FULL_SHOWN_PCT))
		return;
	format_add_known(t, "  | ", *fs->mount ? fs->mount : "?");
	text_add(t, " full ");
	format_add_real(t, fs->used_pct, "%");
	text_addf(t, ", %.1f MiB free, inodes ", (double)fs->free_bytes / (1 << 20));
	format_add_real(t, fs->inodes_used_pct, "%");
}

static void format_cgroup(const struct record_cgroup *c, struct text *t)
{
	bool is_short = c->limit_hits > 0 && c->reread_bytes + c->swapped_in_bytes > 0;

	if (!(c->used_pct >= FULL_SHOWN_PCT) && !is_short)
		return;
	format_add_known(t, "  | ", *c->path ? c->path : "?");
	text_add(t, " memory ");
	format_add_real(t, c->used_pct, "%");
	text_addf(t, " of %.1f MiB", (double)c->limit_bytes / (1 << 20));
	if (is_short)
		add_mib(t, "read again", c->reread_bytes + c->swapped_in_bytes);
	if (c->oom_kills)
		text_addf(t, " killed %" PRIu64, c->oom_kills);
}

static void format_io_limit(const struct record_io_limited *l, struct text *t)
{
	if (!(l->used_pct >= IO_LIMIT_SHOWN_PCT))
		return;
	format_add_known(t, "  | ", *l->path ? l->path : "?");
	text_addf(t, " used %.0f%% of its limit of ", l->used_pct);
	record_add_io_limit(t, l->kind, l->per_s);
	text_add(t, " for ");
	format_add_or_unknown(t, l->dev_name);
}

static void format_cpu_limit(const struct record_cpu_limited *l, struct text *t)
{
	if (!(l->held_back_pct >= CPU_LIMIT_SHOWN_PCT))
		return;
	format_add_known(t, "  | ", *l->path ? l->path : "?");
	text_addf(t, " held back %.0f%% by its limit of %.2f CPUs", l->held_back_pct,
		l->limit_cpus);
}

static void format_limits(const struct record_limits *l, struct text *t)
{
	for (uint32_t i = 0; i < l->file_systems_count && i < RECORD_FILE_SYSTEMS_MAX; i++)
		format_filesystem(&l->file_systems[i], t);
	for (uint32_t i = 0; i < l->cgroups_count && i < RECORD_CGROUPS_MAX; i++)
		format_cgroup(&l->cgroups[i], t);
	for (uint32_t i = 0; i < l->io_count && i < RECORD_IO_LIMITS_MAX; i++)
		format_io_limit(&l->io[i], t);
	for (uint32_t i = 0; i < l->cpu_limits_count && i < RECORD_CPU_LIMITS_MAX; i++)
		format_cpu_limit(&l->cpu_limits[i], t);
	if (l->stopped.present) {
		text_add(t, "  | stopped ");
		format_add_or_unknown(t, l->stopped.comm);
	}
}

static void format_sample_sql(const struct record_sql_activity *sql, struct text *t)
{
	if (!sql->present || (sql->active < 0 && !(sql->unanswered_s > 0)))
		return;
	text_add(t, "  sql");
	if (sql->active >= 0) {
		text_addf(t, " %" PRId32 " active, longest ", sql->active);
		format_add_real(t, sql->longest_s, " s");
	}
	if (sql->unanswered_s > 0) {
		text_add(t, " no answer for ");
		format_add_real(t, sql->unanswered_s, " s");
	}
}

static void format_health(const struct record_health *health, struct text *t)
{
	if (!health->present || !(health->failing_s > 0))
		return;
	text_add(t, "  health no answer for ");
	format_add_real(t, health->failing_s, " s");
}

static bool disk_is_idle(const struct record_disk *d)
{
	return d->inflight == 0 && !(d->util_pct > 0) && d->read_bytes == 0 && d->write_bytes == 0;
}

void format_sample(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_reading *s = &r->sample.reading;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, "sample  iowait ");
	format_add_real(t, s->cpu.iowait_pct, "%");
	text_add(t, " busy ");
	format_add_real(t, s->cpu.busy_pct, "%");
	format_pressure(t, "psi io", &s->psi.io);
	format_pressure(t, "memory", &s->psi.memory);
	format_memory(&s->memory, t);
	text_addf(t, "  blocked %" PRIu64, s->procs_blocked);
	if (s->threads.blocked)
		text_addf(t, ", %" PRIu32 " of the watched threads", s->threads.blocked);
	if (s->mutex.present)
		text_addf(t, "  at a mutex %" PRIu32, s->mutex.waiters);
	if (s->lock.present)
		text_addf(t, "  at a lock %" PRIu32, s->lock.waiters);
	format_health(&s->health, t);
	format_sample_sql(&s->sql, t);
	format_limits(&r->sample.limits, t);
	for (uint32_t i = 0; i < s->devices_count && i < RECORD_DEVICES_MAX; i++)
		if (!disk_is_idle(&s->devices[i]))
			format_disk(&s->devices[i], t);
	text_add(t, "\n");
}
