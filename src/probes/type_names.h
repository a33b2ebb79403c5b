/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of types that BPF programs use, as a set: 150,000 types of a kernel are looked up in
 * it.
 * Called by kernel_types.c.
 * Never distinguishes flavours: "task_struct___state" is the name "task_struct", as for libbpf.
 */
#ifndef IOSTALL_PROBES_TYPE_NAMES_H
#define IOSTALL_PROBES_TYPE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* The probes use about 150 types. */
#define TYPE_NAMES_MAX 2048
#define TYPE_NAMES_BYTES (32 * 1024)

/* Zeroed it is empty. */
struct type_names {
	uint32_t used;
	uint32_t count;
	uint32_t slots[TYPE_NAMES_MAX]; /* offset into text; 0: free */
	char text[TYPE_NAMES_BYTES];
};

/* -E2BIG: the set is full. A name that it has already is no error. */
int type_names_add(struct type_names *names, const char *name);
bool type_names_has(const struct type_names *names, const char *name);

#endif
