/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A /proc made of files, and the thread that looks there for locks. */
#ifndef TEST_LOCK_LOOKS_H
#define TEST_LOCK_LOOKS_H

#include "test_watch_tree.h"

#include "snapshot/held_locks.h"

struct fixture {
	struct tree *t;
	int procfs_fd;
	struct held_locks *locks;
	uint64_t now_ns;
};

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->procfs_fd = tree_open_procfs(f->t);
	assert_int_equal(held_locks_new(f->procfs_fd, &f->locks), 0);
	f->now_ns = NSEC_PER_SEC;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(held_locks_free(f->locks));
	close(f->procfs_fd);
	return tree_fixture_free(f);
}

#endif
