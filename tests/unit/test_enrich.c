/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Names for the numbers of an operation: process, user, device, path, stack, mount namespace. */
#include "test_alloc.h"
#include "test_waits.h"
#include "test_watch_tree.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "enrich/enrich.h"
#include "enrich/mounts.h"
#include "util/cleanup.h"

struct fixture {
	struct tree *t;
	struct watch *watch;
	struct enrich *enrich;
	uint32_t generation;
	char udev[PATH_MAX + 8];
};

static uint64_t start_ns(uint64_t ticks)
{
	return ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void put_link(struct tree *t, const char *name, const char *target)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", t->root, name);
	tree_make_parents(path);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static const char *udev_of(struct fixture *f)
{
	snprintf(f->udev, sizeof(f->udev), "%s/udev", f->t->root);
	return f->udev;
}

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	tree_put_thread(f->t, 7, 7, "mariadbd", 'S', 1234, 1);
	tree_put(f->t, "proc/7/cgroup", "0::/system.slice/mariadb.service\n");
	put_link(f->t, "proc/7/exe", "/usr/sbin/mariadbd");
	tree_put(f->t, "proc/diskstats",
		" 254 0 vda 1 0 8 1 1 0 8 1 0 1 2\n 254 1 vda1 1 0 8 1 1 0 8 1 0 1 2\n");
	tree_put(f->t, "proc/self/ns/mnt", "%s", "");
	tree_put(f->t, "proc/kallsyms",
		"ffffffff81000100 T io_schedule\nffffffff81000200 T vfs_read\n");
	tree_put(f->t, "proc/self/mountinfo",
		"22 1 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n"
		"40 22 0:44 / /srv rw,relatime shared:5 master:1 - fuse.sshfs host:/srv rw\n"
		"41 22 0:45 / /nfs rw - nfs4 a-server-with-a-very-long-name.example.org:/export rw\n"
		"not a mount\n"
		"42 22 0:46 / /cut rw -\n"
		"43 22 0:47 / /plain rw - overlay overlay rw\n");
	tree_list_add(&f->t->process, "mariadbd");
	f->watch = tree_watch(f->t);
	tree_sample(f->t, f->watch, 0);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	*state = f;
	return 0;
}

/* A thread reads the mounts. */
static void refresh(struct fixture *f)
{
	for (unsigned int i = 0; i < 50; i++) {
		enrich_refresh(f->enrich);
		usleep(2000);
	}
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	enrich_free(f->enrich);
	watch_free(f->watch);
	return tree_fixture_free(f);
}

static const struct decoded_operation no_stack;

static struct record_operation enrich(struct fixture *f, struct record_operation op,
	struct decoded_operation decoded)
{
	enrich_operation(f->enrich, &decoded, &op);
	return op;
}

/* Others may keep the thread that reads from a CPU for longer than an operation waits for it. */
static struct record_operation enrich_answered(struct fixture *f, struct record_operation op,
	struct decoded_operation decoded)
{
	struct record_operation enriched;
	uint64_t unread;

	do {
		unread = enrich_names_unread(f->enrich);
		enriched = enrich(f, op, decoded);
	} while (enrich_names_unread(f->enrich) > unread && usleep(1000) == 0);
	return enriched;
}

static void assert_path(struct fixture *f, unsigned int minor, const char *path,
	const char *expected, bool truncated)
{
	struct decoded_operation d = { .path_in_fs = true };
	struct record_operation op = { .dev.minor = minor, .path_truncated = true, .fd = -1 };

	text_copy(op.path, sizeof(op.path), path);
	op = enrich(f, op, d);
	assert_string_equal(op.path, expected);
	assert_int_equal(op.path_truncated, truncated);
}

/* From the root of the file system to where it is mounted. */
static void test_path_in_file_system(void **state)
{
	struct fixture *f = *state;

	tree_put(f->t, "proc/self/mountinfo",
		"22 1 0:1 / / rw - ext4 /dev/a rw\n"
		"23 1 0:2 /sub/dir /bind rw - ext4 /dev/b rw\n"
		"24 1 0:2 / /whole\\040and\\134more rw - ext4 /dev/b rw\n"
		"25 1 0:2 / /again rw - ext4 /dev/b rw\n"
		"26 1 0:3 /data /only/bind rw - ext4 /dev/c rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_path(f, 1, ".../var/file", "/var/file", false);
	assert_path(f, 1, ".../", "/", false);
	/* All of it before a part of it, the first of two. */
	assert_path(f, 2, ".../sub/dir/x", "/whole and\\more/sub/dir/x", false);
	assert_path(f, 3, ".../data/db/t.ibd", "/only/bind/db/t.ibd", false);
	assert_path(f, 3, ".../data", "/only/bind", false);
	/* Not below what is mounted, not mounted, no name. */
	assert_path(f, 3, ".../database/t.ibd", ".../database/t.ibd", true);
	assert_path(f, 4, ".../x", ".../x", true);
	assert_path(f, 1, "", "", true);
}

static void assert_below(struct fixture *f, uint32_t major, const char *expected)
{
	char names[RECORD_LIST_SIZE];

	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), ++f->generation);
	enrich_below(f->enrich, major, 0, names, sizeof(names));
	assert_string_equal(names, expected);
}

/* What dm and md devices stand on, and a loop device whose file is on a disk. */
static void test_disks_below(void **state)
{
	struct fixture *f = *state;
	char names[RECORD_LIST_SIZE], path[RECORD_LIST_SIZE];

	tree_put(f->t, "proc/self/mountinfo",
		"22 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
		"23 1 0:44 / /srv rw - fuse.sshfs host:/srv rw\n"
		"24 1 254:0 / /srv/images rw - ext4 /dev/vda rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	tree_put(f->t, "sys/block/dm-0/dev", "253:0\n");
	tree_put(f->t, "sys/block/md0/dev", "9:0\n");
	tree_put(f->t, "sys/block/loop0/dev", "7:0\n");
	tree_put(f->t, "sys/dev/block/253:0/slaves/sdb", "%s", "");
	assert_below(f, 253, "sdb");
	tree_put(f->t, "sys/dev/block/9:0/slaves/sdc1", "%s", "");
	tree_put(f->t, "sys/dev/block/9:0/slaves/sdc2", "%s", "");
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), ++f->generation);
	enrich_below(f->enrich, 9, 0, names, sizeof(names));
	assert_true(strcmp(names, "sdc1\nsdc2") == 0 || strcmp(names, "sdc2\nsdc1") == 0);
	/* An array of 24 disks has all of them. */
	for (unsigned int i = 0; i < 22; i++) {
		snprintf(path, sizeof(path), "sys/dev/block/9:0/slaves/nvme%02un1p1", i);
		tree_put(f->t, path, "%s", "");
	}
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), ++f->generation);
	enrich_below(f->enrich, 9, 0, names, sizeof(names));
	assert_int_equal(strlen(names), 2 * 5 + 22 * 11 - 1);
	/* Of those for which there is no room, none is better than some. */
	for (unsigned int i = 22; i < 40; i++) {
		snprintf(path, sizeof(path), "sys/dev/block/9:0/slaves/nvme%02un1p1", i);
		tree_put(f->t, path, "%s", "");
	}
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), ++f->generation);
	enrich_below(f->enrich, 9, 0, names, sizeof(names));
	assert_string_equal(names, "");
	tree_put(f->t, "sys/dev/block/7:0/loop/backing_file", "/var/lib/x.img (deleted)\n");
	assert_below(f, 7, "vda1");
	tree_put(f->t, "sys/dev/block/7:0/loop/backing_file", "/srv/images/x.img\n");
	assert_below(f, 7, "vda");
	tree_put(f->t, "sys/dev/block/7:0/loop/backing_file", "/srv/imagesx\n");
	assert_below(f, 7, "");
	assert_below(f, 254, "");
	/* Nothing is looked up in an incident. */
	tree_put(f->t, "sys/dev/block/7:0/loop/backing_file", "/srv/images/x.img\n");
	enrich_below(f->enrich, 7, 0, names, sizeof(names));
	assert_string_equal(names, "");
}

static void put_stacked(struct fixture *f, const char *name, unsigned int major, unsigned int minor,
	const char *below)
{
	char path[96];

	snprintf(path, sizeof(path), "sys/block/%s/dev", name);
	tree_put(f->t, path, "%u:%u\n", major, minor);
	snprintf(path, sizeof(path), "sys/dev/block/%u:%u/slaves/%s", major, minor, below);
	tree_put(f->t, path, "%s", "");
}

static bool has_stacked(const struct record_stacked *stack, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(stack[i].dev_name, name) == 0)
			return true;
	return false;
}

/* Loop devices of packages are many. What a record leaves out is one of them. */
static void test_volumes_come_before_loop_devices(void **state)
{
	struct record_stacked stack[RECORD_STACKED_MAX];
	struct fixture *f = *state;
	uint32_t count, left_out;
	char name[32];

	put_stacked(f, "dm-0", 253, 0, "sda");
	for (unsigned int i = 0; i < RECORD_STACKED_MAX; i++) {
		snprintf(name, sizeof(name), "loop%u", i);
		put_stacked(f, name, 7, i, "sda");
	}
	put_stacked(f, "dm-1", 253, 1, "sda");
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 1);
	enrich_choose_stack(f->enrich, stack, &count, &left_out);
	assert_int_equal(count, RECORD_STACKED_MAX);
	assert_int_equal(left_out, 2);
	assert_true(has_stacked(stack, count, "dm-0") && has_stacked(stack, count, "dm-1"));
	for (unsigned int i = 0; i < RECORD_STACKED_MAX; i++) {
		char names[RECORD_BELOW_SIZE];

		enrich_below(f->enrich, 7, i, names, sizeof(names));
		assert_string_equal(names, "sda");
	}
}

/* Of many volumes a record has the one that is at work, with what it stands on. */
static void test_volumes_at_work_are_chosen(void **state)
{
	struct record_stacked stack[RECORD_STACKED_MAX];
	struct fixture *f = *state;
	uint32_t count, left_out;
	char name[32];

	for (unsigned int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "dm-%u", i);
		put_stacked(f, name, 253, i, i < 90 ? "sdz" : "md7");
	}
	put_stacked(f, "md7", 9, 7, "sda");
	put_stacked(f, "dm-100", 253, 100, "dm-91p1");
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 1);
	for (unsigned int i = 0; i < 3; i++) {
		tree_put(f->t, "proc/diskstats",
			" 253 55 dm-55 %u 0 8 1 1 0 8 1 0 %u 2\n"
			" 253 100 dm-100 9 0 8 1 1 0 8 1 3 %u 2\n",
			9 + i, 10 * i, 1000 * i);
		tree_sample(f->t, f->watch, 1000);
	}
	enrich_choose_stack(f->enrich, stack, &count, &left_out);
	assert_int_equal(count, RECORD_STACKED_MAX);
	assert_int_equal(left_out, 102 - RECORD_STACKED_MAX);
	assert_string_equal(stack[0].dev_name, "dm-100");
	assert_string_equal(stack[1].dev_name, "dm-91");
	assert_string_equal(stack[2].dev_name, "md7");
	assert_string_equal(stack[3].dev_name, "dm-55");
}

/* A logical volume on an encrypted md device, and a loop device; disks that stand on nothing. */
static void test_disks_are_learned_while_the_host_is_well(void **state)
{
	struct fixture *f = *state;
	struct record_stacked stack[RECORD_STACKED_MAX];
	uint32_t left_out;
	unsigned int seen = 0;
	unsigned long before;
	uint32_t count;

	tree_put(f->t, "proc/self/mountinfo", "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	tree_put(f->t, "sys/block/dm-0/dev", "253:0\n");
	tree_put(f->t, "sys/block/dm-0/dm/name", "vg0-mysql\n");
	tree_put(f->t, "sys/dev/block/253:0/slaves/dm-1", "%s", "");
	tree_put(f->t, "sys/block/dm-1/dev", "253:1\n");
	tree_put(f->t, "sys/block/dm-1/dm/name", "crypt_md0\n");
	tree_put(f->t, "sys/dev/block/253:1/slaves/md0", "%s", "");
	tree_put(f->t, "sys/block/md0/dev", "9:0\n");
	tree_put(f->t, "sys/dev/block/9:0/slaves/sda2", "%s", "");
	tree_put(f->t, "sys/block/loop0/dev", "7:0\n");
	tree_put(f->t, "sys/dev/block/7:0/loop/backing_file", "/var/lib/x.img\n");
	tree_put(f->t, "sys/block/loop1/dev", "7:1\n");
	tree_put(f->t, "sys/block/sda/dev", "8:0\n");
	before = allocations;
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 1);
	/* The event loop asks for no memory: a host that is short of it grants it late. */
	assert_int_equal(allocations, before);
	enrich_choose_stack(f->enrich, stack, &count, &left_out);
	assert_int_equal(count, 4);
	for (uint32_t i = 0; i < count; i++) {
		static const char *const expected[][3] = {
			{ "dm-0", "vg0-mysql", "dm-1" },
			{ "dm-1", "crypt_md0", "md0" },
			{ "md0", "", "sda2" },
			{ "loop0", "", "vda1" },
		};

		for (unsigned int j = 0; j < ARRAY_SIZE(expected); j++) {
			if (strcmp(stack[i].dev_name, expected[j][0]) != 0)
				continue;
			assert_string_equal(stack[i].label, expected[j][1]);
			assert_string_equal(stack[i].below, expected[j][2]);
			seen |= 1u << j;
		}
	}
	assert_int_equal(seen, 15);
	/* It is read again after a minute. */
	tree_put(f->t, "sys/block/dm-0/dm/name", "vg0-other\n");
	for (unsigned int i = 0; i < 59; i++)
		enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 1);
	enrich_choose_stack(f->enrich, stack, &count, &left_out);
	for (uint32_t i = 0; i < count; i++)
		assert_string_not_equal(stack[i].label, "vg0-other");
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 1);
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 1);
	enrich_choose_stack(f->enrich, stack, &count, &left_out);
	seen = 0;
	for (uint32_t i = 0; i < count; i++)
		seen += strcmp(stack[i].label, "vg0-other") == 0;
	assert_int_equal(seen, 1);
	/* And at once when a disk has appeared. */
	tree_put(f->t, "sys/block/dm-0/dm/name", "vg0-third\n");
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 2);
	enrich_choose_stack(f->enrich, stack, &count, &left_out);
	seen = 0;
	for (uint32_t i = 0; i < count; i++)
		seen += strcmp(stack[i].label, "vg0-third") == 0;
	assert_int_equal(seen, 1);
}

static void test_process(void **state)
{
	struct decoded_operation d = { .process_start_ns = start_ns(1234) };
	struct record_operation op =
		enrich_answered(*state, (struct record_operation){ .pid = 7 }, d);

	assert_string_equal(op.exe, "/usr/sbin/mariadbd");
	/* Not looked up for an operation, since something is armed then. */
	assert_string_equal(op.unit, "");
	/* The id is another process's. */
	d.process_start_ns = start_ns(99);
	op = enrich_answered(*state, (struct record_operation){ .pid = 7 }, d);
	assert_string_equal(op.exe, "");
	assert_string_equal(op.unit, "");
}

/* The thread that reads may need a while on a busy host. */
#define LEARN_CALLS 500

static void learn(struct fixture *f)
{
	enrich_learn_processes(f->enrich);
	usleep(10000);
}

static void test_unit_of_the_event(void **state)
{
	struct fixture *f = *state;
	struct decoded_operation d = {
		.process_start_ns = start_ns(1234),
		.cgroup_names = { "postgresql@15-main.service", "system-postgresql.slice" },
	};
	struct record_operation op = enrich_answered(f, (struct record_operation){ .pid = 7 }, d);

	assert_string_equal(op.unit, "postgresql@15-main.service");
	assert_string_equal(op.exe, "/usr/sbin/mariadbd");
	/* Of a process that is gone, too. */
	op = enrich(f, (struct record_operation){ .pid = 99 }, d);
	assert_string_equal(op.unit, "postgresql@15-main.service");
	op.unit[0] = '\0';
	/* Also over what was learned: the process may have been moved since. */
	text_copy(d.cgroup_names[0], sizeof(d.cgroup_names[0]), "3");
	text_copy(d.cgroup_names[1], sizeof(d.cgroup_names[1]), "workers");
	for (int call = 0; call < LEARN_CALLS && !op.unit[0]; call++) {
		learn(f);
		op = enrich(f, (struct record_operation){ .pid = 7 }, d);
	}
	assert_string_equal(op.unit, "mariadb.service");
	text_copy(d.cgroup_names[0], sizeof(d.cgroup_names[0]), "postgresql@15-main.service");
	op = enrich(f, (struct record_operation){ .pid = 7 }, d);
	assert_string_equal(op.unit, "postgresql@15-main.service");
}

static void put_watched(struct tree *t, int pid)
{
	char name[64];

	tree_put_thread(t, pid, pid, "mariadbd", 'S', 500, 1);
	snprintf(name, sizeof(name), "proc/%d/cgroup", pid);
	tree_put(t, name, "0::/system.slice/mariadb@%d.service\n", pid);
}

/* Watched processes are learned before anything is armed, a few at a time, each in its turn. */
static void test_learning(void **state)
{
	struct fixture *f = *state;
	struct decoded_operation d = { .process_start_ns = start_ns(500) };
	unsigned int known = 0, before;
	char want[64];

	for (int pid = 101; pid <= 120; pid++)
		put_watched(f->t, pid);
	tree_sample(f->t, f->watch, 60000);
	for (int call = 0; call < LEARN_CALLS && known < 20; call++) {
		learn(f);
		before = known;
		known = 0;
		for (int pid = 101; pid <= 120; pid++) {
			struct record_operation op =
				enrich(f, (struct record_operation){ .pid = pid }, d);

			snprintf(want, sizeof(want), "mariadb@%d.service", pid);
			known += strcmp(op.unit, want) == 0;
		}
		assert_true(known - before <= 8);
	}
	assert_int_equal(known, 20);
}

/* Without NSS: it may ask a directory server, over a network that hangs as well. */
static void test_user(void **state)
{
	struct decoded_operation d = { .uid = 0 };
	struct record_operation op = enrich(*state, (struct record_operation){ 0 }, d);

	assert_string_equal(op.user, "root");
	d.uid = 3999999999u;
	op = enrich(*state, (struct record_operation){ 0 }, d);
	assert_string_equal(op.user, "3999999999");
	/* Who submitted the request has ended. */
	d.uid = UINT32_MAX;
	op = enrich(*state, (struct record_operation){ 0 }, d);
	assert_string_equal(op.user, "");
}

static struct record_operation on_device(struct fixture *f, uint32_t major, uint32_t minor)
{
	return enrich(f, (struct record_operation){ .dev.major = major, .dev.minor = minor },
		no_stack);
}

/* Until a thread has read the mounts. */
static void await_dev_name(struct fixture *f, unsigned int major, unsigned int minor,
	const char *want)
{
	for (unsigned int i = 0; i < WAITS_MAX && strcmp(on_device(f, major, minor).dev_name, want);
		i++) {
		enrich_refresh(f->enrich);
		usleep(1000);
	}
	assert_string_equal(on_device(f, major, minor).dev_name, want);
}

static void test_device(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(on_device(f, 254, 0).dev_name, "vda");
	/* A disk's own name comes before that of what is mounted from it. */
	assert_string_equal(on_device(f, 254, 1).dev_name, "vda1");
	assert_string_equal(on_device(f, 0, 44).dev_name, "host:/srv");
	assert_string_equal(on_device(f, 0, 45).dev_name, "a-server-with-a-very-long-name.");
	assert_string_equal(on_device(f, 0, 46).dev_name, "");
	assert_string_equal(on_device(f, 0, 47).dev_name, "overlay");
	assert_string_equal(on_device(f, 0, 99).dev_name, "");
}

/* Their numbers are of no disk, but what is mounted tells it. */
static void test_disk_of_an_anonymous_device(void **state)
{
	struct fixture *f = *state;

	tree_put(f->t, "sys/block/dm-0/dev", "253:0\n");
	tree_put(f->t, "sys/block/dm-0/dm/name", "vg0-mysql\n");
	tree_put(f->t, "sys/dev/block/253:0/slaves/vda1/dev", "254:1\n");
	tree_put(f->t, "proc/self/mountinfo",
		"22 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
		"30 22 0:30 / /data rw - btrfs /dev/vdb2 rw,subvol=/\n"
		"31 22 0:31 / /var/lib/mysql rw - btrfs /dev/mapper/vg0-mysql rw\n"
		"32 22 0:32 / /zfs rw - zfs pool/data rw\n"
		"40 22 0:40 / /c/1 rw - overlay overlay rw,lowerdir=/low\\040er,upperdir=/docker/1,workdir=/w\n"
		"41 22 0:41 / /c/2 rw - overlay overlay ro,lowerdir=/data/a:/docker/b\n"
		"42 22 0:42 / /c/3 rw - overlay overlay ro,lowerdir=l/A:l/B\n"
		"43 40 0:43 / /c/1/4 rw - overlay overlay rw,lowerdir=/x,upperdir=/c/1/up,workdir=/w\n"
		"44 22 0:44 / /c/5 rw - overlay overlay rw,lowerdir=/x,upperdir=/c/5/up,workdir=/w\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_string_equal(on_device(f, 0, 30).dev_name, "vdb2");
	/* Which volume it is has not been learned yet. */
	assert_string_equal(on_device(f, 0, 31).dev_name, "/dev/mapper/vg0-mysql");
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), 1);
	assert_string_equal(on_device(f, 0, 31).dev_name, "dm-0");
	assert_string_equal(on_device(f, 0, 32).dev_name, "pool/data");
	assert_string_equal(on_device(f, 0, 40).dev_name, "vda1");
	assert_string_equal(on_device(f, 0, 41).dev_name, "vdb2");
	assert_string_equal(on_device(f, 0, 42).dev_name, "overlay");
	assert_string_equal(on_device(f, 0, 43).dev_name, "vda1");
	/* It hides what it stands on. */
	assert_string_equal(on_device(f, 0, 44).dev_name, "overlay");
}

static void assert_cause(struct fixture *f, unsigned int minor, enum record_op kind,
	const char *kstack, const char *cause)
{
	struct record_operation op = { .op = kind, .probe = RECORD_PROBE_vfs, .dev.minor = minor };

	text_copy(op.kstack, sizeof(op.kstack), kstack);
	assert_string_equal(record_cause_text(enrich_cause(f->enrich, &op)), cause);
}

/* A file system at a server sleeps where one on a disk does, and in functions of its own. */
static void test_cause_on_a_file_server(void **state)
{
	static const char page[] =
		"folio_wait_bit_common+0x13d\nfilemap_update_page+0x2a\nvfs_read";
	static const char own[] = "wait_for_response+0xc2\ncompound_send_recv+0x4c8\nvfs_read";
	static const char *const types[][2] = { { "fuse", "FUSE server" },
		{ "fuse.sshfs", "FUSE server" }, { "nfs", "NFS server" }, { "nfs4", "NFS server" },
		{ "cifs", "network file server" }, { "smb3", "network file server" },
		{ "ceph", "network file server" }, { "virtiofs", "network file server" },
		{ "fuseblk", "page" }, { "nfsd", "page" }, { "btrfs", "page" },
		{ "overlay", "page" } };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const bool is_server = strcmp(types[i][1], "page") != 0;

		tree_put(f->t, "proc/self/mountinfo", "40 22 0:44 / /srv rw - %s x rw\n",
			types[i][0]);
		enrich_free(f->enrich);
		assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
		assert_cause(f, 44, RECORD_OP_read, page, types[i][1]);
		assert_cause(f, 44, RECORD_OP_fault, "folio_wait_bit_common\nfilemap_fault",
			types[i][1]);
		assert_cause(f, 44, RECORD_OP_fsync, "folio_wait_writeback\nfile_write_and_wait",
			is_server ? types[i][1] : "writeback");
		assert_cause(f, 44, RECORD_OP_read, own, is_server ? types[i][1] : "");
		assert_cause(f, 44, RECORD_OP_write, "rwsem_down_write_slowpath\ndown_write",
			"read-write lock");
		/* flock(2) may wait for a program, and without a stack nothing is known. */
		assert_cause(f, 44, RECORD_OP_other, "flock_lock_inode_wait", "");
		assert_cause(f, 44, RECORD_OP_read, "", "");
		assert_cause(f, 45, RECORD_OP_read, page, "page");
	}
}

/* A request of aio or io_uring is at the server, though no thread sleeps for it. */
static void test_cause_of_a_request_to_a_server(void **state)
{
	struct fixture *f = *state;
	const struct record_operation op = { .op = RECORD_OP_read, .probe = RECORD_PROBE_aio };
	struct record_operation on_nfs = op, on_disk = op;

	on_nfs.dev.minor = 45;
	on_disk.dev.major = 254;
	assert_string_equal(record_cause_text(enrich(f, on_nfs, no_stack).waits_for), "NFS server");
	assert_string_equal(record_cause_text(enrich(f, on_disk, no_stack).waits_for), "");
}

/* Two functions of the kernel have the same name; the file tells which one it is. */
static void test_cause_of_a_list_of_mounts(void **state)
{
	static const char stack[] = "rwsem_down_read_slowpath\ndown_read\nm_start\nseq_read_iter";
	struct fixture *f = *state;
	struct record_operation op = { .op = RECORD_OP_read, .probe = RECORD_PROBE_vfs };

	text_copy(op.kstack, sizeof(op.kstack), stack);
	text_copy(op.path, sizeof(op.path), "/proc/17/smaps");
	assert_int_equal(enrich_cause(f->enrich, &op), RECORD_CAUSE_memory_map_lock);
	text_copy(op.path, sizeof(op.path), "/proc/17/mountinfo");
	assert_int_equal(enrich_cause(f->enrich, &op), RECORD_CAUSE_read_write_lock);
}

/* The overlays of containers are the last mounts of a host, behind three others for each. */
static void test_many_mounts(void **state)
{
	struct fixture *f = *state;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	fprintf(file, "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n");
	for (unsigned int i = 0; i < 3000; i++)
		fprintf(file, "%u 22 0:%u / /run/docker/netns/%u rw - nsfs nsfs rw\n", 100 + i,
			1000 + i, i);
	for (unsigned int i = 0; i < 1000; i++)
		fprintf(file,
			"%u 22 0:%u / /var/lib/docker/overlay2/%u/merged rw - overlay overlay "
			"rw,lowerdir=/l,upperdir=/var/lib/docker/overlay2/%u/diff,workdir=/w\n",
			4000 + i, 5000 + i, i, i);
	fclose(file);
	tree_put_bytes(f->t, "proc/self/mountinfo", text, size);
	free(text);
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	/* On a busy host it takes longer than the start waits. */
	for (unsigned int i = 0; i < 5000 && !*on_device(f, 0, 5000).dev_name; i++) {
		enrich_refresh(f->enrich);
		usleep(2000);
	}
	assert_string_equal(on_device(f, 0, 5000).dev_name, "vda1");
	assert_string_equal(on_device(f, 0, 5999).dev_name, "vda1");
}

static void test_mounts_without_room(void **state)
{
	static const char text[] = "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
				   "23 1 254:2 / /a rw - ext4 /dev/vda2 rw\n"
				   "24 1 254:3 / /b rw - ext4 /dev/vda3 rw\n"
				   "nothing\n";
	struct mount list[2];
	struct mounts mounts = { .list = list }, copy = { 0 };

	(void)state;
	mounts_parse(&mounts, 2, text, strlen(text));
	assert_int_equal(mounts.count, 2);
	assert_int_equal(mounts.left_out, 1);
	assert_int_equal(mounts_copy(&copy, &mounts), 0);
	assert_int_equal(copy.count, 2);
	assert_int_equal(copy.left_out, 1);
	assert_string_equal(mounts_find_device(&copy, 254, 2)->point, "/a");
	mounts_done(&copy);
	mounts_parse(&mounts, 2, text, 0);
	assert_int_equal(mounts.count + mounts.left_out, 0);
}

static void test_a_file_system_of_several_disks(void **state)
{
	struct fixture *f = *state;

	tree_put(f->t, "proc/self/mountinfo",
		"22 1 0:30 / / rw - bcachefs /dev/vda1:/dev/vdb rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_string_equal(on_device(f, 0, 30).dev_name, "vda1");
}

/* Of several disks the one that hangs, or is the busiest, is the one that is waited for. */
static void test_the_disk_of_several_that_is_waited_for(void **state)
{
	struct fixture *f = *state;
	struct record_dev numbers[4];

	tree_put(f->t, "sys/fs/btrfs/features/acl", "%s", "");
	tree_put(f->t, "sys/fs/btrfs/0d4b1d1b/devices/vda1", "%s", "");
	tree_put(f->t, "sys/fs/btrfs/0d4b1d1b/devices/vdb", "%s", "");
	tree_put(f->t, "sys/fs/btrfs/aaaaaaaa/devices/vdc", "%s", "");
	tree_put(f->t, "proc/self/mountinfo",
		"22 1 0:30 / / rw - btrfs /dev/vda1 rw\n"
		"23 1 0:31 / /c rw - btrfs /dev/vdc rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), ++f->generation);
	tree_put(f->t, "proc/diskstats",
		" 254 0 vda 1 0 8 1 1 0 8 1 0 1 2\n 254 16 vdb 1 0 8 1 1 0 8 1 0 1 2\n"
		" 254 32 vdc 1 0 8 1 1 0 8 1 0 1 2\n");
	tree_sample(f->t, f->watch, 1000);
	assert_string_equal(on_device(f, 0, 30).dev_name, "vda1");
	tree_put(f->t, "proc/diskstats",
		" 254 0 vda 9 0 8 1 1 0 8 1 0 101 2\n 254 16 vdb 9 0 8 1 1 0 8 1 0 501 2\n"
		" 254 32 vdc 9 0 8 1 1 0 8 1 0 901 2\n");
	tree_sample(f->t, f->watch, 1000);
	await_dev_name(f, 0, 30, "vdb");
	assert_string_equal(on_device(f, 0, 31).dev_name, "vdc");
	/* vda hangs while vdb is busy. */
	for (unsigned int i = 0; i < 2; i++) {
		tree_put(f->t, "proc/diskstats",
			" 254 0 vda 9 0 8 1 1 0 8 1 1 101 2\n"
			" 254 16 vdb %u 0 8 1 1 0 8 1 0 %u 2\n 254 32 vdc 9 0 8 1 1 0 8 1 0 901 2\n",
			20 + i, 1000 + 500 * i);
		tree_sample(f->t, f->watch, 1000);
	}
	assert_string_equal(on_device(f, 0, 30).dev_name, "vda1");
	/* trace.device may name any of them. */
	assert_int_equal(enrich_numbers_of_disk(f->enrich, "vdb", numbers, 4), 1);
	assert_int_equal(numbers[0].minor, 30);
	assert_int_equal(enrich_numbers_of_disk(f->enrich, "vda", numbers, 4), 1);
	assert_int_equal(enrich_numbers_of_disk(f->enrich, "vdd", numbers, 4), 0);
}

/* A device that belongs to a pool, by the entry in udev's database. */
static void put_pool(struct fixture *f, unsigned int minor, const char *name, const char *pool)
{
	char path[64];

	snprintf(path, sizeof(path), "udev/b254:%u", minor);
	tree_put(f->t, path, "S:disk/by-id/x\nI:4711\nE:ID_FS_LABEL=%s\nE:ID_FS_TYPE=zfs_member\n",
		pool);
	snprintf(path, sizeof(path), "sys/dev/block/254:%u/uevent", minor);
	tree_put(f->t, path, "MAJOR=254\nMINOR=%u\nDEVNAME=%s\nDEVTYPE=partition\n", minor, name);
}

/* A dataset of ZFS names its pool, and neither /proc nor /sys the disks of that. */
static void test_the_disks_of_a_pool(void **state)
{
	struct fixture *f = *state;

	put_pool(f, 1, "vda1", "tank");
	put_pool(f, 17, "vdb1", "tank");
	put_pool(f, 33, "vdc1", "archive");
	tree_put(f->t, "udev/b254:49", "E:ID_FS_LABEL=tank\nE:ID_FS_TYPE=ext4\n");
	tree_put(f->t, "sys/dev/block/254:49/uevent", "DEVNAME=vdd1\n");
	tree_put(f->t, "udev/b254:65", "E:ID_FS_LABEL=tank\nE:ID_FS_TYPE=zfs_member\n");
	tree_put(f->t, "udev/+acpi:x", "%s", "");
	tree_put(f->t, "proc/self/mountinfo",
		"22 1 0:30 / / rw - zfs tank/ROOT/debian rw\n"
		"23 1 0:31 / /archive rw - zfs archive rw\n"
		"24 1 0:32 / /gone rw - zfs tan/x rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	enrich_learn_disks(f->enrich, f->t->sysfs, udev_of(f), ++f->generation);
	tree_put(f->t, "proc/diskstats",
		" 254 0 vda 1 0 8 1 1 0 8 1 0 1 2\n 254 16 vdb 1 0 8 1 1 0 8 1 0 1 2\n"
		" 254 32 vdc 1 0 8 1 1 0 8 1 0 1 2\n");
	tree_sample(f->t, f->watch, 1000);
	tree_put(f->t, "proc/diskstats",
		" 254 0 vda 9 0 8 1 1 0 8 1 0 101 2\n 254 16 vdb 9 0 8 1 1 0 8 1 0 501 2\n"
		" 254 32 vdc 9 0 8 1 1 0 8 1 0 901 2\n");
	tree_sample(f->t, f->watch, 1000);
	await_dev_name(f, 0, 30, "vdb1");
	assert_string_equal(on_device(f, 0, 31).dev_name, "vdc1");
	/* A pool that is not known keeps its name. */
	assert_string_equal(on_device(f, 0, 32).dev_name, "tan/x");
}

/*
 * The mounts of the host are those of process 1. A container may have file systems that are mounted
 * nowhere else; their paths mean nothing on the host.
 */
static void test_mounts_of_other_namespaces(void **state)
{
	struct fixture *f = *state;
	char path[RECORD_PATH_SIZE] = ".../x";

	tree_put(f->t, "proc/1/mountinfo",
		"22 1 254:1 / / rw - ext4 /dev/vda1 rw\n40 22 0:50 / /h rw - nfs4 a:/h rw\n"
		"41 22 254:0 / /home rw - ext4 /dev/vda rw\n");
	tree_put(f->t, "proc/7/ns/mnt", "%s", "");
	/* Of the second, a program in the container is who mounted it. */
	tree_put(f->t, "proc/7/mountinfo",
		"60 1 0:99 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/home/u/containers/1/diff\n"
		"61 60 0:98 / /pool rw - btrfs /dev/vda1 rw\n"
		"63 60 0:97 / /pool/c/2 rw - overlay overlay rw,lowerdir=/l,upperdir=/pool/2\n"
		"62 60 0:50 / /other rw - tmpfs tmpfs rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_string_equal(on_device(f, 0, 99).dev_name, "vda");
	assert_string_equal(on_device(f, 0, 97).dev_name, "vda1");
	assert_string_equal(on_device(f, 0, 98).dev_name, "vda1");
	assert_string_equal(on_device(f, 0, 50).dev_name, "a:/h");
	assert_string_equal(on_device(f, 0, 44).dev_name, "");
	assert_false(enrich_path_in_fs(f->enrich, 0, 98, path, sizeof(path)));
}

/* Mounts that came since are known after the next refresh, which reads only what has changed. */
static void test_refresh(void **state)
{
	struct fixture *f = *state;
	struct enrich *e = NULL;
	char path[2 * PATH_MAX];
	struct stat st;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		print_message("a mount namespace cannot be made: %s\n", strerror(errno));
		skip();
	}
	tree_remove(f->t, "proc/self/mountinfo");
	put_link(f->t, "proc/self/mountinfo", "/proc/self/mountinfo");
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &e), 0);
	enrich_free(f->enrich);
	f->enrich = e;
	tree_put(f->t, "mnt/file", "%s", "");
	snprintf(path, sizeof(path), "%s/mnt", f->t->root);
	assert_int_equal(mount("of-this-test", path, "tmpfs", 0, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_string_equal(on_device(f, major(st.st_dev), minor(st.st_dev)).dev_name, "");
	await_dev_name(f, major(st.st_dev), minor(st.st_dev), "of-this-test");
	refresh(f);
	assert_string_equal(on_device(f, major(st.st_dev), minor(st.st_dev)).dev_name,
		"of-this-test");
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	await_dev_name(f, major(st.st_dev), minor(st.st_dev), "");
}

static void assert_kernel_stack(struct fixture *f, uint64_t address, const char *want)
{
	char stack[RECORD_STACK_SIZE];

	enrich_kernel_stack(f->enrich, &address, 1, false, stack);
	assert_string_equal(stack, want);
}

/* Until a thread has read them. */
static void await_kernel_stack(struct fixture *f, uint64_t address, const char *want)
{
	char stack[RECORD_STACK_SIZE];

	for (unsigned int i = 0; i < 20000; i++) {
		enrich_kernel_stack(f->enrich, &address, 1, false, stack);
		if (strcmp(stack, want) == 0)
			return;
		usleep(2000);
		enrich_refresh(f->enrich);
	}
	assert_string_equal(stack, want);
}

/* A module that is loaded, removed, and loaded again elsewhere after the start. */
static void test_modules_that_come_and_go(void **state)
{
	const uint64_t first = 0xffffffffc0000042, second = 0xffffffffc0008042;
	struct fixture *f = *state;

	assert_kernel_stack(f, first, "0xffffffffc0000042");
	tree_put(f->t, "proc/kallsyms",
		"ffffffff81000200 T vfs_read\nffffffffc0000040 t xfs_read\t[xfs]\n");
	tree_put(f->t, "proc/modules", "xfs 4096 1 - Live 0xffffffffc0000000\n");
	await_kernel_stack(f, first, "xfs_read+0x2");
	tree_put(f->t, "proc/kallsyms", "ffffffff81000200 T vfs_read\n");
	tree_put(f->t, "proc/modules", "%s", "");
	await_kernel_stack(f, first, "0xffffffffc0000042");
	tree_put(f->t, "proc/kallsyms",
		"ffffffff81000200 T vfs_read\nffffffffc0000040 t nfs_read\t[nfs]\n"
		"ffffffffc0008040 t xfs_read\t[xfs]\n");
	tree_put(f->t, "proc/modules",
		"xfs 4096 1 - Live 0xffffffffc0008000\nnfs 4096 1 - Live 0xffffffffc0000000\n");
	await_kernel_stack(f, first, "nfs_read+0x2");
	assert_kernel_stack(f, second, "xfs_read+0x2");
	/* When they cannot be read any more, those that are known stay. */
	tree_put(f->t, "proc/kallsyms", "%s", "");
	tree_put(f->t, "proc/modules", "%s", "");
	refresh(f);
	assert_kernel_stack(f, second, "xfs_read+0x2");
}

/* A FUSE file system is mounted, so the function in which threads wait for it must be known. */
static void test_where_threads_wait_for_servers(void **state)
{
	struct event_server_waits waits;
	struct fixture *f = *state;

	assert_false(enrich_find_server_waits(f->enrich, &waits));
	assert_int_equal(waits.count, 0);
	tree_put(f->t, "proc/kallsyms",
		"ffffffff81000100 t request_wait_answer\nffffffff81000200 T vfs_read\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_true(enrich_find_server_waits(f->enrich, &waits));
	assert_int_equal(waits.count, 1);
	assert_int_equal(waits.ranges[0].size, 0x100);
	/* Without one there is nothing to know; without any symbol nothing is known. */
	tree_put(f->t, "proc/kallsyms", "ffffffff81000200 T vfs_read\n");
	tree_put(f->t, "proc/self/mountinfo", "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_true(enrich_find_server_waits(f->enrich, &waits));
	tree_put(f->t, "proc/kallsyms", "%s", "");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_false(enrich_find_server_waits(f->enrich, &waits));
}

/* Who changes modules holds their lock: nobody waits for that. */
static void test_modules_that_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/modules", f->t->procfs);
	assert_int_equal(mkfifo(path, 0644), 0);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	refresh(f);
	assert_kernel_stack(f, 0xffffffff81000201, "vfs_read+0x1");
	/* The thread reads on to its end. */
	close(fd);
}

/* Whoever reads them hangs, at the start and later, and nobody waits for that. */
static void test_mounts_that_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	struct enrich *e;
	char path[PATH_MAX + 32];
	int fd;

	tree_remove(f->t, "proc/self/mountinfo");
	snprintf(path, sizeof(path), "%s/self/mountinfo", f->t->procfs);
	assert_int_equal(mkfifo(path, 0644), 0);
	/* The reader that tells of changes opens it, too. */
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &e), 0);
	enrich_free(f->enrich);
	f->enrich = e;
	refresh(f);
	assert_string_equal(on_device(f, 0, 44).dev_name, "");
	/* Whoever waited would do so for ever. */
	close(fd);
}

/* A file that tells of no change is not read again. */
static void test_refresh_without_change(void **state)
{
	struct fixture *f = *state;

	tree_put(f->t, "proc/self/mountinfo", "50 22 0:99 / /new rw - tmpfs new rw\n");
	refresh(f);
	assert_string_equal(on_device(f, 0, 99).dev_name, "");
	assert_string_equal(on_device(f, 0, 44).dev_name, "host:/srv");
}

static void test_users_again(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX + 8];
	static struct enrich_users users;

	snprintf(path, sizeof(path), "%s/passwd", f->t->root);
	tree_put(f->t, "passwd", "super:x:0:0:::\n");
	enrich_read_users(path, &users);
	enrich_set_users(f->enrich, &users);
	assert_string_equal(enrich(f, (struct record_operation){ 0 }, no_stack).user, "super");
	/* A file that cannot be read changes nothing. */
	unlink(path);
	enrich_read_users(path, &users);
	enrich_set_users(f->enrich, &users);
	assert_string_equal(enrich(f, (struct record_operation){ 0 }, no_stack).user, "super");
}

static struct record_operation with_path(struct fixture *f, const char *path, bool truncated,
	int fd)
{
	struct record_operation op = { .pid = 7, .tid = 8, .fd = fd, .path_truncated = truncated };

	text_copy(op.path, sizeof(op.path), path);
	return enrich(f, op, no_stack);
}

static void test_truncated_path(void **state)
{
	struct fixture *f = *state;
	struct record_operation op;

	put_link(f->t, "proc/8/fd/41", "/srv/very/deep/db/table.ibd");
	put_link(f->t, "proc/8/fd/42", "/srv/very/deep/otherdb/table.ibd");
	put_link(f->t, "proc/8/fd/43", "/table.ibd");
	op = with_path(f, ".../db/table.ibd", true, 41);
	assert_string_equal(op.path, "/srv/very/deep/db/table.ibd");
	assert_false(op.path_truncated);
	/* The descriptor's link is another file's by now, shorter, gone, or was never known. */
	op = with_path(f, ".../db/table.ibd", true, 42);
	assert_string_equal(op.path, ".../db/table.ibd");
	assert_true(op.path_truncated);
	assert_string_equal(with_path(f, ".../db/table.ibd", true, 43).path, ".../db/table.ibd");
	assert_string_equal(with_path(f, ".../db/table.ibd", true, 44).path, ".../db/table.ibd");
	assert_string_equal(with_path(f, ".../db/table.ibd", true, -1).path, ".../db/table.ibd");
	/* Whole paths are the kernel's own. */
	assert_string_equal(with_path(f, "/db/table.ibd", false, 41).path, "/db/table.ibd");
	assert_string_equal(with_path(f, "", true, 41).path, "");
}

static void test_stack(void **state)
{
	struct decoded_operation d = {
		.stack_len = 3,
		.stack = { 0xffffffff81000105, 0xffffffff81000210, 0x1234 },
	};
	struct record_operation op = enrich(*state, (struct record_operation){ 0 }, d);

	assert_string_equal(op.kstack, "io_schedule+0x5\nvfs_read+0x10\n0x1234");
	assert_false(op.kstack_while_blocked);
	/* A frame of 0 ends it. */
	d.stack[1] = 0;
	op = enrich(*state, (struct record_operation){ 0 }, d);
	assert_string_equal(op.kstack, "io_schedule+0x5");
	op = enrich(*state, (struct record_operation){ 0 }, no_stack);
	assert_string_equal(op.kstack, "");
}

/* vfs_read is called once, by io_schedule; between is the code that watches its return. */
static void test_trampolines_are_no_calls(void **state)
{
	const uint64_t read = 0xffffffff81000210, entry = 0xffffffff81000205,
		       code = 0xffffffffc0001234, caller = 0xffffffff81000105;
	const struct {
		uint64_t addresses[5];
		const char *want;
	} stacks[] = {
		{ { read, code, entry, caller }, "vfs_read+0x10\nio_schedule+0x5" },
		{ { read, code, entry, code, entry }, "vfs_read+0x10" },
		{ { read, code, entry }, "vfs_read+0x10" },
		{ { read, code, caller }, "vfs_read+0x10\nio_schedule+0x5" },
		/* A module without names. */
		{ { read, code, code, caller },
			"vfs_read+0x10\n0xffffffffc0001234\n0xffffffffc0001234\nio_schedule+0x5" },
		{ { read, code }, "vfs_read+0x10\n0xffffffffc0001234" },
		{ { code, read, entry }, "0xffffffffc0001234\nvfs_read+0x10\nvfs_read+0x5" },
		{ { code, code, code },
			"0xffffffffc0001234\n0xffffffffc0001234\n0xffffffffc0001234" },
	};
	struct fixture *f = *state;
	char stack[RECORD_STACK_SIZE];

	for (unsigned int i = 0; i < ARRAY_SIZE(stacks); i++) {
		enrich_kernel_stack(f->enrich, stacks[i].addresses, ARRAY_SIZE(stacks[i].addresses),
			false, stack);
		assert_string_equal(stack, stacks[i].want);
	}
}

static void test_mount_namespace(void **state)
{
	struct fixture *f = *state;
	char path[2 * PATH_MAX];
	struct record_operation op;
	struct stat st;

	snprintf(path, sizeof(path), "%s/self/ns/mnt", f->t->procfs);
	assert_int_equal(stat(path, &st), 0);
	op = enrich(f, (struct record_operation){ .mount_ns = (uint32_t)st.st_ino }, no_stack);
	assert_int_equal(op.mount_ns, 0);
	op = enrich(f, (struct record_operation){ .mount_ns = (uint32_t)st.st_ino + 1 }, no_stack);
	assert_int_equal(op.mount_ns, (uint32_t)st.st_ino + 1);
}

static void test_what_is_missing(void **state)
{
	struct fixture *f = *state;
	struct enrich *other = NULL;
	struct decoded_operation d = { .stack_len = 1, .stack = { 0xffffffff81000105 } };
	struct record_operation op = { .pid = 7 };

	assert_int_equal(enrich_new("/nonexistent", f->watch, &other), -ENOENT);
	assert_null(other);
	tree_remove(f->t, "proc/kallsyms");
	tree_remove(f->t, "proc/self");
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &other), 0);
	enrich_operation(other, &d, &op);
	assert_string_equal(op.kstack, "0xffffffff81000105");
	enrich_free(other);
	assert_null(enrich_free(NULL));
}

#define enrich_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		enrich_test(test_process),
		enrich_test(test_unit_of_the_event),
		enrich_test(test_learning),
		enrich_test(test_user),
		enrich_test(test_users_again),
		enrich_test(test_device),
		enrich_test(test_disk_of_an_anonymous_device),
		enrich_test(test_cause_on_a_file_server),
		enrich_test(test_cause_of_a_request_to_a_server),
		enrich_test(test_cause_of_a_list_of_mounts),
		enrich_test(test_disks_below),
		enrich_test(test_volumes_come_before_loop_devices),
		enrich_test(test_volumes_at_work_are_chosen),
		enrich_test(test_disks_are_learned_while_the_host_is_well),
		enrich_test(test_refresh),
		enrich_test(test_modules_that_come_and_go),
		enrich_test(test_modules_that_cannot_be_read),
		enrich_test(test_where_threads_wait_for_servers),
		enrich_test(test_mounts_that_cannot_be_read),
		enrich_test(test_many_mounts),
		enrich_test(test_a_file_system_of_several_disks),
		enrich_test(test_the_disk_of_several_that_is_waited_for),
		enrich_test(test_the_disks_of_a_pool),
		enrich_test(test_mounts_of_other_namespaces),
		cmocka_unit_test(test_mounts_without_room),
		enrich_test(test_refresh_without_change),
		enrich_test(test_path_in_file_system),
		enrich_test(test_truncated_path),
		enrich_test(test_stack),
		enrich_test(test_trampolines_are_no_calls),
		enrich_test(test_mount_namespace),
		enrich_test(test_what_is_missing),
	};

	counting_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
