/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's side of one database target, whose helper is the test program itself.
 * Used by the tests of targets.
 * Never waits for a time: a loop ends when what a test waits for is there.
 */
#ifndef IOSTALL_TESTS_TEST_SQL_SETUP_H
#define IOSTALL_TESTS_TEST_SQL_SETUP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "test_sql_fake.h"

#include "util/loop.h"
#include "sql/sql.h"
#include "util/clock.h"
#include "util/log.h"

#define MS NSEC_PER_MSEC
#define TICK_NS (5 * MS)
/* What a test waits for takes far less. */
#define GUARD_NS (30 * NSEC_PER_SEC)

/* How long a database is left alone that fails. */
static uint64_t setup_retry_ns = 20 * MS;

/* The daemon's side */

struct fixture {
	struct loop *loop;
	struct loop_source *timer;
	struct config config;
	struct sql *sql;
	bool armed;
	bool (*is_done)(struct fixture *f);
	uint64_t until_ns;
	uint64_t longest_ns; /* that the loop was kept */
};

static inline void on_tick(void *userdata, uint64_t expirations)
{
	struct fixture *f = userdata;
	uint64_t before_ns = clock_mono_ns();

	(void)expirations;
	sql_tick(f->sql, f->armed);
	if (clock_mono_ns() - before_ns > f->longest_ns)
		f->longest_ns = clock_mono_ns() - before_ns;
	if (f->is_done(f) || before_ns > f->until_ns) {
		loop_stop(f->loop);
		loop_remove(f->timer);
	}
}

/* A loop ends once, so each wait has its own; targets keep theirs. */
static inline void setup_in(struct fixture *f, const char *procfs, const char *section,
	const char *password_file)
{
	memset(f, 0, sizeof(*f));
	log_set_level(LOG_LEVEL_ERROR);
	config_set_defaults(&f->config);
	assert_int_equal(config_sql_default_target(section, &f->config.sql.targets[0]), 0);
	text_copy(f->config.sql.targets[0].password_file,
		sizeof(f->config.sql.targets[0].password_file), password_file);
	f->config.sql.targets_count = 1;
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(sql_new(
				 &(struct sql_options){
					 .config = &f->config,
					 .procfs = procfs,
					 .loop = f->loop,
					 .helper = "/proc/self/exe",
					 .timing = { .late_ns = 50 * MS,
						 .idle_ns = 20 * MS,
						 .retry_ns = setup_retry_ns,
						 .kill_ns = 2000 * MS,
						 .backoff_ns = 20 * MS },
				 },
				 &f->sql),
		0);
	assert_int_equal(sql_targets_count(f->sql), 1);
}

static inline void setup_with_password(struct fixture *f, const char *section,
	const char *password_file)
{
	setup_in(f, "/proc", section, password_file);
}

static inline void setup_with(struct fixture *f, const char *section)
{
	setup_with_password(f, section, "");
}

static inline void teardown(struct fixture *f)
{
	f->sql = sql_free(f->sql);
	loop_free(f->loop);
}

static inline struct sql_evidence evidence(const struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e;
}

static inline void run_until(struct fixture *f, bool (*is_done)(struct fixture *f))
{
	assert_int_equal(loop_add_timer(f->loop, on_tick, f, &f->timer), 0);
	f->is_done = is_done;
	f->until_ns = clock_mono_ns() + GUARD_NS;
	loop_set_timer(f->timer, TICK_NS, TICK_NS);
	assert_int_equal(loop_run(f->loop), 0);
	assert_true(is_done(f));
}

static inline bool has_answer(struct fixture *f)
{
	return evidence(f).current != NULL;
}

static inline bool says_why(struct fixture *f)
{
	return *evidence(f).why && evidence(f).is_known;
}

#endif
