/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/rule_subject.h"

#include <math.h>

#include "util/number.h"
#include "util/text.h"

#define NSEC_PER_SEC_REAL 1e9

static bool value_iowait(const struct rule_subject *s, double *ret_value)
{
	*ret_value = smaller(s->sample->cpu.iowait_pct, s->io_pct);
	return true;
}

static bool value_iowait_cpus(const struct rule_subject *s, double *ret_value)
{
	*ret_value = smaller(s->sample->cpu.iowait_cpus, s->io_pct / 100);
	return true;
}

/* Without a request in flight the device has caught up, however busy it was in the interval. */
static bool value_utilisation(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->disk->util_pct;
	return s->disk->inflight > 0;
}

static bool value_await(const struct rule_subject *s, double *ret_value)
{
	const struct record_disk *d = s->disk;

	*ret_value = d->read_await_ms > d->write_await_ms ? d->read_await_ms : d->write_await_ms;
	if (d->flushes && (double)d->flush_ticks_ms / d->flushes > *ret_value)
		*ret_value = (double)d->flush_ticks_ms / d->flushes;
	/* Of what is still in flight nothing is known yet. */
	if (d->inflight && d->reads + d->writes + d->flushes == 0)
		*ret_value = NAN;
	return true;
}

static bool value_hung(const struct rule_subject *s, double *ret_value)
{
	*ret_value = (double)s->disk->no_completion_ns / NSEC_PER_SEC_REAL;
	return true;
}

static bool value_psi_io_full(const struct rule_subject *s, double *ret_value)
{
	*ret_value = smaller(s->sample->psi.io.full_pct, s->io_pct);
	return s->sample->psi.io.present;
}

static bool value_psi_io_some(const struct rule_subject *s, double *ret_value)
{
	*ret_value = smaller(s->sample->psi.io.some_pct, s->io_pct);
	return s->sample->psi.io.present;
}

static bool value_psi_memory_full(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->sample->psi.memory.full_pct;
	return s->sample->psi.memory.present;
}

static bool value_psi_cpu(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->sample->psi.cpu.some_pct;
	return s->sample->psi.cpu.present;
}

static bool value_blocked(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->has_threads ? (double)s->sample->threads.blocked : NAN;
	return true;
}

static bool value_blocked_many(const struct rule_subject *s, double *ret_value)
{
	return value_blocked(s, ret_value);
}

static bool value_mutex(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->sample->mutex.present ? s->sample->mutex.waiters : 0;
	return true;
}

static bool value_lock(const struct rule_subject *s, double *ret_value)
{
	*ret_value =
		s->sample->lock.present ? (double)s->sample->lock.longest_ns / NSEC_PER_SEC : 0;
	return true;
}

static bool value_stopped(const struct rule_subject *s, double *ret_value)
{
	/* That a control group is frozen is known without a scan. */
	*ret_value = s->has_threads || *s->stopped->cgroup
		? (double)s->stopped->stopped_ns / NSEC_PER_SEC_REAL
		: NAN;
	return s->stopped->present;
}

static bool value_space(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->filesystem->used_pct;
	return true;
}

static bool value_inodes(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->filesystem->inodes_used_pct;
	return true;
}

static bool value_memory(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->cgroup->used_pct;
	return true;
}

static bool value_oom_kills(const struct rule_subject *s, double *ret_value)
{
	*ret_value = (double)s->cgroup->oom_kills;
	return true;
}

static bool value_memory_growth(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->cgroup->growth_pct_per_min;
	return true;
}

static bool value_cpu_limit(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->cpu_limit->held_back_pct;
	return true;
}

static bool value_errors(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->errors->lines;
	return true;
}

static bool value_health(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->sample->health.failing_s;
	return s->sample->health.present;
}

/* Without a session the value is 0; in a sample without a new answer it is unknown. */
static double value_of_answer(const struct record_sql_activity *sql, double value)
{
	if (!sql->present)
		return 0;
	return sql->active >= 0 ? value : NAN;
}

static bool value_sql_longest(const struct rule_subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.longest_s);
	return true;
}

static bool value_sql_active(const struct rule_subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.lasting);
	return true;
}

static bool value_sql_state(const struct rule_subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.in_state);
	return true;
}

static bool value_sql_unanswered(const struct rule_subject *s, double *ret_value)
{
	*ret_value = s->sample->sql.unanswered_s;
	return true;
}

static bool value_sql_connections(const struct rule_subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.connections_pct);
	return true;
}

bool rule_subject_value(const struct rule_subject *subject, enum config_rule_name rule,
	double *ret_value)
{
	static bool (*const values[])(const struct rule_subject *s, double *ret_value) = {
#define RULE(rule_name, enabled, set, clear, hold, rule_unit, rule_scope, rule_source, help)       \
	[CONFIG_RULE_##rule_name] = value_##rule_name,
#include "watch/rules.def"
#undef RULE
	};

	return values[rule](subject, ret_value);
}

bool rule_subject_get(const struct watch *watch, enum rules_scope scope, unsigned int slot,
	struct rule_subject *ret_subject, uint32_t *ret_serial)
{
	const struct record_reading *sample = watch_last(watch);

	*ret_subject = (struct rule_subject){ .sample = sample,
		.has_threads = watch_has_threads(watch),
		.io_pct = watch_io_pct(watch) };
	*ret_serial = 0;
	switch (scope) {
	case RULES_SCOPE_device:
		ret_subject->disk = watch_disk_in_slot(watch, slot, ret_serial);
		return ret_subject->disk != NULL;
	case RULES_SCOPE_filesystem:
		ret_subject->filesystem = watch_filesystem_in_slot(watch, slot, ret_serial);
		return ret_subject->filesystem != NULL;
	case RULES_SCOPE_cgroup:
		ret_subject->cgroup = watch_cgroup_in_slot(watch, slot, ret_serial);
		return ret_subject->cgroup != NULL;
	case RULES_SCOPE_cpu_limit:
		ret_subject->cpu_limit = watch_cpu_limit_in_slot(watch, slot, ret_serial);
		return ret_subject->cpu_limit != NULL;
	case RULES_SCOPE_service:
		ret_subject->service = watch_health_target(watch);
		*ret_serial = sample->health.serial;
		return sample->health.present;
	case RULES_SCOPE_program:
		*ret_serial = (uint32_t)watch_mutex_pid(watch);
		return true;
	case RULES_SCOPE_lock:
		*ret_serial = (uint32_t)watch_lock_pid(watch);
		return true;
	case RULES_SCOPE_stopped:
		ret_subject->stopped = &watch_limits(watch)->stopped;
		*ret_serial = (uint32_t)watch_stopped_pid(watch);
		return true;
	case RULES_SCOPE_kernel_log:
		ret_subject->errors = watch_kernel_errors(watch);
		*ret_serial = ret_subject->errors->serial;
		return true;
	case RULES_SCOPE_database:
		ret_subject->targets = watch_sql_targets(watch);
		return true;
	default:
		return true;
	}
}

static const char *target_of(enum config_rule_name rule, const struct watch_sql_targets *targets)
{
	switch (rule) {
	case CONFIG_RULE_sql_longest:
		return targets->longest;
	case CONFIG_RULE_sql_active:
		return targets->active;
	case CONFIG_RULE_sql_state:
		return targets->in_state;
	case CONFIG_RULE_sql_connections:
		return targets->connections;
	default:
		return targets->unanswered;
	}
}

void rule_subject_describe(const struct rule_subject *subject, struct rules_firing *firing)
{
	const struct record_reading *sample = subject->sample;
	const char *device = "", *name = "";

	switch (firing->scope) {
	case RULES_SCOPE_host:
		break;
	case RULES_SCOPE_device:
		device = subject->disk->dev_name;
		break;
	case RULES_SCOPE_process:
		firing->pid = sample->threads.blocked_pid;
		firing->tid = sample->threads.blocked_tid;
		break;
	case RULES_SCOPE_program:
		firing->pid = sample->mutex.pid;
		firing->tid = sample->mutex.holder;
		name = sample->mutex.comm;
		break;
	case RULES_SCOPE_lock:
		firing->pid = firing->tid = sample->lock.pid;
		name = sample->lock.comm;
		break;
	case RULES_SCOPE_stopped:
		firing->pid = firing->tid = subject->stopped->pid;
		name = subject->stopped->comm;
		break;
	case RULES_SCOPE_filesystem:
		name = subject->filesystem->mount;
		break;
	case RULES_SCOPE_cgroup:
		name = subject->cgroup->path;
		break;
	case RULES_SCOPE_cpu_limit:
		name = subject->cpu_limit->path;
		break;
	case RULES_SCOPE_kernel_log:
		device = subject->errors->device;
		break;
	case RULES_SCOPE_service:
		name = subject->service;
		break;
	case RULES_SCOPE_database:
		name = target_of(firing->rule, subject->targets);
		break;
	}
	text_copy(firing->device, sizeof(firing->device), device);
	text_copy(firing->subject, sizeof(firing->subject), name);
}
