/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/exit.h"
#include "control.h"
#include "enrich/symbols.h"
#include "health.h"
#include "loop.h"
#include "probes/set.h"
#include "snapshot/thread.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"
#include "version.h"
#include "watch/filesystems.h"
#include "watch/rules.h"
#include "watch/watch.h"

static const char *const verdict_names[] = { "ok", "degraded", "fails" };

void doctor_report(struct doctor *d, const char *area, const char *name,
	enum doctor_verdict verdict, const char *format, ...)
{
	char raw[512], buf[2048];
	struct text out = TEXT_ON(buf);
	va_list ap;

	va_start(ap, format);
	vsnprintf(raw, sizeof(raw), format, ap);
	va_end(ap);
	d->counts[verdict]++;
	text_reset(&out);
	if (d->o->json) {
		text_json_open(&out, NULL, '{');
		text_json_string(&out, "area", area);
		text_json_string(&out, "name", name);
		text_json_string(&out, "result", verdict_names[verdict]);
		text_json_string(&out, "detail", raw);
		text_json_close(&out, '}');
		fprintf(d->out, "%s\n", out.buf);
		return;
	}
	text_add_printable(&out, raw, strlen(raw));
	fprintf(d->out, "%-9s %-9s %-14s %s\n", verdict_names[verdict], area, name, out.buf);
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
		doctor_report(d, "host", "user", FAILS, "not root: BPF programs cannot be loaded");
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		doctor_report(d, "host", "btf", WORKS, "/sys/kernel/btf/vmlinux");
	else
		doctor_report(d, "host", "btf", FAILS,
			"no /sys/kernel/btf/vmlinux: a kernel with CONFIG_DEBUG_INFO_BTF is needed");
	if (file_read_at(AT_FDCWD, "/sys/kernel/security/lockdown", lockdown, sizeof(lockdown)) < 0)
		text_copy(lockdown, sizeof(lockdown), "[none]");
	lockdown[strcspn(lockdown, "\n")] = '\0';
	selected = strchr(lockdown, '[');
	if (selected && strncmp(selected, "[confidentiality]", 17) == 0)
		doctor_report(d, "host", "lockdown", FAILS,
			"confidentiality: the kernel lets no BPF program read its memory");
	else
		doctor_report(d, "host", "lockdown", WORKS, "%s", lockdown);
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && geteuid() != 0 &&
		limit.rlim_cur < (16 << 20))
		doctor_report(d, "host", "memlock", DEGRADED, "limit %llu bytes: memory cannot be locked",
			(unsigned long long)limit.rlim_cur);
	else
		doctor_report(d, "host", "memlock", WORKS, "memory can be locked");
}

static void check_rule(struct doctor *d, enum config_rule_name i)
{
	const struct config_rule *rule = &d->config->rules[i];
	const char *name = rules_name(i);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", d->o->procfs, rules_source(i));
	if (!rule->enabled)
		doctor_report(d, "trigger", name, WORKS, "disabled by rule.%s.enabled", name);
	else if (rules_source(i)[0] && access(path, R_OK) < 0)
		doctor_report(d, "trigger", name, DEGRADED, "%s: %s", path, strerror(errno));
	else
		doctor_report(d, "trigger", name, WORKS, "over %g %s in %llu samples", rule->set,
			rules_unit(i), (unsigned long long)rule->hold_samples);
}

static bool is_about_sql(enum config_rule_name rule)
{
	return strncmp(rules_name(rule), "sql_", 4) == 0;
}

static void check_rules(struct doctor *d)
{
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++)
		if (!is_about_sql(i))
			check_rule(d, i);
}

/* Those that judge what a database answers. */
static void check_sql_rules(struct doctor *d, bool any_target)
{
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++) {
		if (is_about_sql(i) && any_target)
			check_rule(d, i);
		else if (is_about_sql(i))
			doctor_report(d, "trigger", rules_name(i), WORKS,
				"no database is asked; nothing to judge");
	}
}

static void check_cgroups(struct doctor *d, const struct watch *watch)
{
	bool any = false;

	for (unsigned int i = 0; i < WATCH_CGROUPS_MAX; i++) {
		uint32_t serial;
		const struct watch_cgroup *cgroup = watch_cgroup_in_slot(watch, i, &serial);

		if (!cgroup)
			continue;
		any = true;
		doctor_report(d, "trigger", "cgroup", WORKS, "%s, holds %.1f %% of %.1f MiB", cgroup->path,
			cgroup->used_pct, (double)cgroup->limit_bytes / (1 << 20));
	}
	if (!any)
		doctor_report(d, "trigger", "cgroup", WORKS,
			"no watched process has a memory limit; nothing to judge");
}

static void check_processes(struct doctor *d)
{
	struct watch_options options = { .procfs = d->o->procfs, .sysfs = d->o->sysfs };
	const struct watch_process *processes;
	struct watch *watch;
	unsigned int count;
	int r;

	watch_options_from_config(d->config, &options);
	options.filesystem = NULL; /* asked by check_filesystems() */
	r = watch_new(&options, &watch);
	if (r < 0) {
		doctor_report(d, "trigger", "processes", FAILS, "%s: %s", d->o->procfs, strerror(-r));
		return;
	}
	watch_take_sample(watch, false);
	processes = watch_processes(watch, &count);
	if (count == 0)
		doctor_report(d, "trigger", "processes", DEGRADED,
			"no process of watch.process runs now; it is looked for every 10 s");
	doctor_report_processes(d, processes, count);
	check_cgroups(d, watch);
	watch_free(watch);
}

/* As the daemon's thread does it; this one may wait. */
static void check_filesystems(struct doctor *d)
{
	_cleanup_free_ struct filesystems_table *table = malloc(sizeof(*table));
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char buf[4096];
	int r = table ? filesystems_read(procfs_fd, &d->config->watch.filesystem, buf, sizeof(buf),
				table)
		      : -ENOMEM;

	if (r < 0) {
		doctor_report(d, "trigger", "filesystem", DEGRADED,
			"%s/self/mountinfo: %s; space and inodes are not judged", d->o->procfs,
			strerror(-r));
		return;
	}
	if (table->count == 0)
		doctor_report(d, "trigger", "filesystem", DEGRADED,
			"watch.filesystem names none that has a disk and can be written to");
	for (uint32_t i = 0; i < table->count; i++) {
		const struct watch_filesystem *fs = &table->list[i];

		doctor_report(d, "trigger", "filesystem", WORKS, "%s, %.1f %% used, inodes %.1f %%",
			fs->mount, fs->used_pct, fs->inodes_pct);
	}
	if (table->left_out)
		doctor_report(d, "trigger", "filesystem", DEGRADED, "%u more are beyond the table",
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

/* One check, as the daemon does it; it ends with health.timeout. */
static void check_health(struct doctor *d)
{
	struct health_check check = { .result = -ENOMEM };
	struct health *health = NULL;
	int r = loop_new(&check.loop);

	if (r == 0)
		r = health_new(check.loop, d->config, &health);
	if (r == 0 && health) {
		health_set_callback(health, on_health, &check);
		loop_run(check.loop);
		r = check.result;
	}
	if (r == 0 && !health)
		doctor_report(d, "trigger", "health check", WORKS, "health.connect and health.command name none");
	else if (r == 0)
		doctor_report(d, "trigger", "health check", WORKS, "%s answers", health_target(health));
	else
		doctor_report(d, "trigger", "health check", DEGRADED, "%s: %s", health_target(health),
			health_describe(r));
	health_free(health);
	loop_free(check.loop);
}

static void check_probe(struct doctor *d, const struct probe *probe, bool enabled)
{
	enum config_backend wanted = probe_wanted_backend(probe->ops, d->config->trace.backend);

	for (unsigned int i = 0; i < probe->ops->backends_count; i++) {
		const struct probe_backend *backend = &probe->ops->backends[i];
		bool chosen = wanted == CONFIG_BACKEND_AUTO ? probe->backend == backend
							    : wanted == backend->id;
		char name[64];

		snprintf(name, sizeof(name), "%s/%s", probe->ops->name, backend->name);
		if (!probe->tried[i])
			doctor_report(d, "probe", name, FAILS, "not tried: the shared maps cannot be made");
		else if (probe->reasons[i][0])
			doctor_report(d, "probe", name, chosen ? FAILS : DEGRADED, "%s; %s",
				probe->reasons[i], probe->hints[i]);
		else
			doctor_report(d, "probe", name, probe->partial[i][0] ? DEGRADED : WORKS,
				"loads and attaches%s%s%s",
				!enabled ? "; disabled" : chosen ? "; in use" : "",
				probe->partial[i][0] ? "; only in part: " : "", probe->partial[i]);
	}
}

/* Whether the daemon would arm it: with trace.backend set, no other one counts. */
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

/* Whether the daemon could arm anything. */
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
		check_probe(d, &set->probes[i], set->enabled[i]);
		usable = usable || (set->enabled[i] && backend_works(&set->probes[i],
						d->config->trace.backend));
	}
	free(set);
	return usable;
}

/* The files of a thread's own that tell where it hangs. */
static void check_snapshot(struct doctor *d)
{
	_cleanup_close_ int procfs_fd = open(d->o->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char wchan[THREAD_WCHAN_SIZE], stack[THREAD_STACK_SIZE], path[PATH_MAX];
	struct thread_syscall call;
	struct symbols *symbols;
	int r = thread_read_syscall(procfs_fd, getpid(), &call);

	if (r < 0)
		doctor_report(d, "snapshot", "syscall", DEGRADED,
			"/proc/TID/syscall: %s; only threads in D are believed to be stuck",
			strerror(-r));
	else
		doctor_report(d, "snapshot", "syscall", WORKS, "/proc/TID/syscall");
	thread_read_wait(procfs_fd, getpid(), wchan, stack);
	if (stack[0])
		doctor_report(d, "snapshot", "stack", WORKS, "/proc/TID/stack");
	else
		doctor_report(d, "snapshot", "stack", DEGRADED,
			"/proc/TID/stack cannot be read (CAP_SYS_ADMIN): no stacks of stuck threads");
	snprintf(path, sizeof(path), "%s/kallsyms", d->o->procfs);
	r = symbols_new(path, &symbols);
	if (r < 0)
		doctor_report(d, "snapshot", "kallsyms", DEGRADED, "%s: %s; stacks show addresses", path,
			strerror(-r));
	else
		doctor_report(d, "snapshot", "kallsyms", WORKS, "symbols of the kernel are known");
	if (r == 0)
		symbols_free(symbols);
}

/* Makes it and a file in it for real, as access() says yes to root everywhere, and leaves no trace. */
static bool check_directory(struct doctor *d, const char *name, const char *path, bool want_tmpfs)
{
	bool made = mkdir(path, 0750) == 0;
	_cleanup_close_ int fd = open(path, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	int error = fd < 0 && errno != EOPNOTSUPP ? errno : 0;
	struct statfs fs;

	if (error == 0 && statfs(path, &fs) < 0)
		error = errno;
	if (made)
		rmdir(path);
	if (error) {
		doctor_report(d, "sink", name, FAILS, "%s: %s", path, strerror(error));
		return false;
	}
	if (made)
		doctor_report(d, "sink", name, WORKS, "%s does not exist yet and can be made", path);
	else if (want_tmpfs && fs.f_type != TMPFS_MAGIC)
		doctor_report(d, "sink", name, DEGRADED,
			"%s is not on tmpfs: a record made there may wait for the disk", path);
	else
		doctor_report(d, "sink", name, WORKS, "%s", path);
	return true;
}

static void check_socket(struct doctor *d, const char *name, bool enabled, const char *path)
{
	struct stat st;

	if (!enabled)
		doctor_report(d, "sink", name, WORKS, "disabled by %s.enabled", name);
	else if (stat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		doctor_report(d, "sink", name, WORKS, "%s", path);
	else
		doctor_report(d, "sink", name, DEGRADED, "%s is no socket: nobody listens", path);
}

static void check_daemon(struct doctor *d)
{
	char answer[CONTROL_MESSAGE_MAX];
	int r = control_ask(d->config->control.socket, "status", answer);

	if (r == 0)
		doctor_report(d, "daemon", "control", WORKS, "answers on %s", d->config->control.socket);
	else
		doctor_report(d, "daemon", "control", DEGRADED, "no daemon on %s: %s",
			d->config->control.socket, strerror(-r));
}

static int run(const struct options *o)
{
	_cleanup_free_ struct config *config = command_load_config(o);
	struct doctor d = { .o = o, .config = config, .out = stdout };
	bool can_arm, can_record;

	if (!config)
		return EXIT_CODE_CONFIG;
	probe_set_redirect_libbpf_log();
	check_host(&d);
	check_rules(&d);
	check_processes(&d);
	check_filesystems(&d);
	check_health(&d);
	can_arm = check_probes(&d);
	check_snapshot(&d);
	can_record = check_directory(&d, "spool", config->record.spool_dir, true);
	check_directory(&d, "record", config->record.dir, false);
	check_socket(&d, "journal", config->journal.enabled, config->journal.socket);
	check_socket(&d, "syslog", config->syslog.enabled, config->syslog.socket);
	check_sql_rules(&d, doctor_check_sql(&d));
	check_daemon(&d);
	if (!o->json)
		printf("\n%u ok, %u degraded, %u fail: %s\n", d.counts[WORKS], d.counts[DEGRADED],
			d.counts[FAILS],
			!can_arm ? "nothing can be armed with this configuration on this host" :
			!can_record ? "nothing can be recorded" : "iostall works on this host");
	if (!can_arm)
		return EXIT_CODE_ARM;
	return can_record ? EXIT_CODE_OK : EXIT_CODE_SPOOL;
}

const struct options_command command_doctor = {
	.name = "doctor",
	.summary = "what works on this host, and why not what does not",
	.run = run,
};
