/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Names of capabilities have the numbers that the kernel has. */
#include <errno.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/capability.h"

static void test_numbers(void **state)
{
	uint64_t bits;

	(void)state;
	assert_int_equal(capability_parse("CAP_CHOWN", &bits), 0);
	assert_int_equal(bits, 1ULL << CAP_CHOWN);
	assert_int_equal(capability_parse(" CAP_SYS_PTRACE\tcap_kill ", &bits), 0);
	assert_int_equal(bits, 1ULL << CAP_SYS_PTRACE | 1ULL << CAP_KILL);
	assert_int_equal(capability_parse("CAP_SYS_ADMIN CAP_SYSLOG CAP_BPF", &bits), 0);
	assert_int_equal(bits, 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SYSLOG | 1ULL << CAP_BPF);
	assert_int_equal(capability_parse("CAP_CHECKPOINT_RESTORE", &bits), 0);
	assert_int_equal(bits, 1ULL << CAP_CHECKPOINT_RESTORE);
	assert_int_equal(capability_parse("", &bits), 0);
	assert_int_equal(bits, 0);
}

static void test_what_is_not_known(void **state)
{
	static const char *const names[] = { "KILL", "CAP_", "CAP_KILLS", "CAP_KIL",
		"CAP_KILL,CAP_BPF", "all" };
	uint64_t bits;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(capability_parse(names[i], &bits), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
