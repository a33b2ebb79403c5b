/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Build-time generator: what is made from the table of settings, on standard output.
 *   iostall-config-gen conf          iostall.conf
 *   iostall-config-gen keys          section.key and help, for completion
 *   iostall-config-gen man TEMPLATE  iostall.conf(5): the template's line @SETTINGS@ becomes the
 * table
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "util/cleanup.h"

static int print_man(const char *template)
{
	_cleanup_fclose_ FILE *f = fopen(template, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) >= 0) {
		if (strcmp(line, "@SETTINGS@\n") == 0)
			config_print_man(stdout);
		else
			fputs(line, stdout);
	}
	return ferror(f) ? -EIO : 0;
}

int main(int argc, char **argv)
{
	int r = 0;

	if (argc == 2 && strcmp(argv[1], "conf") == 0) {
		config_print_file(stdout);
	} else if (argc == 2 && strcmp(argv[1], "keys") == 0) {
		config_print_keys(stdout);
	} else if (argc == 3 && strcmp(argv[1], "man") == 0) {
		r = print_man(argv[2]);
	} else {
		fputs("usage: iostall-config-gen conf | keys | man TEMPLATE\n", stderr);
		return 2;
	}
	if (r < 0)
		fprintf(stderr, "iostall-config-gen: %s: %s\n", argv[2], strerror(-r));
	/* A full disk must not leave half a file that the build takes for whole. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("iostall-config-gen");
		return 1;
	}
	return r < 0;
}
