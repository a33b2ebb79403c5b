/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/servers.h"

#include <string.h>

#include "model/model.h"
#include "model/wait_times.h"

/* There is one audit daemon, whatever the file. */
static bool has_file_system(enum record_cause cause)
{
	return cause != RECORD_CAUSE_audit;
}

static bool is_same_answer(const struct record_file_server *a, const struct record_file_server *b)
{
	return a->waits_for == b->waits_for && record_dev_is_same(a->dev, b->dev);
}

static bool is_answer_for(const struct record_file_server *found, const struct model_wait *w)
{
	/* Older records do not say what was waited for: it was a file system. */
	const bool is_cause = found->waits_for
		? found->waits_for == w->cause
		: w->cause != RECORD_CAUSE_access_check && w->cause != RECORD_CAUSE_audit;

	return is_cause && (!has_file_system(w->cause) || record_dev_is_same(found->dev, w->dev));
}

/* The first that is found stays, unless it was a guess: another one has taken its place since. */
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

/* "10.0.0.1" of "10.0.0.1:/export", and "//files" of "//files/share"; 0: it has no host. */
static size_t host_length(const char *source)
{
	const char *end =
		strncmp(source, "//", 2) == 0 ? strchr(source + 2, '/') : strstr(source, ":/");

	return end ? (size_t)(end - source) : 0;
}

static bool is_same_host(const struct model_server *a, const struct model_server *b)
{
	const size_t length = a && b ? host_length(a->found.source) : 0;

	return length && length == host_length(b->found.source) &&
		strncmp(a->found.source, b->found.source, length) == 0;
}

bool model_servers_is_same(const struct model_servers *servers, const struct model_wait *a,
	const struct model_wait *b)
{
	if (a->cause != b->cause)
		return false;
	return !has_file_system(a->cause) || record_dev_is_same(a->dev, b->dev) ||
		(!record_cause_has_process(a->cause) &&
			is_same_host(model_servers_find(servers, a),
				model_servers_find(servers, b)));
}

/* The mount says all that is known of another host. */
static bool is_answered(const struct model_servers *servers, const struct model_wait *w)
{
	const struct model_server *s = model_servers_find(servers, w);

	return s &&
		(!record_cause_has_process(w->cause) || s->found.pid ||
			s->found.search != RECORD_SEARCH_NONE);
}

static bool has_place(const struct model_servers *servers, const struct model_wait *w)
{
	return servers->count < MODEL_SERVERS_MAX || model_servers_find(servers, w);
}

/* Of what hung before, which explains least, and where there is an answer, the last. */
static unsigned int urgency_of(const struct model_servers *servers, const struct model_wait *w)
{
	return (!w->is_early || w->is_pile_up ? 2u : 0u) + (is_answered(servers, w) ? 0u : 1u);
}

const struct model_wait *model_servers_to_find(const struct model *m, uint64_t now_ns)
{
	const struct model_wait *most = NULL;

	for (uint32_t i = 0; i < m->waits.groups_count; i++) {
		const struct model_wait *w = &m->waits.groups[i];
		const bool is_question = w->cause == RECORD_CAUSE_access_check ||
			w->cause == RECORD_CAUSE_audit || model_has_number(w->dev);
		unsigned int urgency = urgency_of(&m->host.servers, w);

		if (record_wait_of(w->cause) != RECORD_WAIT_server || w->is_kernel ||
			!is_question || !has_place(&m->host.servers, w) ||
			!model_waits_find_hanging(m, (int)i, now_ns).count)
			continue;
		if (!most || urgency > urgency_of(&m->host.servers, most) ||
			(urgency == urgency_of(&m->host.servers, most) &&
				w->longest_ns > most->longest_ns))
			most = w;
	}
	return most;
}
