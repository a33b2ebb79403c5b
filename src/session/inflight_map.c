/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the map with the in-flight operations of a probe, and looks up one of them. */
#include <bpf/bpf.h>

#include "session/internal.h"
#include "snapshot/sleeps.h"

bool session_find_own_map(const struct session *s, unsigned int index, struct inflight_map *ret_map)
{
	return s->probes.attached[index] && probe_inflight_map(&s->probes.probes[index], ret_map);
}

bool session_is_in_flight(const struct session *s, unsigned int probe, uint32_t tid,
	uint64_t start_ns)
{
	struct inflight_map map;
	struct event_inflight op;

	return session_find_own_map(s, probe, &map) && inflight_find(&map, tid, &op) &&
		op.start_ns == start_ns;
}

void session_add_sleeps(const struct session *s, struct record_operation *op)
{
	uint64_t now_ns = op->start_mono_ns + op->dur_ns, slept_ns;
	uint32_t tid = (uint32_t)op->tid;
	struct inflight_map map;
	struct event_sleep sleep;

	if (!session_find_own_map(s, CONFIG_PROBE_wait, &map) || map.value_size != sizeof(sleep) ||
		bpf_map_lookup_elem(map.fd, &tid, &sleep) < 0 ||
		!sleeps_add_up(&sleep, op->start_mono_ns, now_ns, &slept_ns))
		return;
	op->slept_ns = (int64_t)slept_ns;
	op->sleeps = (int32_t)sleep.sleeps;
}
