/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `iostall report`: one incident as one HTML file, or two side by side. */
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/load_config.h"
#include "cli/open_record.h"
#include "cli/symbolizer.h"
#include "record/reader.h"
#include "util/cleanup.h"
#include "util/exit.h"
#include "util/log.h"

struct reading {
	struct report *report;
	struct symbolizer *symbolizer; /* NULL: no line has needed it */
	struct record record;
	char incident[RECORD_ID_SIZE]; /* "": it has no valid `open` line */
	struct record_reader_counts counts;
};

struct pages {
	struct reading incidents[2];
	unsigned int count;
};

static void cleanup_reader(struct record_reader **reader)
{
	record_reader_free(*reader);
}

static void cleanup_pages(struct pages **pages)
{
	for (unsigned int i = 0; *pages && i < ARRAY_SIZE((*pages)->incidents); i++) {
		report_free((*pages)->incidents[i].report);
		symbolizer_free((*pages)->incidents[i].symbolizer);
	}
	free(*pages);
}

static int take_line(struct reading *r)
{
	if (r->record.type == RECORD_OFFCPU)
		symbolizer_name_stack(&r->symbolizer, &r->record.offcpu);
	if (r->record.type == RECORD_OPEN)
		memcpy(r->incident, r->record.incident, sizeof(r->incident));
	return report_add(r->report, &r->record);
}

static int read_record(struct reading *reading, int fd)
{
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	struct record_line line;
	int r = report_new(&reading->report);

	if (r == 0)
		r = record_reader_new(fd, &reader);
	while (r >= 0 && (r = record_reader_next(reader, &reading->record, &line)) > 0)
		if (line.decoded)
			r = take_line(reading);
	if (r == 0) {
		reading->counts = *record_reader_get_counts(reader);
		report_note_lines(reading->report, &reading->counts);
	}
	return r;
}

static int read_incident(const struct config *config, const char *name, struct reading *reading)
{
	char path[RECORD_PATH_SIZE];
	_cleanup_close_ int fd = open_record(config, name, path);
	int r;

	if (fd < 0)
		return EXIT_CODE_RECORD;
	r = read_record(reading, fd);
	if (r < 0) {
		log_error("cannot read %s: %s", path, strerror(-r));
		return EXIT_CODE_RECORD;
	}
	if (!*reading->incident) {
		log_error("%s is not a record: it has no valid open line", path);
		return EXIT_CODE_RECORD;
	}
	return EXIT_CODE_OK;
}

static int write_to(struct pages *p, FILE *out)
{
	if (p->count == 1)
		return report_write(p->incidents[0].report, out);
	return report_write_pair(p->incidents[0].report, p->incidents[1].report, out);
}

static int fail(const char *path)
{
	log_error("cannot write %s: %s", path, strerror(errno));
	return EXIT_CODE_FAILURE;
}

static int write_and_close(struct pages *p, FILE *out, const char *path)
{
	int e = write_to(p, out);
	bool is_whole = !ferror(out);

	if (fclose(out) == 0 && is_whole && e == 0)
		return EXIT_CODE_OK;
	errno = e < 0 ? -e : errno;
	return fail(path);
}

/* Whoever waits for the file never sees a part of it. */
static int replace_file(struct pages *p, const char *path)
{
	char temporary[RECORD_PATH_SIZE];
	mode_t mask;
	FILE *out;
	int r;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary)) {
		errno = ENAMETOOLONG;
		return fail(path);
	}
	r = mkostemp(temporary, O_CLOEXEC);
	out = r < 0 ? NULL : fdopen(r, "w");
	if (!out)
		return fail(path);
	/* As any other new file: others may be meant to read it. */
	mask = umask(0);
	umask(mask);
	(void)fchmod(fileno(out), 0666 & ~mask);
	r = write_and_close(p, out, path);
	if (r == EXIT_CODE_OK && rename(temporary, path) < 0)
		r = fail(path);
	if (r != EXIT_CODE_OK)
		unlink(temporary);
	return r;
}

/* A device, a pipe or a link is not replaced by a file. */
static int write_into(struct pages *p, const char *path)
{
	FILE *out = fopen(path, "we");

	return out ? write_and_close(p, out, path) : fail(path);
}

static int write_file(struct pages *p, const char *path)
{
	struct stat status;
	bool is_new = lstat(path, &status) < 0;
	int r = is_new || S_ISREG(status.st_mode) ? replace_file(p, path) : write_into(p, path);

	if (r == EXIT_CODE_OK)
		printf("%s\n", path);
	return r;
}

static int write_page(struct pages *p, const char *path)
{
	char name[sizeof("..html") + 2 * RECORD_ID_SIZE];
	int e;

	if (path && strcmp(path, "-") != 0)
		return write_file(p, path);
	if (!path) {
		snprintf(name, sizeof(name), "%s%s%s.html", p->incidents[0].incident,
			p->count == 1 ? "" : ".", p->incidents[1].incident);
		return write_file(p, name);
	}
	e = write_to(p, stdout);
	if (e == 0 && fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_CODE_OK;
	errno = e < 0 ? -e : errno;
	return fail("standard output");
}

/* Only what is asked for by its name needs the spool, and so the configuration. */
static bool has_names(const struct options *o)
{
	for (unsigned int i = 0; i < o->args_count; i++)
		if (!strchr(o->args[i], '/'))
			return true;
	return false;
}

static int run(const struct options *o)
{
	_cleanup_(cleanup_pages) struct pages *pages = calloc(1, sizeof(*pages));
	_cleanup_free_ struct config *config =
		has_names(o) ? command_load_config(o) : command_load_config_to_ask(o);
	int r = EXIT_CODE_OK;

	if (!config)
		return EXIT_CODE_CONFIG;
	if (!pages) {
		log_error("there is no memory");
		return EXIT_CODE_FAILURE;
	}
	for (; r == EXIT_CODE_OK && pages->count < o->args_count; pages->count++)
		r = read_incident(config, o->args[pages->count], &pages->incidents[pages->count]);
	if (r == EXIT_CODE_OK)
		r = write_page(pages, options_get(o, "output"));
	for (unsigned int i = 0; r == EXIT_CODE_OK && i < pages->count; i++)
		r = log_passed_lines(o->args[i], &pages->incidents[i].counts, ", left out");
	return r;
}

static const struct options_item items[] = {
	{ "output", "FILE",
		"the file to write, instead of ID.html or ID.ID.html here; - for standard output; -o for short" },
};

const struct options_command command_report = {
	.name = "report",
	.arguments = "ID|FILE|last|last-N [ID|FILE|last|last-N]",
	.summary = "write an incident as one HTML file, for a ticket or a browser",
	.help = "The file has all that it needs: it asks nobody for anything. Without scripts it is complete as text;\n"
		"with scripts it has a timeline, latencies, threads and a flame graph, of the whole incident or a part.\n"
		"With two incidents it lays them side by side, and says which disks, programs, files, statements and\n"
		"stacks both have.",
	.items = items,
	.items_count = ARRAY_SIZE(items),
	.args_min = 1,
	.args_max = 2,
	.run = run,
};
