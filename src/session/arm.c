/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a trigger to the first lines of a record: arming. */
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "enrich/enrich.h"
#include "session/internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/number.h"
#include "watch/watch.h"

/*
 * Attaching takes 1 to 30 ms. It waits longer only for another tracer that attaches or detaches
 * something, for a CPU that goes off-line, or when programs are being detached or loaded; then the
 * record begins without the probes that it waits for.
 */
#define ARM_WAIT_NS (200 * NSEC_PER_MSEC)

static void log_opened(const char *id, const struct session_request *opened)
{
	char buf[4 * RECORD_SUBJECT_SIZE];
	struct text what = TEXT_ON(buf);

	text_reset(&what);
	record_add_trigger(&what, &opened->trigger);
	if (*opened->continues)
		text_addf(&what, ", which continues incident %s", opened->continues);
	log_info("incident %s open: %s", id, buf);
}

void session_begin_tracing(struct session *s)
{
	s->incident.armed_ns = clock_mono_ns() - s->incident.trigger_ns;
	s->state = SESSION_TRACING;
	session_write_open(s, &s->opened.trigger);
	session_write_history(s);
	session_take_sql_lines(s, false);
	if (s->tasks.complete)
		loop_set_timer(s->scan_timer, SESSION_SCAN_INTERVAL_NS, 0);
	loop_set_timer(s->max_timer, s->o.config->incident.max_time_ns, 0);
	if (s->ring_source)
		loop_set_events(s->ring_source, EPOLLIN);
	log_opened(s->incident.id, &s->opened);
}

static void hold(struct session *s, uint64_t now_ns, uint64_t hold_ns)
{
	uint64_t until_ns;

	/* The longest possible time does not overflow into the past. */
	if (__builtin_add_overflow(now_ns, hold_ns, &until_ns))
		until_ns = UINT64_MAX;
	if (until_ns > s->hold_until_ns)
		s->hold_until_ns = until_ns;
}

static void attach(struct session *s)
{
	struct event_server_waits waits;
	bool known = enrich_find_server_waits(s->o.enrich, &waits);

	/* Events that are in the ring buffer now belong to no incident. */
	session_discard_events(s);
	/* Later ones wait in it until the record has its first line. */
	loop_set_events(s->ring_source, 0);
	/* Processes that are younger than the last sample. */
	session_update_filter(s, true);
	session_update_watched(s);
	probe_set_read_counters(&s->probes, &s->counters_at_open);
	stack_reader_reset(s->stacks);
	s->attached_ns = clock_mono_ns();
	probe_set_tell_server_waits(&s->probes, &waits, known);
	probe_set_begin_attaching(&s->probes);
	s->attach_wanted = s->switches_wanted = true;
	loop_set_timer(s->max_timer, ARM_WAIT_NS, 0);
	session_start_next_task(s);
}

/*
 * A rule that fires now has noticed what began when its value rose: hold_samples ago, and before
 * that as long as a value in seconds says, or as it took until a scan had seen the thread twice.
 * What hung before that is another trouble, which no rule minded.
 */
static uint64_t began_ns(const struct session *s, const struct session_request *request)
{
	const struct record_trigger *t = &request->trigger;
	uint64_t ns = MODEL_LEAD_NS + (s->fired_hold + 1) * s->o.config->watch.interval_ns;

	if (strcmp(t->unit, "s") == 0 && t->value > 0)
		ns += (uint64_t)(t->value * NSEC_PER_SEC);
	return minus(request->trigger_ns, ns);
}

/*
 * What hung already when the oldest sample was taken did not keep the host from being well for
 * all of watch.history. A daemon that has just been started may look at a freeze that is older
 * than itself.
 */
static uint64_t oldest_ns(const struct session *s)
{
	return watch_history_is_full(s->o.watch) ? watch_history_get(s->o.watch, 0)->mono_ns : 0;
}

/* An operator who triggers by hand wants to know about everything. */
static uint64_t well_ns(const struct session *s, const struct session_request *request)
{
	if (request->hold_ns > 0)
		return 0;
	return s->fired_hold ? began_ns(s, request) : oldest_ns(s);
}

static void arm(struct session *s, const struct session_request *request, uint64_t waited_ns)
{
	struct watch_left_out left_out;
	struct record_writer not_yet;

	/* The record says how late the loop was from here on. */
	(void)loop_take_longest_turn(s->o.loop);
	(void)loop_take_longest_delay(s->o.loop);
	session_log_held_back(s);
	cooldown_note_trigger(&s->cooldown, &request->trigger);
	s->opened = *request;
	hold(s, request->trigger_ns + waited_ns, request->hold_ns);
	incident_begin(&s->incident, request->id, request->trigger_ns);
	s->incident.waited_ns = waited_ns;
	model_begin(&s->model);
	session_begin_verdict(s);
	s->well_ns = well_ns(s, request);
	s->incidents++;
	tally_open(&s->tally, request->trigger.rule, clock_real_ns());
	s->misses_at_open = s->misses;
	watch_get_left_out(s->o.watch, &left_out);
	s->unread_at_open = left_out.unread;
	s->clear_since_ns = 0;
	s->stuck_now = 0;
	s->pass = (struct session_scan_pass){ 0 };
	task_scan_reset(&s->tasks);
	/* Until there is a program that notes who falls asleep. */
	s->tasks.complete = true;
	alike_begin(&s->alike);
	memset(&s->locks, 0, sizeof(s->locks));
	s->held_locks_look_ns = 0;
	text_copy(s->full_mount, sizeof(s->full_mount),
		session_is_about_space(&request->trigger) ? request->trigger.subject : "");
	/* It is known later. This is the first look, which tells from where files have grown. */
	session_find_writer(s, &not_yet);
	session_ask_sql(s);
	kmsg_begin(&s->kmsg, request->trigger_ns);
	s->state = SESSION_ARMING;
	session_look_for_held_locks(s);
	/*
	 * Events of a replay have the clock of another host, so they are not compared with this
	 * one.
	 */
	s->attached_ns = 0;
	if (s->o.without_probes)
		session_begin_tracing(s);
	else
		attach(s);
}

static void make_request(const struct record_trigger *trigger, uint64_t now_ns, uint64_t hold_ns,
	struct session_request *ret_request)
{
	uint32_t random = 0;

	/* Without GRND_RANDOM it could wait only before the pool is first filled at boot. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)now_ns;
	ret_request->trigger = *trigger;
	ret_request->trigger_ns = now_ns;
	ret_request->hold_ns = hold_ns;
	record_make_id(clock_real_ns(), random, ret_request->id);
}

static const char *keep_request(struct session *s, const struct session_request *request)
{
	if (!s->kept.id[0]) {
		s->kept = *request;
		log_info("incident %s will be opened when %s", s->kept.id,
			s->state == SESSION_LOADING ? "the probes have been loaded"
						    : "the last one has been closed");
	}
	if (request->hold_ns > s->kept.hold_ns)
		s->kept.hold_ns = request->hold_ns;
	return s->kept.id;
}

void session_arm_kept(struct session *s)
{
	struct session_request request = s->kept;

	s->kept.id[0] = '\0';
	if (request.id[0])
		arm(s, &request, clock_mono_ns() - request.trigger_ns);
}

/* Opens an incident now, or when it can be; or makes the open one last longer. */
static const char *open_or_extend(struct session *s, const struct record_trigger *trigger,
	const char *continues, uint64_t hold_ns)
{
	uint64_t now_ns = clock_mono_ns();
	struct session_request request;

	if (s->state == SESSION_ARMING || s->state == SESSION_TRACING) {
		hold(s, now_ns, hold_ns);
		return s->incident.id;
	}
	make_request(trigger, now_ns, hold_ns, &request);
	text_copy(request.continues, sizeof(request.continues), continues);
	if (s->state != SESSION_IDLE)
		return keep_request(s, &request);
	arm(s, &request, 0);
	return s->incident.id;
}

const char *session_trigger(struct session *s, const struct record_trigger *trigger,
	uint64_t hold_ns)
{
	return open_or_extend(s, trigger, "", hold_ns);
}

/* Disks may have come since the last incident. */
static void learn_stack(struct session *s)
{
	struct record_stacked stack[RECORD_STACKED_MAX];
	uint32_t count, left_out;

	enrich_choose_stack(s->o.enrich, stack, &count, &left_out);
	for (uint32_t i = 0; i < count; i++)
		model_disks_note_below(&s->model.disks, stack[i].dev_name, stack[i].label,
			stack[i].below);
}

static bool is_held_back(const struct session *s, const struct rules_firing *firing,
	const struct record_trigger *trigger)
{
	uint64_t now_ns = clock_mono_ns();

	if (s->state == SESSION_DRAINING)
		return true;
	return session_cooldown_ns(s, now_ns) > 0 &&
		cooldown_holds_back(&s->cooldown, &s->model.disks, watch_last(s->o.watch), trigger,
			firing->scope, now_ns);
}

static bool is_due(const struct session *s, const struct rules_firing *firing)
{
	return rules_is_due(firing, clock_mono_ns() - s->cooldown.began_ns,
		s->o.config->incident.cooldown_ns);
}

void session_open_by_rule(struct session *s, const struct rules_firing *firings, size_t count,
	bool is_new)
{
	struct record_trigger trigger;
	const char *id;

	if (session_cooldown_ns(s, clock_mono_ns()) > 0)
		learn_stack(s);
	for (size_t i = 0; i < count; i++) {
		session_trigger_of(&firings[i], &trigger);
		if (!is_due(s, &firings[i]) || is_held_back(s, &firings[i], &trigger))
			continue;
		s->fired_hold = is_new ? s->o.config->rules[firings[i].rule].hold_samples : 0;
		id = open_or_extend(s, &trigger, firings[i].continues, 0);
		rules_acknowledge(s->o.rules, s->o.watch, id);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		session_trigger_of(&firings[i], &trigger);
		/* What waits because it has been recorded is not held back by the cooldown. */
		if (is_due(s, &firings[i]) || session_cooldown_ns(s, clock_mono_ns()) > 0)
			cooldown_count(&s->cooldown, &trigger);
		s->firings.in_cooldown[firings[i].rule]++;
	}
}

void session_log_held_back(struct session *s)
{
	char buf[COOLDOWN_HELD_MAX * (RECORD_SUBJECT_SIZE + RECORD_NAME_SIZE)];
	struct text what = TEXT_ON(buf);

	text_reset(&what);
	if (cooldown_take_held(&s->cooldown, &what))
		log_info("no incident was opened in the cooldown after incident %s for: %s",
			s->incident.id, buf);
}
