/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The state machine: what opens an incident, keeps it open and ends it. */
#include "test_session_setup.h"

#include "session/internal.h"

/* Steps */

static bool is_idle(struct fixture *f)
{
	return state_of(f) == SESSION_IDLE;
}

static bool is_tracing(struct fixture *f)
{
	return state_of(f) == SESSION_TRACING;
}

static bool is_closed(struct fixture *f)
{
	return f->closed > 0;
}

static bool is_closed_twice(struct fixture *f)
{
	return f->closed > 1;
}

static bool busy_disk(struct fixture *f)
{
	f->iowait_step = 100; /* of 200 ticks: 50 % */
	return true;
}

static bool idle_disk(struct fixture *f)
{
	f->iowait_step = 0;
	return true;
}

static bool trigger_briefly(struct fixture *f)
{
	assert_true(session_trigger(f->session, &manual, 1));
	assert_int_equal(state_of(f), SESSION_TRACING);
	return true;
}

static bool mark(struct fixture *f)
{
	f->mark_ns = clock_mono_ns();
	return true;
}

static bool has_passed(const struct fixture *f, uint64_t ns)
{
	return clock_mono_ns() - f->mark_ns >= ns;
}

static bool clear_time_has_passed_twice(struct fixture *f)
{
	return has_passed(f, 2 * CLEAR_NS);
}

/* Tests */

static bool knows_the_unit(struct fixture *f)
{
	char exe[RECORD_LIST_SIZE], unit[RECORD_LIST_SIZE];

	enrich_process(f->enrich, 88, 500 * (NSEC_PER_SEC / 100), exe, unit);
	return strcmp(unit, "database.service") == 0;
}

static bool memory_stalls(struct fixture *f)
{
	f->memory_us += 500000;
	tree_put_psi(f->t, "memory", f->memory_us, f->memory_us);
	return watch_lacks_memory(f->watch);
}

static bool a_database_starts(struct fixture *f)
{
	tree_put_thread(f->t, 88, 88, "database", 'S', 500, 9);
	tree_put_cgroup(f->t, 88, "0::/system.slice/database.service\n");
	return memory_stalls(f) && mark(f);
}

static bool memory_stalls_for_a_while(struct fixture *f)
{
	assert_true(memory_stalls(f));
	assert_false(knows_the_unit(f));
	return tree_is_watched(f->watch, 88) && has_passed(f, 2 * CLEAR_NS);
}

/* To look up more takes memory, and locks that others hold for long on such a host. */
static void test_nothing_is_looked_up_without_memory(void **state)
{
	static const step steps[] = { memory_stalls, a_database_starts, memory_stalls_for_a_while,
		knows_the_unit, NULL };
	struct fixture *f = *state;

	run(f, steps);
}

static void test_starts_idle(void **state)
{
	static const step steps[] = { mark, clear_time_has_passed_twice, is_idle, NULL };
	struct fixture *f = *state;

	assert_int_equal(state_of(f), SESSION_IDLE);
	assert_string_equal(session_incident(f->session), "");
	assert_int_equal(session_incidents_count(f->session), 0);
	run(f, steps);
	/* Without an incident there is nothing to stop. */
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->closed, 0);
	assert_int_equal(read_output(f)->count, 0);
}

static void test_manual_trigger_until_clear(void **state)
{
	static const step steps[] = { trigger_briefly, is_closed, NULL };
	struct fixture *f = *state;
	const struct output *out;

	run(f, steps);
	assert_int_equal(state_of(f), SESSION_COOLDOWN);
	assert_int_equal(session_incidents_count(f->session), 1);
	assert_string_equal(f->closed_incident, session_incident(f->session));
	assert_true(record_id_is_valid(f->closed_incident, strlen(f->closed_incident)));
	assert_int_equal(f->close.reason, RECORD_REASON_clear);
	assert_true(f->close.duration_ns >= CLEAR_NS);
	assert_true(f->close.cost.armed_ns <= f->close.duration_ns);
	assert_true(f->close.cost.rss_bytes > 0);

	out = read_output(f);
	assert_true(out->count >= 4);
	assert_int_equal(out->lines[0].type, RECORD_OPEN);
	assert_string_equal(out->lines[0].incident, f->closed_incident);
	assert_string_equal(out->lines[0].open.trigger.rule, "manual");
	assert_int_equal(out->lines[0].open.min_stall_ns, f->config.trace.min_stall_ns);
	assert_true(out->lines[0].open.coverage_count > 0);
	/* The sample from before the trigger comes first, and is marked so. */
	assert_int_equal(out->lines[1].type, RECORD_SAMPLE);
	assert_true(out->lines[1].sample.before_trigger);
	assert_int_equal(out->lines[2].type, RECORD_SAMPLE);
	assert_false(out->lines[2].sample.before_trigger);
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
	assert_int_equal(count_type(out, RECORD_SAMPLE), f->close.samples);
	assert_int_equal(count_type(out, RECORD_OPEN), 1);
	assert_int_equal(count_type(out, RECORD_CLOSE), 1);
}

static void test_rule_opens_and_keeps_open(void **state)
{
	static const step steps[] = { busy_disk, is_tracing, mark, clear_time_has_passed_twice,
		is_tracing, idle_disk, is_closed, NULL };
	struct fixture *f = *state;
	const struct output *out;
	const struct record_trigger *trigger;

	run(f, steps);
	assert_int_equal(f->close.reason, RECORD_REASON_clear);
	out = read_output(f);
	trigger = &out->lines[0].open.trigger;
	assert_string_equal(trigger->rule, "iowait");
	assert_string_equal(trigger->unit, "%");
	assert_string_equal(trigger->device, "");
	assert_float_equal((float)trigger->value, 50, 0.1f);
	assert_float_equal((float)trigger->threshold, 20, 0.1f);
	assert_int_equal(count_type(out, RECORD_OPEN), 1);
}

static bool second_opens_after_the_cooldown(struct fixture *f)
{
	if (session_incidents_count(f->session) < 2)
		return false;
	/*
	 * The mark was set at the sample that closed the first incident, or later on a busy host.
	 */
	assert_true(has_passed(f, COOLDOWN_NS / 2));
	return true;
}

/* A disk that is busy again in the cooldown opens an incident only after it. */
static void test_a_rule_opens_nothing_in_the_cooldown(void **state)
{
	static const step steps[] = { trigger_briefly, is_closed, mark, busy_disk,
		second_opens_after_the_cooldown, idle_disk, is_closed_twice, NULL };
	struct fixture *f = *state;
	const struct output *out;

	assert_string_equal(session_get_firings(f->session)->last.rule, "");
	assert_string_equal(session_last_verdict(f->session)->incident, "");
	/* Long enough for the rule to fire in it on a busy host, too. */
	f->config.incident.cooldown_ns = NSEC_PER_SEC;
	run(f, steps);
	out = read_output(f);
	assert_int_equal(count_type(out, RECORD_OPEN), 2);
	assert_int_equal(count_type(out, RECORD_CLOSE), 2);
	/* `status` reports the last verdict, and the firings in the cooldown. */
	assert_string_equal(session_last_verdict(f->session)->incident,
		session_incident(f->session));
	assert_string_not_equal(session_last_verdict(f->session)->message, "");
	assert_string_equal(session_get_firings(f->session)->last.rule, "iowait");
	assert_true(session_get_firings(f->session)->last_ns >= f->mark_ns);
	assert_true(session_get_firings(f->session)->in_cooldown[CONFIG_RULE_iowait] > 0);
	assert_int_equal(session_get_firings(f->session)->in_cooldown[CONFIG_RULE_space], 0);
}

static void pile_up(struct fixture *f, const char *target, int32_t lasting)
{
	const struct record_sql_activity sql = { .present = true, .lasting = lasting };
	struct watch_sql_targets targets = { 0 };

	text_copy(targets.active, sizeof(targets.active), target);
	watch_set_sql(f->watch, &sql, &targets);
}

static bool statements_pile_up(struct fixture *f)
{
	pile_up(f, "main", 1000);
	return true;
}

static bool statements_end(struct fixture *f)
{
	pile_up(f, "main", 0);
	return true;
}

static bool statements_of_another_pile_up(struct fixture *f)
{
	pile_up(f, "orders", 1000);
	return true;
}

static bool rule_was_held_back(struct fixture *f)
{
	return session_get_firings(f->session)->in_cooldown[CONFIG_RULE_sql_active] > 0;
}

static bool second_is_open(struct fixture *f)
{
	return session_incidents_count(f->session) == 2;
}

static void judge_statements(struct fixture *f)
{
	f->config.rules[CONFIG_RULE_sql_active].enabled = true;
	f->config.rules[CONFIG_RULE_sql_active].hold_samples = 1;
	rules_reload(f->rules, f->config.rules);
}

/* Another database has trouble while the cooldown after the first one's lasts. */
static void test_another_subject_opens_in_the_cooldown(void **state)
{
	static const step steps[] = { statements_pile_up, is_tracing, statements_end, is_closed,
		busy_disk, statements_of_another_pile_up, second_is_open, idle_disk, statements_end,
		is_closed_twice, NULL };
	struct fixture *f = *state;

	judge_statements(f);
	/* So long that no busy host lets it pass before. */
	f->config.incident.cooldown_ns = GUARD_NS;
	run(f, steps);
	assert_string_equal(f->session->opened.trigger.subject, "orders");
}

static bool three_cooldowns_have_passed(struct fixture *f)
{
	assert_int_equal(f->closed, 2);
	return has_passed(f, 3 * COOLDOWN_NS);
}

/*
 * A rule that fired once in the cooldown, about the same database as the last incident, opens one
 * after it, and no third one if it is still active after that.
 */
static void test_a_rule_that_fires_in_the_cooldown_opens_one_incident(void **state)
{
	static const step steps[] = { statements_pile_up, is_tracing, statements_end, is_closed,
		mark, statements_pile_up, rule_was_held_back, second_opens_after_the_cooldown,
		is_closed_twice, mark, three_cooldowns_have_passed, NULL };
	struct fixture *f = *state;
	const struct output *out;

	judge_statements(f);
	f->config.incident.max_time_ns = 500 * MS;
	f->config.incident.cooldown_ns = NSEC_PER_SEC;
	run(f, steps);
	/* It keeps the incident open that it opened. */
	assert_int_equal(f->close.reason, RECORD_REASON_max_time);
	out = read_output(f);
	assert_int_equal(count_type(out, RECORD_OPEN), 2);
	for (unsigned int i = 1; i < out->count; i++)
		if (out->lines[i].type == RECORD_OPEN) {
			assert_string_equal(out->lines[i].open.trigger.rule, "sql_active");
			assert_string_equal(out->lines[i].open.trigger.subject, "main");
		}
}

/*
 * The rule that counts blocked threads fires 5.4 s after they began to wait: a scan must have seen
 * each twice, in three samples. They are what it is about.
 */
static void test_what_a_rule_took_long_to_notice_is_not_earlier(void **state)
{
	static const step steps[] = { busy_disk, is_tracing, NULL };
	const struct session *s;
	struct fixture *f = *state;

	f->config.rules[CONFIG_RULE_iowait].hold_samples = 3;
	rules_reload(f->rules, f->config.rules);
	run(f, steps);
	s = f->session;
	assert_in_range(s->well_ns, s->model.trigger_ns - 15 * NSEC_PER_SEC,
		s->model.trigger_ns - 5400 * MS);
}

static bool five_are_closed(struct fixture *f)
{
	return f->closed == 5;
}

/* How long after the last close each incident has opened; the first has 0. Returns how many. */
static unsigned int find_pauses(const struct output *out, const struct record *ret_opens[8],
	uint64_t ret_pauses_ns[8])
{
	uint64_t closed_ns = 0;
	unsigned int count = 0;

	for (unsigned int i = 0; i < out->count; i++) {
		const struct record *r = &out->lines[i];

		if (r->type == RECORD_CLOSE)
			closed_ns = r->mono_ns;
		if (r->type != RECORD_OPEN)
			continue;
		assert_true(count < 8);
		ret_opens[count] = r;
		ret_pauses_ns[count++] = closed_ns ? r->mono_ns - closed_ns : 0;
	}
	return count;
}

/* A disk is busy for hours: its first record stays the one to read. */
static void test_trouble_that_lasts_is_recorded_more_seldom(void **state)
{
	static const step steps[] = { busy_disk, five_are_closed, NULL };
	struct fixture *f = *state;
	const struct record *opens[8];
	uint64_t pauses_ns[8];

	f->config.incident.max_time_ns = 50 * MS;
	run(f, steps);
	assert_int_equal(find_pauses(read_output(f), opens, pauses_ns), 5);
	assert_string_equal(opens[0]->open.continues, "");
	for (unsigned int i = 1; i < 5; i++) {
		assert_string_equal(opens[i]->open.continues, opens[0]->incident);
		/* A cooldown, and then twice as long each time. */
		assert_in_range(pauses_ns[i], COOLDOWN_NS << (i - 1),
			(COOLDOWN_NS << (i - 1)) + 3 * STEP_NS);
	}
}

static bool three_are_closed(struct fixture *f)
{
	return f->closed == 3;
}

static bool cooldown_is_over(struct fixture *f)
{
	return session_cooldown_ns(f->session, clock_mono_ns()) == 0;
}

static bool four_are_closed(struct fixture *f)
{
	return f->closed == 4;
}

/* While the session waits for its time to record the busy disk again, a database is in trouble. */
static void test_other_trouble_is_recorded_at_once(void **state)
{
	static const step steps[] = { busy_disk, three_are_closed, cooldown_is_over,
		statements_pile_up, four_are_closed, NULL };
	struct fixture *f = *state;
	const struct record *opens[8];
	uint64_t pauses_ns[8];

	judge_statements(f);
	f->config.incident.max_time_ns = 50 * MS;
	run(f, steps);
	assert_int_equal(find_pauses(read_output(f), opens, pauses_ns), 4);
	assert_string_equal(opens[2]->open.continues, opens[0]->incident);
	assert_string_equal(opens[3]->open.trigger.rule, "sql_active");
	assert_string_equal(opens[3]->open.continues, "");
	assert_in_range(pauses_ns[3], COOLDOWN_NS, COOLDOWN_NS + 4 * STEP_NS);
}

/* Clear for some samples, in the cooldown. */
static bool trouble_ends(struct fixture *f)
{
	f->iowait_step = 0;
	return has_passed(f, COOLDOWN_NS / 2);
}

/* Two incidents about the busy disk, which was not busy for some samples and `clear_us`. */
static const char *continues_after(struct fixture *f, useconds_t clear_us)
{
	static const step first[] = { busy_disk, is_closed, mark, trouble_ends, NULL },
			  second[] = { busy_disk, is_closed_twice, NULL };
	static char continues[RECORD_ID_SIZE];
	const struct record *opens[8];
	uint64_t pauses_ns[8];

	f->config.incident.max_time_ns = 50 * MS;
	run(f, first);
	/* On the clock of the test. */
	usleep(clear_us);
	run(f, second);
	assert_int_equal(find_pauses(read_output(f), opens, pauses_ns), 2);
	text_copy(continues, sizeof(continues), opens[1]->open.continues);
	if (*continues)
		assert_string_equal(continues, opens[0]->incident);
	return continues;
}

static void test_what_was_clear_is_no_continuation(void **state)
{
	assert_string_equal(continues_after(*state, 60 * 1000000), "");
}

static void test_what_was_clear_for_a_moment_is_one(void **state)
{
	assert_string_not_equal(continues_after(*state, 1000000), "");
}

static bool trigger_in_cooldown(struct fixture *f)
{
	char before[RECORD_ID_SIZE];

	assert_int_equal(state_of(f), SESSION_COOLDOWN);
	text_copy(before, sizeof(before), session_incident(f->session));
	assert_true(session_trigger(f->session, &manual, 1));
	assert_int_equal(state_of(f), SESSION_TRACING);
	assert_string_not_equal(session_incident(f->session), before);
	return true;
}

static bool cooldown_has_passed(struct fixture *f)
{
	/* The timer of the first incident must not end the second one. */
	assert_int_not_equal(state_of(f), SESSION_IDLE);
	return has_passed(f, COOLDOWN_NS + 20 * MS);
}

static void test_manual_trigger_in_cooldown(void **state)
{
	static const step steps[] = { trigger_briefly, is_closed, mark, trigger_in_cooldown,
		is_closed_twice, NULL };
	struct fixture *f = *state;

	/* So long that no busy host lets it pass before the trigger. */
	f->config.incident.cooldown_ns = GUARD_NS;
	run(f, steps);
	assert_int_equal(session_incidents_count(f->session), 2);
	/* The clear time of the first incident does not count for the second. */
	assert_true(f->close.duration_ns >= CLEAR_NS);
}

/* Neither does the hold time of the first one. */
static void test_a_stop_ends_the_hold_of_a_manual_trigger(void **state)
{
	static const step steps[] = { is_closed_twice, NULL };
	struct fixture *f = *state;

	assert_true(session_trigger(f->session, &manual, GUARD_NS));
	session_stop(f->session, RECORD_REASON_stopped);
	assert_true(session_trigger(f->session, &manual, 1));
	run(f, steps);
	assert_int_equal(f->close.reason, RECORD_REASON_clear);
}

static bool trigger_for_long(struct fixture *f)
{
	assert_true(session_trigger(f->session, &manual, COOLDOWN_NS + 200 * MS));
	return true;
}

static void test_a_cooldown_does_not_end_the_next_incident(void **state)
{
	static const step steps[] = { trigger_briefly, is_closed, mark, trigger_for_long,
		cooldown_has_passed, is_tracing, is_closed_twice, is_idle, NULL };
	struct fixture *f = *state;

	run(f, steps);
	assert_int_equal(session_incidents_count(f->session), 2);
}

static bool extend(struct fixture *f)
{
	char before[RECORD_ID_SIZE];

	text_copy(before, sizeof(before), session_incident(f->session));
	assert_true(session_trigger(f->session, &manual, 4 * CLEAR_NS));
	/* A shorter hold does not shorten a longer one. */
	assert_true(session_trigger(f->session, &manual, 1));
	assert_string_equal(session_incident(f->session), before);
	assert_int_equal(session_incidents_count(f->session), 1);
	return true;
}

static void test_trigger_extends_an_open_incident(void **state)
{
	static const step steps[] = { trigger_briefly, mark, extend, is_closed, NULL };
	struct fixture *f = *state;

	run(f, steps);
	assert_true(has_passed(f, 5 * CLEAR_NS));
	assert_int_equal(count_type(read_output(f), RECORD_OPEN), 1);
}

static bool trigger_for_ever(struct fixture *f)
{
	assert_true(session_trigger(f->session, &manual, UINT64_MAX));
	return true;
}

static void test_the_longest_possible_hold(void **state)
{
	static const step steps[] = { mark, trigger_for_ever, clear_time_has_passed_twice, NULL };
	struct fixture *f = *state;

	run(f, steps);
	assert_int_equal(state_of(f), SESSION_TRACING);
}

static void test_max_time(void **state)
{
	static const step steps[] = { busy_disk, mark, is_closed, NULL };
	struct fixture *f = *state;

	f->config.incident.max_time_ns = 50 * MS;
	run(f, steps);
	assert_int_equal(f->close.reason, RECORD_REASON_max_time);
	assert_true(f->close.duration_ns >= 50 * MS);
	assert_int_equal(state_of(f), SESSION_COOLDOWN);
	/* Its timer must not end the next incident. */
	assert_true(session_trigger(f->session, &manual, 1));
	assert_int_equal(state_of(f), SESSION_TRACING);
}

static void test_stop(void **state)
{
	struct fixture *f = *state;

	assert_true(session_trigger(f->session, &manual, NSEC_PER_SEC));
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->closed, 1);
	assert_int_equal(f->close.reason, RECORD_REASON_stopped);
	assert_int_equal(state_of(f), SESSION_COOLDOWN);
	session_stop(f->session, RECORD_REASON_stopped);
	assert_int_equal(f->closed, 1);
	/* No sample was taken, so none is written. */
	assert_int_equal(read_output(f)->count, 3);
}

static void test_state_names(void **state)
{
	(void)state;
	assert_string_equal(session_state_name(SESSION_IDLE), "idle");
	assert_string_equal(session_state_name(SESSION_TRACING), "tracing");
	assert_string_equal(session_state_name(SESSION_DRAINING), "draining");
	assert_string_equal(session_state_name(SESSION_COOLDOWN), "cooldown");
	assert_null(session_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		session_test(test_starts_idle),
		session_test(test_manual_trigger_until_clear),
		session_test(test_rule_opens_and_keeps_open),
		session_test(test_a_rule_opens_nothing_in_the_cooldown),
		session_test(test_another_subject_opens_in_the_cooldown),
		session_test(test_a_rule_that_fires_in_the_cooldown_opens_one_incident),
		session_test(test_what_a_rule_took_long_to_notice_is_not_earlier),
		session_test(test_trouble_that_lasts_is_recorded_more_seldom),
		session_test(test_other_trouble_is_recorded_at_once),
		session_test(test_what_was_clear_is_no_continuation),
		session_test(test_what_was_clear_for_a_moment_is_one),
		session_test(test_manual_trigger_in_cooldown),
		session_test(test_a_stop_ends_the_hold_of_a_manual_trigger),
		session_test(test_a_cooldown_does_not_end_the_next_incident),
		session_test(test_trigger_extends_an_open_incident),
		session_test(test_the_longest_possible_hold),
		session_test(test_max_time),
		session_test(test_stop),
		session_test(test_nothing_is_looked_up_without_memory),
		cmocka_unit_test(test_state_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
