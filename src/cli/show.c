/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/load_config.h"
#include "cli/open_record.h"
#include "cli/pprof.h"
#include "cli/symbolizer.h"
#include "util/exit.h"
#include "page/statements.h"
#include "record/reader.h"
#include "report/report.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/parse.h"

/* Too large for a stack that others may want to keep small. */
struct show {
	FILE *out;
	struct show_options options;
	char path[RECORD_PATH_SIZE];
	struct record_summary summary;
	struct statements *statements; /* of SHOW_EVENTS, or if they are wanted */
	struct page *page;	       /* of SHOW_PAGE */
	struct folded *folded;	       /* of SHOW_FOLDED and SHOW_PPROF */
	struct report *report;	       /* of SHOW_CSV */
	struct symbolizer *symbolizer; /* NULL: no line has needed it */
	struct record record;
	char text_buf[PAGE_TEXT_SIZE];
};

static void cleanup_reader(struct record_reader **reader)
{
	record_reader_free(*reader);
}

static void cleanup_show(struct show **show)
{
	if (*show) {
		statements_free((*show)->statements);
		page_free((*show)->page);
		folded_free((*show)->folded);
		report_free((*show)->report);
		symbolizer_free((*show)->symbolizer);
	}
	free(*show);
}

static void show_event(struct show *show)
{
	struct text t = TEXT_ON(show->text_buf);

	record_format_text(&show->record, show->summary.opened_mono_ns, &t);
	/* First what it came to; the parts of it stand where they were written, at the end. */
	if (show->record.type == RECORD_OPEN && *show->summary.sentence) {
		text_add(&t, "  verdict   ");
		record_add_printable(&t, show->summary.sentence);
		text_add(&t, "\n");
	}
	statements_add_of(show->statements, &show->record, &t);
	fwrite(t.buf, 1, t.len, show->out);
}

/* The file may be anybody's, and its reader sits at a terminal. */
static void show_json(struct show *show, const struct record_line *line)
{
	struct text t = TEXT_ON(show->text_buf);

	text_reset(&t);
	text_add_json_printable(&t, line->text, line->len);
	if (t.overflow)
		log_error("%s has a line that is too long to be shown", show->path);
	else
		fwrite(t.buf, 1, t.len, show->out);
	fputc('\n', show->out);
}

static bool adds_stacks(const struct show *show)
{
	return show->options.as == SHOW_FOLDED || show->options.as == SHOW_PPROF;
}

static int show_line(struct show *show, const struct record_line *line)
{
	if (show->options.as != SHOW_JSON && line->decoded && show->record.type == RECORD_OFFCPU)
		symbolizer_name_stack(&show->symbolizer, &show->record.offcpu);
	if (show->options.as == SHOW_JSON)
		show_json(show, line);
	else if (!line->decoded)
		return 0;
	else if (show->options.as == SHOW_EVENTS)
		show_event(show);
	else if (adds_stacks(show))
		return folded_add(show->folded, &show->record);
	else if (show->options.as == SHOW_CSV)
		return report_add(show->report, &show->record);
	else
		page_add(show->page, &show->record);
	return 0;
}

static int show_lines(struct show *show, int fd)
{
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	struct record_line line;
	int r = 0;

	if (show->options.as == SHOW_EVENTS || show->options.statements)
		r = statements_read(fd, &show->statements);
	if (r == 0 && show->options.as == SHOW_PAGE)
		r = page_new(&show->page);
	if (r == 0 && show->options.as == SHOW_CSV)
		r = report_new(&show->report);
	if (r == 0 && adds_stacks(show)) {
		if (show->options.statements)
			show->options.folded.statements = show->statements;
		show->folded = folded_new(&show->options.folded);
		r = show->folded ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = record_reader_new(fd, &reader);
	if (r < 0)
		return r;
	while ((r = record_reader_next(reader, &show->record, &line)) > 0) {
		r = show_line(show, &line);
		if (r < 0)
			return r;
	}
	return r;
}

static void show_page(struct show *show)
{
	struct text t = TEXT_ON(show->text_buf);

	text_reset(&t);
	page_print(show->page, &show->options.style, show->summary.being_written, &t);
	fwrite(t.buf, 1, t.len, show->out);
}

static void show_csv(struct show *show)
{
	const uint64_t without = report_write_csv(show->report, show->out);

	if (without)
		log_warning("%s has %" PRIu64
			    " operations without a line of their own, as they are like "
			    "others: they have no row",
			show->path, without);
}

/* What is known when all lines have been read. 0 or a negative errno. */
static int show_whole(struct show *show)
{
	const struct pprof_times times = { show->summary.opened_real_ns,
		show->summary.duration_ns };

	if (show->options.as == SHOW_PPROF)
		return pprof_print(show->folded, &times, show->out);
	if (show->options.as == SHOW_FOLDED)
		folded_print(show->folded, show->out);
	else if (show->options.as == SHOW_CSV)
		show_csv(show);
	else if (show->options.as == SHOW_PAGE)
		show_page(show);
	return 0;
}

/* What the lines themselves do not say; 0 or an enum exit_code. */
static int show_remarks(const struct show *show)
{
	const struct record_summary *s = &show->summary;

	if (!s->closed && (adds_stacks(show) || show->options.as == SHOW_CSV))
		log_warning("%s is incomplete: %s", show->path,
			s->being_written ? "it is still being written" : "the recorder was killed");
	if (!s->closed && show->options.as == SHOW_EVENTS)
		fprintf(show->out,
			s->being_written ? "incomplete: still being written\n"
					 : "incomplete: the recorder was killed\n");
	/* As JSON those of a later version are shown. */
	return log_passed_lines(show->path, &s->counts,
		show->options.as == SHOW_JSON ? "" : ", not shown");
}

static int show_fd(struct show *show, int fd)
{
	int r;

	r = record_read_summary(fd, &show->summary);
	if (r == -ENODATA) {
		log_error("%s is not a record: it has no valid open line", show->path);
		return EXIT_CODE_RECORD;
	}
	if (r == 0)
		r = show_lines(show, fd);
	if (r < 0) {
		log_error("cannot read %s: %s", show->path, strerror(-r));
		return EXIT_CODE_RECORD;
	}
	r = show_whole(show);
	if (r < 0) {
		log_error("cannot write the record: %s", strerror(-r));
		return EXIT_CODE_FAILURE;
	}
	r = show_remarks(show);
	if (fflush(show->out) != 0 || ferror(show->out)) {
		log_error("cannot write the record: %s", strerror(errno));
		return EXIT_CODE_FAILURE;
	}
	return r;
}

int show_record(FILE *out, const struct config *c, const char *name,
	const struct show_options *options)
{
	_cleanup_(cleanup_show) struct show *show = calloc(1, sizeof(*show));
	_cleanup_close_ int fd = -1;

	if (!show) {
		log_error("out of memory");
		return EXIT_CODE_FAILURE;
	}
	show->out = out;
	show->options = *options;
	fd = open_record(c, name, show->path);
	return fd < 0 ? EXIT_CODE_RECORD : show_fd(show, fd);
}

/* False, with the reason logged: it is not known. */
static bool choose_stacks(const char *stacks, struct folded_options *ret_folded)
{
	bool both = !stacks || strcmp(stacks, "both") == 0;

	ret_folded->kernel = both || strcmp(stacks, "kernel") == 0;
	ret_folded->program = both || strcmp(stacks, "program") == 0;
	if (!ret_folded->kernel && !ret_folded->program) {
		log_error("show: --stacks %s: not known; expected kernel, program or both", stacks);
		return false;
	}
	return true;
}

/* The same; frames is a list such as "thread,statement". */
static bool choose_frames(const char *frames, struct show_options *ret_options)
{
	ret_options->folded.thread = !frames;
	for (const char *p = frames; p && *p; p += *p == ',') {
		size_t len = strcspn(p, ",");

		if (word_is(p, len, "thread"))
			ret_options->folded.thread = true;
		else if (word_is(p, len, "statement"))
			ret_options->statements = true;
		else if (!word_is(p, len, "process")) {
			log_error(
				"show: --frames %s: \"%.*s\" is not known; expected a list of process, "
				"thread and statement",
				frames, (int)len, p);
			return false;
		}
		p += len;
	}
	return true;
}

static const struct {
	const char *name;
	enum show_as as;
} formats[] = { { "folded", SHOW_FOLDED }, { "pprof", SHOW_PPROF }, { "csv", SHOW_CSV } };

/* The same. */
static bool choose_format(const char *format, struct show_options *ret_options)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (strcmp(format, formats[i].name) == 0) {
			ret_options->as = formats[i].as;
			return true;
		}
	}
	log_error("show: --format %s: not known; expected folded, pprof or csv", format);
	return false;
}

/* False, with the reason logged: the options contradict each other, or one is wrong. */
static bool choose(const struct options *o, struct show_options *ret_options)
{
	const char *format = options_get(o, "format");
	const bool has_stacks = options_get(o, "stacks") || options_get(o, "frames");

	ret_options->as = o->json ? SHOW_JSON : options_has(o, "events") ? SHOW_EVENTS : SHOW_PAGE;
	if (has_stacks && (!format || strcmp(format, "csv") == 0)) {
		log_error("show: --%s takes --format folded or --format pprof",
			options_get(o, "stacks") ? "stacks" : "frames");
		return false;
	}
	if (!format)
		return true;
	if (ret_options->as != SHOW_PAGE) {
		log_error("show: --format and --%s exclude each other",
			o->json ? "json" : "events");
		return false;
	}
	if (!choose_format(format, ret_options))
		return false;
	if (ret_options->as == SHOW_PPROF && isatty(STDOUT_FILENO)) {
		log_error("show: --format pprof is not made for a terminal; expected a file or a "
			  "program behind it, as in \"iostall show --format pprof last >FILE\"");
		return false;
	}
	return choose_stacks(options_get(o, "stacks"), &ret_options->folded) &&
		choose_frames(options_get(o, "frames"), ret_options);
}

static int run(const struct options *o)
{
	_cleanup_free_ struct config *config = NULL;
	struct show_options options = { .style = page_style_of(STDOUT_FILENO) };

	if (!choose(o, &options))
		return EXIT_CODE_USAGE;
	options.style.verbose = o->verbose;
	if (!*o->args[0]) {
		log_error("show: an empty name; expected an ID, a FILE or last");
		return EXIT_CODE_USAGE;
	}
	/*
	 * A path needs none; anywhere else than where the file says there may be other incidents.
	 */
	config = strchr(o->args[0], '/') ? command_load_config_to_ask(o) : command_load_config(o);
	return config ? show_record(stdout, config, o->args[0], &options) : EXIT_CODE_CONFIG;
}

static const struct options_item items[] = {
	{ "events", NULL, "print every line of the record in the order of time, not the page" },
	{ "format", "FORMAT",
		"blocked time by stack: folded, for flame graph tools, or pprof; csv: a line for each operation" },
	{ "stacks", "WHICH",
		"frames of the kernel, of the program, or both; with folded and pprof" },
	{ "frames", "LIST",
		"what stands before the frames: process,thread or also statement; with folded and pprof" },
};

const struct options_command command_show = {
	.name = "show",
	.arguments = "ID|FILE|last|last-N",
	.summary =
		"show one incident as text; last is the newest, last-1 the one before, FILE a record anywhere",
	.items = items,
	.items_count = ARRAY_SIZE(items),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
