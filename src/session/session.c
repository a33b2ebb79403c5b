/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state machine. */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "enrich/enrich.h"
#include "probes/filter.h"
#include "session/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "watch/rules.h"
#include "watch/watch.h"

/* A scan that took longer than a second begins anew after this time. */
#define UDEV_DATA "/run/udev/data"
#define SCAN_PAUSE_NS (50 * NSEC_PER_MSEC)
#define RING_PAUSE_NS NSEC_PER_MSEC
#define FIRINGS_MAX 8
/* Between tries to load programs anew; the tracer can do nothing else in them. */
#define PREPARE_PAUSE_NS (5 * NSEC_PER_SEC)
#define PREPARE_PAUSE_MAX_NS (320 * NSEC_PER_SEC)

void session_set_callbacks(struct session *s, session_loaded_fn loaded, session_closed_fn closed,
	void *userdata)
{
	s->loaded = loaded;
	s->closed = closed;
	s->userdata = userdata;
}

void session_stop(struct session *s, enum record_reason reason)
{
	s->kept.id[0] = '\0';
	if (s->state == SESSION_ARMING)
		session_begin_tracing(s);
	if (s->state == SESSION_TRACING)
		session_drain(s, reason);
}

static void on_max_time(void *userdata, uint64_t expirations)
{
	struct session *s = userdata;

	(void)expirations;
	if (s->state == SESSION_ARMING)
		session_begin_tracing(s);
	else if (s->state == SESSION_DRAINING)
		session_continue_drain(s);
	else
		session_stop(s, RECORD_REASON_max_time);
}

/*
 * The initial task scan goes on until the first in-flight scan is due, and after that with one part
 * before each. Returns after how many nanoseconds this timer is to expire again; 0: the in-flight
 * scan may begin, or go on.
 */
static uint64_t go_on_with_tasks(struct session *s)
{
	uint64_t now_ns, first_ns;

	if (s->pass.start_ns || !session_continue_task_scan(s))
		return 0;
	now_ns = clock_mono_ns();
	first_ns = s->incident.trigger_ns + s->incident.armed_ns + SESSION_SCAN_INTERVAL_NS;
	/* Not both in one turn of the loop: the in-flight scan begins in the next one. */
	if (s->state == SESSION_TRACING && now_ns >= first_ns)
		s->pass = (struct session_scan_pass){ .start_ns = now_ns };
	else if (s->state == SESSION_TRACING && s->tasks.complete)
		return first_ns - now_ns;
	return SESSION_TASK_SCAN_PAUSE_NS;
}

static void on_scan(void *userdata, uint64_t expirations)
{
	struct session *s = userdata;
	uint64_t rest_ns = go_on_with_tasks(s), start_ns, now_ns;
	bool judges;

	(void)expirations;
	if (rest_ns == 0 && s->state == SESSION_ARMING)
		return;
	session_check_stacks(s);
	start_ns = s->pass.start_ns ? s->pass.start_ns : clock_mono_ns();
	if (rest_ns == 0)
		rest_ns = session_scan_inflight(s);
	if (rest_ns) {
		loop_set_timer(s->scan_timer, rest_ns, 0);
		return;
	}
	session_find_file_server(s);
	session_scan_locks(s);
	session_look_for_held_locks(s);
	judges = session_is_verdict_due(s, clock_mono_ns());
	session_summarize(s, judges, false);
	session_take_sql_lines(s, false);
	session_take_kernel_lines(s, false);
	if (judges)
		session_write_verdict(s, false);
	now_ns = clock_mono_ns();
	loop_set_timer(s->scan_timer,
		now_ns - start_ns < SESSION_SCAN_INTERVAL_NS - SCAN_PAUSE_NS
			? SESSION_SCAN_INTERVAL_NS - (now_ns - start_ns)
			: SCAN_PAUSE_NS,
		0);
}

/*
 * The oldest event may be one that a thread has begun to write and was preempted in, by this loop
 * even. The descriptor stays ready, and without a pause the loop would not give it the CPU back.
 */
static void on_ring(void *userdata, uint64_t events)
{
	struct session *s = userdata;

	(void)events;
	session_consume_ring(s);
	if (s->events_this_wake > 0)
		return;
	loop_set_events(s->ring_source, 0);
	loop_set_timer(s->ring_timer, RING_PAUSE_NS, 0);
}

static void on_ring_pause(void *userdata, uint64_t expirations)
{
	struct session *s = userdata;

	(void)expirations;
	/* Between incidents nobody reads it, and while arming the first line comes first. */
	if (s->ring_source && (s->state == SESSION_TRACING || s->state == SESSION_DRAINING))
		loop_set_events(s->ring_source, EPOLLIN);
}

/*
 * The incident ends when all rules that keep it open have been clear, and nothing has been stuck,
 * for incident.clear_time.
 */
static void check_clear(struct session *s, uint64_t now_ns)
{
	if (rules_holding(s->o.rules) > 0 || s->stuck_now > 0 || now_ns < s->hold_until_ns)
		s->clear_since_ns = 0;
	else if (s->clear_since_ns == 0)
		s->clear_since_ns = now_ns;
	else if (now_ns - s->clear_since_ns >= s->o.config->incident.clear_time_ns)
		session_drain(s, RECORD_REASON_clear);
}

static void note_firings(struct session *s, const struct rules_firing *firings, size_t count,
	uint64_t now_ns)
{
	if (count == 0)
		return;
	session_trigger_of(&firings[count - 1], &s->firings.last);
	s->firings.last_ns = now_ns;
}

/*
 * Rules fire in the open incident. Where a file system becomes full, who writes there is looked for
 * from now on.
 */
static void note_more(struct session *s, const struct rules_firing *firings, size_t count)
{
	struct record_writer not_yet;
	struct record_trigger trigger;

	for (size_t i = 0; i < count; i++) {
		session_trigger_of(&firings[i], &trigger);
		cooldown_note_trigger(&s->cooldown, &trigger);
		session_note_trigger(s, &trigger);
		if (*s->full_mount || !session_is_about_space(&trigger))
			continue;
		text_copy(s->full_mount, sizeof(s->full_mount), trigger.subject);
		session_find_writer(s, &not_yet);
	}
}

void session_handle_sample(struct session *s)
{
	struct rules_firing firings[FIRINGS_MAX];
	uint64_t now_ns = clock_mono_ns();
	size_t count;

	session_update_filter(s, session_is_open(s));
	if (session_is_open(s))
		session_update_watched(s);
	if (s->state == SESSION_IDLE)
		session_start_next_task(s);
	if (s->state == SESSION_IDLE && !watch_lacks_memory(s->o.watch)) {
		enrich_refresh(s->o.enrich);
		if (s->held_locks)
			held_locks_replace_hung(s->held_locks, now_ns);
		enrich_learn_processes(s->o.enrich);
		enrich_learn_disks(s->o.enrich, s->o.sysfs, UDEV_DATA,
			watch_disks_generation(s->o.watch));
		if (!s->o.without_probes)
			filter_refresh(&s->probes.maps, s->o.config, s->o.sysfs, s->o.enrich);
	}
	count = rules_evaluate(s->o.rules, s->o.watch, now_ns, firings, FIRINGS_MAX);
	note_firings(s, firings, count, now_ns);
	/* While it arms, the sample becomes part of the history that the record begins with. */
	if (s->state == SESSION_ARMING || s->state == SESSION_TRACING) {
		rules_acknowledge(s->o.rules, s->o.watch, s->incident.id);
		note_more(s, firings, count);
		if (s->state == SESSION_ARMING)
			return;
		session_write_sample(s);
		check_clear(s, now_ns);
		return;
	}
	if (!session_is_cooling_down(s, now_ns))
		session_log_held_back(s);
	/*
	 * A rule that stayed active since the last incident and through the cooldown does not fire
	 * again.
	 */
	if (count == 0 &&
		(s->state != SESSION_IDLE || session_is_cooling_down(s, now_ns) ||
			!rules_first_active(s->o.rules, s->o.watch, now_ns - s->cooldown.began_ns,
				s->o.config->incident.cooldown_ns, &firings[0])))
		return;
	session_open_by_rule(s, firings, count > 0 ? count : 1, count > 0);
}

/* Making and freeing */

/*
 * The ring buffer is read while an incident is open only: it may be shared with the session that
 * this one will replace, or with the one that replaces it.
 */
static int start_tracing_ready(struct session *s)
{
	s->ring = ring_buffer__new(s->probes.maps.events, session_handle_ring_event, s, NULL);
	if (!s->ring)
		return -errno;
	return loop_add_fd(s->o.loop, ring_buffer__epoll_fd(s->ring), 0, on_ring, s,
		&s->ring_source);
}

static void handle_loaded(struct session *s, const struct tracer_result *result)
{
	int r = result->error;

	s->probes = *tracer_get_set(s->tracer);
	s->filter = result->filter;
	if (r == 0)
		r = start_tracing_ready(s);
	if (r == 0) {
		s->state = SESSION_IDLE;
		session_update_filter(s, false);
		filter_refresh(&s->probes.maps, s->o.config, s->o.sysfs, s->o.enrich);
	}
	/* It may free a session with an error. */
	if (s->loaded)
		s->loaded(s->userdata, s, r);
	if (r == 0)
		session_arm_kept(s);
}

/* What follows from what the workers have done */

static void note_attached(struct session *s, bool attached, uint64_t took_ns)
{
	s->incident.attach_ns += took_ns;
	if (s->state == SESSION_TRACING && attached)
		log_warning("incident %s: some probes were attached only after %.1f s",
			s->incident.id, (double)(clock_mono_ns() - s->attached_ns) / NSEC_PER_SEC);
	else if (s->state == SESSION_ARMING && !s->attach_wanted && !s->switches_wanted)
		session_begin_tracing(s);
}

/* From here on it is known who falls asleep. So those who sleep already can be looked for. */
static void on_switches_attached(struct session *s, uint64_t took_ns)
{
	s->switches_wanted = false;
	s->switches_ns = clock_mono_ns();
	s->tasks.complete = false;
	if (!session_begin_task_scan(s) && !s->pass.start_ns)
		loop_set_timer(s->scan_timer, SESSION_TASK_SCAN_PAUSE_NS, 0);
	note_attached(s, s->probes.attached[CONFIG_PROBE_wait], took_ns);
}

static void on_switches(void *userdata, enum switches_task task, uint64_t took_ns)
{
	struct session *s = userdata;
	bool attached = task == SWITCHES_ATTACH && s->switches_wanted &&
		(s->state == SESSION_ARMING || s->state == SESSION_TRACING);

	/* An incident that has been closed meanwhile has none of them. */
	probe_set_copy_scanned(&s->probes, switches_get_set(s->switches), attached);
	if (attached)
		on_switches_attached(s, took_ns);
	session_start_next_task(s);
	session_wake_drain(s);
}

/* What has failed, as without memory, is tried again with a later sample, more and more seldom. */
static void on_prepared(struct session *s)
{
	if (!probe_set_needs_prepare(&s->probes))
		s->prepare_pause_ns = 0;
	else if (s->prepare_pause_ns == 0)
		s->prepare_pause_ns = PREPARE_PAUSE_NS;
	else if (s->prepare_pause_ns < PREPARE_PAUSE_MAX_NS)
		s->prepare_pause_ns *= 2;
	s->prepare_after_ns = clock_mono_ns() + s->prepare_pause_ns;
}

static void on_task(void *userdata, const struct tracer_result *result)
{
	struct session *s = userdata;

	if (result->task == TRACER_LOAD) {
		handle_loaded(s, result);
		return;
	}
	if (result->task == TRACER_UNLOAD) {
		s->probes = (struct probe_set){ .maps = TRACE_MAPS_NONE };
		session_free(s);
		return;
	}
	probe_set_copy_rest(&s->probes, tracer_get_set(s->tracer), result->task == TRACER_ATTACH);
	if (result->misses > s->misses)
		s->misses = result->misses;
	if (result->task == TRACER_ATTACH) {
		s->attach_wanted = false;
		note_attached(s, probe_set_rest_is_attached(&s->probes), result->took_ns);
	}
	if (result->task == TRACER_COUNT)
		s->misses_known = true;
	if (result->task == TRACER_PREPARE)
		on_prepared(s);
	if (result->task == TRACER_DETACH)
		log_debug("probes detached after %.1f s", (double)result->took_ns / NSEC_PER_SEC);
	session_start_next_task(s);
	session_wake_drain(s);
}

static void on_stacks(void *userdata, uint64_t events)
{
	(void)events;
	session_take_stacks(userdata);
}

static int new_readers(struct session *s)
{
	int r = stack_reader_new(s->procfs_fd, &s->stacks);

	if (r == 0)
		r = held_locks_new(s->procfs_fd, &s->held_locks);
	if (r < 0)
		return r;
	return loop_add_fd(s->o.loop, stack_reader_fd(s->stacks), EPOLLIN, on_stacks, s,
		&s->stacks_source);
}

static void open_kernel_log(struct session *s)
{
	int r = kmsg_open(&s->kmsg, "/dev/kmsg");

	if (r < 0)
		log_info("cannot open /dev/kmsg: %s; records will have no lines of the kernel log",
			strerror(-r));
}

static int new_timers(struct session *s)
{
	int r = loop_add_timer(s->o.loop, on_scan, s, &s->scan_timer);

	if (r == 0)
		r = loop_add_timer(s->o.loop, on_ring_pause, s, &s->ring_timer);
	return r < 0 ? r : loop_add_timer(s->o.loop, on_max_time, s, &s->max_timer);
}

void session_inherit(struct session *s, struct session *previous)
{
	s->incidents = previous->incidents;
	text_copy(s->incident.id, sizeof(s->incident.id), previous->incident.id);
	s->cooldown = previous->cooldown;
	s->firings = previous->firings;
	s->tally = previous->tally;
	s->last_verdict = previous->last_verdict;
	/* With what it has read, and where it was. */
	kmsg_take(&s->kmsg, &previous->kmsg);
}

int session_new(const struct session_options *options, struct session **ret_session)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *options;
	s->state = SESSION_IDLE;
	s->probes.maps = TRACE_MAPS_NONE;
	s->kmsg.fd = -1;
	s->procfs_fd = open(options->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = s->procfs_fd < 0 ? -errno : new_timers(s);
	if (r == 0 && !options->without_probes)
		r = new_readers(s);
	if (r == 0 && !options->without_probes)
		r = session_begin_loading(s, on_task, on_switches);
	if (r < 0) {
		session_free(s);
		return r;
	}
	if (!options->without_probes)
		open_kernel_log(s);
	session_read_host(s);
	*ret_session = s;
	return 0;
}

bool session_can_keep_probes(const struct config *a, const struct config *b)
{
	return memcmp(&a->trace, &b->trace, sizeof(a->trace)) == 0 &&
		memcmp(&a->probes, &b->probes, sizeof(a->probes)) == 0;
}

void session_set_config(struct session *s, const struct config *config)
{
	s->o.config = config;
	/* It may have become readable. */
	if (!s->o.without_probes && s->kmsg.fd < 0)
		open_kernel_log(s);
}

void session_retire(struct session *s)
{
	s->loaded = NULL;
	s->closed = NULL;
	/* The next session gets the answers from now on. */
	sql_unset_callback(s->o.sql, s);
	s->o.sql = NULL;
	tracer_start(s->tracer, TRACER_UNLOAD, &s->probes);
}

struct session *session_free(struct session *s)
{
	if (!s)
		return NULL;
	sql_unset_callback(s->o.sql, s);
	loop_remove(s->ring_source);
	loop_remove(s->max_timer);
	loop_remove(s->scan_timer);
	loop_remove(s->ring_timer);
	loop_remove(s->stacks_source);
	task_scan_reset(&s->tasks);
	stack_reader_free(s->stacks);
	held_locks_free(s->held_locks);
	ring_buffer__free(s->ring);
	/* What a worker is about to change is left to it. */
	if (s->tracer && switches_is_busy(s->switches))
		probe_set_forget_scanned(&s->probes);
	if (!s->tracer || !tracer_is_busy(s->tracer))
		probe_set_unload(&s->probes);
	switches_free(s->switches);
	tracer_free(s->tracer);
	if (s->filter) {
		processes_done(s->filter);
		free(s->filter);
	}
	kmsg_close(&s->kmsg);
	close_fd(s->procfs_fd);
	free(s);
	return NULL;
}
