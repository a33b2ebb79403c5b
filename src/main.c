/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "version.h"

/* What stands in place of a command: --help, --version. */
static const struct options_command none = { .name = NULL, .summary = "" };

static int usage_error(const char *error)
{
	log_error("%s", error);
	return EXIT_CODE_USAGE;
}

static int print_version(void)
{
	puts("iostall " IOSTALL_VERSION);
	return EXIT_CODE_OK;
}

int main(int argc, char **argv)
{
	const struct options_command commands[] = {
#define COMMAND(name) command_##name,
#include "cli/commands.def"
#undef COMMAND
	};
	const struct options_command *command = &none;
	char error[OPTIONS_ERROR_SIZE];
	struct options o;

	log_setup();
	if (argc < 2) {
		options_print_commands(stderr, commands, ARRAY_SIZE(commands));
		return EXIT_CODE_USAGE;
	}
	if (argv[1][0] != '-') {
		if (options_find_command(commands, ARRAY_SIZE(commands), argv[1], &command, error) < 0)
			return usage_error(error);
		argc--;
		argv++;
	}
	if (options_parse(command, argc, argv, &o, error) < 0) {
		if (command == &none)
			log_error("options stand behind the command, e.g. iostall list --json");
		return usage_error(error);
	}
	if (o.version)
		return print_version();
	if (o.help && command == &none)
		options_print_commands(stdout, commands, ARRAY_SIZE(commands));
	else if (o.help)
		options_print_usage(stdout, command);
	else if (command == &none)
		return usage_error("a command is missing; `iostall --help` lists them");
	if (o.help)
		return EXIT_CODE_OK;
	if (o.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	return command->run(&o);
}
