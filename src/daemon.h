/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine: watchdog, rules, session, sinks and control socket around one loop.
 * Run by `iostall daemon` and, in the foreground, by `iostall watch`.
 * Never waits in the loop; leaves by _exit(), since a writer thread may hang on a dead disk.
 */
#ifndef IOSTALL_DAEMON_H
#define IOSTALL_DAEMON_H

#include <stdbool.h>

#include "config.h"

struct daemon_options {
	struct config_source source; /* for SIGHUP */
	const char *procfs;
	const char *sysfs;
	bool foreground; /* `watch`: terminal instead of journald, syslog and control socket */
	bool json;	 /* on the terminal */
	bool now;	 /* arm at once */
	const char *capture; /* file for the raw events; NULL: none */
};

/* Takes config over. Runs until SIGTERM or SIGINT; returns an enum exit_code. */
int daemon_run(struct config *config, const struct daemon_options *options);

#endif
