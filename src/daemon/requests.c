/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon answers at its control socket, and to Prometheus. */
#include <string.h>

#include "daemon/internal.h"
#include "daemon/metrics.h"
#include "daemon/status.h"
#include "util/clock.h"
#include "util/parse.h"

static struct daemon_status status_of(const struct daemon *d)
{
	return (struct daemon_status){
		.config = d->config,
		.session = d->session,
		.watch = d->watch,
		.rules = d->rules,
		.sql = d->sql,
		.uptime_ns = clock_mono_ns() - d->started_ns,
		.started_real_ns = d->started_real_ns,
		.reload_waits = daemon_is_reloading(d),
	};
}

static void answer_status(const struct daemon *d, struct text *answer)
{
	const struct daemon_status status = status_of(d);

	daemon_add_status(&status, answer);
}

static void answer_trigger(struct daemon *d, const char *argument, uid_t uid, struct text *answer)
{
	uint64_t hold_ns = DAEMON_HOLD_NS;
	char buf[96];
	struct text limit = TEXT_ON(buf);
	const char *incident = NULL;

	text_reset(&limit);
	text_add(&limit, "longer than incident.max_time; expected at most ");
	record_add_duration(&limit, d->config->incident.max_time_ns);
	text_json_open(answer, NULL, '{');
	if (uid != 0)
		text_json_string(answer, "error", "only root may trigger");
	else if (d->stopping)
		text_json_string(answer, "error",
			"the daemon is stopping and opens no incident any more");
	else if (*argument && parse_unsigned(argument, &hold_ns) < 0)
		text_json_string(answer, "error",
			"the time is invalid; expected a number of nanoseconds");
	else if (hold_ns > d->config->incident.max_time_ns)
		text_json_string(answer, "error", limit.buf);
	else
		incident = daemon_trigger(d, hold_ns ? hold_ns : DAEMON_HOLD_NS);
	if (incident)
		text_json_string(answer, "incident", incident);
	text_json_close(answer, '}');
}

void daemon_answer_scrape(void *userdata, enum metrics_format format, struct text *answer)
{
	const struct daemon_status status = status_of(userdata);

	metrics_add(&status, format, answer);
}

void daemon_answer(void *userdata, const char *request, uid_t uid, struct text *answer)
{
	struct daemon *d = userdata;

	if (strcmp(request, "status") == 0) {
		answer_status(d, answer);
	} else if (strcmp(request, "metrics") == 0) {
		daemon_answer_scrape(d, METRICS_TEXTFILE, answer);
	} else if (strncmp(request, "trigger ", 8) == 0) {
		answer_trigger(d, request + 8, uid, answer);
	} else {
		text_json_open(answer, NULL, '{');
		text_json_string(answer, "error",
			"unknown request; expected status, metrics or trigger");
		text_json_close(answer, '}');
	}
}
