/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A reload: other settings, and for some of them another session, while no incident is open. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config_reader.h"
#include "daemon/internal.h"
#include "enrich/enrich.h"
#include "health/health.h"
#include "session/session.h"
#include "sql/sql.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/notify.h"
#include "util/passwd.h"
#include "watch/rules.h"
#include "watch/watch.h"

/*
 * A disk that only is saturated delivers a few small files within seconds. While it hangs, nobody
 * but the reader waits for it.
 */
#define READ_LIMIT_NS (10 * NSEC_PER_SEC)

int daemon_new_session(struct daemon *d, const struct config *config, struct session **ret_session)
{
	const struct session_options options = {
		.config = config,
		.generation = d->generation++,
		.kernel_types = &d->kernel_types,
		.replaced = d->session,
		.procfs = d->o->procfs,
		.sysfs = d->o->sysfs,
		.loop = d->loop,
		.watch = d->watch,
		.rules = d->rules,
		.enrich = d->enrich,
		.sinks = d->sinks,
		.sql = d->sql,
		.capture_fd = d->capture_fd,
	};
	int r = session_new(&options, ret_session);

	if (r == 0)
		session_set_callbacks(*ret_session, d->loaded, d->closed, d);
	return r;
}

static void log_what_needs_restart(const struct config *a, const struct config *b)
{
	if (memcmp(&a->record, &b->record, sizeof(a->record)) != 0 ||
		memcmp(&a->journal, &b->journal, sizeof(a->journal)) != 0 ||
		memcmp(&a->syslog, &b->syslog, sizeof(a->syslog)) != 0 ||
		a->hooks_count != b->hooks_count ||
		memcmp(a->hooks, b->hooks, sizeof(a->hooks)) != 0 ||
		memcmp(&a->control, &b->control, sizeof(a->control)) != 0)
		log_warning(
			"changes in [record], [journal], [syslog], [hook.NAME] and [control] take "
			"effect at the next start");
}

/* What the daemon says of its directories, sockets and hooks is what they are. */
static void keep_what_needs_restart(const struct config *in_effect, struct config *config)
{
	config->record = in_effect->record;
	config->journal = in_effect->journal;
	config->syslog = in_effect->syslog;
	config->hooks_count = in_effect->hooks_count;
	memcpy(config->hooks, in_effect->hooks, sizeof(config->hooks));
	config->control = in_effect->control;
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

static void keep_config(const char *why)
{
	log_error("%s", why);
	log_error("configuration not reloaded: the running configuration is kept");
	notify_manager("READY=1");
}

/* Memory that is short may be there again soon; each try takes a second of CPU time. */
#define GROW_PAUSE_NS (60 * NSEC_PER_SEC)
#define GROW_PAUSE_MAX_NS (3600 * NSEC_PER_SEC)

static void refuse_config(int error)
{
	char why[128];

	snprintf(why, sizeof(why), "the new configuration cannot be used: %s", strerror(-error));
	keep_config(why);
}

static void take_config(struct daemon *d, struct config *config,
	const struct health_accounts *accounts)
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
	health_replace(&d->health, d->loop, d->config, config, accounts);
	loop_set_timer(d->sample_timer, config->watch.interval_ns, config->watch.interval_ns);
	log_reloaded(d->config, config);
	keep_what_needs_restart(d->config, config);
	free(d->config);
	d->config = config;
	notify_manager("READY=1");
}

void daemon_take_next(struct daemon *d)
{
	struct session *old = d->session;

	if (d->stopping || !d->next_is_loaded || !session_is_settled(old))
		return;
	session_inherit(d->next, old);
	d->session = d->next;
	d->next = NULL;
	d->next_is_loaded = false;
	d->grow_after_ns = d->grow_pause_ns = 0;
	session_retire(old);
	if (d->next_config)
		take_config(d, TAKE_PTR(d->next_config), &d->next_accounts);
	else
		log_info("probes loaded anew: now there is room for all threads of this host");
}

static void refuse_next(struct daemon *d, int error)
{
	if (d->next_config) {
		free(TAKE_PTR(d->next_config));
		refuse_config(error);
		return;
	}
	if (d->grow_pause_ns == 0)
		d->grow_pause_ns = GROW_PAUSE_NS;
	else if (d->grow_pause_ns < GROW_PAUSE_MAX_NS)
		d->grow_pause_ns = 2 * d->grow_pause_ns < GROW_PAUSE_MAX_NS ? 2 * d->grow_pause_ns
									    : GROW_PAUSE_MAX_NS;
	d->grow_after_ns = clock_mono_ns() + d->grow_pause_ns;
	log_warning(
		"there is no room for all threads of this host, and no more can be made now (%s); "
		"what is lost will be counted, and it is tried again in %.0f min",
		strerror(-error), (double)d->grow_pause_ns / (60 * NSEC_PER_SEC));
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

	/* Threads pile up in a shortage of memory, too, which this would make worse. */
	if (d->next || clock_mono_ns() < d->grow_after_ns || d->stopping ||
		watch_lacks_memory(d->watch) || !session_is_outgrown(d->session))
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
static int use_config(struct daemon *d, struct config *config,
	const struct health_accounts *accounts)
{
	int r;

	if (session_can_keep_probes(d->config, config)) {
		session_set_config(d->session, config);
		take_config(d, config, accounts);
		return 0;
	}
	r = daemon_new_session(d, config, &d->next);
	if (r == 0) {
		d->next_config = config;
		d->next_accounts = *accounts;
	}
	return r;
}

static void use_answer(struct daemon *d, const struct config_answer *answer)
{
	struct config *config;
	int r;

	if (answer->error < 0) {
		keep_config(answer->message);
		return;
	}
	config = malloc(sizeof(*config));
	if (!config) {
		keep_config("out of memory");
		return;
	}
	*config = answer->config;
	enrich_set_users(d->enrich, &answer->users);
	r = use_config(d, config, &answer->accounts);
	if (r < 0) {
		free(config);
		refuse_config(r);
	}
}

/* Another SIGHUP may have come meanwhile; then the configuration is read once more. */
static void finish_reading(struct daemon *d)
{
	char why[256];

	switch (config_reader_get_state(d->config_reader)) {
	case CONFIG_READER_READ:
		use_answer(d, config_reader_answer(d->config_reader));
		break;
	case CONFIG_READER_LATE:
		snprintf(why, sizeof(why),
			"the configuration could not be read within %llu s: its disk, or that of " PASSWD_FILE
			", does not answer. Send SIGHUP again when it does",
			READ_LIMIT_NS / NSEC_PER_SEC);
		keep_config(why);
		break;
	default:
		return;
	}
	config_reader_rest(d->config_reader);
}

static void begin_reading(struct daemon *d)
{
	int r = config_reader_start(d->config_reader);

	d->reload_wanted = false;
	if (r == -EBUSY)
		keep_config("the configuration cannot be read: earlier attempts still wait for its "
			    "disk. Send SIGHUP again when it answers");
	else if (r < 0)
		refuse_config(r);
}

static bool may_reload(const struct daemon *d)
{
	return !d->stopping && !d->next && session_is_settled(d->session);
}

void daemon_reload(struct daemon *d)
{
	if (may_reload(d))
		finish_reading(d);
	if (d->reload_wanted && may_reload(d) &&
		config_reader_get_state(d->config_reader) == CONFIG_READER_RESTING)
		begin_reading(d);
}

bool daemon_is_reloading(const struct daemon *d)
{
	return d->reload_wanted || d->next_config ||
		config_reader_get_state(d->config_reader) != CONFIG_READER_RESTING;
}

static void on_read(void *userdata)
{
	daemon_reload(userdata);
}

int daemon_prepare_reload(struct daemon *d)
{
	const struct config_reader_options options = {
		.loop = d->loop,
		.source = &d->o->source,
		.passwd = PASSWD_FILE,
		.limit_ns = READ_LIMIT_NS,
		.tell = on_read,
		.userdata = d,
	};

	return config_reader_new(&options, &d->config_reader);
}
