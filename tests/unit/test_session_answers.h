/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session with one database target, whose helper is the test program itself, and steps for its
 * loop.
 * Used by the tests of `sql` lines.
 * Never asks a database.
 */
#ifndef IOSTALL_TESTS_TEST_SESSION_ANSWERS_H
#define IOSTALL_TESTS_TEST_SESSION_ANSWERS_H

#include "test_session_setup.h"
#include "test_sql_fake.h"

static inline bool is_answered(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.current != NULL;
}

static inline bool has_failed(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.why[0] && e.is_known;
}

static inline bool is_unresponsive(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.unanswered_ns > 0;
}

static inline bool trigger_briefly(struct fixture *f)
{
	assert_true(session_trigger(f->session, &manual, 1));
	return true;
}

static inline bool trigger_until_stopped(struct fixture *f)
{
	assert_true(session_trigger(f->session, &manual, 10 * NSEC_PER_SEC));
	return true;
}

static inline bool stop_it(struct fixture *f)
{
	session_stop(f->session, RECORD_REASON_stopped);
	return true;
}

static inline bool is_closed(struct fixture *f)
{
	return f->closed > 0;
}

/* One target, asked so often that a test does not have to wait. */
static inline int setup_sql_type(void **state, const char *section, enum config_sql_type type)
{
	struct sql_options options = {
		.procfs = "/proc",
		.helper = "/proc/self/exe",
		.timing = { .idle_ns = MS, .retry_ns = MS, .backoff_ns = MS },
	};
	struct fixture *f;
	int r = setup(state);

	f = *state;
	if (r != 0 || config_sql_default_target(section, &f->config.sql.targets[0]) < 0)
		return -1;
	f->config.sql.targets[0].type = type;
	f->config.sql.targets_count = 1;
	/* A helper that just gets no CPU is not late where it is to answer. */
	options.timing.late_ns = strcmp(section, "sql.stops") == 0 ? 60 * MS : GUARD_NS;
	options.config = &f->config;
	options.loop = f->loop;
	if (sql_new(&options, &f->sql) < 0)
		return -1;
	session_free(f->session);
	make_session(f);
	return 0;
}

/* The state is the name of the section at first. */
static inline int setup_sql(void **state)
{
	return setup_sql_type(state, *state, CONFIG_SQL_MARIADB);
}

#define sql_test(fn, section)                                                                      \
	cmocka_unit_test_prestate_setup_teardown(fn, setup_sql, teardown_sql, (void *)(section))

static inline int teardown_sql(void **state)
{
	struct fixture *f = *state;

	f->session = session_free(f->session);
	f->sql = sql_free(f->sql);
	return teardown(state);
}

/* The lines of one phase; *ret_first is the line about the answer as a whole. */
static inline unsigned int find_phase(const struct output *out, const char *phase,
	const struct record_sql **ret_first)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < out->count; i++) {
		const struct record_sql *q = &out->lines[i].sql;

		if (out->lines[i].type != RECORD_SQL ||
			strcmp(record_phase_text(q->phase), phase) != 0)
			continue;
		if (count++ == 0)
			*ret_first = q;
	}
	return count;
}

#endif
