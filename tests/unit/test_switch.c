/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * Whose operation ends at a context switch. The kernel runs the program of `wait` here as if a
 * thread had been switched out that has the id of this one.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include "iostall/event.h"
#include "probes/kernel_types.h"
#include "probes/set.h"
#include "util/cleanup.h"

/* What the kernel calls a thread's last switch, and a sleep in D state. */
#define TASK_DEAD 0x80
#define TASK_UNINTERRUPTIBLE 0x2
/* A flag of each process that has not called exec(). It stands for that of a frozen thread. */
#define PF_FORKNOEXEC 0x40
/* The task_struct of another thread, which nobody follows. */
#define OTHER_TASK 0xffff888012345678

struct fixture {
	struct config config;
	struct kernel_types *types;
	struct probe_set set;
	int error; /* why it cannot be loaded here; 0: it is */
	char dir[32];
	char fifo[48];
	pid_t sleeper; /* it waits for somebody to open the FIFO, too; 0: it has ended */
	uint64_t task; /* its task_struct, which `kept` keeps from being freed */
	int kept;
};

static const struct probe *wait_probe(const struct fixture *f)
{
	return &f->set.probes[CONFIG_PROBE_wait];
}

static int map_fd(const struct fixture *f, const char *map)
{
	return bpf_map__fd(probe_map(wait_probe(f), map));
}

static uint32_t run(const struct probe *probe, const char *program, void *args, uint32_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = size);

	assert_int_equal(bpf_prog_test_run_opts(probe_program_fd(probe, program), &opts), 0);
	return opts.retval;
}

/* Whether the task scan notes the thread. */
static bool is_found(const struct probe *probe, pid_t tid)
{
	uint64_t args[1] = { (uint64_t)tid };

	return run(probe, "wait_task_scan", args, sizeof(args)) == 1;
}

/* The thread `task`, which has the id of this one, leaves the CPU in that state. */
static void switch_out(const struct probe *probe, uint64_t task, uint64_t state)
{
	uint64_t args[4] = { 0, task, 0, state };

	run(probe, "wait_sched_switch_raw_tp", args, sizeof(args));
}

/* An operation of that thread is noted under the id of this one. */
static void note(const struct fixture *f, uint64_t task)
{
	const uint32_t tid = (uint32_t)gettid();
	const struct event_sleep sleep = {
		.op = { .start_ns = 1, .task = task, .tid = tid },
		.asleep_ns = 1,
		.sleeps = 1,
	};

	assert_int_equal(bpf_map_update_elem(map_fd(f, "sleeps"), &tid, &sleep, BPF_ANY), 0);
}

/* 0: none */
static uint64_t noted_task(const struct fixture *f)
{
	const uint32_t tid = (uint32_t)gettid();
	struct event_sleep sleep;

	return bpf_map_lookup_elem(map_fd(f, "sleeps"), &tid, &sleep) == 0 ? sleep.op.task : 0;
}

static void forget(const struct fixture *f)
{
	const uint32_t tid = (uint32_t)gettid();

	assert_int_equal(bpf_map_delete_elem(map_fd(f, "sleeps"), &tid), 0);
}

/* As in a freeze: so many threads are asleep that each mark is that of some of them. */
static void mark_all(const struct fixture *f)
{
	struct event_sleep_marks marks;
	const uint32_t zero = 0;

	for (unsigned int i = 0; i < 1 << EVENT_SLEEP_MARKS_BITS; i++)
		marks.counts[i] = 2;
	assert_int_equal(bpf_map_update_elem(map_fd(f, "sleep_marks"), &zero, &marks, BPF_ANY), 0);
}

/* Removes its operation, which the task scan has found. Returns its task_struct. */
static uint64_t take_found(const struct fixture *f, pid_t pid)
{
	const uint32_t tid = (uint32_t)pid;
	struct event_sleep sleep;

	assert_int_equal(bpf_map_lookup_elem(map_fd(f, "sleeps"), &tid, &sleep), 0);
	assert_int_equal(bpf_map_delete_elem(map_fd(f, "sleeps"), &tid), 0);
	return sleep.op.task;
}

static void start_sleeper(struct fixture *f)
{
	f->sleeper = fork();
	assert_true(f->sleeper >= 0);
	if (f->sleeper == 0)
		_exit(open(f->fifo, O_RDONLY | O_CLOEXEC) < 0);
	while (!is_found(wait_probe(f), f->sleeper))
		usleep(500);
	f->task = take_found(f, f->sleeper);
}

/* The event counts nothing, but it is about this thread, whose task_struct it keeps. */
static void keep_task(struct fixture *f)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr) };

	f->kept =
		(int)syscall(SYS_perf_event_open, &attr, f->sleeper, -1, -1, PERF_FLAG_FD_CLOEXEC);
	assert_true(f->kept >= 0);
}

/* From here on its id is free. */
static void end_sleeper(struct fixture *f)
{
	assert_int_equal(kill(f->sleeper, SIGKILL), 0);
	assert_int_equal(waitpid(f->sleeper, NULL, 0), f->sleeper);
	f->sleeper = 0;
}

/* Loaded once: libbpf 1.1 does not survive that its handlers are registered a second time. */
static int load(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	*state = f;
	config_set_defaults(&f->config);
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++)
		f->config.probes[i].enabled = i == CONFIG_PROBE_wait;
	strcpy(f->dir, "/tmp/iostall-switch-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->fifo, sizeof(f->fifo), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(f->fifo, 0600), 0);
	f->error = probe_set_load(&f->set, &f->config, "/sys", 0, &f->types, NULL);
	return 0;
}

static int unload(void **state)
{
	struct fixture *f = *state;

	probe_set_unload(&f->set);
	kernel_types_free(f->types);
	unlink(f->fifo);
	rmdir(f->dir);
	free(f);
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = *state;

	f->kept = -1;
	if (f->error) {
		print_message("`wait` cannot be loaded here: %s\n", strerror(-f->error));
		skip();
	}
	mark_all(f);
	start_sleeper(f);
	keep_task(f);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->sleeper > 0)
		end_sleeper(f);
	if (f->kept >= 0)
		close_fd(f->kept);
	return 0;
}

/* Its id is free, and a thread that has it by now sleeps. */
static void test_a_thread_that_ends_does_not_end_the_next_ones(void **state)
{
	struct fixture *f = *state;

	end_sleeper(f);
	note(f, OTHER_TASK);
	switch_out(wait_probe(f), f->task, TASK_DEAD);
	assert_int_equal(noted_task(f), OTHER_TASK);
	/* Nor when it is preempted or has to wait before its last switch. */
	switch_out(wait_probe(f), f->task, 0);
	assert_int_equal(noted_task(f), OTHER_TASK);
	switch_out(wait_probe(f), f->task, TASK_UNINTERRUPTIBLE);
	assert_int_equal(noted_task(f), OTHER_TASK);
}

static void test_a_thread_that_ends_ends_its_own(void **state)
{
	struct fixture *f = *state;

	end_sleeper(f);
	note(f, f->task);
	switch_out(wait_probe(f), f->task, TASK_DEAD);
	assert_int_equal(noted_task(f), 0);
}

/* It has taken the id over in an exec. */
static void test_whoever_has_the_id_ends_that_of_an_earlier_one(void **state)
{
	struct fixture *f = *state;

	note(f, OTHER_TASK);
	switch_out(wait_probe(f), f->task, TASK_DEAD);
	assert_int_equal(noted_task(f), 0);
	note(f, OTHER_TASK);
	switch_out(wait_probe(f), f->task, 0);
	assert_int_equal(noted_task(f), 0);
}

/* `wait` as it is loaded on a kernel with such a flag. It does not leave out this process. */
static void load_other(const struct fixture *f, uint32_t frozen_flag, struct probe *ret_probe)
{
	struct probe_settings settings = f->set.settings;

	settings.common.frozen_flag = frozen_flag;
	settings.common.self_pid = 0;
	*ret_probe = (struct probe){};
	assert_int_equal(probe_load(ret_probe, probe_ops_get(CONFIG_PROBE_wait),
				 CONFIG_BACKEND_AUTO, &settings, &f->set.maps),
		0);
	mark_all(f);
}

/* A control group of version 1 may be frozen. Up to 6.0 its threads are in D state then. */
static void test_a_frozen_thread_is_in_no_operation(void **state)
{
	struct fixture *f = *state;
	struct probe plain, frozen;

	load_other(f, 0, &plain);
	assert_true(is_found(&plain, f->sleeper));
	assert_int_equal(take_found(f, f->sleeper), f->task);
	switch_out(&plain, f->task, TASK_UNINTERRUPTIBLE);
	assert_int_equal(noted_task(f), f->task);
	forget(f);
	probe_unload(&plain);

	load_other(f, PF_FORKNOEXEC, &frozen);
	assert_false(is_found(&frozen, f->sleeper));
	switch_out(&frozen, f->task, TASK_UNINTERRUPTIBLE);
	assert_int_equal(noted_task(f), 0);
	probe_unload(&frozen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_thread_that_ends_does_not_end_the_next_ones,
			setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_thread_that_ends_ends_its_own, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_a_frozen_thread_is_in_no_operation, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_whoever_has_the_id_ends_that_of_an_earlier_one,
			setup, teardown),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
