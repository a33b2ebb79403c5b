/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Build-time generator: what is made from the table of settings, on standard output.
 *   iostall-config-gen conf          iostall.conf
 *   iostall-config-gen keys          section.key and help, for completion
 *   iostall-config-gen man TEMPLATE  iostall.conf(5): the template's line @SETTINGS@ becomes the
 * table
 */
#include "config/config.h"
#include "generate.h"

static void print_settings(void)
{
	config_print_man(stdout);
}

int main(int argc, char **argv)
{
	int r = 0;

	if (argc == 2 && strcmp(argv[1], "conf") == 0) {
		config_print_file(stdout);
	} else if (argc == 2 && strcmp(argv[1], "keys") == 0) {
		config_print_keys(stdout);
	} else if (argc == 3 && strcmp(argv[1], "man") == 0) {
		r = generate_from_template(argv[2], "@SETTINGS@\n", print_settings);
	} else {
		fputs("usage: iostall-config-gen conf | keys | man TEMPLATE\n", stderr);
		return 2;
	}
	return generate_finish("iostall-config-gen", argv[argc - 1], r);
}
