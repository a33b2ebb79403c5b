/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of commands, one for each line of commands.def.
 * Used by main and help.
 * Never runs a command: main does.
 */
#ifndef IOSTALL_CLI_COMMANDS_H
#define IOSTALL_CLI_COMMANDS_H

#include "cli/options.h"

#define COMMAND(name) extern const struct options_command command_##name;
#include "cli/commands.def"
#undef COMMAND

extern const struct options_command *const commands[];
extern const unsigned int commands_count;

#endif
