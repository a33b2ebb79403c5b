/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands, one of each line of commands.def.
 * Used by main and the commands.
 * Never calls another command.
 */
#ifndef IOSTALL_CLI_COMMANDS_H
#define IOSTALL_CLI_COMMANDS_H

#include "cli/options.h"

#define COMMAND(name) extern const struct options_command command_##name;
#include "cli/commands.def"
#undef COMMAND

/* The configuration of the options, freed by free(); NULL when it has an error, which is logged. */
struct config *command_load_config(const struct options *o);

/*
 * The same for commands that ask the daemon or show a file, which are needed most when something is wrong:
 * with a file that has an error they go on with the defaults. NULL only for an error in --set.
 */
struct config *command_load_config_to_ask(const struct options *o);

#endif
