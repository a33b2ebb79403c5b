/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The kernel's log: its records, and which of them are about storage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static void test_stopped_file_systems(void **state)
{
	static const struct {
		const char *text;
		enum kmsg_stopped what;
		const char *disk;
	} lines[] = {
		{ "EXT4-fs (sda1): Remounting filesystem read-only", KMSG_STOPPED_READ_ONLY,
			"sda1" },
		{ "BTRFS info (device dm-3 state EA): forced readonly", KMSG_STOPPED_READ_ONLY,
			"dm-3" },
		{ "BTRFS info (device sdb): forced readonly", KMSG_STOPPED_READ_ONLY, "sdb" },
		{ "XFS (dm-0): Filesystem has been shut down due to log error (0x2).",
			KMSG_STOPPED_SHUT_DOWN, "dm-0" },
		{ "XFS (vdb): Log I/O Error Detected.  Shutting down filesystem",
			KMSG_STOPPED_SHUT_DOWN, "vdb" },
		{ "EXT4-fs error (device sda1): ext4_lookup:1: comm x", KMSG_STOPPED_NOT, "" },
		{ "Remounting filesystem read-only", KMSG_STOPPED_NOT, "" },
		{ "EXT4-fs (: Remounting filesystem read-only", KMSG_STOPPED_READ_ONLY, ":" },
	};
	char disk[KMSG_DISK_SIZE];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(lines); i++) {
		*disk = '\0';
		assert_int_equal(kmsg_find_stopped(lines[i].text, disk), lines[i].what);
		assert_string_equal(disk, lines[i].disk);
	}
}

static void test_names_of_disks(void **state)
{
	static const struct {
		const char *text;
		const char *disk;
		bool named;
	} cases[] = {
		{ "I/O error, dev sdb, sector 8", "sdb", true },
		{ "EXT4-fs error (device sdb1): ext4_find_entry", "sdb", true },
		{ "I/O error, dev sdbc, sector 8", "sdb", false },
		{ "XFS (dm-1): log I/O error -5", "dm-1", true },
		{ "XFS (dm-12): log I/O error -5", "dm-1", false },
		{ "nvme0n1: I/O Cmd(0x2)", "nvme0n1", true },
		{ "I/O error, dev nvme0n1p2, sector 8", "nvme0n1", true },
		{ "I/O error, dev nvme0n12, sector 8", "nvme0n1", false },
		{ "I/O error, dev vsda, sector 1, then sda", "sda", true },
		{ "I/O error, dev loop1", "loop1", true },
		{ "", "sda", false },
		{ "sda", "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(kmsg_names_disk(cases[i].text, cases[i].disk), cases[i].named);
}

static void test_oom_kills(void **state)
{
	static const struct {
		const char *text;
		const char *comm;
		int32_t pid;
		bool in_group;
	} killed[] = {
		{ "Out of memory: Killed process 77 (mysqld) total-vm:1kB, anon-rss:2kB, UID:0 x",
			"mysqld", 77, false },
		{ "Memory cgroup out of memory: Killed process 8 (a (b) c) total-vm:1kB, shmem(x)",
			"a (b) c", 8, true },
		{ "Out of memory (oom_kill_allocating_task): Killed process 9 (x), UID 0, total-vm:1",
			"x", 9, false },
	};
	static const char *const others[] = {
		"oom-kill:constraint=CONSTRAINT_MEMCG,task=stress,pid=77,uid=0",
		"Out of memory: Killed process 77",
		"Out of memory: Killed process x (y)",
		"Out of memory: Killed process 99999999999 (y)",
		"Out of memory: Killed process 7 (a name that is too long and has no end",
	};
	char comm[16];
	bool in_group;
	int32_t pid;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(killed); i++) {
		assert_true(kmsg_is_oom_kill(killed[i].text));
		assert_true(kmsg_parse_killed(killed[i].text, &pid, comm, sizeof(comm), &in_group));
		assert_string_equal(comm, killed[i].comm);
		assert_int_equal(pid, killed[i].pid);
		assert_int_equal(in_group, killed[i].in_group);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_true(kmsg_is_oom_kill(others[i]));
		assert_false(kmsg_parse_killed(others[i], &pid, comm, sizeof(comm), &in_group));
		assert_false(kmsg_is_about_storage(others[i]));
	}
	assert_false(kmsg_is_oom_kill("mysqld invoked oom-killer: gfp_mask=0x0"));
}

/* Whoever may name a process may have it killed: its name is not what the kernel says of a disk. */
static void test_a_name_is_no_failure(void **state)
{
	static const char *const lines[] = {
		"Out of memory: Killed process 77 (I/O error) total-vm:1kB, anon-rss:2kB, UID:0 x",
		"Memory cgroup out of memory: Killed process 8 (EXT4-fs error) total-vm:1kB",
		"oom-kill:constraint=CONSTRAINT_MEMCG,task=timeout error,pid=77,uid=0",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_false(kmsg_is_failure(lines[i]));
	assert_true(kmsg_is_failure("I/O error, dev sda, sector 8"));
	/* A program tried to make a volume. */
	assert_false(kmsg_is_failure(
		"device-mapper: table: 253:0: multipath: error getting device (-EBUSY)"));
	assert_true(kmsg_is_failure("device-mapper: multipath: Failing path 8:0."));
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
	kmsg_begin(&kmsg, 0);
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

static void put(int fd, const char *record)
{
	assert_int_equal(write(fd, record, strlen(record)), strlen(record));
}

static bool watch(struct kmsg *kmsg, uint64_t now_ns, struct kmsg_line *ret_line)
{
	unsigned int budget = 4;

	return kmsg_watch(kmsg, now_ns, &budget, ret_line) > 0;
}

static bool next(struct kmsg *kmsg, struct kmsg_line *ret_line)
{
	unsigned int budget = 4;

	return kmsg_next(kmsg, &budget, ret_line) > 0;
}

#define NOW_NS (100 * 1000000000ULL)
#define SECOND_NS 1000000000ULL

/* The line that says why a freeze began comes some seconds before it is noticed. */
static void test_lines_from_before_an_incident(void **state)
{
	struct kmsg kmsg = {};
	struct kmsg_line line;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC | O_DIRECT), 0);
	kmsg.fd = fds[0];
	put(fds[1], "3,10,1,-;sd 0:0:0:0: rejecting I/O to offline device\n");
	assert_true(watch(&kmsg, NOW_NS - KMSG_RECENT_NS - SECOND_NS, &line));
	assert_false(watch(&kmsg, NOW_NS - KMSG_RECENT_NS - SECOND_NS, &line));
	put(fds[1], "4,11,2000,-;device-mapper: multipath: Failing path 8:16.\n");
	put(fds[1], "6,12,3,-;loop3: detected capacity change from 0 to 8\n");
	assert_true(watch(&kmsg, NOW_NS - 10 * SECOND_NS, &line));
	assert_true(watch(&kmsg, NOW_NS - 10 * SECOND_NS, &line));
	kmsg_begin(&kmsg, NOW_NS);
	put(fds[1], "3,13,4,-;I/O error, dev sda, sector 8\n");
	assert_true(next(&kmsg, &line));
	assert_string_equal(line.text, "device-mapper: multipath: Failing path 8:16.");
	assert_int_equal(line.ns, 2000000);
	assert_int_equal(line.read_ns, NOW_NS - 10 * SECOND_NS);
	assert_true(next(&kmsg, &line));
	assert_string_equal(line.text, "I/O error, dev sda, sector 8");
	assert_int_equal(line.read_ns, 0);
	assert_false(next(&kmsg, &line));
	assert_int_equal(kmsg.lost, 0);
	close(fds[0]);
	close(fds[1]);
}

static void test_many_lines_from_before_an_incident(void **state)
{
	struct kmsg kmsg = {};
	struct kmsg_line line;
	char record[64];
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC | O_DIRECT), 0);
	kmsg.fd = fds[0];
	for (unsigned int i = 0; i < KMSG_RECENT_MAX + 2; i++) {
		snprintf(record, sizeof(record), "3,%u,1,-;nvme0: timeout %u\n", i + 1, i);
		put(fds[1], record);
		assert_true(watch(&kmsg, NOW_NS, &line));
	}
	kmsg_begin(&kmsg, NOW_NS);
	for (unsigned int i = 2; i < KMSG_RECENT_MAX + 2; i++) {
		snprintf(record, sizeof(record), "nvme0: timeout %u", i);
		assert_true(next(&kmsg, &line));
		assert_string_equal(line.text, record);
	}
	assert_false(next(&kmsg, &line));
	close(fds[0]);
	close(fds[1]);
}

/* More is logged than is read: what is skipped before an incident is lost for it. */
static void test_lines_that_are_skipped(void **state)
{
	struct kmsg kmsg = {};
	struct kmsg_line line;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC | O_DIRECT), 0);
	kmsg.fd = fds[0];
	for (unsigned int i = 0; i < 4; i++)
		put(fds[1],
			(const char *[]){ "6,1,1,-;a\n", "6,2,1,-;b\n", "6,3,1,-;c\n",
				"6,4,1,-;d\n" }[i]);
	assert_false(watch(&kmsg, NOW_NS, &line));
	put(fds[1], "6,1004,2,-;e\n");
	assert_false(watch(&kmsg, NOW_NS + SECOND_NS, &line));
	kmsg_begin(&kmsg, NOW_NS + 2 * SECOND_NS);
	assert_int_equal(kmsg.lost, 999);
	/* By the next incident that is long ago. */
	assert_false(watch(&kmsg, NOW_NS + KMSG_RECENT_NS, &line));
	kmsg_begin(&kmsg, NOW_NS + KMSG_RECENT_NS);
	assert_int_equal(kmsg.lost, 0);
	close(fds[0]);
	close(fds[1]);
}

/* The one before could never read it: what has been opened since is kept. */
static void test_taking_over(void **state)
{
	struct kmsg kmsg = {}, before = { .fd = -1 };
	struct kmsg_line line;
	int fds[2], old[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC | O_DIRECT), 0);
	kmsg.fd = fds[0];
	put(fds[1], "3,10,1,-;I/O error, dev sda, sector 8\n");
	kmsg_take(&kmsg, &before);
	assert_int_equal(kmsg.fd, fds[0]);
	assert_true(next(&kmsg, &line));
	assert_string_equal(line.text, "I/O error, dev sda, sector 8");
	/* One that can read it goes on where it was. */
	assert_int_equal(pipe2(old, O_NONBLOCK | O_CLOEXEC | O_DIRECT), 0);
	before.fd = old[0];
	before.expected = 11;
	put(old[1], "3,12,1,-;I/O error, dev sdb, sector 8\n");
	kmsg_take(&kmsg, &before);
	assert_int_equal(before.fd, -1);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	assert_true(next(&kmsg, &line));
	assert_string_equal(line.text, "I/O error, dev sdb, sector 8");
	assert_int_equal(kmsg.lost, 1);
	kmsg_close(&kmsg);
	close(fds[1]);
	close(old[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_lines_that_are_skipped),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_no_record),
		cmocka_unit_test(test_storage),
		cmocka_unit_test(test_stopped_file_systems),
		cmocka_unit_test(test_names_of_disks),
		cmocka_unit_test(test_oom_kills),
		cmocka_unit_test(test_a_name_is_no_failure),
		cmocka_unit_test(test_taking_over),
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_lines_from_before_an_incident),
		cmocka_unit_test(test_many_lines_from_before_an_incident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
