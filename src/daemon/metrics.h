/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What Prometheus reads: the state of the daemon, and of the host as it sees it.
 * Used by requests.c.
 * Never has a path, a process or a statement as a label: each value of a label is a series that is
 * kept for years.
 */
#ifndef IOSTALL_DAEMON_METRICS_H
#define IOSTALL_DAEMON_METRICS_H

#include "daemon/status.h"

enum metrics_format {
	METRICS_TEXT,	     /* of Prometheus, version 0.0.4 */
	METRICS_TEXTFILE,    /* the same without process_*, which node_exporter has of itself */
	METRICS_OPENMETRICS, /* version 1.0 */
};

/* Of a text that does not fit the last lines are left out, which are numbers of incidents. */
void metrics_add(const struct daemon_status *status, enum metrics_format format, struct text *out);

#endif
