/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the `verdict` lines, which sum up all other lines so far. */
#include <string.h>

#include "session/internal.h"
#include "util/clock.h"

/* Somebody who is called wants to know soon; later, what has changed. */
#define FIRST_AFTER_NS (3 * NSEC_PER_SEC)
#define INTERVAL_NS (5 * NSEC_PER_SEC)
/* As long as the verdict takes for a database that does not answer. */
#define DATABASE_NS (2 * NSEC_PER_SEC)

/* What the rules `mutex` and `lock` are about. */
static bool is_reason(const struct model_lock *l)
{
	return l->id &&
		(l->kind == RECORD_KERNEL_LOCK_mutex || l->kind == RECORD_KERNEL_LOCK_file ||
			l->kind == RECORD_KERNEL_LOCK_pipe);
}

/* Rules about the same open no other incident for some time. */
static void note_cause(struct session *s, const struct record_verdict *v)
{
	const struct model_sessions *sessions = &s->model.sessions;

	cooldown_note_disk(&s->cooldown, v->dev_name);
	for (uint32_t i = 0; i < sessions->count; i++)
		if (sessions->list[i].silence.longest_ns >= DATABASE_NS ||
			(v->class == RECORD_CLASS_locked && sessions->list[i].queue_ns))
			cooldown_note_subject(&s->cooldown, sessions->list[i].target);
	for (unsigned int i = 0; i < MODEL_LOCKS_MAX; i++)
		if (is_reason(&s->model.host.locks[i]))
			cooldown_note_subject(&s->cooldown, s->model.host.locks[i].process.comm);
}

void session_begin_verdict(struct session *s)
{
	s->judge_ns = s->incident.trigger_ns + FIRST_AFTER_NS;
}

bool session_is_verdict_due(const struct session *s, uint64_t now_ns)
{
	return s->state == SESSION_TRACING && now_ns >= s->judge_ns;
}

void session_write_verdict(struct session *s, bool final)
{
	struct record_verdict *v = &session_begin_line(s, RECORD_VERDICT)->verdict;
	struct session_verdict *last = &s->last_verdict;

	judge(&s->model, &s->graph, v);
	v->final = last->final = final;
	s->judge_ns = clock_mono_ns() + INTERVAL_NS;
	memcpy(last->incident, s->incident.id, sizeof(last->incident));
	last->class = v->class;
	text_copy(last->message, sizeof(last->message), v->message);
	if (final)
		note_cause(s, v);
	session_write_line(s);
}
