/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is counted over all incidents since the start of the daemon.
 * Owned by the session, which passes it on to the one that takes its place; read by metrics.c.
 */
#ifndef IOSTALL_SESSION_TALLY_H
#define IOSTALL_SESSION_TALLY_H

#include "config/config.h"
#include "record/record.h"

struct tally {
	/* By the rule that opened it; in the last place those by hand. */
	uint64_t opened[CONFIG_RULE_COUNT + 1];
	uint64_t last_real_ns[CONFIG_RULE_COUNT + 1]; /* 0: there was none */
	/* And by its class. */
	uint64_t closed[CONFIG_RULE_COUNT + 1][RECORD_CLASS_COUNT];
	uint64_t lost[RECORD_LOST_COUNT];
	/* Of requests, as in the `device` line. */
	uint64_t queue[RECORD_HISTOGRAM_MAX], device[RECORD_HISTOGRAM_MAX];
};

/* `rule` is the one of the trigger; `manual` is none of the configuration. */
void tally_open(struct tally *tally, const char *rule, uint64_t now_real_ns);
/* Takes only the line before `close`. */
void tally_add_device(struct tally *tally, const struct record_device *device);
void tally_close(struct tally *tally, const char *rule, enum record_class class,
	const struct record_close *close);

#endif
