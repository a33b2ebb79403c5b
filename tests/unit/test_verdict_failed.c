/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Operations that fail: the verdict where nobody waits long. */
#include "test_verdict_setup.h"

#include <errno.h>

static void note_error(struct fixture *x, int64_t number, unsigned int minor)
{
	struct record_operation op = { .op = RECORD_OP_write,
		.probe = RECORD_PROBE_vfs,
		.sleeps = 1,
		.pid = 7,
		.tid = 7,
		.comm = "mysqld",
		.dev = { 8, minor },
		.dev_name = "sdb",
		.path = "/var/lib/mysql/x",
		.start_mono_ns = TRIGGER_NS,
		.ret = -number };

	/* Of a file that is on no disk. */
	if (minor == 0) {
		op.dev_name[0] = '\0';
		op.dev = (struct record_dev){ 0 };
	}
	verdict_note_error(&x->f, &op);
}

static void kernel_says(struct fixture *x, enum record_level level, const char *text)
{
	struct record_kernel line = { .level = level };

	text_copy(line.text, sizeof(line.text), text);
	verdict_note_kernel(&x->f, &line);
}

static void test_errors_of_a_disk(void **state)
{
	struct fixture *x = *state;

	note_error(x, ENOSPC, 16);
	note_error(x, EIO, 16);
	note_error(x, EIO, 16);
	kernel_says(x, RECORD_LEVEL_err, "I/O error, dev sdb, sector 8 op 0x1:(WRITE)");
	decide(x);
	assert_verdict(x, "failed", "measured",
		"operations on device sdb failed: at least 2 with EIO, the first of mysqld pid 7 on "
		"/var/lib/mysql/x; at least 1 operation failed with ENOSPC, that of mysqld pid 7 on "
		"/var/lib/mysql/x; the kernel logged 1 problem of storage, \"I/O error, dev sdb, "
		"sector 8 op 0x1:(WRITE)\"");
	assert_string_equal(x->v.dev_name, "sdb");
	assert_non_null(part(x, "device"));
	assert_null(part(x, "missing"));
}

static void test_want_of_space(void **state)
{
	struct fixture *x = *state;

	note_error(x, ENOSPC, 16);
	decide(x);
	assert_verdict(x, "failed", "measured",
		"the file system on device sdb was full: at least 1 operation failed with ENOSPC, "
		"that of mysqld pid 7 on /var/lib/mysql/x");
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	note_error(x, EDQUOT, 0);
	decide(x);
	assert_verdict(x, "failed", "measured",
		"a file system was at its quota: at least 1 operation failed with EDQUOT, that of "
		"mysqld pid 7 on /var/lib/mysql/x");
}

static void test_only_the_kernel_says_it(void **state)
{
	struct fixture *x = *state;

	kernel_says(x, RECORD_LEVEL_warning, "device-mapper: multipath: Failing path 8:16.");
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
	kernel_says(x, RECORD_LEVEL_err, "INFO: task mysqld:7 blocked for more than 120 seconds.");
	kernel_says(x, RECORD_LEVEL_err, "I/O error, dev sr0, sector 8");
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
	kernel_says(x, RECORD_LEVEL_crit, "EXT4-fs (sdb1): Remounting filesystem read-only");
	decide(x);
	assert_verdict(x, "failed", "measured",
		"the kernel made the file system on sdb1 read-only and logged 4 problems of storage, first \"device-mapper: multipath: Failing "
		"path 8:16.\"");
	x->f.fs_stopped = KMSG_STOPPED_NOT;
	kernel_says(x, RECORD_LEVEL_alert,
		"XFS (dm-0): Filesystem has been shut down due to log error (0x2).");
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"the kernel shut down the file system on dm-0 and logged 5 problems of storage"));
}

/* Threads that wait are what an incident is about. */
static void test_who_waits_comes_first(void **state)
{
	struct fixture *x = *state;

	note_error(x, EIO, 16);
	scan(x);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(strstr(x->v.sentence, "; at least 1 operation failed with EIO, that of"));
	assert_null(part(x, "second"));
}

/* What fails is missed, however busy another disk is that nobody waits for. */
static void test_before_what_nobody_waits_for(void **state)
{
	struct record_disk busy = loaded_sdb;
	struct fixture *x = *state;

	busy.dev.minor = 32;
	text_copy(busy.dev_name, sizeof(busy.dev_name), "sdc");
	for (unsigned int i = 0; i < 5; i++)
		sample(x, &busy);
	note_error(x, EIO, 16);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "failed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_errors_of_a_disk),
		verdict_test(test_want_of_space),
		verdict_test(test_only_the_kernel_says_it),
		verdict_test(test_who_waits_comes_first),
		verdict_test(test_before_what_nobody_waits_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
