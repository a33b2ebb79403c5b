/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A private procfs and sysfs tree, and a clock that moves only when told.
 * Used by the tests of the watch room.
 * Never outlives its test: tree_teardown() removes it.
 */
#ifndef IOSTALL_TESTS_TEST_WATCH_TREE_H
#define IOSTALL_TESTS_TEST_WATCH_TREE_H

#include "test_waits.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/clock.h"
#include "watch/watch.h"

struct tree {
	char root[PATH_MAX];
	char procfs[PATH_MAX + 8];
	char sysfs[PATH_MAX + 8];
	uint64_t start_ns;
	uint64_t now_ns;
	uint64_t step_ns; /* the clock moves by this at each look */
	struct config_list process;
	struct config_list device;
	struct config_list device_ignore;
};

static inline uint64_t tree_clock(void *arg)
{
	struct tree *t = arg;
	uint64_t now_ns = t->now_ns;

	t->now_ns += t->step_ns;
	return now_ns;
}

static inline void tree_make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

/* Rewrites in place, so that a descriptor kept open reads the new text, as it does in /proc. */
static inline void tree_put_bytes(struct tree *t, const char *name, const char *text, size_t len)
{
	char path[2 * PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", t->root, name);
	tree_make_parents(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static inline void tree_put(struct tree *t, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline void tree_put(struct tree *t, const char *name, const char *format, ...)
{
	char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, format);
	len = vasprintf(&text, format, ap);
	va_end(ap);
	assert_true(len >= 0);
	tree_put_bytes(t, name, text, (size_t)len);
	free(text);
}

static inline int tree_remove_entry(const char *path, const struct stat *st, int flag,
	struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline void tree_remove(struct tree *t, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", t->root, name);
	assert_int_equal(nftw(path, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Two CPUs; ticks of 10 ms over both. */
static inline void tree_put_stat(struct tree *t, unsigned int busy, unsigned int iowait,
	unsigned int blocked)
{
	tree_put(t, "proc/stat",
		"cpu  %u 0 0 1000 %u 0 0 0 0 0\n"
		"cpu0 0 0 0 0 0 0 0 0 0 0\n"
		"cpu1 0 0 0 0 0 0 0 0 0 0\n"
		"intr 12 0 1\nctxt 5\nbtime 1\nprocesses 9\n"
		"procs_running 1\nprocs_blocked %u\nsoftirq 0\n",
		busy, iowait, blocked);
}

static inline void tree_put_psi(struct tree *t, const char *what, uint64_t some_us,
	uint64_t full_us)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/pressure/%s", what);
	tree_put(t, name,
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=%lu\n"
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=%lu\n",
		some_us, full_us);
}

static inline void tree_put_thread(struct tree *t, int pid, int tid, const char *comm, char state,
	unsigned int start, unsigned int runs)
{
	char name[96];

	if (pid == tid) {
		snprintf(name, sizeof(name), "proc/%d/comm", pid);
		tree_put(t, name, "%s\n", comm);
	}
	for (int whole = 0; whole <= (pid == tid); whole++) {
		snprintf(name, sizeof(name), whole ? "proc/%d/status" : "proc/%d/task/%d/status",
			pid, tid);
		tree_put(t, name,
			"Name:\t%s\nUmask:\t0022\nState:\t%c (any)\nTgid:\t%d\nNgid:\t0\n"
			"Pid:\t%d\nPPid:\t1\nThreads:\t1\n"
			"voluntary_ctxt_switches:\t%u\nnonvoluntary_ctxt_switches:\t2\n",
			comm, state, pid, tid, runs);
	}
	snprintf(name, sizeof(name), "proc/%d/task/%d/stat", pid, tid);
	tree_put(t, name, "%d (%s) %c 1 %d %d 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %u 100 200 0\n",
		tid, comm, state, pid, pid, start);
}

static inline void tree_list_add(struct config_list *list, const char *item)
{
	snprintf(list->items[list->count++], CONFIG_ITEM_SIZE, "%s", item);
}

static inline int tree_setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	/* In memory, as /proc is: thousands of files, beside whatever else writes to the disk. */
	snprintf(t->root, sizeof(t->root), "%s/iostall-tree-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(t->root));
	snprintf(t->procfs, sizeof(t->procfs), "%s/proc", t->root);
	snprintf(t->sysfs, sizeof(t->sysfs), "%s/sys", t->root);
	/* In the past of the host, however short it has been up: a session compares both. */
	t->start_ns = clock_mono_ns() / 2;
	t->now_ns = t->start_ns;
	tree_list_add(&t->device, "*");
	tree_put(t, "sys/dev/block/README", "empty");
	tree_put_stat(t, 0, 0, 0);
	tree_put(t, "proc/diskstats", "%s", "");
	*state = t;
	return 0;
}

static inline int tree_teardown(void **state)
{
	struct tree *t = *state;

	nftw(t->root, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

/* A fixture of zeros whose first member is a struct tree *. Ends the test if it cannot be made. */
static inline void *tree_fixture_new(size_t size)
{
	void **fixture = calloc(1, size);

	assert_non_null(fixture);
	assert_int_equal(tree_setup(fixture), 0);
	return fixture;
}

/* For a teardown: frees it, and removes its tree. */
static inline int tree_fixture_free(void *fixture)
{
	tree_teardown(fixture);
	free(fixture);
	return 0;
}

static inline int tree_open_procfs(const struct tree *t)
{
	int fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline struct watch_options tree_options(struct tree *t)
{
	return (struct watch_options){
		.procfs = t->procfs,
		.sysfs = t->sysfs,
		.interval_ns = NSEC_PER_SEC,
		.history_ns = 60 * NSEC_PER_SEC,
		.process = &t->process,
		.device = &t->device,
		.device_ignore = &t->device_ignore,
		.clock = { tree_clock, t },
	};
}

static inline struct watch *tree_watch(struct tree *t)
{
	struct watch_options options = tree_options(t);
	struct watch *w = NULL;

	assert_int_equal(watch_new(&options, &w), 0);
	return w;
}

static inline const struct record_reading *tree_sample(struct tree *t, struct watch *w,
	uint64_t passed_ms)
{
	/*
	 * The clock of the host is not that of the tree. Where a sample is to take what a thread
	 * has read already, this only passes time.
	 */
	for (unsigned int i = 0; i < 10000 && watch_is_learning(w); i++)
		usleep(500);
	t->now_ns += passed_ms * NSEC_PER_MSEC;
	assert_int_equal(watch_take_sample(w, false), 0);
	/* What a thread reads for the next sample is what there is now. */
	for (unsigned int i = 0; i < 10000 && watch_is_reading(w); i++)
		usleep(500);
	return watch_last(w);
}

/*
 * The counters of control groups are read after a sample, and the next one has them. So that one is
 * taken in the same moment.
 */
static inline const struct record_limits *tree_limits(struct tree *t, struct watch *w)
{
	tree_sample(t, w, 1000);
	tree_sample(t, w, 0);
	return watch_limits(w);
}

static inline const struct record_threads *tree_scan(struct tree *t, struct watch *w,
	uint64_t passed_ms)
{
	return &tree_sample(t, w, passed_ms)->threads;
}

static inline unsigned int tree_watched(struct watch *w)
{
	unsigned int count;

	watch_processes(w, &count);
	return count;
}

static inline bool tree_is_watched(struct watch *w, int pid)
{
	unsigned int count;
	const struct watch_process *p = watch_processes(w, &count);

	for (unsigned int i = 0; i < count; i++)
		if (p[i].pid == pid)
			return true;
	return false;
}

static inline void tree_put_cgroup(struct tree *t, int pid, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/cgroup", pid);
	tree_put(t, name, "%s", text);
}

#define tree_test(fn) cmocka_unit_test_setup_teardown(fn, tree_setup, tree_teardown)

#endif
