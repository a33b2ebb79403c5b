/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the decision to disarm to the closed record: draining. */
#include "session/internal.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The end of an incident has steps, and each step has parts that occupy the event loop for about
 * this long. Its other sources have their turn between two parts.
 */
#define PART_NS (8 * NSEC_PER_MSEC)
/*
 * After the decision to disarm, so that the record is closed within 300 ms. What is done after
 * GIVE_UP_NS takes a part and 4 ms for each 10,000 entries of the map.
 */
#define SCAN_UNTIL_NS (120 * NSEC_PER_MSEC)
/*
 * The last answers of databases, the count of missed hits and the detach at the context switch are
 * waited for this long.
 */
#define WAIT_UNTIL_NS (200 * NSEC_PER_MSEC)
#define GIVE_UP_NS (250 * NSEC_PER_MSEC)

static bool is_past(const struct session *s, uint64_t limit_ns)
{
	return clock_mono_ns() - s->disarm_start_ns >= limit_ns;
}

static uint64_t report_hung(struct session *s)
{
	if (!session_continue_last_scan(s, is_past(s, SCAN_UNTIL_NS)))
		return SESSION_NEXT_TURN_NS;
	s->misses_known = !probe_set_uses_kprobes(&s->probes);
	return 0;
}

static uint64_t wait_for_answers(struct session *s)
{
	uint64_t waited_ns = clock_mono_ns() - s->disarm_start_ns;

	session_start_next_task(s);
	return session_has_answers(s) || waited_ns >= WAIT_UNTIL_NS ? 0 : WAIT_UNTIL_NS - waited_ns;
}

/* While their program is still attached, operations end there, and not here as well. */
static uint64_t report_ended(struct session *s)
{
	bool give_up = is_past(s, GIVE_UP_NS) || !session_is_detached(s);

	return session_drain_inflight(s, give_up) ? 0 : SESSION_NEXT_TURN_NS;
}

static uint64_t read_events(struct session *s)
{
	if (session_consume_until(s, clock_mono_ns() + PART_NS))
		return 0;
	if (!is_past(s, GIVE_UP_NS))
		return SESSION_NEXT_TURN_NS;
	s->incident.events_unread += session_discard_events(s);
	return 0;
}

static uint64_t clear_map(struct session *s)
{
	return session_clear_inflight(s) ? 0 : SESSION_NEXT_TURN_NS;
}

/* The verdict says which disk is the reason. */
static bool is_about_disk(const struct session *s)
{
	const enum record_class class = s->last_verdict.class;

	return class == RECORD_CLASS_hung || class == RECORD_CLASS_slow ||
		class == RECORD_CLASS_saturated || class == RECORD_CLASS_busy;
}

static void close_record(struct session *s)
{
	const struct record_close *close;

	loop_set_timer(s->max_timer, 0, 0);
	if (!s->o.without_probes)
		session_summarize(s, true, true);
	session_write_alike(s);
	session_end_locks(s);
	session_take_sql_lines(s, true);
	session_take_kernel_lines(s, true);
	session_write_verdict(s, true);
	close = session_write_close(s);
	tally_close(&s->tally, s->opened.trigger.rule, s->last_verdict.class, close);
	log_info("incident %s closed (%s): %s", s->incident.id, record_reason_text(close->reason),
		s->last_verdict.message);
	cooldown_begin(&s->cooldown, clock_mono_ns(), s->o.config->incident.cooldown_ns,
		is_about_disk(s));
	s->state = SESSION_IDLE;
	if (s->ring_source)
		loop_set_events(s->ring_source, 0);
	session_start_next_task(s);
	if (s->closed)
		s->closed(s->userdata, s->incident.id, close);
	session_arm_kept(s);
}

/* Each returns 0 when it is done, or after how many nanoseconds it is to be called again. */
static uint64_t (*const steps[])(struct session *s) = {
	[SESSION_REPORT_HUNG] = report_hung,
	[SESSION_WAIT_FOR_ANSWERS] = wait_for_answers,
	[SESSION_REPORT_ENDED] = report_ended,
	[SESSION_READ_EVENTS] = read_events,
	[SESSION_CLEAR_MAP] = clear_map,
};

void session_drain(struct session *s, enum record_reason reason)
{
	s->disarm_start_ns = clock_mono_ns();
	s->close_reason = reason;
	s->hold_until_ns = 0;
	s->state = SESSION_DRAINING;
	loop_set_timer(s->scan_timer, 0, 0);
	/* They answer meanwhile: this is the `end` phase. */
	if (s->o.sql)
		sql_ask_all(s->o.sql);
	if (s->o.without_probes) {
		close_record(s);
		return;
	}
	session_begin_last_scan(s);
	s->misses_known = false;
	s->drain_step = SESSION_REPORT_HUNG;
	loop_set_timer(s->max_timer, SESSION_NEXT_TURN_NS, 0);
}

void session_continue_drain(struct session *s)
{
	uint64_t rest_ns;

	if (s->drain_step == SESSION_CLOSE_RECORD) {
		close_record(s);
		return;
	}
	rest_ns = steps[s->drain_step](s);
	if (rest_ns == 0)
		s->drain_step++;
	loop_set_timer(s->max_timer, rest_ns ? rest_ns : SESSION_NEXT_TURN_NS, 0);
}
