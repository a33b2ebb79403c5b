/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
#include "test_watch_tree.h"

#include <dirent.h>
#include <errno.h>

#include "util/file.h"

#define assert_real(a, b) assert_float_equal((float)(a), (float)(b), 1e-4f)

#ifndef FIXTURES_DIR
#define FIXTURES_DIR "tests/fixtures"
#endif

static void test_iowait_over_measured_time(void **state)
{
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w;

	tree_put_stat(t, 100, 1000, 0);
	w = tree_watch(t);
	assert_null(watch_last(w));
	s = tree_sample(t, w, 0);
	assert_int_equal(s->mono_ns, t->start_ns);
	assert_int_equal(s->interval_ns, 0);
	assert_real(s->cpu.iowait_pct, 0);
	assert_real(s->cpu.busy_pct, 0);

	/* Half a CPU-second of iowait in one second, on two CPUs. */
	tree_put_stat(t, 120, 1050, 3);
	s = tree_sample(t, w, 1000);
	assert_int_equal(s->interval_ns, NSEC_PER_SEC);
	assert_real(s->cpu.iowait_cpus, 0.5);
	assert_real(s->cpu.iowait_pct, 25);
	assert_real(s->cpu.busy_pct, 10);
	assert_int_equal(s->procs_running, 1);
	assert_int_equal(s->procs_blocked, 3);

	/* The same in a sample that came late is less. */
	tree_put_stat(t, 120, 1100, 0);
	s = tree_sample(t, w, 2500);
	assert_int_equal(s->interval_ns, 2500 * NSEC_PER_MSEC);
	assert_real(s->cpu.iowait_cpus, 0.2);
	assert_real(s->cpu.iowait_pct, 10);

	/* iowait may decrease, and the next delta starts from there. */
	tree_put_stat(t, 110, 1040, 0);
	s = tree_sample(t, w, 1000);
	assert_real(s->cpu.iowait_pct, 0);
	assert_real(s->cpu.busy_pct, 0);
	tree_put_stat(t, 110, 1060, 0);
	assert_real(tree_sample(t, w, 1000)->cpu.iowait_pct, 10);

	/* More than there is time for (ticks of 10 ms in a short interval) is all of it. */
	tree_put_stat(t, 110, 1063, 0);
	s = tree_sample(t, w, 10);
	assert_real(s->cpu.iowait_cpus, 2);
	assert_real(s->cpu.iowait_pct, 100);
	watch_free(w);
}

static void test_stat_larger_than_the_buffer(void **state)
{
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w = NULL;
	char *text = NULL;
	size_t size;

	for (unsigned int round = 0; round < 2; round++) {
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		fprintf(f, "cpu  %u 0 0 0 %u 0 0 0 0 0\n", round * 1280, round * 6400);
		for (int i = 0; i < 512; i++)
			fprintf(f, "cpu%d 1234567 1234 123456 12345678 123456 0 1234 0 0 0\n", i);
		fprintf(f, "intr 123456");
		for (int i = 0; i < 60000; i++)
			fprintf(f, " 0");
		fprintf(f, "\nctxt 1\nprocs_running 77\nprocs_blocked 12\nsoftirq 1 2\n");
		fclose(f);
		assert_true(size > 100000);
		tree_put_bytes(t, "proc/stat", text, size);
		free(text);
		w = w ? w : tree_watch(t);
		s = tree_sample(t, w, 1000);
	}
	/* 64 of 512 CPUs: 12.5 %, where the share does not tell, the CPU-seconds do. */
	assert_real(s->cpu.iowait_cpus, 64);
	assert_real(s->cpu.iowait_pct, 12.5);
	assert_real(s->cpu.busy_pct, 2.5);
	assert_int_equal(s->procs_running, 77);
	assert_int_equal(s->procs_blocked, 12);
	watch_free(w);
}

static void test_pressure_from_totals(void **state)
{
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w;

	tree_put_psi(t, "io", 1000000, 500000);
	tree_put(t, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\n");
	w = tree_watch(t);
	s = tree_sample(t, w, 0);
	assert_true(s->psi.io.present);
	assert_real(s->psi.io.some_pct, 0);
	assert_true(s->psi.cpu.present);
	assert_false(s->psi.memory.present);

	tree_put_psi(t, "io", 1750000, 750000);
	tree_put(t, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=500100\n");
	s = tree_sample(t, w, 1250);
	assert_real(s->psi.io.some_pct, 60);
	assert_real(s->psi.io.full_pct, 20);
	assert_real(s->psi.cpu.some_pct, 40);
	assert_real(s->psi.cpu.full_pct, 0);

	/* Lower than before, garbage, more than the time: 0, absent, 100. */
	tree_put_psi(t, "io", 5, 5);
	assert_real(tree_sample(t, w, 1000)->psi.io.some_pct, 0);
	tree_put(t, "proc/pressure/io", "nonsense\n");
	assert_false(tree_sample(t, w, 1000)->psi.io.present);
	/* Back again there is nothing to compare with yet. */
	tree_put_psi(t, "io", 500005, 5);
	s = tree_sample(t, w, 1000);
	assert_true(s->psi.io.present);
	assert_real(s->psi.io.some_pct, 0);
	tree_put_psi(t, "io", 9000005, 5);
	assert_real(tree_sample(t, w, 1000)->psi.io.some_pct, 100);
	watch_free(w);
}

static void test_memory_read_again(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w;

	tree_put(t, "proc/vmstat", "workingset_refault_file 1000\npswpin 10\n");
	tree_put(t, "proc/diskstats",
		" 253 0 zram0 9 0 100 1 9 0 200 1 0 1 2\n 253 1 zram1 9 0 0 1 9 0 0 1 0 1 2\n");
	w = tree_watch(t);
	/* Nothing to compare with yet. */
	assert_false(tree_sample(t, w, 0)->memory.present);
	tree_put(t, "proc/vmstat",
		"nr_free_pages 5\nworkingset_refault_file 1500\nworkingset_restore_file 30\n"
		"pswpin 30\npswpout 7\npgsteal_kswapd 8\npgsteal_direct 9\npgmajfault 4\n");
	tree_put(t, "proc/diskstats",
		" 253 0 zram0 9 0 112 1 9 0 208 1 0 1 2\n 253 1 zram1 9 0 4 1 9 0 0 1 0 1 2\n");
	s = tree_sample(t, w, 1000);
	assert_true(s->memory.present);
	assert_int_equal(s->memory.reread_bytes, 500 * page);
	assert_int_equal(s->memory.active_bytes, 30 * page);
	assert_int_equal(s->memory.swapped_in_bytes, 20 * page);
	assert_int_equal(s->memory.zram_in_bytes, 16 * 512);
	assert_int_equal(s->memory.zram_out_bytes, 8 * 512);
	assert_int_equal(s->memory.swapped_out_bytes, 7 * page);
	assert_int_equal(s->memory.reclaimed_bytes, 17 * page);
	assert_int_equal(s->memory.major_faults, 4);
	assert_int_equal(tree_sample(t, w, 1000)->memory.reread_bytes, 0);
	watch_free(w);
}

static void test_what_is_missing(void **state)
{
	struct tree *t = *state;
	struct watch_options options = tree_options(t);
	const struct record_reading *s;
	struct watch *w = NULL;

	/* No pressure, no diskstats, no sysfs, no watched process: a sample all the same. */
	tree_remove(t, "proc/diskstats");
	tree_remove(t, "sys");
	options.process = options.device = options.device_ignore = NULL;
	assert_int_equal(watch_new(&options, &w), 0);
	s = tree_sample(t, w, 0);
	assert_int_equal(s->devices_count, 0);
	assert_false(s->psi.io.present);
	assert_false(s->memory.present);
	assert_int_equal(s->threads.scanned, 0);
	assert_true(s->threads.complete);

	/* A /proc/stat without its first line gives no sample; the one before stays. */
	tree_put(t, "proc/stat", "procs_running 5\n");
	assert_int_equal(watch_take_sample(w, false), -EINVAL);
	assert_int_equal(watch_last(w)->procs_running, 1);
	assert_int_equal(watch_history_count(w), 1);
	watch_free(w);

	w = NULL;
	tree_remove(t, "proc/stat");
	assert_int_equal(watch_new(&options, &w), -ENOENT);
	options.procfs = "/nonexistent";
	assert_int_equal(watch_new(&options, &w), -ENOENT);
	assert_null(w);
	assert_null(watch_free(NULL));
}

static void test_history(void **state)
{
	struct tree *t = *state;
	struct watch_options options = tree_options(t);
	struct watch *w = NULL;

	options.history_ns = 5 * NSEC_PER_SEC;
	assert_int_equal(watch_new(&options, &w), 0);
	assert_int_equal(watch_history_count(w), 0);
	assert_null(watch_history_get(w, 0));
	for (unsigned int i = 0; i < 20; i++) {
		const struct record_reading *s = tree_sample(t, w, 1000);
		unsigned int count = watch_history_count(w);

		/* Five seconds before the newest and the newest. */
		assert_int_equal(count, i < 6 ? i + 1 : 6);
		assert_ptr_equal(watch_history_get(w, count - 1), s);
		assert_null(watch_history_get(w, count));
		for (unsigned int k = 0; k < count; k++)
			assert_int_equal(watch_history_get(w, k)->mono_ns,
				t->now_ns - (count - 1 - k) * NSEC_PER_SEC);
	}

	/* Less of it keeps the newest, more keeps all there is. */
	options.history_ns = 2 * NSEC_PER_SEC;
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(watch_history_count(w), 3);
	assert_int_equal(watch_history_get(w, 0)->mono_ns, t->now_ns - 2 * NSEC_PER_SEC);
	assert_int_equal(watch_last(w)->mono_ns, t->now_ns);
	options.history_ns = 10 * NSEC_PER_SEC;
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(watch_history_count(w), 3);
	assert_int_equal(tree_sample(t, w, 1000)->interval_ns, NSEC_PER_SEC);
	assert_int_equal(watch_history_count(w), 4);
	assert_int_equal(watch_history_get(w, 0)->mono_ns, t->now_ns - 3 * NSEC_PER_SEC);
	options.history_ns = 0;
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(watch_history_count(w), 1);
	tree_sample(t, w, 1000);
	assert_int_equal(watch_history_count(w), 1);

	/* The most that is kept, whatever is asked for. */
	options.history_ns = 600 * NSEC_PER_SEC;
	options.interval_ns = 100 * NSEC_PER_MSEC;
	assert_int_equal(watch_reload(w, &options), 0);
	for (unsigned int i = 0; i < WATCH_HISTORY_MAX + 5; i++)
		tree_sample(t, w, 100);
	assert_int_equal(watch_history_count(w), WATCH_HISTORY_MAX);
	watch_free(w);
}

/* Copies a tree of fixtures over what is there, in place. */
static void put_fixture(struct tree *t, const char *from, const char *to)
{
	struct dirent *entry;
	DIR *dir = opendir(from);

	if (!dir)
		fail_msg("no fixture %s (run in the source root)", from);
	while ((entry = readdir(dir))) {
		char path[PATH_MAX], name[PATH_MAX], buf[65536];
		ssize_t n;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", from, entry->d_name);
		snprintf(name, sizeof(name), "%s/%s", to, entry->d_name);
		n = file_read_at(AT_FDCWD, path, buf, sizeof(buf));
		if (n == -EISDIR) {
			put_fixture(t, path, name);
			continue;
		}
		assert_true(n >= 0);
		tree_put_bytes(t, name, buf, (size_t)n);
	}
	closedir(dir);
}

/* Text as kernels print it, a throttled loop disk and eight readers of a database on it. */
static void test_fixture_loop_on_throttled_disk(void **state)
{
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	put_fixture(t, FIXTURES_DIR "/procfs/throttled/step0", "proc");
	put_fixture(t, FIXTURES_DIR "/procfs/throttled/sys", "sys");
	w = tree_watch(t);
	tree_sample(t, w, 0);
	put_fixture(t, FIXTURES_DIR "/procfs/throttled/step1", "proc");
	tree_sample(t, w, 1000);
	put_fixture(t, FIXTURES_DIR "/procfs/throttled/step2", "proc");
	s = tree_sample(t, w, 1000);

	assert_real(s->cpu.iowait_pct, 48);
	assert_real(s->cpu.iowait_cpus, 0.96);
	assert_real(s->cpu.busy_pct, 2.5);
	assert_int_equal(s->procs_blocked, 3);
	assert_real(s->psi.io.some_pct, 74);
	assert_real(s->psi.io.full_pct, 47.1);
	assert_real(s->psi.memory.some_pct, 0);
	assert_int_equal(s->devices_count, 3);
	assert_string_equal(s->devices[0].dev_name, "loop0");
	assert_real(s->devices[0].util_pct, 100);
	assert_int_equal(s->devices[0].inflight, 8);
	assert_real(s->devices[0].read_await_ms, 250);
	assert_real(s->devices[0].queue, 8);
	assert_int_equal(s->devices[0].read_bytes, 4 << 20);
	assert_string_equal(watch_disk_name(w, 254, 1), "vda1");
	assert_true(s->threads.complete);
	assert_int_equal(s->threads.scanned, 4);
	assert_int_equal(s->threads.blocked, 2);
	assert_int_equal(s->threads.blocked_pid, 2211);
	watch_free(w);
}

/* Whatever this host is, its own files parse. */
static void test_this_host(void **state)
{
	struct config_list process = { 0 };
	struct watch_options options = {
		.interval_ns = NSEC_PER_SEC,
		.history_ns = 2 * NSEC_PER_SEC,
		.process = &process,
	};
	const struct watch_process *processes;
	const struct record_reading *s;
	unsigned int count;
	struct watch *w = NULL;

	(void)state;
	snprintf(process.items[process.count++], CONFIG_ITEM_SIZE, "%d", getpid());
	assert_int_equal(watch_new(&options, &w), 0);
	assert_int_equal(watch_take_sample(w, false), 0);
	assert_int_equal(watch_take_sample(w, true), 0);
	s = watch_last(w);
	assert_true(s->procs_running >= 1);
	assert_true(s->interval_ns > 0);
	assert_true(s->cpu.iowait_pct <= 100 && s->cpu.busy_pct <= 100);
	assert_int_equal(s->psi.io.present, access("/proc/pressure/io", R_OK) == 0);
	assert_true(s->threads.complete);
	/* Those of earlier tests may not have ended yet. */
	for (unsigned int i = 0; i < 10000 && watch_last(w)->threads.scanned > 6; i++) {
		usleep(500);
		assert_int_equal(watch_take_sample(w, true), 0);
	}
	/*
	 * This one, those that read groups, their counters and the I/O of processes, and two that
	 * scan threads.
	 */
	assert_int_equal(watch_last(w)->threads.scanned, 6);
	processes = watch_processes(w, &count);
	assert_int_equal(count, 1);
	assert_int_equal(processes[0].pid, getpid());
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_iowait_over_measured_time),
		tree_test(test_stat_larger_than_the_buffer),
		tree_test(test_pressure_from_totals),
		tree_test(test_memory_read_again),
		tree_test(test_what_is_missing),
		tree_test(test_history),
		tree_test(test_fixture_loop_on_throttled_disk),
		cmocka_unit_test(test_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
