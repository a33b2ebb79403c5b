/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Kernel addresses to names, from a kallsyms as the kernel writes it, and without one. */
#include "test_watch_tree.h"

#include <errno.h>
#include <fcntl.h>

#include "enrich/symbols.h"
#include "util/cleanup.h"

static int read_tree(struct tree *t, struct symbols **ret_symbols)
{
	_cleanup_close_ int fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return symbols_new(fd, ret_symbols);
}

static int load(struct tree *t, const char *text, struct symbols **ret_symbols)
{
	tree_put(t, "proc/kallsyms", "%s", text);
	return read_tree(t, ret_symbols);
}

static void assert_name(const struct symbols *s, uint64_t address, const char *want)
{
	char buf[256];
	struct text out = TEXT_ON(buf);

	text_reset(&out);
	symbols_add_name(s, address, &out);
	assert_string_equal(buf, want);
}

/* As /proc/kallsyms comes: not sorted, data between, modules behind, padding before functions. */
static const char listing[] = "ffffffff81000200 T vfs_read\n"
			      "ffffffff81000100 t io_schedule\n"
			      "ffffffff810001f0 t __pfx_vfs_read\n"
			      "ffffffff81000180 D jiffies\n"
			      "ffffffff81000280 b some_bss\n"
			      "ffffffff81000300 W weak_one\n"
			      "0000000000000000 A per_cpu_start\n"
			      "ffffffffc0000040 t ext4_file_read_iter\t[ext4]\n"
			      "not a line\n"
			      "ffffffff81000400 T\n"
			      "ffffffff81000500 Tt two\n";

static void test_names(void **state)
{
	struct symbols *s = NULL;

	tree_put(*state, "proc/modules", "ext4 4096 1 - Live 0xffffffffc0000000\n");
	assert_int_equal(load(*state, listing, &s), 0);
	assert_name(s, 0xffffffff81000100, "io_schedule+0x0");
	assert_name(s, 0xffffffff8100013c, "io_schedule+0x3c");
	/* Neither data nor padding is a place where code runs. */
	assert_name(s, 0xffffffff81000190, "io_schedule+0x90");
	assert_name(s, 0xffffffff810001ff, "io_schedule+0xff");
	assert_name(s, 0xffffffff81000200, "vfs_read+0x0");
	assert_name(s, 0xffffffff810002ff, "vfs_read+0xff");
	assert_name(s, 0xffffffff81000301, "weak_one+0x1");
	assert_name(s, 0xffffffffc0000042, "ext4_file_read_iter+0x2");
	symbols_free(s);
}

static void test_addresses_that_are_no_symbol(void **state)
{
	struct symbols *s = NULL;

	assert_int_equal(load(*state, listing, &s), 0);
	assert_name(s, 0, "0x0");
	assert_name(s, 0x1000, "0x1000");
	assert_name(s, 0xffffffff810000ff, "0xffffffff810000ff");
	assert_name(s, 0xffff888000000000, "0xffff888000000000");
	/* A gigabyte behind the last symbol is not in it. */
	assert_name(s, 0xffffffffffffffff, "0xffffffffffffffff");
	assert_name(s, 0xffffffffa0000000, "0xffffffffa0000000");
	symbols_free(s);
	assert_name(NULL, 0xffffffff81000100, "0xffffffff81000100");
}

/*
 * From 6.4 on the size of a module is all of its memory, so its end is behind that of its code. BPF
 * programs and the code of modules that are being loaded lie between modules, and come and go.
 */
static const char with_modules[] = "ffffffff81000100 T io_schedule\n"
				   "ffffffff81000200 T last_of_kernel\n"
				   "ffffffff81000280 D _etext\n"
				   "ffffffff81000300 t freed_after_boot\n"
				   "ffffffffc0000040 t xfs_read\t[xfs]\n"
				   "ffffffffc0000100 t xfs_last\t[xfs]\n"
				   "ffffffffc0007000 t xfs_init\t[xfs]\n"
				   "ffffffffc0002010 t nfs_first\t[nfs]\n"
				   "ffffffffc0001800 t bpf_prog_6deef7357e7b4530\t[bpf]\n"
				   "ffffffffc0008000 t unlisted\t[going]\n";
static const char modules[] = "nfs 4096 0 - Loading 0xffffffffc0002000\n"
			      "not a module\n"
			      "xfs 16384 2 dep,other, Live 0xffffffffc0000000 (OE)\n";

static void test_code_that_is_of_no_function(void **state)
{
	struct symbols *s = NULL;

	tree_put(*state, "proc/modules", "%s", modules);
	assert_int_equal(load(*state, with_modules, &s), 0);
	/* The last one of the kernel ends with its code. */
	assert_name(s, 0xffffffff8100027f, "last_of_kernel+0x7f");
	assert_name(s, 0xffffffff81000280, "0xffffffff81000280");
	assert_name(s, 0xffffffff81000310, "0xffffffff81000310");
	/* Nor does a module begin before its code, or go on into the next one or a BPF program. */
	assert_name(s, 0xffffffffc0000010, "0xffffffffc0000010");
	assert_name(s, 0xffffffffc0000041, "xfs_read+0x1");
	assert_name(s, 0xffffffffc00017ff, "xfs_last+0x16ff");
	assert_name(s, 0xffffffffc0001810, "0xffffffffc0001810");
	assert_name(s, 0xffffffffc0002000, "0xffffffffc0002000");
	assert_name(s, 0xffffffffc0002011, "nfs_first+0x1");
	/* In the gap between two modules, though the first one's memory seems to go on. */
	assert_name(s, 0xffffffffc0003000, "0xffffffffc0003000");
	/* Code that a module needs until it is loaded, and a module that is gone again. */
	assert_name(s, 0xffffffffc0007004, "0xffffffffc0007004");
	assert_name(s, 0xffffffffc0008004, "0xffffffffc0008004");
	symbols_free(s);
}

/* Each up to the next symbol, or the end of the module; the compiler may have divided it. */
static void test_where_threads_wait_for_servers(void **state)
{
	struct event_server_waits waits;
	struct symbols *s = NULL;

	tree_put(*state, "proc/modules", "fuse 4096 0 - Live 0xffffffffc0000000\n");
	assert_int_equal(load(*state,
				 "ffffffff81000100 T io_schedule\n"
				 "ffffffffc0000100 t request_wait_answer.isra.0\t[fuse]\n"
				 "ffffffffc0000180 t request_wait_answers\t[fuse]\n"
				 "ffffffffc0000f00 t request_wait_answer.cold\t[fuse]\n"
				 "ffffffffc0001100 t request_wait_answer\t[gone]\n",
				 &s),
		0);
	assert_true(symbols_find_server_waits(s, &waits));
	assert_int_equal(waits.count, 2);
	assert_true(waits.ranges[0].begin == 0xffffffffc0000100);
	assert_int_equal(waits.ranges[0].size, 0x80);
	assert_true(waits.ranges[1].begin == 0xffffffffc0000f00);
	assert_int_equal(waits.ranges[1].size, 0x100);
	symbols_free(s);
}

static uint64_t stamp(struct tree *t, const char *text)
{
	_cleanup_close_ int fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t value = 0;

	tree_put(t, "proc/modules", "%s", text);
	assert_int_equal(symbols_read_stamp(fd, &value), 0);
	return value;
}

static void test_what_makes_other_symbols(void **state)
{
	const uint64_t one = stamp(*state, "xfs 16384 2 - Live 0xffffffffc0000000\n");
	struct symbols *s = NULL;

	assert_int_equal(load(*state, with_modules, &s), 0);
	assert_true(symbols_stamp(s) == one);
	symbols_free(s);
	/* How many use it says nothing about where it is. */
	assert_true(stamp(*state, "xfs 16384 3 nfs, Live 0xffffffffc0000000\n") == one);
	assert_true(stamp(*state, "xfs 16384 2 - Live 0xffffffffc0004000\n") != one);
	assert_true(stamp(*state, "xfs 20480 2 - Live 0xffffffffc0000000\n") != one);
	assert_true(stamp(*state, "nfs 16384 2 - Live 0xffffffffc0000000\n") != one);
	assert_true(stamp(*state, "xfs 16384 2 - Loading 0xffffffffc0000000\n") != one);
	assert_true(stamp(*state, "") != one);
}

static void test_hidden_addresses(void **state)
{
	struct symbols *s = NULL;

	assert_int_equal(load(*state,
				 "0000000000000000 T vfs_read\n"
				 "0000000000000000 t io_schedule\n",
				 &s),
		-EPERM);
	assert_null(s);
	assert_int_equal(load(*state, "", &s), -EPERM);
	tree_remove(*state, "proc/kallsyms");
	assert_int_equal(read_tree(*state, &s), -ENOENT);
	assert_null(s);
	symbols_free(NULL);
}

/* More than the first allocation holds; each found again. */
static void test_many_symbols(void **state)
{
	struct tree *t = *state;
	size_t count = 40000, size = count * 48;
	char *text = malloc(size), want[48];
	struct symbols *s = NULL;
	size_t len = 0;

	assert_non_null(text);
	for (size_t i = count; i-- > 0;)
		len += (size_t)snprintf(text + len, size - len, "%016zx t function_%zu\n",
			0xffffffff81000000 + i * 32, i);
	tree_put_bytes(t, "proc/kallsyms", text, len);
	free(text);
	assert_int_equal(read_tree(t, &s), 0);
	for (size_t i = 0; i < count; i += 997) {
		snprintf(want, sizeof(want), "function_%zu+0x1f", i);
		assert_name(s, 0xffffffff81000000 + i * 32 + 31, want);
	}
	symbols_free(s);
}

static void test_code_of_tracepoints_shares_a_name(void **state)
{
	struct symbols *s = NULL;

	assert_int_equal(load(*state,
				 "ffffffff81000100 t perf_trace_ext4_sync\n"
				 "ffffffff81000200 T vfs_read\n"
				 "ffffffff81000300 t perf_trace_xfs_log\n"
				 "ffffffff81000400 t perf_trace\n",
				 &s),
		0);
	assert_name(s, 0xffffffff81000104, "perf_trace_+0x4");
	assert_name(s, 0xffffffff81000200, "vfs_read+0x0");
	assert_name(s, 0xffffffff81000308, "perf_trace_+0x8");
	assert_name(s, 0xffffffff81000400, "perf_trace+0x0");
	symbols_free(s);
}

static void test_name_that_does_not_fit(void **state)
{
	struct symbols *s = NULL;
	char buf[8];
	struct text out = TEXT_ON(buf);

	assert_int_equal(load(*state, listing, &s), 0);
	text_reset(&out);
	symbols_add_name(s, 0xffffffff81000100, &out);
	assert_true(out.overflow);
	assert_string_equal(buf, "");
	symbols_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_names),
		tree_test(test_addresses_that_are_no_symbol),
		tree_test(test_code_that_is_of_no_function),
		tree_test(test_where_threads_wait_for_servers),
		tree_test(test_what_makes_other_symbols),
		tree_test(test_hidden_addresses),
		tree_test(test_many_symbols),
		tree_test(test_code_of_tracepoints_shares_a_name),
		tree_test(test_name_that_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
