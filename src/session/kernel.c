/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the lines of the kernel log that appear during an incident, or just before. */
#include <string.h>

#include "session/internal.h"
#include "watch/watch.h"

#define LEVEL_ERROR 3
/* A record has at most so many; further ones are counted. */
#define LINES_MAX 100
/* Log entries that are read at a time; one takes 1 us. */
#define RECORDS_PER_LOOK 256
/* At the end the log is read completely: 1 MB has no more than so many times RECORDS_PER_LOOK. */
#define LOOKS_AT_END 128

/*
 * A watched process that the kernel kills, perhaps with its control group, is missed: no counter
 * need tell of it.
 */
static bool is_killed(const struct session *s, const char *text)
{
	char comm[RECORD_COMM_SIZE];
	bool in_group;
	int32_t pid;

	return kmsg_parse_killed(text, &pid, comm, sizeof(comm), &in_group) &&
		watch_matches(s->o.watch, pid, comm);
}

/* For the rule `errors`, which fires once for errors that go on through an incident. */
static void note_failure(struct session *s, const struct kmsg_line *line)
{
	const bool is_kill = is_killed(s, line->text);

	if (is_kill || (line->level <= LEVEL_ERROR && kmsg_is_failure(line->text)))
		watch_note_kernel_error(s->o.watch, line->text, is_kill);
}

static void write_line(struct session *s, const struct kmsg_line *line)
{
	struct record *r = session_begin_line(s, RECORD_KERNEL);
	struct record_kernel *k = &r->kernel;

	if (line->read_ns) {
		r->real_ns -= r->mono_ns - line->read_ns;
		r->mono_ns = line->read_ns;
	}
	k->level = RECORD_LEVEL_emerg + (line->level & 7);
	k->kernel_ns = line->ns;
	k->oom_kill = kmsg_is_oom_kill(line->text);
	text_copy(k->text, sizeof(k->text), line->text);
	session_write_line(s);
}

/* True when there may be more. */
static bool take_lines(struct session *s)
{
	unsigned int budget = RECORDS_PER_LOOK;
	struct kmsg_line line;

	while (kmsg_next(&s->kmsg, &budget, &line) > 0) {
		if (!line.read_ns)
			note_failure(s, &line);
		if (s->incident.kernel_lines == LINES_MAX) {
			s->incident.kernel_lines_left_out++;
			continue;
		}
		s->incident.kernel_lines++;
		write_line(s, &line);
	}
	return budget == 0;
}

void session_read_kernel_log(struct session *s)
{
	uint64_t now_ns = clock_mono_ns();
	unsigned int budget = RECORDS_PER_LOOK;
	struct kmsg_line line;

	while (!session_is_open(s) && kmsg_watch(&s->kmsg, now_ns, &budget, &line) > 0)
		note_failure(s, &line);
}

void session_take_kernel_lines(struct session *s, bool final)
{
	unsigned int looks = final ? LOOKS_AT_END : 1;
	bool more = true;

	while (more && looks-- > 0)
		more = take_lines(s);
	/* The log grows faster than it is read; how many lines are left is unknown. */
	if (more && final)
		s->incident.kernel_lines_left_out++;
}
