/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a probe opens its skeleton: the functions `elf`, `open` and `destroy` of its descriptor.
 * Included by the probes' own files.
 * Never loads or attaches: programs.c does.
 */
#ifndef IOSTALL_PROBES_PROBE_OPEN_H
#define IOSTALL_PROBES_PROBE_OPEN_H

#include <errno.h>

#include <bpf/libbpf.h>

#include "probes/kernel_types.h"
#include "probes/list.h"

/*
 * Defines <name>_elf(), <name>_open() and <name>_destroy(). `configure` fills what only this probe
 * has, and may be NULL: int configure(struct <name>_bpf *, const struct probe_settings *, const
 * struct probe_backend *), 0 or a negative errno.
 */
#define PROBE_OPEN(name, configure)                                                                \
	typedef int (*name##_configure_fn)(struct name##_bpf *, const struct probe_settings *,     \
		const struct probe_backend *);                                                     \
                                                                                                   \
	static const void *name##_elf(size_t *ret_size)                                            \
	{                                                                                          \
		return name##_bpf__elf_bytes(ret_size);                                            \
	}                                                                                          \
                                                                                                   \
	static void name##_destroy(void *skeleton)                                                 \
	{                                                                                          \
		name##_bpf__destroy(skeleton);                                                     \
	}                                                                                          \
                                                                                                   \
	static int name##_open(const struct probe_settings *settings,                              \
		const struct probe_backend *backend, void **ret_skeleton,                          \
		struct bpf_object **ret_object)                                                    \
	{                                                                                          \
		const name##_configure_fn own = configure;                                         \
		LIBBPF_OPTS(bpf_object_open_opts, opts,                                            \
			.btf_custom_path = kernel_types_path(settings->types),                     \
			.kernel_log_buf = settings->log, .kernel_log_size = settings->log_bytes);  \
		struct name##_bpf *skeleton = name##_bpf__open_opts(&opts);                        \
		int r;                                                                             \
                                                                                                   \
		if (!skeleton)                                                                     \
			return -errno;                                                             \
		skeleton->rodata->cfg_common = settings->common;                                   \
		skeleton->rodata->cfg_common.probe = CONFIG_PROBE_##name;                          \
		bpf_map__set_max_entries(skeleton->maps.scratch,                                   \
			bpf_map__max_entries(skeleton->maps.scratch) * settings->common.cpus);     \
		r = own ? own(skeleton, settings, backend) : 0;                                    \
		if (r < 0) {                                                                       \
			name##_destroy(skeleton);                                                  \
			return r;                                                                  \
		}                                                                                  \
		*ret_skeleton = skeleton;                                                          \
		*ret_object = skeleton->obj;                                                       \
		return 0;                                                                          \
	}

#endif
