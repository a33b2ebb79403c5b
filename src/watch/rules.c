/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/rules.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/text.h"
#include "watch/disks.h"
#include "watch/pressure_trigger.h"
#include "watch/recorded.h"

#define NSEC_PER_SEC_REAL 1e9

/* What a rule looks at: the newest sample and, by the scope of the rule, one thing in it. */
struct subject {
	const struct record_reading *sample;
	bool has_threads; /* see watch_has_threads() */
	double io_pct;	  /* see watch_io_pct() */
	const struct record_disk *disk;
	const struct record_file_system *filesystem;
	const struct record_cgroup *cgroup;
	const struct record_cpu_limited *cpu_limit;
	const struct record_stopped *stopped;
	const char *service;
	const struct watch_sql_targets *targets;
	const struct watch_kernel_errors *errors;
};

/* Names that rules without several subjects were active for lately. */
#define RECORDED_NAMES_MAX 64

/* A rule over one subject. */
struct rule_state {
	uint32_t serial; /* of the subject */
	bool active;
	bool cooling;	   /* it has fired, and the cooldown is not over */
	bool acknowledged; /* an incident has recorded it */
	double value;	   /* the last one that was known, if `is_known` */
	bool is_known;
	double reported; /* by the kernel, since the last evaluation; 0: nothing */
	bool is_doubted; /* what it reports was no I/O in the last sample */
	uint64_t over_samples;
	uint64_t fired_ns;
};

struct rules {
	struct config_rule config[CONFIG_RULE_COUNT];
	char incident[RECORD_ID_SIZE]; /* the last one that has recorded what was active */
	uint64_t incidents;
	uint64_t now_ns; /* of the last evaluation */
	struct recorded_table recorded;
	struct rule_state *states[CONFIG_RULE_COUNT]; /* a slot for each subject of the scope */
	struct rule_state storage[];
};

static const struct scope_kind {
	unsigned int slots;
	bool fires_once;
	bool holds;  /* it keeps an incident open while it is active */
	bool lapses; /* it is not active any more when its value becomes unknown */
} scope_kinds[] = {
	[RULES_SCOPE_host] = { 1, false, true, false },
	[RULES_SCOPE_device] = { WATCH_DISKS_MAX, false, true, false },
	[RULES_SCOPE_process] = { 1, false, true, false },
	[RULES_SCOPE_program] = { 1, true, true, false },
	[RULES_SCOPE_lock] = { 1, true, true, false },
	[RULES_SCOPE_stopped] = { 1, true, true, false },
	[RULES_SCOPE_filesystem] = { WATCH_FILESYSTEMS_MAX, true, false, false },
	[RULES_SCOPE_cgroup] = { WATCH_CGROUPS_MAX, true, false, false },
	[RULES_SCOPE_cpu_limit] = { CPU_LIMITS_GROUPS_MAX, true, true, false },
	[RULES_SCOPE_kernel_log] = { 1, true, false, false },
	[RULES_SCOPE_service] = { 1, true, true, true },
	[RULES_SCOPE_database] = { 1, true, true, false },
};

/* The value of a rule; NAN: unknown. False when the rule must not fire, whatever the value. */
typedef bool (*rule_value_fn)(const struct subject *s, double *ret_value);

/* One that is not a number stays so. */
static double at_most(double value, double most)
{
	return value > most || isnan(most) ? most : value;
}

static bool value_iowait(const struct subject *s, double *ret_value)
{
	*ret_value = at_most(s->sample->cpu.iowait_pct, s->io_pct);
	return true;
}

static bool value_iowait_cpus(const struct subject *s, double *ret_value)
{
	*ret_value = at_most(s->sample->cpu.iowait_cpus, s->io_pct / 100);
	return true;
}

/* Without a request in flight the device has caught up, however busy it was in the interval. */
static bool value_utilisation(const struct subject *s, double *ret_value)
{
	*ret_value = s->disk->util_pct;
	return s->disk->inflight > 0;
}

static bool value_await(const struct subject *s, double *ret_value)
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

static bool value_hung(const struct subject *s, double *ret_value)
{
	*ret_value = (double)s->disk->no_completion_ns / NSEC_PER_SEC_REAL;
	return true;
}

static bool value_psi_io_full(const struct subject *s, double *ret_value)
{
	*ret_value = at_most(s->sample->psi.io.full_pct, s->io_pct);
	return s->sample->psi.io.present;
}

static bool value_psi_io_some(const struct subject *s, double *ret_value)
{
	*ret_value = at_most(s->sample->psi.io.some_pct, s->io_pct);
	return s->sample->psi.io.present;
}

static bool value_psi_memory_full(const struct subject *s, double *ret_value)
{
	*ret_value = s->sample->psi.memory.full_pct;
	return s->sample->psi.memory.present;
}

static bool value_psi_cpu(const struct subject *s, double *ret_value)
{
	*ret_value = s->sample->psi.cpu.some_pct;
	return s->sample->psi.cpu.present;
}

static bool value_blocked(const struct subject *s, double *ret_value)
{
	*ret_value = s->has_threads ? (double)s->sample->threads.blocked : NAN;
	return true;
}

static bool value_blocked_many(const struct subject *s, double *ret_value)
{
	return value_blocked(s, ret_value);
}

static bool value_mutex(const struct subject *s, double *ret_value)
{
	*ret_value = s->sample->mutex.present ? s->sample->mutex.waiters : 0;
	return true;
}

static bool value_lock(const struct subject *s, double *ret_value)
{
	*ret_value =
		s->sample->lock.present ? (double)s->sample->lock.longest_ns / NSEC_PER_SEC : 0;
	return true;
}

static bool value_stopped(const struct subject *s, double *ret_value)
{
	/* That a control group is frozen is known without a scan. */
	*ret_value = s->has_threads || *s->stopped->cgroup
		? (double)s->stopped->stopped_ns / NSEC_PER_SEC_REAL
		: NAN;
	return s->stopped->present;
}

static bool value_space(const struct subject *s, double *ret_value)
{
	*ret_value = s->filesystem->used_pct;
	return true;
}

static bool value_inodes(const struct subject *s, double *ret_value)
{
	*ret_value = s->filesystem->inodes_used_pct;
	return true;
}

static bool value_memory(const struct subject *s, double *ret_value)
{
	*ret_value = s->cgroup->used_pct;
	return true;
}

static bool value_oom_kills(const struct subject *s, double *ret_value)
{
	*ret_value = (double)s->cgroup->oom_kills;
	return true;
}

static bool value_memory_growth(const struct subject *s, double *ret_value)
{
	*ret_value = s->cgroup->growth_pct_per_min;
	return true;
}

static bool value_cpu_limit(const struct subject *s, double *ret_value)
{
	*ret_value = s->cpu_limit->held_back_pct;
	return true;
}

static bool value_errors(const struct subject *s, double *ret_value)
{
	*ret_value = s->errors->lines;
	return true;
}

static bool value_health(const struct subject *s, double *ret_value)
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

static bool value_sql_longest(const struct subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.longest_s);
	return true;
}

static bool value_sql_active(const struct subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.lasting);
	return true;
}

static bool value_sql_state(const struct subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.in_state);
	return true;
}

static bool value_sql_unanswered(const struct subject *s, double *ret_value)
{
	*ret_value = s->sample->sql.unanswered_s;
	return true;
}

static bool value_sql_connections(const struct subject *s, double *ret_value)
{
	*ret_value = value_of_answer(&s->sample->sql, s->sample->sql.connections_pct);
	return true;
}

static const struct rule_kind {
	const char *name;
	const char *unit;
	const char *source;
	enum rules_scope scope;
	rule_value_fn value;
} rule_kinds[CONFIG_RULE_COUNT] = {
#define RULE(rule_name, enabled, set, clear, hold, rule_unit, rule_scope, rule_source, help)       \
	[CONFIG_RULE_##rule_name] = {                                                              \
		.name = #rule_name,                                                                \
		.unit = (rule_unit),                                                               \
		.source = (rule_source),                                                           \
		.scope = RULES_SCOPE_##rule_scope,                                                 \
		.value = value_##rule_name,                                                        \
	},
#include "watch/rules.def"
#undef RULE
};

const char *rules_name(enum config_rule_name rule)
{
	return rule_kinds[rule].name;
}

const char *rules_unit(enum config_rule_name rule)
{
	return rule_kinds[rule].unit;
}

const char *rules_source(enum config_rule_name rule)
{
	return rule_kinds[rule].source;
}

enum rules_scope rules_scope(enum config_rule_name rule)
{
	return rule_kinds[rule].scope;
}

static const struct scope_kind *scope_of(enum config_rule_name rule)
{
	return &scope_kinds[rule_kinds[rule].scope];
}

int rules_new(const struct config_rule config[static CONFIG_RULE_COUNT], struct rules **ret_rules)
{
	struct rule_state *state;
	struct rules *rules;
	size_t slots = 0;

	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT; rule++)
		slots += scope_of(rule)->slots;
	rules = calloc(1, sizeof(*rules) + slots * sizeof(rules->storage[0]));
	if (!rules)
		return -ENOMEM;
	/* A rule with a single slot may have been active for several names. */
	rules->recorded.max = (uint32_t)slots + RECORDED_NAMES_MAX;
	rules->recorded.list = calloc(rules->recorded.max, sizeof(rules->recorded.list[0]));
	if (!rules->recorded.list) {
		free(rules);
		return -ENOMEM;
	}
	state = rules->storage;
	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT; rule++) {
		rules->states[rule] = state;
		state += scope_of(rule)->slots;
	}
	rules_reload(rules, config);
	*ret_rules = rules;
	return 0;
}

struct rules *rules_free(struct rules *rules)
{
	if (rules)
		free(rules->recorded.list);
	free(rules);
	return NULL;
}

void rules_reload(struct rules *rules, const struct config_rule config[static CONFIG_RULE_COUNT])
{
	memcpy(rules->config, config, sizeof(rules->config));
}

struct evaluation {
	uint64_t now_ns;
	const struct recorded_table *recorded;
	const struct watch *watch;
	const struct record_reading *sample;
	struct rules_firing *firings;
	size_t max;
	size_t count;
};

/*
 * The subject in a slot; false: the slot is free. The serial changes when another subject takes the
 * slot. Scopes with a single subject always have it.
 */
static bool subject_get(const struct watch *watch, const struct record_reading *sample,
	enum rules_scope scope, unsigned int slot, struct subject *ret_subject,
	uint32_t *ret_serial)
{
	*ret_subject = (struct subject){ .sample = sample,
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

static void firing_add_stopped(struct rules_firing *firing, const struct record_stopped *stopped)
{
	firing->pid = firing->tid = stopped->pid;
	text_copy(firing->subject, sizeof(firing->subject), stopped->comm);
}

/* Rules about the threads of the whole host; of others 0. */
static double threads_of(enum config_rule_name rule, const struct rule_state *state)
{
	return rule_kinds[rule].scope == RULES_SCOPE_process ? state->value : 0;
}

/* NULL: a rule with one subject, which is not the same each time. */
static const char *name_of(enum config_rule_name rule, const struct subject *subject)
{
	if (scope_of(rule)->slots == 1)
		return NULL;
	if (subject->disk)
		return subject->disk->dev_name;
	if (subject->filesystem)
		return subject->filesystem->mount;
	return subject->cgroup ? subject->cgroup->path : subject->cpu_limit->path;
}

/* What the rule is active for now: of threads their program, else the subject. */
static const char *name_now(const struct rules_firing *firing, const struct subject *subject,
	const struct watch *watch, char comm[static WATCH_COMM_SIZE])
{
	const char *name = name_of(firing->rule, subject);

	if (name || firing->scope != RULES_SCOPE_process)
		return name ? name : firing->subject;
	watch_copy_comm(watch, firing->pid, comm, WATCH_COMM_SIZE);
	return comm;
}

static void firing_add(struct evaluation *j, enum config_rule_name rule,
	const struct rule_state *state, const struct subject *subject, double threshold)
{
	const struct rule_kind *kind = &rule_kinds[rule];
	struct rules_firing *firing = &j->firings[j->count++];
	const struct recorded *recorded;
	char comm[WATCH_COMM_SIZE];

	*firing = (struct rules_firing){
		.rule = rule,
		.name = kind->name,
		.unit = kind->unit,
		.scope = kind->scope,
		.value = state->value,
		.threshold = threshold,
	};
	if (subject->disk)
		text_copy(firing->device, sizeof(firing->device), subject->disk->dev_name);
	if (subject->errors)
		text_copy(firing->device, sizeof(firing->device), subject->errors->device);
	if (subject->filesystem)
		text_copy(firing->subject, sizeof(firing->subject), subject->filesystem->mount);
	if (subject->cgroup)
		text_copy(firing->subject, sizeof(firing->subject), subject->cgroup->path);
	if (subject->cpu_limit)
		text_copy(firing->subject, sizeof(firing->subject), subject->cpu_limit->path);
	if (subject->service)
		text_copy(firing->subject, sizeof(firing->subject), subject->service);
	if (subject->targets)
		text_copy(firing->subject, sizeof(firing->subject),
			target_of(rule, subject->targets));
	if (kind->scope == RULES_SCOPE_process) {
		firing->pid = j->sample->threads.blocked_pid;
		firing->tid = j->sample->threads.blocked_tid;
	}
	if (subject->stopped)
		firing_add_stopped(firing, subject->stopped);
	if (kind->scope == RULES_SCOPE_program) {
		const struct record_held_mutex *mutex = &j->sample->mutex;

		firing->pid = mutex->pid;
		firing->tid = mutex->holder;
		text_copy(firing->subject, sizeof(firing->subject), mutex->comm);
	}
	if (kind->scope == RULES_SCOPE_lock) {
		firing->pid = firing->tid = j->sample->lock.pid;
		text_copy(firing->subject, sizeof(firing->subject), j->sample->lock.comm);
	}
	recorded = recorded_find(j->recorded, rule, name_now(firing, subject, j->watch, comm),
		j->now_ns);
	if (recorded_has(recorded, threads_of(rule, state))) {
		text_copy(firing->continues, sizeof(firing->continues), recorded->first);
		firing->incidents = recorded->incidents;
	}
}

/* Whether the rule may fire now: for the first time, or again after its cooldown. */
static bool state_is_ready(const struct rule_state *state, const struct config_rule *config,
	bool fires_once)
{
	if (state->over_samples == 0 || state->over_samples < config->hold_samples)
		return false;
	/* Without a cooldown a rule fires again only after it was clear. */
	return !state->cooling && !(state->active && (fires_once || config->cooldown_ns == 0));
}

static void rule_evaluate(struct rules *rules, struct evaluation *j, enum config_rule_name rule,
	struct rule_state *state, const struct subject *subject)
{
	const struct config_rule *config = &rules->config[rule];
	double value = 0;
	bool may_fire = rule_kinds[rule].value(subject, &value);

	if (state->active)
		recorded_follow(&rules->recorded, rule, name_of(rule, subject),
			threads_of(rule, state), j->now_ns);
	if (state->cooling && j->now_ns - state->fired_ns >= config->cooldown_ns)
		state->cooling = false;
	if (isnan(value)) {
		/* Pressure that was reported may have been for anything. */
		if (state->reported > 0)
			state->over_samples = 0;
		state->reported = 0;
		/* What has no new value is as it was: it neither counts nor ends what has. */
		if (scope_of(rule)->lapses) {
			state->over_samples = 0;
			state->active = false;
			state->is_known = false;
		}
		return;
	}
	if (value < state->reported)
		value = at_most(state->reported, subject->io_pct);
	state->reported = 0;
	state->is_doubted =
		subject->io_pct <= config->set && subject->sample->psi.io.full_pct > config->set;
	state->value = value;
	state->is_known = true;
	if (may_fire && value > config->set)
		state->over_samples++;
	else
		state->over_samples = 0;
	/* No value is under a clear threshold of 0, so reaching 0 is enough. */
	if (value < config->clear || value <= 0)
		state->active = false;
	if (!state_is_ready(state, config, scope_of(rule)->fires_once) || j->count == j->max)
		return;
	state->active = true;
	state->acknowledged = false;
	state->cooling = true;
	state->fired_ns = j->now_ns;
	firing_add(j, rule, state, subject, config->set);
}

static void rule_evaluate_all(struct rules *rules, struct evaluation *j, enum config_rule_name rule,
	const struct watch *watch)
{
	for (unsigned int slot = 0; slot < scope_of(rule)->slots; slot++) {
		struct rule_state *state = &rules->states[rule][slot];
		struct subject subject;
		uint32_t serial;
		bool there = subject_get(watch, j->sample, rule_kinds[rule].scope, slot, &subject,
			&serial);

		if (!there || state->serial != serial)
			*state = (struct rule_state){ .serial = serial };
		if (there)
			rule_evaluate(rules, j, rule, state, &subject);
	}
}

size_t rules_evaluate(struct rules *rules, const struct watch *watch, uint64_t now_ns,
	struct rules_firing *ret_firings, size_t max)
{
	struct evaluation j = {
		.now_ns = now_ns,
		.recorded = &rules->recorded,
		.watch = watch,
		.sample = watch_last(watch),
		.firings = ret_firings,
		.max = max,
	};

	if (!j.sample)
		return 0;
	rules->now_ns = now_ns;
	recorded_sample(&rules->recorded, now_ns);
	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT; rule++) {
		if (rules->config[rule].enabled)
			rule_evaluate_all(rules, &j, rule, watch);
		else
			memset(rules->states[rule], 0,
				scope_of(rule)->slots * sizeof(rules->states[rule][0]));
	}
	return j.count;
}

bool rules_report_pressure(struct rules *rules)
{
	const struct config_rule *config = &rules->config[CONFIG_RULE_psi_io_full];
	struct rule_state *state = &rules->states[CONFIG_RULE_psi_io_full][0];

	if (!config->enabled || state->active || state->is_doubted ||
		config->set >= PRESSURE_TRIGGER_PCT)
		return false;
	state->reported = PRESSURE_TRIGGER_PCT;
	if (state->over_samples + 1 < config->hold_samples)
		state->over_samples = config->hold_samples - 1;
	return true;
}

double rules_value(const struct rules *rules, enum config_rule_name rule)
{
	double largest = NAN;

	for (unsigned int slot = 0; slot < scope_of(rule)->slots; slot++) {
		const struct rule_state *state = &rules->states[rule][slot];

		if (state->is_known && !(state->value <= largest))
			largest = state->value;
	}
	return largest;
}

unsigned int rules_active_subjects(const struct rules *rules, enum config_rule_name rule)
{
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < scope_of(rule)->slots; slot++)
		count += rules->states[rule][slot].active;
	return count;
}

static unsigned int count_active(const struct rules *rules, bool only_holding)
{
	unsigned int count = 0;

	for (enum config_rule_name rule = 0; rule < CONFIG_RULE_COUNT; rule++)
		if (!only_holding || scope_of(rule)->holds)
			count += rules_active_subjects(rules, rule);
	return count;
}

unsigned int rules_active(const struct rules *rules)
{
	return count_active(rules, false);
}

unsigned int rules_holding(const struct rules *rules)
{
	return count_active(rules, true);
}

bool rules_doubt_database(const struct rules *rules)
{
	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT; rule++)
		if (rule_kinds[rule].scope == RULES_SCOPE_database &&
			(rules->states[rule][0].over_samples > 0 || rules->states[rule][0].active))
			return true;
	return false;
}

bool rules_is_due(const struct rules_firing *firing, uint64_t rested_ns, uint64_t cooldown_ns)
{
	return !*firing->continues || rested_ns >= recorded_wait_ns(firing->incidents, cooldown_ns);
}

bool rules_first_active(const struct rules *rules, const struct watch *watch, uint64_t rested_ns,
	uint64_t cooldown_ns, struct rules_firing *ret_firing)
{
	struct evaluation j = {
		.now_ns = rules->now_ns,
		.recorded = &rules->recorded,
		.watch = watch,
		.sample = watch_last(watch),
		.firings = ret_firing,
		.max = 1,
	};

	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT && j.sample; rule++) {
		for (unsigned int slot = 0; slot < scope_of(rule)->slots; slot++) {
			const struct rule_state *state = &rules->states[rule][slot];
			struct subject subject;
			uint32_t serial;

			if (!state->active || (scope_of(rule)->fires_once && state->acknowledged))
				continue;
			if (!subject_get(watch, j.sample, rule_kinds[rule].scope, slot, &subject,
				    &serial))
				continue;
			j.count = 0;
			firing_add(&j, rule, state, &subject, rules->config[rule].set);
			if (rules_is_due(ret_firing, rested_ns, cooldown_ns))
				return true;
		}
	}
	return false;
}

void rules_acknowledge(struct rules *rules, const struct watch *watch, const char *incident)
{
	struct rules_firing firing;
	struct evaluation j = {
		.now_ns = rules->now_ns,
		.recorded = &rules->recorded,
		.watch = watch,
		.sample = watch_last(watch),
		.firings = &firing,
	};
	char comm[WATCH_COMM_SIZE];

	if (strcmp(rules->incident, incident) != 0) {
		text_copy(rules->incident, sizeof(rules->incident), incident);
		rules->incidents++;
	}
	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT; rule++)
		for (unsigned int slot = 0; slot < scope_of(rule)->slots; slot++) {
			struct rule_state *state = &rules->states[rule][slot];
			struct subject subject;
			uint32_t serial;

			state->acknowledged = true;
			if (!state->active || !j.sample ||
				!subject_get(watch, j.sample, rule_kinds[rule].scope, slot,
					&subject, &serial))
				continue;
			j.count = 0;
			firing_add(&j, rule, state, &subject, rules->config[rule].set);
			recorded_note(&rules->recorded, rule,
				name_now(&firing, &subject, watch, comm), incident,
				rules->incidents, threads_of(rule, state), rules->now_ns);
		}
}
