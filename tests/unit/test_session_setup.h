/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session without probes over a fixture tree, its loop, and the lines that it writes.
 * Used by the tests of the session.
 * Never waits for a time: a loop ends when its steps have all been taken.
 */
#ifndef IOSTALL_TESTS_TEST_SESSION_SETUP_H
#define IOSTALL_TESTS_TEST_SESSION_SETUP_H

#include "test_watch_tree.h"

#include <errno.h>

#include "enrich/enrich.h"
#include "util/loop.h"
#include "session/session.h"
#include "sinks/sink.h"
#include "sql/sql.h"
#include "util/cleanup.h"
#include "watch/rules.h"

#define MS NSEC_PER_MSEC
#define STEP_NS (4 * MS)
/* A test that passes takes far less. */
#define GUARD_NS (30 * NSEC_PER_SEC)
#define CLEAR_NS (40 * MS)
#define COOLDOWN_NS (60 * MS)
#define MAX_TIME_NS (20 * NSEC_PER_SEC)
#define LINES_MAX 1024
#define OUTPUT_SIZE (1024 * 1024)

struct fixture;
/* Called after each sample; the next one takes over when it returns true. */
typedef bool (*step)(struct fixture *f);

struct fixture {
	struct tree *t;
	struct config config;
	struct loop *loop;
	struct loop_source *step_timer;
	struct loop_source *guard;
	struct sinks *sinks;
	struct watch *watch;
	struct rules *rules;
	struct enrich *enrich;
	struct sql *sql; /* NULL but in the tests of what databases say */
	struct session *session;
	int output[2];
	const step *steps;
	bool guarded;
	unsigned int busy, iowait, iowait_step; /* ticks, for the tree's stat */
	uint64_t memory_us;			/* of stalls, for the tree's pressure */
	uint64_t mark_ns;
	unsigned int closed;
	char closed_incident[RECORD_ID_SIZE];
	struct record_close close;
};

static const struct record_trigger manual = { .rule = "manual" };

static inline void on_closed(void *userdata, const char *incident, const struct record_close *close)
{
	struct fixture *f = userdata;

	f->closed++;
	f->close = *close;
	text_copy(f->closed_incident, sizeof(f->closed_incident), incident);
}

/*
 * For the watchdog each step is a second after the last one, whatever the clock of the loop says.
 */
static inline void on_step(void *userdata, uint64_t expirations)
{
	struct fixture *f = userdata;

	(void)expirations;
	f->iowait += f->iowait_step;
	tree_put_stat(f->t, f->busy += 10, f->iowait, 0);
	tree_sample(f->t, f->watch, 1000);
	sql_tick(f->sql, session_get_state(f->session) == SESSION_TRACING);
	session_handle_sample(f->session);
	if ((*f->steps)(f) && !*++f->steps)
		loop_stop(f->loop);
}

static inline void on_guard(void *userdata, uint64_t expirations)
{
	struct fixture *f = userdata;

	(void)expirations;
	f->guarded = true;
	loop_stop(f->loop);
}

static inline void set_config(struct config *c)
{
	config_set_defaults(c);
	for (unsigned int i = 0; i < CONFIG_RULE_COUNT; i++)
		c->rules[i].enabled = i == CONFIG_RULE_iowait;
	c->rules[CONFIG_RULE_iowait].cooldown_ns = 1;
	c->incident.clear_time_ns = CLEAR_NS;
	c->incident.cooldown_ns = COOLDOWN_NS;
	c->incident.max_time_ns = MAX_TIME_NS;
}

static inline void make_session(struct fixture *f)
{
	const struct session_options options = {
		.config = &f->config,
		.procfs = f->t->procfs,
		.sysfs = f->t->sysfs,
		.loop = f->loop,
		.watch = f->watch,
		.rules = f->rules,
		.enrich = f->enrich,
		.sinks = f->sinks,
		.sql = f->sql,
		.without_probes = true,
		.capture_fd = -1,
	};

	assert_int_equal(session_new(&options, &f->session), 0);
	session_set_callbacks(f->session, NULL, on_closed, f);
}

static inline int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));
	const struct config *config = f ? &f->config : NULL;
	struct sinks_options sinks;

	/* Somebody waits for what is counted as waiting for I/O. */
	tree_put_thread(f->t, 77, 77, "backup", 'D', 500, 9);
	tree_put_psi(f->t, "memory", 0, 0);
	tree_list_add(&f->t->process, "database");
	set_config(&f->config);
	assert_int_equal(pipe2(f->output, O_CLOEXEC | O_NONBLOCK), 0);
	fcntl(f->output[1], F_SETPIPE_SZ, OUTPUT_SIZE);
	sinks = (struct sinks_options){
		.config = &f->config,
		.wanted = SINK_BIT(terminal),
		.terminal_fd = f->output[1],
		.terminal_json = true,
	};
	assert_int_equal(sinks_new(&sinks, &f->sinks), 0);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(loop_add_timer(f->loop, on_step, f, &f->step_timer), 0);
	assert_int_equal(loop_add_timer(f->loop, on_guard, f, &f->guard), 0);
	f->watch = tree_watch(f->t);
	assert_int_equal(rules_new(config->rules, &f->rules), 0);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	make_session(f);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	session_free(f->session);
	enrich_free(f->enrich);
	rules_free(f->rules);
	watch_free(f->watch);
	loop_free(f->loop);
	sinks_free(f->sinks);
	close(f->output[0]);
	close(f->output[1]);
	return tree_fixture_free(f);
}

static inline void run(struct fixture *f, const step *steps)
{
	f->steps = steps;
	loop_set_timer(f->step_timer, 1, STEP_NS);
	loop_set_timer(f->guard, GUARD_NS, 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_false(f->guarded);
}

/* The lines that have been written so far. */
struct output {
	unsigned int count;
	struct record lines[LINES_MAX];
};

/* From 0 in each record, without a gap. */
static inline void assert_number_of_line(const struct output *out)
{
	const struct record *r = &out->lines[out->count - 1];

	if (r->type == RECORD_OPEN)
		assert_int_equal(r->seq, 0);
	else if (out->count > 1)
		assert_int_equal(r->seq, r[-1].seq + 1);
}

static inline struct output *read_output(struct fixture *f)
{
	static struct output out;
	static char text[OUTPUT_SIZE];
	size_t len = 0;
	ssize_t n;

	out.count = 0;
	while ((n = read(f->output[0], text + len, sizeof(text) - len)) > 0)
		len += (size_t)n;
	for (char *line = text, *end; line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		assert_non_null(end);
		assert_true(out.count < LINES_MAX);
		assert_int_equal(record_decode_json(line, (size_t)(end - line),
					 &out.lines[out.count++]),
			0);
		assert_number_of_line(&out);
	}
	return &out;
}

static inline unsigned int count_type(const struct output *out, enum record_type type)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < out->count; i++)
		count += out->lines[i].type == type;
	return count;
}

static inline enum session_state state_of(const struct fixture *f)
{
	return session_get_state(f->session);
}

#define session_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

#endif
