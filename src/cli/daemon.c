/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/daemon.h"

#include "cli/commands.h"
#include "cli/load_config.h"
#include "util/exit.h"
#include "util/log.h"

static int run(const struct options *o)
{
	const struct daemon_options options = {
		.source = o->source,
		.procfs = o->procfs,
		.sysfs = o->sysfs,
	};
	struct config *config = NULL;
	int r;

	log_never_wait();
	r = command_read_config(o, &config);
	if (r < 0)
		return exit_code_unless_transient(r, EXIT_CODE_CONFIG);
	return daemon_run(config, &options);
}

const struct options_command command_daemon = {
	.name = "daemon",
	.summary = "run as the service that watches this host and records incidents",
	.help = "Watch this host and record an incident when a rule fires. This is what the service\n"
		"iostalld runs; it stays in the foreground and logs to standard error. SIGHUP reads\n"
		"the configuration again, SIGUSR1 starts an incident, and SIGTERM stops the daemon.\n"
		"It needs root. Only one daemon can run for each control.socket.",
	.run = run,
};
