/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Threads that wait for the journal, a lock, memory or a file server. */
#include "test_verdict_setup.h"

static void test_waiting(void **state)
{
	static const struct {
		const char *waits_for;
		const char *sentence;
	} cases[] = {
		{ "read-write lock",
			"threads waited for a kernel lock (read-write lock), mariadbd tid 2230 "
			"the longest, while no device was at its limit; 2 threads waited up to "
			"4.20 s" },
		{ "journal commit",
			"threads waited for the file system journal (journal commit), mariadbd "
			"tid 2230 the longest, while no device was at its limit; 2 threads "
			"waited up to 4.20 s" },
		{ "dirty throttling",
			"threads waited for dirty pages to be written (dirty throttling), "
			"mariadbd tid 2230 the longest, while no device was at its limit; 2 "
			"threads waited up to 4.20 s" },
		{ "memory",
			"threads waited for memory, mariadbd tid 2230 the longest, while no "
			"device was at its limit; 2 threads waited up to 4.20 s" },
		{ "core dump",
			"threads waited for a core dump, mariadbd tid 2230 the longest, while no "
			"device was at its limit; 2 threads waited up to 4.20 s" },
		{ "kernel worker",
			"threads waited for a kernel worker, mariadbd tid 2230 the longest, while "
			"no device was at its limit; 2 threads waited up to 4.20 s" },
		{ "FUSE server",
			"threads waited for a file server (FUSE server), mariadbd tid 2230 the "
			"longest, while no device was at its limit; 2 threads waited up to 4.20 s" },
	};
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		samples(x, &idle_sdb, 5);
		operation(x, 2230, cases[i].waits_for, 4200 * MS, false);
		operation(x, 2231, cases[i].waits_for, 2 * NSEC_PER_SEC, false);
		operation(x, 2232, "page", 200 * MS, true);
		decide(x);
		assert_verdict(x, "waiting", "measured", cases[i].sentence);
		assert_string_equal(record_cause_text(x->v.waits_for), cases[i].waits_for);
	}
	/* Without samples nothing is said about devices. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	operation(x, 2230, "mutex", 4200 * MS, false);
	decide(x);
	assert_verdict(x, "waiting", "measured",
		"threads waited for a kernel lock (mutex), mariadbd tid 2230 the longest; 1 "
		"thread waited 4.20 s");
	assert_string_equal(part(x, "missing")->text, "it is not known who holds the lock");
}

/* The writer is on the disk that is loaded, and whoever is slowed down with it on another one. */
static void test_waiting_for_what_others_dirtied(void **state)
{
	static const struct {
		const char *writer_waits_for;
		uint32_t victims;
	} cases[] = { { "dirty throttling", 2 }, { "page", 1 } };
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		samples(x, &loaded_sdb, 10);
		totals(x, 2130, 204 * MIB, 400 * MS);
		load(x, "thread", 2300, 2300, "dump", 92, false);
		waits(x,
			&(struct wait){ cases[i].writer_waits_for, "sdb", 8, 16, 2300, 2300, 0,
				4 * NSEC_PER_SEC });
		waits(x, &(struct wait){ "page", "sdb", 8, 16, 42, 42, 0, 3 * NSEC_PER_SEC });
		waits(x,
			&(struct wait){ "dirty throttling", "sdc", 8, 32, 43, 43, 0,
				NSEC_PER_SEC });
		decide(x);
		assert_int_equal(x->v.class, RECORD_CLASS_saturated);
		assert_int_equal(part(x, "culprit")->pid, 2300);
		assert_int_equal(part(x, "victims")->threads, cases[i].victims);
	}
}

static void wait_for_server(struct fixture *x, enum record_cause waits_for, uint32_t minor)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_wait,
		.pid = 2211,
		.tid = 2230,
		.comm = "mariadbd",
		.dev.minor = minor,
		.start_mono_ns = TRIGGER_NS,
		.waits_for = waits_for,
		.dur_ns = 4200 * MS };

	verdict_note_operation(&x->f, &op, false);
}

static void note_file_server(struct fixture *x, const struct record_file_server *found)
{
	struct record_sample s = { .reading = { .mono_ns = x->now_ns, .interval_ns = NSEC_PER_SEC },
		.file_server = *found };

	verdict_note_sample(&x->f, &s);
	x->now_ns += NSEC_PER_SEC;
}

static void assert_file_server(struct fixture *x, const char *words)
{
	char sentence[RECORD_SENTENCE_SIZE];

	decide(x);
	snprintf(sentence, sizeof(sentence),
		"threads waited for a file server (%s), mariadbd tid 2230 the longest, while no "
		"device was at its limit; 1 thread waited 4.20 s",
		words);
	assert_verdict(x, "waiting", "measured", sentence);
}

static void test_waiting_for_a_fuse_server(void **state)
{
	struct record_file_server found = { .present = true,
		.dev.minor = 52,
		.mount = "/srv",
		.source = "host:/data" };
	struct fixture *x = *state;

	wait_for_server(x, RECORD_CAUSE_fuse_server, 52);
	note_file_server(x, &found);
	assert_file_server(x, "FUSE server: host:/data on /srv");
	assert_string_equal(part(x, "missing")->text,
		"it is not known which process serves the FUSE file system");
	found.pid = 812;
	found.basis = RECORD_BASIS_inferred;
	found.state = 'T';
	text_copy(found.comm, sizeof(found.comm), "sshfs");
	note_file_server(x, &found);
	assert_file_server(x,
		"FUSE server: probably sshfs pid 812, which was stopped (T), for host:/data on /srv");
	assert_null(part(x, "missing"));
	assert_int_equal(part(x, "cause")->pid, 812);
	assert_int_equal(part(x, "cause")->basis, RECORD_BASIS_inferred);
	/* It has continued before the end. */
	found.basis = RECORD_BASIS_measured;
	found.state = 'S';
	note_file_server(x, &found);
	assert_file_server(x,
		"FUSE server: sshfs pid 812, which was stopped (T), for host:/data on /srv");
	assert_int_equal(part(x, "cause")->basis, RECORD_BASIS_measured);
	/* Another one took its place. */
	found.pid = 900;
	found.mount[0] = found.source[0] = '\0';
	note_file_server(x, &found);
	assert_file_server(x, "FUSE server: sshfs pid 900, which was asleep (S)");
}

/* What was found is of the file system on which a thread waited longest, or it is not said. */
static void test_waiting_for_another_server(void **state)
{
	const struct record_file_server found = { .present = true,
		.dev.minor = 60,
		.mount = "/srv",
		.source = "10.0.0.1:/export" };
	struct fixture *x = *state;

	wait_for_server(x, RECORD_CAUSE_nfs_server, 61);
	note_file_server(x, &found);
	assert_file_server(x, "NFS server");
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	wait_for_server(x, RECORD_CAUSE_nfs_server, 60);
	note_file_server(x, &found);
	assert_file_server(x, "NFS server: 10.0.0.1:/export on /srv");
	assert_null(part(x, "missing"));
}

/* One thread populates a mapping from a slow disk, and no other can map or unmap anything. */
static void test_waiting_for_the_memory_map(void **state)
{
	struct record_operation op = { .op = RECORD_OP_other,
		.probe = RECORD_PROBE_wait,
		.pid = 2211,
		.comm = "mariadbd",
		.start_mono_ns = TRIGGER_NS,
		.waits_for = RECORD_CAUSE_memory_map_lock,
		.kstack = "vm_mmap_pgoff+0xc5\ndo_syscall_64+0x81",
		.dur_ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	for (op.tid = 2230; op.tid < 2246; op.tid++)
		verdict_note_operation(&x->f, &op, false);
	decide(x);
	assert_verdict(x, "waiting", "measured",
		"threads waited for a kernel lock (memory map lock), mariadbd tid 2230 the longest, "
		"behind another thread of the same process, while no device was at its limit; 16 "
		"threads waited up to 9.00 s");
	op.tid = 2300;
	op.waits_for = RECORD_CAUSE_page;
	op.dur_ns = NSEC_PER_SEC;
	text_copy(op.kstack, sizeof(op.kstack),
		"io_schedule+0x46\nfolio_wait_bit_common+0x13d\n__get_user_pages+0x1\n"
		"populate_vma_page_range+0x5f\n__mm_populate+0x1");
	verdict_note_operation(&x->f, &op, false);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"threads waited for a kernel lock (memory map lock), mariadbd tid 2230 the longest; "
		"mariadbd tid 2300 probably held it for 1.00 s, waiting for page in "
		"folio_wait_bit_common, while no device was at its limit; 16 threads"));
}

/* What most of the time was waited for counts, and not what one thread waited for longest. */
static void test_many_waits_against_a_longer_one(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 10);
	for (int32_t tid = 2230; tid < 2234; tid++)
		operation(x, tid, "memory of control group", 300 * MS, true);
	operation(x, 2240, "device", 200 * MS, true);
	operation(x, 2241, "", 342 * MS, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "memory");
	/* Nobody knows what most of the time was waited for. */
	operation(x, 2242, "", 1300 * MS, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_waiting),
		verdict_test(test_waiting_for_what_others_dirtied),
		verdict_test(test_waiting_for_a_fuse_server),
		verdict_test(test_waiting_for_another_server),
		verdict_test(test_waiting_for_the_memory_map),
		verdict_test(test_many_waits_against_a_longer_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
