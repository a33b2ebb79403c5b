/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/load_config.h"
#include "util/exit.h"
#include "daemon/control.h"
#include "enrich/symbols.h"
#include "health/health.h"
#include "util/loop.h"
#include "util/passwd.h"
#include "probes/set.h"
#include "snapshot/thread.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/log.h"
#include "util/pid_namespace.h"
#include "util/text.h"
#include "version.h"
#include "watch/fs_usage.h"
#include "watch/pressure_trigger.h"
#include "watch/rules.h"
#include "watch/watch.h"

/* One second at most: the kernel may let who asks for a control group wait for long. */
#define LEARN_TRIES 200

static bool check_namespace(struct doctor *d)
{
	int r = pid_namespace_is_host();

	if (r > 0)
		doctor_report(d, "host", "pids", WORKS, "process ids are those of the host");
	else if (r == 0)
		doctor_report(d, "host", "pids", FAILS, "%s", pid_namespace_own);
	else
		doctor_report(d, "host", "pids", DEGRADED, "/proc/self/ns/pid: %s", strerror(-r));
	return r != 0;
}

static void check_host(struct doctor *d)
{
	char lockdown[64] = "", *selected;
	struct utsname names;
	struct rlimit limit;

	uname(&names);
	doctor_report(d, "host", "kernel", WORKS, "%s %s, iostall " IOSTALL_VERSION, names.release,
		names.machine);
	if (geteuid() == 0)
		doctor_report(d, "host", "user", WORKS, "root");
	else
		doctor_report(d, "host", "user", FAILS,
			"not root, so BPF programs cannot be loaded; run doctor as root");
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		doctor_report(d, "host", "btf", WORKS, "/sys/kernel/btf/vmlinux");
	else
		doctor_report(d, "host", "btf", FAILS,
			"/sys/kernel/btf/vmlinux is missing; a kernel with CONFIG_DEBUG_INFO_BTF is needed");
	if (file_read_at(AT_FDCWD, "/sys/kernel/security/lockdown", lockdown, sizeof(lockdown)) < 0)
		text_copy(lockdown, sizeof(lockdown), "[none]");
	lockdown[strcspn(lockdown, "\n")] = '\0';
	selected = strchr(lockdown, '[');
	if (selected && strncmp(selected, "[confidentiality]", 17) == 0)
		doctor_report(d, "host", "lockdown", FAILS,
			"confidentiality: the kernel does not let BPF programs read its memory");
	else
		doctor_report(d, "host", "lockdown", WORKS, "%s", lockdown);
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && geteuid() != 0 && limit.rlim_cur < (16 << 20))
		doctor_report(d, "host", "memlock", DEGRADED,
			"the limit is %llu bytes, so memory cannot be locked",
			(unsigned long long)limit.rlim_cur);
	else
		doctor_report(d, "host", "memlock", WORKS, "memory can be locked");
}

/* With errno. The kernel may refuse to open what the mode of the file allows. */
static bool can_read(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0;
}

static void check_rule(struct doctor *d, enum config_rule_name i)
{
	const struct config_rule *rule = &d->config->rules[i];
	const char *name = rules_name(i), *source = rules_source(i);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", *source == '/' ? "" : d->o->procfs,
		*source == '/' ? "" : "/", source);
	if (!rule->enabled)
		doctor_report(d, "trigger", name, WORKS, "disabled by rule.%s.enabled", name);
	else if (*source && !can_read(path))
		doctor_report(d, "trigger", name, DEGRADED, "%s: %s", path, strerror(errno));
	else
		doctor_report(d, "trigger", name, WORKS, "fires above %g %s in %llu %s", rule->set,
			rules_unit(i), (unsigned long long)rule->hold_samples,
			rule->hold_samples == 1 ? "sample" : "samples in a row");
}

/* What makes the kernel accept the trigger. */
static const char *pressure_hint(int error)
{
	switch (error) {
	case ENOENT:
	case EOPNOTSUPP:
		return "boot with psi=1, if the kernel has CONFIG_PSI";
	case EACCES: /* 5.10: nobody may write the file, and then nothing else is asked for */
		return "grant CAP_DAC_OVERRIDE";
	default:
		return "grant CAP_SYS_RESOURCE";
	}
}

void doctor_report_pressure(struct doctor *d, int trigger)
{
	const struct config_rule *rule = &d->config->rules[CONFIG_RULE_psi_io_full];

	if (!rule->enabled)
		doctor_report(d, "trigger", "pressure", WORKS,
			"not in use: disabled by rule.psi_io_full.enabled");
	else if (trigger < 0)
		doctor_report(d, "trigger", "pressure", DEGRADED,
			"not in use: %s/pressure/io: %s; a freeze is noticed after %llu %s, not after "
			"400 ms; %s",
			d->o->procfs, strerror(-trigger), (unsigned long long)rule->hold_samples,
			rule->hold_samples == 1 ? "sample" : "samples", pressure_hint(-trigger));
	else if (rule->set >= PRESSURE_TRIGGER_PCT)
		doctor_report(d, "trigger", "pressure", WORKS,
			"not in use: the kernel reports %d %%, and psi_io_full fires above %g %%",
			PRESSURE_TRIGGER_PCT, rule->set);
	else
		doctor_report(d, "trigger", "pressure", WORKS,
			"in use: psi_io_full fires at once when the kernel reports that all tasks "
			"waited for I/O in 400 of 500 ms");
}

/* As the daemon does it at its start. */
static void check_pressure(struct doctor *d)
{
	int trigger = pressure_trigger_open(d->o->procfs);

	doctor_report_pressure(d, trigger);
	if (trigger >= 0)
		close(trigger);
}

static bool is_about_sql(enum config_rule_name rule)
{
	return rules_scope(rule) == RULES_SCOPE_database;
}

static void check_rules(struct doctor *d)
{
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++)
		if (!is_about_sql(i))
			check_rule(d, i);
}

/* The rules that look at the answers of databases. */
static void check_sql_rules(struct doctor *d, bool any_target)
{
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++) {
		if (is_about_sql(i) && any_target)
			check_rule(d, i);
		else if (is_about_sql(i))
			doctor_report(d, "trigger", rules_name(i), WORKS,
				"skipped: no database is asked");
	}
}

static void check_cgroups(struct doctor *d, const struct watch *watch)
{
	bool any = false;

	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++) {
		uint32_t serial;
		const struct record_cgroup *cgroup = watch_cgroup_in_slot(watch, i, &serial);

		if (!cgroup)
			continue;
		any = true;
		if (isnan(cgroup->used_pct))
			doctor_report(d, "trigger", "cgroup", DEGRADED,
				"its memory.stat was not read in time: %s", cgroup->path);
		else
			doctor_report(d, "trigger", "cgroup", WORKS,
				"%s uses %.1f %% of its %.1f MiB", cgroup->path, cgroup->used_pct,
				(double)cgroup->limit_bytes / (1 << 20));
	}
	if (!any)
		doctor_report(d, "trigger", "cgroup", WORKS,
			"skipped: no watched process has a memory limit");
}

/* Disks, processes and their control groups, as the daemon finds them. */
static void check_watch(struct doctor *d)
{
	struct watch_options options = { .procfs = d->o->procfs, .sysfs = d->o->sysfs };
	const struct timespec pause = { .tv_nsec = 5 * NSEC_PER_MSEC };
	const struct watch_process *processes;
	struct watch_left_out left_out;
	struct watch *watch;
	unsigned int count;
	int r;

	watch_options_from_config(d->config, &options);
	options.filesystem = NULL; /* asked by check_filesystems() */
	r = watch_new(&options, &watch);
	if (r < 0) {
		doctor_report(d, "trigger", "processes", FAILS, "%s: %s", d->o->procfs,
			strerror(-r));
		return;
	}
	/* First which processes belong to a unit, then their control groups. */
	for (unsigned int i = 0; i < LEARN_TRIES && watch_is_learning(watch); i++) {
		nanosleep(&pause, NULL);
		watch_take_sample(watch, false);
	}
	watch_take_sample(watch, false);
	for (unsigned int i = 0; i < LEARN_TRIES && watch_is_reading(watch); i++)
		nanosleep(&pause, NULL);
	watch_take_sample(watch, false);
	processes = watch_processes(watch, &count);
	if (count == 0)
		doctor_report(d, "trigger", "processes", DEGRADED,
			"no process of watch.process is running now; iostall looks for them every 10 s");
	watch_get_left_out(watch, &left_out);
	doctor_report_processes(d, processes, count, left_out.processes);
	check_cgroups(d, watch);
	doctor_report_disks(d, watch);
	watch_free(watch);
}

/* The daemon does this in a thread of its own, because it may block. */
static void check_filesystems(struct doctor *d)
{
	_cleanup_free_ struct fs_usage_question *question = calloc(1, sizeof(*question));
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct fs_usage_table *table;
	int r = -ENOMEM;

	if (question) {
		question->patterns = d->config->watch.filesystem;
		r = fs_usage_read(procfs_fd, question);
	}
	if (r < 0) {
		doctor_report(d, "trigger", "filesystem", DEGRADED,
			"%s/self/mountinfo: %s; the rules space and inodes are skipped",
			d->o->procfs, strerror(-r));
		return;
	}
	table = &question->table;
	if (table->count == 0)
		doctor_report(d, "trigger", "filesystem", DEGRADED,
			"watch.filesystem matches no file system that is on a disk and writable");
	for (uint32_t i = 0; i < table->count; i++) {
		const struct record_file_system *fs = &table->list[i];

		doctor_report(d, "trigger", "filesystem", WORKS,
			"%s is %.1f %% full and uses %.1f %% of its inodes", fs->mount,
			fs->used_pct, fs->inodes_used_pct);
	}
	if (table->left_out)
		doctor_report(d, "trigger", "filesystem", DEGRADED,
			"%u more file systems are left out: at most 64 are watched",
			table->left_out);
}

struct health_check {
	struct loop *loop;
	int result;
};

static void on_health(void *userdata, int result)
{
	struct health_check *check = userdata;

	check->result = result;
	loop_stop(check->loop);
}

/* Does one check as the daemon does it; it ends after health.timeout at the latest. */
static void check_health(struct doctor *d)
{
	struct health_check check = { .result = -ENOMEM };
	struct health_accounts accounts;
	struct health *health = NULL;
	int r = loop_new(&check.loop);

	health_find_accounts(PASSWD_FILE, d->config, &accounts);
	if (r == 0)
		r = health_new(check.loop, d->config, &accounts, &health);
	if (r == 0 && health) {
		health_set_callback(health, on_health, &check);
		loop_run(check.loop);
		r = check.result;
	}
	if (r == 0 && !health)
		doctor_report(d, "trigger", "health check", WORKS,
			"none is configured by health.connect or health.command");
	else if (r == 0)
		doctor_report(d, "trigger", "health check", WORKS, "%s answers",
			health_target(health));
	else
		doctor_report(d, "trigger", "health check", DEGRADED, "%s: %s",
			health_target(health), health_describe(r));
	health_free(health);
	loop_free(check.loop);
}

/* One backend's. */
static void report_losses(struct doctor *d, const struct probe *probe, unsigned int backend,
	const char *name)
{
	char why[PROBE_REASON_SIZE];

	for (unsigned int i = 0; i < probe->ops->parts_count; i++) {
		const struct probe_loss *loss = &probe->lost[backend][i];

		if (!loss->step)
			continue;
		probe_explain_loss(loss, why, sizeof(why));
		doctor_report(d, "missing", name, DEGRADED, "%s (%s)", probe->ops->parts[i].costs,
			why);
	}
}

void doctor_report_probe(struct doctor *d, const struct probe *probe, bool enabled)
{
	enum config_backend wanted = probe_wanted_backend(probe->ops, d->config->trace.backend);

	for (unsigned int i = 0; i < probe->ops->backends_count; i++) {
		const struct probe_backend *backend = &probe->ops->backends[i];
		bool chosen = wanted == CONFIG_BACKEND_AUTO ? probe->backend == backend
							    : wanted == backend->id;
		char name[64];

		snprintf(name, sizeof(name), "%s/%s", probe->ops->name,
			record_backend_text(backend->name));
		if (!probe->tried[i])
			doctor_report(d, "probe", name, FAILS,
				"not tried: the shared maps could not be created");
		else if (probe->reasons[i][0])
			doctor_report(d, "probe", name, chosen ? FAILS : DEGRADED, "%s; %s",
				probe->reasons[i], probe->hints[i]);
		else
			doctor_report(d, "probe", name, WORKS, "can be loaded and attached%s%s%s",
				!enabled	 ? "; disabled"
					: chosen ? "; in use"
						 : "",
				probe->ops->pairing ? "; pairing " : "",
				record_pairing_text(probe->ops->pairing));
		if (enabled && chosen)
			report_losses(d, probe, i, name);
	}
}

/* Whether the daemon would attach the probe: with trace.backend set, only that backend counts. */
static bool backend_works(const struct probe *probe, enum config_backend wanted)
{
	wanted = probe_wanted_backend(probe->ops, wanted);
	if (wanted == CONFIG_BACKEND_AUTO)
		return probe->backend != NULL;
	for (unsigned int i = 0; i < probe->ops->backends_count; i++)
		if (probe->ops->backends[i].id == wanted)
			return probe->tried[i] && !probe->reasons[i][0];
	return false;
}

/* Whether the daemon could attach any probe. */
static bool check_probes(struct doctor *d)
{
	struct probe_set *set = calloc(1, sizeof(*set));
	bool usable = false;
	int r;

	if (!set)
		return false;
	r = probe_set_try_all(set, d->config, d->o->sysfs);
	if (r < 0)
		doctor_report(d, "probe", "maps", FAILS, "%s", strerror(-r));
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		doctor_report_probe(d, &set->probes[i], set->enabled[i]);
		usable = usable ||
			(set->enabled[i] &&
				backend_works(&set->probes[i], d->config->trace.backend));
	}
	free(set);
	return usable;
}

/* The files in /proc that tell where a thread is blocked. */
static void check_snapshot(struct doctor *d)
{
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char stack[THREAD_STACK_SIZE];
	struct symbols *symbols;
	int r;

	thread_read_stack(procfs_fd, getpid(), stack);
	if (stack[0])
		doctor_report(d, "snapshot", "stack", WORKS, "/proc/TID/stack");
	else
		doctor_report(d, "snapshot", "stack", DEGRADED,
			"/proc/TID/stack cannot be read, so threads that are stuck before tracing "
			"starts will have no stacks; grant CAP_SYS_ADMIN");
	r = symbols_new(procfs_fd, &symbols);
	if (r < 0)
		doctor_report(d, "snapshot", "kallsyms", DEGRADED,
			"%s/kallsyms: %s%s; stacks of operations that have ended will show addresses "
			"instead of names",
			d->o->procfs, strerror(-r), symbols_hint(r));
	else
		doctor_report(d, "snapshot", "kallsyms", WORKS, "kernel symbols can be read");
	if (r == 0)
		symbols_free(symbols);
}

void doctor_report_unreadable(struct doctor *d)
{
	static const struct {
		const char *name;
		const char *path;
		const char *costs;
	} files[] = {
		{ "locks", "locks", "who holds a lock of a file" },
		/* Of kthreadd: each process may read its own. */
		{ "syscall", "2/syscall",
			"who holds a mutex of a program, and who should read from a full pipe or socket," },
	};
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		char buf[256];
		ssize_t n = file_read_at(procfs_fd, files[i].path, buf, sizeof(buf));
		bool is_refused = n == -EPERM || n == -EACCES;

		if (n < 0)
			doctor_report(d, "missing", files[i].name, DEGRADED,
				"%s is not known (%s/%s: %s)%s", files[i].costs, d->o->procfs,
				files[i].path, strerror((int)-n),
				is_refused
					? "; grant CAP_SYS_PTRACE, and set kernel.yama.ptrace_scope below 3"
					: "");
	}
}

static void check_daemon(struct doctor *d)
{
	char answer[CONTROL_MESSAGE_MAX];
	int r = control_ask(d->config->control.socket, "status", answer);

	if (r == 0)
		doctor_report(d, "daemon", "control", WORKS, "a daemon answers on %s",
			d->config->control.socket);
	else
		doctor_report(d, "daemon", "control", DEGRADED, "no daemon on %s: %s",
			d->config->control.socket, strerror(-r));
}

static int run(const struct options *o)
{
	_cleanup_free_ struct config *config = command_load_config(o);
	struct doctor d = { .o = o, .config = config, .out = stdout };
	bool has_pids, can_arm, can_record;

	if (!config)
		return EXIT_CODE_CONFIG;
	probe_set_redirect_libbpf_log();
	check_host(&d);
	has_pids = check_namespace(&d);
	check_rules(&d);
	check_pressure(&d);
	check_watch(&d);
	check_filesystems(&d);
	check_health(&d);
	can_arm = check_probes(&d);
	check_snapshot(&d);
	doctor_report_unreadable(&d);
	can_record = doctor_check_sinks(&d);
	check_sql_rules(&d, doctor_check_sql(&d));
	check_daemon(&d);
	if (!o->json)
		printf("\n%u ok, %u degraded, %u fail: %s\n", d.counts[WORKS], d.counts[DEGRADED],
			d.counts[FAILS],
			!has_pids ? "processes cannot be named in this pid namespace"
				: !can_arm
				? "no probe can be attached with this configuration on this host"
				: !can_record ? "nothing can be recorded"
					      : "iostall works on this host");
	if (!can_arm || !has_pids)
		return EXIT_CODE_ARM;
	return can_record ? EXIT_CODE_OK : EXIT_CODE_SPOOL;
}

const struct options_command command_doctor = {
	.name = "doctor",
	.summary = "check what works on this host and explain what does not",
	.help = "Check what works on this host and explain what does not: the kernel, each rule, each\n"
		"backend of each probe, the directories and sockets that records go to, and each\n"
		"database. The probes are loaded, attached and removed again; nothing is recorded.\n"
		"The exit status is 0 when an incident could be traced and recorded.",
	.run = run,
};
