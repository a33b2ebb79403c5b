/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/servers.h"

#include "model/model.h"

static bool is_known(struct record_dev dev)
{
	return dev.major || dev.minor;
}

static bool is_same_dev(struct record_dev a, struct record_dev b)
{
	return a.major == b.major && a.minor == b.minor;
}

/* There is one audit daemon, whatever the file. */
static bool has_file_system(enum record_cause cause)
{
	return cause != RECORD_CAUSE_audit;
}

bool model_servers_is_same(const struct model_wait *a, const struct model_wait *b)
{
	return a->cause == b->cause && (!has_file_system(a->cause) || is_same_dev(a->dev, b->dev));
}

static bool is_same_answer(const struct record_file_server *a, const struct record_file_server *b)
{
	return a->waits_for == b->waits_for && is_same_dev(a->dev, b->dev);
}

static bool is_answer_for(const struct record_file_server *found, const struct model_wait *w)
{
	/* Older records do not say what was waited for: it was a file system. */
	const bool is_cause = found->waits_for
		? found->waits_for == w->cause
		: w->cause != RECORD_CAUSE_access_check && w->cause != RECORD_CAUSE_audit;

	return is_cause && (!has_file_system(w->cause) || is_same_dev(found->dev, w->dev));
}

/* Whoever is found later has taken the place of the first, unless that was a guess. */
static bool is_better(const struct record_file_server *found, const struct record_file_server *old)
{
	return !old->pid || found->pid == old->pid ||
		(found->basis == RECORD_BASIS_measured && old->basis != RECORD_BASIS_measured);
}

void model_servers_add(struct model_servers *servers, const struct record_file_server *found)
{
	struct model_server *s = servers->list;

	if (!found->present)
		return;
	while (s < servers->list + servers->count && !is_same_answer(&s->found, found))
		s++;
	if (s == servers->list + MODEL_SERVERS_MAX)
		return;
	if (s == servers->list + servers->count)
		servers->list[servers->count++] = (struct model_server){ .found = *found };
	if (!is_better(found, &s->found))
		return;
	s->was_stopped &= s->found.pid == found->pid;
	s->was_stopped |= found->state == 'T' || found->state == 't';
	s->found = *found;
}

const struct model_server *model_servers_find(const struct model_servers *servers,
	const struct model_wait *w)
{
	for (uint32_t i = 0; i < servers->count; i++)
		if (is_answer_for(&servers->list[i].found, w))
			return &servers->list[i];
	return NULL;
}

/* Of what hung before, which explains least, and where there is an answer, the last. */
static unsigned int urgency_of(const struct model_servers *servers, const struct model_wait *w)
{
	const struct model_server *s = model_servers_find(servers, w);
	const bool is_answered = s && (s->found.pid || s->found.search != RECORD_SEARCH_NONE);

	return (!w->is_early || w->is_pile_up ? 2u : 0u) + (is_answered ? 0u : 1u);
}

const struct model_wait *model_servers_to_find(const struct model *m, uint64_t now_ns)
{
	const struct model_wait *most = NULL;

	for (uint32_t i = 0; i < m->waits.groups_count; i++) {
		const struct model_wait *w = &m->waits.groups[i];
		const bool is_question = w->cause == RECORD_CAUSE_access_check ||
			w->cause == RECORD_CAUSE_audit || is_known(w->dev);
		unsigned int urgency = urgency_of(&m->host.servers, w);

		if (record_wait_of(w->cause) != RECORD_WAIT_server || w->is_kernel ||
			!is_question || !model_waits_find_hanging(m, (int)i, now_ns).count)
			continue;
		if (!most || urgency > urgency_of(&m->host.servers, most) ||
			(urgency == urgency_of(&m->host.servers, most) &&
				w->longest_ns > most->longest_ns))
			most = w;
	}
	return most;
}
