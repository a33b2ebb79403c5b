/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the build-time generators share: a template of a manual page, and the end of the program.
 * Included by tools/iostall-*-gen.c only.
 * Never installed.
 */
#ifndef IOSTALL_TOOLS_GENERATE_H
#define IOSTALL_TOOLS_GENERATE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

/*
 * Copies the template to standard output; `print` writes what stands in place of the line `mark`.
 * Returns 0 or a negative errno.
 */
static inline int generate_from_template(const char *template, const char *mark,
	void (*print)(void))
{
	_cleanup_fclose_ FILE *f = fopen(template, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) >= 0) {
		if (strcmp(line, mark) == 0)
			print();
		else
			fputs(line, stdout);
	}
	return ferror(f) ? -EIO : 0;
}

/* The exit status of a generator; `r` is the negative errno of reading `file`, or 0. */
static inline int generate_finish(const char *program, const char *file, int r)
{
	if (r < 0)
		fprintf(stderr, "%s: %s: %s\n", program, file, strerror(-r));
	/* A full disk must not leave half a file that the build takes for whole. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror(program);
		return 1;
	}
	return r < 0;
}

#endif
