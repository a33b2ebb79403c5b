/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the configuration and the users of this host again, on a thread that may hang with a disk.
 * Used by the daemon at a reload (reload.c).
 * Never waits. Only config_reader_start() and config_reader_rest() allocate or free, so they are
 * not for an open incident.
 */
#ifndef IOSTALL_DAEMON_CONFIG_READER_H
#define IOSTALL_DAEMON_CONFIG_READER_H

#include <stdint.h>

#include "config/config.h"
#include "enrich/enrich.h"
#include "health/health.h"

struct config_reader;
struct loop;

struct config_reader_options {
	struct loop *loop;
	const struct config_source *source; /* its strings must stay valid for ever */
	const char *passwd;		    /* likewise */
	uint64_t limit_ns;
	/* Called on the event loop when the state is no longer READING. */
	void (*tell)(void *userdata);
	void *userdata;
};

enum config_reader_state {
	CONFIG_READER_RESTING,
	CONFIG_READER_READING,
	CONFIG_READER_READ, /* there is an answer */
	CONFIG_READER_LATE, /* there is no answer within the limit; one may come all the same */
};

struct config_answer {
	int error; /* 0 or a negative errno, of the configuration */
	char message[CONFIG_ERROR_SIZE];
	struct config config; /* if there is no error */
	struct enrich_users users;
	struct health_accounts accounts;
};

/* 0 or a negative errno. */
int config_reader_new(const struct config_reader_options *options,
	struct config_reader **ret_reader);
/* Leaves behind what hangs. NULL is accepted. */
struct config_reader *config_reader_free(struct config_reader *reader);

/* Only while it is resting. -EBUSY: too many threads hang that were left behind. */
int config_reader_start(struct config_reader *reader);
enum config_reader_state config_reader_get_state(const struct config_reader *reader);
/* Only in the state READ, and valid until it rests. */
const struct config_answer *config_reader_answer(const struct config_reader *reader);
/* Frees the answer; where there is none, the thread that reads is left behind. */
void config_reader_rest(struct config_reader *reader);

#endif
