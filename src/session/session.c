/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state machine. */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "enrich/enrich.h"
#include "loop.h"
#include "probes/filter.h"
#include "session/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "watch/rules.h"
#include "watch/watch.h"

#define WALK_INTERVAL_NS NSEC_PER_SEC
/* For other events between the parts of a walk that takes longer than its budget. */
#define WALK_PAUSE_NS (20 * NSEC_PER_MSEC)
/* How long the filter's search for new processes may take of each sample. */
#define FILTER_BUDGET_NS (2 * NSEC_PER_MSEC)
/* At start nothing waits: those who run already are known before anything can be armed. */
#define FILTER_FIRST_BUDGET_NS (5 * NSEC_PER_SEC)
#define FIRINGS_MAX 8

const char *session_state_name(enum session_state state)
{
	static const char *const names[] = {
		[SESSION_IDLE] = "idle",
		[SESSION_TRACING] = "tracing",
		[SESSION_DRAINING] = "draining",
		[SESSION_COOLDOWN] = "cooldown",
	};

	return names[state];
}

enum session_state session_get_state(const struct session *s)
{
	return s->state;
}

const char *session_incident(const struct session *s)
{
	return s->incident.id;
}

uint64_t session_incidents_count(const struct session *s)
{
	return s->incidents;
}

void session_describe_probes(const struct session *s, struct text *out)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &s->probes.probes[i];

		text_addf(out, "%s%s=%s", i ? " " : "", probe_ops_get(i)->name,
			probe->backend ? probe->backend->name : "none");
	}
}

void session_set_closed_callback(struct session *s, session_closed_fn callback, void *userdata)
{
	s->closed = callback;
	s->closed_userdata = userdata;
}

/* idle -> tracing */

static bool filter_has(const struct session *s, int32_t pid)
{
	for (uint32_t i = 0; i < s->filter->count; i++)
		if (s->filter->list[i].pid == pid)
			return true;
	return false;
}

/* The map holds what the list holds: at most WATCH_PROCESSES_MAX, a quarter of its entries. */
static void update_filter(struct session *s, bool armed, uint64_t budget_ns)
{
	static const struct watch_clock clock;

	if (!s->filter)
		return;
	processes_walk(s->filter, &clock, clock_mono_ns() + budget_ns, armed);
	for (uint32_t i = 0; i < s->filtered_count; i++)
		if (!filter_has(s, s->filtered[i]))
			trace_maps_remove_pid(&s->probes.maps, (uint32_t)s->filtered[i]);
	s->filtered_count = s->filter->count;
	for (uint32_t i = 0; i < s->filter->count; i++) {
		s->filtered[i] = s->filter->list[i].pid;
		trace_maps_add_pid(&s->probes.maps, (uint32_t)s->filtered[i]);
	}
}

static void log_opened(const char *id, const struct record_trigger *trigger)
{
	char buf[4 * WATCH_SUBJECT_SIZE];
	struct text what = TEXT_ON(buf);

	text_reset(&what);
	record_add_trigger(&what, trigger);
	log_info("incident %s open: %s", id, buf);
}

static void arm(struct session *s, const struct record_trigger *trigger, uint64_t trigger_ns)
{
	char id[RECORD_ID_SIZE];
	uint64_t start_ns;
	uint32_t random = 0;

	/* Never waits: without GRND_RANDOM only before the pool is first filled, at boot. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)trigger_ns;
	record_make_id(clock_real_ns(), random, id);
	incident_begin(&s->incident, id, trigger_ns);
	verdict_begin(&s->facts, trigger_ns, s->o.config->trace.min_stall_ns);
	s->incidents++;
	session_ask_sql(s);
	start_ns = clock_mono_ns();
	if (!s->o.without_probes) {
		/* What is in the ring now is of no incident. */
		while (session_consume_ring(s))
			;
		filter_fill(&s->probes.maps, s->o.config, s->o.sysfs);
		probe_set_read_counters(&s->probes, &s->counters_at_open);
		start_ns = clock_mono_ns();
		probe_set_attach_seeded(&s->probes);
		session_seed_blocked(s);
		probe_set_attach_rest(&s->probes);
	}
	kmsg_begin(&s->kmsg);
	/* Events of a replay have the clock of another host: only what they say themselves counts. */
	s->attached_ns = s->o.without_probes ? 0 : start_ns;
	s->incident.attach_ns = clock_mono_ns() - start_ns;
	s->incident.armed_ns = clock_mono_ns() - trigger_ns;
	/* Arming is one turn, and has its own time. */
	(void)loop_take_longest_turn(s->o.loop);
	s->state = SESSION_TRACING;
	s->calm_since_ns = 0;
	s->stuck_now = 0;
	memset(s->walk_resume_ns, 0, sizeof(s->walk_resume_ns));
	session_write_open(s, trigger);
	session_write_history(s);
	loop_set_timer(s->cooldown_timer, 0, 0);
	loop_set_timer(s->walk_timer, WALK_INTERVAL_NS, 0);
	loop_set_timer(s->max_timer, s->o.config->incident.max_time_ns, 0);
	log_opened(id, trigger);
}

bool session_trigger(struct session *s, const struct record_trigger *trigger, uint64_t hold_ns)
{
	uint64_t now_ns = clock_mono_ns(), until_ns;
	bool manual = hold_ns > 0;

	if (s->state == SESSION_DRAINING || (s->state == SESSION_COOLDOWN && !manual))
		return false;
	/* Whoever asks for the longest time there is means it. */
	if (__builtin_add_overflow(now_ns, hold_ns, &until_ns))
		until_ns = UINT64_MAX;
	if (until_ns > s->hold_until_ns)
		s->hold_until_ns = until_ns;
	if (s->state != SESSION_TRACING)
		arm(s, trigger, now_ns);
	return true;
}

/* tracing -> draining -> cooldown -> idle */

static void begin_cooldown(struct session *s, uint64_t until_ns)
{
	uint64_t now_ns = clock_mono_ns();

	s->cooldown_until_ns = until_ns;
	s->state = until_ns > now_ns ? SESSION_COOLDOWN : SESSION_IDLE;
	if (s->state == SESSION_COOLDOWN)
		loop_set_timer(s->cooldown_timer, until_ns - now_ns, 0);
}

static void finish_drain(struct session *s, uint64_t detach_ns)
{
	const struct record_close *close;

	if (!s->o.without_probes) {
		/* Nothing is attached, so it ends. */
		while (session_consume_ring(s))
			;
		session_settle_inflight(s);
		while (session_consume_ring(s))
			;
		session_summarize(s, true);
	}
	session_take_sql_lines(s, true);
	session_take_kernel_lines(s, true);
	session_write_verdict(s);
	close = session_write_close(s, detach_ns);
	log_info("incident %s closed (%s): stalls %llu, operations stuck %llu", s->incident.id,
		close->reason, (unsigned long long)close->stalls,
		(unsigned long long)close->stuck_threads);
	begin_cooldown(s, clock_mono_ns() + s->o.config->incident.cooldown_ns);
	if (s->closed)
		s->closed(s->closed_userdata, s->incident.id, close);
	if (!s->o.without_probes)
		probe_set_prepare(&s->probes);
}

static void drain(struct session *s, const char *reason)
{
	struct bpf_link *links[PROBE_SET_LINKS_MAX];
	unsigned int count = 0;

	s->state = SESSION_DRAINING;
	s->close_reason = reason;
	s->hold_until_ns = 0;
	loop_set_timer(s->walk_timer, 0, 0);
	loop_set_timer(s->max_timer, 0, 0);
	/* Answered while the probes are detached: the last moment. */
	if (s->o.sql)
		sql_ask_all(s->o.sql);
	if (!s->o.without_probes) {
		session_walk_inflight(s, true);
		count = probe_set_take_links(&s->probes, links);
	}
	if (count > 0)
		detacher_start(s->detacher, links, count);
	else
		finish_drain(s, 0);
}

void session_stop(struct session *s, const char *reason)
{
	if (s->state == SESSION_TRACING)
		drain(s, reason);
}

static void on_detached(void *userdata, uint64_t events)
{
	struct session *s = userdata;

	(void)events;
	finish_drain(s, detacher_finish(s->detacher));
}

static void on_max_time(void *userdata, uint64_t expirations)
{
	(void)expirations;
	session_stop(userdata, "max_time");
}

static void on_cooldown_over(void *userdata, uint64_t expirations)
{
	struct session *s = userdata;

	(void)expirations;
	if (s->state == SESSION_COOLDOWN)
		s->state = SESSION_IDLE;
}

static void on_walk(void *userdata, uint64_t expirations)
{
	struct session *s = userdata;

	(void)expirations;
	if (!session_walk_inflight(s, false)) {
		loop_set_timer(s->walk_timer, WALK_PAUSE_NS, 0);
		return;
	}
	session_summarize(s, false);
	session_take_sql_lines(s, false);
	session_take_kernel_lines(s, false);
	loop_set_timer(s->walk_timer, WALK_INTERVAL_NS, 0);
}

static void on_ring(void *userdata, uint64_t events)
{
	(void)events;
	session_consume_ring(userdata);
}

/* An incident is over when all rules that hold it are clear and nothing is stuck, for incident.clear_time. */
static void check_clear(struct session *s, uint64_t now_ns)
{
	if (rules_holding(s->o.rules) > 0 || s->stuck_now > 0 || now_ns < s->hold_until_ns)
		s->calm_since_ns = 0;
	else if (s->calm_since_ns == 0)
		s->calm_since_ns = now_ns;
	else if (now_ns - s->calm_since_ns >= s->o.config->incident.clear_time_ns)
		drain(s, "clear");
}

static void trigger_of_firing(const struct rules_firing *firing, struct record_trigger *ret_trigger)
{
	*ret_trigger = (struct record_trigger){
		.pid = firing->pid,
		.tid = firing->tid,
		.value = firing->value,
		.threshold = firing->threshold,
	};
	text_copy(ret_trigger->rule, sizeof(ret_trigger->rule), firing->name);
	text_copy(ret_trigger->device, sizeof(ret_trigger->device), firing->device);
	text_copy(ret_trigger->subject, sizeof(ret_trigger->subject), firing->subject);
	text_copy(ret_trigger->unit, sizeof(ret_trigger->unit), firing->unit);
}

void session_handle_sample(struct session *s)
{
	struct rules_firing firings[FIRINGS_MAX];
	struct record_trigger trigger;
	uint64_t now_ns = clock_mono_ns();
	size_t count;

	update_filter(s, s->state == SESSION_TRACING, FILTER_BUDGET_NS);
	if (s->state == SESSION_IDLE || s->state == SESSION_COOLDOWN) {
		enrich_refresh(s->o.enrich);
		enrich_learn_processes(s->o.enrich);
	}
	count = rules_evaluate(s->o.rules, s->o.watch, now_ns, firings, FIRINGS_MAX);
	if (s->state == SESSION_TRACING) {
		session_write_sample(s);
		rules_settle(s->o.rules);
		check_clear(s, now_ns);
		return;
	}
	/* What outlasted the last incident and the cooldown does not fire anew by itself. */
	if (count == 0 && (s->state != SESSION_IDLE ||
				  !rules_first_active(s->o.rules, s->o.watch, &firings[0])))
		return;
	trigger_of_firing(&firings[0], &trigger);
	if (session_trigger(s, &trigger, 0))
		rules_settle(s->o.rules);
}

/* Making and freeing */

static int new_filter(struct session *s)
{
	int r;

	if (s->o.config->trace.process.count == 0)
		return 0;
	s->filter = calloc(1, sizeof(*s->filter));
	if (!s->filter)
		return -ENOMEM;
	r = processes_init(s->filter, s->procfs_fd, &s->o.config->trace.process);
	if (r < 0) {
		free(s->filter);
		s->filter = NULL;
		return r;
	}
	update_filter(s, false, FILTER_FIRST_BUDGET_NS);
	return 0;
}

static int new_tracer(struct session *s)
{
	int r;

	r = probe_set_load(&s->probes, s->o.config, s->o.sysfs, s->o.generation);
	if (r < 0)
		return r;
	s->ring = ring_buffer__new(s->probes.maps.events, session_handle_ring_event, s, NULL);
	if (!s->ring)
		return -errno;
	r = detacher_new(&s->detacher);
	if (r == 0)
		r = loop_add_fd(s->o.loop, ring_buffer__epoll_fd(s->ring), EPOLLIN, on_ring, s,
			&s->ring_source);
	if (r == 0)
		r = loop_add_fd(s->o.loop, detacher_fd(s->detacher), EPOLLIN, on_detached, s,
			&s->detach_source);
	if (r == 0)
		r = new_filter(s);
	return r;
}

static void open_kernel_log(struct session *s)
{
	int r = kmsg_open(&s->kmsg, "/dev/kmsg");

	if (r < 0)
		log_info("/dev/kmsg: %s; records will have no lines of the kernel's log",
			strerror(-r));
}

static int new_timers(struct session *s)
{
	int r = loop_add_timer(s->o.loop, on_walk, s, &s->walk_timer);

	if (r == 0)
		r = loop_add_timer(s->o.loop, on_max_time, s, &s->max_timer);
	if (r == 0)
		r = loop_add_timer(s->o.loop, on_cooldown_over, s, &s->cooldown_timer);
	return r;
}

void session_inherit(struct session *s, const struct session *previous)
{
	s->incidents = previous->incidents;
	text_copy(s->incident.id, sizeof(s->incident.id), previous->incident.id);
	if (previous->state == SESSION_COOLDOWN)
		begin_cooldown(s, previous->cooldown_until_ns);
}

int session_new(const struct session_options *options, struct session **ret_session)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *options;
	s->probes.maps = TRACE_MAPS_NONE;
	s->kmsg.fd = -1;
	s->procfs_fd = open(options->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = s->procfs_fd < 0 ? -errno : new_timers(s);
	if (r == 0 && !options->without_probes)
		r = new_tracer(s);
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

struct session *session_free(struct session *s)
{
	if (!s)
		return NULL;
	if (s->o.sql)
		sql_set_callback(s->o.sql, NULL, NULL);
	loop_remove(s->detach_source);
	loop_remove(s->ring_source);
	loop_remove(s->cooldown_timer);
	loop_remove(s->max_timer);
	loop_remove(s->walk_timer);
	detacher_free(s->detacher);
	ring_buffer__free(s->ring);
	probe_set_unload(&s->probes);
	if (s->filter) {
		processes_done(s->filter);
		free(s->filter);
	}
	kmsg_close(&s->kmsg);
	close_fd(s->procfs_fd);
	free(s);
	return NULL;
}
