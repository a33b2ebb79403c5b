/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What /proc knows of one thread, from the text of its stat and stack. */
#include "test_watch_tree.h"

#include <errno.h>

#include "snapshot/thread.h"
#include "watch/thread_status.h"
#include "util/cleanup.h"

static void assert_stack(const char *text, const char *want)
{
	char stack[THREAD_STACK_SIZE];

	memset(stack, 0x5a, sizeof(stack));
	thread_parse_stack(text, strlen(text), stack);
	assert_string_equal(stack, want);
}

static void test_stack(void **state)
{
	(void)state;
	assert_stack("[<0>] folio_wait_bit_common+0x134/0x380\n"
		     "[<0>] ext4_file_read_iter+0x5c/0x140 [ext4]\n"
		     "[<0>] vfs_read+0x2a1/0x430\n",
		"folio_wait_bit_common+0x134\next4_file_read_iter+0x5c\nvfs_read+0x2a1");
	/* 5.10 with addresses shown, and the last line without its newline. */
	assert_stack("[<ffffffff8123>] io_schedule+0x12/0x40\n[<0>] 0xffffffffc0abcdef",
		"io_schedule+0x12\n0xffffffffc0abcdef");
	assert_stack("", "");
	assert_stack("\n\n", "");
	assert_stack("[<0>]\n[<0>] a+0x1/0x2\n", "a+0x1");
}

/* Whole outermost frames are left out. */
static void test_a_stack_that_is_too_long_is_cut(void **state)
{
	char text[8192] = "", stack[THREAD_STACK_SIZE];
	size_t frames = 0;

	(void)state;
	while (strlen(text) < sizeof(text) - 64)
		snprintf(text + strlen(text), 64, "[<0>] frame_%03zu_of_a_long_stack+0x1/0x2\n",
			frames++);
	thread_parse_stack(text, strlen(text), stack);
	assert_memory_equal(stack, "frame_000_of_a_long_stack+0x1\nframe_001", 39);
	assert_true(strlen(stack) < sizeof(stack));
	assert_true(strlen(stack) > sizeof(stack) - 40);
	assert_string_equal(stack + strlen(stack) - 4, "+0x1");
}

static int open_procfs(const struct tree *t)
{
	int fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* No other file of the thread is opened, not even its stat: that FIFO never has a writer. */
static void test_status_only(void **state)
{
	struct tree *t = *state;
	_cleanup_close_ int procfs = open_procfs(t);
	struct watch_thread_status status = { .state = '-' };
	char path[2 * PATH_MAX];

	tree_put_thread(t, 7, 7, "x", 'D', 1234, 1);
	snprintf(path, sizeof(path), "%s/7/task/7/stat", t->procfs);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/7/stat", t->procfs);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(20);
	assert_int_equal(thread_status_read(procfs, 7, &status), 0);
	alarm(0);
	assert_int_equal(status.state, 'D');
	tree_put(t, "proc/7/status", "Name:\tx\n");
	assert_int_equal(thread_status_read(procfs, 7, &status), -EINVAL);
	assert_int_equal(thread_status_read(procfs, 8, &status), -ENOENT);
	assert_int_equal(status.state, 'D');
}

static void test_stack_file(void **state)
{
	struct tree *t = *state;
	_cleanup_close_ int procfs = open_procfs(t);
	char stack[THREAD_STACK_SIZE];

	tree_put(t, "proc/7/stack", "[<0>] percpu_rwsem_wait+0x1/0x2\n");
	thread_read_stack(procfs, 7, stack);
	assert_string_equal(stack, "percpu_rwsem_wait+0x1");
	tree_remove(t, "proc/7/stack");
	thread_read_stack(procfs, 7, stack);
	assert_string_equal(stack, "");
	thread_read_stack(procfs, 8, stack);
	assert_string_equal(stack, "");
}

/* A stack that is larger than what is read of it gives its innermost frames. */
static void test_large_stack_file(void **state)
{
	struct tree *t = *state;
	_cleanup_close_ int procfs = open_procfs(t);
	char stack[THREAD_STACK_SIZE], text[6000];

	memset(text, 'x', sizeof(text));
	memcpy(text, "[<0>] innermost+0x1/0x2\n[<0>] ", 30);
	tree_put_bytes(t, "proc/7/stack", text, sizeof(text));
	thread_read_stack(procfs, 7, stack);
	assert_memory_equal(stack, "innermost+0x1", 13);
}

static void test_this_thread(void **state)
{
	_cleanup_close_ int procfs = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct watch_thread_status status;

	(void)state;
	assert_int_equal(thread_status_read(procfs, getpid(), &status), 0);
	assert_int_equal(status.state, 'R');
	assert_int_equal(status.id, getpid());
	assert_true(thread_status_read(procfs, INT32_MAX, &status) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_a_stack_that_is_too_long_is_cut),
		tree_test(test_status_only),
		tree_test(test_stack_file),
		tree_test(test_large_stack_file),
		cmocka_unit_test(test_this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
