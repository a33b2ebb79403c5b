/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns an event of the ring buffer into a `stall`, `stuck` or `error` line. */
#include <errno.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "enrich/decode.h"
#include "enrich/enrich.h"
#include "enrich/waits.h"
#include "session/internal.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

/*
 * At most so many events are handled before the loop looks at its other sources; one takes about
 * 0.05 ms.
 */
#define EVENTS_PER_WAKE 256
/* Nor longer than this, where the CPUs are busy. */
#define WAKE_MAX_NS (5 * NSEC_PER_MSEC)

/* 256 events each, which takes 10 us. Programs that are not detached yet may go on sending. */
#define DISCARD_MAX 256

/* With more stuck operations than this, each stack is read from /proc once. */
#define STACKS_READ_AGAIN_MAX 256

static void describe_probe(const struct session *s, const struct decoded_operation *decoded,
	struct record_operation *op)
{
	const struct probe *probe = &s->probes.probes[decoded->probe];

	op->probe = probe_in_record(decoded->probe);
	op->backend = probe->backend ? probe->backend->name : RECORD_BACKEND_replay;
}

/* It is in the map of probe `vfs`, and not found there by its thread alone. */
static bool is_pair(const struct session *s, const struct decoded_operation *decoded)
{
	const struct probe_ops *ops = s->probes.probes[CONFIG_PROBE_vfs].ops;

	return decoded->probe == CONFIG_PROBE_vfs && ops && ops->inflight_map;
}

/* Addresses are told without names where the kernel does not show its symbols. */
static bool has_names(const char *kstack)
{
	return *kstack && strncmp(kstack, "0x", 2) != 0;
}

/*
 * Where the thread waits, which its return will not tell. The BPF program took the stack when the
 * thread fell asleep. It has none of a thread that was asleep before, and with
 * kernel.kptr_restrict=2 no names; then the stack is read from /proc, which has names, by a thread
 * that may hang there, and comes later.
 */
static void describe_wait(struct session *s, const struct decoded_operation *decoded,
	struct record_operation *op, struct incident_stuck *stuck)
{
	const char *stack;

	if (op->state == '\0')
		op->state = '?';
	/* That of a thread which runs cannot be read. */
	if (!has_names(op->kstack) && op->state != 'R' && !is_pair(s, decoded)) {
		/* It may be another one by now, but thousands are not read again. */
		if (!stuck->stack_asked || s->incident.stuck_count <= STACKS_READ_AGAIN_MAX)
			session_ask_stack(s, decoded->probe, (uint32_t)op->tid, op->start_mono_ns);
		stuck->stack_asked = true;
		stack = incident_get_stack(&s->incident, stuck);
		if (*stack)
			text_copy(op->kstack, sizeof(op->kstack), stack);
	}
	op->kstack_while_blocked = op->kstack[0] != '\0';
	op->waits_for = enrich_cause(s->o.enrich, op);
	waits_in(op->kstack, op->wchan, sizeof(op->wchan));
	incident_set_stack(&s->incident, stuck, op->kstack);
}

/* Returns whether it had `stuck` lines of its own. */
static bool finish_stall(struct session *s, struct record_operation *op)
{
	struct incident_stuck *stuck =
		incident_find_stuck(&s->incident, (uint32_t)op->tid, op->start_mono_ns);
	bool has_line;

	s->incident.stalls++;
	if (op->dur_ns > s->incident.longest_ns)
		s->incident.longest_ns = op->dur_ns;
	if (!stuck)
		return false;
	has_line = stuck->has_line;
	/* The stack of the wait says more than that of the return. */
	if (stuck->stack) {
		text_copy(op->kstack, sizeof(op->kstack), incident_get_stack(&s->incident, stuck));
		op->kstack_while_blocked = true;
		op->waits_for = enrich_cause(s->o.enrich, op);
	}
	incident_forget_stuck(&s->incident, stuck);
	return has_line;
}

/* NULL: there is no room. */
static struct incident_stuck *begin_stuck(struct session *s,
	const struct decoded_operation *decoded, struct record_operation *op)
{
	struct incident_stuck *stuck =
		incident_note_stuck(&s->incident, (uint32_t)op->tid, op->start_mono_ns);

	if (!stuck) {
		s->incident.stuck_unreported++;
		return NULL;
	}
	if (stuck->reported_age_ns == 0)
		s->incident.stuck_operations++;
	stuck->reported_age_ns = op->dur_ns;
	stuck->is_request = record_probe_has_requests(op->probe);
	stuck->may_be_elsewhere =
		s->probes.settings.common.filter_dev && !op->dev.major && !op->dev.minor;
	if (op->dur_ns > s->incident.longest_ns)
		s->incident.longest_ns = op->dur_ns;
	if (stuck->is_request)
		op->state = '\0';
	else
		describe_wait(s, decoded, op, stuck);
	session_note_lock_wait(s, op, stuck);
	return stuck;
}

/* Writes the line, unless that of others stands for the operation. */
static void write_or_merge(struct session *s, struct incident_stuck *stuck, bool has_line)
{
	bool merged = alike_merge(&s->alike, &s->record, has_line);

	if (merged)
		return;
	session_write_line(s);
	if (stuck)
		stuck->has_line = true;
}

/*
 * Of a thread that was asleep before anybody looked only /proc tells the stack, which comes later.
 * Until then, and if it is for nothing on storage, the thread has no line and keeps no incident
 * open.
 */
static bool is_proven(struct session *s, const struct decoded_operation *decoded,
	const struct record_operation *op)
{
	uint32_t tid = (uint32_t)op->tid;
	struct incident_stuck *stuck = incident_find_stuck(&s->incident, tid, op->start_mono_ns);

	if (decoded->finished) {
		bool known = stuck && stuck->is_proven;

		if (stuck && !known)
			incident_forget_stuck(&s->incident, stuck);
		return known;
	}
	if (!stuck || !stuck->stack) {
		session_ask_stack(s, decoded->probe, tid, op->start_mono_ns);
		stuck = incident_find_stuck(&s->incident, tid, op->start_mono_ns);
	}
	return stuck && stuck->is_proven;
}

static uint64_t find_connection(const struct session *s, const struct record_operation *op)
{
	const struct sql_operation operation = {
		.tid = op->tid,
		.is_request = record_probe_has_requests(op->probe),
		.start_ns = op->start_mono_ns,
		.end_ns = op->start_mono_ns + op->dur_ns,
	};

	return sql_find_connection(s->o.sql, &operation);
}

void session_feed_event(struct session *s, const void *data, size_t size)
{
	struct record *r = session_begin_line(s, RECORD_STALL);
	struct decoded_operation decoded;
	struct incident_stuck *stuck;

	if (event_decode(data, size, &decoded, &r->operation) < 0) {
		s->incident.events_invalid++;
		return;
	}
	if (!decoded.finished)
		r->type = RECORD_STUCK;
	/* The line has the time of the event in the kernel, not of its handling here. */
	if (decoded.ts_ns < r->mono_ns && !s->o.without_probes) {
		r->real_ns -= r->mono_ns - decoded.ts_ns;
		r->mono_ns = decoded.ts_ns;
	}
	if (decoded.unproven && !is_proven(s, &decoded, &r->operation))
		return;
	if (r->operation.start_mono_ns < s->attached_ns)
		r->operation.since = RECORD_SINCE_before_arm;
	describe_probe(s, &decoded, &r->operation);
	enrich_operation(s->o.enrich, &decoded, &r->operation);
	/* The event has only sleeps that are over. The thread of a request need not sleep in it. */
	if (!decoded.finished && !record_probe_has_requests(r->operation.probe))
		session_add_sleeps(s, &r->operation);
	r->operation.connection_id = find_connection(s, &r->operation);
	/* In another mount namespace the same path may be a file of another server. */
	if (!r->operation.mount_ns)
		text_copy(r->operation.relation, sizeof(r->operation.relation),
			sql_find_relation(s->o.sql, r->operation.path));
	if (decoded.failures) {
		r->type = RECORD_ERROR;
		r->operation.alike = (struct record_alike){ .present = decoded.failures > 1,
			.count = decoded.failures - 1 };
		session_write_line(s);
		return;
	}
	if (decoded.finished) {
		write_or_merge(s, NULL, finish_stall(s, &r->operation));
		return;
	}
	stuck = begin_stuck(s, &decoded, &r->operation);
	if (stuck)
		write_or_merge(s, stuck, false);
}

int session_handle_ring_event(void *userdata, void *data, size_t size)
{
	struct session *s = userdata;

	if (s->o.capture_fd >= 0) {
		uint32_t length = (uint32_t)size;

		if (file_write_all(s->o.capture_fd, (const char *)&length, sizeof(length)) < 0 ||
			file_write_all(s->o.capture_fd, data, size) < 0) {
			log_warning("cannot write the capture file: %s; the capture ends here",
				strerror(errno));
			s->o.capture_fd = -1;
		}
	}
	/*
	 * In other states the event belongs to no incident: it was sent while backends were tried,
	 * or after the incident was closed.
	 */
	if (!s->discards_events && (s->state == SESSION_TRACING || s->state == SESSION_DRAINING))
		session_feed_event(s, data, size);
	/* The error only ends the batch: this event has been consumed. */
	return ++s->events_this_wake < EVENTS_PER_WAKE && clock_mono_ns() < s->wake_until_ns
		? 0
		: -EAGAIN;
}

bool session_consume_ring(struct session *s)
{
	s->events_this_wake = 0;
	s->wake_until_ns = clock_mono_ns() + WAKE_MAX_NS;
	return ring_buffer__consume(s->ring) == -EAGAIN;
}

bool session_consume_until(struct session *s, uint64_t deadline_ns)
{
	while (session_consume_ring(s))
		if (clock_mono_ns() > deadline_ns)
			return false;
	return true;
}

uint64_t session_discard_events(struct session *s)
{
	uint64_t count = 0;
	bool more = true;

	s->discards_events = true;
	for (unsigned int i = 0; i < DISCARD_MAX && more; i++) {
		more = session_consume_ring(s);
		count += s->events_this_wake;
	}
	s->discards_events = false;
	return count;
}
