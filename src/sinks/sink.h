/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The destinations of records: a table of sinks, one encoding for all of them, and how many lines
 * each sink has lost.
 * Called by the session and the daemon, on the event loop only.
 * Never waits: not for a disk, a terminal, a socket or memory.
 */
#ifndef IOSTALL_SINKS_SINK_H
#define IOSTALL_SINKS_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
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
	unsigned int wanted;	     /* SINK_BIT()s */
	int terminal_fd;	     /* still owned by the caller */
	bool terminal_json;
};

/* A sink. All functions but `open` are called on the event loop and return at once. */
struct sink {
	const char *name;
	/*
	 * For a sink that sends to a socket: which, and the section of its settings. `iostall
	 * doctor` checks it.
	 */
	const char *section;
	const char *(*socket)(const struct config *config);
	/* Whether `iostall watch` (foreground) or the daemon uses it with this configuration. */
	bool (*is_used)(const struct config *config, bool foreground);
	/* Called at start, when it may wait and allocate; 0 or a negative errno. */
	int (*open)(const struct sinks_options *options, void **ret_state);
	/* `json` is the same record as one line. */
	void (*write)(void *state, const struct record *r, const struct text *json);
	/* Text for the person who watches; NULL: nobody does. */
	void (*print)(void *state, const struct text *text);
	void (*tick)(void *state, uint64_t now_mono_ns);
	/*
	 * Called before `close` is written, whose counts are then final: what `close` would
	 * displace is lost now. NULL: it displaces nothing.
	 */
	void (*make_room)(void *state);
	/* Number of lines lost since start. */
	uint64_t (*dropped)(const void *state);
	/*
	 * Called at exit only: whether all lines have arrived at their destination, or waiting any
	 * longer would not help. NULL: it never helps.
	 */
	bool (*flushed)(void *state);
	/* Whether records stay in the spool directory; NULL: it has nothing to do with that. */
	bool (*keeps_records)(const void *state);
	void (*close)(void *state);
};

/* Indexed by enum sink_name. */
extern const struct sink *const sinks_table[SINK_COUNT];

struct sinks;

/* The SINK_BIT()s of all sinks that are used. */
unsigned int sinks_used(const struct config *config, bool foreground);

/*
 * Returns a negative errno when the spool cannot be used (its directory cannot be made or written,
 * or its tmpfs is full; -EMEDIUMTYPE: it is not on tmpfs; -DIR_EUNSAFE: others could change the
 * records in it, see dir_check()). Nothing else fails: when other directories and sockets do not
 * respond, an incident is worth recording.
 */
int sinks_new(const struct sinks_options *options, struct sinks **ret_sinks);
/*
 * Closes at once without waiting for lines to arrive; the record of an open incident stays in the
 * spool.
 */
struct sinks *sinks_free(struct sinks *sinks);

void sinks_write(struct sinks *sinks, const struct record *r);
/* For the terminal only: a text that is no part of a record. */
void sinks_print(struct sinks *sinks, const struct text *text);
/* Called once a second: retries what could not be written at once. */
void sinks_tick(struct sinks *sinks, uint64_t now_mono_ns);

/*
 * For `close`: sets the element spool_dropped to the losses since the incident's `open`, and
 * sink_dropped to those that no earlier record has counted.
 */
void sinks_dropped(struct sinks *sinks, uint64_t lost[RECORD_LOST_COUNT]);

/*
 * Whether records stay in record.spool_dir, because record.dir cannot be used or does not respond.
 */
bool sinks_keep_records(const struct sinks *sinks);

/*
 * Called at exit only: waits until all lines have arrived, but not longer than timeout_ns. Records
 * that have not arrived by then stay in the spool for the next start. Returns whether all arrived.
 */
bool sinks_flush(struct sinks *sinks, uint64_t timeout_ns);

#endif
