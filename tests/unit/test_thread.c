/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What /proc knows of one thread, from the text of its stat and stack. */
#include "test_watch_tree.h"

#include <errno.h>

#include "snapshot/thread.h"
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

/* Not proc/7/stat, for which the kernel adds up all threads of the process. */
static void test_state_of_any_name(void **state)
{
	struct tree *t = *state;
	_cleanup_close_ int procfs = open_procfs(t);
	struct watch_thread_stat stat = { .state = '-' };

	tree_put(t, "proc/7/task/7/stat",
		"7 (a) b) R (c) D 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 1234 100 200\n");
	assert_int_equal(thread_read_stat(procfs, 7, &stat), 0);
	assert_int_equal(stat.state, 'D');
	tree_put(t, "proc/7/task/7/stat", "7 (cut off)");
	assert_int_equal(thread_read_stat(procfs, 7, &stat), -EINVAL);
	tree_put(t, "proc/7/task/7/stat", "7 (cut off later) R 1 7 7 0\n");
	assert_int_equal(thread_read_stat(procfs, 7, &stat), -EINVAL);
	tree_put(t, "proc/7/task/7/stat", "no name at all D\n");
	assert_int_equal(thread_read_stat(procfs, 7, &stat), -EINVAL);
	assert_int_equal(thread_read_stat(procfs, 8, &stat), -ENOENT);
	assert_int_equal(stat.state, 'D');
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
	struct watch_thread_stat stat;

	(void)state;
	assert_int_equal(thread_read_stat(procfs, getpid(), &stat), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.id, getpid());
	assert_true(thread_read_stat(procfs, INT32_MAX, &stat) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_a_stack_that_is_too_long_is_cut),
		tree_test(test_state_of_any_name),
		tree_test(test_stack_file),
		tree_test(test_large_stack_file),
		cmocka_unit_test(test_this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
