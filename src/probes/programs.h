/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of a probe with one backend: their events in tracefs, loading, attaching.
 * Included by probe.c.
 * Never chooses a backend, nor says why one was refused: probe.c does.
 */
#ifndef IOSTALL_PROBES_PROGRAMS_H
#define IOSTALL_PROBES_PROGRAMS_H

#include "probes/probe.h"

bool programs_is_kprobe(const struct probe_program *program);
/* The part that a program is of; NULL: the backend needs the program. */
const struct probe_part *programs_part_of(const struct probe *probe, const char *program);
/* The programs are loaded; what kept them from being attached may be over. */
void programs_forget_passing_losses(struct probe *probe, const struct probe_backend *backend);

/* In tracefs, for those that are attached to functions; 0 or a negative errno. */
int programs_create_events(const struct probe *probe, const struct probe_backend *backend);
void programs_remove_events(const struct probe *probe, const struct probe_backend *backend);
/* Loads those of all parts that are not lost, or of probe->alone; 0 or a negative errno. */
int programs_open(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps);
void programs_close(struct probe *probe);
/* Attaches those that are not. A negative errno: none is, and ret_refused is the first refused. */
int programs_attach(struct probe *probe, const struct probe_backend *backend,
	const struct probe_program **ret_refused);
void programs_detach(struct probe *probe);

#endif
