/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user's own check of the service: a connection, or a program that is started ahead and kept.
 * Owned by the daemon, and by `doctor` for one check; the watchdog is given what it found.
 * Never blocks, and starts no process while an incident is open.
 */
#ifndef IOSTALL_HEALTH_H
#define IOSTALL_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "loop.h"
#include "watch/sample.h"

struct health;
struct watch;

/* After each check: 0, or a negative errno; -EPROTO: the program answered something else than "ok". */
typedef void (*health_callback)(void *userdata, int result);

/*
 * The first check begins at once. *ret_health is NULL when [health] names nothing to check. 0 or a
 * negative errno.
 */
int health_new(struct loop *loop, const struct config *config, struct health **ret_health);
struct health *health_free(struct health *health);

/* "no answer in time": why a check has failed. */
const char *health_describe(int result);

void health_set_callback(struct health *health, health_callback callback, void *userdata);

/* What is known at now_ns; health may be NULL. */
void health_get(const struct health *health, uint64_t now_ns, struct watch_health *ret_health);
/* "unix:/run/mysqld/mysqld.sock", or the path of the program; "" when health is NULL. */
const char *health_target(const struct health *health);

/*
 * Before each sample: what it is to say. When no incident is open, a program that has ended is started
 * again. health may be NULL.
 */
void health_tell(struct health *health, struct watch *watch, bool incident_open);

/*
 * The check of another configuration, `before` being NULL at the start. One that is the same keeps what
 * it knows; without one everything else is watched, and the log says why.
 */
void health_replace(struct health **health, struct loop *loop, const struct config *before,
	const struct config *config);

#endif
