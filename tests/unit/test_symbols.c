/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Kernel addresses to names, from a kallsyms as the kernel writes it, and without one. */
#include "test_watch_tree.h"

#include <errno.h>

#include "enrich/symbols.h"

static int load(struct tree *t, const char *text, struct symbols **ret_symbols)
{
	char path[2 * PATH_MAX];

	tree_put(t, "proc/kallsyms", "%s", text);
	snprintf(path, sizeof(path), "%s/kallsyms", t->procfs);
	return symbols_new(path, ret_symbols);
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
	assert_int_equal(symbols_new("/nonexistent/kallsyms", &s), -ENOENT);
	assert_null(s);
	symbols_free(NULL);
}

/* More than the first allocation holds; each found again. */
static void test_many_symbols(void **state)
{
	struct tree *t = *state;
	size_t count = 40000, size = count * 48;
	char *text = malloc(size), path[2 * PATH_MAX], want[48];
	struct symbols *s = NULL;
	size_t len = 0;

	assert_non_null(text);
	for (size_t i = count; i-- > 0;)
		len += (size_t)snprintf(text + len, size - len, "%016zx t function_%zu\n",
			0xffffffff81000000 + i * 32, i);
	tree_put_bytes(t, "proc/kallsyms", text, len);
	free(text);
	snprintf(path, sizeof(path), "%s/kallsyms", t->procfs);
	assert_int_equal(symbols_new(path, &s), 0);
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
		tree_test(test_hidden_addresses),
		tree_test(test_many_symbols),
		tree_test(test_code_of_tracepoints_shares_a_name),
		tree_test(test_name_that_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
