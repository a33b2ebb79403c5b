/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a command loads the configuration.
 * Used by the commands.
 */
#ifndef IOSTALL_CLI_LOAD_CONFIG_H
#define IOSTALL_CLI_LOAD_CONFIG_H

#include "cli/options.h"

/*
 * Loads the configuration: 0, or a negative errno, which is logged. *ret_config is freed by free().
 */
int command_read_config(const struct options *o, struct config **ret_config);

/* Loads the configuration; freed by free(). NULL after an error, which is logged. */
struct config *command_load_config(const struct options *o);

/*
 * The same for commands that ask the daemon or show a file. They are needed most when something is
 * wrong, so after an error in a configuration file they use the defaults. NULL only after an error
 * in --set.
 */
struct config *command_load_config_to_ask(const struct options *o);

#endif
