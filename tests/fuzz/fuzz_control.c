/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a request on the control socket, answered by the daemon with a session without
 * probes: the answer is one JSON object, or metrics, and an incident that was opened can be closed
 * again.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control.h"
#include "daemon/internal.h"
#include "enrich/enrich.h"
#include "sinks/sink.h"
#include "util/log.h"
#include "util/loop.h"
#include "watch/rules.h"
#include "watch/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROCFS "tests/fixtures/events/made.procfs"
#define SYSFS "tests/fixtures/events/sysfs"
#define REQUEST_MAX SERVER_REQUEST_MAX

static void must(int r)
{
	if (r < 0) {
		fprintf(stderr, "fuzz_control: %s; run it in the root of the tree\n", strerror(-r));
		abort();
	}
}

static struct daemon *make_daemon(void)
{
	static const struct daemon_options options = { .procfs = PROCFS, .sysfs = SYSFS };
	static struct config config;
	static struct daemon d = { .o = &options, .config = &config, .capture_fd = -1 };
	const struct sinks_options sinks = { .config = &config };
	struct watch_options watch = { .procfs = PROCFS, .sysfs = SYSFS };
	struct session_options session;

	log_set_level(LOG_LEVEL_ERROR);
	config_set_defaults(&config);
	watch_options_from_config(&config, &watch);
	must(loop_new(&d.loop));
	must(sinks_new(&sinks, &d.sinks));
	must(watch_new(&watch, &d.watch));
	must(rules_new(config.rules, &d.rules));
	must(enrich_new(PROCFS, d.watch, &d.enrich));
	session = (struct session_options){
		.config = &config,
		.procfs = PROCFS,
		.sysfs = SYSFS,
		.loop = d.loop,
		.watch = d.watch,
		.rules = d.rules,
		.enrich = d.enrich,
		.sinks = d.sinks,
		.without_probes = true,
		.capture_fd = -1,
	};
	must(session_new(&session, &d.session));
	must(daemon_prepare_reload(&d));
	return &d;
}

static void check_answer(const struct text *answer)
{
	json_error_t error;
	json_t *object = json_loadb(answer->buf, answer->len, JSON_REJECT_DUPLICATES, &error);

	if (answer->overflow || !json_is_object(object))
		abort();
	json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct daemon *d;
	char request[REQUEST_MAX + 1], buf[CONTROL_MESSAGE_MAX];
	struct text answer = TEXT_ON(buf);
	uid_t uid;

	if (!d)
		d = make_daemon();
	if (size < 2)
		return 0;
	uid = data[0] % 2 ? 0 : 1000;
	size = size - 1 < REQUEST_MAX ? size - 1 : REQUEST_MAX;
	memcpy(request, data + 1, size);
	request[size] = '\0';
	text_reset(&answer);
	daemon_answer(d, request, uid, &answer);
	if (strcmp(request, "metrics") != 0)
		check_answer(&answer);
	else if (answer.len == 0 || answer.buf[answer.len - 1] != '\n')
		abort();
	if (uid != 0 && session_is_open(d->session))
		abort();
	session_stop(d->session, RECORD_REASON_stopped);
	if (session_is_open(d->session))
		abort();
	return 0;
}
