/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/message.h"

#include <inttypes.h>
#include <string.h>
#include <syslog.h>

#define DIR_SHOWN_MAX 256

/* What is known of another incident says nothing of this one. */
static void begin_incident(struct message *m, const struct record *r)
{
	memset(&m->trigger, 0, sizeof(m->trigger));
	m->class_name[0] = m->verdict[0] = m->statement[0] = '\0';
	memcpy(m->incident, r->incident, sizeof(m->incident));
}

/* The verdict has it as it is; who reads a log sees nothing that moves the cursor. */
static void take_statement(struct message *m, const char *statement)
{
	struct text t = TEXT_ON(m->statement);

	text_reset(&t);
	record_add_printable(&t, statement);
}

static void take_verdict(struct message *m, const struct record_verdict *v)
{
	memcpy(m->class_name, v->class_name, sizeof(m->class_name));
	text_copy(m->verdict, sizeof(m->verdict), m->statements ? v->sentence : v->message);
	for (uint32_t i = 0; m->statements && i < v->parts_count; i++)
		if (strcmp(v->parts[i].what, "statement") == 0)
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
	return false;
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
	text_add_count(t, c->stalls, "stall", "stalls");
	text_add(t, ", ");
	text_add_count(t, c->stuck_threads, "operation stuck", "operations stuck");
	if (c->longest_ns) {
		text_add(t, ", longest ");
		record_add_duration(t, c->longest_ns);
	}
	if (lost) {
		text_add(t, ", ");
		text_add_count(t, lost, "thing lost", "things lost");
	}
	text_add(t, "; opened by ");
}

void message_add_text(const struct message *m, const struct record *r, struct text *t)
{
	text_add(t, "I/O incident ");
	record_add_printable(t, r->incident);
	if (r->type == RECORD_CLOSE)
		add_close(m, &r->close, t);
	else
		text_add(t, " opened by ");
	record_add_trigger(t, &m->trigger);
	/* A longer one would push out what the message is about. */
	if (strlen(m->dir) > DIR_SHOWN_MAX)
		return;
	text_add(t, "; record ");
	record_add_printable(t, m->dir);
	text_add(t, "/");
	record_add_printable(t, r->incident);
	text_add(t, RECORD_FILE_SUFFIX);
}

int message_priority(const struct record *r)
{
	if (r->type == RECORD_OPEN)
		return LOG_WARNING;
	if (r->close.stuck_threads > 0)
		return LOG_ERR;
	return r->close.stalls > 0 ? LOG_WARNING : LOG_NOTICE;
}
