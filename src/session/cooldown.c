/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/cooldown.h"

#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"

/* Below this a disk counts as hardly used. */
#define IDLE_PCT 50

/* Of the incidents before the one that ends first; NULL: all are of the open one. */
static struct cooldown_cause *find_oldest(struct cooldown *c)
{
	struct cooldown_cause *oldest = NULL;

	for (uint32_t i = 0; i < c->causes_count; i++)
		if (c->causes[i].until_ns && (!oldest || c->causes[i].until_ns < oldest->until_ns))
			oldest = &c->causes[i];
	return oldest;
}

static void note(struct cooldown *c, const char *name, bool is_disk)
{
	struct cooldown_cause *cause = c->causes;
	const struct cooldown_cause *end = c->causes + c->causes_count;

	while (cause < end && (cause->is_disk != is_disk || strcmp(cause->name, name) != 0))
		cause++;
	if (cause == c->causes + COOLDOWN_CAUSES_MAX)
		cause = find_oldest(c);
	else
		c->causes_count += *name && cause == end;
	if (!*name || !cause)
		return;
	cause->until_ns = 0;
	cause->is_disk = is_disk;
	text_copy(cause->name, sizeof(cause->name), name);
}

void cooldown_note_disk(struct cooldown *c, const char *name)
{
	note(c, name, true);
}

void cooldown_note_subject(struct cooldown *c, const char *name)
{
	note(c, name, false);
}

void cooldown_note_trigger(struct cooldown *c, const struct record_trigger *trigger)
{
	cooldown_note_disk(c, trigger->device);
	cooldown_note_subject(c, trigger->subject);
}

/* What an earlier incident was about, and what can open one again. */
static void forget_old_causes(struct cooldown *c, uint64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->causes_count; i++)
		if (!c->causes[i].until_ns || c->causes[i].until_ns > now_ns)
			c->causes[kept++] = c->causes[i];
	c->causes_count = kept;
}

void cooldown_begin(struct cooldown *c, uint64_t now_ns, uint64_t length_ns, bool is_clear)
{
	forget_old_causes(c, now_ns);
	c->began_ns = now_ns;
	c->until_ns = now_ns + length_ns;
	if (!is_clear)
		c->unclear_until_ns = c->until_ns;
	for (uint32_t i = 0; i < c->causes_count; i++)
		if (!c->causes[i].until_ns)
			c->causes[i].until_ns = c->until_ns;
}

static bool is_same(const struct cooldown_cause *cause, const struct model_disks *stack,
	const struct record_trigger *trigger)
{
	if (!cause->is_disk)
		return strcmp(cause->name, trigger->subject) == 0;
	return *trigger->device &&
		(model_disks_name_is_on(stack, trigger->device, cause->name) ||
			model_disks_name_is_on(stack, cause->name, trigger->device));
}

static bool is_at_work(const struct record_reading *sample, const char *disk)
{
	for (uint32_t i = 0; i < sample->devices_count && i < RECORD_DEVICES_MAX; i++)
		if (strcmp(sample->devices[i].dev_name, disk) == 0)
			return sample->devices[i].util_pct >= IDLE_PCT ||
				sample->devices[i].no_completion_ns > 0;
	return false;
}

/* Threads, programs, services and databases: they may suffer from a disk that they do not name. */
static bool may_be_victim(enum rules_scope scope)
{
	return scope == RULES_SCOPE_process || scope == RULES_SCOPE_program ||
		scope == RULES_SCOPE_lock || scope == RULES_SCOPE_service ||
		scope == RULES_SCOPE_database;
}

bool cooldown_holds_back(const struct cooldown *c, const struct model_disks *stack,
	const struct record_reading *sample, const struct record_trigger *trigger,
	enum rules_scope scope, uint64_t now_ns)
{
	bool is_about_host =
		scope != RULES_SCOPE_process && !*trigger->device && !*trigger->subject;

	if (is_about_host || c->causes_count == COOLDOWN_CAUSES_MAX)
		return true;
	if (scope == RULES_SCOPE_process && now_ns < c->unclear_until_ns)
		return true;
	for (uint32_t i = 0; i < c->causes_count; i++) {
		const struct cooldown_cause *cause = &c->causes[i];

		if (now_ns >= cause->until_ns)
			continue;
		if (is_same(cause, stack, trigger))
			return true;
		if (may_be_victim(scope) && cause->is_disk && is_at_work(sample, cause->name))
			return true;
	}
	return false;
}

void cooldown_count(struct cooldown *c, const struct record_trigger *trigger)
{
	const char *name = *trigger->device ? trigger->device : trigger->subject;
	uint32_t i = 0;

	while (i < c->held_count &&
		(strcmp(c->held[i].rule, trigger->rule) != 0 || strcmp(c->held[i].name, name) != 0))
		i++;
	if (i == COOLDOWN_HELD_MAX) {
		c->held_left_out++;
		return;
	}
	if (i == c->held_count) {
		c->held[c->held_count++] = (struct cooldown_held){ 0 };
		text_copy(c->held[i].rule, sizeof(c->held[i].rule), trigger->rule);
		text_copy(c->held[i].name, sizeof(c->held[i].name), name);
	}
	c->held[i].count++;
}

bool cooldown_take_held(struct cooldown *c, struct text *t)
{
	const bool any = c->held_count > 0;

	for (uint32_t i = 0; i < c->held_count; i++) {
		text_addf(t, "%s%s", i ? ", " : "", c->held[i].rule);
		if (*c->held[i].name) {
			text_add(t, " of ");
			text_add_printable(t, c->held[i].name, strlen(c->held[i].name));
		}
		text_addf(t, " %" PRIu64 " %s", c->held[i].count,
			c->held[i].count == 1 ? "time" : "times");
	}
	if (c->held_left_out)
		text_addf(t, ", others %" PRIu64 " times", c->held_left_out);
	c->held_count = 0;
	c->held_left_out = 0;
	return any;
}
