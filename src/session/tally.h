/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is counted over all incidents that have been closed since the start of the daemon.
 * Owned by the session, which passes it on to the one that takes its place; read by metrics.c.
 */
#ifndef IOSTALL_SESSION_TALLY_H
#define IOSTALL_SESSION_TALLY_H

#include "config/config.h"
#include "record/record.h"

struct tally {
	/* By the rule that opened it, and by its class; in the last place those by hand. */
	uint64_t closed[CONFIG_RULE_COUNT + 1][RECORD_CLASS_COUNT];
	uint64_t lost[RECORD_LOST_COUNT];
	/* Of requests, as in the `device` line. */
	uint64_t queue[RECORD_HISTOGRAM_MAX], device[RECORD_HISTOGRAM_MAX];
	uint64_t last_real_ns; /* when the last one was opened; 0: there was none */
};

void tally_open(struct tally *tally, uint64_t now_real_ns);
/* Takes only the line before `close`. */
void tally_add_device(struct tally *tally, const struct record_device *device);
/* `rule` as in the trigger; `manual` is none of the configuration. */
void tally_close(struct tally *tally, const char *rule, enum record_class class,
	const struct record_close *close);

#endif
