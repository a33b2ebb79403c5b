/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A record for a person. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "test_record_data.h"
#include "util/cleanup.h"

#define ROUNDS 3000

/* Heap, so that ASan sees a step over either end. */
struct buffers {
	struct record first;
	char line_buf[RECORD_LINE_SIZE];
};

static void assert_text(const struct record *r, const char *expected)
{
	char buf[8192];
	struct text out = TEXT_ON(buf);

	record_format_text(r, DATA_MONO_NS, &out);
	assert_string_equal(buf, expected);
}

static void test_text_for_people(void **state)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));

	(void)state;
	data_open(r);
	/* Paths with the same answer share its line. */
	r->open.coverage[2] = r->open.coverage[0];
	r->open.coverage[2].path = RECORD_IO_PATH_write;
	r->open.coverage_count = 3;
	assert_text(r,
		"incident 20261120T031207Z-3f9c\n"
		"  opened    2026-11-20T03:12:07.123456Z on db1, kernel 6.1.0-28-amd64, "
		"iostall 1.0\n"
		"  trigger   utilisation 97.25 %, threshold 90 %, device sdb\n"
		"  armed     after 3.4 ms, operations from 100 ms on\n"
		"  coverage  read, write: vfs by fentry, pairing entry\n"
		"  coverage  fsync: not seen (no probe for it is enabled)\n");
	data_sample(r);
	assert_text(r,
		"   -3.000s  sample  iowait 23.5% busy 40%  psi io 74/48.25%  memory 0/0%  "
		"read again 6.0 MiB swapped in 2.0 MiB out 1.0 MiB  blocked 3, 2 of the watched threads  health no answer for 5.5 s  sql 31 active, longest 12.5 s "
		"no answer for 2.25 s  | /var/lib/mysql full 98.5%, 300.0 MiB free, "
		"inodes 12.25%  | /system.slice/mariadb.service memory 96.5% of "
		"1024.0 MiB read again 4.0 MiB killed 1  | sdb util 100% in-flight 12 "
		"r/w await 510.5/0 ms nothing finished for 2.00 s\n");
}

/* A database that nothing is known of has no word in a sample. */
static void test_a_sample_without_an_answer(void **state)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	struct record_reading *s = &r->sample.reading;

	(void)state;
	data_sample(r);
	s->sql = (struct record_sql_activity){ .present = true, .active = -1 };
	s->devices_count = 0;
	s->health.present = false;
	memset(&r->sample.limits, 0, sizeof(r->sample.limits));
	assert_text(r,
		"   -3.000s  sample  iowait 23.5% busy 40%  psi io 74/48.25%  memory 0/0%  "
		"read again 6.0 MiB swapped in 2.0 MiB out 1.0 MiB  blocked 3, 2 of the watched threads\n");
}

static void test_lock(void **state)
{
	static struct record record;
	struct record *r = &record;

	(void)state;
	data_lock(r);
	assert_text(r,
		"   +3.000s  lock    memory map lock of mariadbd[2211]  16 threads wait, the "
		"longest 3.21 s; held by buffers[2211/2230] for at least 2.50 s, state R, "
		"session 17\n");
	r->lock_wait = (struct record_lock_wait){ .kind = RECORD_KERNEL_LOCK_inode,
		.path = "/srv/\n",
		.waiters = 1,
		.longest_ns = NSEC_PER_SEC,
		.readers = 2 };
	assert_text(r,
		"   +3.000s  lock    inode lock of /srv/\\x0a  1 thread waits, the longest "
		"1.00 s; held by 2 readers\n");
	r->lock_wait.readers = 0;
	r->lock_wait.holder = (struct record_lock_holder){ .present = true,
		.pid = 7,
		.tid = 8,
		.comm = "dump",
		.state = 'D',
		.held_ns = NSEC_PER_SEC,
		.waits_for = RECORD_CAUSE_journal_commit };
	assert_text(r,
		"   +3.000s  lock    inode lock of /srv/\\x0a  1 thread waits, the longest "
		"1.00 s; held by dump[7/8] for at least 1.00 s, state D, waits for journal "
		"commit\n");
}

static void test_operations_for_people(void **state)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));

	(void)state;
	data_operation(r, RECORD_STALL);
	assert_text(r,
		"  +12.345s  stall      512 ms  mariadbd[2211/2230] read  fd 23 "
		"/var/lib/mysql/shop/orders.ibd  16384 bytes at 1048576  sdb  "
		"waits for page  mariadb.service\n"
		"            at io_schedule < folio_wait_bit_common < filemap_read\n");
	r->operation.ret = -EIO;
	r->operation.kstack[0] = '\0';
	assert_text(r,
		"  +12.345s  stall      512 ms  mariadbd[2211/2230] read  fd 23 "
		"/var/lib/mysql/shop/orders.ibd  16384 bytes at 1048576  sdb  "
		"failed: EIO  waits for page  mariadb.service\n");
	data_operation(r, RECORD_STUCK);
	r->operation.fd = -1;
	r->operation.offset = -1;
	r->operation.dev_name[0] = '\0';
	r->operation.kstack[0] = '\0';
	assert_text(r,
		"  +12.345s  STUCK    >=512 ms  mariadbd[2211/2230] read  "
		"/var/lib/mysql/shop/orders.ibd  16384 bytes  8:16  state D in io_schedule  "
		"waits for page  mariadb.service\n");
	data_device(r);
	assert_text(r,
		"  +23.400s  disk    sdb has finished nothing for 2.00 s  1234 requests, read 18.8 "
		"MiB, written 480.0 KiB  queue p50 12 us p99 2.0 ms max 450 ms  device p50 340 ms "
		"p99 1.90 s max 4.20 s  12 in flight, the oldest for 4.50 s, mariadbd[2211/2230] "
		"/var/lib/mysql/shop/orders.ibd\n");
	r->device.final = false;
	r->device.oldest.tid = 0;
	r->device.oldest.path[0] = '\0';
	r->device.dev_name[0] = '\0';
	assert_text(r,
		"  +23.400s  NOTHING ENDS  8:16 has finished nothing for 2.00 s  12 in flight, the "
		"oldest for 4.50 s\n");
	data_io_by(r);
	assert_text(r,
		"  +23.400s  io by   file  sdb 97.5%  mariadbd[2211/2230]  "
		"/var/lib/mysql/shop/orders.ibd  read 18.8 MiB, written 16.0 KiB in 1200 requests  "
		"mariadb.service  inferred\n");
	data_journal(r);
	assert_text(r,
		"  +23.400s  journal sdb1  4 commits, the longest 3.10 s with 1203 blocks, 95 % of it "
		"for data, one from before for at least 700 ms, one under way for 40 ms  1500 blocks "
		"changed, 91.5% by dd[2300]\n");
	data_kernel(r);
	assert_text(r, "   +4.400s  kernel  warning  nvme nvme0: I/O 12 QID 3 timeout, aborting\n");
	data_sql(r);
	assert_text(r,
		"   +1.020s  sql     main during  31.00 s  app@localhost/shop [2211/2230]  "
		"background  Query, Sending data  SELECT COUNT(*) FROM t WHERE c LIKE ?\n");
	r->sql.tid = 0;
	r->sql.background = false;
	text_copy(r->sql.tid_reason, sizeof(r->sql.tid_reason), "thread pool");
	assert_text(r,
		"   +1.020s  sql     main during  31.00 s  app@localhost/shop [no thread: thread "
		"pool, perhaps 2231 2232]  Query, Sending data  SELECT COUNT(*) FROM t WHERE c "
		"LIKE ?\n");
	r->sql.elapsed_ns = 0;
	assert_text(r,
		"   +1.020s  sql     main during  ?  app@localhost/shop [no thread: thread "
		"pool, perhaps 2231 2232]  Query, Sending data  SELECT COUNT(*) FROM t WHERE c "
		"LIKE ?\n");
	data_sql_silence(r);
	assert_text(r,
		"   +2.020s  sql     main end  NO ANSWER for 2.00 s  Access denied for user "
		"'iostall'@'localhost'; to fix this: CREATE USER iostall@localhost\n");
	r->sql.error[0] = r->sql.missing[0] = '\0';
	r->sql.unanswered_ns = 0;
	r->sql.active = 3;
	r->sql.idle = 7;
	r->sql.left_out = 2;
	assert_text(r,
		"   +2.020s  sql     main end  3 active, 7 idle, 2 left out  10.11.6-MariaDB as "
		"iostall@localhost\n");
	text_copy(r->sql.missing, sizeof(r->sql.missing), "GRANT PROCESS ON *.* TO iostall");
	assert_text(r,
		"   +2.020s  sql     main end  3 active, 7 idle, 2 left out  10.11.6-MariaDB as "
		"iostall@localhost, which does not see everything; to fix this: GRANT PROCESS ON "
		"*.* TO iostall\n");
	data_close(r);
	assert_text(r,
		"incident 20261120T031207Z-3f9c\n"
		"  closed    after 23.40 s: clear\n"
		"  seen      12 stalls, 3 stuck operations in 14 lines, longest 4.20 s\n"
		"  lost      return_missed 2\n"
		"  cost      cpu 12 ms, armed after 3.4 ms, attach 2.1 ms, disarm 140 ms, longest turn 1.5 ms, "
		"latest timer 2.6 ms, memory 9.0 MiB and 11.0 MiB in the kernel\n");
}

static void test_text_lets_no_control_character_through(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	unsigned int seed = 42;

	(void)state;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct text out = { .buf = b->line_buf, .size = RECORD_LINE_SIZE };

		data_random(&b->first, i % RECORD_TYPE_COUNT, &seed);
		record_format_text(&b->first, b->first.mono_ns, &out);
		assert_false(out.overflow);
		for (size_t k = 0; k < out.len; k++) {
			unsigned char c = (unsigned char)out.buf[k];

			assert_true((c >= 0x20 && c != 0x7f) || c == '\n');
			/* C1 as UTF-8. */
			assert_false(c == 0xc2 && (unsigned char)out.buf[k + 1] < 0xa0);
		}
	}
}

static void test_a_path_cannot_start_a_line(void **state)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	char buf[8192];
	struct text out = TEXT_ON(buf);

	(void)state;
	data_operation(r, RECORD_STALL);
	text_copy(r->operation.path, sizeof(r->operation.path), "/a\n\x1b[2Jb\xff");
	r->operation.kstack[0] = '\0';
	record_format_text(r, 0, &out);
	assert_ptr_equal(strchr(buf, '\n'), buf + out.len - 1);
	assert_non_null(strstr(buf, "/a\\x0a\\x1b[2Jb\xef\xbf\xbd"));
}

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 us" },
		{ 999999, "999 us" },
		{ 3412000, "3.4 ms" },
		{ 512 * NSEC_PER_MSEC, "512 ms" },
		{ 999600 * NSEC_PER_USEC, "1.00 s" },
		{ 3219 * NSEC_PER_MSEC, "3.22 s" },
		{ 59999 * NSEC_PER_MSEC, "1m00s" },
		{ 123 * NSEC_PER_SEC, "2m03s" },
		{ 3720 * NSEC_PER_SEC, "1h02m" },
		{ UINT64_MAX, "5124095h34m" },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct text t = TEXT_ON(buf);

		record_add_duration(&t, cases[i].ns);
		assert_string_equal(buf, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_for_people),
		cmocka_unit_test(test_a_sample_without_an_answer),
		cmocka_unit_test(test_operations_for_people),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_text_lets_no_control_character_through),
		cmocka_unit_test(test_a_path_cannot_start_a_line),
		cmocka_unit_test(test_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
