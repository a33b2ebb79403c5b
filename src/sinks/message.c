/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/message.h"

#include <inttypes.h>
#include <string.h>
#include <syslog.h>

#define DIR_SHOWN_MAX 256

/* Forgets what was remembered from another incident. */
static void begin_incident(struct message *m, const struct record *r)
{
	memset(&m->trigger, 0, sizeof(m->trigger));
	m->class = RECORD_CLASS_NONE;
	memset(&m->blame, 0, sizeof(m->blame));
	m->verdict[0] = m->statement[0] = '\0';
	memcpy(m->incident, r->incident, sizeof(m->incident));
}

/*
 * Statements come unescaped in the verdict; escaped, they cannot move the cursor of a log reader.
 */
static void take_statement(struct message *m, const char *statement)
{
	struct text t = TEXT_ON(m->statement);

	text_reset(&t);
	record_add_printable(&t, statement);
}

static void take_verdict(struct message *m, const struct record_verdict *v)
{
	m->class = v->class;
	text_copy(m->verdict, sizeof(m->verdict), m->statements ? v->sentence : v->message);
	for (uint32_t i = 0; m->statements && i < v->parts_count; i++)
		if (v->parts[i].what == RECORD_WHAT_statement)
			take_statement(m, v->parts[i].text);
}

bool message_take(struct message *m, const struct record *r)
{
	if (r->type != RECORD_OPEN && r->type != RECORD_VERDICT && r->type != RECORD_CLOSE)
		return false;
	if (r->type == RECORD_OPEN || strcmp(m->incident, r->incident) != 0)
		begin_incident(m, r);
	if (r->type == RECORD_OPEN)
		m->trigger = r->open.trigger;
	if (r->type != RECORD_VERDICT)
		return true;
	take_verdict(m, &r->verdict);
	return !r->verdict.final && r->verdict.class != RECORD_CLASS_unknown &&
		record_blame_is_news(&m->blame, &r->verdict);
}

uint64_t message_sum_lost(const struct record_close *c)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < RECORD_LOST_COUNT; i++)
		sum += c->lost[i];
	return sum;
}

static void add_close(const struct message *m, const struct record_close *c, struct text *t)
{
	uint64_t lost = message_sum_lost(c);

	text_add(t, " closed after ");
	record_add_duration(t, c->duration_ns);
	text_add(t, ": ");
	if (*m->verdict) {
		record_add_printable(t, m->verdict);
		text_add(t, "; ");
	}
	/* Somebody has to look for the cause. */
	if (m->class == RECORD_CLASS_unknown) {
		text_add(t, "`iostall show ");
		record_add_printable(t, m->incident);
		text_add(t, "` has all that was seen; ");
	}
	text_add_count(t, c->stalls, "stall", "stalls");
	text_add(t, ", ");
	text_add_count(t, c->stuck_threads, "stuck operation", "stuck operations");
	if (c->longest_ns) {
		text_add(t, ", the longest ");
		record_add_duration(t, c->longest_ns);
	}
	if (lost) {
		text_add(t, ", ");
		text_add_count(t, lost, "event or line lost", "events or lines lost");
	}
	text_add(t, "; opened by ");
}

void message_add_text(const struct message *m, const struct record *r, struct text *t)
{
	text_add(t, "I/O incident ");
	record_add_printable(t, r->incident);
	if (r->type == RECORD_VERDICT) {
		text_add(t, " so far: ");
		record_add_printable(t, m->verdict);
	} else {
		if (r->type == RECORD_CLOSE)
			add_close(m, &r->close, t);
		else
			text_add(t, " opened by ");
		record_add_trigger(t, &m->trigger);
	}
	/* A longer path would leave no room for the rest of the message. */
	if (strlen(m->dir) > DIR_SHOWN_MAX)
		return;
	text_add(t, "; record ");
	record_add_printable(t, m->dir);
	text_add(t, "/");
	record_add_printable(t, r->incident);
	text_add(t, RECORD_FILE_SUFFIX);
}

int message_priority(const struct message *m, const struct record *r)
{
	if (r->type == RECORD_OPEN)
		return LOG_WARNING;
	if (m->class == RECORD_CLASS_busy)
		return LOG_NOTICE;
	if (r->type != RECORD_CLOSE)
		return LOG_WARNING;
	if (r->close.stuck_threads > 0)
		return LOG_ERR;
	return r->close.stalls > 0 ? LOG_WARNING : LOG_NOTICE;
}
