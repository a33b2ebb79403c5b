/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Owns the command line of stallio: the operations it knows, its options, its help.
 * Only stallio.c calls it.
 * Never opens a file and never starts a thread.
 */
#ifndef STALLIO_OPTIONS_H
#define STALLIO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define STALLIO_PAGE_BYTES 4096u
#define STALLIO_SEGMENTS_MAX 1024u /* UIO_MAXIOV of the kernel */

enum source { SOURCE_FILE, SOURCE_PIPE, SOURCE_SOCKET, SOURCE_TTY };

struct operation {
	const char *name;
	enum source source;
	bool writes;
	bool positional;
	bool vectored;
	bool spins;
};

struct options {
	const struct operation *op;
	const char *path;
	const char *ready_path;
	const char *go_path;
	const char *stay_path;
	const char *done_path;
	const char *comm;
	uint64_t offset_bytes;
	uint64_t length_bytes;
	uint64_t threads;
	uint64_t count;
	uint64_t segments; /* 0: three of different lengths */
	uint64_t hold_fd;
	uint64_t seconds;
	bool direct;
	bool fsync;
	bool again;
};

/* 0, or -EINVAL once standard error says what is wrong; --help and --clock exit with 0. */
int stallio_options_parse(int argc, char **argv, struct options *ret_opt);

#endif
