/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ask.h"
#include "cli/commands.h"
#include "util/exit.h"
#include "util/log.h"
#include "util/parse.h"

static const struct options_item items[] = {
	{ "time", "DURATION", "trace for at least this time (default: 10s)" },
};

static int run(const struct options *o)
{
	const char *time = options_get(o, "time");
	uint64_t hold_ns = 0;
	char request[64];
	json_t *answer;
	int code;

	if (time && (parse_duration_ns(time, &hold_ns) < 0 || hold_ns == 0)) {
		log_error("trigger: --time: \"%s\" is not a duration; expected e.g. 30s or 0.5s",
			time);
		return EXIT_CODE_USAGE;
	}
	snprintf(request, sizeof(request), "trigger %" PRIu64, hold_ns);
	code = ask_daemon(o, request, &answer);
	if (code != EXIT_CODE_OK)
		return code;
	if (o->json)
		json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	else
		fputs(json_string_value(json_object_get(answer, "incident")), stdout);
	putchar('\n');
	json_decref(answer);
	return EXIT_CODE_OK;
}

const struct options_command command_trigger = {
	.name = "trigger",
	.summary = "make the running daemon start an incident now",
	.help = "Make the running daemon start an incident now, or keep the open one open, and print\n"
		"its ID. The daemon traces for at least the time given, also when no rule fires.\n"
		"Only root may do this.",
	.items = items,
	.items_count = sizeof(items) / sizeof(items[0]),
	.run = run,
};
