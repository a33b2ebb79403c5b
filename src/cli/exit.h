/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exit codes of every command, as EXIT STATUS in iostall(1) has them.
 * Returned by the commands, used by main; the one place where they are listed.
 * Never renumbered: scripts depend on them.
 */
#ifndef IOSTALL_CLI_EXIT_H
#define IOSTALL_CLI_EXIT_H

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

#endif
