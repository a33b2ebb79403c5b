/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one thread is doing, from the text of /proc/TID/syscall, stack, stat and wchan. */
#include "test_watch_tree.h"

#include <errno.h>
#include <sys/syscall.h>

#include "snapshot/thread.h"
#include "util/cleanup.h"

static int parse_syscall(const char *text, struct thread_syscall *ret_call)
{
	memset(ret_call, 0x5a, sizeof(*ret_call));
	return thread_parse_syscall(text, strlen(text), ret_call);
}

static void test_syscall_with_arguments(void **state)
{
	struct thread_syscall call;

	(void)state;
	assert_int_equal(parse_syscall("17 0x29 0x55d0aabbccdd 0x309 0x3039 0x0 "
				       "0xffffffffffffffff 0x7ffd5c3b2a90 0x7f2d8d0a5b1c\n",
				 &call),
		0);
	assert_false(call.running);
	assert_int_equal(call.nr, 17);
	assert_int_equal(call.args[0], 0x29);
	assert_int_equal(call.args[1], 0x55d0aabbccdd);
	assert_int_equal(call.args[2], 0x309);
	assert_int_equal(call.args[3], 0x3039);
	assert_int_equal(call.args[4], 0);
	assert_int_equal(call.args[5], UINT64_MAX);
	/* Number 0 is read(2). */
	assert_int_equal(parse_syscall("0 0x3 0x1 0x2 0x0 0x0 0x0 0x7 0x8\n", &call), 0);
	assert_int_equal(call.nr, 0);
	assert_int_equal(call.args[0], 3);
}

static void test_syscall_without(void **state)
{
	struct thread_syscall call;

	(void)state;
	assert_int_equal(parse_syscall("running\n", &call), 0);
	assert_true(call.running);
	/* Blocked outside a call, in a page fault: stack and instruction pointer only. */
	assert_int_equal(parse_syscall("-1 0x7ffd5c3b2a90 0x7f2d8d0a5b1c\n", &call), 0);
	assert_false(call.running);
	assert_int_equal(call.nr, -1);
	assert_int_equal(call.args[0], 0);
}

static void test_syscall_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"runnin",
		"x",
		"-2 0x1 0x2\n",
		"17\n",
		"17 0x1 0x2 0x3 0x4 0x5\n",
		"17 0x1 0x2 zz 0x4 0x5 0x6\n",
		"17 0x1 0x2 0x10000000000000000 0x4 0x5 0x6\n",
		"99999999999999999999 0x1 0x2 0x3 0x4 0x5 0x6\n",
	};
	struct thread_syscall call, untouched;

	(void)state;
	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_not_equal(parse_syscall(bad[i], &call), 0);
		assert_memory_equal(&call, &untouched, sizeof(call));
	}
}

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

/* The outermost frames are what is left out, whole. */
static void test_stack_longer_than_its_place(void **state)
{
	char text[8192] = "", stack[THREAD_STACK_SIZE];
	size_t frames = 0;

	(void)state;
	while (strlen(text) < sizeof(text) - 64)
		snprintf(text + strlen(text), 64, "[<0>] frame_%03zu_of_a_long_stack+0x1/0x2\n", frames++);
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

static void test_state_of_any_name(void **state)
{
	struct tree *t = *state;
	_cleanup_close_ int procfs = open_procfs(t);
	char c = '-';

	tree_put(t, "proc/7/stat",
		"7 (a) b) R (c) D 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 1234 100 200\n");
	assert_int_equal(thread_read_state(procfs, 7, &c), 0);
	assert_int_equal(c, 'D');
	tree_put(t, "proc/7/stat", "7 (cut off)");
	assert_int_equal(thread_read_state(procfs, 7, &c), -EINVAL);
	tree_put(t, "proc/7/stat", "7 (cut off later) R 1 7 7 0\n");
	assert_int_equal(thread_read_state(procfs, 7, &c), -EINVAL);
	tree_put(t, "proc/7/stat", "no name at all D\n");
	assert_int_equal(thread_read_state(procfs, 7, &c), -EINVAL);
	assert_int_equal(thread_read_state(procfs, 8, &c), -ENOENT);
	assert_int_equal(c, 'D');
}

static void test_wait_channel_and_stack(void **state)
{
	struct tree *t = *state;
	_cleanup_close_ int procfs = open_procfs(t);
	char wchan[THREAD_WCHAN_SIZE], stack[THREAD_STACK_SIZE];

	tree_put(t, "proc/7/wchan", "percpu_rwsem_wait");
	tree_put(t, "proc/7/stack", "[<0>] percpu_rwsem_wait+0x1/0x2\n");
	thread_read_wait(procfs, 7, wchan, stack);
	assert_string_equal(wchan, "percpu_rwsem_wait");
	assert_string_equal(stack, "percpu_rwsem_wait+0x1");
	tree_put(t, "proc/7/wchan", "0");
	tree_remove(t, "proc/7/stack");
	thread_read_wait(procfs, 7, wchan, stack);
	assert_string_equal(wchan, "");
	assert_string_equal(stack, "");
	thread_read_wait(procfs, 8, wchan, stack);
	assert_string_equal(wchan, "");
	assert_string_equal(stack, "");
}

/* A stack that is larger than what is read of it gives its innermost frames. */
static void test_large_stack_file(void **state)
{
	struct tree *t = *state;
	_cleanup_close_ int procfs = open_procfs(t);
	char wchan[THREAD_WCHAN_SIZE], stack[THREAD_STACK_SIZE], text[6000];

	memset(text, 'x', sizeof(text));
	memcpy(text, "[<0>] innermost+0x1/0x2\n[<0>] ", 30);
	tree_put_bytes(t, "proc/7/stack", text, sizeof(text));
	thread_read_wait(procfs, 7, wchan, stack);
	assert_memory_equal(stack, "innermost+0x1", 13);
}

static void test_this_thread(void **state)
{
	_cleanup_close_ int procfs = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct thread_syscall call;
	char c;
	int r;

	(void)state;
	assert_int_equal(thread_read_state(procfs, getpid(), &c), 0);
	assert_int_equal(c, 'R');
	r = thread_read_syscall(procfs, getpid(), &call);
	if (r == -ENOENT) {
		print_message("this kernel has no /proc/PID/syscall\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_true(call.running || call.nr == SYS_read || call.nr == SYS_pread64);
	assert_true(thread_read_syscall(procfs, INT32_MAX, &call) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syscall_with_arguments),
		cmocka_unit_test(test_syscall_without),
		cmocka_unit_test(test_syscall_refused),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_stack_longer_than_its_place),
		tree_test(test_state_of_any_name),
		tree_test(test_wait_channel_and_stack),
		tree_test(test_large_stack_file),
		cmocka_unit_test(test_this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
