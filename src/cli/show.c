/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/show.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/folded.h"
#include "cli/pprof.h"
#include "util/exit.h"
#include "page/statements.h"
#include "record/reader.h"
#include "record/store.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Too large for a stack that others may want to keep small. */
struct show {
	FILE *out;
	enum show_as as;
	const struct page_style *style;
	char path[RECORD_PATH_SIZE];
	struct record_summary summary;
	struct statements *statements; /* of SHOW_EVENTS */
	struct page *page;	       /* of SHOW_PAGE */
	struct folded *folded;	       /* of SHOW_FOLDED and SHOW_PPROF */
	struct record record;
	char text_buf[PAGE_TEXT_SIZE];
};

/* Of the incidents that a name may mean, the newest are listed. */
#define CANDIDATES_MAX 10

static void cleanup_store(struct record_store **store)
{
	record_store_free(*store);
}

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
	}
	free(*show);
}

static int open_file(struct show *show, const char *name)
{
	/* A FIFO would wait for a writer. */
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	text_copy(show->path, sizeof(show->path), name);
	if (fd < 0 || fstat(fd, &st) < 0) {
		log_error("cannot open %s: %s", name, strerror(errno));
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		log_error("%s is not a regular file; expected the file of an incident", name);
		return -1;
	}
	return TAKE_FD(fd);
}

static void log_candidates(const struct record_store *store, const char *name)
{
	const char *ids[CANDIDATES_MAX];
	size_t count = record_store_match(store, name, ids, CANDIDATES_MAX);
	char buf[64 + CANDIDATES_MAX * (RECORD_ID_SIZE + 2)];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	for (size_t i = 0; i < count && i < CANDIDATES_MAX; i++) {
		text_add(&t, i ? ", " : "");
		text_add(&t, ids[i]);
	}
	if (count > CANDIDATES_MAX)
		text_addf(&t, " and %zu older ones", count - CANDIDATES_MAX);
	log_error("\"%s\" is part of %zu incidents: %s", name, count, buf);
}

/* Why there is none. */
static void log_not_found(const struct config *c, const struct record_store *store,
	const char *name)
{
	size_t count = record_store_count(store);

	if (strncmp(name, "last", strlen("last")) != 0)
		log_error("no incident %s in %s and %s", name, c->record.spool_dir, c->record.dir);
	else if (count == 0)
		log_error("no incidents in %s and %s", c->record.spool_dir, c->record.dir);
	else
		log_error("no incident %s: there are %zu in %s and %s", name, count,
			c->record.spool_dir, c->record.dir);
}

/* A descriptor, or -1 with the reason logged. */
static int open_named(struct show *show, const struct config *c, const char *name)
{
	_cleanup_(cleanup_store) struct record_store *store = NULL;
	const char *failed_dir = NULL, *id = NULL;
	int fd, r;

	if (strchr(name, '/'))
		return open_file(show, name);
	r = record_store_new(c->record.spool_dir, c->record.dir, &store, &failed_dir);
	if (r < 0) {
		log_error("cannot read %s: %s", failed_dir, strerror(-r));
		return -1;
	}
	r = record_store_find(store, name, &id);
	if (r == -ENOTUNIQ) {
		log_candidates(store, name);
		return -1;
	}
	/* An incident's file name is not an id, so it is looked for where the caller stands. */
	if (r < 0 && access(name, F_OK) == 0)
		return open_file(show, name);
	if (r < 0) {
		log_not_found(c, store, name);
		return -1;
	}
	fd = record_store_open(store, id, show->path);
	if (fd < 0)
		log_error("cannot open %s: %s", show->path, record_store_strerror(fd));
	return fd < 0 ? -1 : fd;
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
	return show->as == SHOW_FOLDED || show->as == SHOW_PPROF;
}

static int show_line(struct show *show, const struct record_line *line)
{
	if (show->as == SHOW_JSON)
		show_json(show, line);
	else if (!line->decoded)
		return 0;
	else if (show->as == SHOW_EVENTS)
		show_event(show);
	else if (adds_stacks(show))
		return folded_add(show->folded, &show->record);
	else
		page_add(show->page, &show->record);
	return 0;
}

static int show_lines(struct show *show, int fd)
{
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	struct record_line line;
	int r = 0;

	if (show->as == SHOW_EVENTS)
		r = statements_read(fd, &show->statements);
	else if (show->as == SHOW_PAGE)
		r = page_new(&show->page);
	else if (adds_stacks(show))
		r = (show->folded = folded_new()) ? 0 : -ENOMEM;
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
	page_print(show->page, show->style, show->summary.being_written, &t);
	fwrite(t.buf, 1, t.len, show->out);
}

/* What is known when all lines have been read. 0 or a negative errno. */
static int show_whole(struct show *show)
{
	const struct pprof_times times = { show->summary.opened_real_ns,
		show->summary.duration_ns };

	if (show->as == SHOW_PPROF)
		return pprof_print(show->folded, &times, show->out);
	if (show->as == SHOW_FOLDED)
		folded_print(show->folded, show->out);
	else if (show->as == SHOW_PAGE)
		show_page(show);
	return 0;
}

/* What the lines themselves do not say; 0 or an enum exit_code. */
static int show_remarks(const struct show *show)
{
	const struct record_summary *s = &show->summary;

	if (!s->closed && adds_stacks(show))
		log_warning("%s is incomplete: %s", show->path,
			s->being_written ? "it is still being written" : "the recorder was killed");
	if (!s->closed && show->as == SHOW_EVENTS)
		fprintf(show->out,
			s->being_written ? "incomplete: still being written\n"
					 : "incomplete: the recorder was killed\n");
	if (s->counts.newer)
		log_warning("%s has %" PRIu64 " lines of a later version%s", show->path,
			s->counts.newer, show->as == SHOW_JSON ? "" : ", not shown");
	if (s->counts.garbage) {
		log_error("%s has %" PRIu64 " lines that are not records, not shown", show->path,
			s->counts.garbage);
		return EXIT_CODE_RECORD;
	}
	return EXIT_CODE_OK;
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

int show_record(FILE *out, const struct config *c, const char *name, enum show_as as,
	const struct page_style *style)
{
	_cleanup_(cleanup_show) struct show *show = calloc(1, sizeof(*show));
	_cleanup_close_ int fd = -1;

	if (!show) {
		log_error("out of memory");
		return EXIT_CODE_FAILURE;
	}
	show->out = out;
	show->as = as;
	show->style = style;
	fd = open_named(show, c, name);
	return fd < 0 ? EXIT_CODE_RECORD : show_fd(show, fd);
}

/* False, with the reason logged: the options contradict each other. */
static bool choose(const struct options *o, enum show_as *ret_as)
{
	const char *format = options_get(o, "format");
	bool is_pprof = format && strcmp(format, "pprof") == 0;

	*ret_as = o->json ? SHOW_JSON : options_has(o, "events") ? SHOW_EVENTS : SHOW_PAGE;
	if (!format)
		return true;
	if (*ret_as != SHOW_PAGE) {
		log_error("show: --format and --%s exclude each other",
			o->json ? "json" : "events");
		return false;
	}
	if (!is_pprof && strcmp(format, "folded") != 0) {
		log_error("show: --format %s: not known; expected folded or pprof", format);
		return false;
	}
	if (is_pprof && isatty(STDOUT_FILENO)) {
		log_error("show: --format pprof is not made for a terminal; expected a file or a "
			  "program behind it, as in \"iostall show --format pprof last >FILE\"");
		return false;
	}
	*ret_as = is_pprof ? SHOW_PPROF : SHOW_FOLDED;
	return true;
}

static int run(const struct options *o)
{
	_cleanup_free_ struct config *config = NULL;
	struct page_style style = page_style_of(STDOUT_FILENO);
	enum show_as as;

	if (!choose(o, &as))
		return EXIT_CODE_USAGE;
	style.verbose = o->verbose;
	if (!*o->args[0]) {
		log_error("show: an empty name; expected an ID, a FILE or last");
		return EXIT_CODE_USAGE;
	}
	/*
	 * A path needs none; anywhere else than where the file says there may be other incidents.
	 */
	config = strchr(o->args[0], '/') ? command_load_config_to_ask(o) : command_load_config(o);
	return config ? show_record(stdout, config, o->args[0], as, &style) : EXIT_CODE_CONFIG;
}

static const struct options_item items[] = {
	{ "events", NULL, "print every line of the record in the order of time, not the page" },
	{ "format", "FORMAT",
		"how long threads waited for each stack: folded, for flame graph tools, or pprof" },
};

const struct options_command command_show = {
	.name = "show",
	.arguments = "ID|FILE|last|last-N",
	.summary = "show one incident as a page; any part of an ID that no other has will do",
	.items = items,
	.items_count = ARRAY_SIZE(items),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
