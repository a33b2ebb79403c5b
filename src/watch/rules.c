/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/rules.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/text.h"

#define NSEC_PER_SEC_REAL 1e9

/* A rule over one subject: the host, the watched processes, or one device. */
struct rule_state {
	uint32_t serial; /* of the device */
	bool active;
	bool cooling; /* fired, and the cooldown is not over */
	uint64_t over_samples;
	uint64_t fired_ns;
};

struct rules {
	struct config_rule config[CONFIG_RULE_COUNT];
	/* Rules that are not about devices use the first slot. */
	struct rule_state states[CONFIG_RULE_COUNT][WATCH_DISKS_MAX];
};

/*
 * The value of a rule, disk being NULL unless it is about devices. False when it must not fire,
 * whatever the value.
 */
typedef bool (*rule_value_fn)(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value);

static bool value_iowait(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)disk;
	*ret_value = s->iowait_pct;
	return true;
}

static bool value_iowait_cpus(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)disk;
	*ret_value = s->iowait_cpus;
	return true;
}

/* Without a request in flight the device has just caught up, however busy the interval was. */
static bool value_utilisation(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)s;
	*ret_value = disk->util_pct;
	return disk->inflight > 0;
}

static bool value_await(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)s;
	*ret_value = disk->read_await_ms > disk->write_await_ms ? disk->read_await_ms
								: disk->write_await_ms;
	return true;
}

static bool value_hung(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)s;
	*ret_value = (double)disk->no_completion_ns / NSEC_PER_SEC_REAL;
	return true;
}

static bool value_psi_io_full(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)disk;
	*ret_value = s->psi_io.full_pct;
	return s->psi_io.present;
}

static bool value_psi_io_some(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)disk;
	*ret_value = s->psi_io.some_pct;
	return s->psi_io.present;
}

static bool value_blocked(
	const struct watch_sample *s, const struct watch_disk *disk, double *ret_value)
{
	(void)disk;
	*ret_value = (double)s->threads.blocked;
	return true;
}

static const struct rule_kind {
	const char *name;
	const char *unit;
	const char *source;
	enum rules_scope scope;
	rule_value_fn value;
} rule_kinds[CONFIG_RULE_COUNT] = {
#define RULE(rule_name, set, clear, hold, rule_unit, rule_scope, rule_source, help)                \
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

int rules_new(const struct config_rule config[static CONFIG_RULE_COUNT], struct rules **ret_rules)
{
	struct rules *rules = calloc(1, sizeof(*rules));

	if (!rules)
		return -ENOMEM;
	rules_reload(rules, config);
	*ret_rules = rules;
	return 0;
}

struct rules *rules_free(struct rules *rules)
{
	free(rules);
	return NULL;
}

void rules_reload(struct rules *rules, const struct config_rule config[static CONFIG_RULE_COUNT])
{
	memcpy(rules->config, config, sizeof(rules->config));
}

struct judgement {
	uint64_t now_ns;
	const struct watch_sample *sample;
	struct rules_firing *firings;
	size_t max;
	size_t count;
};

static void firing_add(struct judgement *j, enum config_rule_name rule,
	const struct watch_disk *disk, double value, double threshold)
{
	const struct rule_kind *kind = &rule_kinds[rule];
	struct rules_firing *firing = &j->firings[j->count++];

	*firing = (struct rules_firing){
		.rule = rule,
		.name = kind->name,
		.unit = kind->unit,
		.scope = kind->scope,
		.value = value,
		.threshold = threshold,
	};
	if (disk)
		text_copy(firing->device, sizeof(firing->device), disk->name);
	if (kind->scope == RULES_SCOPE_process) {
		firing->pid = j->sample->threads.blocked_pid;
		firing->tid = j->sample->threads.blocked_tid;
	}
}

/* Whether it may fire now: for the first time, or again because it has stayed over so long. */
static bool state_is_ready(const struct rule_state *state, const struct config_rule *config)
{
	if (state->over_samples == 0 || state->over_samples < config->hold_samples)
		return false;
	/* Without a cooldown nothing repeats but what has ended in between. */
	return !state->cooling && !(state->active && config->cooldown_ns == 0);
}

static void rule_judge(struct rules *rules, struct judgement *j, enum config_rule_name rule,
	struct rule_state *state, const struct watch_disk *disk)
{
	const struct config_rule *config = &rules->config[rule];
	double value = 0;
	bool may_fire = rule_kinds[rule].value(j->sample, disk, &value);

	if (may_fire && value > config->set)
		state->over_samples++;
	else
		state->over_samples = 0;
	if (state->cooling && j->now_ns - state->fired_ns >= config->cooldown_ns)
		state->cooling = false;
	/* A clear threshold of 0 is reached, as nothing is under it. */
	if (state->active && (value < config->clear || value <= 0))
		state->active = false;
	if (!state_is_ready(state, config) || j->count == j->max)
		return;
	state->active = true;
	state->cooling = true;
	state->fired_ns = j->now_ns;
	firing_add(j, rule, disk, value, config->set);
}

static void rule_judge_disks(struct rules *rules, struct judgement *j, enum config_rule_name rule,
	const struct watch *watch)
{
	for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
		struct rule_state *state = &rules->states[rule][slot];
		uint32_t serial = 0;
		const struct watch_disk *disk = watch_disk_in_slot(watch, slot, &serial);

		if (!disk || state->serial != serial)
			*state = (struct rule_state){ .serial = serial };
		if (disk)
			rule_judge(rules, j, rule, state, disk);
	}
}

size_t rules_evaluate(struct rules *rules, const struct watch *watch, uint64_t now_ns,
	struct rules_firing *ret_firings, size_t max)
{
	struct judgement j = {
		.now_ns = now_ns,
		.sample = watch_last(watch),
		.firings = ret_firings,
		.max = max,
	};

	if (!j.sample)
		return 0;
	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT; rule++) {
		if (!rules->config[rule].enabled)
			memset(rules->states[rule], 0, sizeof(rules->states[rule]));
		else if (rule_kinds[rule].scope == RULES_SCOPE_device)
			rule_judge_disks(rules, &j, rule, watch);
		else
			rule_judge(rules, &j, rule, &rules->states[rule][0], NULL);
	}
	return j.count;
}

unsigned int rules_active(const struct rules *rules)
{
	unsigned int count = 0;

	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT; rule++)
		for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++)
			count += rules->states[rule][slot].active;
	return count;
}

bool rules_first_active(const struct rules *rules, const struct watch *watch,
	struct rules_firing *ret_firing)
{
	struct judgement j = { .sample = watch_last(watch), .firings = ret_firing, .max = 1 };

	for (unsigned int rule = 0; rule < CONFIG_RULE_COUNT && j.sample; rule++) {
		for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
			const struct watch_disk *disk = NULL;
			uint32_t serial;
			double value;

			if (!rules->states[rule][slot].active)
				continue;
			if (rule_kinds[rule].scope == RULES_SCOPE_device)
				disk = watch_disk_in_slot(watch, slot, &serial);
			if (rule_kinds[rule].scope == RULES_SCOPE_device && !disk)
				continue;
			rule_kinds[rule].value(j.sample, disk, &value);
			firing_add(&j, rule, disk, value, rules->config[rule].set);
			return true;
		}
	}
	return false;
}
