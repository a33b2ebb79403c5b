/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the running kernel's own type information says of its tracepoints.
 * Asked by probes when they open their objects.
 * Never kept: the kernel's BTF takes 6 MB.
 */
#ifndef IOSTALL_PROBES_BTF_H
#define IOSTALL_PROBES_BTF_H

/*
 * Number of arguments that a raw tracepoint passes to its programs (of btf_trace_NAME in the kernel's BTF);
 * -ENOENT when the kernel has no such tracepoint, or the error of reading the BTF.
 */
int btf_count_tracepoint_args(const char *tracepoint);

#endif
