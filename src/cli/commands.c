/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/commands.h"

#include "util/cleanup.h"
#include "util/exit.h"
#include "util/log.h"

const struct options_command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};
const unsigned int commands_count = ARRAY_SIZE(commands);

/* The command that lists them is one of them. */

static int run(const struct options *o)
{
	const struct options_command *command;
	char error[OPTIONS_ERROR_SIZE];

	if (o->args_count == 0) {
		options_print_commands(stdout, commands, commands_count);
		return EXIT_CODE_OK;
	}
	if (options_find_command(commands, commands_count, o->args[0], &command, error) < 0) {
		log_error("help: %s", error);
		return EXIT_CODE_USAGE;
	}
	options_print_usage(stdout, command);
	return EXIT_CODE_OK;
}

const struct options_command command_help = {
	.name = "help",
	.arguments = "[COMMAND]",
	.summary = "list the commands, or explain one command and its options",
	.args_max = 1,
	.run = run,
};
