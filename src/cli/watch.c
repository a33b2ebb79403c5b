/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/commands.h"
#include "cli/exit.h"
#include "daemon.h"
#include "util/log.h"

static const struct options_item items[] = {
	{ "now", NULL, "arm at once instead of waiting for a threshold to be crossed" },
	{ "capture", "FILE", "also write the kernel's raw events to FILE, for a bug report" },
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
	struct config *config = command_load_config(o);

	/* The terminal shows what the log would repeat. */
	if (!o->verbose)
		log_set_level(LOG_LEVEL_NOTICE);

	return config ? daemon_run(config, &options) : EXIT_CODE_CONFIG;
}

const struct options_command command_watch = {
	.name = "watch",
	.summary = "watch in the foreground: incidents on the terminal as they happen, Ctrl-C ends",
	.items = items,
	.items_count = sizeof(items) / sizeof(items[0]),
	.run = run,
};
