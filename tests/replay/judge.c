/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges an incident once more from the lines of its record and prints class and sentence:
 *   judge RECORD
 * What databases say is not among the facts that come from lines, so no statement is named.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "record/reader.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/facts.h"
#include "verdict/verdict.h"
#include "watch/rules.h"

/* With the settings of a fresh installation, as in src/session/arm.c. */
static uint64_t earlier_than_ns(const struct record_trigger *t, uint64_t trigger_ns)
{
	uint64_t ns = VERDICT_LEAD_NS + NSEC_PER_SEC;
	struct config config;

	config_set_defaults(&config);
	for (unsigned int i = 0; i < CONFIG_RULE_COUNT; i++)
		if (strcmp(rules_name(i), t->rule) == 0)
			ns += config.rules[i].hold_samples * config.watch.interval_ns;
	if (strcmp(t->unit, "s") == 0 && t->value > 0)
		ns += (uint64_t)(t->value * NSEC_PER_SEC);
	return trigger_ns > ns ? trigger_ns - ns : 0;
}

struct incident {
	uint64_t trigger_ns;
	uint64_t end_ns; /* from here on each operation that hangs has its last line */
	struct verdict_facts facts;
	struct record record;
	struct record_verdict verdict;
};

static void learn_times(struct incident *i)
{
	const struct record *r = &i->record;

	if (r->type == RECORD_OPEN)
		i->trigger_ns = r->mono_ns - r->open.armed_ns;
	if (r->type == RECORD_CLOSE)
		i->end_ns = r->mono_ns - r->close.cost.disarm_ns;
}

static void note(struct incident *i)
{
	struct verdict_facts *f = &i->facts;
	const struct record *r = &i->record;

	if (r->type == RECORD_OPEN) {
		verdict_begin(f, i->trigger_ns, r->open.min_stall_ns);
		f->earlier_than_ns = earlier_than_ns(&r->open.trigger, i->trigger_ns);
	}
	f->closing = r->mono_ns >= i->end_ns;
	verdict_note_line(f, r);
}

static int read_lines(int fd, struct incident *i, void (*visit)(struct incident *i))
{
	struct record_reader *reader = NULL;
	struct record_line line;
	int more = record_reader_new(fd, &reader);

	while (more >= 0 && (more = record_reader_next(reader, &i->record, &line)) > 0)
		if (line.decoded)
			visit(i);
	record_reader_free(reader);
	return more;
}

int main(int argc, char **argv)
{
	/* Some megabytes. */
	static struct incident incident;
	_cleanup_close_ int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || read_lines(fd, &incident, learn_times) < 0 ||
		read_lines(fd, &incident, note) < 0) {
		fprintf(stderr, "judge: expected a record that can be read\n");
		return EXIT_FAILURE;
	}
	verdict_decide(&incident.facts, NULL, &incident.verdict);
	printf("%s: %s\n", record_class_text(incident.verdict.class), incident.verdict.sentence);
	return EXIT_SUCCESS;
}
