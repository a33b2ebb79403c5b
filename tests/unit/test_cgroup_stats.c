/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Reading the counters of control groups, of which some keep their reader waiting. */
#include "test_watch_tree.h"

#include <math.h>

#include "watch/cgroup_stats.h"

#define FIRST "0::/first\n"
#define SECOND "0::/second\n"

static void put(struct tree *t, const char *group, const char *file, const char *text)
{
	char name[128];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s/%s", group, file);
	tree_put(t, name, "%s", text);
}

static void name_of(const struct tree *t, const char *group, const char *file, char *ret_path)
{
	snprintf(ret_path, 2 * PATH_MAX, "%s/fs/cgroup%s/%s", t->sysfs, group, file);
}

/* An open of a FIFO waits for a writer, as the read of the file waits for a lock of the kernel. */
static void put_fifo(struct tree *t, const char *group, const char *file)
{
	char path[2 * PATH_MAX];

	put(t, group, "cgroup.procs", "");
	name_of(t, group, file, path);
	assert_int_equal(mkfifo(path, 0600), 0);
}

/* Lets whoever waits go on, and puts a file there; what was waited for cannot be read. */
static void replace_fifo(struct tree *t, const char *group, const char *file, const char *text)
{
	char path[2 * PATH_MAX];
	int fd;

	name_of(t, group, file, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	put(t, group, file, text);
	close(fd);
}

struct fixture {
	struct tree *t;
	int sysfs_fd;
	struct watch_clock clock;
	struct cgroup_stats stats;
};

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->sysfs_fd = open(f->t->sysfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->sysfs_fd >= 0);
	f->clock = (struct watch_clock){ tree_clock, f->t };
	assert_int_equal(cgroup_stats_init(&f->stats, f->sysfs_fd), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cgroup_stats_done(&f->stats);
	close(f->sysfs_fd);
	return tree_fixture_free(f);
}

static void set(struct fixture *f, enum cgroup_stats_kind kind, unsigned int slot, const char *text)
{
	struct cgroup_path path;

	assert_int_equal(cgroup_path_parse(text, strlen(text), "none", -1, &path), 0);
	assert_int_equal(cgroup_stats_set(&f->stats, kind, slot, &path), 0);
}

static void wait_until_idle(const struct fixture *f)
{
	for (unsigned int i = 0; i < 10000 && cgroup_stats_is_busy(&f->stats); i++)
		usleep(500);
	assert_false(cgroup_stats_is_busy(&f->stats));
}

/* What the first two groups use of their CPU limits, in this order; 0: not known. */
static void cpu_sample(struct fixture *f, bool armed, uint64_t ret_used_ns[2])
{
	cgroup_stats_begin(&f->stats, &f->clock, armed);
	for (unsigned int slot = 0; slot < 2; slot++) {
		const struct cgroup_stats_reading *r =
			cgroup_stats_take(&f->stats, CGROUP_STATS_CPU, slot);

		ret_used_ns[slot] = r ? r->cpu.used_ns : 0;
		cgroup_stats_ask(&f->stats, CGROUP_STATS_CPU, slot);
	}
	cgroup_stats_end(&f->stats);
}

static void test_kinds(void **state)
{
	struct fixture *f = *state;
	const struct cgroup_stats_reading *r;

	set(f, CGROUP_STATS_MEMORY, 0, FIRST);
	set(f, CGROUP_STATS_IO, 3, FIRST);
	set(f, CGROUP_STATS_CPU, 15, FIRST);
	put(f->t, "/first", "memory.stat", "active_file 5\nworkingset_refault_file 7\n");
	put(f->t, "/first", "io.stat", "8:16 rbytes=1 wbytes=2 rios=3 wios=4\n8:0 rios=9\n");
	put(f->t, "/first", "cpu.stat", "usage_usec 8\nthrottled_usec 9\n");
	cgroup_stats_begin(&f->stats, &f->clock, true);
	assert_null(cgroup_stats_take(&f->stats, CGROUP_STATS_MEMORY, 0));
	assert_non_null(cgroup_stats_ask(&f->stats, CGROUP_STATS_MEMORY, 0));
	cgroup_stats_ask(&f->stats, CGROUP_STATS_IO, 3)->io = (struct cgroup_stats_io){
		.devices_count = 2,
		.devices = { { .major = 8, .minor = 16 }, { .major = 8, .minor = 32 } },
	};
	assert_non_null(cgroup_stats_ask(&f->stats, CGROUP_STATS_CPU, 15));
	cgroup_stats_end(&f->stats);
	wait_until_idle(f);
	cgroup_stats_begin(&f->stats, &f->clock, true);
	r = cgroup_stats_take(&f->stats, CGROUP_STATS_MEMORY, 0);
	assert_int_equal(r->ns, f->t->now_ns);
	assert_int_equal(r->memory.reclaimable_bytes, 5);
	assert_int_equal(r->memory.refaults.file, 7);
	r = cgroup_stats_take(&f->stats, CGROUP_STATS_IO, 3);
	assert_true(r->io.devices[0].found);
	assert_int_equal(r->io.devices[0].counters.of[RECORD_IO_LIMIT_reads], 3);
	assert_false(r->io.devices[1].found);
	r = cgroup_stats_take(&f->stats, CGROUP_STATS_CPU, 15);
	assert_int_equal(r->cpu.throttled_ns, 9 * NSEC_PER_USEC);
	assert_null(cgroup_stats_take(&f->stats, CGROUP_STATS_CPU, 14));
	cgroup_stats_end(&f->stats);
	/* It is known once. */
	cgroup_stats_begin(&f->stats, &f->clock, true);
	assert_null(cgroup_stats_take(&f->stats, CGROUP_STATS_MEMORY, 0));
	cgroup_stats_end(&f->stats);
	assert_false(cgroup_stats_is_busy(&f->stats));
}

/* What was read of a group is not that of the one which has its slot by then. */
static void test_another_group(void **state)
{
	struct fixture *f = *state;
	uint64_t used_ns[2];

	set(f, CGROUP_STATS_CPU, 0, FIRST);
	put(f->t, "/first", "cpu.stat", "usage_usec 8\n");
	put(f->t, "/second", "cpu.stat", "usage_usec 9\n");
	cpu_sample(f, false, used_ns);
	wait_until_idle(f);
	set(f, CGROUP_STATS_CPU, 0, SECOND);
	cpu_sample(f, false, used_ns);
	assert_int_equal(used_ns[0], 0);
	wait_until_idle(f);
	cpu_sample(f, false, used_ns);
	assert_int_equal(used_ns[0], 9 * NSEC_PER_USEC);
	wait_until_idle(f);
	/* It has been removed. */
	tree_remove(f->t, "sys/fs/cgroup/second");
	cpu_sample(f, false, used_ns);
	wait_until_idle(f);
	cpu_sample(f, false, used_ns);
	assert_int_equal(used_ns[0], 0);
	wait_until_idle(f);
}

/* A thread that hangs is replaced, which then leaves out that file, but not in an incident. */
static void test_hang(void **state)
{
	struct fixture *f = *state;
	uint64_t used_ns[2];

	set(f, CGROUP_STATS_CPU, 0, FIRST);
	set(f, CGROUP_STATS_CPU, 1, SECOND);
	put_fifo(f->t, "/first", "cpu.stat");
	put(f->t, "/second", "cpu.stat", "usage_usec 9\n");
	cpu_sample(f, false, used_ns);
	cpu_sample(f, false, used_ns);
	assert_true(cgroup_stats_is_busy(&f->stats));
	assert_int_equal(f->stats.late, 0);
	/* As if it had begun when the host was booted. */
	f->stats.worker.started_ns = 0;
	cpu_sample(f, true, used_ns);
	assert_int_equal(f->stats.late, 1);
	assert_int_equal(used_ns[0] + used_ns[1], 0);
	assert_true(cgroup_stats_is_busy(&f->stats));
	cpu_sample(f, false, used_ns);
	assert_int_equal(f->stats.late, 2);
	wait_until_idle(f);
	cpu_sample(f, true, used_ns);
	/* It has no value of that file, and is counted, too. */
	assert_int_equal(f->stats.late, 3);
	assert_int_equal(used_ns[0], 0);
	assert_int_equal(used_ns[1], 9 * NSEC_PER_USEC);
	wait_until_idle(f);
	/* Once the first thread has returned, the file is read again. */
	replace_fifo(f->t, "/first", "cpu.stat", "usage_usec 8\n");
	for (unsigned int i = 0; i < 10000 && used_ns[0] == 0; i++) {
		cpu_sample(f, true, used_ns);
		wait_until_idle(f);
	}
	assert_int_equal(used_ns[0], 8 * NSEC_PER_USEC);
}

/*
 * No sample waits for memory.stat. What had been read before it is known; of its group only what
 * other files tell is, and nothing of an earlier sample.
 */
static void test_samples_in_an_incident(void **state)
{
	struct tree *t = *state;
	const struct record_limits *limits;
	const struct record_cgroup *slice;
	struct watch_left_out left_out;
	unsigned int known = 0;
	struct watch *w;
	uint32_t serial;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	/* The lower one is in the first slot. */
	tree_put(t, "proc/10/cgroup", "0::/slice/unit\n");
	for (int i = 0; i < 2; i++) {
		const char *group = i == 0 ? "/slice/unit" : "/slice";

		put(t, group, "memory.max", "1000\n");
		put(t, group, "memory.current", "900\n");
		put(t, group, "memory.events.local", "max 0\noom_kill 0\n");
	}
	put(t, "/slice/unit", "memory.stat", "active_file 100\n");
	put_fifo(t, "/slice", "memory.stat");
	alarm(30);
	w = tree_watch(t);
	for (unsigned int i = 0; i < 10000 && watch_is_learning(w); i++)
		usleep(500);
	t->now_ns += NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, false), 0);
	limits = watch_limits(w);
	for (unsigned int i = 0; i < 10000 && known == 0; i++) {
		usleep(500);
		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, true), 0);
		known = limits->cgroups_count;
	}
	assert_int_equal(known, 1);
	assert_string_equal(limits->cgroups[0].path, "/slice/unit");
	assert_float_equal((float)limits->cgroups[0].used_pct, 80, 1e-3f);
	put(t, "/slice", "memory.events.local", "max 0\noom_kill 1\n");
	t->now_ns += NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_int_equal(limits->cgroups_count, 0);
	slice = watch_cgroup_in_slot(w, 1, &serial);
	assert_non_null(slice);
	assert_true(isnan(slice->used_pct));
	assert_int_equal(slice->oom_kills, 1);
	assert_true(watch_is_reading(w));
	watch_get_left_out(w, &left_out);
	assert_int_equal(left_out.unread, 0);
	replace_fifo(t, "/slice", "memory.stat", "active_file 200\n");
	for (unsigned int i = 0; i < 10000 && watch_is_reading(w); i++)
		usleep(500);
	limits = tree_limits(t, w);
	assert_int_equal(limits->cgroups_count, 2);
	assert_float_equal((float)limits->cgroups[1].used_pct, 70, 1e-3f);
	alarm(0);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang, setup, teardown),
		tree_test(test_samples_in_an_incident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
