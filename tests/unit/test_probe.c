/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What the descriptors of the probes promise, and what trace.backend means for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include "probes/probe.h"
#include "probes/set.h"
#include "probes/registers.h"
#include "probes/syscalls_32.h"
#include "util/cleanup.h"

static void test_wanted_backend(void **state)
{
	static const struct probe_backend both[] = {
		{ CONFIG_BACKEND_FENTRY, RECORD_BACKEND_fentry, NULL, 0, true, NULL, NULL },
		{ CONFIG_BACKEND_KPROBE, RECORD_BACKEND_kprobe, NULL, 0, false, NULL, NULL },
	};
	const struct probe_ops functions = { .backends = both, .backends_count = ARRAY_SIZE(both) };

	(void)state;
	assert_int_equal(probe_wanted_backend(&functions, CONFIG_BACKEND_AUTO),
		CONFIG_BACKEND_AUTO);
	assert_int_equal(probe_wanted_backend(&functions, CONFIG_BACKEND_KPROBE),
		CONFIG_BACKEND_KPROBE);
	/* It has none of that kind, so the choice is its own. */
	assert_int_equal(probe_wanted_backend(&functions, CONFIG_BACKEND_TRACEPOINT),
		CONFIG_BACKEND_AUTO);
}

/* The memory of a program on each CPU is that of CPUs that are there, not of all that may come. */
static void test_cpus_that_are_on_line(void **state)
{
	(void)state;
	assert_int_equal(probe_set_parse_cpus("0\n"), 1);
	assert_int_equal(probe_set_parse_cpus("0-127\n"), 128);
	assert_int_equal(probe_set_parse_cpus("0-3,8-11\n"), 12);
	assert_int_equal(probe_set_parse_cpus("0,2,5"), 6);
	assert_int_equal(probe_set_parse_cpus("\n"), 0);
	assert_int_equal(probe_set_parse_cpus(""), 0);
	assert_int_equal(probe_set_parse_cpus("0-x"), 0);
	assert_int_equal(probe_set_parse_cpus("0-4294967295"), 0);
}

/* The descriptors of all probes, and those of probes that have programs at entries by choice. */
static unsigned int list_descriptors(const struct probe_ops *ret_list[2 * CONFIG_PROBE_COUNT])
{
	unsigned int count = 0;

	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe_ops *ops = probe_ops_get(i);

		ret_list[count++] = ops;
		if (ops->more)
			ret_list[count++] = ops->more;
	}
	return count;
}

/* What is described by a program has the program in each backend. */
static void test_descriptors_agree(void **state)
{
	const struct probe_ops *list[2 * CONFIG_PROBE_COUNT];
	unsigned int count = list_descriptors(list);

	(void)state;
	for (unsigned int i = 0; i < count; i++) {
		const struct probe_ops *ops = list[i];

		assert_true(ops->backends_count > 0 && ops->backends_count <= PROBE_BACKENDS_MAX);
		for (unsigned int b = 0; ops->resolve_program && b < ops->backends_count; b++) {
			const struct probe_backend *backend = &ops->backends[b];
			bool found = false;

			assert_true(backend->programs_count <= PROBE_PROGRAMS_MAX);
			for (unsigned int p = 0; p < backend->programs_count; p++)
				found = found ||
					strcmp(backend->programs[p].name, ops->resolve_program) ==
						0;
			assert_true(found);
		}
	}
}

/* Nothing is lost with a part that has no program. */
static void test_parts_have_programs(void **state)
{
	const struct probe_ops *list[2 * CONFIG_PROBE_COUNT];
	unsigned int count = list_descriptors(list);

	(void)state;
	for (unsigned int i = 0; i < count; i++) {
		const struct probe_ops *ops = list[i];

		assert_true(ops->parts_count <= PROBE_PARTS_MAX);
		for (unsigned int part = 0; part < ops->parts_count; part++) {
			const struct probe_backend *backend = &ops->backends[0];
			bool found = false;

			for (unsigned int p = 0; p < backend->programs_count; p++)
				found = found ||
					strstr(backend->programs[p].name,
						ops->parts[part].programs);
			assert_true(found);
		}
	}
}

/* A program can only describe what a map has, and nothing else uses the map. */
static void test_what_is_in_flight_can_be_described(void **state)
{
	const struct probe_ops *list[2 * CONFIG_PROBE_COUNT];
	unsigned int count = list_descriptors(list);

	(void)state;
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(list[i]->resolve_program != NULL, list[i]->inflight_map != NULL);
}

/* Each return has its entry, and is attached before it. */
static void test_pairs_are_complete(void **state)
{
	const struct probe_ops *ops = probe_ops_get(CONFIG_PROBE_vfs);
	const struct probe_ops *pairs = ops->more;

	(void)state;
	assert_int_equal(ops->pairing, RECORD_PAIRING_sleep);
	assert_int_equal(pairs->pairing, RECORD_PAIRING_entry);
	assert_int_equal(pairs->backends_count, ops->backends_count);
	for (unsigned int b = 0; b < ops->backends_count; b++) {
		const struct probe_backend *returns = &ops->backends[b];
		const struct probe_backend *both = &pairs->backends[b];
		unsigned int count = returns->programs_count;

		assert_int_equal(both->id, returns->id);
		assert_int_equal(both->programs_count, 2 * count + 1);
		for (unsigned int p = 0; p < count; p++)
			assert_string_equal(both->programs[p].name, returns->programs[p].name);
		/* Without its return an entry stays: where runs are skipped another is better. */
		assert_int_equal(both->loses_when_preempted, both->id != CONFIG_BACKEND_KPROBE);
	}
}

static void test_more_programs_by_choice(void **state)
{
	const struct probe_settings none = { .pairing = CONFIG_PAIRING_SLEEP };
	const struct probe_settings wakers = { .offcpu_wakers = true };
	const struct probe_settings entry = { .pairing = CONFIG_PAIRING_ENTRY };

	(void)state;
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe_ops *ops = probe_ops_get(i);

		assert_ptr_equal(probe_ops_choose(i, &none), ops);
		assert_ptr_equal(probe_ops_choose(i, &entry),
			i == CONFIG_PROBE_vfs ? ops->more : ops);
		assert_ptr_equal(probe_ops_choose(i, &wakers),
			i == CONFIG_PROBE_offcpu ? ops->more : ops);
	}
}

/*
 * Detaching goes from the last to the first and may be cancelled anywhere. What has the requests of
 * a probe must see each end for as long as it sees any begin.
 */
static void test_completions_are_attached_first(void **state)
{
	static const enum config_probe_name of_requests[] = { CONFIG_PROBE_uring,
		CONFIG_PROBE_aio };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(of_requests); i++) {
		const struct probe_ops *ops = probe_ops_get(of_requests[i]);

		for (unsigned int b = 0; b < ops->backends_count; b++) {
			const struct probe_backend *backend = &ops->backends[b];
			unsigned int begins = 0, ends = 0;

			for (unsigned int p = 0; p < backend->programs_count; p++) {
				if (backend->programs[p].attach == PROBE_ATTACH_NONE)
					continue;
				if (strstr(backend->programs[p].name, "complete")) {
					assert_int_equal(begins, 0);
					ends++;
				} else {
					begins++;
				}
			}
			assert_true(begins > 0 && ends > 0);
		}
	}
}

/* Whether an object has the code of bpf/returns.bpf.h, which ends only what `wait` has noted. */
static bool has_returns(const struct probe_ops *ops)
{
	size_t size;
	const void *elf = ops->elf(&size);
	struct bpf_object *object = bpf_object__open_mem(elf, size, NULL);
	bool found;

	assert_non_null(object);
	found = btf__find_by_name_kind(bpf_object__btf(object), "return_finish", BTF_KIND_FUNC) > 0;
	bpf_object__close(object);
	return found;
}

static void test_who_needs_wait_is_marked(void **state)
{
	static const char *const help[CONFIG_PROBE_COUNT] = {
#define PROBE(name, operations, text) [CONFIG_PROBE_##name] = text,
#include "probes/probes.def"
#undef PROBE
	};

	(void)state;
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe_ops *ops = probe_ops_get(i);

		assert_int_equal(ops->needs_wait, has_returns(ops));
		assert_int_equal(ops->needs_wait, strstr(help[i], "it needs wait") != NULL);
	}
}

/* The tracer closes what it replaces; whoever reads counters meanwhile must not find it. */
static void test_replaced_objects_are_forgotten(void **state)
{
	static const struct probe_backend backend = { .name = RECORD_BACKEND_fentry };
	static struct probe_set set;
	char object;

	(void)state;
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		set.enabled[i] = true;
		set.probes[i].backend = &backend;
		set.probes[i].object = (void *)&object;
		set.probes[i].skeleton = &object;
	}
	set.probes[CONFIG_PROBE_vfs].load_before_attach_again = true;
	set.probes[CONFIG_PROBE_vfs].attached_once = true;
	/* It has not been attached, so its programs need not be loaded again. */
	set.probes[CONFIG_PROBE_sync].load_before_attach_again = true;
	probe_set_forget_replaced(&set);
	assert_null(set.probes[CONFIG_PROBE_vfs].object);
	assert_null(set.probes[CONFIG_PROBE_vfs].skeleton);
	assert_int_equal(probe_skipped_runs(&set.probes[CONFIG_PROBE_vfs]), 0);
	assert_ptr_equal(set.probes[CONFIG_PROBE_sync].object, &object);
	assert_ptr_equal(set.probes[CONFIG_PROBE_wait].object, &object);
}

/* The texts are those of Debian 5.10, 6.12 and 7.2, of a real-time kernel and of a desktop's. */
static void test_preempting_kernels(void **state)
{
	(void)state;
	assert_false(preemption_skips_runs("#1 SMP Debian 5.10.223-1 (2024-08-10)", -1));
	assert_false(preemption_skips_runs("#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1", 0));
	assert_false(preemption_skips_runs("#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1", 1));
	assert_true(preemption_skips_runs("#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1", 2));
	assert_true(preemption_skips_runs("#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1", 3));
	/* Unknown: the mode cannot be read, or is one that has not been invented yet. */
	assert_true(preemption_skips_runs("#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1", -1));
	assert_true(preemption_skips_runs("#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1", 4));
	assert_true(preemption_skips_runs("#1 SMP PREEMPT_RT Debian 6.1.192-1", 0));
	assert_true(preemption_skips_runs("#1 SMP PREEMPT", 0));
}

/* A kernel's types with `struct bpf_ringbuf { TYPEDEF spinlock; }` for a typedef of `lock`. */
static struct btf *ring_types(const char *lock, const char *member, const char *member_type)
{
	struct btf *btf = btf__new_empty();
	int inner, outer, name;

	assert_non_null(btf);
	inner = btf__add_struct(btf, member_type, 4);
	outer = btf__add_struct(btf, lock, 4);
	assert_int_equal(btf__add_field(btf, member, inner, 0, 0), 0);
	name = btf__add_typedef(btf, "a_lock_t", outer);
	assert_true(btf__add_struct(btf, "bpf_ringbuf", 4) > 0);
	assert_int_equal(btf__add_field(btf, "spinlock", name, 0, 0), 0);
	return btf;
}

static void test_ring_buffers_that_may_sleep(void **state)
{
	struct btf *none = btf__new_empty();
	struct btf *fixed = ring_types("raw_spinlock", "raw_lock", "qspinlock");
	struct btf *plain = ring_types("spinlock", "rlock", "raw_spinlock");
	struct btf *real_time = ring_types("spinlock", "lock", "rt_mutex_base");

	(void)state;
	assert_false(preemption_ring_sleeps(fixed));
	assert_false(preemption_ring_sleeps(plain));
	assert_true(preemption_ring_sleeps(real_time));
	assert_true(preemption_ring_sleeps(none));
	btf__free(none);
	btf__free(fixed);
	btf__free(plain);
	btf__free(real_time);
}

/* No program of such a kernel may send an event where it must not sleep: nothing is opened. */
static void test_wait_is_refused_where_it_could_hang_the_host(void **state)
{
	const struct probe_settings settings = { .preemption = { true, true } };
	const struct probe_ops *ops = probe_ops_get(CONFIG_PROBE_wait);
	struct probe probe;

	(void)state;
	assert_int_equal(probe_load(&probe, ops, CONFIG_BACKEND_AUTO, &settings, NULL),
		-EOPNOTSUPP);
	assert_null(probe.backend);
	assert_string_equal(probe.reasons[0],
		"refused: its events could hang this real-time kernel (CVE-2024-50138)");
	assert_non_null(probe.hints[0]);
}

/* Numbers and arguments as in arch/arm/tools/syscall.tbl; the same on any machine. */
static void test_each_system_call_has_its_own_index(void **state)
{
	(void)state;
	for (unsigned int nr = 0; nr < EVENT_SYSCALLS_MAX; nr++) {
		assert_int_equal(event_syscall_index(nr), nr);
		assert_int_equal(event_syscall_index(EVENT_SYSCALL_32BIT + nr),
			EVENT_SYSCALLS_MAX + nr);
	}
}

static void test_system_calls_of_32_bit_programs_of_arm(void **state)
{
	static struct event_syscall calls[EVENT_SYSCALLS_MAX];
	int own[128];

	(void)state;
	for (int i = 0; i < (int)ARRAY_SIZE(own); i++)
		own[i] = 1000 + i;
	for (unsigned int i = 0; i < EVENT_SYSCALLS_MAX; i++)
		calls[i] = EVENT_SYSCALL_OTHER;
	syscalls_arm_fill(own, calls);
	assert_int_equal(calls[3].op, EVENT_OP_READ);
	assert_int_equal(calls[4].op, EVENT_OP_WRITE);
	assert_int_equal(calls[118].op, EVENT_OP_FSYNC);
	assert_int_equal(calls[118].fd, 0);
	assert_int_equal(calls[246].op, EVENT_OP_SUBMIT);
	/* An offset begins at an even register: after three arguments at the fifth. */
	assert_int_equal(calls[180].op, EVENT_OP_READ);
	assert_int_equal(calls[180].offset, 4);
	assert_int_equal(calls[180].bytes, 2);
	assert_int_equal(calls[181].op, EVENT_OP_WRITE);
	assert_int_equal(calls[181].offset, 4);
	assert_int_equal(calls[181].wide, EVENT_WIDE_OFFSET);
	assert_int_equal(calls[225].offset, 2);
	assert_int_equal(calls[225].bytes, 4);
	assert_int_equal(calls[352].op, EVENT_OP_ALLOCATE);
	assert_int_equal(calls[352].wide, EVENT_WIDE_OFFSET | EVENT_WIDE_BYTES);
	/* Two halves of the same argument need no even register. */
	assert_int_equal(calls[361].offset, 3);
	/* sync_file_range2() and arm_fadvise64_64() have their flags before the offset. */
	assert_int_equal(calls[341].op, EVENT_OP_SYNC);
	assert_int_equal(calls[341].offset, 2);
	assert_int_equal(calls[270].bytes, 4);
	/* The first calls of syscalls.def are read, write, pread64. */
	assert_int_equal(calls[3].own_nr, 1000);
	assert_int_equal(calls[180].own_nr, 1002);
	/* arm64 has no open(). */
	assert_int_equal(calls[5].op, EVENT_OP_OPEN);
	assert_int_equal(calls[5].own_nr, -1);
	assert_int_equal(calls[195].own_nr, -1);
}

/* What a kernel with stacks of 32 KB, as with KASAN, has in each place. */
static void test_choice_of_the_place_of_registers(void **state)
{
	const struct event_registers made = { .nr = 321, .args = { 10, 0x7ffd00001000, 128 } };
	struct event_registers places[EVENT_REGISTERS_PLACES];

	(void)state;
	for (unsigned int i = 0; i < EVENT_REGISTERS_PLACES; i++)
		places[i] = (struct event_registers){ .offset = 16216 + i };
	assert_int_equal(registers_choose(places, &made), 0);
	places[2] = (struct event_registers){ 32600, 321, { 10, 0x7ffd00001000, 128 } };
	assert_int_equal(registers_choose(places, &made), 32600);
	/* Another call of bpf(), and another call with the same arguments. */
	places[5] = (struct event_registers){ 65352, 321, { 10, 0x7ffd00002000, 128 } };
	places[6] = (struct event_registers){ 130904, 322, { 10, 0x7ffd00001000, 128 } };
	assert_int_equal(registers_choose(places, &made), 32600);
	places[7] = places[2];
	assert_int_equal(registers_choose(places, &made), 0);
}

/* Without them each operation would have another system call and no file. */
static void test_probes_that_read_registers_are_refused_without(void **state)
{
	const struct probe_settings settings = { .registers_error = -ENODATA };
	static const enum config_probe_name names[] = { CONFIG_PROBE_wait, CONFIG_PROBE_vfs,
		CONFIG_PROBE_sync };
	struct probe probe;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(probe_load(&probe, probe_ops_get(names[i]), CONFIG_BACKEND_AUTO,
					 &settings, NULL),
			-EOPNOTSUPP);
		assert_null(probe.backend);
		assert_string_equal(probe.reasons[0],
			"refused: where this kernel keeps a program's registers was not found");
		assert_non_null(probe.hints[0]);
	}
}

/* The kernel of this host: 16 KB, or more with KASAN or large pages. */
static void test_place_of_registers_is_found(void **state)
{
	uint32_t offset = 0;
	int r = registers_find(NULL, &offset);

	(void)state;
	if (r == -EPERM) {
		print_message("BPF programs cannot be loaded: %s\n", strerror(-r));
		skip();
	}
	assert_int_equal(r, 0);
	assert_in_range(offset, 16384 - 400, 131072);
}

/* Numbers and arguments as in arch/x86/entry/syscalls/syscall_32.tbl. */
static void test_system_calls_of_32_bit_programs(void **state)
{
	static const int own[] = {
#define SYSCALL(name, ...) SYS_##name,
#define COPY(name, ...) SYS_##name,
#include "probes/syscalls.def"
#undef SYSCALL
#undef COPY
	};
	static struct event_syscall calls[EVENT_SYSCALLS_MAX];

	(void)state;
	for (unsigned int i = 0; i < EVENT_SYSCALLS_MAX; i++)
		calls[i] = EVENT_SYSCALL_OTHER;
	syscalls_32_fill(own, calls);
#if defined(__x86_64__)
	assert_int_equal(calls[3].op, EVENT_OP_READ);
	assert_int_equal(calls[3].fd, 0);
	assert_int_equal(calls[118].op, EVENT_OP_FSYNC);
	/* Two arguments for the offset, two for the length. */
	assert_int_equal(calls[324].op, EVENT_OP_ALLOCATE);
	assert_int_equal(calls[324].offset, 2);
	assert_int_equal(calls[324].bytes, 4);
	assert_int_equal(calls[324].wide, EVENT_WIDE_OFFSET | EVENT_WIDE_BYTES);
	/* Only the offset takes two: a pread has its length before it, a readahead behind. */
	assert_int_equal(calls[180].offset, 3);
	assert_int_equal(calls[180].bytes, 2);
	assert_int_equal(calls[181].bytes, 2);
	assert_int_equal(calls[225].bytes, 3);
	assert_int_equal(calls[250].bytes, 3);
	assert_int_equal(calls[180].wide, EVENT_WIDE_OFFSET);
	assert_int_equal(calls[225].wide, EVENT_WIDE_OFFSET);
	/* A copy from a pipe to a file: the file is the other side. */
	assert_int_equal(calls[313].op, EVENT_OP_COPY);
	assert_int_equal(calls[313].fd, 0);
	assert_int_equal(calls[313].other_fd, 2);
	/* Records have the numbers of the machine's own table. */
	assert_int_equal(calls[11].own_nr, SYS_execve);
	assert_int_equal(calls[358].own_nr, SYS_execveat);
	assert_int_equal(calls[324].own_nr, SYS_fallocate);
	/* stat64 is not in that table. */
	assert_int_equal(calls[195].own_nr, -1);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted_backend),
		cmocka_unit_test(test_cpus_that_are_on_line),
		cmocka_unit_test(test_descriptors_agree),
		cmocka_unit_test(test_parts_have_programs),
		cmocka_unit_test(test_what_is_in_flight_can_be_described),
		cmocka_unit_test(test_completions_are_attached_first),
		cmocka_unit_test(test_pairs_are_complete),
		cmocka_unit_test(test_more_programs_by_choice),
		cmocka_unit_test(test_who_needs_wait_is_marked),
		cmocka_unit_test(test_replaced_objects_are_forgotten),
		cmocka_unit_test(test_preempting_kernels),
		cmocka_unit_test(test_each_system_call_has_its_own_index),
		cmocka_unit_test(test_system_calls_of_32_bit_programs),
		cmocka_unit_test(test_system_calls_of_32_bit_programs_of_arm),
		cmocka_unit_test(test_ring_buffers_that_may_sleep),
		cmocka_unit_test(test_wait_is_refused_where_it_could_hang_the_host),
		cmocka_unit_test(test_choice_of_the_place_of_registers),
		cmocka_unit_test(test_probes_that_read_registers_are_refused_without),
		cmocka_unit_test(test_place_of_registers_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
