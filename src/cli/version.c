/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "cli/commands.h"
#include "util/exit.h"
#include "version.h"

static int run(const struct options *o)
{
	(void)o;
	puts("iostall " IOSTALL_VERSION);
	return EXIT_CODE_OK;
}

const struct options_command command_version = {
	.name = "version",
	.summary = "print the version",
	.run = run,
};
