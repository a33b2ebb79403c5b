/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line: which command, the options that all share and those that a command adds.
 * Used by main and the commands.
 * Never prints an error and never exits: the caller gets the error as one line and decides.
 */
#ifndef IOSTALL_CLI_OPTIONS_H
#define IOSTALL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"

#define OPTIONS_SETS_MAX 128
#define OPTIONS_ITEMS_MAX 16
#define OPTIONS_ERROR_SIZE 512

/* One option that a command adds to the common ones. */
struct options_item {
	const char *name;     /* without the two dashes */
	const char *argument; /* the name of its argument in the usage; NULL: it takes none */
	const char *help;
};

struct options;

struct options_command {
	const char *name;
	const char *arguments; /* for the usage line, e.g. "[ID]"; NULL: it takes none */
	const char *summary;   /* what it does, in one line */
	const char *help;      /* more about it in sentences, with line breaks; NULL: nothing */
	const struct options_item *items;
	unsigned int items_count; /* at most OPTIONS_ITEMS_MAX */
	unsigned int args_min;
	unsigned int args_max;
	/* Returns an enum exit_code. */
	int (*run)(const struct options *o);
	bool hidden; /* used by iostall itself: --help does not list it */
};

/* Points into itself and into argv: never copied. */
struct options {
	const struct options_command *command;
	struct config_source source;
	const char *procfs; /* "/proc" unless given */
	const char *sysfs;  /* "/sys" unless given */
	bool json;
	bool verbose;
	bool help;    /* asked for: print the usage and leave */
	bool version; /* asked for: print the version and leave */
	char **args;  /* the arguments that are left in argv: args_count words */
	unsigned int args_count;
	const char *values[OPTIONS_ITEMS_MAX];
	const char *sets[OPTIONS_SETS_MAX];
};

/* Whether an option of the command's own table was given, and its argument (NULL: not given). */
bool options_has(const struct options *o, const char *name);
const char *options_get(const struct options *o, const char *name);

/*
 * Makes the command's name argv[0] and the options that stood before it those that follow it. False
 * when there is no command: argv is then as it was.
 */
bool options_take_command(const struct options_command *const *commands, unsigned int count,
	int *argc, char ***argv);

/* 0, or -EINVAL with ret_error, which suggests the command with the most similar name. */
int options_find_command(const struct options_command *const *commands, unsigned int count,
	const char *name, const struct options_command **ret_command,
	char ret_error[static OPTIONS_ERROR_SIZE]);

/*
 * argv[0] is the command's name. Options may come before and after arguments; "--" ends them.
 * command->name may be NULL when there is no command, but --help or --version. 0, or -EINVAL with
 * ret_error. The number of arguments is not checked when help or version is asked for.
 */
int options_parse(const struct options_command *command, int argc, char **argv,
	struct options *ret_options, char ret_error[static OPTIONS_ERROR_SIZE]);

/* What --help of one command prints, and what --help without a command prints. */
void options_print_usage(FILE *f, const struct options_command *command);
void options_print_commands(FILE *f, const struct options_command *const *commands,
	unsigned int count);

#endif
