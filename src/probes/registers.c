/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/registers.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/kernel_types.h"

/* After iostall/event.h, whose types it uses. */
#include "registers.skel.h"

const void *registers_elf(size_t *ret_size)
{
	return registers_bpf__elf_bytes(ret_size);
}

uint32_t registers_choose(const struct event_registers places[EVENT_REGISTERS_PLACES],
	const struct event_registers *made)
{
	uint32_t offset = 0;

	for (unsigned int i = 0; i < EVENT_REGISTERS_PLACES; i++) {
		if (places[i].nr != made->nr ||
			memcmp(places[i].args, made->args, sizeof(made->args)) != 0)
			continue;
		if (offset)
			return 0;
		offset = (uint32_t)places[i].offset;
	}
	return offset;
}

/* libbpf would make the call with arguments that only it knows. */
static int run(int program, struct event_registers *ret_made)
{
	const uint64_t context = 0;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)program;
	attr.test.ctx_in = (uintptr_t)&context;
	attr.test.ctx_size_in = sizeof(context);
	*ret_made = (struct event_registers){
		.nr = SYS_bpf,
		.args = { BPF_PROG_TEST_RUN, (uintptr_t)&attr, sizeof(attr) },
	};
	return syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int registers_find(const struct kernel_types *types, uint32_t *ret_offset)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = kernel_types_path(types));
	struct registers_bpf *skeleton = registers_bpf__open_opts(&opts);
	struct event_registers made;
	uint32_t offset = 0;
	int r;

	if (!skeleton)
		return -errno;
	r = registers_bpf__load(skeleton);
	if (r == 0)
		r = run(bpf_program__fd(skeleton->progs.registers_read), &made);
	if (r == 0)
		offset = registers_choose((const void *)skeleton->bss->places, &made);
	registers_bpf__destroy(skeleton);
	if (r == 0 && !offset)
		return -ENODATA;
	if (r == 0)
		*ret_offset = offset;
	return r;
}
