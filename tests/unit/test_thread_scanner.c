/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Samples while the thread that scans those of watched processes hangs. */
#include "test_alloc.h"
#include "test_watch_tree.h"

#include <dirent.h>
#include <poll.h>
#include <sys/syscall.h>

#include "watch/rules.h"

uint64_t __wrap_clock_mono_ns(void);

/* It stands still, so that no scan is late before the test says so. */
static uint64_t mono_ns = 1000 * NSEC_PER_SEC;

uint64_t __wrap_clock_mono_ns(void)
{
	return mono_ns;
}

struct fixture {
	struct tree *t;
	struct watch *w;
	struct rules *rules;
	unsigned int iowait; /* in ticks */
	bool has_iowait;
	unsigned int hung;
	unsigned long allocations; /* of the samples since it was set to 0 */
};

/* Servers 10, 20 and so on, each with three threads in D. */
static struct fixture *start(struct tree *t, int servers)
{
	struct config_rule config[CONFIG_RULE_COUNT] = {
		[CONFIG_RULE_blocked] = { .enabled = true, .hold_samples = 4 },
		[CONFIG_RULE_iowait] = { .enabled = true, .hold_samples = 1, .set = 10 },
	};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->t = t;
	tree_list_add(&t->process, "mariadbd");
	for (int pid = 10; pid <= 10 * servers; pid += 10)
		for (int tid = pid; tid < pid + 3; tid++)
			tree_put_thread(t, pid, tid, "mariadbd", 'D', 500, 9);
	f->w = tree_watch(t);
	assert_int_equal(rules_new(config, &f->rules), 0);
	alarm(60);
	return f;
}

static void status_path(const struct fixture *f, int tid, char path[2 * PATH_MAX])
{
	snprintf(path, 2 * PATH_MAX, "%s/%d/task/%d/status", f->t->procfs, tid / 10 * 10, tid);
}

/* What the other threads of this process do, as the kernel tells it: a call that waits, or none. */
static void count_threads(unsigned int *ret_in_open, unsigned int *ret_running)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;

	*ret_in_open = *ret_running = 0;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[sizeof(entry->d_name) + 32];
		long number = -1;
		FILE *file;

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%ld", &number) == 1)
			*ret_in_open += number == SYS_openat;
		else
			++*ret_running;
		fclose(file);
	}
	closedir(dir);
}

static void stop(struct fixture *f)
{
	unsigned int in_open, running;

	rules_free(f->rules);
	watch_free(f->w);
	/* Who was left behind and goes on still asks for the time, which is the tree's. */
	do
		count_threads(&in_open, &running);
	while ((running > 0 || in_open > f->hung) && usleep(500) == 0);
	free(f);
	alarm(0);
}

static unsigned int count_hung(void)
{
	unsigned int in_open, running;

	count_threads(&in_open, &running);
	return in_open;
}

/* An open of a FIFO waits for a writer, as a reader of `status` may for the end of a process. */
static void make_hang(struct fixture *f, int tid)
{
	char path[2 * PATH_MAX];

	status_path(f, tid, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	f->hung++;
}

/* Whoever waits for it reads an empty file. */
static void end_hang(struct fixture *f, int tid)
{
	char path[2 * PATH_MAX];
	int fd;

	status_path(f, tid, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	tree_put_thread(f->t, tid / 10 * 10, tid, "mariadbd", 'D', 500, 9);
	close(fd);
	f->hung--;
}

static void begin(struct fixture *f, bool armed)
{
	unsigned long before;

	f->iowait += f->has_iowait ? 100 : 0;
	tree_put_stat(f->t, 0, f->iowait, 0);
	f->t->now_ns += NSEC_PER_SEC;
	before = allocations;
	assert_int_equal(watch_begin_sample(f->w, armed), 0);
	f->allocations += allocations - before;
}

/* The rules that fire. */
static unsigned int end(struct fixture *f, bool armed)
{
	struct rules_firing firings[4];
	unsigned long before = allocations;
	unsigned int fired = 0;
	size_t count;

	assert_true(watch_end_sample(f->w, armed));
	count = rules_evaluate(f->rules, f->w, watch_last(f->w)->mono_ns, firings, 4);
	f->allocations += allocations - before;
	for (size_t i = 0; i < count; i++)
		fired |= 1u << firings[i].rule;
	return fired;
}

/* With its threads. */
static unsigned int sample(struct fixture *f, bool armed)
{
	struct pollfd done = { .fd = watch_sample_fd(f->w), .events = POLLIN };

	begin(f, armed);
	while (!watch_sample_is_ready(f->w))
		assert_int_equal(poll(&done, 1, -1), 1);
	return end(f, armed);
}

static void wait_until_it_hangs(const struct fixture *f)
{
	for (unsigned int i = 0; i < WAITS_MAX && count_hung() != f->hung; i++)
		usleep(500);
	assert_int_equal(count_hung(), f->hung);
}

/* So much time has passed that the scan which hangs is late. */
static void be_late(const struct fixture *f)
{
	unsigned int in_open, running;

	wait_until_it_hangs(f);
	/* None of the others may be late with what it was asked. */
	do
		count_threads(&in_open, &running);
	while (running > 0 && usleep(500) == 0);
	mono_ns += 6 * NSEC_PER_SEC;
}

/* The loop does not wait for it. The clock goes on only when the thread has come there. */
static unsigned int sample_without_threads(struct fixture *f, bool armed)
{
	unsigned int fired;

	begin(f, armed);
	wait_until_it_hangs(f);
	fired = end(f, armed);
	assert_false(watch_has_threads(f->w));
	assert_false(watch_last(f->w)->threads.complete);
	assert_int_equal(watch_last(f->w)->threads.scanned, 0);
	return fired;
}

static uint64_t unread(const struct fixture *f)
{
	struct watch_left_out left_out;

	watch_get_left_out(f->w, &left_out);
	return left_out.unread;
}

static const struct record_threads *threads(const struct fixture *f)
{
	return &watch_last(f->w)->threads;
}

/* Other rules fire meanwhile. What is said of threads is what was known, and counts for no rule. */
static void test_samples_go_on(void **state)
{
	struct fixture *f = start(*state, 2);
	unsigned int fired = 0;

	sample(f, false);
	assert_int_equal(threads(f)->blocked, 0);
	assert_int_equal(sample(f, false), 0);
	assert_int_equal(threads(f)->blocked, 6);
	assert_true(threads(f)->complete);
	make_hang(f, 11);
	f->has_iowait = true;
	for (unsigned int i = 0; i < 5; i++) {
		fired |= sample_without_threads(f, true);
		assert_int_equal(threads(f)->blocked, 6);
		assert_int_equal(threads(f)->blocked_pid % 10, 0);
	}
	assert_int_equal(fired, 1u << CONFIG_RULE_iowait);
	assert_int_equal(unread(f), 0);
	/* It returns, and the next sample is as any other. */
	end_hang(f, 11);
	for (unsigned int i = 0; i < WAITS_MAX && !watch_has_threads(f->w); i++) {
		usleep(500);
		begin(f, true);
		fired |= end(f, true);
	}
	assert_int_equal(fired, 1u << CONFIG_RULE_iowait);
	/* A scan may still go on when the next sample begins. */
	fired = 0;
	for (unsigned int i = 0; i < WAITS_MAX && (!fired || !threads(f)->complete); i++) {
		usleep(500);
		fired |= sample(f, true);
	}
	assert_int_equal(fired, 1u << CONFIG_RULE_blocked);
	print_message("%u threads, %u blocked\n", threads(f)->scanned, threads(f)->blocked);
	assert_int_equal(threads(f)->scanned, 6);
	assert_true(threads(f)->complete);
	assert_int_equal(unread(f), 0);
	stop(f);
}

/* Each scan ends after its sample, as on a host without a CPU to spare: it counts for the next. */
static void test_late_results_count(void **state)
{
	struct fixture *f = start(*state, 2);
	struct pollfd done = { .fd = watch_sample_fd(f->w), .events = POLLIN };
	unsigned int fired = 0;

	sample(f, false);
	sample(f, false);
	assert_true(watch_has_threads(f->w));
	make_hang(f, 11);
	sample_without_threads(f, false);
	for (unsigned int i = 0; i < 3; i++) {
		end_hang(f, 11);
		assert_int_equal(poll(&done, 1, -1), 1);
		/* It empties the descriptor. */
		(void)watch_sample_is_ready(f->w);
		make_hang(f, 11);
		begin(f, false);
		wait_until_it_hangs(f);
		fired |= end(f, false);
		assert_true(watch_has_threads(f->w));
		assert_true(threads(f)->scanned > 0);
	}
	assert_int_equal(fired, 1u << CONFIG_RULE_blocked);
	assert_int_equal(unread(f), 0);
	end_hang(f, 11);
	stop(f);
}

/* In an incident the spare thread takes over, without memory. It leaves out that process. */
static void test_replaced_in_an_incident(void **state)
{
	struct fixture *f = start(*state, 3);

	sample(f, false);
	sample(f, true);
	assert_int_equal(threads(f)->blocked, 9);
	make_hang(f, 11);
	f->allocations = 0;
	sample_without_threads(f, true);
	be_late(f);
	/* The new thread does not know yet who lasts, so nobody is said to have gone on. */
	sample(f, true);
	assert_false(watch_has_threads(f->w));
	assert_int_equal(threads(f)->blocked, 9);
	assert_int_equal(unread(f), 1);
	sample(f, true);
	assert_true(watch_has_threads(f->w));
	assert_int_equal(threads(f)->scanned, 6);
	assert_false(threads(f)->complete);
	assert_int_equal(threads(f)->blocked, 6);
	/* The process is still not watched. */
	assert_int_equal(unread(f), 2);
	/* There is one spare thread. The samples go on, and hold what was known. */
	make_hang(f, 21);
	sample_without_threads(f, true);
	be_late(f);
	for (unsigned int i = 0; i < 3; i++)
		sample_without_threads(f, true);
	assert_int_equal(threads(f)->blocked, 6);
	assert_int_equal(unread(f), 6);
	assert_int_equal(f->allocations, 0);
	/* After the incident another thread is started. */
	sample(f, false);
	sample(f, false);
	assert_int_equal(threads(f)->scanned, 3);
	/* And both processes are watched again when they can be read. */
	end_hang(f, 11);
	end_hang(f, 21);
	for (unsigned int i = 0; i < WAITS_MAX && !threads(f)->complete; i++) {
		usleep(500);
		sample(f, false);
	}
	assert_int_equal(threads(f)->scanned, 9);
	stop(f);
}

/* Only so many threads are left behind. A process that ends is not lost any more. */
static void test_bound(void **state)
{
	struct fixture *f = start(*state, RENEWABLE_WORKER_HUNG_MAX + 2);
	uint64_t before;

	sample(f, false);
	for (int i = 1; i <= RENEWABLE_WORKER_HUNG_MAX + 1; i++) {
		make_hang(f, 10 * i);
		sample_without_threads(f, false);
		be_late(f);
		if (i > RENEWABLE_WORKER_HUNG_MAX)
			break;
		sample(f, false);
		sample(f, false);
		assert_int_equal(threads(f)->scanned, 3 * (RENEWABLE_WORKER_HUNG_MAX + 2 - i));
	}
	for (unsigned int i = 0; i < 3; i++)
		sample_without_threads(f, false);
	end_hang(f, 10);
	for (unsigned int i = 0; i < WAITS_MAX && !watch_has_threads(f->w); i++) {
		usleep(500);
		begin(f, false);
		end(f, false);
	}
	assert_true(watch_has_threads(f->w));
	for (int i = 2; i <= RENEWABLE_WORKER_HUNG_MAX + 1; i++)
		end_hang(f, 10 * i);
	for (unsigned int i = 0; i < WAITS_MAX && !threads(f)->complete; i++) {
		usleep(500);
		sample(f, false);
	}
	assert_int_equal(threads(f)->scanned, 3 * (RENEWABLE_WORKER_HUNG_MAX + 2));
	before = unread(f);
	sample(f, false);
	assert_int_equal(unread(f), before);
	stop(f);
}

/* What a scan finds out about processes is applied when its results are taken. */
static void test_processes(void **state)
{
	struct fixture *f = start(*state, 3);
	unsigned int count;
	const struct watch_process *list = watch_processes(f->w, &count);

	sample(f, false);
	sample(f, false);
	assert_int_equal(count, 3);
	assert_int_equal(threads(f)->blocked, 9);
	tree_remove(f->t, "proc/20");
	tree_put_thread(f->t, 30, 30, "another", 'S', 500, 9);
	sample(f, false);
	list = watch_processes(f->w, &count);
	assert_int_equal(count, 1);
	assert_int_equal(list[0].pid, 10);
	assert_int_equal(threads(f)->blocked, 3);
	sample(f, false);
	assert_int_equal(threads(f)->scanned, 3);
	stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_samples_go_on),
		tree_test(test_late_results_count),
		tree_test(test_replaced_in_an_incident),
		tree_test(test_bound),
		tree_test(test_processes),
	};

	counting_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
