/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The answer to `iostall status`: what the daemon is doing, and with which configuration.
 * Used by daemon.c.
 * Never waits for a database: it tells what is known.
 */
#ifndef IOSTALL_DAEMON_STATUS_H
#define IOSTALL_DAEMON_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text.h"

struct config;
struct rules;
struct session;
struct sql;
struct watch;

/* All borrowed. */
struct daemon_status {
	const struct config *config;
	const struct session *session;
	const struct watch *watch;
	const struct rules *rules;
	const struct sql *sql; /* NULL: no database is asked */
	uint64_t uptime_ns;
	uint64_t started_real_ns;
	bool reload_waits; /* a reload is not done yet, see daemon_is_reloading() */
};

/* One JSON object. */
void daemon_add_status(const struct daemon_status *status, struct text *answer);

#endif
