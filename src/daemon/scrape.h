/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serves the metrics by HTTP on the socket that the service manager has passed, see
 * iostalld-metrics.socket.
 * Owned by the daemon.
 * Never opens a socket itself: the sandbox of the service has no network.
 */
#ifndef IOSTALL_DAEMON_SCRAPE_H
#define IOSTALL_DAEMON_SCRAPE_H

#include "daemon/metrics.h"
#include "util/text.h"

struct loop;
struct scrape;

typedef void (*scrape_handler)(void *userdata, enum metrics_format format, struct text *out);

/* NULL in `ret_scrape`: no socket was passed. 0 or a negative errno. */
int scrape_new(struct loop *loop, scrape_handler handler, void *userdata,
	struct scrape **ret_scrape);
struct scrape *scrape_free(struct scrape *scrape);

#endif
