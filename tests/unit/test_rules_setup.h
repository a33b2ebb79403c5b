/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules over a watchdog on a fixture tree.
 * Included by the tests of the rules.
 * Never depends on the clock or on the host.
 */
#ifndef IOSTALL_TESTS_TEST_RULES_SETUP_H
#define IOSTALL_TESTS_TEST_RULES_SETUP_H

#include "test_watch_tree.h"

#include <math.h>

#include "watch/rules.h"

#define FIRINGS_MAX 8

struct rig {
	struct tree *tree;
	struct watch *watch;
	struct rules *rules;
	struct config_rule config[CONFIG_RULE_COUNT];
	struct rules_firing firings[FIRINGS_MAX];
	/* What the next sample says. */
	unsigned int busy, iowait, blocked_tasks;
	uint64_t psi_some_us, psi_full_us, psi_memory_us;
	struct {
		uint64_t reads, read_ms, inflight, io_ms, flushes, flush_ms;
		bool absent;
	} disks[2];
	uint64_t volume_ms; /* of dm-0, which stands on one of them; 0: there is none */
};

static inline void rig_put(struct rig *rig)
{
	char text[512] = "";

	for (unsigned int i = 0; i < 2; i++) {
		size_t len = strlen(text);

		if (rig->disks[i].absent)
			continue;
		snprintf(text + len, sizeof(text) - len,
			"8 %u sd%c %lu 0 0 %lu 0 0 0 0 %lu %lu %lu 0 0 0 0 %lu %lu\n", i * 16,
			'a' + i, rig->disks[i].reads, rig->disks[i].read_ms, rig->disks[i].inflight,
			rig->disks[i].io_ms, rig->disks[i].read_ms + rig->disks[i].flush_ms,
			rig->disks[i].flushes, rig->disks[i].flush_ms);
	}
	if (rig->volume_ms)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"253 0 dm-0 %lu 0 0 0 0 0 0 0 0 %lu 0\n", rig->volume_ms, rig->volume_ms);
	tree_put(rig->tree, "proc/diskstats", "%s", text);
	tree_put_stat(rig->tree, rig->busy, rig->iowait, rig->blocked_tasks);
	tree_put_psi(rig->tree, "io", rig->psi_some_us, rig->psi_full_us);
	tree_put_psi(rig->tree, "memory", rig->psi_memory_us, rig->psi_memory_us);
}

/* All rules off, so that a test switches on the one it is about; the thresholds are the defaults.
 */
static inline struct rig rig_new(struct tree *t)
{
	static const struct config_rule defaults[CONFIG_RULE_COUNT] = {
#define RULE(rule_name, enabled_, set_, clear_, hold, unit, scope, source, help)                   \
	[CONFIG_RULE_##rule_name] = {                                                              \
		.set = (set_),                                                                     \
		.clear = (clear_),                                                                 \
		.hold_samples = (hold),                                                            \
		.cooldown_ns = 60 * NSEC_PER_SEC,                                                  \
	},
#include "watch/rules.def"
#undef RULE
	};
	struct rig rig = { .tree = t };

	memcpy(rig.config, defaults, sizeof(defaults));
	/* Somebody waits for what is counted as waiting for I/O. */
	tree_put_thread(t, 77, 77, "backup", 'D', 500, 9);
	rig_put(&rig);
	rig.watch = tree_watch(t);
	assert_int_equal(rules_new(rig.config, &rig.rules), 0);
	return rig;
}

static inline void rig_free(struct rig *rig)
{
	rules_free(rig->rules);
	watch_free(rig->watch);
}

static inline struct config_rule *rig_enable(struct rig *rig, enum config_rule_name rule)
{
	rig->config[rule].enabled = true;
	rules_reload(rig->rules, rig->config);
	return &rig->config[rule];
}

static inline size_t rig_step(struct rig *rig, uint64_t passed_ms)
{
	rig_put(rig);
	tree_sample(rig->tree, rig->watch, passed_ms);
	return rules_evaluate(rig->rules, rig->watch, rig->tree->now_ns, rig->firings, FIRINGS_MAX);
}

#endif
