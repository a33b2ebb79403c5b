/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a record that the kernel's log gives: what it says of storage meanwhile. */
#include <string.h>

#include "session/internal.h"

/* Lines of one incident; what is beyond is counted. */
#define LINES_MAX 100
/* Records read at a time, 1 us each. */
#define RECORDS_PER_LOOK 256
/* At the end, all that there is: a log of 1 MB holds no more than that many times RECORDS_PER_LOOK. */
#define LOOKS_AT_END 128

static void write_line(struct session *s, const struct kmsg_line *line)
{
	struct record_kernel *k = &session_begin_line(s, RECORD_KERNEL)->kernel;

	text_copy(k->level, sizeof(k->level), kmsg_level_name(line->level));
	k->kernel_ns = line->ns;
	text_copy(k->text, sizeof(k->text), line->text);
	session_write_line(s);
}

/* True when there may be more. */
static bool take_lines(struct session *s)
{
	unsigned int budget = RECORDS_PER_LOOK;
	struct kmsg_line line;

	while (kmsg_next(&s->kmsg, &budget, &line) > 0) {
		if (s->incident.kernel_lines == LINES_MAX) {
			s->incident.kernel_lines_left_out++;
			continue;
		}
		s->incident.kernel_lines++;
		write_line(s, &line);
	}
	return budget == 0;
}

void session_take_kernel_lines(struct session *s, bool final)
{
	unsigned int looks = final ? LOOKS_AT_END : 1;
	bool more = true;

	while (more && looks-- > 0)
		more = take_lines(s);
	/* Somebody writes faster than it is read; how much is left nobody can tell. */
	if (more && final)
		s->incident.kernel_lines_left_out++;
}
