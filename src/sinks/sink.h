/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where records go: a table of sinks, one encoding for all of them, and what each did not take.
 * Called by the session, from the event loop only.
 * Never waits: not for a disk, a terminal, a socket or memory.
 */
#ifndef IOSTALL_SINKS_SINK_H
#define IOSTALL_SINKS_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "record/record.h"
#include "util/text.h"

enum sink_name {
#define SINK(name, help) SINK_##name,
#include "sinks/sinks.def"
#undef SINK
	SINK_COUNT,
};

#define SINK_BIT(name) (1U << SINK_##name)

struct sinks_options {
	const struct config *config; /* read by sinks_new() only */
	/*
	 * SINK_BIT()s; `journald` and `syslog` are left out when the configuration has them
	 * disabled.
	 */
	unsigned int wanted;
	int terminal_fd; /* stays the caller's */
	bool terminal_json;
};

/* What a sink is. All but open are called from the event loop and return at once. */
struct sink {
	const char *name;
	/* At start, where waiting and allocating are allowed; a negative errno. */
	int (*open)(const struct sinks_options *options, void **ret_state);
	/* json is the same record as one line. */
	void (*write)(void *state, const struct record *r, const struct text *json);
	void (*tick)(void *state, uint64_t now_mono_ns);
	/* Lines that were not taken, since start. */
	uint64_t (*dropped)(const void *state);
	/* Whether everything that was taken has arrived; NULL when waiting would not help. */
	bool (*settled)(void *state);
	void (*close)(void *state);
};

/* By enum sink_name. */
extern const struct sink *const sinks_table[SINK_COUNT];

struct sinks;

/*
 * A negative errno when the spool cannot be used (its directory cannot be made or written, its
 * tmpfs is full): nothing else fails here. The other directories and sockets may be dead: that is
 * when an incident is worth recording.
 */
int sinks_new(const struct sinks_options *options, struct sinks **ret_sinks);
/* Closes at once, whatever is still on its way; a live record stays in the spool. */
struct sinks *sinks_free(struct sinks *sinks);

void sinks_write(struct sinks *sinks, const struct record *r);
/* Once a second, for what was not taken at once. */
void sinks_tick(struct sinks *sinks, uint64_t now_mono_ns);

/* Sets the elements spool_dropped and sink_dropped to what this incident lost since its `open`. */
void sinks_dropped(const struct sinks *sinks, uint64_t lost[RECORD_LOST_COUNT]);

/*
 * At exit only: waits until everything has arrived where it is kept, but never longer than
 * timeout_ns; what has not arrived by then stays in the spool for the next start. True when it all
 * has.
 */
bool sinks_flush(struct sinks *sinks, uint64_t timeout_ns);

#endif
