/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The facts are what the lines of the record say: a record can be judged once more. */
#include "verdict/facts.h"

void verdict_note_line(struct verdict_facts *f, const struct record *r)
{
	switch (r->type) {
	case RECORD_OPEN:
		verdict_note_open(f, &r->open);
		break;
	case RECORD_SAMPLE:
		verdict_note_sample(f, &r->sample);
		break;
	case RECORD_STALL:
	case RECORD_STUCK:
		verdict_note_operation(f, &r->operation, r->type == RECORD_STALL);
		break;
	case RECORD_ERROR:
		verdict_note_error(f, &r->operation);
		break;
	case RECORD_DEVICE:
		verdict_note_device(f, &r->device);
		break;
	case RECORD_IO_BY:
		verdict_note_io_by(f, &r->io_by);
		break;
	case RECORD_LOCK:
		verdict_note_lock(f, &r->lock_wait);
		break;
	case RECORD_JOURNAL:
		verdict_note_journal(f, &r->journal);
		break;
	case RECORD_KERNEL:
		verdict_note_kernel(f, &r->kernel);
		break;
	default:
		break;
	}
}
