/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "record/reader.h"
#include "record/store.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

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

static void print_row(FILE *out, const struct record_summary *s)
{
	char opened[CLOCK_RFC3339_SIZE], duration[32], rule[256];
	char where[4 * WATCH_SUBJECT_SIZE];
	char stuck[32], longest[32], verdict[256];
	struct text texts[] = { TEXT_ON(duration), TEXT_ON(rule), TEXT_ON(where), TEXT_ON(stuck),
		TEXT_ON(longest), TEXT_ON(verdict) };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		text_reset(&texts[i]);
	clock_format_rfc3339(s->opened_real_ns, opened, sizeof(opened));
	if (has_duration(s))
		record_add_duration(&texts[0], s->duration_ns);
	else
		text_add(&texts[0], "?");
	record_add_printable(&texts[1], *s->trigger.rule ? s->trigger.rule : "-");
	add_where(&texts[2], &s->trigger);
	add_stuck(&texts[3], s);
	if (s->longest_ns)
		record_add_duration(&texts[4], s->longest_ns);
	else
		text_add(&texts[4], "-");
	record_add_printable(&texts[5], *s->verdict ? s->verdict : "-");
	fprintf(out, "%-21s  %.10s %.8sZ  %9s  %-14s  %-10s  %-10s  %7" PRIu64 "  %6s  %9s  %6" PRIu64
		"  %s\n", s->incident, opened, opened + 11, duration, rule, where, verdict, s->stalls,
		stuck, longest, s->lost, state_name(s));
}

static void print_header(FILE *out)
{
	fprintf(out, "%-21s  %-20s  %9s  %-14s  %-10s  %-10s  %7s  %6s  %9s  %6s  %s\n", "INCIDENT",
		"OPENED", "DURATION", "RULE", "WHERE", "VERDICT", "STALLS", "STUCK", "LONGEST",
		"LOST", "STATE");
}

static void json_text(struct text *t, const char *key, const char *value)
{
	if (*value)
		text_json_string(t, key, value);
	else
		text_json_null(t, key);
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
	json_text(&t, "verdict", s->verdict);
	json_text(&t, "sentence", s->sentence);
	text_json_string(&t, "file", path);
	text_json_close(&t, '}');
	fprintf(out, "%s\n", buf);
}

/* Whether it could be read without a complaint. */
static bool list_one(FILE *out, const struct record_store *store, const char *id, bool json)
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
	if (json)
		print_json(out, &summary, path);
	else
		print_row(out, &summary);
	if (summary.counts.newer)
		log_warning("%s has %" PRIu64 " lines of a later version", path,
			summary.counts.newer);
	if (summary.counts.garbage)
		log_error("%s has %" PRIu64 " lines that are not records", path,
			summary.counts.garbage);
	return summary.counts.garbage == 0;
}

int list_records(FILE *out, const struct config *c, bool json)
{
	_cleanup_(cleanup_store) struct record_store *store = NULL;
	const char *failed_dir = NULL;
	bool all_good = true;
	int r;

	r = record_store_new(c->record.spool_dir, c->record.dir, &store, &failed_dir);
	if (r < 0) {
		log_error("cannot read %s: %s", failed_dir, strerror(-r));
		return EXIT_CODE_RECORD;
	}
	if (record_store_count(store) == 0 && !json)
		log_info("no incidents in %s and %s", c->record.spool_dir, c->record.dir);
	else if (!json)
		print_header(out);
	for (size_t i = 0; i < record_store_count(store); i++)
		if (!list_one(out, store, record_store_id(store, i), json))
			all_good = false;
	if (fflush(out) != 0 || ferror(out)) {
		log_error("cannot write the list: %s", strerror(errno));
		return EXIT_CODE_FAILURE;
	}
	return all_good ? EXIT_CODE_OK : EXIT_CODE_RECORD;
}

static int run(const struct options *o)
{
	_cleanup_free_ struct config *config = command_load_config(o);

	return config ? list_records(stdout, config, o->json) : EXIT_CODE_CONFIG;
}

const struct options_command command_list = {
	.name = "list",
	.summary = "the recorded incidents as a table, the newest last",
	.run = run,
};
