/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "sinks/sink.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define SINK(name_, help_) extern const struct sink sink_##name_;
#include "sinks/sinks.def"
#undef SINK

const struct sink *const sinks_table[SINK_COUNT] = {
#define SINK(name_, help_) [SINK_##name_] = &sink_##name_,
#include "sinks/sinks.def"
#undef SINK
};

struct sinks {
	void *states[SINK_COUNT];	     /* NULL: not in use */
	uint64_t dropped_before[SINK_COUNT]; /* those that earlier records have counted */
	uint64_t dropped_counted[SINK_COUNT];
	struct text line;
	char line_buf[RECORD_LINE_SIZE];
};

unsigned int sinks_used(const struct config *config, bool foreground)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < SINK_COUNT; i++)
		if (sinks_table[i]->is_used(config, foreground))
			used |= 1U << i;
	return used;
}

static void cleanup_sinks(struct sinks **sinks)
{
	sinks_free(*sinks);
}

int sinks_new(const struct sinks_options *options, struct sinks **ret_sinks)
{
	_cleanup_(cleanup_sinks) struct sinks *sinks = calloc(1, sizeof(*sinks));

	if (!sinks)
		return -ENOMEM;
	sinks->line = TEXT_ON(sinks->line_buf);
	for (unsigned int i = 0; i < SINK_COUNT; i++) {
		int r;

		if (!(options->wanted & 1U << i))
			continue;
		r = sinks_table[i]->open(options, &sinks->states[i]);
		if (r < 0)
			return r;
	}
	*ret_sinks = TAKE_PTR(sinks);
	return 0;
}

struct sinks *sinks_free(struct sinks *sinks)
{
	if (!sinks)
		return NULL;
	for (unsigned int i = SINK_COUNT; i-- > 0;)
		if (sinks->states[i])
			sinks_table[i]->close(sinks->states[i]);
	free(sinks);
	return NULL;
}

/* What the spool loses belongs to one record; a message may be lost after its record was closed. */
static void begin_counting(struct sinks *sinks, unsigned int i)
{
	sinks->dropped_before[i] = i == SINK_spool ? sinks_table[i]->dropped(sinks->states[i])
						   : sinks->dropped_counted[i];
}

void sinks_write(struct sinks *sinks, const struct record *r)
{
	record_encode_json(r, &sinks->line);
	for (unsigned int i = 0; i < SINK_COUNT; i++) {
		void *state = sinks->states[i];

		if (!state)
			continue;
		if (r->type == RECORD_OPEN)
			begin_counting(sinks, i);
		sinks_table[i]->write(state, r, &sinks->line);
	}
}

void sinks_print(struct sinks *sinks, const struct text *text)
{
	for (unsigned int i = 0; i < SINK_COUNT; i++)
		if (sinks->states[i] && sinks_table[i]->print)
			sinks_table[i]->print(sinks->states[i], text);
}

void sinks_tick(struct sinks *sinks, uint64_t now_mono_ns)
{
	for (unsigned int i = 0; i < SINK_COUNT; i++)
		if (sinks->states[i])
			sinks_table[i]->tick(sinks->states[i], now_mono_ns);
}

void sinks_dropped(struct sinks *sinks, uint64_t lost[RECORD_LOST_COUNT])
{
	lost[RECORD_LOST_spool_dropped] = 0;
	lost[RECORD_LOST_sink_dropped] = 0;
	for (unsigned int i = 0; i < SINK_COUNT; i++) {
		unsigned int cause =
			i == SINK_spool ? RECORD_LOST_spool_dropped : RECORD_LOST_sink_dropped;

		if (!sinks->states[i])
			continue;
		if (sinks_table[i]->make_room)
			sinks_table[i]->make_room(sinks->states[i]);
		sinks->dropped_counted[i] = sinks_table[i]->dropped(sinks->states[i]);
		lost[cause] += sinks->dropped_counted[i] - sinks->dropped_before[i];
	}
}

bool sinks_keep_records(const struct sinks *sinks)
{
	for (unsigned int i = 0; i < SINK_COUNT; i++)
		if (sinks->states[i] && sinks_table[i]->keeps_records &&
			sinks_table[i]->keeps_records(sinks->states[i]))
			return true;
	return false;
}

/* Each is asked, as it goes on with its work then. */
static bool sinks_are_flushed(struct sinks *sinks)
{
	bool all = true;

	for (unsigned int i = 0; i < SINK_COUNT; i++)
		if (sinks->states[i] && sinks_table[i]->flushed)
			all &= sinks_table[i]->flushed(sinks->states[i]);
	return all;
}

bool sinks_flush(struct sinks *sinks, uint64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = 2 * (long)NSEC_PER_MSEC };
	uint64_t begin_ns = clock_mono_ns();

	while (!sinks_are_flushed(sinks)) {
		if (clock_mono_ns() - begin_ns >= timeout_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
