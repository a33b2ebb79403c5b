/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What is copied from the kernel's type information for the programs that use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/btf.h>

#include "probes/kernel_types.h"
#include "probes/probe.h"
#include "probes/type_names.h"

struct fixture {
	struct btf *kernel;
	struct btf *user;
	struct btf *reduced;
};

/*
 * A kernel with struct inner { int value; }, struct far { int unused; }, and
 * struct task { struct inner in; struct far *far; const inner_t array[3]; union { int *any; }; },
 * and the tracepoint prototype void (*)(void *, struct far *).
 */
static struct btf *make_kernel(void)
{
	struct btf *b = btf__new_empty();
	int number, inner, far, far_pointer, inner_t, constant, array, number_pointer, any, proto;

	number = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
	inner = btf__add_struct(b, "inner", 4);
	assert_int_equal(btf__add_field(b, "value", number, 0, 0), 0);
	far = btf__add_struct(b, "far", 4);
	assert_int_equal(btf__add_field(b, "unused", number, 0, 0), 0);
	far_pointer = btf__add_ptr(b, far);
	inner_t = btf__add_typedef(b, "inner_t", inner);
	constant = btf__add_const(b, inner_t);
	array = btf__add_array(b, number, constant, 3);
	number_pointer = btf__add_ptr(b, number);
	any = btf__add_union(b, NULL, 8);
	assert_int_equal(btf__add_field(b, "any", number_pointer, 0, 0), 0);
	btf__add_struct(b, "task", 40);
	assert_int_equal(btf__add_field(b, "in", inner, 0, 0), 0);
	assert_int_equal(btf__add_field(b, "far", far_pointer, 64, 0), 0);
	assert_int_equal(btf__add_field(b, "array", array, 128, 0), 0);
	assert_int_equal(btf__add_field(b, NULL, any, 256, 0), 0);
	proto = btf__add_func_proto(b, 0);
	assert_int_equal(btf__add_func_param(b, "data", 0), 0);
	assert_int_equal(btf__add_func_param(b, "far", far_pointer), 0);
	btf__add_typedef(b, "btf_trace_something", btf__add_ptr(b, proto));
	btf__add_struct(b, "other", 400);
	assert_int_equal(btf__add_field(b, "in", inner, 0, 0), 0);
	return b;
}

static void reduce(struct fixture *f)
{
	const struct btf *users[] = { f->user };

	assert_int_equal(kernel_types_reduce(f->kernel, users, 1, &f->reduced), 0);
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .kernel = make_kernel(), .user = btf__new_empty() };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	btf__free(f->reduced);
	btf__free(f->user);
	btf__free(f->kernel);
	return 0;
}

static const struct btf_type *find(const struct fixture *f, const char *name, uint32_t kind)
{
	int id = btf__find_by_name_kind(f->reduced, name, kind);

	return id < 0 ? NULL : btf__type_by_id(f->reduced, (uint32_t)id);
}

static const struct btf_type *member(const struct fixture *f, const struct btf_type *t,
	unsigned int i)
{
	return btf__type_by_id(f->reduced, btf_members(t)[i].type);
}

/* A program uses struct task in another flavour. */
static void test_members_are_copied(void **state)
{
	struct fixture *f = *state;
	const struct btf_type *task, *element;

	btf__add_struct(f->user, "task___old", 0);
	reduce(f);
	task = find(f, "task", BTF_KIND_STRUCT);
	assert_non_null(task);
	assert_int_equal(task->size, 40);
	assert_int_equal(btf_vlen(task), 4);
	assert_string_equal(btf__name_by_offset(f->reduced, btf_members(task)[2].name_off),
		"array");
	assert_int_equal(btf_members(task)[2].offset, 128);
	/* What is embedded is complete, also behind const, typedef and array. */
	assert_int_equal(btf_vlen(member(f, task, 0)), 1);
	assert_int_equal(btf_kind(member(f, task, 2)), BTF_KIND_ARRAY);
	element = btf__type_by_id(f->reduced, btf_array(member(f, task, 2))->type);
	assert_int_equal(btf_kind(element), BTF_KIND_CONST);
	assert_int_equal(btf__resolve_size(f->reduced, btf_members(task)[2].type), 12);
	assert_int_equal(btf_kind(member(f, task, 3)), BTF_KIND_UNION);
	assert_int_equal(btf_vlen(member(f, task, 3)), 1);
	/* What is pointed to is not copied. */
	assert_int_equal(btf_kind(member(f, task, 1)), BTF_KIND_PTR);
	assert_int_equal(member(f, task, 1)->type, 0);
	assert_null(find(f, "far", BTF_KIND_STRUCT));
	assert_null(find(f, "other", BTF_KIND_STRUCT));
}

/* CO-RE compares prototypes, for which it must know that the argument is a structure. */
static void test_prototypes_are_copied(void **state)
{
	struct fixture *f = *state;
	const struct btf_type *t;

	btf__add_typedef(f->user, "btf_trace_something___two", 0);
	reduce(f);
	t = find(f, "btf_trace_something", BTF_KIND_TYPEDEF);
	assert_non_null(t);
	t = btf__type_by_id(f->reduced, t->type);
	assert_int_equal(btf_kind(t), BTF_KIND_PTR);
	t = btf__type_by_id(f->reduced, t->type);
	assert_int_equal(btf_kind(t), BTF_KIND_FUNC_PROTO);
	assert_int_equal(btf_vlen(t), 2);
	assert_int_equal(btf_params(t)[0].type, 0);
	t = btf__type_by_id(f->reduced, btf_params(t)[1].type);
	assert_int_equal(btf_kind(t), BTF_KIND_PTR);
	t = btf__type_by_id(f->reduced, t->type);
	assert_int_equal(btf_kind(t), BTF_KIND_STRUCT);
	assert_int_equal(t->size, 4);
	assert_int_equal(btf_vlen(t), 0);
}

static void test_unused_types_are_left_out(void **state)
{
	struct fixture *f = *state;

	btf__add_struct(f->user, "event", 16);
	reduce(f);
	assert_int_equal(btf__type_cnt(f->reduced), 1);
}

static void test_names(void **state)
{
	static struct type_names names;
	char name[32];
	int r = 0;

	(void)state;
	assert_int_equal(type_names_add(&names, "task_struct___state"), 0);
	assert_int_equal(type_names_add(&names, "___odd"), 0);
	assert_int_equal(type_names_add(&names, "trailing___"), 0);
	assert_true(type_names_has(&names, "task_struct"));
	assert_true(type_names_has(&names, "task_struct___other"));
	assert_true(type_names_has(&names, "___odd"));
	assert_true(type_names_has(&names, "trailing___"));
	assert_false(type_names_has(&names, "task_struc"));
	assert_false(type_names_has(&names, "task_struct2"));
	assert_false(type_names_has(&names, "trailing"));
	assert_false(type_names_has(&names, ""));
	assert_int_equal(names.count, 3);
	/* A full set says so and is still searched. */
	for (unsigned int i = 0; r == 0 && i < 2 * TYPE_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "type_%u", i);
		r = type_names_add(&names, name);
	}
	assert_int_equal(r, -E2BIG);
	assert_true(type_names_has(&names, "type_100"));
	assert_false(type_names_has(&names, "absent"));
}

FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);

static const char *kallsyms; /* what that file has; NULL: the kernel's own */

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!kallsyms || strcmp(path, "/proc/kallsyms") != 0)
		return __real_fopen(path, mode);
	return fmemopen((void *)(uintptr_t)kallsyms, strlen(kallsyms), "r");
}

/*
 * kernel.kptr_restrict=2 hides the addresses and not the names, so a function that is not there is
 * not said to be hidden.
 */
static void test_what_this_kernel_has(void **state)
{
	struct kernel_types *types = NULL;
	struct kernel_types_user user;
	uint64_t address = 5;
	int r;

	(void)state;
	kallsyms = "0000000000000000 T aio_complete_rw\n0000000000000000 T schedule\n";
	user.elf = probe_ops_get(CONFIG_PROBE_wait)->elf(&user.size);
	r = kernel_types_new(&user, 1, &types);
	kallsyms = NULL;
	if (r < 0) {
		print_message("the kernel has no BTF: %s\n", strerror(-r));
		skip();
	}
	assert_int_equal(kernel_types_find_address(types, "aio_complete_rw", &address), -EPERM);
	assert_int_equal(kernel_types_find_address(types, "frozen", &address), -ENOENT);
	assert_int_equal(address, 5);
	/* Other tests would be of no use on a host without it. */
	assert_true(kernel_types_have_member(types, "unix_sock.peer"));
	assert_false(kernel_types_have_member(types, "unix_sock.nothing"));
	assert_false(kernel_types_have_member(types, "nothing.peer"));
	kernel_types_free(types);
	/* Nobody knows. */
	assert_true(kernel_types_have_member(NULL, "unix_sock.peer"));
}

static void test_members_are_found(void **state)
{
	const struct fixture *f = *state;
	const struct btf_type *task = kernel_types_find_struct(f->kernel, "task");

	assert_non_null(task);
	assert_null(kernel_types_find_struct(f->kernel, "nothing"));
	assert_non_null(kernel_types_find_member(f->kernel, task, "far"));
	assert_null(kernel_types_find_member(f->kernel, task, "value"));
	assert_null(kernel_types_find_member(f->kernel, NULL, "far"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_members_are_copied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prototypes_are_copied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unused_types_are_left_out, setup, teardown),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_what_this_kernel_has),
		cmocka_unit_test_setup_teardown(test_members_are_found, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
