/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "config/table.h"
#include "util/cleanup.h"
#include "util/text.h"

enum common_option {
	COMMON_CONFIG,
	COMMON_SET,
	COMMON_JSON,
	COMMON_PROCFS,
	COMMON_SYSFS,
	COMMON_VERBOSE,
	COMMON_HELP,
	COMMON_VERSION,
	COMMON_COUNT,
};

/* Values for getopt_long(), above every character, so that optopt tells the two apart. */
#define COMMON_VALUE(i) (0x100 + (int)(i))
#define ITEM_VALUE(i) (0x200 + (int)(i))

static const struct options_item common_items[COMMON_COUNT] = {
	[COMMON_CONFIG] = { "config", "FILE",
		"read FILE, and conf.d beside it, instead of " CONFIG_DEFAULT_FILE },
	[COMMON_SET] = { "set", "SECTION.KEY=VALUE",
		"override one setting of the configuration files; may be repeated" },
	[COMMON_JSON] = { "json", NULL, "print JSON instead of text" },
	[COMMON_PROCFS] = { "procfs", "DIR", "read DIR instead of /proc (for tests)" },
	[COMMON_SYSFS] = { "sysfs", "DIR", "read DIR instead of /sys (for tests)" },
	[COMMON_VERBOSE] = { "verbose", NULL, "print debug messages" },
	[COMMON_HELP] = { "help", NULL, "print this help and exit; -h for short" },
	[COMMON_VERSION] = { "version", NULL, "print the version and exit; -V for short" },
};

static int find_item(const struct options *o, const char *name)
{
	for (unsigned int i = 0; i < o->command->items_count; i++)
		if (strcmp(o->command->items[i].name, name) == 0)
			return (int)i;
	return -1;
}

const char *options_get(const struct options *o, const char *name)
{
	int i = find_item(o, name);

	/* A name that is in no table is a programming error in the command. */
	assert(i >= 0);
	return i < 0 ? NULL : o->values[i];
}

bool options_has(const struct options *o, const char *name)
{
	return options_get(o, name) != NULL;
}

static struct text begin_error(char *error, const struct options_command *command)
{
	struct text t = { .buf = error, .size = OPTIONS_ERROR_SIZE };

	text_reset(&t);
	if (command->name)
		text_addf(&t, "%s: ", command->name);
	return t;
}

static int end_error(struct text *t, const struct options_command *command)
{
	text_addf(t, "; see iostall %s%s--help", command->name ? command->name : "",
		command->name ? " " : "");
	return -EINVAL;
}

static const struct options_item *item_of(const struct options_command *command, int value)
{
	if (value >= ITEM_VALUE(0) && value < ITEM_VALUE(command->items_count))
		return &command->items[value - ITEM_VALUE(0)];
	if (value >= COMMON_VALUE(0) && value < COMMON_VALUE(COMMON_COUNT))
		return &common_items[value - COMMON_VALUE(0)];
	return NULL;
}

/* How many options a word after "--" may be short for, and the one with the most similar name. */
static unsigned int match_word(const struct options_command *command, const char *word,
	size_t word_len, struct config_nearest *nearest)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < COMMON_COUNT + command->items_count; i++) {
		const char *name = i < COMMON_COUNT ? common_items[i].name
						    : command->items[i - COMMON_COUNT].name;

		config_nearest_try(nearest, name);
		count += strncmp(name, word, word_len) == 0;
	}
	return count;
}

static int fail_unknown(const struct options_command *command, const char *argument,
	int short_option, char *error)
{
	struct text t = begin_error(error, command);
	struct config_nearest nearest = { 0 };
	char letter[2] = { (char)short_option, '\0' }, word[64];
	bool ambiguous;

	if (short_option > 0) {
		text_add(&t, "unknown option -");
		config_add_quoted(&t, letter, 8);
		return end_error(&t, command);
	}
	argument += strspn(argument, "-");
	text_copy(word, sizeof(word), argument);
	word[strcspn(word, "=")] = '\0';
	nearest.name = word;
	ambiguous = match_word(command, word, strlen(word), &nearest) > 1;
	text_addf(&t, "%s option --", ambiguous ? "ambiguous" : "unknown");
	config_add_quoted(&t, word, sizeof(word));
	if (nearest.found)
		text_addf(&t, ", did you mean --%s", nearest.found);
	return end_error(&t, command);
}

/* getopt_long() returned '?' or ':'; optopt is the option, if it is a known one. */
static int fail_option(const struct options_command *command, int result, const char *argument,
	char *error)
{
	const struct options_item *item = item_of(command, optopt);
	struct text t;

	if (!item)
		return fail_unknown(command, argument, optopt, error);
	t = begin_error(error, command);
	if (result == ':')
		text_addf(&t, "--%s needs an argument; expected --%s %s", item->name, item->name,
			item->argument);
	else
		text_addf(&t, "--%s takes no argument", item->name);
	return end_error(&t, command);
}

static int add_set(struct options *o, const char *argument, char *error)
{
	struct text t;

	if (o->source.sets_count < OPTIONS_SETS_MAX) {
		o->sets[o->source.sets_count++] = argument;
		return 0;
	}
	t = begin_error(error, o->command);
	text_addf(&t,
		"--set is given more than %d times; put the settings into a file and use --config",
		OPTIONS_SETS_MAX);
	return end_error(&t, o->command);
}

static int take_common(struct options *o, enum common_option option, const char *argument,
	char *error)
{
	switch (option) {
	case COMMON_CONFIG:
		o->source.file = argument;
		break;
	case COMMON_SET:
		return add_set(o, argument, error);
	case COMMON_JSON:
		o->json = true;
		break;
	case COMMON_PROCFS:
		o->procfs = argument;
		break;
	case COMMON_SYSFS:
		o->sysfs = argument;
		break;
	case COMMON_VERBOSE:
		o->verbose = true;
		break;
	case COMMON_HELP:
		o->help = true;
		break;
	case COMMON_VERSION:
		o->version = true;
		break;
	case COMMON_COUNT:
		break;
	}
	return 0;
}

static int check_args(const struct options *o, char *error)
{
	const struct options_command *command = o->command;
	struct text t;

	if (o->help || o->version)
		return 0;
	if (o->args_count >= command->args_min && o->args_count <= command->args_max)
		return 0;
	t = begin_error(error, command);
	if (o->args_count < command->args_min) {
		text_addf(&t, "an argument is missing; expected iostall %s %s",
			command->name ? command->name : "COMMAND",
			command->arguments ? command->arguments : "");
	} else {
		text_add(&t, "unexpected argument \"");
		config_add_quoted(&t, o->args[command->args_max], 60);
		text_add(&t, "\"");
	}
	return end_error(&t, command);
}

static void fill_long_options(const struct options_command *command, struct option *long_options)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < COMMON_COUNT; i++)
		long_options[n++] = (struct option){ common_items[i].name,
			common_items[i].argument ? required_argument : no_argument, NULL,
			COMMON_VALUE(i) };
	for (unsigned int i = 0; i < command->items_count; i++)
		long_options[n++] = (struct option){ command->items[i].name,
			command->items[i].argument ? required_argument : no_argument, NULL,
			ITEM_VALUE(i) };
	long_options[n] = (struct option){ NULL, 0, NULL, 0 };
}

int options_parse(const struct options_command *command, int argc, char **argv,
	struct options *ret_options, char ret_error[static OPTIONS_ERROR_SIZE])
{
	struct option long_options[COMMON_COUNT + OPTIONS_ITEMS_MAX + 1];
	struct options *o = ret_options;
	int value, output;

	assert(command->items_count <= OPTIONS_ITEMS_MAX);
	memset(o, 0, sizeof(*o));
	o->command = command;
	/* The one option that many programs have, and by this letter. */
	output = find_item(o, "output");
	o->procfs = "/proc";
	o->sysfs = "/sys";
	o->source.sets = o->sets;
	fill_long_options(command, long_options);
	opterr = 0;
	/* 0, not 1: glibc then resets the state that an earlier call left. */
	optind = 0;
	while ((value = getopt_long(argc, argv, output < 0 ? ":hV" : ":hVo:", long_options,
			NULL)) != -1) {
		int r = 0;

		if (value == 'o')
			value = ITEM_VALUE(output);
		if (value == ':' && optopt == 'o')
			optopt = ITEM_VALUE(output);
		if (value == '?' || value == ':')
			return fail_option(command, value, argv[optind - 1], ret_error);
		if (value == 'h')
			o->help = true;
		else if (value == 'V')
			o->version = true;
		else if (value >= ITEM_VALUE(0))
			o->values[value - ITEM_VALUE(0)] = optarg ? optarg : "";
		else
			r = take_common(o, (enum common_option)(value - COMMON_VALUE(0)), optarg,
				ret_error);
		if (r < 0)
			return r;
	}
	o->args = argv + optind;
	o->args_count = (unsigned int)(argc - optind);
	return check_args(o, ret_error);
}

/* Whether "--word" takes the word that follows it; of a command, only once that is known. */
static bool takes_argument(const struct options_item *items, unsigned int count, const char *word)
{
	for (unsigned int i = 0; i < count; i++)
		if (items[i].argument && strncmp(items[i].name, word, strlen(word)) == 0)
			return true;
	return false;
}

static bool takes_next_word(const struct options_command *const *commands, unsigned int count,
	const char *option)
{
	if (strncmp(option, "--", 2) != 0 || !option[2])
		return false;
	if (takes_argument(common_items, COMMON_COUNT, option + 2))
		return true;
	for (unsigned int i = 0; i < count; i++)
		if (takes_argument(commands[i]->items, commands[i]->items_count, option + 2))
			return true;
	return false;
}

bool options_take_command(const struct options_command *const *commands, unsigned int count,
	int *argc, char ***argv)
{
	char **words = *argv, *name;
	int i = 1;

	while (i < *argc && words[i][0] == '-')
		i += takes_next_word(commands, count, words[i]) ? 2 : 1;
	if (i >= *argc)
		return false;
	name = words[i];
	memmove(&words[2], &words[1], (size_t)(i - 1) * sizeof(words[0]));
	words[1] = name;
	*argv = words + 1;
	*argc -= 1;
	return true;
}

int options_find_command(const struct options_command *const *commands, unsigned int count,
	const char *name, const struct options_command **ret_command,
	char ret_error[static OPTIONS_ERROR_SIZE])
{
	static const struct options_command none = { 0 };
	struct config_nearest nearest = { .name = name };
	struct text t;

	for (unsigned int i = 0; i < count; i++) {
		if (strcmp(commands[i]->name, name) == 0) {
			*ret_command = commands[i];
			return 0;
		}
		if (!commands[i]->hidden)
			config_nearest_try(&nearest, commands[i]->name);
	}
	t = begin_error(ret_error, &none);
	text_add(&t, "unknown command \"");
	config_add_quoted(&t, name, 60);
	text_add(&t, "\"");
	if (nearest.found)
		text_addf(&t, ", did you mean %s", nearest.found);
	return end_error(&t, &none);
}

static int item_width(const struct options_item *item)
{
	return (int)(strlen(item->name) + (item->argument ? strlen(item->argument) + 1 : 0));
}

static void print_items(FILE *f, const struct options_item *items, unsigned int count, int width)
{
	for (unsigned int i = 0; i < count; i++)
		fprintf(f, "  --%s%s%s%*s  %s\n", items[i].name, items[i].argument ? " " : "",
			items[i].argument ? items[i].argument : "", width - item_width(&items[i]),
			"", items[i].help);
}

static void print_common(FILE *f, int width)
{
	fputs("\nCommon options:\n", f);
	print_items(f, common_items, COMMON_COUNT, width);
}

static int widest(const struct options_item *items, unsigned int count, int width)
{
	for (unsigned int i = 0; i < count; i++)
		if (item_width(&items[i]) > width)
			width = item_width(&items[i]);
	return width;
}

void options_print_usage(FILE *f, const struct options_command *command)
{
	int width = widest(common_items, COMMON_COUNT, 0);

	width = widest(command->items, command->items_count, width);
	fprintf(f, "Usage: iostall %s [OPTION...]%s%s\n\n%s\n",
		command->name ? command->name : "COMMAND", command->arguments ? " " : "",
		command->arguments ? command->arguments : "",
		command->help ? command->help : command->summary);
	if (command->items_count > 0)
		fputs("\nOptions:\n", f);
	print_items(f, command->items, command->items_count, width);
	print_common(f, width);
}

void options_print_commands(FILE *f, const struct options_command *const *commands,
	unsigned int count)
{
	int width = 0;

	for (unsigned int i = 0; i < count; i++)
		if (!commands[i]->hidden && (int)strlen(commands[i]->name) > width)
			width = (int)strlen(commands[i]->name);
	fputs("Usage: iostall COMMAND [OPTION...]\n\nCommands:\n", f);
	for (unsigned int i = 0; i < count; i++)
		if (!commands[i]->hidden)
			fprintf(f, "  %-*s  %s\n", width, commands[i]->name, commands[i]->summary);
	print_common(f, widest(common_items, COMMON_COUNT, 0));
	fputs("\nRun `iostall help COMMAND` for the options of a command.\n", f);
}
