/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's log: its records, and which of them are about storage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "watch/kmsg.h"

static int parse(const char *s, struct kmsg_line *ret_line)
{
	return kmsg_parse(s, strlen(s), ret_line);
}

static void test_record(void **state)
{
	struct kmsg_line line;

	(void)state;
	assert_int_equal(parse("4,1234,5678901,-,caller=T12;nvme nvme0: I/O 12; QID 3 timeout\n"
			       " SUBSYSTEM=nvme\n DEVICE=c241:0\n",
				 &line),
		0);
	assert_int_equal(line.level, 4);
	assert_int_equal(line.sequence, 1234);
	assert_int_equal(line.ns, 5678901000);
	assert_true(line.by_kernel);
	assert_string_equal(line.text, "nvme nvme0: I/O 12; QID 3 timeout");
	assert_int_equal(parse("12,1,2,-;by somebody", &line), 0);
	assert_false(line.by_kernel);
	assert_int_equal(line.level, 4);
	assert_string_equal(line.text, "by somebody");
	assert_int_equal(parse("3,0,0,c;", &line), 0);
	assert_string_equal(line.text, "");
}

static void test_long_text(void **state)
{
	struct kmsg_line line;
	char buf[4000];

	(void)state;
	memset(buf, 'x', sizeof(buf));
	memcpy(buf, "3,1,2,-;", 8);
	assert_int_equal(kmsg_parse(buf, sizeof(buf), &line), 0);
	assert_int_equal(strlen(line.text), KMSG_TEXT_SIZE - 1);
}

static void test_no_record(void **state)
{
	static const char *const wrong[] = {
		"",
		"3",
		"3,",
		"3,1",
		"3,1,",
		"3,1,2",
		"3,1,2,-",
		"x,1,2,-;a",
		"3 1 2 -;a",
		"3;1;2;a",
		"3,1,18446744073709551615,-;a",
	};
	struct kmsg_line line;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(parse(wrong[i], &line), -EINVAL);
}

static void test_storage(void **state)
{
	static const char *const about[] = {
		"nvme nvme0: I/O 12 QID 3 timeout, aborting",
		"nvme0n1: I/O Cmd(0x2) @ LBA 0, 8 blocks, I/O Error (sct 0x3 / sc 0x71)",
		"sd 2:0:0:0: [sdb] tag#12 timing out command, waited 180s",
		"scsi host2: iscsi_eh: target reset",
		"ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen",
		"blk_update_request: I/O error, dev sdb, sector 0 op 0x0:(READ)",
		"I/O error, dev loop1, sector 16 op 0x1:(WRITE) flags 0x800",
		"Buffer I/O error on dev dm-1, logical block 0, lost async page write",
		"INFO: task mariadbd:2230 blocked for more than 120 seconds.",
		"EXT4-fs error (device sdb1): ext4_find_entry:1463: inode #2: comm ls",
		"XFS (sdb1): log I/O error -5",
		"md0: detected capacity change",
		"dm-3: error",
		"mmc0: Timeout waiting for hardware interrupt.",
		"JBD2: Detected IO errors while flushing file data on sdb1-8",
	};
	static const char *const other[] = {
		"",
		"eth0: link up",
		"data: ata",
		"atac is none",
		"model: nothing",
		"mdadm said hello",
		"EXT4-fs (sdb1): mounted filesystem with ordered data mode.",
		"audit: type=1400 apparmor=\"STATUS\"",
		"usb 1-1: new device",
		"looping",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(about); i++)
		assert_true(kmsg_is_about_storage(about[i]));
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(kmsg_is_about_storage(other[i]));
}

/* A datagram for each record is what the device's read() is like. */
static void test_reading(void **state)
{
	static const char *const records[] = {
		"6,10,1,-;eth0: link up\n",
		"3,11,2,-;sd 0:0:0:0: [sda] abort\n",
		"8,12,3,-;nvme by somebody\n",
		"rubbish",
		"4,15,4,-;nvme0: reset\n",
		"4,16,5,-;ata1: reset\n",
	};
	struct kmsg kmsg = {};
	struct kmsg_line line;
	unsigned int budget = 5;
	int fds[2];

	(void)state;
	assert_int_equal(kmsg_open(&kmsg, "/nonexistent/kmsg"), -ENOENT);
	assert_int_equal(kmsg.fd, -1);
	kmsg_begin(&kmsg);
	assert_int_equal(kmsg_next(&kmsg, &budget, &line), 0);
	assert_int_equal(budget, 5);
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC | O_DIRECT), 0);
	kmsg.fd = fds[0];
	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		assert_int_equal(write(fds[1], records[i], strlen(records[i])), strlen(records[i]));
	assert_int_equal(kmsg_next(&kmsg, &budget, &line), 1);
	assert_string_equal(line.text, "sd 0:0:0:0: [sda] abort");
	assert_int_equal(kmsg_next(&kmsg, &budget, &line), 1);
	assert_string_equal(line.text, "nvme0: reset");
	/* 13 and 14 never came. */
	assert_int_equal(kmsg.lost, 2);
	assert_int_equal(budget, 0);
	assert_int_equal(kmsg_next(&kmsg, &budget, &line), 0);
	budget = 5;
	assert_int_equal(kmsg_next(&kmsg, &budget, &line), 1);
	assert_int_equal(kmsg_next(&kmsg, &budget, &line), 0);
	kmsg_close(&kmsg);
	assert_int_equal(kmsg.fd, -1);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_no_record),
		cmocka_unit_test(test_storage),
		cmocka_unit_test(test_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
