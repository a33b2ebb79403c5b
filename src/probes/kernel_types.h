/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the probes need to know of the running kernel: the types that their programs use, the ids of
 * the functions that they attach to, and the addresses of some symbols.
 * Made once by whoever owns a probe set (session, doctor), read by the probes when they open.
 * Never keeps the kernel's whole BTF, which takes 12 MB while it is read.
 */
#ifndef IOSTALL_PROBES_KERNEL_TYPES_H
#define IOSTALL_PROBES_KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_object;
struct btf;
struct btf_type;
struct kernel_types;

/* An object file of the skeletons, whose programs are to be loaded. */
struct kernel_types_user {
	const void *elf;
	size_t size;
};

/*
 * Reads the kernel's BTF and keeps in a file what the users need. libbpf would read the whole of it
 * again for each object that is loaded. Also makes libbpf take the ids of functions from here.
 * There may be only one at a time in a process. -ENOENT or another error: the kernel has no BTF.
 */
int kernel_types_new(const struct kernel_types_user *users, unsigned int count,
	struct kernel_types **ret_types);
struct kernel_types *kernel_types_free(struct kernel_types *types);

/* The file, for bpf_object_open_opts.btf_custom_path. */
const char *kernel_types_path(const struct kernel_types *types);

/*
 * The number of arguments that a raw tracepoint passes to its programs, which is that of
 * btf_trace_NAME in the BTF. -ENOENT: the kernel has no such tracepoint, or it is not in
 * tracepoints[] of kernel_types.c. NULL is accepted: -ENOENT.
 */
int kernel_types_count_args(const struct kernel_types *types, const char *tracepoint);

/*
 * False: the kernel has no such "structure.member", or no user has the structure. NULL is accepted:
 * true, since nothing is known.
 */
bool kernel_types_have_member(const struct kernel_types *types, const char *member);

/*
 * The address of one of symbols[] in kernel_types.c. -ENOENT: the kernel has none of that name, or
 * the types could not be read; -EPERM: it hides addresses (kernel.kptr_restrict).
 */
int kernel_types_find_address(const struct kernel_types *types, const char *symbol,
	uint64_t *ret_address);

/*
 * Copies from a kernel's BTF what the types of `users` with the same names need: members that are
 * embedded in a structure are copied, what a member points to is not. For kernel_types_new() and
 * tests.
 */
int kernel_types_reduce(const struct btf *kernel, const struct btf *const *users,
	unsigned int count, struct btf **ret_reduced);

/* NULL: there is none of that name. Pure. */
const struct btf_type *kernel_types_find_struct(const struct btf *btf, const char *name);
/* The type of a member without its typedefs; NULL: there is none, or no structure. Pure. */
const struct btf_type *kernel_types_find_member(const struct btf *btf, const struct btf_type *type,
	const char *name);

#endif
