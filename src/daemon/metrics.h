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

/*
 * In the text format of Prometheus (version 0.0.4), or in that of OpenMetrics 1.0. Of a text that
 * does not fit the last lines are left out, which are numbers of incidents.
 */
void metrics_add(const struct daemon_status *status, bool openmetrics, struct text *out);

#endif
