/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon.h"

#include "cli/commands.h"
#include "cli/exit.h"

static int run(const struct options *o)
{
	const struct daemon_options options = {
		.source = o->source,
		.procfs = o->procfs,
		.sysfs = o->sysfs,
	};
	struct config *config = command_load_config(o);

	return config ? daemon_run(config, &options) : EXIT_CODE_CONFIG;
}

const struct options_command command_daemon = {
	.name = "daemon",
	.summary = "the service: watch, arm when a threshold is crossed, record",
	.run = run,
};
