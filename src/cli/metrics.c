/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "cli/ask.h"
#include "cli/commands.h"
#include "util/exit.h"
#include "util/log.h"

/* An older daemon does not know the request, and says so in JSON. */
static int run(const struct options *o)
{
	char answer[CONTROL_MESSAGE_MAX];
	int code = ask_daemon_text(o, "metrics", answer);

	if (code != EXIT_CODE_OK)
		return code;
	if (answer[0] == '{') {
		log_error("the daemon has no metrics; expected one of the same version of iostall");
		return EXIT_CODE_FAILURE;
	}
	fputs(answer, stdout);
	return EXIT_CODE_OK;
}

const struct options_command command_metrics = {
	.name = "metrics",
	.summary = "print the running daemon's metrics for Prometheus",
	.help = "Print what the running daemon knows in the text format of Prometheus, such as for the\n"
		"textfile collector of node_exporter. iostalld-metrics.socket serves the same by HTTP.",
	.run = run,
};
