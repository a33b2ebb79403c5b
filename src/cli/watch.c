/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/commands.h"
#include "cli/load_config.h"
#include "util/exit.h"
#include "util/log.h"
#include "daemon/daemon.h"
#include "util/log.h"

static const struct options_item items[] = {
	{ "now", NULL, "start an incident now instead of waiting for a rule to fire" },
	{ "capture", "FILE", "also write the raw kernel events to FILE, for a bug report" },
};

static int run(const struct options *o)
{
	const struct daemon_options options = {
		.source = o->source,
		.procfs = o->procfs,
		.sysfs = o->sysfs,
		.foreground = true,
		.json = o->json,
		.now = options_has(o, "now"),
		.capture = options_get(o, "capture"),
	};
	struct config *config = NULL;
	int r;

	log_never_wait();
	r = command_read_config(o, &config);
	/* The terminal shows incidents already: the log would repeat them. */
	if (!o->verbose)
		log_set_level(LOG_LEVEL_NOTICE);
	if (r < 0)
		return exit_code_unless_transient(r, EXIT_CODE_CONFIG);
	return daemon_run(config, &options);
}

const struct options_command command_watch = {
	.name = "watch",
	.summary = "watch in the foreground and show incidents on the terminal",
	.help = "Do what the daemon does, but in the foreground: watch this host and show incidents\n"
		"on the terminal while they happen. No service and no configuration are needed.\n"
		"Ctrl-C ends an open incident and prints a summary. Records are kept in record.dir\n"
		"as those of the daemon are. It needs root.",
	.items = items,
	.items_count = sizeof(items) / sizeof(items[0]),
	.run = run,
};
