/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session with one database target, whose helper is the test program itself, and steps for its loop.
 * Used by the tests of the lines that databases give.
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
	return e.why[0] && e.is_told;
}

static inline bool is_silent(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.unanswered_ns > 0;
}

static inline bool trigger_for_a_moment(struct fixture *f)
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
	session_stop(f->session, "stopped");
	return true;
}

static inline bool is_closed(struct fixture *f)
{
	return f->closed > 0;
}

/* One target, asked so often that a test need not wait. */
static inline int setup_sql_type(void **state, const char *section, enum config_sql_type type)
{
	struct sql_options options = {
		.procfs = "/proc",
		.helper = "/proc/self/exe",
		.timing = { .late_ns = 60 * MS, .idle_ns = MS, .retry_ns = MS, .backoff_ns = MS },
	};
	struct fixture *f;
	int r = setup(state);

	f = *state;
	if (r != 0 || config_sql_default_target(section, &f->config.sql.targets[0]) < 0)
		return -1;
	f->config.sql.targets[0].type = type;
	f->config.sql.targets_count = 1;
	options.config = &f->config;
	options.loop = f->loop;
	if (sql_new(&options, &f->sql) < 0)
		return -1;
	session_free(f->session);
	make_session(f);
	return 0;
}

static inline int setup_sql(void **state, const char *section)
{
	return setup_sql_type(state, section, CONFIG_SQL_MARIADB);
}

static inline int teardown_sql(void **state)
{
	struct fixture *f = *state;

	f->session = session_free(f->session);
	f->sql = sql_free(f->sql);
	return teardown(state);
}

/* The lines of one moment; *ret_first is the one about the answer as a whole. */
static inline unsigned int find_moment(
	const struct output *out, const char *moment, const struct record_sql **ret_first)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < out->count; i++) {
		const struct record_sql *q = &out->lines[i].sql;

		if (out->lines[i].type != RECORD_SQL || strcmp(q->moment, moment) != 0)
			continue;
		if (count++ == 0)
			*ret_first = q;
	}
	return count;
}

#endif
