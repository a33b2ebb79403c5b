/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* How often the mounts are read on a host that changes them all the time. */
#include "test_watch_tree.h"

#include "enrich/mounts_reader.h"
#include "util/clock.h"

static void await_answer(const struct mounts_reader *reader)
{
	assert_non_null(reader->worker.state);
	for (unsigned int i = 0; i < 5000 && renewable_worker_is_busy(&reader->worker); i++)
		usleep(1000);
	assert_false(renewable_worker_is_busy(&reader->worker));
}

/* What they are now is read at once, and again only after a rest. */
static void test_it_rests(void **state)
{
	struct tree *t = *state;
	struct watch *watch = tree_watch(t);
	struct mounts_reader reader;
	struct members members = { 0 };
	struct mounts mounts = { 0 };
	const uint64_t begin_ns = 1000 * NSEC_PER_SEC;
	int procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	tree_put(t, "proc/self/mountinfo", "22 1 254:1 / /first rw - ext4 /dev/vda1 rw\n");
	mounts_reader_init(&reader, procfs_fd, watch);
	assert_false(mounts_reader_take(&reader, &mounts, &members, begin_ns));
	await_answer(&reader);
	tree_put(t, "proc/self/mountinfo", "22 1 254:1 / /second rw - ext4 /dev/vda1 rw\n");
	mounts_reader_want(&reader);
	assert_true(mounts_reader_take(&reader, &mounts, &members, begin_ns));
	assert_string_equal(mounts.list[0].point, "/first");
	assert_null(reader.worker.state);
	/* No reading takes a CPU for ten seconds. */
	assert_false(
		mounts_reader_take(&reader, &mounts, &members, begin_ns + 1000 * NSEC_PER_SEC));
	await_answer(&reader);
	assert_true(mounts_reader_take(&reader, &mounts, &members, begin_ns + 1000 * NSEC_PER_SEC));
	assert_string_equal(mounts.list[0].point, "/second");
	mounts_reader_done(&reader);
	mounts_done(&mounts);
	close(procfs_fd);
	watch_free(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_it_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
