/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Whose server is looked for: of those who wait now, and of each file system by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "model/model.h"

#define TRIGGER_NS (100 * NSEC_PER_SEC)

static const struct record_dev srv = { 0, 52 }, backup = { 0, 60 };

static int setup(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	struct record open = { .type = RECORD_OPEN,
		.mono_ns = TRIGGER_NS,
		.open = { .well_mono_ns = TRIGGER_NS - NSEC_PER_SEC } };

	if (!m)
		return -1;
	model_begin(m);
	model_add(m, &open);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* A thread waits since then, and has gone on at the end if it is a stall. */
static void add(struct model *m, enum record_type type, enum record_cause cause,
	struct record_dev dev, int32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	struct record r = { .type = type,
		.mono_ns = end_ns,
		.operation = { .op = RECORD_OP_read,
			.pid = tid,
			.tid = tid,
			.comm = "mariadbd",
			.dev = dev,
			.start_mono_ns = start_ns,
			.dur_ns = end_ns - start_ns,
			.waits_for = cause,
			.sleeps = 1 } };

	model_add(m, &r);
}

static void answer(struct model *m, enum record_cause cause, struct record_dev dev, int32_t pid)
{
	const struct record_file_server found = { .present = true,
		.waits_for = cause,
		.dev = dev,
		.search = RECORD_SEARCH_complete,
		.basis = RECORD_BASIS_measured,
		.pid = pid };

	model_servers_add(&m->host.servers, &found);
}

static void test_only_while_somebody_waits(void **state)
{
	struct model *m = *state;
	const uint64_t now_ns = TRIGGER_NS + 2 * NSEC_PER_SEC;

	assert_null(model_servers_to_find(m, now_ns));
	add(m, RECORD_STUCK, RECORD_CAUSE_access_check, srv, 7, TRIGGER_NS, now_ns);
	assert_non_null(model_servers_to_find(m, now_ns));
	add(m, RECORD_STALL, RECORD_CAUSE_access_check, srv, 7, TRIGGER_NS, now_ns);
	assert_null(model_servers_to_find(m, now_ns));
}

static void test_those_without_an_answer_first(void **state)
{
	struct model *m = *state;
	const uint64_t now_ns = TRIGGER_NS + 2 * NSEC_PER_SEC;

	add(m, RECORD_STUCK, RECORD_CAUSE_fuse_server, srv, 7, TRIGGER_NS, now_ns);
	add(m, RECORD_STUCK, RECORD_CAUSE_fuse_server, backup, 8, TRIGGER_NS + NSEC_PER_SEC,
		now_ns);
	assert_int_equal(model_servers_to_find(m, now_ns)->dev.minor, srv.minor);
	answer(m, RECORD_CAUSE_fuse_server, srv, 812);
	assert_int_equal(model_servers_to_find(m, now_ns)->dev.minor, backup.minor);
	/* Its state may have changed. */
	answer(m, RECORD_CAUSE_fuse_server, backup, 900);
	assert_int_equal(model_servers_to_find(m, now_ns)->dev.minor, srv.minor);
}

static void test_what_hung_before_is_the_last(void **state)
{
	struct model *m = *state;
	const uint64_t now_ns = TRIGGER_NS + 2 * NSEC_PER_SEC;

	add(m, RECORD_STUCK, RECORD_CAUSE_fuse_server, backup, 8, NSEC_PER_SEC, now_ns);
	assert_int_equal(model_servers_to_find(m, now_ns)->dev.minor, backup.minor);
	add(m, RECORD_STUCK, RECORD_CAUSE_fuse_server, srv, 7, TRIGGER_NS, now_ns);
	assert_int_equal(model_servers_to_find(m, now_ns)->dev.minor, srv.minor);
	answer(m, RECORD_CAUSE_fuse_server, srv, 812);
	assert_int_equal(model_servers_to_find(m, now_ns)->dev.minor, srv.minor);
}

static void test_the_first_answer_stays(void **state)
{
	struct model *m = *state;
	struct model_wait w = { .cause = RECORD_CAUSE_access_check, .dev = srv };

	assert_null(model_servers_find(&m->host.servers, &w));
	answer(m, RECORD_CAUSE_access_check, srv, 0);
	answer(m, RECORD_CAUSE_access_check, srv, 30);
	answer(m, RECORD_CAUSE_access_check, srv, 31);
	answer(m, RECORD_CAUSE_access_check, backup, 32);
	answer(m, RECORD_CAUSE_fuse_server, srv, 33);
	assert_int_equal(model_servers_find(&m->host.servers, &w)->found.pid, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_only_while_somebody_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_those_without_an_answer_first, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_what_hung_before_is_the_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_first_answer_stays, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
