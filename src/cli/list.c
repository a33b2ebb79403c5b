/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/list.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/load_config.h"
#include "cli/open_record.h"
#include "cli/since.h"
#include "util/exit.h"
#include "record/reader.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

/* Bytes of a culprit that is no single process. */
#define CULPRIT_MAX 24
/* A path and a sentence, every byte escaped in JSON's way only where it must be. */
#define ROW_SIZE (24 * 1024)

static void cleanup_store(struct record_store **store)
{
	record_store_free(*store);
}

static const char *state_name(const struct record_summary *s)
{
	if (s->closed)
		return "closed";
	return s->being_written ? "open" : "cut off";
}

static void add_where(struct text *t, const struct record_trigger *trigger)
{
	if (*trigger->device)
		record_add_printable(t, trigger->device);
	else if (*trigger->subject)
		record_add_printable(t, trigger->subject);
	else if (trigger->pid > 0)
		text_addf(t, "pid %" PRId32, trigger->pid);
	else
		text_add(t, "-");
}

/* Until it is closed the record says of stuck operations only that there are some. */
static void add_stuck(struct text *t, const struct record_summary *s)
{
	if (s->closed)
		text_addf(t, "%" PRIu64, s->stuck_threads);
	else
		text_add(t, s->stuck_lines ? "some" : "0");
}

/* Of a record that was cut off behind its first line nothing is known. */
static bool has_duration(const struct record_summary *s)
{
	return s->closed || s->duration_ns;
}

/* What the part says before its figures, as far as the column is wide. */
static void add_begin(struct text *t, const char *part)
{
	size_t len = strcspn(part, ":");

	if (len > CULPRIT_MAX)
		for (len = CULPRIT_MAX; len > 0 && ((unsigned char)part[len] & 0xc0) == 0x80;)
			len--;
	text_add_printable(t, part, len);
}

/* "mysqldump[900] 92 %", "worker[2211/2299]", "2 processes of postgres 65 %" */
static void add_culprit(struct text *t, const struct record_verdict_part *part)
{
	if (!part->what) {
		text_add(t, "-");
		return;
	}
	if (part->pid) {
		record_add_printable(t, *part->comm ? part->comm : "?");
		text_addf(t, "[%" PRId32, part->pid);
		if (part->tid > 0 && part->tid != part->pid)
			text_addf(t, "/%" PRId32, part->tid);
		text_add(t, "]");
	} else {
		add_begin(t, part->text);
	}
	if (isfinite(part->share_pct))
		text_addf(t, " %.0f %%", part->share_pct);
}

/* "2026-11-20 04:12:07 +01:00" */
static void add_opened(struct text *t, uint64_t real_ns)
{
	char local[CLOCK_LOCAL_SIZE];

	clock_format_local(real_ns, local, sizeof(local));
	text_add_bytes(t, local, strlen("2026-11-20 04:12:07"));
	text_add(t, strrchr(local, ' '));
}

static void print_row(FILE *out, const struct record_summary *s)
{
	char opened[64], duration[32], where[4 * RECORD_SUBJECT_SIZE], culprit[128];
	char stuck[32], longest[32], state[128];
	struct text texts[] = { TEXT_ON(opened), TEXT_ON(duration), TEXT_ON(where),
		TEXT_ON(culprit), TEXT_ON(stuck), TEXT_ON(longest), TEXT_ON(state) };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		text_reset(&texts[i]);
	add_opened(&texts[0], s->opened_real_ns);
	if (has_duration(s))
		record_add_duration(&texts[1], s->duration_ns);
	else
		text_add(&texts[1], "?");
	add_where(&texts[2], &s->trigger);
	add_culprit(&texts[3], &s->culprit);
	add_stuck(&texts[4], s);
	if (s->longest_ns)
		record_add_duration(&texts[5], s->longest_ns);
	else
		text_add(&texts[5], "-");
	text_add(&texts[6], state_name(s));
	if (*s->continues) {
		text_add(&texts[6], ", continues ");
		record_add_printable(&texts[6], s->continues);
	}
	fprintf(out,
		"%-21s  %-26s  %9s  %-10s  %-10s  %-24s  %7" PRIu64 "  %5s  %9s  %4" PRIu64
		"  %s\n",
		s->incident, opened, duration, s->class ? record_class_text(s->class) : "-", where,
		culprit, s->stalls, stuck, longest, s->lost, state);
}

static void print_header(FILE *out)
{
	fprintf(out, "%-21s  %-26s  %9s  %-10s  %-10s  %-24s  %7s  %5s  %9s  %4s  %s\n", "INCIDENT",
		"OPENED", "DURATION", "CLASS", "WHERE", "CULPRIT", "STALLS", "STUCK", "LONGEST",
		"LOST", "STATE");
}

static void json_text(struct text *t, const char *key, const char *value)
{
	if (*value)
		text_json_string(t, key, value);
	else
		text_json_null(t, key);
}

static void json_culprit(struct text *t, const struct record_verdict_part *part)
{
	if (!part->what) {
		text_json_null(t, "culprit");
		return;
	}
	text_json_open(t, "culprit", '{');
	json_text(t, "comm", part->comm);
	text_json_i64(t, "pid", part->pid);
	if (part->tid > 0)
		text_json_i64(t, "tid", part->tid);
	else
		text_json_null(t, "tid");
	json_text(t, "path", part->path);
	text_json_real(t, "share_pct", part->share_pct);
	text_json_close(t, '}');
}

static void print_json(FILE *out, const struct record_summary *s, const char *path)
{
	char buf[ROW_SIZE], opened[CLOCK_RFC3339_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	clock_format_rfc3339(s->opened_real_ns, opened, sizeof(opened));
	text_json_open(&t, NULL, '{');
	text_json_string(&t, "incident", s->incident);
	text_json_string(&t, "opened", opened);
	text_json_string(&t, "state", state_name(s));
	json_text(&t, "host", s->host);
	json_text(&t, "rule", s->trigger.rule);
	json_text(&t, "continues", s->continues);
	json_text(&t, "device", s->trigger.device);
	json_text(&t, "subject", s->trigger.subject);
	if (s->trigger.pid > 0)
		text_json_i64(&t, "pid", s->trigger.pid);
	else
		text_json_null(&t, "pid");
	if (has_duration(s))
		text_json_u64(&t, "duration_ns", s->duration_ns);
	else
		text_json_null(&t, "duration_ns");
	text_json_u64(&t, "stalls", s->stalls);
	if (s->closed)
		text_json_u64(&t, "stuck_threads", s->stuck_threads);
	else
		text_json_null(&t, "stuck_threads");
	text_json_u64(&t, "stuck_lines", s->stuck_lines);
	text_json_u64(&t, "longest_ns", s->longest_ns);
	text_json_u64(&t, "lost", s->lost);
	json_text(&t, "class", record_class_text(s->class));
	json_culprit(&t, &s->culprit);
	json_text(&t, "sentence", s->sentence);
	text_json_string(&t, "file", path);
	text_json_close(&t, '}');
	fprintf(out, "%s\n", buf);
}

/* Whether it could be read without a complaint. */
static bool list_one(FILE *out, const struct record_store *store, const char *id,
	const struct list_options *options)
{
	char path[RECORD_PATH_SIZE];
	struct record_summary summary;
	_cleanup_close_ int fd = record_store_open(store, id, path);
	int r;

	/* Retention took it since the directory was read. */
	if (fd == -ENOENT)
		return true;
	if (fd < 0) {
		log_error("cannot open %s: %s", path, record_store_strerror(fd));
		return false;
	}
	r = record_read_summary(fd, &summary);
	if (r == -ENODATA) {
		log_error("%s is not a record: it has no valid open line", path);
		return false;
	}
	if (r < 0) {
		log_error("cannot read %s: %s", path, strerror(-r));
		return false;
	}
	if (summary.opened_real_ns < options->since_real_ns ||
		(options->class && summary.class != options->class))
		return true;
	if (options->json)
		print_json(out, &summary, path);
	else
		print_row(out, &summary);
	return log_passed_lines(path, &summary.counts, "") == EXIT_CODE_OK;
}

int list_records(FILE *out, const struct config *c, const struct list_options *options)
{
	_cleanup_(cleanup_store) struct record_store *store = open_store(c);
	bool all_good = true;

	if (!store)
		return EXIT_CODE_RECORD;
	if (record_store_count(store) == 0 && !options->json)
		log_info("no incidents in %s and %s", c->record.spool_dir, c->record.dir);
	else if (!options->json)
		print_header(out);
	for (size_t i = 0; i < record_store_count(store); i++) {
		const char *id = record_store_id(store, i);

		/* It has the second of the opening: there is no need to read the file. */
		if (record_id_real_ns(id) + NSEC_PER_SEC <= options->since_real_ns)
			continue;
		if (!list_one(out, store, id, options))
			all_good = false;
	}
	if (fflush(out) != 0 || ferror(out)) {
		log_error("cannot write the list: %s", strerror(errno));
		return EXIT_CODE_FAILURE;
	}
	return all_good ? EXIT_CODE_OK : EXIT_CODE_RECORD;
}

static int fail_class(const char *name)
{
	char buf[512];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	for (unsigned int i = 1; i < record_class_enum.count; i++) {
		text_add(&t, i > 1 ? ", " : "");
		text_add(&t, record_class_enum.values[i].text);
	}
	log_error("list: there is no class \"%s\"; expected one of %s", name, buf);
	return EXIT_CODE_USAGE;
}

static int run(const struct options *o)
{
	_cleanup_free_ struct config *config = NULL;
	const char *since = options_get(o, "since"), *class = options_get(o, "class");
	struct list_options options = { .json = o->json };

	if (since && since_parse(since, clock_real_ns(), &options.since_real_ns) < 0) {
		log_error("list: --since %s is not a time; expected a duration such as 2h or 1d, "
			  "or a local time such as \"2026-11-20 04:12\"",
			since);
		return EXIT_CODE_USAGE;
	}
	if (class)
		options.class = record_enum_find(&record_class_enum, class);
	if (class && !options.class)
		return fail_class(class);
	config = command_load_config(o);
	return config ? list_records(stdout, config, &options) : EXIT_CODE_CONFIG;
}

static const struct options_item items[] = {
	{ "since", "TIME",
		"only incidents opened since 2h or 1d ago, or since a local date and time" },
	{ "class", "CLASS", "only incidents with a verdict of this class, such as saturated" },
};

const struct options_command command_list = {
	.name = "list",
	.summary = "list the recorded incidents as a table, the newest last",
	.items = items,
	.items_count = ARRAY_SIZE(items),
	.run = run,
};
