/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Threads that wait for a lock of the kernel, and what is known of its holder. */
#include <sys/syscall.h>

#include "test_verdict_setup.h"

#define HOLDER 2299

static void holder(struct fixture *x, const struct record_lock_holder *h, uint32_t readers)
{
	struct record_lock_wait lock = { .kind = RECORD_KERNEL_LOCK_memory_map,
		.id = 1,
		.pid = 2211,
		.comm = "mariadbd",
		.waiters = 16,
		.longest_ns = 14 * NSEC_PER_SEC,
		.readers = readers };

	if (h)
		lock.holder = *h;
	verdict_note_lock(&x->f, &lock);
}

static void waiters(struct fixture *x)
{
	for (int32_t tid = 2230; tid < 2246; tid++)
		waits(x,
			&(struct wait){ .waits_for = "memory map lock",
				.pid = 2211,
				.tid = tid,
				.ns = 14 * NSEC_PER_SEC });
}

static const struct record_lock_holder runs = { .present = true,
	.pid = 2211,
	.tid = HOLDER,
	.comm = "buffers",
	.state = 'R',
	.syscall = SYS_mmap,
	.held_ns = 13100 * MS };

static void test_the_holder_runs(void **state)
{
	struct record_lock_holder first = runs;
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	waiters(x);
	/* Another one had it for a moment. */
	first.tid = 2231;
	first.held_ns = MS;
	holder(x, &first, 0);
	holder(x, &runs, 1);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"16 threads waited up to 14.00 s for the memory map lock (mmap_lock) of process "
		"mariadbd pid 2211: thread 2299 (buffers) held it, running in mmap for at least "
		"13.10 s; no disk was at its limit");
	assert_int_equal(part(x, "culprit")->tid, HOLDER);
	assert_int_equal(part(x, "culprit")->longest_ns, 13100 * MS);
	assert_int_equal(part(x, "victims")->threads, 16);
	assert_null(part(x, "missing"));
	assert_int_equal(x->v.waits_for, RECORD_CAUSE_memory_map_lock);
}

/* Another thread of the process waits for a disk meanwhile, but it does not have the lock. */
static void test_a_disk_that_has_nothing_to_do_with_it(void **state)
{
	struct fixture *x = *state;

	scan(x);
	waiters(x);
	holder(x, &runs, 0);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "locked");
	assert_int_equal(part(x, "culprit")->tid, HOLDER);
	assert_int_equal(part(x, "victims")->threads, 16);
	assert_non_null(part(x, "second"));
}

/* The holder waits for the disk that is loaded: all are victims of that. */
static void test_the_end_of_the_chain(void **state)
{
	struct record_lock_holder h = runs;
	struct fixture *x = *state;

	scan(x);
	waiters(x);
	h.state = 'D';
	h.tid = 2230;
	h.waits_for = RECORD_CAUSE_page;
	holder(x, &h, 0);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_int_equal(part(x, "culprit")->tid, 2225);
	assert_in_range(part(x, "victims")->threads, 16, 18);
}

static void test_what_it_waits_for_without_a_device(void **state)
{
	struct record_lock_holder h = runs;
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	waiters(x);
	h.state = 'D';
	h.waits_for = RECORD_CAUSE_memory;
	h.connection_id = 17;
	holder(x, &h, 0);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"16 threads waited up to 14.00 s for the memory map lock (mmap_lock) of process "
		"mariadbd pid 2211: thread 2299 (buffers), session 17, held it, waiting for memory "
		"in mmap for at least 13.10 s; no disk was at its limit");
}

static void test_readers(void **state)
{
	static const struct {
		uint32_t readers;
		const char *words;
	} cases[] = { { 3, "3 readers held it together" },
		{ 1, "a reader held it, whom the kernel does not name" } };
	struct fixture *x = *state;
	char sentence[RECORD_SENTENCE_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		waiters(x);
		holder(x, NULL, cases[i].readers);
		decide(x);
		snprintf(sentence, sizeof(sentence),
			"16 threads waited up to 14.00 s for the memory map lock (mmap_lock) of "
			"process mariadbd pid 2211: %s",
			cases[i].words);
		assert_verdict(x, "locked", "measured", sentence);
		assert_null(part(x, "culprit"));
		assert_string_equal(part(x, "missing")->text, "it is not known who holds the lock");
	}
}

static void test_the_lock_of_an_inode(void **state)
{
	struct record_lock_wait lock = { .kind = RECORD_KERNEL_LOCK_inode,
		.id = 2,
		.pid = 4,
		.comm = "writer",
		.path = "/srv/journal",
		.waiters = 1,
		.longest_ns = 3 * NSEC_PER_SEC,
		.holder = runs };
	struct fixture *x = *state;

	lock.holder.syscall = SYS_fallocate;
	waits(x,
		&(struct wait){ .waits_for = "read-write lock",
			.pid = 4,
			.tid = 4,
			.ns = 3 * NSEC_PER_SEC });
	verdict_note_lock(&x->f, &lock);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"1 thread waited 3.00 s for the lock of the inode of /srv/journal: thread 2299 "
		"(buffers) of process 2211 held it, running in fallocate for at least 13.10 s");
	assert_string_equal(part(x, "culprit")->path, "/srv/journal");
}

/* Most waited for another lock, of which nothing is known. */
static void test_a_lock_that_few_wait_for(void **state)
{
	struct fixture *x = *state;

	waits(x,
		&(struct wait){ .waits_for = "memory map lock",
			.pid = 2211,
			.tid = 2230,
			.ns = NSEC_PER_SEC });
	waits(x,
		&(struct wait){ .waits_for = "mutex", .pid = 9, .tid = 9, .ns = 9 * NSEC_PER_SEC });
	holder(x, &runs, 0);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "waiting");
}

/* Which inode the others waited for is not known, nor that it was one at all. */
static void test_an_inode_that_few_wait_for(void **state)
{
	const struct record_lock_wait lock = { .kind = RECORD_KERNEL_LOCK_inode,
		.id = 2,
		.pid = 4,
		.comm = "writer",
		.path = "/srv/journal",
		.waiters = 1,
		.longest_ns = 300 * MS,
		.holder = runs };
	struct fixture *x = *state;

	waits(x,
		&(struct wait){ .waits_for = "read-write lock",
			.pid = 4,
			.tid = 4,
			.ns = 300 * MS });
	waits(x,
		&(struct wait){ .waits_for = "mutex", .pid = 9, .tid = 9, .ns = 9 * NSEC_PER_SEC });
	verdict_note_lock(&x->f, &lock);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "waiting");
	assert_null(part(x, "culprit"));
}

static void mutex(struct fixture *x, const struct record_lock_holder *h)
{
	const struct record_lock_wait lock = { .kind = RECORD_KERNEL_LOCK_mutex,
		.id = 2,
		.pid = 2211,
		.comm = "mariadbd",
		.waiters = 29,
		.longest_ns = 8 * NSEC_PER_SEC,
		.holder = *h };

	verdict_note_lock(&x->f, &lock);
}

static const struct record_lock_holder sleeps = { .present = true,
	.pid = 2211,
	.tid = HOLDER,
	.comm = "worker",
	.state = 'S',
	.syscall = SYS_recvfrom,
	.held_ns = 7 * NSEC_PER_SEC };

static void test_a_mutex(void **state)
{
	struct record_lock_holder h = sleeps;
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	mutex(x, &h);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"29 threads of mariadbd pid 2211 waited up to 8.00 s for a mutex of that program: "
		"thread 2299 (worker) held it for at least 7.00 s and slept in recvfrom; no disk was "
		"at its limit");
	assert_int_equal(part(x, "culprit")->tid, HOLDER);
	assert_int_equal(part(x, "culprit")->longest_ns, 7 * NSEC_PER_SEC);
	assert_int_equal(part(x, "victims")->threads, 29);
	assert_int_equal(part(x, "victims")->longest_ns, 8 * NSEC_PER_SEC);
	assert_null(part(x, "missing"));
}

/* Several had it one after the other: nobody is named. */
static void test_a_mutex_without_holder(void **state)
{
	const struct record_lock_holder none = { 0 };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	mutex(x, &none);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

/* Redis parks threads at a mutex while its main thread waits for requests. */
static void test_a_pool_without_work(void **state)
{
	struct record_lock_holder h = sleeps;
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	h.syscall = SYS_epoll_pwait;
	mutex(x, &h);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

static void test_a_deadlock(void **state)
{
	struct record_lock_holder h = sleeps;
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	h.syscall = SYS_futex;
	h.deadlocked_with = 2300;
	mutex(x, &h);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"29 threads of mariadbd pid 2211 waited up to 8.00 s for a mutex of that program: "
		"thread 2299 (worker) held it for at least 7.00 s and waited for one that thread 2300 "
		"held, which waited for this one in turn: a deadlock, which ends only when one of them "
		"gives up; no disk was at its limit");
	assert_int_equal(part(x, "culprit")->tid, HOLDER);
}

static void test_a_thread_waits_for_itself(void **state)
{
	struct record_lock_holder h = sleeps;
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	h.syscall = SYS_futex;
	h.deadlocked_with = HOLDER;
	mutex(x, &h);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"thread 2299 (worker) held it for at least 7.00 s and waited for it itself: a "
		"deadlock; no disk was at its limit"));
}

/*
 * The holder waits for the disk that is loaded: that is the verdict, and who waits behind is
 * said.
 */
static void test_a_mutex_behind_a_disk(void **state)
{
	struct record_lock_holder h = sleeps;
	struct fixture *x = *state;

	scan(x);
	h.tid = 2230;
	h.state = 'D';
	h.waits_for = RECORD_CAUSE_page;
	mutex(x, &h);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_int_equal(part(x, "culprit")->tid, 2225);
	assert_non_null(strstr(x->v.sentence,
		"29 threads of mariadbd pid 2211 waited up to 8.00 s for a mutex of that program: "
		"thread 2230 (worker) held it for at least 7.00 s and waited itself (page)"));
	/* Their waits count for the disk, 29 times 8 s. */
	assert_true(part(x, "victims")->total_ns > 29 * 8 * NSEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_mutex),
		verdict_test(test_a_mutex_without_holder),
		verdict_test(test_a_pool_without_work),
		verdict_test(test_a_mutex_behind_a_disk),
		verdict_test(test_a_deadlock),
		verdict_test(test_a_thread_waits_for_itself),
		verdict_test(test_the_holder_runs),
		verdict_test(test_a_disk_that_has_nothing_to_do_with_it),
		verdict_test(test_the_end_of_the_chain),
		verdict_test(test_what_it_waits_for_without_a_device),
		verdict_test(test_readers),
		verdict_test(test_the_lock_of_an_inode),
		verdict_test(test_a_lock_that_few_wait_for),
		verdict_test(test_an_inode_that_few_wait_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
