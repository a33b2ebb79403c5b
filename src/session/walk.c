/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk over operations in flight, each second while tracing. */
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "session/internal.h"
#include "snapshot/seed.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * One walk may keep the loop this long. A thread costs about 0.1 ms (syscall, stat, wchan, stack), so
 * 200 of them take 20 ms. A walk that ran out of time goes on WALK_PAUSE_NS (session.c) later.
 */
#define WALK_BUDGET_NS (40 * NSEC_PER_MSEC)
/* The ring must not fill while a walk goes on, and a line gets its time when its event is taken. */
#define WALK_CONSUME_EACH 8
/* 10,000 threads took 34 to 82 ms with all CPUs busy (6.18), with the attaching. */
#define SEED_BUDGET_NS (100 * NSEC_PER_MSEC)

/* One map of operations in flight and the program that describes them. */
struct walk_source {
	struct inflight_map map;
	int program_fd;
	bool is_pairs; /* an entry whose return was lost looks like one that hangs: the thread is asked */
	bool is_sleeps;
};

/* False when the probe has none: not attached, or nothing of its own. */
static bool find_own_map(const struct session *s, unsigned int index, struct inflight_map *ret_map)
{
	const struct probe *probe = &s->probes.probes[index];
	const struct bpf_map *map;

	if (!s->probes.attached[index] || !probe->ops->inflight_map)
		return false;
	map = probe_map(probe, probe->ops->inflight_map);
	if (!map)
		return false;
	*ret_map = (struct inflight_map){
		.fd = bpf_map__fd(map),
		.key_size = bpf_map__key_size(map),
		.value_size = bpf_map__value_size(map),
	};
	return true;
}

/*
 * Source 0 is the map of all pairing probes, which any of them can describe; source i + 1 the own map of
 * probe i.
 */
static bool find_source(const struct session *s, unsigned int index, struct walk_source *ret_source)
{
	struct walk_source source = { .program_fd = -1 };

	if (index > 0) {
		const struct probe *probe = &s->probes.probes[index - 1];

		if (!find_own_map(s, index - 1, &source.map))
			return false;
		source.is_sleeps = probe->ops->seed_program != NULL;
		source.program_fd = probe_program_fd(probe, probe->ops->resolve_program);
	} else {
		source.map = s->probes.maps.inflight;
		source.is_pairs = true;
		for (unsigned int i = 0; i < CONFIG_PROBE_COUNT && source.program_fd < 0; i++) {
			const struct probe *probe = &s->probes.probes[i];

			if (s->probes.attached[i] && probe->ops->resolve_program &&
				!probe->ops->inflight_map)
				source.program_fd = probe_program_fd(probe,
					probe->ops->resolve_program);
		}
	}
	*ret_source = source;
	return source.program_fd >= 0;
}

/* Has the kernel describe one operation; it comes by the ring buffer like any other event. */
static bool resolve(int program_fd, const struct inflight_item *item, bool settle)
{
	uint64_t args[3] = { item->key, item->op.start_ns, settle };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(program_fd, &opts) == 0 && opts.retval == 1;
}

/* A pairing probe knows of the operation that the thread sleeps in, and more than its sleeps. */
static bool is_paired(struct session *s, const struct inflight_item *item)
{
	const struct incident_stuck *known;
	struct event_inflight op;

	if (!inflight_find(&s->probes.maps.inflight, item->op.tid, &op) || op.start_ns > item->op.start_ns)
		return false;
	known = incident_find_stuck(&s->incident, op.tid, op.start_ns);
	return !known || !known->stale;
}

/* Returns whether the operation hangs. */
static bool walk_item(struct session *s, const struct walk_source *source,
	const struct inflight_item *item, uint64_t now_ns, bool final)
{
	struct incident_stuck *known;
	uint64_t age_ns = now_ns - item->op.start_ns;

	if (source->is_sleeps && is_paired(s, item))
		return false;
	/* Noted when its line is written: what is not resolved now may never have one. */
	known = incident_find_stuck(&s->incident, item->op.tid, item->op.start_ns);
	if (known && known->stale)
		return false;
	if (known && !final && !incident_stuck_is_due(known, age_ns))
		return true;
	if (!source->is_pairs)
		return resolve(source->program_fd, item, false);
	switch (inflight_check(s->procfs_fd, item)) {
	case INFLIGHT_STALE:
		known = incident_note_stuck(&s->incident, item->op.tid, item->op.start_ns);
		if (known)
			known->stale = true;
		return false;
	case INFLIGHT_RUNNING:
		return false;
	case INFLIGHT_BLOCKED:
		break;
	}
	return resolve(source->program_fd, item, false);
}

/* The operation at which the last walk ran out of time; the oldest one if it did not. */
static uint32_t find_resume(const struct session *s, uint64_t resume_ns)
{
	for (uint32_t i = 0; i < s->walk.count; i++)
		if (s->walk.items[i].op.start_ns >= resume_ns)
			return i;
	return 0;
}

/* The last walk ran out of time: what it did not get to and never had a line is said to be missing. */
static void count_unreported(struct session *s, uint32_t first, uint32_t done)
{
	session_consume_ring(s);
	for (uint32_t i = done; i < s->walk.count; i++) {
		const struct inflight_item *item = &s->walk.items[(first + i) % s->walk.count];
		const struct incident_stuck *known =
			incident_find_stuck(&s->incident, item->op.tid, item->op.start_ns);

		if (!known || (known->reported_age_ns == 0 && !known->stale))
			s->incident.stuck_unreported++;
	}
}

static void walk_source(struct session *s, unsigned int index, uint64_t deadline_ns, bool final)
{
	uint64_t now_ns = clock_mono_ns();
	struct walk_source source;
	uint32_t first, i;
	int r;

	if (!find_source(s, index, &source))
		return;
	r = inflight_collect(&source.map, now_ns, s->o.config->trace.min_stall_ns, &s->walk);
	if (r < 0) {
		log_warning("the operations in flight cannot be read: %s", strerror(-r));
		return;
	}
	first = find_resume(s, s->walk_resume_ns[index]);
	s->walk_resume_ns[index] = 0;
	for (i = 0; i < s->walk.count; i++) {
		const struct inflight_item *item = &s->walk.items[(first + i) % s->walk.count];

		if (clock_mono_ns() > deadline_ns) {
			s->walk_resume_ns[index] = item->op.start_ns;
			break;
		}
		if (walk_item(s, &source, item, now_ns, final))
			s->stuck_now++;
		if (i % WALK_CONSUME_EACH == WALK_CONSUME_EACH - 1)
			session_consume_ring(s);
	}
	/* What was not looked at is not known to be over. */
	s->stuck_now += s->walk.count - i + s->walk.left_out;
	if (final) {
		count_unreported(s, first, i);
		s->incident.stuck_unreported += s->walk.left_out;
	}
	session_consume_ring(s);
}

/*
 * Entries that the last walk proved stale and that the kernel has not overwritten since: it counts the
 * others itself. Operations that were in flight at the detach are no losses.
 */
static void count_missed_returns(struct session *s)
{
	for (uint32_t i = 0; i < s->walk.count; i++) {
		const struct inflight_item *item = &s->walk.items[i];
		const struct incident_stuck *known =
			incident_find_stuck(&s->incident, item->op.tid, item->op.start_ns);

		if (known && known->stale)
			s->incident.returns_missed++;
	}
}

void session_settle_inflight(struct session *s)
{
	for (unsigned int i = 0; i <= CONFIG_PROBE_COUNT; i++) {
		struct walk_source source;

		if (!find_source(s, i, &source))
			continue;
		if (inflight_collect(&source.map, clock_mono_ns(), 0, &s->walk) == 0) {
			if (source.is_sleeps)
				s->incident.stuck_unreported += s->walk.left_out;
			if (source.is_pairs)
				count_missed_returns(s);
			for (uint32_t j = 0; source.is_sleeps && j < s->walk.count; j++) {
				resolve(source.program_fd, &s->walk.items[j], true);
				session_consume_ring(s);
			}
		}
		/* What still hangs is found again by the next snapshot. */
		inflight_clear(&source.map);
	}
}

bool session_walk_inflight(struct session *s, bool final)
{
	uint64_t deadline_ns = clock_mono_ns() + WALK_BUDGET_NS;
	bool complete = true;

	s->stuck_now = 0;
	for (unsigned int i = 0; i <= CONFIG_PROBE_COUNT; i++) {
		walk_source(s, i, deadline_ns, final);
		complete = complete && s->walk_resume_ns[i] == 0;
	}
	return complete;
}

void session_seed_blocked(struct session *s)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &s->probes.probes[i];
		const struct seed_options options = {
			.procfs_fd = s->procfs_fd,
			.program_fd = probe->ops && probe->ops->seed_program ?
				probe_program_fd(probe, probe->ops->seed_program) : -1,
			.only = s->filter,
			.deadline_ns = clock_mono_ns() + SEED_BUDGET_NS,
		};
		struct seed_result result;

		if (!s->probes.attached[i] || options.program_fd < 0)
			continue;
		seed_blocked(&options, &result);
		s->incident.not_visited = result.not_visited;
		log_debug("snapshot: %u threads, %u asleep in an operation, %u not visited",
			result.visited, result.asleep, result.not_visited);
	}
}

bool session_is_in_flight(const struct session *s, unsigned int probe, uint32_t tid,
	uint64_t start_ns)
{
	struct inflight_map map = s->probes.maps.inflight;
	struct event_inflight op;

	if (!s->probes.attached[probe])
		return false;
	find_own_map(s, probe, &map);
	return inflight_find(&map, tid, &op) && op.start_ns == start_ns;
}
