/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/btf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include <bpf/btf.h>

int btf_count_tracepoint_args(const char *tracepoint)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type = NULL;
	char name[96];
	int id, count;

	if (!btf)
		return -errno;
	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	if (id > 0)
		type = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
	if (type && btf_is_ptr(type))
		type = btf__type_by_id(btf, type->type);
	/* The first parameter is the tracepoint's own data pointer, which programs do not see. */
	count = type && btf_is_func_proto(type) ? btf_vlen(type) - 1 : -ENOENT;
	btf__free(btf);
	return count;
}
