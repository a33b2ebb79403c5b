/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A reload: other settings, and for some of them another session, while no incident is open. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/internal.h"
#include "enrich/enrich.h"
#include "health/health.h"
#include "session/session.h"
#include "sql/sql.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/notify.h"
#include "watch/rules.h"
#include "watch/watch.h"

static void log_what_needs_restart(const struct config *a, const struct config *b)
{
	if (memcmp(&a->record, &b->record, sizeof(a->record)) != 0 ||
		memcmp(&a->journal, &b->journal, sizeof(a->journal)) != 0 ||
		memcmp(&a->syslog, &b->syslog, sizeof(a->syslog)) != 0 ||
		memcmp(&a->control, &b->control, sizeof(a->control)) != 0)
		log_warning(
			"changes in [record], [journal], [syslog] and [control] take effect at the "
			"next start");
}

static void log_change(void *userdata, const char *change)
{
	(void)userdata;
	log_info("configuration: %s", change);
}

static void log_reloaded(const struct config *before, const struct config *after)
{
	log_info("configuration reloaded from %s", after->origin);
	if (config_compare(before, after, log_change, NULL) == 0)
		log_info("configuration: nothing changed");
	log_what_needs_restart(before, after);
}

static void finish_reload(int error)
{
	if (error < 0) {
		log_error("the new configuration cannot be used: %s", strerror(-error));
		log_error("configuration not reloaded: the running configuration is kept");
	}
	notify_manager("READY=1");
}

static void take_config(struct daemon *d, struct config *config)
{
	struct watch_options watch = {};
	int r;

	watch_options_from_config(config, &watch);
	r = watch_reload(d->watch, &watch);
	if (r < 0)
		log_warning("the settings in [watch] cannot be changed: %s", strerror(-r));
	r = d->sql ? sql_reload(d->sql, config) : 0;
	if (r < 0)
		log_warning("not every database will be asked: %s", strerror(-r));
	rules_reload(d->rules, config->rules);
	enrich_reload_users(d->enrich);
	health_replace(&d->health, d->loop, d->config, config);
	loop_set_timer(d->sample_timer, config->watch.interval_ns, config->watch.interval_ns);
	log_reloaded(d->config, config);
	free(d->config);
	d->config = config;
	finish_reload(0);
}

void daemon_take_next(struct daemon *d)
{
	struct session *old = d->session;

	if (!d->next_is_loaded || !session_is_settled(old))
		return;
	session_inherit(d->next, old);
	d->session = d->next;
	d->next = NULL;
	d->next_is_loaded = false;
	session_retire(old);
	if (d->next_config)
		take_config(d, TAKE_PTR(d->next_config));
	else
		log_info("probes loaded anew: now there is room for all threads of this host");
}

static void refuse_next(struct daemon *d, int error)
{
	if (d->next_config) {
		free(TAKE_PTR(d->next_config));
		finish_reload(error);
		return;
	}
	d->cannot_grow = true;
	log_warning(
		"there is no room for all threads of this host, and no more can be made (%s); what "
		"is lost will be counted",
		strerror(-error));
}

void daemon_next_loaded(struct daemon *d, int error)
{
	if (error < 0) {
		d->next = session_free(d->next);
		refuse_next(d, error);
		return;
	}
	d->next_is_loaded = true;
	daemon_take_next(d);
}

void daemon_grow(struct daemon *d)
{
	int r;

	if (d->next || d->cannot_grow || d->stopping || !session_is_outgrown(d->session))
		return;
	log_debug("this host has more threads than there is room for: loading the probes anew");
	r = daemon_new_session(d, d->config, &d->next);
	if (r < 0)
		refuse_next(d, r);
}

/*
 * A new session is made where thresholds change that are fixed when programs are loaded. If that
 * fails, the old session stays.
 */
static int use_config(struct daemon *d, struct config *config)
{
	int r;

	if (session_can_keep_probes(d->config, config)) {
		session_set_config(d->session, config);
		take_config(d, config);
		return 0;
	}
	r = daemon_new_session(d, config, &d->next);
	if (r == 0)
		d->next_config = config;
	return r;
}

void daemon_reload(struct daemon *d)
{
	struct config *config;
	char error[CONFIG_ERROR_SIZE] = "out of memory";
	int r = -ENOMEM;

	if (!d->reload_wanted || d->next || !session_is_settled(d->session))
		return;
	d->reload_wanted = false;
	config = malloc(sizeof(*config));
	if (config)
		r = config_load(config, &d->o->source, error);
	if (r < 0) {
		log_error("%s", error);
		log_error("configuration not reloaded: the running configuration is kept");
		notify_manager("READY=1");
	} else {
		r = use_config(d, config);
		if (r < 0)
			finish_reload(r);
	}
	if (r < 0)
		free(config);
}
