/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/table.h"

#include <stdlib.h>
#include <string.h>

#include "iostall/event.h"
#include "util/capability.h"
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
#define HOOK_FIELD(member) FIELD(hooks[0].member)
#define HOOK_TEXT_FIELD(member) TEXT_FIELD(hooks[0].member)
#define RULE_FIELD(name, member) FIELD(rules[CONFIG_RULE_##name].member)

/* PID_MAX_LIMIT of the kernel on 64-bit machines. */
#define PID_LIMIT 4194304
#define COMM_MAX 15
#define DEVICE_NAME_MAX 31
/* 12 and 20 bits, see MKDEV() in the kernel. */
#define MAJOR_MAX 0xfff
#define MINOR_MAX 0xfffff

static const char *const backends[] = {
	[CONFIG_BACKEND_AUTO] = "auto",
	[CONFIG_BACKEND_FENTRY] = "fentry",
	[CONFIG_BACKEND_KPROBE] = "kprobe",
	[CONFIG_BACKEND_TRACEPOINT] = "tracepoint",
	NULL,
};

static const char *const pairings[] = {
	[CONFIG_PAIRING_SLEEP] = "sleep",
	[CONFIG_PAIRING_ENTRY] = "entry",
	NULL,
};

static const char *const sql_types[] = {
#define DATABASE(NAME, name, ...) [CONFIG_SQL_##NAME] = #name,
#include "sql/databases.def"
#undef DATABASE
	NULL,
};

static const char *const sql_texts[] = {
	[CONFIG_SQL_TEXT_REDACTED] = "redacted",
	[CONFIG_SQL_TEXT_FULL] = "full",
	[CONFIG_SQL_TEXT_OFF] = "off",
	NULL,
};

static const char *const sql_tls[] = {
	[CONFIG_SQL_TLS_VERIFY] = "verify",
	[CONFIG_SQL_TLS_OFF] = "off",
	NULL,
};

static const char *check_host(const char *item)
{
	if (strchr(item, '/'))
		return "is a path; paths belong to socket";
	if (strpbrk(item, " \t"))
		return "is not the name or address of a host";
	return NULL;
}

static const char *check_user(const char *item)
{
	if (strcmp(item, "root") == 0)
		return "is root";
	return strpbrk(item, " \t:/") ? "is not the name of a user" : NULL;
}

/* The daemon connects to it itself, and must not wait for a disk. */
static const char *check_hook_socket(const char *item)
{
	return *item && (strncmp(item, "/run/", 5) != 0 || strstr(item, "/../"))
		? "is not below /run"
		: NULL;
}

static const char *check_capabilities(const char *item)
{
	uint64_t bits;

	return capability_parse(item, &bits) < 0 ? "is not a list of capabilities that are known"
						 : NULL;
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
			return "is not \"unit:\" with the full name of a unit";
		return NULL;
	}
	if (strpbrk(item, "*?["))
		return "is a pattern, and names are compared as a whole";
	if (strlen(item) > COMM_MAX)
		return "is longer than the 15 characters that the kernel keeps of a command name";
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

	return address_parse(item, &address, &size) < 0
		? "is neither unix:/PATH nor a numeric ADDRESS:PORT"
		: NULL;
}

static const char *check_device(const char *item)
{
	const char *colon = strchr(item, ':');
	const char *digits = "0123456789";

	if (strchr(item, '/'))
		return "is a path, not the name of a device in /proc/diskstats";
	if (strlen(item) > DEVICE_NAME_MAX)
		return "is longer than a device name can be";
	if (colon &&
		(colon == item || strspn(item, digits) != (size_t)(colon - item) ||
			colon[1] == '\0' || colon[1 + strspn(colon + 1, digits)] != '\0'))
		return "is neither the name of a device nor MAJOR:MINOR";
	if (colon &&
		(strtoul(item, NULL, 10) > MAJOR_MAX || strtoul(colon + 1, NULL, 10) > MINOR_MAX))
		return "has a number that no device can have";
	return NULL;
}

static const char *check_cgroup(const char *item)
{
	for (const char *p = item; (p = strstr(p, "..")) != NULL; p += 2)
		if ((p == item || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
			return "leads out of the cgroup tree with \"..\"";
	return NULL;
}

/* clang-format off */
const struct config_setting config_settings[] = {
	{ "watch", "interval", CONFIG_TYPE_DURATION, FIELD(watch.interval_ns),
	  .min = MSEC(100), .max = SEC(60), .standard = "1s",
	  .help = "Time between two samples of the host." },
	{ "watch", "history", CONFIG_TYPE_DURATION, FIELD(watch.history_ns),
	  .min = 0, .max = SEC(600), .standard = "60s", .example = "60s",
	  .help = "How much of the time before a trigger is kept in memory as samples; the record begins "
		  "with them. 0 keeps none." },
	{ "watch", "process", CONFIG_TYPE_LIST, FIELD(watch.process), .check_item = check_process,
	  .standard = "mariadbd mysqld postgres mongod redis-server valkey-server keydb-server "
		"clickhouse-serv influxd etcd cockroach scylla sqlservr",
	  .example = "mariadbd, 4711 or unit:mariadb.service",
	  .help = "Processes whose threads are watched: command names as the kernel has them "
		  "(at most 15 characters), process ids, or unit:NAME.service. The default lists "
		  "the database servers that have a command name of their own. For a server that "
		  "runs in a shared interpreter, give its unit, such as unit:cassandra.service. "
		  "At most 2048 processes are watched." },
	{ "watch", "device", CONFIG_TYPE_LIST, FIELD(watch.device),
	  .check_item = check_device_pattern, .standard = "*", .example = "sd* nvme*",
	  .help = "Block devices that the rules look at: shell patterns of names in /proc/diskstats. "
		  "Partitions are left out. Device mapper, md and loop devices are looked at, and so "
		  "are the disks below them." },
	{ "watch", "device_ignore", CONFIG_TYPE_LIST, FIELD(watch.device_ignore),
	  .check_item = check_device_pattern, .standard = "ram* zram* sr* fd*",
	  .help = "Patterns of names that are left out although they match device." },
	{ "watch", "filesystem", CONFIG_TYPE_LIST, FIELD(watch.filesystem),
	  .check_item = check_mount_pattern, .standard = "*", .example = "/ /var/lib/*",
	  .help = "File systems that the rules space and inodes look at: shell patterns of mount "
		  "points. Of these, only file systems count that are on a disk and writable, at most "
		  "64; FUSE, network and memory file systems are left out." },
	{ "watch", "sql_state", CONFIG_TYPE_LIST, FIELD(watch.sql_state),
	  .standard = "Opening?tables Waiting?for* Lock:?[!a]* IPC:?SyncRep",
	  .help = "States of statements that the rule sql_state counts: shell patterns of the State "
		  "of MariaDB and MySQL and of \"wait_event_type: wait_event\" of PostgreSQL. Write ? "
		  "for a blank. Locks that applications take on purpose (GET_LOCK(), advisory locks) "
		  "are not among them by default." },

#define RULE(name, enabled_, set_, clear_, hold_, unit_, scope, source, help_)                     \
	{ "rule." #name, "enabled", CONFIG_TYPE_BOOL, RULE_FIELD(name, enabled),                   \
	  .standard = #enabled_, .help = "Whether the rule is used." },                              \
	{ "rule." #name, "set", CONFIG_TYPE_THRESHOLD, RULE_FIELD(name, set), .unit = unit_,       \
	  .standard = #set_,                                                                       \
	  .help = "The rule fires when its value is above this in as many samples in a row as hold "   \
		"says; of threads, 3.5 means four or more." },           \
	{ "rule." #name, "clear", CONFIG_TYPE_THRESHOLD, RULE_FIELD(name, clear), .unit = unit_,   \
	  .standard = #clear_,                                                                     \
	  .help = "The rule ends when its value is below this. It must not be above set: to lower set "  \
		"below it, lower both." },                                                         \
	{ "rule." #name, "hold", CONFIG_TYPE_COUNT, RULE_FIELD(name, hold_samples),                \
	  .min = 1, .max = 3600, .standard = #hold_,                                               \
	  .help = "Samples in a row that must be above set." },                                    \
	{ "rule." #name, "cooldown", CONFIG_TYPE_DURATION, RULE_FIELD(name, cooldown_ns),          \
	  .min = 0, .max = HOUR(24), .standard = "0", .example = "60s",                            \
	  .help = "After the rule fired, it does not fire again for this long." },
#include "watch/rules.def"
#undef RULE

	{ "health", "connect", CONFIG_TYPE_TEXT, TEXT_FIELD(health.connect),
	  .check_item = check_address, .standard = "", .example = "unix:/run/mysqld/mysqld.sock",
	  .help = "The socket to connect to: unix:/PATH, or a numeric ADDRESS:PORT. For an address the "
		  "service needs the drop-in that iostalld(8) shows." },
	{ "health", "greeting", CONFIG_TYPE_BOOL, FIELD(health.greeting), .standard = "no",
	  .help = "Whether the server must also send something after the connection is open, as MariaDB "
		  "and MySQL do. Without this, a server that hangs seems well: the kernel accepts "
		  "connections for it." },
	{ "health", "command", CONFIG_TYPE_PATH, TEXT_FIELD(health.command),
	  .standard = "", .example = "/usr/local/lib/check-database",
	  .help = "A program that checks, used instead of connect. It is started once and keeps running. "
		  "For each check it reads the line \"check\" from its standard input and must answer "
		  "with the line \"ok\". A program that writes more than one line for each check is "
		  "killed. It runs as the user run_as, without capabilities." },
	{ "health", "run_as", CONFIG_TYPE_TEXT, TEXT_FIELD(health.run_as),
	  .check_item = check_user, .standard = "iostall", .example = "iostall",
	  .help = "The system user, of /etc/passwd, that the program of command runs as. It cannot be "
		  "root." },
	{ "health", "interval", CONFIG_TYPE_DURATION, FIELD(health.interval_ns),
	  .min = SEC(1), .max = HOUR(1), .standard = "5s", .help = "Time between two checks." },
	{ "health", "timeout", CONFIG_TYPE_DURATION, FIELD(health.timeout_ns),
	  .min = MSEC(10), .max = SEC(60), .standard = "2s",
	  .help = "A check that is not answered within this time has failed. It must not be above "
		  "interval." },

	{ "trace", "backend", CONFIG_TYPE_CHOICE, FIELD(trace.backend), .choices = backends,
	  .standard = "auto",
	  .help = "How probes are attached. auto takes the best backend that works on this kernel. With "
		  "another value a probe uses that backend or is not armed; a probe that has no such "
		  "backend uses the one it has." },
	{ "trace", "min_stall", CONFIG_TYPE_DURATION, FIELD(trace.min_stall_ns),
	  .min = MSEC(1), .max = SEC(60), .standard = "100ms",
	  .help = "An operation that takes at least this long is a stall. The kernel side applies this "
		  "limit, so shorter operations cost no event." },
	{ "trace", "process", CONFIG_TYPE_LIST, FIELD(trace.process), .check_item = check_process,
	  .standard = "", .example = "mariadbd",
	  .help = "Processes that are traced, given as in watch.process, at most 2048. Empty means all." },
	{ "trace", "cgroup", CONFIG_TYPE_LIST, FIELD(trace.cgroup), .check_item = check_cgroup,
	  .max = EVENT_FILTER_CGROUPS_MAX, .standard = "", .example = "/system.slice/mariadb.service",
	  .help = "Control groups that are traced, as paths below the root of cgroup2. Empty means all." },
	{ "trace", "device", CONFIG_TYPE_LIST, FIELD(trace.device), .check_item = check_device,
	  .standard = "", .example = "sdb",
	  .help = "Devices whose files are traced, by name or as MAJOR:MINOR, and operations of programs whose file is not "
		  "known, such as an open. Of requests those to whole disks count, so also what other partitions or volumes "
		  "of these had done. Empty means all." },
	{ "trace", "ring_bytes", CONFIG_TYPE_RING_SIZE, FIELD(trace.ring_bytes),
	  .min = KIB(64), .max = MIB(64), .standard = "1M",
	  .help = "Size of the ring buffer for events from the kernel. The return of a read takes about 0.3 KB. "
		  "Where the host has so many threads that this is too small for the returns of all at once, "
		  "iostall takes 384 bytes for each thread." },
	{ "trace", "inflight_max", CONFIG_TYPE_COUNT, FIELD(trace.inflight_max),
	  .min = 1024, .max = 1 << 20, .standard = "8192",
	  .help = "How many operations of threads can be followed at the same time, half as many requests "
		  "of disks, and a quarter as many of io_uring and of libaio; more are counted as lost. Where the host "
		  "has so many threads that this may be too few, iostall takes two for each thread. Both sizes "
		  "follow when the number of threads grows, between two incidents." },

#define PROBE(name, operations, help_)                                                             \
	{ "probe." #name, "enabled", CONFIG_TYPE_BOOL, FIELD(probes[CONFIG_PROBE_##name].enabled), \
	  .standard = "yes", .help = "Whether the probe is armed." },
#include "probes/probes.def"
#undef PROBE
	{ "probe.vfs", "pairing", CONFIG_TYPE_CHOICE, FIELD(probes[CONFIG_PROBE_vfs].pairing),
	  .choices = pairings, .standard = "sleep",
	  .help = "Only of vfs: when a read or write begins. sleep: when its thread first falls asleep in it, which "
		  "costs nothing until then; one in which it only computes, polls or waits for a CPU is not seen. "
		  "entry: when it is called. Each is then noted in a map and taken out by its return, which costs each "
		  "read and write of the host about as much as the read of a cached byte." },
	{ "probe.offcpu", "min", CONFIG_TYPE_DURATION, FIELD(probes[CONFIG_PROBE_offcpu].min_ns),
	  .min = 0, .max = SEC(60), .standard = "1ms",
	  .help = "A shorter time off the CPU does not count." },
	{ "probe.offcpu", "wakers", CONFIG_TYPE_BOOL, FIELD(probes[CONFIG_PROBE_offcpu].wakers),
	  .standard = "no",
	  .help = "Whether the record says who ended the longest time off the CPU with each stack. Then each wake-up of a "
		  "thread on the host costs a little." },

	{ "incident", "max_time", CONFIG_TYPE_DURATION, FIELD(incident.max_time_ns),
	  .min = SEC(1), .max = HOUR(1), .standard = "60s",
	  .help = "The longest an incident lasts: then the probes are detached, even if the stall goes on." },
	{ "incident", "clear_time", CONFIG_TYPE_DURATION, FIELD(incident.clear_time_ns),
	  .min = MSEC(100), .max = SEC(600), .standard = "5s",
	  .help = "The incident ends when all rules that keep it open have been clear and nothing has been "
		  "stuck for this long. Rules about file systems and the memory of control groups open an "
		  "incident and do not keep it open." },
	{ "incident", "cooldown", CONFIG_TYPE_DURATION, FIELD(incident.cooldown_ns),
	  .min = 0, .max = HOUR(24), .standard = "60s", .example = "60s",
	  .help = "After an incident, rules open no new one about the same disk, database or other subject, "
		  "or about the host as a whole, for this long. Trouble that goes on opens further incidents; the "
		  "pause before each is twice as long as the one before, up to an hour." },

	{ "record", "spool_dir", CONFIG_TYPE_PATH, TEXT_FIELD(record.spool_dir),
	  .standard = "/run/iostall",
	  .help = "The directory that an incident is written to while it lasts. It must be on tmpfs, "
		  "since a disk may stall: the daemon and iostall watch refuse to start otherwise." },
	{ "record", "dir", CONFIG_TYPE_PATH, TEXT_FIELD(record.dir), .standard = "/var/log/iostall",
	  .help = "The directory that finished records are copied to, once the disk responds." },
	{ "record", "spool_bytes", CONFIG_TYPE_SIZE, FIELD(record.spool_bytes),
	  .min = KIB(256), .max = MIB(64), .standard = "4M",
	  .help = "The most that the record of one incident may take. It is allocated and locked in memory "
		  "when the daemon starts." },
	{ "record", "max_bytes", CONFIG_TYPE_SIZE, FIELD(record.max_bytes),
	  .min = MIB(1), .max = GIB(1024), .standard = "256M",
	  .help = "The most that all kept records may take; the oldest are removed first." },
	{ "record", "max_count", CONFIG_TYPE_COUNT, FIELD(record.max_count),
	  .min = 1, .max = 1000000, .standard = "1000", .help = "The most records that are kept." },
	{ "record", "max_age", CONFIG_TYPE_DURATION, FIELD(record.max_age_ns),
	  .min = 0, .max = HOUR(87600), .standard = "2160h",
	  .help = "Records older than this are removed. The default is 90 days; 0 means no limit. The age "
		  "of a record of this boot is told by the monotonic clock. The clock of the host is "
		  "believed only while it is synchronised, so that one that is ahead removes nothing." },

	{ "journal", "enabled", CONFIG_TYPE_BOOL, FIELD(journal.enabled), .standard = "yes",
	  .help = "Whether to write to the journal: one entry when an incident opens, one when its cause "
		  "is known or turns out to be another, and one with the verdict when it closes." },
	{ "journal", "socket", CONFIG_TYPE_PATH, TEXT_FIELD(journal.socket),
	  .standard = "/run/systemd/journal/socket", .help = "The socket of the journal's native protocol." },
	{ "journal", "statements", CONFIG_TYPE_BOOL, FIELD(journal.statements), .standard = "no",
	  .help = "Whether the entry at the close contains the culprit's statement, as sql.text shows it. "
		  "Off by default, since more users may read the journal than the records." },
	{ "syslog", "enabled", CONFIG_TYPE_BOOL, FIELD(syslog.enabled), .standard = "no",
	  .help = "Whether to write the same messages to syslog. Off by default, since the journal "
		  "usually forwards them." },
	{ "syslog", "socket", CONFIG_TYPE_PATH, TEXT_FIELD(syslog.socket), .standard = "/dev/log",
	  .help = "The datagram socket of syslog." },
	{ "syslog", "statements", CONFIG_TYPE_BOOL, FIELD(syslog.statements), .standard = "no",
	  .help = "Like journal.statements, for the message to syslog." },
	{ "sql", "enabled", CONFIG_TYPE_BOOL, FIELD(sql.enabled), .standard = "yes",
	  .help = "Whether databases are asked which statement a thread runs. A mariadbd, mysqld or "
		  "postgres that runs and that no section [sql.NAME] names is asked, too, over its "
		  "usual socket. A section names the server at its socket, and without one the local "
		  "server of its type; to leave that alone, give it a section with enabled = no." },
	{ "sql", "text", CONFIG_TYPE_CHOICE, FIELD(sql.text), .choices = sql_texts,
	  .standard = "redacted",
	  .help = "How statements are recorded: redacted replaces each literal by ?, full keeps the text, "
		  "off records no text." },
	{ "sql", "text_bytes", CONFIG_TYPE_COUNT, FIELD(sql.text_bytes),
	  .min = 0, .max = 4095, .standard = "1024",
	  .help = "Statements are cut to this many bytes." },
	{ "sql", "interval", CONFIG_TYPE_DURATION, FIELD(sql.interval_ns),
	  .min = SEC(1), .max = SEC(600), .standard = "2s", .example = "10s",
	  .help = "How often the databases are asked while no incident is open: twice as often when five "
		  "or more statements run at once, each second when a rule is over its threshold. A "
		  "question takes a database about half a millisecond; where it takes more than a "
		  "thousandth of this time, it is asked less often, as iostall status then says, but at "
		  "least once a minute. During an incident they are asked every second." },
	{ CONFIG_SQL_ANY, "enabled", CONFIG_TYPE_BOOL, SQL_FIELD(enabled), .standard = "yes",
	  .help = "Whether this database is asked." },
	{ CONFIG_SQL_ANY, "type", CONFIG_TYPE_CHOICE, SQL_FIELD(type), .choices = sql_types,
	  .standard = "mariadb", .help = "The kind of server. Of PostgreSQL it must be version 12 or later." },
	{ CONFIG_SQL_ANY, "socket", CONFIG_TYPE_PATH, SQL_TEXT_FIELD(socket),
	  .standard = "", .example = "/run/mysqld/mysqld.sock",
	  .help = "The Unix socket of the server. Empty means the usual one of its type. It cannot be "
		  "combined with host." },
	{ CONFIG_SQL_ANY, "host", CONFIG_TYPE_TEXT, SQL_TEXT_FIELD(host), .check_item = check_host,
	  .standard = "", .example = "127.0.0.1",
	  .help = "The host of a server that is reached by TCP instead. It is then not known which thread "
		  "runs a statement, and the service needs the drop-in that iostalld(8) shows." },
	{ CONFIG_SQL_ANY, "port", CONFIG_TYPE_COUNT, SQL_FIELD(port),
	  .min = 0, .max = 65535, .standard = "0", .example = "3306",
	  .help = "The TCP port. 0 means the usual one of the type." },
	{ CONFIG_SQL_ANY, "user", CONFIG_TYPE_TEXT, SQL_TEXT_FIELD(user),
	  .standard = "iostall", .help = "The account in the database." },
	{ CONFIG_SQL_ANY, "password_file", CONFIG_TYPE_PATH, SQL_TEXT_FIELD(password_file),
	  .standard = "", .example = "/etc/iostall/password",
	  .help = "A file whose first line is the password. After a refused login it is read again within "
		  "a minute. Leave it empty where the database identifies the account by the system "
		  "user (unix_socket, peer)." },
	{ CONFIG_SQL_ANY, "option_file", CONFIG_TYPE_PATH, SQL_TEXT_FIELD(option_file),
	  .standard = "", .example = "/etc/iostall/main.cnf",
	  .help = "A file with settings for the client library: the sections [client] and [iostall] of a "
		  "my.cnf, or [iostall] of a libpq service file. It is read as the user run_as. Its "
		  "user is the account, unless user is set here; with neither, the account has the "
		  "name of the user run_as." },
	{ CONFIG_SQL_ANY, "run_as", CONFIG_TYPE_TEXT, SQL_TEXT_FIELD(run_as),
	  .check_item = check_user, .standard = "iostall", .example = "iostall",
	  .help = "The system user that the helper process runs as. It cannot be root." },
	{ CONFIG_SQL_ANY, "server_user", CONFIG_TYPE_TEXT, SQL_TEXT_FIELD(server_user),
	  .standard = "", .example = "mysql",
	  .help = "The system user, or its number, whose server may listen at the socket; root may "
		  "always. Empty means mysql or postgres, as the type is. At a socket of another user "
		  "no login is tried, since that user would get the password." },
	{ CONFIG_SQL_ANY, "tls", CONFIG_TYPE_CHOICE, SQL_FIELD(tls), .choices = sql_tls,
	  .standard = "verify",
	  .help = "For a server that is reached by TCP. verify: the connection is encrypted, and the "
		  "server has a certificate for the name in host. off: nothing is encrypted, and only "
		  "logins that do not send the password itself are tried; with PostgreSQL this needs "
		  "libpq 16." },
	{ CONFIG_SQL_ANY, "tls_ca", CONFIG_TYPE_PATH, SQL_TEXT_FIELD(tls_ca),
	  .standard = "/etc/ssl/certs/ca-certificates.crt",
	  .help = "The certificates that verify accepts as issuers." },
	{ CONFIG_HOOK_ANY, "command", CONFIG_TYPE_PATH, HOOK_TEXT_FIELD(command), .standard = "",
	  .example = "/etc/iostall/hooks/mail",
	  .help = "A program, without arguments. It is started while no incident is open and waits for "
		  "the first line on its standard input. It runs in the sandbox of the service, "
		  "which has no network and a /tmp of its own; see iostalld(8)." },
	{ CONFIG_HOOK_ANY, "socket", CONFIG_TYPE_TEXT, HOOK_TEXT_FIELD(socket),
	  .check_item = check_hook_socket, .standard = "", .example = "/run/iostall-gcore.sock",
	  .help = "A Unix stream socket below /run instead, as of a systemd socket unit with "
		  "Accept=yes: the program is then a service of its own, with a user, limits and a "
		  "sandbox of its own. It is connected to while no incident is open. It cannot be "
		  "combined with command." },
	{ CONFIG_HOOK_ANY, "run_as", CONFIG_TYPE_TEXT, HOOK_TEXT_FIELD(run_as),
	  .check_item = check_user, .standard = "nobody", .example = "nobody",
	  .help = "The system user, of /etc/passwd, that command runs as. It cannot be root." },
	{ CONFIG_HOOK_ANY, "capabilities", CONFIG_TYPE_TEXT, HOOK_TEXT_FIELD(capabilities),
	  .check_item = check_capabilities, .standard = "", .example = "CAP_SYS_PTRACE",
	  .help = "The capabilities that command keeps, with blanks between them; see capabilities(7). "
		  "It is not started with one that the service does not have itself." },
	{ CONFIG_HOOK_ANY, "time_limit", CONFIG_TYPE_DURATION, HOOK_FIELD(time_limit_ns),
	  .min = SEC(1), .max = HOUR(1), .standard = "30s", .example = "60s",
	  .help = "How long it may run on after the incident has closed; then command is killed, or the "
		  "connection to socket closed." },
	{ CONFIG_HOOK_ANY, "output_bytes", CONFIG_TYPE_SIZE, HOOK_FIELD(output_bytes),
	  .min = 0, .max = MIB(1), .standard = "64K",
	  .help = "The most of its output that is kept, beside the record in ID.d/NAME.out. The room is "
		  "locked in memory." },
	{ "control", "socket", CONFIG_TYPE_PATH, TEXT_FIELD(control.socket),
	  .standard = "/run/iostall/control.sock",
	  .help = "The socket on which the daemon answers iostall trigger and iostall status." },
};

const struct config_section config_sections[] = {
	{ "watch", NULL, "What is sampled, also while no incident is open." },
#define RULE(name, enabled_, set_, clear_, hold_, unit_, scope, source, help_)                     \
	{ "rule." #name, "rule", "Value (" #scope ", " unit_ "): " help_ "." },
#include "watch/rules.def"
#undef RULE
	{ "health", NULL, "Your own check of a service; the rule health looks at its result." },
	{ "trace", NULL, "What is traced during an incident." },
#define PROBE(name, operations, help_) { "probe." #name, "probe", "Sees " help_ "." },
#include "probes/probes.def"
#undef PROBE
	{ "incident", NULL, "When an incident ends, and when the next one may begin." },
	{ "record", NULL, "Where records are kept, and how long." },
	{ "journal", NULL, "Messages to the systemd journal." },
	{ "syslog", NULL, "Messages to syslog." },
	{ "sql", NULL, "Databases that are asked which statements they run." },
	{ CONFIG_SQL_ANY, "sql", "One database; choose NAME as you like." },
	{ CONFIG_HOOK_ANY, "hook", "One program; choose NAME as you like." },
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
			"Rules. Each rule opens an incident by itself, since no single signal shows every "
			"stall. The unit may follow a threshold. A rule about the host, a device or a "
			"process fires again when its cause outlasts the incident; the others fire once "
			"until they are clear." },
		{ "probe", "Probes, which are attached when an incident opens." },
		{ "sql",
			"Databases: at most 8. Each has its own section and its own helper process. NAME has "
			"up to 31 of the characters a-z, 0-9, _ and -." },
		{ "hook",
			"Programs that are told of incidents: at most 8. Each gets the lines of a record, as "
			"they are written, on its standard input, and its end after the last; what it writes "
			"to standard output and standard error is kept with the record. One that reads too "
			"slowly gets fewer lines; open, verdict and close come last to be left out." },
	};

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (strcmp(groups[i].name, group) == 0)
			return groups[i].help;
	return "";
}

const struct config_named config_named[CONFIG_NAMED_KINDS] = {
	{ CONFIG_SQL_ANY, CONFIG_SQL_SECTION "main", "target", CONFIG_SQL_TARGETS_MAX,
		offsetof(struct config, sql.targets_count), offsetof(struct config, sql.targets),
		sizeof(struct config_sql_target) },
	{ CONFIG_HOOK_ANY, CONFIG_HOOK_SECTION "mail", "hook", CONFIG_HOOKS_MAX,
		offsetof(struct config, hooks_count), offsetof(struct config, hooks),
		sizeof(struct config_hook) },
};

static size_t prefix_len(const struct config_named *named)
{
	return strlen(named->any) - strlen("NAME");
}

const struct config_named *config_find_named(const char *section)
{
	for (unsigned int i = 0; i < CONFIG_NAMED_KINDS; i++)
		if (strncmp(section, config_named[i].any, prefix_len(&config_named[i])) == 0)
			return &config_named[i];
	return NULL;
}

bool config_is_placeholder(const char *section)
{
	const struct config_named *named = config_find_named(section);

	return named && strcmp(section, named->any) == 0;
}

bool config_section_is(const char *of_table, const char *name)
{
	const struct config_named *named = config_find_named(name);
	const size_t len = strlen(name);

	if (strcmp(of_table, name) == 0)
		return true;
	return named && strcmp(of_table, named->any) == 0 && len > prefix_len(named) &&
		len < CONFIG_SECTION_SIZE &&
		name[prefix_len(named) +
			strspn(name + prefix_len(named),
				"abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
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
