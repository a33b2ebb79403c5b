/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * When the requests that a probe has noted are forgotten: nobody sees their end once its last
 * program is detached. And what a probe does without that cannot be loaded or attached. The maps of
 * requests are real, the programs are not loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iostall/event.h"
#include "probes/kernel_types.h"
#include "probes/set.h"
#include "util/cleanup.h"

struct bpf_link *__wrap_bpf_program__attach_raw_tracepoint(const struct bpf_program *program,
	const char *name);
int __wrap_bpf_link__destroy(struct bpf_link *link);
int __wrap_bpf_object__load(struct bpf_object *object);
int __wrap_trace_maps_reuse(const struct trace_maps *maps, struct bpf_object *object);
int __wrap_kernel_types_count_args(const struct kernel_types *types, const char *tracepoint);
bool __wrap_kernel_types_have_member(const struct kernel_types *types, const char *member);

static const uint64_t request = 0xffff888012345678;

struct fixture {
	struct probe_set set;
	struct probe *uring;
	struct probe *aio;
};

/* Opened, with its map of requests and as many links as it says, all of which end at once. */
static struct probe *add_probe(struct fixture *f, enum config_probe_name name, unsigned int links)
{
	const struct probe_settings settings = {};
	struct probe *probe = &f->set.probes[name];
	struct bpf_map *map;
	int fd;

	probe->ops = probe_ops_get(name);
	probe->backend = &probe->ops->backends[0];
	assert_int_equal(probe->ops->open(&settings, probe->backend, &probe->skeleton,
				 &probe->object),
		0);
	/* The object takes over its name. */
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, probe->ops->inflight_map, sizeof(request),
		sizeof(struct event_request), 16, NULL);
	if (fd < 0) {
		print_message("a BPF map cannot be made here: %s\n", strerror(-fd));
		skip();
	}
	map = probe_map(probe, probe->ops->inflight_map);
	assert_non_null(map);
	assert_int_equal(bpf_map__reuse_fd(map, fd), 0);
	close_fd(fd);
	probe->links_count = links;
	f->set.enabled[name] = true;
	return probe;
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .set.maps = TRACE_MAPS_NONE };
	f.uring = add_probe(&f, CONFIG_PROBE_uring, 4);
	f.aio = add_probe(&f, CONFIG_PROBE_aio, 3);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (f->set.probes[i].skeleton)
			f->set.probes[i].ops->destroy(f->set.probes[i].skeleton);
	return 0;
}

static int map_fd(const struct probe *probe)
{
	return bpf_map__fd(probe_map(probe, probe->ops->inflight_map));
}

static void note(const struct probe *probe)
{
	const struct event_request value = { .op.start_ns = 1 };

	assert_int_equal(bpf_map_update_elem(map_fd(probe), &request, &value, BPF_ANY), 0);
}

static bool is_noted(const struct probe *probe)
{
	struct event_request value;

	return bpf_map_lookup_elem(map_fd(probe), &request, &value) == 0;
}

/* The probes are detached one after the other, and a trigger may cancel that between any two. */
static void test_forgotten_with_the_last_link(void **state)
{
	struct fixture *f = *state;

	note(f->uring);
	note(f->aio);
	while (f->uring->links_count > 1) {
		assert_true(probe_set_detach_next(&f->set));
		/* Its end is seen until then. */
		assert_true(is_noted(f->uring) || f->uring->links_count == 0);
		assert_true(is_noted(f->aio) || f->aio->links_count == 0);
	}
	assert_true(probe_set_detach_next(&f->set));
	assert_int_equal(f->uring->links_count, 0);
	assert_false(is_noted(f->uring));
	while (probe_set_detach_next(&f->set))
		assert_true(is_noted(f->aio) || f->aio->links_count == 0);
	assert_false(is_noted(f->aio));
}

/* A program may still have run when the last link went. */
static void test_forgotten_before_attaching(void **state)
{
	struct fixture *f = *state;

	f->aio->links_count = 0;
	note(f->uring);
	note(f->aio);
	/* Nothing can be attached, since nothing is loaded. */
	probe_set_attach_rest(&f->set);
	assert_false(is_noted(f->aio));
	assert_true(is_noted(f->uring));
}

static const char *refused; /* the program that cannot be attached */
static int refusal;	    /* with which error */

struct bpf_link *__wrap_bpf_program__attach_raw_tracepoint(const struct bpf_program *program,
	const char *name)
{
	static char link;

	(void)name;
	if (!refused || strcmp(bpf_program__name(program), refused) != 0)
		return (void *)&link;
	errno = refusal;
	return NULL;
}

int __wrap_bpf_link__destroy(struct bpf_link *link)
{
	(void)link;
	return 0;
}

static const char *not_loaded[2]; /* the programs that are refused by load_error */
static int load_error;
static unsigned int loads;

/* As libbpf: it does not say which one it was, and then none is loaded. */
int __wrap_bpf_object__load(struct bpf_object *object)
{
	struct bpf_program *program;

	loads++;
	for (unsigned int i = 0; i < ARRAY_SIZE(not_loaded); i++) {
		if (!not_loaded[i])
			continue;
		program = bpf_object__find_program_by_name(object, not_loaded[i]);
		if (program && bpf_program__autoload(program))
			return load_error;
	}
	return 0;
}

int __wrap_trace_maps_reuse(const struct trace_maps *maps, struct bpf_object *object)
{
	(void)maps;
	(void)object;
	return 0;
}

static int submit_args = -ENOENT; /* of io_uring_submit_sqe */

int __wrap_kernel_types_count_args(const struct kernel_types *types, const char *tracepoint)
{
	(void)types;
	return strcmp(tracepoint, "io_uring_submit_sqe") == 0 ? submit_args : 4;
}

static const char *lacking; /* member */

bool __wrap_kernel_types_have_member(const struct kernel_types *types, const char *member)
{
	(void)types;
	return !lacking || strcmp(member, lacking) != 0;
}

static int load_wait(struct probe *probe, const char *first, const char *second, int error)
{
	static const struct probe_settings settings;

	loads = 0;
	refused = NULL;
	not_loaded[0] = first;
	not_loaded[1] = second;
	load_error = error;
	return probe_load(probe, probe_ops_get(CONFIG_PROBE_wait), CONFIG_BACKEND_AUTO, &settings,
		NULL);
}

/* Whether all of its programs are to be loaded but these. */
static void assert_left_out(const struct probe *probe, const char *first, const char *second)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, probe->object)
	{
		const char *name = bpf_program__name(program);
		bool is_left_out = (first && strcmp(name, first) == 0) ||
			(second && strcmp(name, second) == 0);

		if (bpf_program__autoload(program) == is_left_out)
			fail_msg("%s is%s left out", name, is_left_out ? " not" : "");
	}
}

static unsigned int count_losses(const struct probe *probe)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < probe->ops->parts_count; i++)
		count += probe_find_loss(probe, i) != NULL;
	return count;
}

static void test_nothing_is_refused(void **state)
{
	struct probe probe;

	(void)state;
	assert_int_equal(load_wait(&probe, NULL, NULL, 0), 0);
	assert_int_equal(loads, 1);
	assert_int_equal(count_losses(&probe), 0);
	assert_left_out(&probe, NULL, NULL);
	probe_unload(&probe);
}

/* Each kind of wait costs itself, with the program that makes no sense without the other. */
static void test_a_refused_program_costs_its_part(void **state)
{
	static const struct {
		const char *refused;
		const char *other;
	} parts[] = {
		{ "refusals_posix_lock_raw_tp", NULL },
		{ "refusals_flock_raw_tp", NULL },
		{ "contention_begin_raw_tp", "contention_end_raw_tp" },
		{ "contention_end_raw_tp", "contention_begin_raw_tp" },
		{ "wait_lock", NULL },
		{ "wait_lock_stack", NULL },
		{ "wait_socket_peer", NULL },
	};
	struct probe probe;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		assert_int_equal(load_wait(&probe, parts[i].refused, NULL, -EINVAL), 0);
		assert_int_equal(count_losses(&probe), 1);
		assert_left_out(&probe, parts[i].refused, parts[i].other);
		assert_true(loads <= 2 + probe.ops->parts_count);
		/* It is not tried again when it is attached. */
		assert_int_equal(probe_attach(&probe), 0);
		assert_int_equal(count_losses(&probe), 1);
		probe_unload(&probe);
	}
}

/* Early io_uring tells nobody which request it submits. */
static void test_requests_without_a_name(void **state)
{
	static const struct {
		int args;
		int want;
	} kernels[] = { { 5, -EOPNOTSUPP }, { 7, 0 }, { 2, 0 }, { -ENOENT, 0 } };
	static const struct probe_settings settings;
	struct probe probe;

	(void)state;
	refused = NULL;
	not_loaded[0] = not_loaded[1] = NULL;
	load_error = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(kernels); i++) {
		submit_args = kernels[i].args;
		assert_int_equal(probe_load(&probe, probe_ops_get(CONFIG_PROBE_uring),
					 CONFIG_BACKEND_AUTO, &settings, NULL),
			kernels[i].want);
		probe_unload(&probe);
	}
}

static void test_two_parts_are_refused(void **state)
{
	struct probe probe;

	(void)state;
	assert_int_equal(load_wait(&probe, "wait_lock", "wait_socket_peer", -EINVAL), 0);
	assert_int_equal(count_losses(&probe), 2);
	assert_left_out(&probe, "wait_lock", "wait_socket_peer");
	probe_unload(&probe);
}

static void test_a_needed_program_is_refused(void **state)
{
	struct probe probe;

	(void)state;
	assert_int_equal(load_wait(&probe, "wait_sched_switch_raw_tp", NULL, -EINVAL), -EINVAL);
	assert_null(probe.backend);
	assert_string_equal(probe.reasons[0], "cannot load: Invalid argument");
}

/* A lack of memory says nothing of the program. */
static void test_a_lack_of_memory_costs_no_part(void **state)
{
	struct probe probe;

	(void)state;
	assert_int_equal(load_wait(&probe, "wait_lock", NULL, -ENOMEM), -ENOMEM);
	for (unsigned int i = 0; i < probe.ops->parts_count; i++)
		assert_null(probe.lost[0][i].step);
}

/* A kernel before 5.19 has not these tracepoints. */
static void test_a_tracepoint_is_missing(void **state)
{
	static const struct probe_settings settings;
	struct probe probe;

	(void)state;
	not_loaded[0] = not_loaded[1] = NULL;
	refused = "contention_begin_raw_tp";
	refusal = ENOENT;
	assert_int_equal(probe_load(&probe, probe_ops_get(CONFIG_PROBE_wait), CONFIG_BACKEND_AUTO,
				 &settings, NULL),
		0);
	assert_int_equal(count_losses(&probe), 1);
	assert_left_out(&probe, "contention_begin_raw_tp", "contention_end_raw_tp");
	probe_unload(&probe);
}

/* Its program would load, and a record would never have what it tells. */
static void test_a_member_is_missing(void **state)
{
	static const struct {
		const char *member;
		const char *program;
		const char *why;
	} parts[] = {
		{ "unix_sock.peer", "wait_socket_peer", "the kernel's BTF has no unix_sock.peer" },
		{ "rw_semaphore.owner", "wait_lock", "the kernel's BTF has no rw_semaphore.owner" },
	};
	char why[PROBE_REASON_SIZE];
	struct probe probe;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		lacking = parts[i].member;
		assert_int_equal(load_wait(&probe, NULL, NULL, 0), 0);
		assert_int_equal(loads, 1);
		assert_int_equal(count_losses(&probe), 1);
		assert_left_out(&probe, parts[i].program, NULL);
		for (unsigned int part = 0; part < probe.ops->parts_count; part++)
			if (probe_find_loss(&probe, part))
				probe_explain_loss(probe_find_loss(&probe, part), why, sizeof(why));
		assert_string_equal(why, parts[i].why);
		probe_unload(&probe);
		/* With another one, which is found without it. */
		assert_int_equal(load_wait(&probe, "refusals_flock_raw_tp", NULL, -EINVAL), 0);
		assert_left_out(&probe, parts[i].program, "refusals_flock_raw_tp");
		probe_unload(&probe);
	}
	lacking = NULL;
}

static const struct probe_part submissions[] = {
	{ "uring_submit_again", RECORD_IO_PATH_io_uring, "", NULL },
};

static int attach(struct fixture *f, const char *program, int error)
{
	while (probe_detach_next(f->uring))
		;
	refused = program;
	refusal = error;
	return probe_attach(f->uring);
}

/* That of a module may go, and come again. */
static void test_what_cannot_be_attached(void **state)
{
	static const int errors[] = { ENOMEM, EMFILE, ENOENT };
	struct fixture *f = *state;
	static struct probe_ops ops;

	ops = *f->uring->ops;
	ops.parts = submissions;
	ops.parts_count = 1;
	f->uring->ops = &ops;
	/* A lack of memory or descriptors passes as well, and costs no more than the part. */
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		assert_int_equal(attach(f, "uring_submit_again_raw_tp", errors[i]), 0);
		assert_non_null(probe_find_loss(f->uring, 0));
		assert_int_equal(f->uring->links_count, 3);
	}
	/* It is loaded, and tried again. */
	assert_int_equal(attach(f, NULL, 0), 0);
	assert_null(probe_find_loss(f->uring, 0));
	assert_int_equal(f->uring->links_count, 4);
	/* Without it nothing would change. */
	assert_int_equal(attach(f, "uring_complete_raw_tp", ENOENT), -ENOENT);
	assert_null(probe_find_loss(f->uring, 0));
	/* Whoever has loaded the probe without it has nothing to try. */
	f->uring->lost[0][0] = (struct probe_loss){ .step = "cannot load", .error = -EINVAL };
	assert_int_equal(attach(f, "uring_submit_again_raw_tp", ENOENT), 0);
	assert_non_null(probe_find_loss(f->uring, 0));
	assert_int_equal(f->uring->links_count, 3);
	f->uring->ops = probe_ops_get(CONFIG_PROBE_uring);
}

static const struct record_coverage *find_path(const struct record_open *open,
	enum record_io_path path)
{
	for (unsigned int i = 0; i < open->coverage_count; i++)
		if (open->coverage[i].path == path)
			return &open->coverage[i];
	fail();
	return NULL;
}

/* Probes that note who falls asleep are attached on a thread of their own, offcpu among them. */
static void test_coverage_while_it_is_attached(void **state)
{
	struct probe_set set = { .enabled[CONFIG_PROBE_offcpu] = true };
	struct probe *probe = &set.probes[CONFIG_PROBE_offcpu];
	struct record_open *open = calloc(1, sizeof(*open));

	(void)state;
	assert_non_null(open);
	probe->ops = probe_ops_get(CONFIG_PROBE_offcpu);
	probe->backend = &probe->ops->backends[0];
	probe_set_describe_coverage(&set, true, false, open);
	assert_int_not_equal(find_path(open, RECORD_IO_PATH_offcpu)->probe, 0);
	assert_non_null(strstr(find_path(open, RECORD_IO_PATH_offcpu)->reason,
		"it was still being attached"));
	probe_set_describe_coverage(&set, false, true, open);
	assert_int_equal(find_path(open, RECORD_IO_PATH_offcpu)->probe, 0);
	assert_string_equal(find_path(open, RECORD_IO_PATH_offcpu)->reason,
		"it could not be attached");
	free(open);
}

static void test_coverage_without_a_part(void **state)
{
	struct probe_set set = {
		.enabled = { [CONFIG_PROBE_vfs] = true, [CONFIG_PROBE_wait] = true }
	};
	struct record_open *open = calloc(1, sizeof(*open));

	(void)state;
	assert_non_null(open);
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		if (!set.enabled[i])
			continue;
		set.probes[i].ops = probe_ops_get(i);
		set.probes[i].backend = &set.probes[i].ops->backends[0];
		/* The first: fcntl(2), and readv. */
		set.probes[i].lost[0][0] = (struct probe_loss){ "cannot load", -EINVAL, false };
	}
	probe_set_describe_coverage(&set, true, true, open);
	assert_int_equal(find_path(open, RECORD_IO_PATH_read)->probe, RECORD_PROBE_vfs);
	assert_null(strstr(find_path(open, RECORD_IO_PATH_read)->reason, "cannot load"));
	assert_int_equal(find_path(open, RECORD_IO_PATH_vectored)->probe, RECORD_PROBE_wait);
	assert_non_null(strstr(find_path(open, RECORD_IO_PATH_vectored)->reason,
		"fentry: cannot load: Invalid argument"));
	assert_non_null(strstr(find_path(open, RECORD_IO_PATH_metadata)->reason,
		"lock of fcntl(2), as SQLite does, is not seen"));
	free(open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forgotten_with_the_last_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_before_attaching, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_attached, setup, teardown),
		cmocka_unit_test(test_nothing_is_refused),
		cmocka_unit_test(test_a_refused_program_costs_its_part),
		cmocka_unit_test(test_requests_without_a_name),
		cmocka_unit_test(test_two_parts_are_refused),
		cmocka_unit_test(test_a_needed_program_is_refused),
		cmocka_unit_test(test_a_lack_of_memory_costs_no_part),
		cmocka_unit_test(test_a_tracepoint_is_missing),
		cmocka_unit_test(test_a_member_is_missing),
		cmocka_unit_test(test_coverage_while_it_is_attached),
		cmocka_unit_test(test_coverage_without_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
