/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/load_config.h"

#include <errno.h>
#include <stdlib.h>

#include "util/cleanup.h"
#include "util/log.h"

int command_read_config(const struct options *o, struct config **ret_config)
{
	_cleanup_free_ struct config *config = malloc(sizeof(*config));
	char error[CONFIG_ERROR_SIZE] = "out of memory";
	int r = config ? config_load(config, &o->source, error) : -ENOMEM;

	if (r < 0)
		log_error("%s", error);
	else
		*ret_config = TAKE_PTR(config);
	return r;
}

struct config *command_load_config(const struct options *o)
{
	struct config *config = NULL;

	command_read_config(o, &config);
	return config;
}

struct config *command_load_config_to_ask(const struct options *o)
{
	_cleanup_free_ struct config *config = malloc(sizeof(*config));
	struct config_source without_file = o->source;
	char error[CONFIG_ERROR_SIZE], error_of_sets[CONFIG_ERROR_SIZE];

	if (!config) {
		log_error("out of memory");
		return NULL;
	}
	if (config_load(config, &o->source, error) == 0)
		return TAKE_PTR(config);
	without_file.file = "/dev/null";
	if (config_load(config, &without_file, error_of_sets) < 0) {
		log_error("%s", error_of_sets);
		return NULL;
	}
	log_warning("%s; continuing with the default configuration", error);
	return TAKE_PTR(config);
}
