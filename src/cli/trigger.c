/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "util/log.h"
#include "util/parse.h"

static const struct options_item items[] = {
	{ "time", "DURATION", "how long to trace at least (default 10s)" },
};

static int run(const struct options *o)
{
	const char *time = options_get(o, "time");
	uint64_t hold_ns = 0;
	char request[64];
	json_t *answer;
	int code;

	if (time && (parse_duration_ns(time, &hold_ns) < 0 || hold_ns == 0)) {
		log_error("--time: %s is not a duration; right would be e.g. 30s or 500ms", time);
		return EXIT_CODE_USAGE;
	}
	snprintf(request, sizeof(request), "trigger %" PRIu64, hold_ns);
	code = ask_daemon(o, request, &answer);
	if (code != EXIT_CODE_OK)
		return code;
	if (o->json)
		json_dumpf(answer, stdout, JSON_COMPACT);
	else
		fputs(json_string_value(json_object_get(answer, "incident")), stdout);
	putchar('\n');
	json_decref(answer);
	return EXIT_CODE_OK;
}

const struct options_command command_trigger = {
	.name = "trigger",
	.summary = "make the running daemon arm now; prints the incident's id",
	.items = items,
	.items_count = sizeof(items) / sizeof(items[0]),
	.run = run,
};
