/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A configuration from a text, or from a file and arguments.
 * Used by the tests of the configuration.
 * Never reads the configuration of the host.
 */
#ifndef IOSTALL_TESTS_TEST_CONFIG_SETUP_H
#define IOSTALL_TESTS_TEST_CONFIG_SETUP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "config/config.h"
#include "util/text.h"

static inline int parse(struct config *c, const char *text, char *ret_error)
{
	memset(ret_error, 0, CONFIG_ERROR_SIZE);
	config_set_defaults(c);
	return config_parse_text(c, "x.conf", text, strlen(text), ret_error);
}

static inline int load(struct config *c, const char *file, const char *const *sets,
	unsigned int count, char *ret_error)
{
	const struct config_source source = { .file = file, .sets = sets, .sets_count = count };

	memset(ret_error, 0, CONFIG_ERROR_SIZE);
	return config_load(c, &source, ret_error);
}

#endif
