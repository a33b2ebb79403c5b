/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exit codes of all commands; EXIT STATUS in iostall(1) describes them to users. Used by main,
 * the commands and the daemon. Never renumbered: scripts depend on them. USAGE, CONFIG and ARM mean
 * that the next start would fail in the same way, and the systemd unit does not try it.
 */
#ifndef IOSTALL_UTIL_EXIT_H
#define IOSTALL_UTIL_EXIT_H

#include "util/error.h"

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_FAILURE = 1, /* something failed at run time */
	EXIT_CODE_USAGE = 2,   /* unknown command or option, or a missing argument */
	EXIT_CODE_CONFIG = 3,  /* a setting is wrong or a configuration file cannot be read */
	EXIT_CODE_CONTROL = 4, /* another daemon runs, or none runs that could be asked */
	EXIT_CODE_ARM = 5,     /* nothing can be armed on this kernel or with these privileges */
	EXIT_CODE_RECORD = 6,  /* no such record, or a record that cannot be read */
	EXIT_CODE_SPOOL = 7,   /* the spool or another directory cannot be used */
};

/* `code`, or for an error that may pass one after which the next start is tried. */
static inline int exit_code_unless_transient(int error, enum exit_code code)
{
	return error_is_transient(error) ? (int)EXIT_CODE_FAILURE : (int)code;
}

#endif
