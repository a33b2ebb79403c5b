/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine: watchdog, rules, session, sinks and control socket in one event loop.
 * Run by `iostall daemon` and, in the foreground, by `iostall watch`.
 * Never waits in the loop, and ends with _exit(), since a writer thread may hang on a dead disk.
 */
#ifndef IOSTALL_DAEMON_DAEMON_H
#define IOSTALL_DAEMON_DAEMON_H

#include <stdbool.h>

#include "config/config.h"

struct daemon_options {
	struct config_source source; /* read again at SIGHUP */
	const char *procfs;
	const char *sysfs;
	bool foreground; /* `watch`: the terminal instead of journal, syslog and control socket */
	bool json;	 /* print JSON lines on the terminal */
	bool now;	 /* start an incident at once */
	const char *capture; /* the file to write raw events to, or NULL */
};

/* Takes config over. Runs until SIGTERM or SIGINT; returns an enum exit_code. */
int daemon_run(struct config *config, const struct daemon_options *options);

#endif
