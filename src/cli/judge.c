/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `iostall judge`: the verdicts of records, made once more from their lines. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/load_config.h"
#include "cli/open_record.h"
#include "record/reader.h"
#include "util/cleanup.h"
#include "util/exit.h"
#include "util/log.h"
#include "verdict/verdict.h"

/* A table of 192 groups of threads and 64 nodes. */
#define TABLE_SIZE (64 * 1024)

struct judgement {
	char path[RECORD_PATH_SIZE];
	struct model model;
	struct graph graph;
	struct record_reader_counts counts;
	struct record record;  /* the line that was read last */
	struct record verdict; /* with number and time of the line that the record has */
	bool has_verdict;
	char text[RECORD_LINE_SIZE + TABLE_SIZE];
};

static void cleanup_reader(struct record_reader **reader)
{
	record_reader_free(*reader);
}

/* The verdict comes behind all lines that it stands on, or would come there. */
static void take_line(struct judgement *j)
{
	const bool is_verdict = j->record.type == RECORD_VERDICT && j->record.verdict.final;
	struct record *v = &j->verdict;

	model_add(&j->model, &j->record);
	if (j->has_verdict)
		return;
	j->has_verdict = is_verdict;
	memcpy(v->incident, j->record.incident, sizeof(v->incident));
	v->seq = j->record.seq + !is_verdict;
	v->real_ns = j->record.real_ns;
	v->mono_ns = j->record.mono_ns;
}

/* 0, or an enum exit_code. */
static int read_record(struct judgement *j, int fd)
{
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	struct record_line line;
	int r = record_reader_new(fd, &reader);

	model_begin(&j->model);
	memset(&j->verdict, 0, sizeof(j->verdict));
	j->has_verdict = false;
	while (r >= 0 && (r = record_reader_next(reader, &j->record, &line)) > 0)
		if (line.decoded)
			take_line(j);
	if (r < 0) {
		log_error("cannot read %s: %s", j->path, strerror(-r));
		return EXIT_CODE_RECORD;
	}
	if (!*j->model.trigger.rule) {
		log_error("%s is not a record: it has no valid open line", j->path);
		return EXIT_CODE_RECORD;
	}
	j->counts = *record_reader_get_counts(reader);
	return EXIT_CODE_OK;
}

static void print(struct judgement *j, const struct options *o)
{
	struct text t = TEXT_ON(j->text);

	text_reset(&t);
	if (o->json) {
		record_encode_json(&j->verdict, &t);
	} else {
		if (o->args_count > 1)
			text_addf(&t, "%s  ", j->verdict.incident);
		record_add_printable(&t, j->verdict.verdict.sentence);
		text_add(&t, "\n");
	}
	fwrite(t.buf, 1, t.len, stdout);
	text_reset(&t);
	if (!options_has(o, "explain"))
		return;
	judge_explain(&j->graph, &t);
	for (const char *line = j->text; *line; line += strcspn(line, "\n") + 1) {
		char buf[1024];
		struct text printable = TEXT_ON(buf);

		text_reset(&printable);
		text_add_printable(&printable, line, strcspn(line, "\n"));
		puts(buf);
	}
}

static int judge_record(struct judgement *j, const struct config *c, const char *name,
	const struct options *o)
{
	_cleanup_close_ int fd = open_record(c, name, j->path);
	int r = fd < 0 ? EXIT_CODE_RECORD : read_record(j, fd);

	if (r != EXIT_CODE_OK)
		return r;
	j->verdict.type = RECORD_VERDICT;
	judge(&j->model, &j->graph, &j->verdict.verdict);
	j->verdict.verdict.final = true;
	print(j, o);
	return log_passed_lines(j->path, &j->counts, ", not judged");
}

static bool needs_config(const struct options *o)
{
	for (unsigned int i = 0; i < o->args_count; i++)
		if (!strchr(o->args[i], '/'))
			return true;
	return false;
}

static int run(const struct options *o)
{
	_cleanup_free_ struct judgement *j = calloc(1, sizeof(*j));
	_cleanup_free_ struct config *config =
		needs_config(o) ? command_load_config(o) : command_load_config_to_ask(o);
	int code = EXIT_CODE_OK;

	if (!config)
		return EXIT_CODE_CONFIG;
	if (!j) {
		log_error("out of memory");
		return EXIT_CODE_FAILURE;
	}
	for (unsigned int i = 0; i < o->args_count; i++) {
		int r = judge_record(j, config, o->args[i], o);

		code = code ? code : r;
	}
	return code;
}

static const struct options_item items[] = {
	{ "explain", NULL, "also who waited for what, as a table, and where all that time ends" },
};

const struct options_command command_judge = {
	.name = "judge",
	.arguments = "ID|FILE|last|last-N...",
	.summary = "judge records once more: the same verdict as in the record, on any machine",
	.items = items,
	.items_count = ARRAY_SIZE(items),
	.args_min = 1,
	.args_max = UINT_MAX,
	.run = run,
};
