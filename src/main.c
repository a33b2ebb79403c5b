/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "util/exit.h"
#include "util/log.h"

/* Stands for the command when there is none: then only --help and --version mean something. */
static const struct options_command none = { .name = NULL, .summary = "" };

static int usage_error(const char *error)
{
	log_error("%s", error);
	return EXIT_CODE_USAGE;
}

static int print_help(const struct options_command *command)
{
	if (command == &none)
		options_print_commands(stdout, commands, commands_count);
	else
		options_print_usage(stdout, command);
	return EXIT_CODE_OK;
}

/* What was to be printed and could not be, as on a full disk, is no success. */
static int end(int code)
{
	if ((fflush(stdout) == 0 && !ferror(stdout)) || code != EXIT_CODE_OK)
		return code;
	log_error("cannot write to standard output: %s", strerror(errno));
	return EXIT_CODE_FAILURE;
}

int main(int argc, char **argv)
{
	const struct options_command *command = &none;
	char error[OPTIONS_ERROR_SIZE];
	struct options o;

	log_setup();
	if (argc < 2) {
		options_print_commands(stderr, commands, commands_count);
		return EXIT_CODE_USAGE;
	}
	if (options_take_command(commands, commands_count, &argc, &argv) &&
		options_find_command(commands, commands_count, argv[0], &command, error) < 0)
		return usage_error(error);
	if (options_parse(command, argc, argv, &o, error) < 0)
		return usage_error(error);
	if (o.version)
		return end(command_version.run(&o));
	if (o.help)
		return end(print_help(command));
	if (command == &none)
		return usage_error("the command is missing; see iostall --help");
	if (o.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	return end(command->run(&o));
}
