/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/rules.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/number.h"
#include "util/text.h"
#include "watch/disks.h"
#include "watch/pressure_trigger.h"
#include "watch/recorded.h"
#include "watch/rule_subject.h"

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

static const struct rule_kind {
	const char *name;
	const char *unit;
	const char *source;
	enum rules_scope scope;
} rule_kinds[CONFIG_RULE_COUNT] = {
#define RULE(rule_name, enabled, set, clear, hold, rule_unit, rule_scope, rule_source, help)       \
	[CONFIG_RULE_##rule_name] = {                                                              \
		.name = #rule_name,                                                                \
		.unit = (rule_unit),                                                               \
		.source = (rule_source),                                                           \
		.scope = RULES_SCOPE_##rule_scope,                                                 \
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

/* Rules about the threads of the whole host; of others 0. */
static double threads_of(enum config_rule_name rule, const struct rule_state *state)
{
	return rule_kinds[rule].scope == RULES_SCOPE_process ? state->value : 0;
}

/* NULL: a rule with one subject, which is not the same each time. */
static const char *name_of(enum config_rule_name rule, const struct rule_subject *subject)
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
static const char *name_now(const struct rules_firing *firing, const struct rule_subject *subject,
	const struct watch *watch, char comm[static WATCH_COMM_SIZE])
{
	const char *name = name_of(firing->rule, subject);

	if (name || firing->scope != RULES_SCOPE_process)
		return name ? name : firing->subject;
	watch_copy_comm(watch, firing->pid, comm, WATCH_COMM_SIZE);
	return comm;
}

static void firing_add(struct evaluation *j, enum config_rule_name rule,
	const struct rule_state *state, const struct rule_subject *subject, double threshold)
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
	rule_subject_describe(subject, firing);
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
	struct rule_state *state, const struct rule_subject *subject)
{
	const struct config_rule *config = &rules->config[rule];
	double value = 0;
	bool may_fire = rule_subject_value(subject, rule, &value);

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
		value = smaller(state->reported, subject->io_pct);
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
		struct rule_subject subject;
		uint32_t serial;
		bool there =
			rule_subject_get(watch, rule_kinds[rule].scope, slot, &subject, &serial);

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
			struct rule_subject subject;
			uint32_t serial;

			if (!state->active || (scope_of(rule)->fires_once && state->acknowledged))
				continue;
			if (!rule_subject_get(watch, rule_kinds[rule].scope, slot, &subject,
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
			struct rule_subject subject;
			uint32_t serial;

			state->acknowledged = true;
			if (!state->active || !j.sample ||
				!rule_subject_get(watch, rule_kinds[rule].scope, slot, &subject,
					&serial))
				continue;
			j.count = 0;
			firing_add(&j, rule, state, &subject, rules->config[rule].set);
			recorded_note(&rules->recorded, rule,
				name_now(&firing, &subject, watch, comm), incident,
				rules->incidents, threads_of(rule, state), rules->now_ns);
		}
}
