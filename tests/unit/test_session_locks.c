/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which lock of the kernel an operation waits for, from line to line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "session/internal.h"
#include "util/text.h"

struct fixture {
	struct session s; /* without probes: nothing is asked of the kernel */
	struct record_operation op;
	struct incident_stuck stuck;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	if (!f)
		return -1;
	f->op = (struct record_operation){ .op = RECORD_OP_write,
		.pid = 7,
		.tid = 8,
		.state = 'D',
		.inode = 12 };
	text_copy(f->op.path, sizeof(f->op.path), "/srv/file");
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void look(struct fixture *f, enum record_cause waits_for)
{
	f->op.waits_for = waits_for;
	f->op.lock = 0;
	session_note_lock_wait(&f->s, &f->op, &f->stuck);
}

/* Who has got the lock may hang with it, in the same operation, at a disk. */
static void test_who_has_got_it_does_not_wait_for_it(void **state)
{
	struct fixture *f = *state;

	look(f, RECORD_CAUSE_read_write_lock);
	assert_int_equal(f->op.lock, 1);
	look(f, RECORD_CAUSE_page);
	assert_int_equal(f->op.lock, 0);
	assert_int_equal(f->op.waits_for, RECORD_CAUSE_page);
	assert_int_equal(f->stuck.lock, 0);
	look(f, RECORD_CAUSE_memory_map_lock);
	assert_int_equal(f->op.lock, 2);
}

/* Of which the kernel has told the address. */
static void test_who_has_got_another_lock(void **state)
{
	struct fixture *f = *state;

	f->s.locks.list[3] = (struct session_lock){ .kind = RECORD_KERNEL_LOCK_other,
		.id = 9,
		.is_mutex = true };
	f->stuck.lock = 4;
	f->stuck.lock_asked = true;
	f->op.inode = 0;
	look(f, RECORD_CAUSE_read_write_lock);
	assert_int_equal(f->op.lock, 9);
	assert_int_equal(f->op.waits_for, RECORD_CAUSE_mutex);
	look(f, RECORD_CAUSE_page);
	assert_int_equal(f->op.lock, 0);
	assert_int_equal(f->op.waits_for, RECORD_CAUSE_page);
	/* It is asked about again when it comes to one. */
	assert_false(f->stuck.lock_asked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_has_got_it_does_not_wait_for_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_who_has_got_another_lock, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
