/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/show.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/statements.h"
#include "record/reader.h"
#include "record/store.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Too large for a stack that others may want to keep small. */
struct show {
	FILE *out;
	bool json;
	char path[RECORD_PATH_SIZE];
	struct record_summary summary;
	struct statements *statements; /* NULL with json */
	struct record record;
	char text_buf[RECORD_LINE_SIZE];
};

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
	if (*show)
		statements_free((*show)->statements);
	free(*show);
}

static int open_file(struct show *show, const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	text_copy(show->path, sizeof(show->path), name);
	if (fd < 0) {
		log_error("cannot open %s: %s", name, strerror(errno));
		return -1;
	}
	return fd;
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
		log_error("more than one incident begins with %s, `iostall list` shows them", name);
		return -1;
	}
	/* An incident's file name is not an id, so it is looked for where the caller stands. */
	if (r < 0 && access(name, F_OK) == 0)
		return open_file(show, name);
	if (r < 0 && strcmp(name, "last") == 0) {
		log_error("no incidents in %s and %s", c->record.spool_dir, c->record.dir);
		return -1;
	}
	if (r < 0) {
		log_error("no incident %s in %s and %s", name, c->record.spool_dir, c->record.dir);
		return -1;
	}
	fd = record_store_open(store, id, show->path);
	if (fd < 0)
		log_error("cannot open %s: %s", show->path, record_store_strerror(fd));
	return fd < 0 ? -1 : fd;
}

static void show_line(struct show *show, const struct record_line *line)
{
	struct text t = TEXT_ON(show->text_buf);

	if (show->json) {
		fwrite(line->text, 1, line->len, show->out);
		fputc('\n', show->out);
	} else if (line->decoded) {
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
}

static int show_lines(struct show *show, int fd)
{
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	struct record_line line;
	int r;

	r = show->json ? 0 : statements_read(fd, &show->statements);
	if (r == 0)
		r = record_reader_new(fd, &reader);
	if (r < 0)
		return r;
	while ((r = record_reader_next(reader, &show->record, &line)) > 0)
		show_line(show, &line);
	return r;
}

/* What the lines themselves do not say; 0 or an enum exit_code. */
static int show_remarks(const struct show *show)
{
	const struct record_summary *s = &show->summary;

	if (!s->closed && !show->json)
		fprintf(show->out, s->being_written ?
				"not closed: it is still being written\n" :
				"not closed: whoever wrote it was killed\n");
	if (s->counts.newer)
		log_warning("%s has %" PRIu64 " lines of a later version%s", show->path,
			s->counts.newer, show->json ? "" : ", not shown");
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
	r = show_remarks(show);
	if (fflush(show->out) != 0 || ferror(show->out)) {
		log_error("cannot write the record: %s", strerror(errno));
		return EXIT_CODE_FAILURE;
	}
	return r;
}

int show_record(FILE *out, const struct config *c, const char *name, bool json)
{
	_cleanup_(cleanup_show) struct show *show = calloc(1, sizeof(*show));
	_cleanup_close_ int fd = -1;

	if (!show) {
		log_error("out of memory");
		return EXIT_CODE_FAILURE;
	}
	show->out = out;
	show->json = json;
	fd = open_named(show, c, name);
	return fd < 0 ? EXIT_CODE_RECORD : show_fd(show, fd);
}

static int run(const struct options *o)
{
	_cleanup_free_ struct config *config = NULL;

	if (!*o->args[0]) {
		log_error("show: an empty name; right would be an ID, a FILE or last");
		return EXIT_CODE_USAGE;
	}
	/* A path needs none; anywhere else than where the file says there may be other incidents. */
	config = strchr(o->args[0], '/') ? command_load_config_to_ask(o) : command_load_config(o);
	return config ? show_record(stdout, config, o->args[0], o->json) : EXIT_CODE_CONFIG;
}

const struct options_command command_show = {
	.name = "show",
	.arguments = "ID|FILE|last",
	.summary = "one incident as text; an ID may be cut short while it is the only one",
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
