/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/commands.h"
#include "util/clock.h"
#include "util/exit.h"
#include "util/text.h"

static const char *string_of(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* The two largest units that say something: "3 d 4 h", "12 min 5 s", "42 s". */
static void add_time(struct text *t, uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = { { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } };
	uint64_t rest = ns / NSEC_PER_SEC;
	unsigned int i = 0;

	while (i < 3 && rest < units[i].seconds)
		i++;
	text_addf(t, "%" PRIu64 " %s", rest / units[i].seconds, units[i].name);
	rest %= units[i].seconds;
	if (i < 3 && rest / units[i + 1].seconds > 0)
		text_addf(t, " %" PRIu64 " %s", rest / units[i + 1].seconds, units[i + 1].name);
}

static bool is_incident_open(const char *state)
{
	return strcmp(state, "idle") != 0 && strcmp(state, "loading") != 0 &&
		strcmp(state, "cooldown") != 0;
}

static void add_state(struct text *t, const json_t *s)
{
	const char *state = string_of(s, "state");

	if (is_incident_open(state))
		text_addf(t, "%s, incident %s is open", state, string_of(s, "incident"));
	else if (strcmp(state, "idle") == 0)
		text_add(t, "idle, no incident is open");
	else if (strcmp(state, "loading") == 0)
		text_add(t, "loading, a trigger will be kept until the probes are ready");
	else
		text_add(t, "cooldown, rules open no incident for ");
	if (strcmp(state, "cooldown") == 0)
		add_time(t, number_of(s, "cooldown_ns"));
}

static void add_incidents(struct text *t, const json_t *s)
{
	uint64_t count = number_of(s, "incidents");

	if (count == 0)
		text_add(t, "none since the daemon started");
	else
		text_addf(t, "%" PRIu64 " since the daemon started, the last is %s", count,
			string_of(s, "incident"));
}

static void add_last_fired(struct text *t, const json_t *s)
{
	const json_t *last = json_object_get(s, "last_fired");
	const char *device = string_of(last, "device"), *subject = string_of(last, "subject");

	if (!json_is_object(last)) {
		text_add(t, "none since the daemon started");
		return;
	}
	text_add(t, string_of(last, "rule"));
	if (*device || *subject)
		text_add(t, " on ");
	text_add_printable(t, *device ? device : subject, strlen(*device ? device : subject));
	text_addf(t, ", %g %s is above %g, ", json_number_value(json_object_get(last, "value")),
		string_of(last, "unit"), json_number_value(json_object_get(last, "threshold")));
	add_time(t, number_of(last, "ago_ns"));
	text_add(t, " ago");
}

static void add_last_verdict(struct text *t, const json_t *s)
{
	const json_t *last = json_object_get(s, "last_verdict");
	const char *message = string_of(last, "message");

	if (!json_is_object(last)) {
		text_add(t, "none since the daemon started");
		return;
	}
	text_addf(t, "%s, %s%s: ", string_of(last, "incident"), string_of(last, "class"),
		json_is_true(json_object_get(last, "final")) ? "" : " so far");
	text_add_printable(t, message, strlen(message));
}

/* Rules that fired when none could open an incident. */
static void add_in_cooldown(struct text *t, const json_t *s)
{
	const json_t *rule;
	size_t i;

	json_array_foreach(json_object_get(s, "rules"), i, rule)
	{
		uint64_t count = number_of(rule, "fired_in_cooldown");

		if (count > 0)
			text_addf(t, "%s%s %" PRIu64 " %s", t->len ? ", " : "",
				string_of(rule, "name"), count, count == 1 ? "time" : "times");
	}
	if (t->len == 0)
		text_add(t, "none");
}

static void add_configuration(struct text *t, const json_t *s)
{
	const char *origin = string_of(s, "configuration");

	text_add_printable(t, origin, strlen(origin));
	if (json_is_true(json_object_get(s, "reload_waits")))
		text_add(t,
			is_incident_open(string_of(s, "state"))
				? "; a reload waits for the open incident to be closed"
				: "; a reload is under way");
}

static void add_daemon(struct text *t, const json_t *s)
{
	text_addf(t, "iostall %s, pid %" PRIu64 ", up ", string_of(s, "version"),
		number_of(s, "pid"));
	add_time(t, number_of(s, "uptime_ns"));
	text_addf(t, ", %.1f s of CPU time", (double)number_of(s, "cpu_ns") / (double)NSEC_PER_SEC);
	text_addf(t, ", %.1f MiB of memory and %.1f MiB in the kernel",
		(double)number_of(s, "rss_bytes") / (1 << 20),
		(double)number_of(s, "kernel_bytes") / (1 << 20));
}

static void add_probes(struct text *t, const json_t *s)
{
	text_add(t, string_of(s, "probes"));
}

static void add_watched(struct text *t, const json_t *s)
{
	uint64_t left_out = number_of(s, "processes_left_out");
	uint64_t disks = number_of(s, "disks_left_out");
	uint64_t unread = number_of(s, "samples_unread");

	text_add_count(t, number_of(s, "watched_processes"), "process", "processes");
	if (left_out > 0)
		text_addf(t, "; %" PRIu64 " more are left out, since there is no room for them",
			left_out);
	if (disks > 0)
		text_addf(t,
			"; %" PRIu64 " disks at work are left out, since there is no room for them",
			disks);
	if (unread > 0)
		text_addf(t, "; %" PRIu64 " samples lack what the kernel did not tell in time",
			unread);
}

static void print_rules(const json_t *s)
{
	const char *comma = "  disabled: ";
	const json_t *rule;
	size_t i;

	printf("rules, %" PRIu64 " active now:\n", number_of(s, "rules_active"));
	json_array_foreach(json_object_get(s, "rules"), i, rule)
	{
		uint64_t samples = number_of(rule, "hold_samples");

		if (json_is_true(json_object_get(rule, "enabled")))
			printf("  %-14s fires above %g %s in %" PRIu64 " %s, clears below %g %s\n",
				string_of(rule, "name"),
				json_number_value(json_object_get(rule, "set")),
				string_of(rule, "unit"), samples,
				samples == 1 ? "sample" : "samples in a row",
				json_number_value(json_object_get(rule, "clear")),
				string_of(rule, "unit"));
	}
	json_array_foreach(json_object_get(s, "rules"), i, rule)
	{
		if (json_is_true(json_object_get(rule, "enabled")))
			continue;
		printf("%s%s", comma, string_of(rule, "name"));
		comma = ", ";
	}
	puts(*comma == ',' ? "" : "  none is disabled");
}

static void print_databases(json_t *s)
{
	const char *name;
	bool any = false;
	json_t *value;

	json_object_foreach(s, name, value)
	{
		char buf[512];
		struct text state = TEXT_ON(buf);

		if (strncmp(name, CONFIG_SQL_SECTION, strlen(CONFIG_SQL_SECTION)) != 0)
			continue;
		text_reset(&state);
		text_add_printable(&state, json_string_value(value), json_string_length(value));
		printf("%s  %-14s %s\n", any ? "" : "databases:\n",
			name + strlen(CONFIG_SQL_SECTION), buf);
		any = true;
	}
	if (!any)
		puts("databases: none is asked");
}

static void print_status(json_t *s)
{
	static const struct {
		const char *name;
		void (*add)(struct text *t, const json_t *s);
	} lines[] = {
		{ "daemon", add_daemon },
		{ "state", add_state },
		{ "configuration", add_configuration },
		{ "incidents", add_incidents },
		{ "last verdict", add_last_verdict },
		{ "last rule fired", add_last_fired },
		{ "in a cooldown", add_in_cooldown },
		{ "probes", add_probes },
		{ "watching", add_watched },
	};
	uint64_t dropped = number_of(s, "log_dropped");

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char buf[4096];
		struct text t = TEXT_ON(buf);

		text_reset(&t);
		lines[i].add(&t, s);
		printf("%-16s %s\n", lines[i].name, buf);
	}
	if (dropped > 0)
		printf("%-16s %" PRIu64 " lines dropped, since standard error did not take them\n",
			"log", dropped);
	print_databases(s);
	print_rules(s);
}

static int run(const struct options *o)
{
	json_t *answer;
	int code = ask_daemon(o, "status", &answer);

	if (code != EXIT_CODE_OK)
		return code;
	if (o->json) {
		json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
		putchar('\n');
	} else {
		print_status(answer);
	}
	json_decref(answer);
	return EXIT_CODE_OK;
}

const struct options_command command_status = {
	.name = "status",
	.summary = "show what the running daemon is doing",
	.help = "Show what the running daemon is doing: its state, the configuration in force, the last\n"
		"incident, the last verdict, which rule fired last, which rules fired in a cooldown and\n"
		"so opened no incident, the databases, and the thresholds of the rules. With --json all\n"
		"of it is one JSON object. Root and the group adm may ask.",
	.run = run,
};
