/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config_table.h"

#include <string.h>

#include "util/address.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/parse.h"

#define MSEC(n) ((n)*NSEC_PER_MSEC)
#define SEC(n) ((n)*NSEC_PER_SEC)
#define HOUR(n) ((n)*3600 * NSEC_PER_SEC)
#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define FIELD(member) .offset = offsetof(struct config, member)
#define TEXT_FIELD(member) FIELD(member), .size = sizeof(((struct config *)NULL)->member)
#define SQL_FIELD(member) FIELD(sql.targets[0].member)
#define SQL_TEXT_FIELD(member) TEXT_FIELD(sql.targets[0].member)
#define RULE_FIELD(name, member) FIELD(rules[CONFIG_RULE_##name].member)

/* PID_MAX_LIMIT of the kernel on 64-bit machines. */
#define PID_LIMIT 4194304
#define COMM_MAX 15
#define DEVICE_NAME_MAX 31

static const char *const backends[] = {
	[CONFIG_BACKEND_AUTO] = "auto",
	[CONFIG_BACKEND_FENTRY] = "fentry",
	[CONFIG_BACKEND_KPROBE] = "kprobe",
	[CONFIG_BACKEND_TRACEPOINT] = "tracepoint",
	NULL,
};

static const char *const sql_types[] = {
	[CONFIG_SQL_MARIADB] = "mariadb",
	[CONFIG_SQL_MYSQL] = "mysql",
	[CONFIG_SQL_POSTGRESQL] = "postgresql",
	NULL,
};

static const char *const sql_texts[] = {
	[CONFIG_SQL_TEXT_REDACTED] = "redacted",
	[CONFIG_SQL_TEXT_FULL] = "full",
	[CONFIG_SQL_TEXT_OFF] = "off",
	NULL,
};

static const char *check_host(const char *item)
{
	if (strchr(item, '/'))
		return "is a path, which belongs to socket";
	if (strpbrk(item, " \t"))
		return "is no name or address of a host";
	return NULL;
}

static const char *check_user(const char *item)
{
	return strpbrk(item, " \t:/") ? "is no name of a user" : NULL;
}

static const char *check_process(const char *item)
{
	const char *unit = "unit:";
	uint64_t pid;

	if (item[strspn(item, "0123456789")] == '\0') {
		if (parse_unsigned(item, &pid) < 0 || pid < 1 || pid > PID_LIMIT)
			return "is not a process id";
		return NULL;
	}
	if (strncmp(item, unit, strlen(unit)) == 0) {
		const char *name = item + strlen(unit), *dot = strrchr(name, '.');

		if (!dot || dot == name || dot[1] == '\0' || strchr(name, '/'))
			return "is not unit: and the full name of a unit, like "
			       "unit:mariadb.service";
		return NULL;
	}
	if (strlen(item) > COMM_MAX)
		return "has more than the 15 characters that a command name has in the kernel";
	return NULL;
}

static const char *check_device_pattern(const char *item)
{
	if (strchr(item, '/'))
		return "is a path, not the name of a device in /proc/diskstats";
	return NULL;
}

static const char *check_mount_pattern(const char *item)
{
	return item[0] == '/' || item[0] == '*' ? NULL : "is not a pattern of absolute paths";
}

static const char *check_address(const char *item)
{
	struct sockaddr_storage address;
	socklen_t size;

	return address_parse(item, &address, &size) < 0 ?
		"is neither unix:/PATH nor a numeric ADDRESS:PORT" : NULL;
}

static const char *check_device(const char *item)
{
	const char *colon = strchr(item, ':');
	const char *digits = "0123456789";

	if (strchr(item, '/'))
		return "is a path, not the name of a device in /proc/diskstats";
	if (strlen(item) > DEVICE_NAME_MAX)
		return "is longer than the name of any device";
	if (colon && (colon == item || strspn(item, digits) != (size_t)(colon - item) ||
			     colon[1] == '\0' || colon[1 + strspn(colon + 1, digits)] != '\0'))
		return "is neither the name of a device nor MAJOR:MINOR";
	return NULL;
}

static const char *check_cgroup(const char *item)
{
	for (const char *p = item; (p = strstr(p, "..")) != NULL; p += 2)
		if ((p == item || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
			return "leads out of the cgroup tree";
	return NULL;
}

/* clang-format off */
const struct config_setting config_settings[] = {
	{ "watch", "interval", CONFIG_TYPE_DURATION, FIELD(watch.interval_ns),
	  .min = MSEC(100), .max = SEC(60), .standard = "1s",
	  .help = "Time between two readings of the host." },
	{ "watch", "history", CONFIG_TYPE_DURATION, FIELD(watch.history_ns),
	  .min = 0, .max = SEC(600), .standard = "60s", .example = "60s",
	  .help = "Readings kept from before a trigger; they open the record. 0 keeps none." },
	{ "watch", "process", CONFIG_TYPE_LIST, FIELD(watch.process), .check_item = check_process,
	  .standard = "mariadbd mysqld postgres mongod redis-server valkey-server keydb-server "
		"clickhouse-serv influxd etcd cockroach scylla sqlservr",
	  .example = "mariadbd, 4711 or unit:mariadb.service",
	  .help = "Processes whose threads are watched: command names as the kernel has them "
		  "(at most 15 characters), process ids, or unit:NAME.service. The default is "
		  "the database servers that have a command name of their own; name one that "
		  "runs in a shared interpreter by its unit, like unit:cassandra.service." },
	{ "watch", "device", CONFIG_TYPE_LIST, FIELD(watch.device),
	  .check_item = check_device_pattern, .standard = "*", .example = "sd* nvme*",
	  .help = "Whole disks that are judged: shell patterns of names in /proc/diskstats. "
		  "Device mapper, md and loop devices are judged alone, beside the disks below "
		  "them." },
	{ "watch", "device_ignore", CONFIG_TYPE_LIST, FIELD(watch.device_ignore),
	  .check_item = check_device_pattern, .standard = "ram* zram* sr* fd*",
	  .help = "Patterns of names that are not judged, although device has them." },
	{ "watch", "filesystem", CONFIG_TYPE_LIST, FIELD(watch.filesystem),
	  .check_item = check_mount_pattern, .standard = "*", .example = "/ /var/lib/*",
	  .help = "File systems that the rules space and inodes judge: shell patterns of mount "
		  "points. Only those with a disk behind them that can be written to, at most 64; "
		  "none of FUSE, of a network or of memory." },
	{ "watch", "sql_state", CONFIG_TYPE_LIST, FIELD(watch.sql_state),
	  .standard = "Opening?tables Waiting?for*",
	  .help = "States of statements that the rule sql_state counts: shell patterns of what "
		  "MariaDB and MySQL call State and PostgreSQL wait_event, a ? for each blank." },

#define RULE(name, enabled_, set_, clear_, hold_, unit_, scope, source, help_)                     \
	{ "rule." #name, "enabled", CONFIG_TYPE_BOOL, RULE_FIELD(name, enabled),                   \
	  .standard = #enabled_, .help = "Whether the rule is judged." },                              \
	{ "rule." #name, "set", CONFIG_TYPE_THRESHOLD, RULE_FIELD(name, set), .unit = unit_,       \
	  .standard = #set_,                                                                       \
	  .help = "The rule fires when its value is over this in hold readings in a row." },       \
	{ "rule." #name, "clear", CONFIG_TYPE_THRESHOLD, RULE_FIELD(name, clear), .unit = unit_,   \
	  .standard = #clear_,                                                                     \
	  .help = "The rule ends when its value is under this. Never over set: who lowers set "    \
		"below it lowers both." },                                                         \
	{ "rule." #name, "hold", CONFIG_TYPE_COUNT, RULE_FIELD(name, hold_samples),                \
	  .min = 1, .max = 3600, .standard = #hold_, .help = "Readings in a row." },               \
	{ "rule." #name, "cooldown", CONFIG_TYPE_DURATION, RULE_FIELD(name, cooldown_ns),          \
	  .min = 0, .max = HOUR(24), .standard = "0", .example = "60s",                            \
	  .help = "After it ended, the rule does not fire again for this long." },
#include "watch/rules.def"
#undef RULE

	{ "health", "connect", CONFIG_TYPE_TEXT, TEXT_FIELD(health.connect),
	  .check_item = check_address, .standard = "", .example = "unix:/run/mysqld/mysqld.sock",
	  .help = "A socket to connect to: unix:/PATH, or a numeric ADDRESS:PORT, for which the "
		  "service needs the drop-in that iostalld(8) shows." },
	{ "health", "greeting", CONFIG_TYPE_BOOL, FIELD(health.greeting), .standard = "no",
	  .help = "Whether the server must also say something after that, as MariaDB and MySQL do "
		  "by themselves: the kernel takes a connection for a server that hangs." },
	{ "health", "command", CONFIG_TYPE_PATH, TEXT_FIELD(health.command),
	  .standard = "", .example = "/usr/local/lib/check-database",
	  .help = "A program instead, which goes before connect. It is started ahead and kept; for "
		  "each check it reads a line \"check\" from its standard input and answers with a "
		  "line \"ok\". One that says more is ended. It has no capabilities." },
	{ "health", "interval", CONFIG_TYPE_DURATION, FIELD(health.interval_ns),
	  .min = SEC(1), .max = HOUR(1), .standard = "5s", .help = "Time between two checks." },
	{ "health", "timeout", CONFIG_TYPE_DURATION, FIELD(health.timeout_ns),
	  .min = MSEC(10), .max = SEC(60), .standard = "2s",
	  .help = "A check without an answer for this long has failed. Never over interval." },

	{ "trace", "backend", CONFIG_TYPE_CHOICE, FIELD(trace.backend), .choices = backends,
	  .standard = "auto",
	  .help = "How probes are attached: auto tries all and takes the best that works on "
		  "this kernel, any other name takes that one or none. A probe that does not have "
		  "the one named takes what it has." },
	{ "trace", "min_stall", CONFIG_TYPE_DURATION, FIELD(trace.min_stall_ns),
	  .min = MSEC(1), .max = SEC(60), .standard = "100ms",
	  .help = "An operation that takes at least this long is a stall. Applied in the "
		  "kernel: shorter ones cost no event." },
	{ "trace", "process", CONFIG_TYPE_LIST, FIELD(trace.process), .check_item = check_process,
	  .standard = "", .example = "mariadbd",
	  .help = "Processes that are traced, in the forms of watch.process; none named: all." },
	{ "trace", "cgroup", CONFIG_TYPE_LIST, FIELD(trace.cgroup), .check_item = check_cgroup,
	  .standard = "", .example = "/system.slice/mariadb.service",
	  .help = "Control groups that are traced, as paths below the root of cgroup2; none "
		  "named: all." },
	{ "trace", "device", CONFIG_TYPE_LIST, FIELD(trace.device), .check_item = check_device,
	  .standard = "", .example = "sdb",
	  .help = "Devices whose files are traced, by name or as MAJOR:MINOR; none named: all." },
	{ "trace", "ring_bytes", CONFIG_TYPE_RING_SIZE, FIELD(trace.ring_bytes),
	  .min = KIB(64), .max = MIB(64), .standard = "512K",
	  .help = "Room for events on their way out of the kernel." },
	{ "trace", "inflight_max", CONFIG_TYPE_COUNT, FIELD(trace.inflight_max),
	  .min = 1024, .max = 1 << 20, .standard = "16384",
	  .help = "Operations that can be in flight at once; those beyond it are counted as "
		  "lost." },

#define PROBE(name, help_)                                                                         \
	{ "probe." #name, "enabled", CONFIG_TYPE_BOOL, FIELD(probes[CONFIG_PROBE_##name].enabled), \
	  .standard = "yes", .help = "Whether the probe is armed." },
#include "probes/probes.def"
#undef PROBE

	{ "incident", "max_time", CONFIG_TYPE_DURATION, FIELD(incident.max_time_ns),
	  .min = SEC(1), .max = HOUR(1), .standard = "60s",
	  .help = "Probes are disarmed after this, whether or not the stall is over." },
	{ "incident", "clear_time", CONFIG_TYPE_DURATION, FIELD(incident.clear_time_ns),
	  .min = MSEC(100), .max = SEC(600), .standard = "5s",
	  .help = "Probes are disarmed when all rules were clear and nothing was stuck for "
		  "this long." },
	{ "incident", "cooldown", CONFIG_TYPE_DURATION, FIELD(incident.cooldown_ns),
	  .min = 0, .max = HOUR(24), .standard = "60s", .example = "60s",
	  .help = "No new incident is opened for this long after one has ended." },

	{ "record", "spool_dir", CONFIG_TYPE_PATH, TEXT_FIELD(record.spool_dir),
	  .standard = "/run/iostall",
	  .help = "Where an incident is written while it lasts: a directory on tmpfs, never on "
		  "a disk that may stall." },
	{ "record", "dir", CONFIG_TYPE_PATH, TEXT_FIELD(record.dir), .standard = "/var/log/iostall",
	  .help = "Where finished records are kept." },
	{ "record", "spool_bytes", CONFIG_TYPE_SIZE, FIELD(record.spool_bytes),
	  .min = KIB(256), .max = MIB(64), .standard = "4M",
	  .help = "The most that one incident may take, allocated and locked ahead." },
	{ "record", "max_bytes", CONFIG_TYPE_SIZE, FIELD(record.max_bytes),
	  .min = MIB(1), .max = GIB(1024), .standard = "256M",
	  .help = "Kept records together; the oldest go first." },
	{ "record", "max_count", CONFIG_TYPE_COUNT, FIELD(record.max_count),
	  .min = 1, .max = 1000000, .standard = "1000", .help = "Number of kept records." },
	{ "record", "max_age", CONFIG_TYPE_DURATION, FIELD(record.max_age_ns),
	  .min = 0, .max = HOUR(87600), .standard = "2160h",
	  .help = "Age of kept records; the default is 90 days, 0 is no limit." },

	{ "journal", "enabled", CONFIG_TYPE_BOOL, FIELD(journal.enabled), .standard = "yes",
	  .help = "One entry when an incident opens, one with the verdict when it closes." },
	{ "journal", "socket", CONFIG_TYPE_PATH, TEXT_FIELD(journal.socket),
	  .standard = "/run/systemd/journal/socket", .help = "The journal's native socket." },
	{ "journal", "statements", CONFIG_TYPE_BOOL, FIELD(journal.statements), .standard = "no",
	  .help = "Whether the entry at close has the text of the culprit's statement (see sql.text). "
		  "Off because others may read the journal than the records." },
	{ "syslog", "enabled", CONFIG_TYPE_BOOL, FIELD(syslog.enabled), .standard = "no",
	  .help = "The same two lines to syslog. Off because the journal usually forwards." },
	{ "syslog", "socket", CONFIG_TYPE_PATH, TEXT_FIELD(syslog.socket), .standard = "/dev/log",
	  .help = "The datagram socket of syslog." },
	{ "syslog", "statements", CONFIG_TYPE_BOOL, FIELD(syslog.statements), .standard = "no",
	  .help = "As journal.statements, for the line to syslog." },
	{ "sql", "enabled", CONFIG_TYPE_BOOL, FIELD(sql.enabled), .standard = "yes",
	  .help = "Whether databases are asked which statement a thread runs. With no section "
		  "[sql.NAME], mariadbd, mysqld and postgres are tried over their usual sockets "
		  "when they run." },
	{ "sql", "text", CONFIG_TYPE_CHOICE, FIELD(sql.text), .choices = sql_texts,
	  .standard = "redacted",
	  .help = "How statements are recorded: redacted has a ? for every literal, off has none." },
	{ "sql", "text_bytes", CONFIG_TYPE_COUNT, FIELD(sql.text_bytes),
	  .min = 0, .max = 4095, .standard = "1024",
	  .help = "A statement is cut at this many bytes." },
	{ "sql", "interval", CONFIG_TYPE_DURATION, FIELD(sql.interval_ns),
	  .min = SEC(1), .max = SEC(600), .standard = "60s", .example = "60s",
	  .help = "Time between two questions while no incident is open; then they are asked "
		  "each second. A question costs a database half a millisecond." },
	{ CONFIG_SQL_ANY, "enabled", CONFIG_TYPE_BOOL, SQL_FIELD(enabled), .standard = "yes",
	  .help = "Whether this one is asked." },
	{ CONFIG_SQL_ANY, "type", CONFIG_TYPE_CHOICE, SQL_FIELD(type), .choices = sql_types,
	  .standard = "mariadb", .help = "Kind of server." },
	{ CONFIG_SQL_ANY, "socket", CONFIG_TYPE_PATH, SQL_TEXT_FIELD(socket),
	  .standard = "", .example = "/run/mysqld/mysqld.sock",
	  .help = "Unix socket of the server; empty is the usual one. Not with host." },
	{ CONFIG_SQL_ANY, "host", CONFIG_TYPE_TEXT, SQL_TEXT_FIELD(host), .check_item = check_host,
	  .standard = "", .example = "127.0.0.1",
	  .help = "Host to reach by TCP instead. Which thread a statement runs on is then not "
		  "known, and the service needs the drop-in that iostalld(8) shows." },
	{ CONFIG_SQL_ANY, "port", CONFIG_TYPE_COUNT, SQL_FIELD(port),
	  .min = 0, .max = 65535, .standard = "0", .example = "3306",
	  .help = "TCP port; 0 is the usual one." },
	{ CONFIG_SQL_ANY, "user", CONFIG_TYPE_TEXT, SQL_TEXT_FIELD(user),
	  .standard = "iostall", .help = "Account in the database." },
	{ CONFIG_SQL_ANY, "password_file", CONFIG_TYPE_PATH, SQL_TEXT_FIELD(password_file),
	  .standard = "", .example = "/etc/iostall/password",
	  .help = "File whose first line is the password; one that the database refuses is read anew "
		  "within a minute. Empty where the database knows the "
		  "account by its user of the system (unix_socket, peer)." },
	{ CONFIG_SQL_ANY, "option_file", CONFIG_TYPE_PATH, SQL_TEXT_FIELD(option_file),
	  .standard = "", .example = "/etc/iostall/main.cnf",
	  .help = "File with settings of the client library: sections [client] and [iostall] of a "
		  "my.cnf, [iostall] of a service file of libpq. Read as run_as. A user in it counts "
		  "where user is the default; with neither it is that of run_as." },
	{ CONFIG_SQL_ANY, "run_as", CONFIG_TYPE_TEXT, SQL_TEXT_FIELD(run_as),
	  .check_item = check_user, .standard = "iostall", .example = "iostall",
	  .help = "User of the system that the helper process becomes." },
	{ "control", "socket", CONFIG_TYPE_PATH, TEXT_FIELD(control.socket),
	  .standard = "/run/iostall/control.sock",
	  .help = "Where iostall trigger and iostall status reach the daemon." },
};

const struct config_section config_sections[] = {
	{ "watch", NULL, "What is read while the host is well." },
#define RULE(name, enabled_, set_, clear_, hold_, unit_, scope, source, help_)                     \
	{ "rule." #name, "rule", "Value (" #scope ", " unit_ "): " help_ "." },
#include "watch/rules.def"
#undef RULE
	{ "health", NULL, "A check of your own, which the rule health judges." },
	{ "trace", NULL, "What is recorded once the probes are armed." },
#define PROBE(name, help_) { "probe." #name, "probe", "Sees " help_ "." },
#include "probes/probes.def"
#undef PROBE
	{ "incident", NULL, "When an incident ends." },
	{ "record", NULL, "Where records go and how long they stay." },
	{ "journal", NULL, "Lines to the systemd journal." },
	{ "syslog", NULL, "Lines to syslog." },
	{ "sql", NULL, "Databases whose statements the record names." },
	{ CONFIG_SQL_ANY, "sql", "A target; NAME is yours to choose." },
	{ "control", NULL, "The daemon's control socket." },
};
/* clang-format on */

const unsigned int config_settings_count = ARRAY_SIZE(config_settings);
const unsigned int config_sections_count = ARRAY_SIZE(config_sections);

_Static_assert(ARRAY_SIZE(config_settings) <= CONFIG_SETTINGS_MAX, "raise CONFIG_SETTINGS_MAX");

const char *config_group_help(const char *group)
{
	static const struct {
		const char *name, *help;
	} groups[] = {
		{ "rule",
			"Rules: each fires alone and arms the probes, since no single signal sees "
			"every "
			"stall. A threshold may be followed by its unit. A rule about a host, a "
			"device or a process fires again when what it saw outlasts the incident; "
			"the others fire once until they are clear." },
		{ "probe", "Probes: what is armed when a rule fires." },
		{ "sql",
			"Database targets: at most 8, each with a section and a helper process of its "
			"own. NAME has up to 31 of the characters a-z, 0-9, _ and -." },
	};

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (strcmp(groups[i].name, group) == 0)
			return groups[i].help;
	return "";
}

static bool is_sql_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < CONFIG_SQL_SECTION_SIZE - strlen(CONFIG_SQL_SECTION) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

bool config_section_is(const char *of_table, const char *name)
{
	const size_t len = strlen(CONFIG_SQL_SECTION);

	if (strcmp(of_table, name) == 0)
		return true;
	return strcmp(of_table, CONFIG_SQL_ANY) == 0 &&
	       strncmp(name, CONFIG_SQL_SECTION, len) == 0 && is_sql_name(name + len);
}

const struct config_section *config_find_section(const char *name)
{
	for (unsigned int i = 0; i < config_sections_count; i++)
		if (config_section_is(config_sections[i].name, name))
			return &config_sections[i];
	return NULL;
}

const struct config_setting *config_find_setting(const char *section, const char *key)
{
	for (unsigned int i = 0; i < config_settings_count; i++)
		if (strcmp(config_settings[i].key, key) == 0 &&
			config_section_is(config_settings[i].section, section))
			return &config_settings[i];
	return NULL;
}
