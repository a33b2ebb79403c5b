/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/own_work.h"

#include <string.h>

static bool is_session(const struct model *m, int32_t tid)
{
	return model_sessions_find_runner(&m->sessions, tid) != NULL;
}

static bool is_of(const struct culprit *c, const struct model_load *load)
{
	return c->kind == CULPRIT_UNIT ? load->cgroup == c->cgroup
				       : strcmp(load->who.comm, c->who.comm) == 0;
}

/* One of the processes of that program or unit that the block probe has told of. */
static bool is_among(const struct model *m, const struct culprit *c, int32_t pid)
{
	for (uint32_t i = 0; i < m->loads.count; i++) {
		const struct model_loads_of *of = &m->loads.list[i];

		for (uint32_t k = 0; k < of->counts[RECORD_BY_process]; k++)
			if (of->processes[k].who.pid == pid && is_of(c, &of->processes[k]))
				return true;
	}
	return false;
}

/* Whether the process did half of what all of that program or unit did themselves on a disk. */
static bool did_half(const struct model *m, const struct culprit *c, int32_t pid)
{
	for (uint32_t i = 0; i < m->loads.count; i++) {
		const struct model_loads_of *of = &m->loads.list[i];
		uint64_t all_ns = 0, own_ns = 0;

		for (uint32_t k = 0; k < of->counts[RECORD_BY_process]; k++) {
			const struct model_load *load = &of->processes[k];

			all_ns += is_of(c, load) ? load->busy_ns : 0;
			own_ns += is_of(c, load) && load->who.pid == pid ? load->busy_ns : 0;
		}
		if (own_ns > 0 && own_ns >= all_ns / 2)
			return true;
	}
	return false;
}

static bool is_of_group(const struct culprit *c, const struct model_wait *w)
{
	return c->kind == CULPRIT_UNIT ? w->cgroup && w->cgroup == c->cgroup
				       : strcmp(w->who.comm, c->who.comm) == 0;
}

/*
 * Of many processes each waits for the others, unless it did half of it all, and a client waits for
 * a session.
 */
static bool is_own_of_many(const struct model *m, const struct culprit *c,
	const struct model_wait *w, int32_t pid, int32_t tid)
{
	if (is_session(m, tid))
		return did_half(m, c, pid);
	return is_among(m, c, pid) || is_of_group(c, w);
}

bool own_work_of_group(const struct model *m, const struct culprit *c, const struct model_wait *w)
{
	if (!c->has_half)
		return false;
	switch (c->kind) {
	case CULPRIT_PROCESS:
		return !w->is_several && w->who.pid == c->who.pid;
	case CULPRIT_PROGRAM:
	case CULPRIT_UNIT:
		return is_of_group(c, w) && !is_session(m, w->who.tid);
	default:
		return false;
	}
}

bool own_work_of_thread(const struct model *m, const struct culprit *c, const struct model_wait *w,
	const struct model_thread *t)
{
	if (!c->has_half)
		return false;
	switch (c->kind) {
	case CULPRIT_PROCESS:
		return t->pid == c->who.pid;
	case CULPRIT_PROGRAM:
	case CULPRIT_UNIT:
		return is_own_of_many(m, c, w, t->pid, t->tid);
	case CULPRIT_STATEMENT:
		return t->tid == c->who.tid ||
			model_sessions_ran(&m->sessions, t->tid, c->statement.text);
	case CULPRIT_THREAD:
		return t->tid == c->who.tid;
	default:
		return false;
	}
}
