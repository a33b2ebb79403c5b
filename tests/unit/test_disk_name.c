/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What names of disks say: partitions, and the paths of an NVMe disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/disk_name.h"

static void test_partitions(void **state)
{
	(void)state;
	assert_true(disk_name_is_partition_of("sdb1", "sdb"));
	assert_true(disk_name_is_partition_of("nvme0n1p2", "nvme0n1"));
	assert_false(disk_name_is_partition_of("sdb", "sdb"));
	assert_false(disk_name_is_partition_of("sdba1", "sdb"));
	assert_false(disk_name_is_partition_of("nvme0n12", "nvme0n1"));
	assert_false(disk_name_is_partition_of("nvme0n1p", "nvme0n1"));
	assert_false(disk_name_is_partition_of("sdb1", ""));
}

static void assert_path(const char *path, const char *disk)
{
	char name[32];

	assert_int_equal(disk_name_of_path(path, name, sizeof(name)), *disk != '\0');
	assert_string_equal(name, disk);
}

static void test_paths(void **state)
{
	char small[8];

	(void)state;
	assert_path("nvme0c0n1", "nvme0n1");
	assert_path("nvme10c2n13", "nvme10n13");
	assert_path("nvme0n1", "");
	assert_path("nvme0c0n1p1", "");
	assert_path("nvme0c0", "");
	assert_path("nvmec0n1", "");
	assert_path("nvme0cn1", "");
	assert_path("sdc0n1", "");
	assert_path("", "");
	assert_false(disk_name_of_path("nvme10c2n1", small, sizeof(small)));
	assert_string_equal(small, "");
}

static void test_what_is_on_a_disk(void **state)
{
	(void)state;
	assert_true(disk_name_is_on("sdb", "sdb"));
	assert_true(disk_name_is_on("sdb1", "sdb"));
	assert_true(disk_name_is_on("nvme0n1", "nvme0c1n1"));
	assert_true(disk_name_is_on("nvme0c1n1", "nvme0c1n1"));
	assert_true(disk_name_is_on("nvme0n1p2", "nvme0c1n1"));
	assert_false(disk_name_is_on("nvme0c1n1", "nvme0n1"));
	assert_false(disk_name_is_on("nvme0n2", "nvme0c1n1"));
	assert_false(disk_name_is_on("nvme1n1", "nvme0c1n1"));
}

/* Their drivers count a request as it begins, on older kernels. */
static void test_stacked_disks(void **state)
{
	static const char *const stacked[] = { "loop7", "dm-0", "md127", "drbd0", "bcache1",
		"zd16" };
	static const char *const others[] = { "sda", "vdb", "nvme0n1", "mmcblk0", "zda", "rbd0" };

	(void)state;
	for (unsigned int i = 0; i < sizeof(stacked) / sizeof(stacked[0]); i++) {
		assert_true(disk_name_is_stacked(stacked[i]));
		assert_false(disk_name_is_stacked(others[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_partitions),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_what_is_on_a_disk),
		cmocka_unit_test(test_stacked_disks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
