/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * trace.device and trace.cgroup: looked up anew each second, and never fatal when not there.
 */
#include "test_watch_tree.h"

#include <errno.h>
#include <sys/mman.h>

#include <bpf/bpf.h>

#include "probes/filter.h"
#include "util/cleanup.h"
#include "util/log.h"

static const struct trace_maps_sizes map_sizes = {
	.ring_bytes = 65536,
	.inflight_max = 1024,
	.filter_pids = EVENT_FILTER_PIDS_MAX,
	.filter_devs = EVENT_FILTER_DEVS_MAX,
	.vfs_calls = 1,
	.offcpu_wakers = 1,
	.cpus = 64,
};

struct fixture {
	struct tree *t;
	struct trace_maps maps;
	struct config config;
	struct watch *watch;
	struct enrich *enrich; /* NULL: nothing is known of mounts and paths */
	int stderr_fd;	       /* the real one, while the log is caught */
	int caught_fd;
};

static void catch_log(struct fixture *f)
{
	f->caught_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(f->caught_fd >= 0);
	f->stderr_fd = dup(STDERR_FILENO);
	assert_int_equal(dup2(f->caught_fd, STDERR_FILENO), STDERR_FILENO);
}

/* How many lines were logged, and whether `text` is in them. */
static unsigned int take_log(struct fixture *f, const char *text)
{
	unsigned int lines = 0;
	char buf[8192];
	ssize_t n;

	dup2(f->stderr_fd, STDERR_FILENO);
	close(f->stderr_fd);
	n = pread(f->caught_fd, buf, sizeof(buf) - 1, 0);
	close(f->caught_fd);
	assert_true(n >= 0);
	buf[n] = '\0';
	for (const char *p = buf; (p = strchr(p, '\n')); p++)
		lines++;
	if (!strstr(buf, text))
		fail_msg("\"%s\" is not in the log: %s", text, buf);
	return lines;
}

static unsigned int fill(struct fixture *f, int want, const char *text)
{
	unsigned int lines;
	int r;

	catch_log(f);
	r = filter_fill(&f->maps, &f->config, f->t->sysfs, f->enrich);
	lines = take_log(f, text);
	assert_int_equal(r, want);
	return lines;
}

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->maps = TRACE_MAPS_NONE;
	tree_put(f->t, "sys/class/block/sdb/dev", "8:16\n");
	tree_put(f->t, "sys/class/block/sdb/sdb1/dev", "8:17\n");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	enrich_free(f->enrich);
	watch_free(f->watch);
	trace_maps_close(&f->maps);
	return tree_fixture_free(f);
}

static void make_maps(struct fixture *f)
{
	int r = trace_maps_new(&map_sizes, NULL, &f->maps);

	if (r == -EPERM) {
		print_message("BPF maps cannot be made: %s\n", strerror(-r));
		skip();
	}
	assert_int_equal(r, 0);
}

static uint32_t max_entries(int map)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(map, &info, &size), 0);
	return info.max_entries;
}

static bool has_key(int map, uint32_t key)
{
	uint8_t member;

	return bpf_map_lookup_elem(map, &key, &member) == 0;
}

static bool has_dev(const struct fixture *f, uint32_t major, uint32_t minor)
{
	return has_key(f->maps.filter_devs, major << 20 | minor);
}

static void test_settings(void **state)
{
	struct fixture *f = *state;
	struct probe_settings settings = { .common.min_stall_ns = 5 };

	filter_settings(&f->config, &settings);
	assert_false(settings.common.filter_pid || settings.common.filter_dev);
	assert_int_equal(settings.common.filter_cgroups, 0);
	/* Of what is not there, too: else everything would be traced. */
	tree_list_add(&f->config.trace.device, "nowhere");
	tree_list_add(&f->config.trace.process, "mariadbd");
	tree_list_add(&f->config.trace.cgroup, "a");
	tree_list_add(&f->config.trace.cgroup, "b");
	filter_settings(&f->config, &settings);
	assert_true(settings.common.filter_pid && settings.common.filter_dev);
	assert_int_equal(settings.common.filter_cgroups, 2);
	assert_int_equal(settings.common.min_stall_ns, 5);
}

static void test_devices(void **state)
{
	struct fixture *f = *state;

	make_maps(f);
	tree_list_add(&f->config.trace.device, "sdb");
	tree_list_add(&f->config.trace.device, "254:3");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 16) && has_dev(f, 8, 17) && has_dev(f, 254, 3));
	assert_false(has_dev(f, 8, 18));
	/* It came back with another number, and another partition. */
	tree_remove(f->t, "sys/class/block/sdb");
	tree_put(f->t, "sys/class/block/sdb/dev", "8:32\n");
	tree_put(f->t, "sys/class/block/sdb/sdb5/dev", "8:37\n");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 32) && has_dev(f, 8, 37) && has_dev(f, 254, 3));
	assert_false(has_dev(f, 8, 16) || has_dev(f, 8, 17));
}

/* Requests have the number of a whole disk, whatever their file is on. */
static void test_what_a_volume_is_on(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX + 64];

	make_maps(f);
	tree_put(f->t, "sys/devices/sda/dev", "8:0\n");
	tree_put(f->t, "sys/devices/sda/sda3/dev", "8:3\n");
	tree_put(f->t, "sys/devices/sda/sda3/partition", "3\n");
	tree_put(f->t, "sys/class/block/dm-0/dev", "253:0\n");
	tree_put(f->t, "sys/class/block/dm-0/slaves/dm-1/dev", "253:1\n");
	tree_put(f->t, "sys/class/block/dm-1/dev", "253:1\n");
	tree_put(f->t, "sys/class/block/dm-1/slaves/sda3/dev", "8:3\n");
	snprintf(path, sizeof(path), "%s/class/block/sda3", f->t->sysfs);
	assert_int_equal(symlink("../../devices/sda/sda3", path), 0);
	tree_list_add(&f->config.trace.device, "dm-0");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 253, 0) && has_dev(f, 253, 1));
	assert_true(has_dev(f, 8, 3) && has_dev(f, 8, 0));
	assert_false(has_dev(f, 8, 16));
	f->config.trace.device.count = 0;
	tree_list_add(&f->config.trace.device, "sda3");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 3) && has_dev(f, 8, 0));
	assert_false(has_dev(f, 253, 0) || has_dev(f, 253, 1));
}

static void know_mounts_and_paths(struct fixture *f)
{
	tree_put(f->t, "proc/diskstats",
		" 8 16 sdb 1 0 8 1 1 0 8 1 0 1 2\n 8 17 sdb1 1 0 8 1 1 0 8 1 0 1 2\n"
		" 8 32 sdc 1 0 8 1 1 0 8 1 0 1 2\n 259 0 nvme0c0n1 1 0 8 1 1 0 8 1 0 1 2\n"
		" 259 1 nvme0n1 1 0 8 1 1 0 8 1 0 1 2\n 259 2 nvme0c1n1 1 0 8 1 1 0 8 1 0 1 2\n"
		" 259 4 nvme1c0n1 1 0 8 1 1 0 8 1 0 1 2\n 0 0 nvme0c2n1 1 0 8 1 1 0 8 1 0 1 2\n");
	tree_put(f->t, "proc/self/mountinfo",
		"22 1 0:30 / / rw - btrfs /dev/sdb1 rw\n"
		"23 22 8:32 / /srv rw - ext4 /dev/sdc rw\n"
		"24 22 0:40 / /proc rw - proc proc rw\n"
		"25 22 0:50 / /c1 rw - overlay overlay rw,lowerdir=/l,upperdir=/var/u,workdir=/w\n"
		"26 22 0:51 / /c2 rw - overlay overlay rw,lowerdir=/l,upperdir=/srv/u,workdir=/w\n");
	f->watch = tree_watch(f->t);
	tree_sample(f->t, f->watch, 0);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
}

/* File systems with a number of their own, by the disk that they are on. */
static void test_anonymous_file_systems(void **state)
{
	struct fixture *f = *state;

	make_maps(f);
	know_mounts_and_paths(f);
	tree_list_add(&f->config.trace.device, "sdb");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 16) && has_dev(f, 0, 30) && has_dev(f, 0, 50));
	assert_false(has_dev(f, 0, 40) || has_dev(f, 0, 51));
	/* By number; that of a partition. */
	f->config.trace.device.count = 0;
	tree_list_add(&f->config.trace.device, "8:32");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 32) && has_dev(f, 0, 51));
	assert_false(has_dev(f, 0, 30) || has_dev(f, 0, 50) || has_dev(f, 8, 16));
	f->config.trace.device.count = 0;
	tree_list_add(&f->config.trace.device, "8:17");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 17) && has_dev(f, 0, 30));
	/* A container has gone. */
	tree_put(f->t, "proc/self/mountinfo", "23 22 8:32 / /srv rw - ext4 /dev/sdc rw\n");
	enrich_free(f->enrich);
	assert_int_equal(enrich_new(f->t->procfs, f->watch, &f->enrich), 0);
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 17));
	assert_false(has_dev(f, 0, 30));
}

/* Of a disk with native multipath the requests have the number of a path. */
static void test_paths_of_a_device(void **state)
{
	struct fixture *f = *state;

	make_maps(f);
	know_mounts_and_paths(f);
	tree_put(f->t, "sys/class/block/nvme0n1/dev", "259:1\n");
	tree_list_add(&f->config.trace.device, "nvme0n1");
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 259, 0) && has_dev(f, 259, 1) && has_dev(f, 259, 2));
	assert_false(has_dev(f, 259, 4) || has_dev(f, 0, 0));
}

/* One line when it goes and one when it comes, however often it is looked for. */
static void test_device_that_comes_and_goes(void **state)
{
	struct fixture *f = *state;

	make_maps(f);
	tree_list_add(&f->config.trace.device, "254:3");
	tree_list_add(&f->config.trace.device, "sdb");
	tree_remove(f->t, "sys/class/block/sdb");
	assert_int_equal(fill(f, 0, "trace.device: sdb: No such file or directory"), 1);
	assert_int_equal(fill(f, 0, ""), 0);
	assert_false(has_dev(f, 8, 16));
	assert_true(has_dev(f, 254, 3));
	tree_put(f->t, "sys/class/block/sdb/dev", "8:16\n");
	assert_int_equal(fill(f, 0, "trace.device: sdb exists now"), 1);
	assert_int_equal(fill(f, 0, ""), 0);
	assert_true(has_dev(f, 8, 16));
	/* What it says is no number. */
	tree_put(f->t, "sys/class/block/sdb/dev", "nonsense\n");
	assert_int_equal(fill(f, 0, "trace.device: sdb: No such device"), 1);
	assert_false(has_dev(f, 8, 16));
}

static void test_pids(void **state)
{
	struct fixture *f = *state;

	make_maps(f);
	assert_int_equal(trace_maps_add_pid(&f->maps, 7), 0);
	assert_int_equal(trace_maps_add_pid(&f->maps, 8), 0);
	assert_int_equal(trace_maps_remove_pid(&f->maps, 7), 0);
	assert_int_equal(trace_maps_remove_pid(&f->maps, 7), 0);
	assert_false(has_key(f->maps.filter_pids, 7));
	assert_true(has_key(f->maps.filter_pids, 8));
}

/* A cgroup of the host's own, made for the test; skipped where there is no cgroup2 to write to. */
static void make_cgroup(char *ret_path, size_t size, char *ret_name, size_t name_size)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	int r = -1;

	snprintf(ret_name, name_size, "iostall-test-%d", getpid());
	for (size_t i = 0; i < ARRAY_SIZE(roots) && r < 0; i++) {
		snprintf(ret_path, size, "%s/cgroup.procs", roots[i]);
		if (access(ret_path, F_OK) < 0)
			continue;
		snprintf(ret_path, size, "%s/%s", roots[i], ret_name);
		r = mkdir(ret_path, 0755);
	}
	if (r < 0) {
		print_message("a cgroup cannot be made\n");
		skip();
	}
}

static bool has_cgroup(const struct fixture *f, uint32_t index)
{
	/* Nothing can be read from this kind of map: taking it out tells whether it was there. */
	return bpf_map_delete_elem(f->maps.filter_cgroups, &index) == 0;
}

static void test_cgroup_that_comes_and_goes(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], name[64];

	make_maps(f);
	snprintf(f->t->sysfs, sizeof(f->t->sysfs), "/sys");
	make_cgroup(path, sizeof(path), name, sizeof(name));
	tree_list_add(&f->config.trace.cgroup, "not-there.service");
	tree_list_add(&f->config.trace.cgroup, name);
	/* The map holds the cgroup by itself, also when its directory is gone. */
	assert_int_equal(fill(f, 0, "trace.cgroup: not-there.service: No such file"), 1);
	assert_int_equal(rmdir(path), 0);
	assert_false(has_cgroup(f, 0));
	assert_true(has_cgroup(f, 1));
	assert_int_equal(fill(f, 0, name), 1);
	assert_int_equal(fill(f, 0, ""), 0);
	assert_false(has_cgroup(f, 1));
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(fill(f, 0, "exists now"), 1);
	assert_int_equal(rmdir(path), 0);
	/* The slot of one that is gone, or no longer named, is emptied by us. */
	assert_int_equal(fill(f, 0, name), 1);
	assert_false(has_cgroup(f, 1));
}

static uint32_t map_id(int map)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(map, &info, &size), 0);
	return info.id;
}

/* The set of probes that replaces another one has its maps, and filters of its own. */
static void test_maps_are_taken_over(void **state)
{
	struct fixture *f = *state;
	struct trace_maps copy, taken;

	make_maps(f);
	assert_int_equal(trace_maps_share(&f->maps, &copy), 0);
	assert_int_equal(copy.filter_pids, -1);
	assert_int_equal(trace_maps_new(&map_sizes, &copy, &taken), 0);
	trace_maps_close(&copy);
	assert_int_equal(map_id(taken.events), map_id(f->maps.events));
	assert_int_equal(map_id(taken.sleeps), map_id(f->maps.sleeps));
	assert_int_equal(map_id(taken.block_requests), map_id(f->maps.block_requests));
	assert_int_not_equal(map_id(taken.filter_pids), map_id(f->maps.filter_pids));
	assert_int_equal(trace_maps_add_pid(&taken, 7), 0);
	assert_true(has_key(taken.filter_pids, 7));
	assert_false(has_key(f->maps.filter_pids, 7));
	trace_maps_close(&taken);
}

/* Each of 64 CPUs takes 128 entries for itself, and what is meant to be in the map has room. */
static void test_room_for_what_cpus_take(void **state)
{
	struct fixture *f = *state;

	make_maps(f);
	assert_int_equal(max_entries(f->maps.dirtiers), EVENT_BLOCK_DIRTIERS_MAX + 64 * 128);
	assert_int_equal(max_entries(f->maps.flushers), EVENT_BLOCK_FLUSHERS_MAX + 64 * 128);
	assert_int_equal(max_entries(f->maps.thread_files), EVENT_THREAD_FILES_MAX + 64 * 128);
	assert_int_equal(max_entries(f->maps.faults), 1024 / 2 + 64 * 128);
}

#define filter_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		filter_test(test_settings),
		filter_test(test_devices),
		filter_test(test_what_a_volume_is_on),
		filter_test(test_anonymous_file_systems),
		filter_test(test_paths_of_a_device),
		filter_test(test_device_that_comes_and_goes),
		filter_test(test_pids),
		filter_test(test_cgroup_that_comes_and_goes),
		filter_test(test_maps_are_taken_over),
		filter_test(test_room_for_what_cpus_take),
	};

	log_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
