/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line of a record that says what was wrong, from what all others said. */
#include "session/internal.h"
#include "verdict/verdict.h"

void session_note_facts(struct session *s)
{
	const struct record *r = &s->record;

	switch (r->type) {
	case RECORD_SAMPLE:
		verdict_note_sample(&s->facts, &r->sample);
		break;
	case RECORD_STALL:
	case RECORD_STUCK:
		verdict_note_operation(&s->facts, &r->operation, r->type == RECORD_STALL);
		break;
	case RECORD_DEVICE:
		verdict_note_device(&s->facts, &r->device);
		break;
	case RECORD_IO_BY:
		verdict_note_io_by(&s->facts, &r->io_by);
		break;
	case RECORD_KERNEL:
		verdict_note_kernel(&s->facts, &r->kernel);
		break;
	default:
		break;
	}
}

void session_write_verdict(struct session *s)
{
	verdict_decide(&s->facts, NULL, &session_begin_line(s, RECORD_VERDICT)->verdict);
	session_write_line(s);
}
