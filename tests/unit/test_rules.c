/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
#include "test_rules_setup.h"

#include "watch/recorded.h"

/* One second with so much iowait, in percent of two CPUs. */
static size_t iowait_step(struct rig *rig, unsigned int pct)
{
	rig->iowait += 2 * pct;
	return rig_step(rig, 1000);
}

static void test_hold_clear_and_cooldown(void **state)
{
	struct rig rig = rig_new(*state);
	const struct rules_firing *f = &rig.firings[0];

	rig_enable(&rig, CONFIG_RULE_iowait);
	assert_int_equal(rules_evaluate(rig.rules, rig.watch, 0, rig.firings, FIRINGS_MAX), 0);
	assert_int_equal(rig_step(&rig, 0), 0);
	assert_int_equal(iowait_step(&rig, 30), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	assert_int_equal(iowait_step(&rig, 19), 0); /* one sample below starts the hold anew */
	assert_int_equal(iowait_step(&rig, 30), 0);
	assert_int_equal(iowait_step(&rig, 21), 1);
	assert_int_equal(f->rule, CONFIG_RULE_iowait);
	assert_string_equal(f->name, "iowait");
	assert_string_equal(f->unit, "%");
	assert_int_equal(f->scope, RULES_SCOPE_host);
	assert_string_equal(f->device, "");
	assert_int_equal(f->pid, 0);
	assert_float_equal((float)f->value, 21, 1e-4f);
	assert_float_equal((float)f->threshold, 20, 1e-4f);
	assert_int_equal(rules_active(rig.rules), 1);

	/* Fired once, active between the thresholds, over below the lower one. */
	assert_int_equal(iowait_step(&rig, 50), 0);
	assert_int_equal(iowait_step(&rig, 10), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	assert_int_equal(iowait_step(&rig, 9), 0);
	assert_int_equal(rules_active(rig.rules), 0);

	/* Not again within the cooldown, again behind it. */
	for (unsigned int i = 0; i < 56; i++)
		assert_int_equal(iowait_step(&rig, 50), 0);
	assert_int_equal(iowait_step(&rig, 50), 1);
	/* And once more after each cooldown while it stays over. */
	for (unsigned int i = 0; i < 59; i++)
		assert_int_equal(iowait_step(&rig, 50), 0);
	assert_int_equal(iowait_step(&rig, 50), 1);
	assert_int_equal(rules_active(rig.rules), 1);
	rig_free(&rig);
}

static void test_exactly_the_threshold_is_not_over(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_iowait);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(iowait_step(&rig, 20), 0);
	rig_free(&rig);
}

static void test_no_cooldown_and_clear_at_zero(void **state)
{
	struct rig rig = rig_new(*state);
	struct config_rule *rule = rig_enable(&rig, CONFIG_RULE_iowait);

	*rule = (struct config_rule){ .enabled = true, .set = 20, .clear = 0 };
	rules_reload(rig.rules, rig.config);
	rig_step(&rig, 0);
	assert_int_equal(iowait_step(&rig, 30), 1);
	assert_int_equal(iowait_step(&rig, 30), 0);
	assert_int_equal(iowait_step(&rig, 1), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	assert_int_equal(iowait_step(&rig, 0), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	assert_int_equal(iowait_step(&rig, 30), 1);

	/* What is switched off is not active any more. */
	rule->enabled = false;
	rules_reload(rig.rules, rig.config);
	assert_int_equal(iowait_step(&rig, 30), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void test_state_of_each_device(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_utilisation);
	rig_step(&rig, 0);
	rig.disks[0].inflight = 1;
	rig.disks[0].io_ms += 950;
	assert_int_equal(rig_step(&rig, 1000), 0);
	rig.disks[0].io_ms += 950;
	rig.disks[1].inflight = 1;
	rig.disks[1].io_ms += 990;
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].device, "sda");
	assert_string_equal(rig.firings[0].name, "utilisation");
	assert_float_equal((float)rig.firings[0].value, 95, 1e-4f);

	/* sda is below its clear threshold when sdb fires: one cooldown does not hold the other. */
	rig.disks[0].io_ms += 100;
	rig.disks[1].io_ms += 990;
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].device, "sdb");
	assert_int_equal(rules_active(rig.rules), 1);

	/* A device that is gone is over; back again it is another one, without hold and cooldown.
	 */
	rig.disks[1].absent = true;
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig.disks[1].absent = false;
	assert_int_equal(rig_step(&rig, 1000), 0);
	rig.disks[1].io_ms += 990;
	assert_int_equal(rig_step(&rig, 1000), 0);
	rig.disks[1].io_ms += 990;
	assert_int_equal(rig_step(&rig, 1000), 1);
	rig_free(&rig);
}

/* What is still going on after an incident and its cooldown is told as if it fired now. */
static void test_first_active(void **state)
{
	struct rig rig = rig_new(*state);
	struct rules_firing firing;

	rig_enable(&rig, CONFIG_RULE_utilisation);
	rig_step(&rig, 0);
	assert_false(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));
	rig.disks[1].inflight = 1;
	for (unsigned int i = 0; i < 3; i++) {
		rig.disks[1].io_ms += 950;
		rig_step(&rig, 1000);
	}
	rig.disks[1].io_ms += 800;
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_true(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));
	assert_string_equal(firing.name, "utilisation");
	assert_string_equal(firing.device, "sdb");
	assert_float_equal((float)firing.value, 80, 1e-4f);
	assert_float_equal((float)firing.threshold, 90, 1e-4f);
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_false(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));
	rig_free(&rig);
}

/* Busy all the interval, but nothing in flight now: it has caught up. */
static void test_utilisation_needs_a_request_in_flight(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_utilisation);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 5; i++) {
		rig.disks[0].io_ms += 1000;
		assert_int_equal(rig_step(&rig, 1000), 0);
	}
	rig.disks[0].inflight = 1;
	rig.disks[0].io_ms += 1000;
	assert_int_equal(rig_step(&rig, 1000), 0);
	rig.disks[0].io_ms += 1000;
	assert_int_equal(rig_step(&rig, 1000), 1);
	/* The same does not end it. */
	rig.disks[0].inflight = 0;
	rig.disks[0].io_ms += 1000;
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	rig_free(&rig);
}

/*
 * A host that was suspended for an hour has an hour's deltas, and an hour to divide them by: a gap
 * between two readings makes no rate larger than it was.
 */
static void test_gap_between_readings(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_iowait)->hold_samples = 1;
	rig_enable(&rig, CONFIG_RULE_utilisation)->hold_samples = 1;
	rig_enable(&rig, CONFIG_RULE_psi_io_full)->hold_samples = 1;
	rig_step(&rig, 0);
	rig.disks[0].inflight = 1;
	rig.disks[0].io_ms += 5000;
	rig.iowait += 1000;
	rig.psi_full_us += 5000000;
	assert_int_equal(rig_step(&rig, 3600000), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void test_hung_without_utilisation(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_hung);
	rig_step(&rig, 0);
	rig.disks[1].inflight = 2;
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rig_step(&rig, 1001), 1);
	assert_string_equal(rig.firings[0].device, "sdb");
	assert_string_equal(rig.firings[0].unit, "s");
	assert_float_equal((float)rig.firings[0].value, 3.001, 1e-4f);
	rig.disks[1].reads++;
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void test_await(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_await);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 2; i++) {
		rig.disks[0].reads += 10;
		rig.disks[0].read_ms += 6000;
		assert_int_equal(rig_step(&rig, 1000), i);
	}
	assert_float_equal((float)rig.firings[0].value, 600, 1e-4f);
	assert_string_equal(rig.firings[0].unit, "ms");
	rig_free(&rig);
}

/* Of a request that takes seconds most samples say nothing. */
static void test_await_of_one_request_at_a_time(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_await);
	rig.disks[0].inflight = 1;
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(rig_step(&rig, 1000), 0);
		rig.disks[0].reads++;
		rig.disks[0].read_ms += 2000;
		assert_int_equal(rig_step(&rig, 1000), i);
	}
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	/* It has nothing to do any more. */
	rig.disks[0].inflight = 0;
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void test_await_of_flushes(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_await);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 2; i++) {
		rig.disks[0].reads += 10;
		rig.disks[0].read_ms += 10;
		rig.disks[0].flushes++;
		rig.disks[0].flush_ms += 900;
		assert_int_equal(rig_step(&rig, 1000), i);
	}
	assert_float_equal((float)rig.firings[0].value, 900, 1e-4f);
	rig_free(&rig);
}

static void test_pressure_and_cpu_seconds(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	rig_enable(&rig, CONFIG_RULE_psi_io_some);
	rig_enable(&rig, CONFIG_RULE_iowait_cpus)->set = 1.5;
	rig.config[CONFIG_RULE_iowait_cpus].clear = 1;
	rules_reload(rig.rules, rig.config);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 3; i++) {
		rig.psi_full_us += 210000;
		rig.psi_some_us += 610000;
		rig.iowait += 160;
		assert_int_equal(rig_step(&rig, 1000), i == 0 ? 0 : i == 1 ? 2 : 1);
		if (i == 1) {
			assert_string_equal(rig.firings[0].name, "iowait_cpus");
			assert_float_equal((float)rig.firings[0].value, 1.6, 1e-4f);
			assert_string_equal(rig.firings[1].name, "psi_io_full");
		}
	}
	assert_string_equal(rig.firings[0].name, "psi_io_some");
	assert_int_equal(rules_active(rig.rules), 3);

	/* A kernel without PSI: nothing fires, and what was active is over. */
	tree_put(rig.tree, "proc/pressure/io", "%s", "");
	tree_sample(rig.tree, rig.watch, 1000);
	assert_int_equal(rules_evaluate(rig.rules, rig.watch, rig.tree->now_ns, rig.firings, 8), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void test_pressure_on_memory(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_psi_memory_full);
	rig_step(&rig, 0);
	rig.psi_memory_us += 210000;
	assert_int_equal(rig_step(&rig, 1000), 0);
	rig.psi_memory_us += 210000;
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].name, "psi_memory_full");
	assert_float_equal((float)rig.firings[0].value, 21, 1e-3f);
	rig_free(&rig);
}

/* The kernel has seen the stall: one sample is enough, also where it is over a long time. */
static void test_pressure_that_the_kernel_reports(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	rig_step(&rig, 0);
	rig.config[CONFIG_RULE_psi_io_full].set = 90;
	rules_reload(rig.rules, rig.config);
	rules_report_pressure(rig.rules);
	rig.psi_full_us += 420000;
	assert_int_equal(rig_step(&rig, 20000), 0);
	rig.config[CONFIG_RULE_psi_io_full].set = 20;
	rules_reload(rig.rules, rig.config);
	/* What was reported counts once. */
	assert_int_equal(rig_step(&rig, 1000), 0);
	rules_report_pressure(rig.rules);
	rig.psi_full_us += 420000;
	assert_int_equal(rig_step(&rig, 20000), 1);
	assert_string_equal(rig.firings[0].name, "psi_io_full");
	assert_float_equal((float)rig.firings[0].value, 80, 1e-4f);
	rig_free(&rig);
}

/* A second in which half of the time of the CPUs and all of that of tasks is said to be lost. */
static size_t idle_step(struct rig *rig, uint64_t busy_ms)
{
	rig->iowait += 100;
	rig->psi_some_us += 990000;
	rig->psi_full_us += 990000;
	rig->disks[1].reads += busy_ms;
	rig->disks[1].io_ms += busy_ms;
	return rig_step(rig, 1000);
}

/* Who waits for a socket through io_uring is counted as waiting for I/O, too. */
static void test_waiting_without_work_for_disks(void **state)
{
	struct tree *t = *state;
	struct rig rig = rig_new(t);

	rig_enable(&rig, CONFIG_RULE_iowait);
	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	rig_enable(&rig, CONFIG_RULE_psi_io_some);
	rig_enable(&rig, CONFIG_RULE_iowait_cpus)->set = 0.5;
	rules_reload(rig.rules, rig.config);
	tree_put_thread(t, 77, 77, "server", 'S', 500, 9);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(idle_step(&rig, 15), 0);
	/* The kernel may well report it: there is no reason to look sooner. */
	assert_false(rules_report_pressure(rig.rules));
	assert_int_equal(rules_active(rig.rules), 0);

	/* The disk was as busy as they say, or busy for most of it. */
	assert_int_equal(idle_step(&rig, 700), 0);
	assert_int_equal(idle_step(&rig, 700), 3);
	assert_float_equal((float)rig.firings[0].value, 50, 1e-3f);
	assert_float_equal((float)rig.firings[2].value, 70, 1e-3f);
	assert_int_equal(idle_step(&rig, 700), 1);
	assert_float_equal((float)rig.firings[0].value, 70, 1e-3f);

	/* A volume on the disk has the same requests once more. */
	for (unsigned int i = 0; i < 3; i++) {
		rig.volume_ms += 180;
		assert_int_equal(idle_step(&rig, 180), 0);
	}

	/* That ends, also while the waiting is counted on. */
	assert_int_equal(idle_step(&rig, 0), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

/* The server of a mount, a limit or a suspended volume gives no disk work. */
static void test_a_thread_in_d_is_believed(void **state)
{
	struct tree *t = *state;
	struct rig rig = rig_new(t);

	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	/* One that serves the kernel may be in it for ever. */
	tree_put_thread(t, 77, 77, "server", 'S', 500, 9);
	tree_put(t, "proc/60/task/60/status",
		"Name:\traid\nState:\tD (disk sleep)\nTgid:\t60\nPid:\t60\nPPid:\t2\n");
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(idle_step(&rig, 0), 0);
	tree_put_thread(t, 78, 78, "sshd", 'S', 500, 9);
	tree_put_thread(t, 78, 79, "worker", 'D', 500, 9);
	assert_int_equal(idle_step(&rig, 0), 0);
	assert_int_equal(idle_step(&rig, 0), 1);
	assert_float_equal((float)rig.firings[0].value, 99, 1e-3f);
	rig_free(&rig);
}

/*
 * A database that is well beside a server that waits in io_uring: each look finds one of its
 * threads in D, another wait each time.
 */
static void test_short_waits_explain_nothing(void **state)
{
	struct tree *t = *state;
	struct rig rig = rig_new(t);

	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	tree_put_thread(t, 78, 78, "mysqld", 'S', 500, 9);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 7; i++) {
		tree_put_thread(t, 78, 79, "mysqld", 'D', 500, 10 + i);
		assert_int_equal(idle_step(&rig, 0), 0);
	}
	/* One after the other is waiting all the time. */
	for (unsigned int i = 0; i < 2; i++) {
		tree_put_thread(t, 78, 79, "mysqld", 'D', 500, 20 + i);
		assert_int_equal(idle_step(&rig, 0), i);
	}
	rig_free(&rig);
}

/* A limit of requests holds each back for less than a sample, but all of them all the time. */
static void test_short_waits_of_many(void **state)
{
	struct tree *t = *state;
	struct rig rig = rig_new(t);

	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	tree_put_thread(t, 78, 78, "mysqld", 'S', 500, 9);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 3; i++) {
		for (int tid = 79; tid < 87; tid++)
			tree_put_thread(t, 78, tid, "mysqld", 'D', 500, 10 + i);
		assert_int_equal(idle_step(&rig, 0), i == 1);
	}
	rig_free(&rig);
}

/* A host may have so many threads that no sample has the time to look at all of them. */
static void test_what_was_not_looked_at_is_not_known(void **state)
{
	struct tree *t = *state;
	struct rig rig = rig_new(t);

	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	rig_step(&rig, 0);
	assert_int_equal(idle_step(&rig, 0), 0);
	assert_int_equal(idle_step(&rig, 0), 1);
	tree_put_thread(t, 77, 77, "server", 'S', 500, 9);
	t->step_ns = 20 * NSEC_PER_MSEC;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(idle_step(&rig, 0), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	t->step_ns = 0;
	assert_int_equal(idle_step(&rig, 0), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

/* Also when no incident is open, as after the longest time that one may take. */
static void test_a_host_that_lacks_memory(void **state)
{
	struct rig rig = rig_new(*state);

	rig_step(&rig, 0);
	assert_false(watch_lacks_memory(rig.watch));
	rig.psi_memory_us += 150000;
	rig_step(&rig, 1000);
	assert_true(watch_lacks_memory(rig.watch));
	rig.psi_memory_us += 50000;
	rig_step(&rig, 1000);
	assert_false(watch_lacks_memory(rig.watch));
	rig_free(&rig);
}

/* What the kernel reports then is judged then, or not at all. */
static void test_reported_pressure_that_was_not_looked_at(void **state)
{
	struct tree *t = *state;
	struct rig rig = rig_new(t);

	rig_enable(&rig, CONFIG_RULE_psi_io_full);
	tree_put_thread(t, 77, 77, "server", 'S', 500, 9);
	rig_step(&rig, 0);
	t->step_ns = 20 * NSEC_PER_MSEC;
	assert_true(rules_report_pressure(rig.rules));
	assert_int_equal(idle_step(&rig, 0), 0);
	t->step_ns = 0;
	rig.psi_full_us += 30000;
	assert_int_equal(rig_step(&rig, 1000), 0);
	rig_free(&rig);
}

static void test_blocked_threads(void **state)
{
	struct tree *t = *state;
	struct rig rig;

	tree_list_add(&t->process, "mariadbd");
	/* One of many, as a frozen file system shows it, is enough. */
	for (int tid = 10; tid < 15; tid++)
		tree_put_thread(t, 10, tid, "mariadbd", tid == 13 ? 'D' : 'S', 500, 9);
	rig = rig_new(t);
	rig_enable(&rig, CONFIG_RULE_blocked);
	/* Seen, seen again, and once more: it has been blocked for two seconds. */
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_int_equal(rig.firings[0].scope, RULES_SCOPE_process);
	assert_int_equal(rig.firings[0].pid, 10);
	assert_int_equal(rig.firings[0].tid, 13);
	assert_float_equal((float)rig.firings[0].value, 1, 1e-4f);
	tree_put_thread(t, 10, 13, "mariadbd", 'S', 500, 10);
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void test_many_blocked_threads(void **state)
{
	struct tree *t = *state;
	struct rig rig;

	tree_list_add(&t->process, "mariadbd");
	for (int tid = 10; tid < 15; tid++)
		tree_put_thread(t, 10, tid, "mariadbd", tid > 11 ? 'D' : 'S', 500, 9);
	rig = rig_new(t);
	rig_enable(&rig, CONFIG_RULE_blocked_many);
	/* Three may wait for one another. */
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(rig_step(&rig, 1000), 0);
	tree_put_thread(t, 10, 11, "mariadbd", 'D', 500, 9);
	/* Seen, and seen again. */
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].name, "blocked_many");
	assert_int_equal(rig.firings[0].pid, 10);
	assert_float_equal((float)rig.firings[0].value, 4, 1e-4f);
	rig_free(&rig);
}

/* A disk that goes on to fail is one trouble, until a minute has passed without an error. */
static void test_errors_in_the_kernel_log(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_errors);
	rig_step(&rig, 0);
	assert_int_equal(rig_step(&rig, 1000), 0);
	watch_note_kernel_error(rig.watch, "Buffer I/O error on dev sdb1, logical block 0", false);
	watch_note_kernel_error(rig.watch, "I/O error, dev sda, sector 8", false);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].name, "errors");
	assert_string_equal(rig.firings[0].device, "sdb");
	assert_float_equal((float)rig.firings[0].value, 2, 1e-4f);
	assert_int_equal(rules_holding(rig.rules), 0);
	rules_acknowledge(rig.rules, rig.watch, "first");
	for (unsigned int i = 0; i < 5; i++) {
		watch_note_kernel_error(rig.watch, "I/O error, dev sdb, sector 8", false);
		assert_int_equal(rig_step(&rig, 50000), 0);
	}
	assert_int_equal(rules_active(rig.rules), 1);
	/* It has been named beside the first. */
	watch_note_kernel_error(rig.watch, "I/O error, dev sda, sector 8", false);
	assert_int_equal(rig_step(&rig, 1000), 0);
	rig_step(&rig, 61000);
	assert_int_equal(rules_active(rig.rules), 0);
	watch_note_kernel_error(rig.watch, "md0: something else", false);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].device, "");
	rig_free(&rig);
}

/* A disk that fails for days hides no other one, and no process that is killed. */
static void test_another_error_in_the_kernel_log(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_errors);
	rig_step(&rig, 0);
	watch_note_kernel_error(rig.watch, "ata1.00: exception Emask 0x0", false);
	watch_note_kernel_error(rig.watch, "I/O error, dev sdb, sector 8", false);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].device, "sdb");
	rules_acknowledge(rig.rules, rig.watch, "first");
	watch_note_kernel_error(rig.watch, "I/O error, dev sda, sector 8", false);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].device, "sda");
	rules_acknowledge(rig.rules, rig.watch, "second");
	watch_note_kernel_error(rig.watch, "I/O error, dev sdb, sector 8", false);
	assert_int_equal(rig_step(&rig, 1000), 0);
	watch_note_kernel_error(rig.watch, "Out of memory: Killed process 7 (mysqld)", true);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].device, "");
	rig_free(&rig);
}

/* Those that do not fit what the caller gave fire at the next sample. */
static void test_more_than_asked_for(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_hung);
	rig_step(&rig, 0);
	rig.disks[0].inflight = rig.disks[1].inflight = 1;
	rig_step(&rig, 1000);
	rig_put(&rig);
	tree_sample(rig.tree, rig.watch, 4000);
	assert_int_equal(rules_evaluate(rig.rules, rig.watch, rig.tree->now_ns, rig.firings, 0), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	tree_sample(rig.tree, rig.watch, 1000);
	assert_int_equal(rules_evaluate(rig.rules, rig.watch, rig.tree->now_ns, rig.firings, 1), 1);
	assert_string_equal(rig.firings[0].device, "sda");
	tree_sample(rig.tree, rig.watch, 1000);
	assert_int_equal(rules_evaluate(rig.rules, rig.watch, rig.tree->now_ns, rig.firings, 1), 1);
	assert_string_equal(rig.firings[0].device, "sdb");
	assert_int_equal(rules_active(rig.rules), 2);
	rig_free(&rig);
}

/* The sample keeps eight disks; the ninth must fire all the same. */
static void test_all_disks_are_judged(void **state)
{
	struct tree *t = *state;
	struct rig rig = rig_new(t);
	char text[4096] = "";

	rig_enable(&rig, CONFIG_RULE_await)->hold_samples = 1;
	rules_reload(rig.rules, rig.config);
	for (unsigned int round = 0; round < 2; round++) {
		text[0] = '\0';
		for (unsigned int i = 0; i < 20; i++) {
			size_t len = strlen(text);

			/* The busy ones are quick, the idle sd19 answers one request in a second.
			 */
			snprintf(text + len, sizeof(text) - len,
				"8 %u sd%u %u 0 0 %u 0 0 0 0 0 %u 0\n", i, i, round,
				i == 19 ? round * 900 : 0, i == 19 ? 0 : round * 500);
		}
		tree_put(t, "proc/diskstats", "%s", text);
		tree_sample(t, rig.watch, 1000);
	}
	for (uint32_t i = 0; i < RECORD_DEVICES_MAX; i++)
		assert_string_not_equal(watch_last(rig.watch)->devices[i].dev_name, "sd19");
	assert_int_equal(rules_evaluate(rig.rules, rig.watch, t->now_ns, rig.firings, 8), 1);
	assert_string_equal(rig.firings[0].device, "sd19");
	rig_free(&rig);
}

static void test_table(void **state)
{
	(void)state;
	for (enum config_rule_name rule = 0; rule < CONFIG_RULE_COUNT; rule++) {
		assert_true(strlen(rules_name(rule)) > 0);
		assert_true(strlen(rules_unit(rule)) > 0);
		assert_in_range(rules_scope(rule), RULES_SCOPE_host, RULES_SCOPE_database);
	}
	assert_string_equal(rules_name(CONFIG_RULE_psi_io_full), "psi_io_full");
	assert_string_equal(rules_unit(CONFIG_RULE_blocked), "threads");
	assert_null(rules_free(NULL));
}

#define MINUTES(n) ((n)*60 * NSEC_PER_SEC)

/* What is active is told with the incident that has its beginning, until it has been clear. */
static void test_recorded_trouble_waits_longer(void **state)
{
	struct rig rig = rig_new(*state);
	const struct rules_firing *f = &rig.firings[0];
	struct rules_firing firing;

	rig_enable(&rig, CONFIG_RULE_iowait);
	rig_step(&rig, 0);
	iowait_step(&rig, 30);
	assert_int_equal(iowait_step(&rig, 30), 1);
	assert_string_equal(f->continues, "");
	assert_true(rules_is_due(f, 0, MINUTES(1)));
	/* One incident, in several samples. */
	for (unsigned int i = 0; i < 3; i++)
		rules_acknowledge(rig.rules, rig.watch, "first");
	for (unsigned int i = 0; i < 59; i++)
		assert_int_equal(iowait_step(&rig, 30), 0);
	assert_int_equal(iowait_step(&rig, 30), 1);
	assert_string_equal(f->continues, "first");
	assert_false(rules_is_due(f, MINUTES(1) - 1, MINUTES(1)));
	assert_true(rules_is_due(f, MINUTES(1), MINUTES(1)));
	rules_acknowledge(rig.rules, rig.watch, "second");
	/* A reload changes nothing about that. */
	rules_reload(rig.rules, rig.config);
	assert_false(rules_first_active(rig.rules, rig.watch, MINUTES(2) - 1, MINUTES(1), &firing));
	assert_true(rules_first_active(rig.rules, rig.watch, MINUTES(2), MINUTES(1), &firing));
	assert_string_equal(firing.continues, "first");
	for (unsigned int i = 0; i < 20; i++) {
		char id[16];

		snprintf(id, sizeof(id), "further %u", i);
		rules_acknowledge(rig.rules, rig.watch, id);
	}
	assert_false(
		rules_first_active(rig.rules, rig.watch, MINUTES(60) - 1, MINUTES(1), &firing));
	assert_true(rules_first_active(rig.rules, rig.watch, MINUTES(60), MINUTES(1), &firing));
	/* Whoever wants longer pauses has them. */
	assert_false(rules_first_active(rig.rules, rig.watch, MINUTES(61), MINUTES(120), &firing));
	assert_true(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));

	assert_int_equal(iowait_step(&rig, 0), 0);
	for (unsigned int i = 0; i < 60; i++)
		iowait_step(&rig, 0);
	iowait_step(&rig, 30);
	assert_int_equal(iowait_step(&rig, 30), 1);
	assert_string_equal(f->continues, "");
	rig_free(&rig);
}

/* As a disk that fails and completes a request now and then. */
static void test_what_is_clear_for_a_moment_lasts(void **state)
{
	struct rig rig = rig_new(*state);
	const struct rules_firing *f = &rig.firings[0];

	rig.config[CONFIG_RULE_iowait].cooldown_ns = 0;
	rig_enable(&rig, CONFIG_RULE_iowait);
	rig_step(&rig, 0);
	for (unsigned int i = 0; i < 5; i++) {
		char id[16];

		iowait_step(&rig, 30);
		assert_int_equal(iowait_step(&rig, 30), 1);
		assert_string_equal(f->continues, i == 0 ? "" : "incident 0");
		assert_int_equal(f->incidents, i);
		snprintf(id, sizeof(id), "incident %u", i);
		rules_acknowledge(rig.rules, rig.watch, id);
		for (unsigned int j = 0; j < 50; j++)
			assert_int_equal(iowait_step(&rig, 0), 0);
	}
	rig_free(&rig);
}

/* What is due is found behind what is not. */
static void test_another_disk_is_due_at_once(void **state)
{
	struct rig rig = rig_new(*state);
	struct rules_firing firing;

	rig_enable(&rig, CONFIG_RULE_utilisation);
	rig_step(&rig, 0);
	rig.disks[0].inflight = rig.disks[1].inflight = 1;
	for (unsigned int i = 0; i < 2; i++) {
		rig.disks[0].io_ms += 950;
		rig_step(&rig, 1000);
	}
	rules_acknowledge(rig.rules, rig.watch, "first");
	assert_false(rules_first_active(rig.rules, rig.watch, 0, MINUTES(1), &firing));
	for (unsigned int i = 0; i < 2; i++) {
		rig.disks[0].io_ms += 950;
		rig.disks[1].io_ms += 950;
		rig_step(&rig, 1000);
	}
	assert_true(rules_first_active(rig.rules, rig.watch, 0, MINUTES(1), &firing));
	assert_string_equal(firing.device, "sdb");
	assert_string_equal(firing.continues, "");
	rig_free(&rig);
}

#define RULE 7

#define RECORDED_MAX 8
#define RECORDED_TABLE                                                                             \
	((struct recorded_table){ .list = (struct recorded[RECORDED_MAX]){ { 0 } },                \
		.max = RECORDED_MAX })

static bool has(const struct recorded_table *t, const char *name, double threads, uint64_t now_ns)
{
	return recorded_has(recorded_find(t, RULE, name, now_ns), threads);
}

/* Threads are counted for the whole host: many more of them are another freeze. */
static void test_more_threads_are_not_recorded(void **state)
{
	struct recorded_table t = RECORDED_TABLE;
	const uint64_t now_ns = MINUTES(100);

	(void)state;
	assert_false(has(&t, "mariadbd", 0, now_ns));
	recorded_note(&t, RULE, "mariadbd", "first", 1, 3, now_ns);
	assert_true(has(&t, "mariadbd", 3, now_ns));
	assert_true(has(&t, "mariadbd", 5, now_ns));
	assert_false(has(&t, "mariadbd", 6, now_ns));
	assert_null(recorded_find(&t, RULE, "postgres", now_ns));
	assert_null(recorded_find(&t, RULE + 1, "mariadbd", now_ns));
	/* The most that the incident has seen. */
	recorded_note(&t, RULE, "mariadbd", "first", 1, 8, now_ns);
	recorded_note(&t, RULE, "mariadbd", "first", 1, 2, now_ns);
	assert_int_equal(recorded_find(&t, RULE, "mariadbd", now_ns)->incidents, 1);
	assert_true(has(&t, "mariadbd", 15, now_ns));
	assert_false(has(&t, "mariadbd", 16, now_ns));
	recorded_note(&t, RULE, "mariadbd", "second", 2, 9, now_ns);
	assert_string_equal(recorded_find(&t, RULE, "mariadbd", now_ns)->first, "first");
	assert_int_equal(recorded_find(&t, RULE, "mariadbd", now_ns)->incidents, 2);
	recorded_note(&t, RULE, "mariadbd", "third", 3, 18, now_ns);
	assert_string_equal(recorded_find(&t, RULE, "mariadbd", now_ns)->first, "third");
	assert_int_equal(recorded_find(&t, RULE, "mariadbd", now_ns)->incidents, 1);
}

/* Fewer for a moment are the same freeze; fewer for a minute leave room for another one. */
static void test_fewer_threads(void **state)
{
	struct recorded_table t = RECORDED_TABLE;
	uint64_t now_ns = MINUTES(100);

	(void)state;
	recorded_note(&t, RULE, "mariadbd", "first", 1, 10, now_ns);
	for (unsigned int i = 0; i < 120; i++) {
		recorded_follow(&t, RULE, NULL, i % 30 == 29 ? 10 : 1, now_ns);
		now_ns += NSEC_PER_SEC;
	}
	assert_true(has(&t, "mariadbd", 10, now_ns));
	for (unsigned int i = 0; i <= 60; i++) {
		recorded_follow(&t, RULE, NULL, i == 7 ? 3 : 1, now_ns);
		now_ns += NSEC_PER_SEC;
	}
	assert_true(has(&t, "mariadbd", 5, now_ns));
	assert_false(has(&t, "mariadbd", 6, now_ns));
}

/* Threads of two programs hang on one disk, now these for longest and now those. */
static void test_two_programs(void **state)
{
	static const char *const names[] = { "mariadbd", "redis-server" };
	struct recorded_table t = RECORDED_TABLE;
	uint64_t now_ns = MINUTES(100);
	const struct recorded *r;

	(void)state;
	recorded_note(&t, RULE, names[0], "first", 1, 3, now_ns);
	assert_false(has(&t, names[1], 3, now_ns));
	recorded_note(&t, RULE, names[1], "second", 2, 3, now_ns);
	for (uint64_t i = 3; i < 23; i++) {
		for (unsigned int j = 0; j < 120; j++) {
			now_ns += NSEC_PER_SEC;
			recorded_follow(&t, RULE, NULL, 3, now_ns);
		}
		assert_true(has(&t, names[i % 2], 3, now_ns));
		recorded_note(&t, RULE, names[i % 2], "further", i, 3, now_ns);
	}
	r = recorded_find(&t, RULE, names[0], now_ns);
	assert_string_equal(r->first, "first");
	assert_int_equal(r->incidents, 11);
	r = recorded_find(&t, RULE, names[1], now_ns);
	assert_string_equal(r->first, "second");
	assert_int_equal(r->incidents, 11);
	/* A rule that names its subject each time follows only that. */
	for (unsigned int i = 0; i < 60; i++)
		recorded_follow(&t, RULE, names[0], 3, now_ns + i * NSEC_PER_SEC);
	assert_non_null(recorded_find(&t, RULE, names[0], now_ns + MINUTES(1)));
	assert_null(recorded_find(&t, RULE, names[1], now_ns + MINUTES(1)));
}

/* Names of pods begin alike. */
static void test_names_that_begin_alike(void **state)
{
	struct recorded_table t = RECORDED_TABLE;
	char name[256];

	(void)state;
	snprintf(name, sizeof(name), "/%0200d", 1);
	recorded_note(&t, RULE, name, "first", 1, 0, MINUTES(100));
	assert_non_null(recorded_find(&t, RULE, name, MINUTES(100)));
	snprintf(name, sizeof(name), "/%0200d", 2);
	assert_null(recorded_find(&t, RULE, name, MINUTES(100)));
}

static void test_many_names(void **state)
{
	struct recorded_table t = RECORDED_TABLE;
	char name[32];

	(void)state;
	for (unsigned int i = 0; i <= RECORDED_MAX; i++) {
		snprintf(name, sizeof(name), "disk %u", i);
		recorded_note(&t, RULE, name, "first", 1, 0, MINUTES(100) + i);
	}
	assert_null(recorded_find(&t, RULE, "disk 0", MINUTES(100) + RECORDED_MAX));
	assert_non_null(recorded_find(&t, RULE, "disk 1", MINUTES(100) + RECORDED_MAX));
	assert_non_null(recorded_find(&t, RULE, name, MINUTES(100) + RECORDED_MAX));
}

/* Two samples are never nearer than the interval, which may be a minute. */
static void test_long_interval(void **state)
{
	struct recorded_table t = RECORDED_TABLE;
	uint64_t now_ns = MINUTES(100);

	(void)state;
	recorded_sample(&t, now_ns);
	recorded_note(&t, RULE, "mariadbd", "first", 1, 3, now_ns);
	for (unsigned int i = 0; i < 5; i++) {
		now_ns += MINUTES(1) + 1;
		recorded_sample(&t, now_ns);
		assert_true(has(&t, "mariadbd", 3, now_ns));
		recorded_follow(&t, RULE, "mariadbd", 3, now_ns);
	}
	for (unsigned int i = 0; i < 3; i++) {
		now_ns += MINUTES(1) + 1;
		recorded_sample(&t, now_ns);
	}
	assert_false(has(&t, "mariadbd", 3, now_ns));
}

/* While one program hangs for days, another one is well, and hangs anew. */
static void test_what_is_not_named_lapses(void **state)
{
	struct recorded_table t = RECORDED_TABLE;
	uint64_t now_ns = MINUTES(100);

	(void)state;
	recorded_note(&t, RULE, "mariadbd", "first", 1, 3, now_ns);
	recorded_note(&t, RULE, "tar", "second", 2, 3, now_ns);
	for (unsigned int i = 0; i < 120; i++) {
		now_ns += MINUTES(1) - 1;
		recorded_follow(&t, RULE, NULL, 3, now_ns);
		if (i % 60 == 0)
			recorded_note(&t, RULE, "tar", "second", 2, 3, now_ns);
	}
	now_ns += MINUTES(1) - 1;
	assert_true(has(&t, "tar", 3, now_ns));
	now_ns += MINUTES(1);
	recorded_follow(&t, RULE, NULL, 3, now_ns);
	assert_false(has(&t, "mariadbd", 3, now_ns));
}

#define MANY_DISKS 100

static size_t step_many_disks(struct rig *rig, unsigned int second)
{
	char text[MANY_DISKS * 64];
	struct text t = TEXT_ON(text);

	text_reset(&t);
	for (unsigned int i = 0; i < MANY_DISKS; i++)
		text_addf(&t, "253 %u dm-%u 0 0 0 0 0 0 0 0 1 %u 0\n", i, i, second * 1000);
	tree_put(rig->tree, "proc/diskstats", "%s", text);
	tree_sample(rig->tree, rig->watch, 1000);
	return rules_evaluate(rig->rules, rig->watch, rig->tree->now_ns, rig->firings, FIRINGS_MAX);
}

/* An array of disks stops to answer: all that is active has been recorded, however much it is. */
static void test_many_disks(void **state)
{
	struct rig rig = rig_new(*state);
	struct rules_firing firing;
	unsigned int second = 0;

	rig_enable(&rig, CONFIG_RULE_utilisation);
	rig_enable(&rig, CONFIG_RULE_hung);
	while (second < 60) {
		step_many_disks(&rig, second++);
		rules_acknowledge(rig.rules, rig.watch, "first");
	}
	assert_int_equal(rules_active(rig.rules), 2 * MANY_DISKS);
	for (; second < 90; second++) {
		step_many_disks(&rig, second);
		assert_false(rules_first_active(rig.rules, rig.watch, 0, MINUTES(1), &firing));
	}
	assert_true(rules_first_active(rig.rules, rig.watch, MINUTES(1), MINUTES(1), &firing));
	assert_string_equal(firing.continues, "first");
	rig_free(&rig);
}

static void put_blocked(struct tree *t, unsigned int count, unsigned int switches)
{
	for (unsigned int i = 0; i < 10; i++)
		tree_put_thread(t, 10, 10 + (int)i, "mariadbd", i < count ? 'D' : 'S', 500,
			i == 0 ? 9 : switches);
}

/* Of ten threads one remains for long, and then the others freeze again. */
static void test_what_has_passed_hides_no_other_freeze(void **state)
{
	struct tree *t = *state;
	struct rules_firing firing;
	struct rig rig;

	tree_list_add(&t->process, "mariadbd");
	put_blocked(t, 10, 9);
	rig = rig_new(t);
	rig_enable(&rig, CONFIG_RULE_blocked);
	for (unsigned int i = 0; i < 4; i++)
		rig_step(&rig, 1000);
	assert_true(rules_first_active(rig.rules, rig.watch, 0, MINUTES(1), &firing));
	assert_float_equal((float)firing.value, 10, 1e-4f);
	rules_acknowledge(rig.rules, rig.watch, "first");
	rig_step(&rig, 1000);
	assert_false(rules_first_active(rig.rules, rig.watch, 0, MINUTES(1), &firing));
	put_blocked(t, 1, 10);
	for (unsigned int i = 0; i < 62; i++)
		rig_step(&rig, 1000);
	assert_false(rules_first_active(rig.rules, rig.watch, 0, MINUTES(1), &firing));
	put_blocked(t, 10, 11);
	for (unsigned int i = 0; i < 3; i++)
		rig_step(&rig, 1000);
	assert_true(rules_first_active(rig.rules, rig.watch, 0, MINUTES(1), &firing));
	assert_string_equal(firing.continues, "");
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_hold_clear_and_cooldown),
		tree_test(test_exactly_the_threshold_is_not_over),
		tree_test(test_no_cooldown_and_clear_at_zero),
		tree_test(test_state_of_each_device),
		tree_test(test_first_active),
		tree_test(test_utilisation_needs_a_request_in_flight),
		tree_test(test_gap_between_readings),
		tree_test(test_hung_without_utilisation),
		tree_test(test_await),
		tree_test(test_await_of_one_request_at_a_time),
		tree_test(test_await_of_flushes),
		tree_test(test_pressure_and_cpu_seconds),
		tree_test(test_pressure_on_memory),
		tree_test(test_pressure_that_the_kernel_reports),
		tree_test(test_waiting_without_work_for_disks),
		tree_test(test_a_thread_in_d_is_believed),
		tree_test(test_short_waits_of_many),
		tree_test(test_short_waits_explain_nothing),
		tree_test(test_what_was_not_looked_at_is_not_known),
		tree_test(test_reported_pressure_that_was_not_looked_at),
		tree_test(test_a_host_that_lacks_memory),
		tree_test(test_blocked_threads),
		tree_test(test_errors_in_the_kernel_log),
		tree_test(test_another_error_in_the_kernel_log),
		tree_test(test_many_blocked_threads),
		tree_test(test_more_than_asked_for),
		tree_test(test_all_disks_are_judged),
		cmocka_unit_test(test_table),
		tree_test(test_recorded_trouble_waits_longer),
		tree_test(test_another_disk_is_due_at_once),
		tree_test(test_what_is_clear_for_a_moment_lasts),
		cmocka_unit_test(test_more_threads_are_not_recorded),
		cmocka_unit_test(test_fewer_threads),
		cmocka_unit_test(test_two_programs),
		cmocka_unit_test(test_names_that_begin_alike),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_long_interval),
		cmocka_unit_test(test_what_is_not_named_lapses),
		tree_test(test_many_disks),
		tree_test(test_what_has_passed_hides_no_other_freeze),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
