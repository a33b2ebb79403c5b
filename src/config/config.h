/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All settings, from one table: defaults, file, drop-ins, --set, help and manual page.
 * Loaded by the commands and the daemon; the other rooms read the part that they need.
 * Never changed after it was loaded: a reload loads a second one and takes its place.
 */
#ifndef IOSTALL_CONFIG_H
#define IOSTALL_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_LIST_MAX 32
#define CONFIG_ITEM_SIZE 128
#define CONFIG_ERROR_SIZE 512
#define CONFIG_ORIGIN_SIZE 512
/* Database targets; each is a process of its own. */
#define CONFIG_SQL_TARGETS_MAX 8
#define CONFIG_SQL_SECTION "sql."
/* Names that the user chooses have up to 31 characters. */
#define CONFIG_NAME_SIZE 32
#define CONFIG_SECTION_SIZE 40
/* Programs that are told of incidents. */
#define CONFIG_HOOKS_MAX 8
#define CONFIG_HOOK_SECTION "hook."
#define CONFIG_DEFAULT_FILE "/etc/iostall/iostall.conf"

struct config_list {
	unsigned int count;
	char items[CONFIG_LIST_MAX][CONFIG_ITEM_SIZE];
};

enum config_rule_name {
#define RULE(name, ...) CONFIG_RULE_##name,
#include "watch/rules.def"
#undef RULE
	CONFIG_RULE_COUNT,
};

struct config_rule {
	bool enabled;
	double set;
	double clear;
	uint64_t hold_samples;
	uint64_t cooldown_ns;
};

enum config_probe_name {
#define PROBE(name, ...) CONFIG_PROBE_##name,
#include "probes/probes.def"
#undef PROBE
	CONFIG_PROBE_COUNT,
};

enum config_backend {
	CONFIG_BACKEND_AUTO,
	CONFIG_BACKEND_FENTRY,
	CONFIG_BACKEND_KPROBE,
	CONFIG_BACKEND_TRACEPOINT,
};

/* How a probe comes to know when an operation began. */
enum config_pairing {
	CONFIG_PAIRING_SLEEP, /* `wait` notes when the thread first falls asleep in it */
	CONFIG_PAIRING_ENTRY, /* a program at its entry */
};

enum config_sql_type {
#define DATABASE(NAME, name, ...) CONFIG_SQL_##NAME,
#include "sql/databases.def"
#undef DATABASE
};

enum config_sql_text {
	CONFIG_SQL_TEXT_REDACTED,
	CONFIG_SQL_TEXT_FULL,
	CONFIG_SQL_TEXT_OFF,
};

enum config_sql_tls {
	CONFIG_SQL_TLS_VERIFY,
	CONFIG_SQL_TLS_OFF,
};

/* One section [sql.NAME]; an empty text is the usual one of its type. */
struct config_sql_target {
	char section[CONFIG_SECTION_SIZE]; /* "sql.main"; empty: no target */
	enum config_sql_type type;
	bool enabled;
	char socket[108];
	char host[128];
	uint64_t port; /* 0: the usual one */
	char user[64];
	char password_file[256];
	char option_file[256];
	char run_as[32];
	char server_user[32];
	enum config_sql_tls tls;
	char tls_ca[256];
};

struct config_sql {
	bool enabled;
	enum config_sql_text text;
	uint64_t text_bytes;  /* 1024; 0 to 4095 */
	uint64_t interval_ns; /* 60s; 1s to 10m */
	unsigned int targets_count;
	struct config_sql_target targets[CONFIG_SQL_TARGETS_MAX];
};

/* One section [hook.NAME]; with neither command nor socket it is off. */
struct config_hook {
	char section[CONFIG_SECTION_SIZE]; /* "hook.mail" */
	char command[256];
	char socket[108];
	char run_as[32];	/* of command */
	char capabilities[128]; /* of command; see capability_parse() */
	uint64_t time_limit_ns; /* 30s after the incident has closed */
	uint64_t output_bytes;	/* 64K */
};

struct config {
	struct {
		uint64_t interval_ns; /* 1s; 100ms to 60s */
		uint64_t history_ns;  /* 60s; 0 to 10m */
		/* comm, pid or "unit:NAME.service"; default: the database servers that run */
		struct config_list process;
		/*
		 * shell patterns of device names that are judged; default all but ram*, zram*, sr*,
		 * fd*
		 */
		struct config_list device;
		struct config_list device_ignore;
		struct config_list filesystem; /* shell patterns of mount points */
		struct config_list sql_state;  /* shell patterns, a ? for each blank */
	} watch;
	struct config_rule rules[CONFIG_RULE_COUNT];
	struct {
		char connect[128];    /* "unix:/path" or "ADDRESS:PORT"; empty: none */
		bool greeting;	      /* the server speaks first */
		char command[256];    /* a program; empty: none */
		char run_as[32];      /* of command */
		uint64_t interval_ns; /* 5s */
		uint64_t timeout_ns;  /* 2s; at most interval */
	} health;
	struct {
		enum config_backend backend;
		uint64_t min_stall_ns;	    /* 100ms; 1ms to 60s */
		struct config_list process; /* same forms as watch.process; empty: every process */
		struct config_list cgroup;  /* paths below the cgroup2 root; empty: every cgroup */
		struct config_list device; /* names ("sdb") or "major:minor"; empty: every device */
		uint64_t ring_bytes;	   /* 1M; power of two, 64K to 64M */
		uint64_t inflight_max;	   /* 8192 operations in flight; 1024 to 1M */
	} trace;
	struct {
		bool enabled;
		enum config_pairing pairing; /* only of vfs */
		uint64_t min_ns;	     /* only of offcpu; 1ms; 0 to 60s */
		bool wakers;		     /* only of offcpu */
	} probes[CONFIG_PROBE_COUNT];
	struct {
		uint64_t max_time_ns; /* 60s */
		/* 5s: it ends when all rules are clear and nothing is stuck for this long. */
		uint64_t clear_time_ns;
		uint64_t cooldown_ns; /* 60s */
	} incident;
	struct {
		char spool_dir[PATH_MAX]; /* /run/iostall */
		char dir[PATH_MAX];	  /* /var/log/iostall */
		uint64_t spool_bytes; /* 4M: preallocated, locked, the most one incident may take */
		uint64_t max_bytes;   /* 256M */
		uint64_t max_count;   /* 1000 */
		uint64_t max_age_ns;  /* 0: no limit by age; default 90 days */
	} record;
	struct {
		bool enabled;
		char socket[108]; /* /run/systemd/journal/socket */
		/* Default no: more users may read these entries than the records. */
		bool statements;
	} journal;
	struct {
		bool enabled;	  /* default no: journald forwards */
		char socket[108]; /* /dev/log */
		bool statements;  /* default no */
	} syslog;
	struct config_sql sql;
	unsigned int hooks_count;
	struct config_hook hooks[CONFIG_HOOKS_MAX];
	struct {
		char socket[108]; /* /run/iostall/control.sock */
	} control;
	/* The files that were read and the --set given, for people; cut with "..." if need be. */
	char origin[CONFIG_ORIGIN_SIZE];
};

/* Where settings come from and where errors go; all strings may be NULL. */
struct config_source {
	const char *file;	 /* NULL: the default file if it exists */
	const char *const *sets; /* "section.key=value" */
	unsigned int sets_count;
};

void config_set_defaults(struct config *c);

/* Whether one of the shell patterns, see fnmatch(3), matches the whole of s. */
bool config_list_matches(const struct config_list *list, const char *s);
bool config_list_is_same(const struct config_list *a, const struct config_list *b);

/* The settings of a section "sql.NAME" in which nothing is set. -EINVAL: that is no such name. */
int config_sql_default_target(const char *section, struct config_sql_target *ret_target);

/*
 * Applies one file's text, which need not be terminated, to *c and checks how its settings go
 * together; `name` is what errors call the file. 0 or a negative errno with ret_error; *c may then
 * be half changed.
 */
int config_parse_text(struct config *c, const char *name, const char *text, size_t len,
	char ret_error[static CONFIG_ERROR_SIZE]);

/*
 * Defaults, then the file, then <its directory>/conf.d/ *.conf in alphabetical order, then the
 * sets. 0, or a negative errno with ret_error, which says file, line, key, what is wrong and what
 * was expected ("FILE:LINE: section.key: ...").
 */
int config_load(struct config *c, const struct config_source *source,
	char ret_error[static CONFIG_ERROR_SIZE]);

/*
 * Hands a line ("watch.interval = 2s (was 1s)", "[sql.main] was added") to tell_change for each
 * setting that differs. Returns how many there were.
 */
unsigned int config_compare(const struct config *before, const struct config *after,
	void (*tell_change)(void *userdata, const char *change), void *userdata);

/*
 * The text of iostall.conf with every default commented out; the table as mdoc for its manual page.
 */
void config_print_file(FILE *f);
void config_print_man(FILE *f);

/* "section.key" and the help of each setting, for completion. */
void config_print_keys(FILE *f);

#endif
