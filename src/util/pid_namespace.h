/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether this process has the process ids of the host, which BPF programs report.
 * Used by the daemon at its start, and by doctor.
 * Never changes anything.
 */
#ifndef IOSTALL_UTIL_PID_NAMESPACE_H
#define IOSTALL_UTIL_PID_NAMESPACE_H

/* What is wrong in a pid namespace of its own, and what to do. */
extern const char pid_namespace_own[];

/* 1; 0: it is in a namespace of its own; or a negative errno of reading the link. */
int pid_namespace_is_host(void);

#endif
