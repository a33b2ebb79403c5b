/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From an event of the ring buffer to a `stall` or `stuck` line. */
#include <errno.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "enrich/enrich.h"
#include "enrich/waits.h"
#include "probes/decode.h"
#include "session/internal.h"
#include "snapshot/thread.h"
#include "util/file.h"
#include "util/log.h"

/* Handled before the loop looks at its other sources: about 0.05 ms each. */
#define EVENTS_PER_WAKE 256

static void describe_probe(const struct session *s, const struct decoded_operation *decoded,
	struct record_operation *op)
{
	const struct probe *probe = &s->probes.probes[decoded->probe];

	text_copy(op->probe, sizeof(op->probe), probe_ops_get(decoded->probe)->name);
	text_copy(op->backend, sizeof(op->backend),
		probe->backend ? probe->backend->name : "replay");
}

/* While the thread still hangs, its own state tells what the return cannot. */
static void describe_wait(struct session *s, const struct decoded_operation *decoded,
	struct record_operation *op, struct incident_stuck *stuck)
{
	char kstack[RECORD_STACK_SIZE];

	if (thread_read_state(s->procfs_fd, op->tid, &op->state) < 0)
		op->state = '?';
	thread_read_wait(s->procfs_fd, op->tid, op->wchan, kstack);
	/* Returned while this was read: it may be of the thread's next call. */
	if (!s->o.without_probes && !session_is_in_flight(s, decoded->probe, (uint32_t)op->tid,
					    op->start_mono_ns)) {
		op->state = '?';
		op->wchan[0] = '\0';
		kstack[0] = '\0';
	}
	/* Else that of its falling asleep, if it was taken. */
	if (kstack[0] != '\0') {
		text_copy(op->kstack, sizeof(op->kstack), kstack);
		op->kstack_while_blocked = true;
	}
	text_copy(op->waits_for, sizeof(op->waits_for), waits_for(op->kstack));
	incident_set_stack(&s->incident, stuck, op->kstack);
}

static void finish_stall(struct session *s, struct record_operation *op)
{
	struct incident_stuck *stuck =
		incident_find_stuck(&s->incident, (uint32_t)op->tid, op->start_mono_ns);

	s->incident.stalls++;
	if (op->dur_ns > s->incident.longest_ns)
		s->incident.longest_ns = op->dur_ns;
	if (!stuck)
		return;
	/* Where it waited says more than where it returned. */
	if (stuck->stack) {
		text_copy(op->kstack, sizeof(op->kstack),
			incident_get_stack(&s->incident, stuck));
		op->kstack_while_blocked = true;
		text_copy(op->waits_for, sizeof(op->waits_for), waits_for(op->kstack));
	}
	incident_forget_stuck(stuck);
}

static bool begin_stuck(struct session *s, const struct decoded_operation *decoded,
	struct record_operation *op)
{
	struct incident_stuck *stuck =
		incident_note_stuck(&s->incident, (uint32_t)op->tid, op->start_mono_ns);

	if (!stuck) {
		s->incident.stuck_unreported++;
		return false;
	}
	if (stuck->reported_age_ns == 0)
		s->incident.stuck_operations++;
	stuck->reported_age_ns = op->dur_ns;
	stuck->is_request = probe_ops_get(decoded->probe)->operations_are_requests;
	s->incident.stuck_lines++;
	if (op->dur_ns > s->incident.longest_ns)
		s->incident.longest_ns = op->dur_ns;
	if (!stuck->is_request)
		describe_wait(s, decoded, op, stuck);
	return true;
}

static uint64_t find_connection(const struct session *s, const struct decoded_operation *decoded,
	const struct record_operation *op)
{
	const struct sql_operation operation = {
		.tid = op->tid,
		.is_request = probe_ops_get(decoded->probe)->operations_are_requests,
		.start_ns = op->start_mono_ns,
		.end_ns = op->start_mono_ns + op->dur_ns,
	};

	return sql_find_connection(s->o.sql, &operation);
}

void session_feed_event(struct session *s, const void *data, size_t size)
{
	struct record *r = session_begin_line(s, RECORD_STALL);
	struct decoded_operation decoded;

	if (event_decode(data, size, &decoded, &r->operation) < 0) {
		s->incident.events_invalid++;
		return;
	}
	if (!decoded.finished)
		r->type = RECORD_STUCK;
	/* When it was seen in the kernel, not when the loop got to it. */
	if (decoded.ts_ns < r->mono_ns && !s->o.without_probes) {
		r->real_ns -= r->mono_ns - decoded.ts_ns;
		r->mono_ns = decoded.ts_ns;
	}
	if (r->operation.start_mono_ns < s->attached_ns)
		r->operation.before_arm = true;
	describe_probe(s, &decoded, &r->operation);
	enrich_operation(s->o.enrich, &decoded, &r->operation);
	r->operation.connection_id = find_connection(s, &decoded, &r->operation);
	if (decoded.finished)
		finish_stall(s, &r->operation);
	else if (!begin_stuck(s, &decoded, &r->operation))
		return;
	session_write_line(s);
}

int session_handle_ring_event(void *userdata, void *data, size_t size)
{
	struct session *s = userdata;

	if (s->o.capture_fd >= 0) {
		uint32_t length = (uint32_t)size;

		if (file_write_all(s->o.capture_fd, (const char *)&length, sizeof(length)) < 0 ||
			file_write_all(s->o.capture_fd, data, size) < 0) {
			log_warning("the capture file takes no more: %s; it ends here", strerror(errno));
			s->o.capture_fd = -1;
		}
	}
	/* What came in before arming, when backends were tried or after the last event of an incident. */
	if (s->state == SESSION_TRACING || s->state == SESSION_DRAINING)
		session_feed_event(s, data, size);
	/* An error ends the batch; the event itself has been taken. */
	return ++s->events_this_wake < EVENTS_PER_WAKE ? 0 : -EAGAIN;
}

bool session_consume_ring(struct session *s)
{
	s->events_this_wake = 0;
	return ring_buffer__consume(s->ring) == -EAGAIN;
}
