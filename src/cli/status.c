/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/exit.h"

static void print(const char *name, const json_t *value)
{
	if (json_is_string(value))
		printf("%-18s %s\n", name, json_string_value(value));
	else if (json_is_integer(value))
		printf("%-18s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
}

static int run(const struct options *o)
{
	const char *name;
	json_t *answer, *value;
	int code = ask_daemon(o, "status", &answer);

	if (code != EXIT_CODE_OK)
		return code;
	if (o->json) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		json_object_foreach(answer, name, value)
			print(name, value);
	}
	json_decref(answer);
	return EXIT_CODE_OK;
}

const struct options_command command_status = {
	.name = "status",
	.summary = "what the running daemon is doing",
	.run = run,
};
