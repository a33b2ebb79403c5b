/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "probes/type_names.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"

#define FUNCTIONS_MAX 64
#define FUNCTION_SIZE 64
#define OBJECTS_MAX 16

/* Raw tracepoints whose number of arguments a probe asks for. */
static const char *const tracepoints[] = { "sched_switch", "iomap_dio_rw_begin",
	"io_uring_submit_sqe" };

/* Functions and variables whose address somebody asks for. */
static const char *const symbols[] = {
	"aio_complete_rw",
	"iomap_dio_bio_end_io",
	"bio_chain_endio",
	"end_swap_bio_read",
	"md_end_flush",
	"preempt_dynamic_mode",
	"frozen",
};

/* A function that fentry or fexit programs attach to. */
struct attach_target {
	char name[FUNCTION_SIZE];
	uint32_t id; /* in the kernel's BTF; 0: it has none of that name */
};

struct kernel_types {
	int fd;
	char path[64];
	int args[ARRAY_SIZE(tracepoints)];
	uint64_t addresses[ARRAY_SIZE(symbols)]; /* 0: not found */
	bool is_hidden[ARRAY_SIZE(symbols)];
	unsigned int targets_count;
	struct attach_target targets[FUNCTIONS_MAX];
	int fentry_handler;
	int fexit_handler;
};

/* Copying what is needed */

enum mark {
	MARK_KEPT = 1,
	MARK_MEMBERS = 2, /* of a structure: with its members */
	MARK_POINTED = 4, /* of a pointer or prototype: with what it refers to */
};

struct reducer {
	const struct btf *kernel;
	uint8_t *marks;	 /* by type id */
	uint32_t *ids;	 /* by type id: the id of the copy */
	uint32_t *queue; /* types whose references are to be marked */
	size_t queue_count;
	size_t queue_size;
	int error;
};

static void mark(struct reducer *r, uint32_t id, uint8_t marks)
{
	if (id == 0 || r->error < 0 || (r->marks[id] & marks) == marks)
		return;
	if (r->queue_count == r->queue_size) {
		size_t grown = r->queue_size ? 2 * r->queue_size : 1024;
		uint32_t *queue = reallocarray(r->queue, grown, sizeof(*queue));

		if (!queue) {
			r->error = -ENOMEM;
			return;
		}
		r->queue = queue;
		r->queue_size = grown;
	}
	r->marks[id] |= marks;
	r->queue[r->queue_count++] = id;
}

/*
 * CO-RE compares the prototypes behind the typedef of a tracepoint, but not what a member points
 * to.
 */
static void mark_references(struct reducer *r, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(r->kernel, id);
	const uint8_t marks = r->marks[id];

	switch (btf_kind(t)) {
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		mark(r, t->type, marks);
		break;
	case BTF_KIND_PTR:
		if (marks & MARK_POINTED)
			mark(r, t->type, MARK_KEPT | MARK_POINTED);
		break;
	case BTF_KIND_ARRAY:
		mark(r, btf_array(t)->type, marks);
		mark(r, btf_array(t)->index_type, MARK_KEPT);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (unsigned int i = 0; (marks & MARK_MEMBERS) && i < btf_vlen(t); i++)
			mark(r, btf_members(t)[i].type, MARK_KEPT | MARK_MEMBERS);
		break;
	case BTF_KIND_FUNC_PROTO:
		if (!(marks & MARK_POINTED))
			break;
		mark(r, t->type, MARK_KEPT | MARK_POINTED);
		for (unsigned int i = 0; i < btf_vlen(t); i++)
			mark(r, btf_params(t)[i].type, MARK_KEPT | MARK_POINTED);
		break;
	}
}

static bool has_needed_kind(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_FWD:
		return t->name_off != 0;
	}
	return false;
}

static int add_names(struct type_names *names, const struct btf *btf)
{
	int r = 0;

	for (uint32_t id = 1; r == 0 && id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (has_needed_kind(t))
			r = type_names_add(names, btf__name_by_offset(btf, t->name_off));
	}
	for (unsigned int i = 0; r == 0 && i < ARRAY_SIZE(tracepoints); i++) {
		char name[FUNCTION_SIZE];

		snprintf(name, sizeof(name), "btf_trace_%s", tracepoints[i]);
		r = type_names_add(names, name);
	}
	return r;
}

static void mark_needed(struct reducer *r, const struct type_names *names)
{
	for (uint32_t id = 1; id < btf__type_cnt(r->kernel); id++) {
		const struct btf_type *t = btf__type_by_id(r->kernel, id);
		bool is_typedef = btf_kind(t) == BTF_KIND_TYPEDEF;

		if (has_needed_kind(t) &&
			type_names_has(names, btf__name_by_offset(r->kernel, t->name_off)))
			mark(r, id, MARK_KEPT | MARK_MEMBERS | (is_typedef ? MARK_POINTED : 0));
	}
	while (r->error == 0 && r->queue_count > 0)
		mark_references(r, r->queue[--r->queue_count]);
}

static int copy_type(const struct reducer *r, uint32_t id, struct btf *out)
{
	const struct btf_type *t = btf__type_by_id(r->kernel, id);
	const char *name = btf__name_by_offset(r->kernel, t->name_off);

	if (!(r->marks[id] & MARK_MEMBERS) && btf_kind(t) == BTF_KIND_STRUCT)
		return btf__add_struct(out, name, t->size);
	if (!(r->marks[id] & MARK_MEMBERS) && btf_kind(t) == BTF_KIND_UNION)
		return btf__add_union(out, name, t->size);
	return btf__add_type(out, r->kernel, t);
}

/* What was not copied becomes void. */
static void renumber_references(const struct reducer *r, struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		t->type = r->ids[t->type];
		break;
	case BTF_KIND_ARRAY:
		btf_array(t)->type = r->ids[btf_array(t)->type];
		btf_array(t)->index_type = r->ids[btf_array(t)->index_type];
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (unsigned int i = 0; i < btf_vlen(t); i++)
			btf_members(t)[i].type = r->ids[btf_members(t)[i].type];
		break;
	case BTF_KIND_FUNC_PROTO:
		t->type = r->ids[t->type];
		for (unsigned int i = 0; i < btf_vlen(t); i++)
			btf_params(t)[i].type = r->ids[btf_params(t)[i].type];
		break;
	}
}

static int copy_marked(struct reducer *r, struct btf *out)
{
	for (uint32_t id = 1; id < btf__type_cnt(r->kernel); id++) {
		int copy;

		if (!r->marks[id])
			continue;
		copy = copy_type(r, id, out);
		if (copy < 0)
			return copy;
		r->ids[id] = (uint32_t)copy;
	}
	/* The copy is this function's own, as in bpftool's "gen min_core_btf". */
	for (uint32_t id = 1; id < btf__type_cnt(out); id++)
		renumber_references(r, (struct btf_type *)btf__type_by_id(out, id));
	return 0;
}

int kernel_types_reduce(const struct btf *kernel, const struct btf *const *users,
	unsigned int count, struct btf **ret_reduced)
{
	const size_t types = btf__type_cnt(kernel);
	_cleanup_free_ struct type_names *names = calloc(1, sizeof(*names));
	_cleanup_free_ uint8_t *marks = calloc(types, sizeof(*marks));
	_cleanup_free_ uint32_t *ids = calloc(types, sizeof(*ids));
	struct reducer r = { .kernel = kernel, .marks = marks, .ids = ids };
	struct btf *out = btf__new_empty();

	if (!names || !marks || !ids || !out)
		r.error = -ENOMEM;
	for (unsigned int i = 0; r.error == 0 && i < count; i++)
		r.error = add_names(names, users[i]);
	if (r.error == 0)
		mark_needed(&r, names);
	free(r.queue);
	if (r.error == 0)
		r.error = copy_marked(&r, out);
	if (r.error < 0) {
		btf__free(out);
		return r.error;
	}
	*ret_reduced = out;
	return 0;
}

/* Functions that programs attach to */

static const char *target_of(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);

	if (strncmp(section, "fentry/", 7) == 0)
		return section + 7;
	if (strncmp(section, "fexit/", 6) == 0)
		return section + 6;
	return NULL;
}

static struct attach_target *find_target(struct kernel_types *types, const char *name)
{
	for (unsigned int i = 0; i < types->targets_count; i++)
		if (strcmp(types->targets[i].name, name) == 0)
			return &types->targets[i];
	return NULL;
}

static int add_targets(struct kernel_types *types, struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		const char *name = target_of(program);

		if (!name || find_target(types, name))
			continue;
		if (types->targets_count == FUNCTIONS_MAX || strlen(name) >= FUNCTION_SIZE)
			return -E2BIG;
		text_copy(types->targets[types->targets_count++].name, FUNCTION_SIZE, name);
	}
	return 0;
}

static void find_target_ids(struct kernel_types *types, const struct btf *kernel)
{
	for (uint32_t id = 1; id < btf__type_cnt(kernel); id++) {
		const struct btf_type *t = btf__type_by_id(kernel, id);
		struct attach_target *target;

		if (btf_kind(t) != BTF_KIND_FUNC)
			continue;
		target = find_target(types, btf__name_by_offset(kernel, t->name_off));
		if (target && target->id == 0)
			target->id = id;
	}
}

/*
 * libbpf finds a target by reading the kernel's whole BTF when the type of a program is TRACING. So
 * it gets that type here, after that.
 */
static int prepare_load(struct bpf_program *program, struct bpf_prog_load_opts *opts, long cookie)
{
	struct kernel_types *types = (struct kernel_types *)cookie;
	const char *name = target_of(program);
	const struct attach_target *target = name ? find_target(types, name) : NULL;

	if (!target || target->id == 0)
		return -ESRCH;
	opts->attach_btf_id = target->id;
	return bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
}

static int register_handlers(struct kernel_types *types)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = (long)types,
		.prog_prepare_load_fn = prepare_load);

	types->fentry_handler = libbpf_register_prog_handler("fentry/", BPF_PROG_TYPE_KPROBE,
		BPF_TRACE_FENTRY, &opts);
	if (types->fentry_handler < 0)
		return types->fentry_handler;
	types->fexit_handler = libbpf_register_prog_handler("fexit/", BPF_PROG_TYPE_KPROBE,
		BPF_TRACE_FEXIT, &opts);
	return types->fexit_handler < 0 ? types->fexit_handler : 0;
}

/* Tracepoints and addresses */

static int count_args(const struct btf *btf, const char *tracepoint)
{
	const struct btf_type *type = NULL;
	char name[FUNCTION_SIZE];
	int id;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	if (id > 0)
		type = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
	if (type && btf_is_ptr(type))
		type = btf__type_by_id(btf, type->type);
	/* The first parameter is the tracepoint's own data pointer, which programs do not see. */
	return type && btf_is_func_proto(type) ? btf_vlen(type) - 1 : -ENOENT;
}

const struct btf_type *kernel_types_find_struct(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

const struct btf_type *kernel_types_find_member(const struct btf *btf, const struct btf_type *type,
	const char *name)
{
	const struct btf_member *member = type ? btf_members(type) : NULL;

	for (unsigned int i = 0; type && i < btf_vlen(type); i++) {
		const char *its_name = btf__name_by_offset(btf, member[i].name_off);

		if (its_name && strcmp(its_name, name) == 0)
			return btf__type_by_id(btf,
				(uint32_t)btf__resolve_type(btf, member[i].type));
	}
	return NULL;
}

/* "ffffffff81000000 T _text" or "... t name\t[module]" */
static void note_address(struct kernel_types *types, const char *line)
{
	struct cursor c = { line, line + strlen(line) };
	const char *kind, *name;
	size_t kind_len, len;
	uint64_t address;

	if (cursor_hex(&c, &address) < 0 || cursor_word(&c, &kind, &kind_len) < 0 ||
		cursor_word(&c, &name, &len) < 0)
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(symbols); i++) {
		if (strlen(symbols[i]) != len || memcmp(symbols[i], name, len) != 0)
			continue;
		types->is_hidden[i] = address == 0;
		types->addresses[i] = address;
	}
}

static void find_addresses(struct kernel_types *types)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		note_address(types, line);
}

/* Making and freeing */

static int write_file(struct kernel_types *types, const struct btf *reduced)
{
	uint32_t size;
	const void *data = btf__raw_data(reduced, &size);

	if (!data)
		return -ENOMEM;
	types->fd = memfd_create("iostall-btf", MFD_CLOEXEC);
	if (types->fd < 0)
		return -errno;
	snprintf(types->path, sizeof(types->path), "/proc/self/fd/%d", types->fd);
	return file_write_all(types->fd, data, size);
}

static int read_kernel(struct kernel_types *types, const struct btf *const *users,
	unsigned int count)
{
	/* btf__load_vmlinux_btf() tries other files after this one, and then does not say why. */
	struct btf *kernel = btf__parse("/sys/kernel/btf/vmlinux", NULL), *reduced = NULL;
	int r;

	if (!kernel && errno == ENOENT)
		kernel = btf__load_vmlinux_btf();
	if (!kernel)
		return -errno;
	find_target_ids(types, kernel);
	r = kernel_types_reduce(kernel, users, count, &reduced);
	btf__free(kernel);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < ARRAY_SIZE(tracepoints); i++)
		types->args[i] = count_args(reduced, tracepoints[i]);
	r = write_file(types, reduced);
	btf__free(reduced);
	return r;
}

int kernel_types_new(const struct kernel_types_user *users, unsigned int count,
	struct kernel_types **ret_types)
{
	struct kernel_types *types = calloc(1, sizeof(*types));
	struct bpf_object *objects[OBJECTS_MAX];
	const struct btf *btfs[OBJECTS_MAX];
	unsigned int opened = 0;
	int r = types && count <= OBJECTS_MAX ? 0 : -ENOMEM;

	if (types)
		types->fd = types->fentry_handler = types->fexit_handler = -1;
	while (r == 0 && opened < count) {
		objects[opened] = bpf_object__open_mem(users[opened].elf, users[opened].size, NULL);
		if (!objects[opened]) {
			r = -errno;
			break;
		}
		btfs[opened] = bpf_object__btf(objects[opened]);
		r = add_targets(types, objects[opened++]);
	}
	if (r == 0)
		r = read_kernel(types, btfs, opened);
	while (opened > 0)
		bpf_object__close(objects[--opened]);
	if (r == 0)
		r = register_handlers(types);
	if (r < 0) {
		kernel_types_free(types);
		return r;
	}
	find_addresses(types);
	*ret_types = types;
	return 0;
}

struct kernel_types *kernel_types_free(struct kernel_types *types)
{
	if (!types)
		return NULL;
	if (types->fentry_handler >= 0)
		libbpf_unregister_prog_handler(types->fentry_handler);
	if (types->fexit_handler >= 0)
		libbpf_unregister_prog_handler(types->fexit_handler);
	close_fd(types->fd);
	free(types);
	return NULL;
}

const char *kernel_types_path(const struct kernel_types *types)
{
	return types ? types->path : NULL;
}

int kernel_types_count_args(const struct kernel_types *types, const char *tracepoint)
{
	for (unsigned int i = 0; types && i < ARRAY_SIZE(tracepoints); i++)
		if (strcmp(tracepoints[i], tracepoint) == 0)
			return types->args[i];
	return -ENOENT;
}

bool kernel_types_have_member(const struct kernel_types *types, const char *member)
{
	struct btf *btf = types ? btf__parse_raw(types->path) : NULL;
	const char *dot = strchr(member, '.');
	char name[FUNCTION_SIZE];
	bool has = true;

	snprintf(name, sizeof(name), "%.*s", (int)(dot - member), member);
	if (btf)
		has = kernel_types_find_member(btf, kernel_types_find_struct(btf, name), dot + 1);
	btf__free(btf);
	return has;
}

int kernel_types_find_address(const struct kernel_types *types, const char *symbol,
	uint64_t *ret_address)
{
	for (unsigned int i = 0; types && i < ARRAY_SIZE(symbols); i++) {
		if (strcmp(symbols[i], symbol) != 0)
			continue;
		if (!types->addresses[i])
			return types->is_hidden[i] ? -EPERM : -ENOENT;
		*ret_address = types->addresses[i];
		return 0;
	}
	return -ENOENT;
}
