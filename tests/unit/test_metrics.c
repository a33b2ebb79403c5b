/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What Prometheus reads of a daemon. */
#include "test_session_setup.h"

#include <math.h>

#include "daemon/metrics.h"
#include "daemon/server.h"
#include "session/tally.h"

static char buf[SERVER_ANSWER_MAX];

static const char *metrics_of(struct fixture *f, enum metrics_format format, size_t size)
{
	const struct daemon_status status = {
		.config = &f->config,
		.session = f->session,
		.watch = f->watch,
		.rules = f->rules,
		.sql = f->sql,
		.started_real_ns = 1795782913250000000,
	};
	struct text t = { .buf = buf, .size = size };

	text_reset(&t);
	metrics_add(&status, format, &t);
	assert_int_equal(strlen(buf), t.len);
	return buf;
}

/* The value of a series, by all that stands before it; NAN: there is none. */
static double value_of(const char *text, const char *series)
{
	size_t len = strlen(series);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, series, len) == 0 && line[len] == ' ')
			return strtod(line + len, NULL);
	}
	return NAN;
}

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static void test_an_idle_daemon_says_so(void **state)
{
	struct fixture *f = *state;
	const char *text;

	tree_sample(f->t, f->watch, 1000);
	tree_sample(f->t, f->watch, 1000);
	text = metrics_of(f, METRICS_TEXT, sizeof(buf));
	assert_true(value_of(text, "iostall_incident_open") == 0);
	assert_false(has(text, "iostall_last_incident_timestamp_seconds{"));
	assert_true(value_of(text, "iostall_incidents_opened_total{rule=\"iowait\"}") == 0);
	assert_true(value_of(text, "iostall_incidents_opened_total{rule=\"manual\"}") == 0);
	assert_true(value_of(text, "iostall_programs_attached") == 0);
	assert_true(value_of(text, "iostall_stuck_threads") == 0);
	assert_true(value_of(text, "iostall_lost_total{cause=\"spool_dropped\"}") == 0);
	assert_true(value_of(text, "iostall_rule_threshold{rule=\"iowait\"}") ==
		f->config.rules[CONFIG_RULE_iowait].set);
	assert_true(value_of(text, "process_resident_memory_bytes") > 0);
	assert_false(has(text, "iostall_incidents_total{"));
}

/* A rule that is not enabled never fires, whatever its number. */
static void test_only_rules_that_can_fire_are_told(void **state)
{
	struct fixture *f = *state;

	assert_false(has(metrics_of(f, METRICS_TEXT, sizeof(buf)), "{rule=\"utilisation\"}"));
}

static void test_a_disk_that_completes_nothing_has_its_seconds(void **state)
{
	struct fixture *f = *state;
	struct rules_firing firings[4];
	const char *text;

	f->config.rules[CONFIG_RULE_hung].enabled = true;
	rules_reload(f->rules, f->config.rules);
	assert_true(isnan(value_of(metrics_of(f, METRICS_TEXT, sizeof(buf)),
		"iostall_rule_value{rule=\"hung\"}")));
	/* One request in flight, and the counters do not move. */
	tree_put(f->t, "proc/diskstats", "%s",
		"   8       0 sda 1000 0 8000 500 0 0 0 0 1 1000 2000\n");
	for (unsigned int i = 0; i < 3; i++)
		tree_sample(f->t, f->watch, 1000);
	rules_evaluate(f->rules, f->watch, clock_mono_ns(), firings, ARRAY_SIZE(firings));
	text = metrics_of(f, METRICS_TEXT, sizeof(buf));
	assert_true(value_of(text, "iostall_device_no_completion_seconds{device=\"sda\"}") == 2);
	assert_true(value_of(text, "iostall_rule_value{rule=\"hung\"}") == 2);
	assert_true(value_of(text, "iostall_rule_active{rule=\"hung\"}") == 0);
	tree_sample(f->t, f->watch, 2000);
	rules_evaluate(f->rules, f->watch, clock_mono_ns(), firings, ARRAY_SIZE(firings));
	text = metrics_of(f, METRICS_TEXT, sizeof(buf));
	assert_true(value_of(text, "iostall_rule_active{rule=\"hung\"}") == 1);
	assert_true(value_of(text, "iostall_rule_active{rule=\"iowait\"}") == 0);
}

static void test_an_incident_is_counted_once_it_is_closed(void **state)
{
	static const char series[] = "iostall_incidents_total{rule=\"manual\",class=\"unknown\"}";
	struct fixture *f = *state;
	const char *text;

	session_trigger(f->session, &manual, 0);
	text = metrics_of(f, METRICS_TEXT, sizeof(buf));
	assert_true(value_of(text, "iostall_incident_open") == 1);
	assert_true(
		value_of(text, "iostall_last_incident_timestamp_seconds{rule=\"manual\"}") > 1.7e9);
	assert_true(value_of(text, "iostall_incidents_opened_total{rule=\"manual\"}") == 1);
	assert_true(isnan(value_of(text, series)));
	assert_false(has(text, "iostall_verdict{"));
	session_stop(f->session, RECORD_REASON_stopped);
	text = metrics_of(f, METRICS_TEXT, sizeof(buf));
	assert_true(value_of(text, "iostall_verdict{class=\"unknown\"}") == 1);
	assert_true(value_of(text, "iostall_incident_open") == 0);
	assert_true(value_of(text, series) == 1);
	/* The next one has none yet. */
	session_trigger(f->session, &manual, 0);
	assert_false(has(metrics_of(f, METRICS_TEXT, sizeof(buf)), "iostall_verdict{"));
}

static void test_counts_add_up_over_incidents(void **state)
{
	struct tally tally = { 0 };
	struct record_device device = { .queue_histogram = { 3, 1 } };
	struct record_close close = { .lost = { [RECORD_LOST_ring_full] = 7 } };

	(void)state;
	tally_add_device(&tally, &device);
	assert_int_equal(tally.queue[0], 0);
	device.final = true;
	device.device_histogram[31] = 2;
	for (unsigned int i = 0; i < 2; i++) {
		tally_add_device(&tally, &device);
		tally_close(&tally, "hung", RECORD_CLASS_hung, &close);
	}
	tally_close(&tally, "manual", RECORD_CLASS_hung, &close);
	assert_int_equal(tally.queue[0], 6);
	assert_int_equal(tally.queue[1], 2);
	assert_int_equal(tally.device[31], 4);
	assert_int_equal(tally.lost[RECORD_LOST_ring_full], 21);
	assert_int_equal(tally.closed[CONFIG_RULE_hung][RECORD_CLASS_hung], 2);
	assert_int_equal(tally.closed[CONFIG_RULE_COUNT][RECORD_CLASS_hung], 1);
}

static void test_buckets_are_cumulative_and_end_with_all(void **state)
{
	struct fixture *f = *state;
	struct tally *tally = (struct tally *)session_get_tally(f->session);
	const char *text;

	/* Below 1 us, below 4 us, and longer than a minute. */
	tally->device[0] = 1;
	tally->device[1] = 2;
	tally->device[2] = 4;
	tally->device[31] = 8;
	text = metrics_of(f, METRICS_TEXT, sizeof(buf));
	assert_true(value_of(text, "iostall_request_device_seconds_bucket{le=\"1e-06\"}") == 1);
	assert_true(value_of(text, "iostall_request_device_seconds_bucket{le=\"4e-06\"}") == 7);
	assert_true(value_of(text, "iostall_request_device_seconds_bucket{le=\"67.108864\"}") == 7);
	assert_true(value_of(text, "iostall_request_device_seconds_bucket{le=\"+Inf\"}") == 15);
	assert_true(value_of(text, "iostall_request_device_seconds_count") == 15);
	memset(tally, 0, sizeof(*tally));
}

static void test_openmetrics_names_counters_without_their_end(void **state)
{
	struct fixture *f = *state;
	const char *text = metrics_of(f, METRICS_OPENMETRICS, sizeof(buf));

	assert_true(has(text, "# TYPE iostall_lost counter\n"));
	assert_true(has(text, "\niostall_lost_total{cause=\"ring_full\"} 0\n"));
	assert_true(has(text, "# TYPE process_cpu_seconds counter\n"));
	/* It would need a sum, which nobody knows. */
	assert_false(has(text, "_seconds_count "));
	assert_string_equal(text + strlen(text) - strlen("\n# EOF\n"), "\n# EOF\n");
	text = metrics_of(f, METRICS_TEXT, sizeof(buf));
	assert_true(has(text, "# TYPE iostall_lost_total counter\n"));
	assert_false(has(text, "# EOF"));
}

/* node_exporter, which reads that file, has its own. */
static void test_a_textfile_has_nothing_of_the_process(void **state)
{
	const char *text = metrics_of(*state, METRICS_TEXTFILE, sizeof(buf));

	assert_false(has(text, "process_cpu"));
	assert_true(has(text, "\niostall_incident_open 0\n"));
}

/* Or it would look as if it had been started anew. */
static void test_the_start_is_the_same_in_each_scrape(void **state)
{
	const char *text = metrics_of(*state, METRICS_TEXT, sizeof(buf));

	assert_true(value_of(text, "process_start_time_seconds") == 1795782913.25);
}

/* In any size there are only whole lines, and the end that OpenMetrics wants. */
static void test_what_does_not_fit_leaves_no_half_line(void **state)
{
	struct fixture *f = *state;
	size_t whole = strlen(metrics_of(f, METRICS_TEXT, sizeof(buf)));

	for (size_t size = whole + 1; size > whole - 300; size--) {
		const char *text = metrics_of(f, METRICS_TEXT, size);

		assert_true(*text && text[strlen(text) - 1] == '\n');
		text = metrics_of(f, METRICS_OPENMETRICS, size);
		assert_string_equal(text + strlen(text) - strlen("\n# EOF\n"), "\n# EOF\n");
	}
}

/* Half of all rules and classes at once, which no host has. */
static void test_there_is_room_for_a_bad_year(void **state)
{
	struct fixture *f = *state;
	struct tally *tally = (struct tally *)session_get_tally(f->session);
	size_t len;

	for (unsigned int rule = 0; rule <= CONFIG_RULE_COUNT; rule++)
		for (unsigned int i = 1; i < RECORD_CLASS_COUNT; i += 2)
			tally->closed[rule][i] = 1000000 + i;
	for (unsigned int i = 0; i < CONFIG_RULE_COUNT; i++)
		f->config.rules[i].enabled = true;
	len = strlen(metrics_of(f, METRICS_TEXT, sizeof(buf)));
	assert_in_range(len, 1000, sizeof(buf) - 1000);
	memset(tally, 0, sizeof(*tally));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		session_test(test_an_idle_daemon_says_so),
		session_test(test_only_rules_that_can_fire_are_told),
		session_test(test_a_disk_that_completes_nothing_has_its_seconds),
		session_test(test_an_incident_is_counted_once_it_is_closed),
		session_test(test_counts_add_up_over_incidents),
		session_test(test_buckets_are_cumulative_and_end_with_all),
		session_test(test_openmetrics_names_counters_without_their_end),
		session_test(test_a_textfile_has_nothing_of_the_process),
		session_test(test_the_start_is_the_same_in_each_scrape),
		session_test(test_what_does_not_fit_leaves_no_half_line),
		session_test(test_there_is_room_for_a_bad_year),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
