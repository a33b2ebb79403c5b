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
	struct fixture *f = calloc(1, sizeof(*f));
	void *t;

	assert_non_null(f);
	assert_int_equal(tree_setup(&t), 0);
	f->t = t;
	f->procfs_fd = open(f->t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->procfs_fd >= 0);
	assert_int_equal(held_locks_new(f->procfs_fd, &f->locks), 0);
	f->now_ns = NSEC_PER_SEC;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *t = f->t;

	assert_null(held_locks_free(f->locks));
	close(f->procfs_fd);
	free(f);
	return tree_teardown(&t);
}

#endif
