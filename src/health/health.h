/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user's own check of a service: a connection, or a program that is started once.
 * Used by the daemon, and by `doctor` for one check; gives its result to the watchdog.
 * Never blocks but in health_find_accounts(), and starts no process while an incident is open.
 */
#ifndef IOSTALL_HEALTH_HEALTH_H
#define IOSTALL_HEALTH_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "health/child.h"
#include "util/loop.h"
#include "record/structs.h"

struct health;
struct watch;

/*
 * Called after each check with 0 or a negative errno; -EPROTO: the program did not answer "ok".
 */
typedef void (*health_callback)(void *userdata, int result);

/* The users as which the program may run. */
struct health_accounts {
	bool has_run_as; /* the user health.run_as exists */
	bool has_nobody;
	struct program_user run_as;
	struct program_user nobody;
};

/* Reads a file like /etc/passwd, which may hang with its disk: not on the event loop. */
void health_find_accounts(const char *path, const struct config *config,
	struct health_accounts *ret_accounts);

/*
 * The first check begins at once. *ret_health is NULL when [health] names nothing to check. 0 or a
 * negative errno.
 */
int health_new(struct loop *loop, const struct config *config,
	const struct health_accounts *accounts, struct health **ret_health);
struct health *health_free(struct health *health);

/* Why a check has failed, e.g. "no answer within health.timeout". */
const char *health_describe(int result);

void health_set_callback(struct health *health, health_callback callback, void *userdata);

/* Fills what is known at now_ns; health may be NULL. */
void health_get(const struct health *health, uint64_t now_ns, struct record_health *ret_health);
/* "unix:/run/mysqld/mysqld.sock", or the path of the program; "" when health is NULL. */
const char *health_target(const struct health *health);

/*
 * Called before each sample: gives the result to the watchdog. When no incident is open, a program
 * that has ended is started again. health may be NULL.
 */
void health_tell(struct health *health, struct watch *watch, bool incident_open);

/*
 * Replaces the check at a reload; at the start, `before` is NULL. If its settings are the same, the
 * check goes on, and its program will use the accounts when it has to be started again. If the new
 * check cannot be started, the log says why, and there is none.
 */
void health_replace(struct health **health, struct loop *loop, const struct config *before,
	const struct config *config, const struct health_accounts *accounts);

#endif
