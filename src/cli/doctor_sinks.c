/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What doctor says of the destinations of records. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/apart.h"
#include "cli/doctor.h"
#include "sinks/dir.h"
#include "sinks/sink.h"
#include "util/cleanup.h"
#include "util/file.h"

/* How long the disk of a path may take before it counts as one that hangs. */
#define ANSWER_MS 2000

struct finding {
	enum doctor_verdict verdict;
	char detail[512];
};

struct place {
	const char *path;
	enum dir_use use;
};

__attribute__((format(printf, 3, 4))) static void find(struct finding *ret_finding,
	enum doctor_verdict verdict, const char *format, ...)
{
	va_list ap;

	ret_finding->verdict = verdict;
	va_start(ap, format);
	vsnprintf(ret_finding->detail, sizeof(ret_finding->detail), format, ap);
	va_end(ap);
}

/*
 * Creates the directory and a file in it, since access() allows root everything, and removes both.
 */
static void look_at_directory(const void *arg, struct finding *ret_finding)
{
	const struct place *place = arg;
	const char *path = place->path;
	bool made = access(path, F_OK) < 0 && mkdir(path, 0750) == 0;
	_cleanup_close_ int dir_fd = dir_open_or_make(path, place->use, FILE_NO_GROUP);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	int error = fd < 0 && errno != EOPNOTSUPP ? errno : 0;
	bool is_fit = error || place->use != DIR_SPOOL || file_is_in_memory(path);

	if (made)
		rmdir(path);
	if (error)
		find(ret_finding, FAILS, "%s: %s", path, strerror(error));
	else if (dir_fd < 0)
		find(ret_finding, FAILS, "%s: %s", path, dir_strerror(dir_fd));
	else if (!is_fit)
		find(ret_finding, FAILS,
			"%s is not on tmpfs; mount a tmpfs there, with `mount -t tmpfs -o mode=0750 "
			"tmpfs %s`",
			path, path);
	else
		find(ret_finding, WORKS, "%s%s", path,
			made ? " does not exist yet and can be created" : "");
}

/* What is to be looked at in a process of its own. */
struct task {
	void (*look)(const void *arg, struct finding *ret_finding);
	const void *arg;
};

static void run_task(int fd, const void *arg)
{
	const struct task *task = arg;
	struct finding finding = { 0 };

	task->look(task->arg, &finding);
	send(fd, &finding, sizeof(finding), MSG_NOSIGNAL);
}

/* 0 or a negative errno. */
static int look_apart(const struct task *task, struct finding *ret_finding)
{
	struct apart apart;
	int r = apart_start(&apart, run_task, task);
	ssize_t n;

	if (r < 0)
		return r;
	n = apart_receive(&apart, ret_finding, sizeof(*ret_finding), ANSWER_MS);
	apart_end(&apart);
	return n < 0 ? (int)n : 0;
}

static bool check_apart(struct doctor *d, const char *name, const char *path,
	void (*look)(const void *arg, struct finding *ret_finding), const void *arg)
{
	const struct task task = { look, arg };
	struct finding finding = { 0 };
	int r = look_apart(&task, &finding);

	if (r == -ETIMEDOUT)
		find(&finding, DEGRADED,
			"%s does not answer within 2 s: its disk hangs, or its file system is frozen",
			path);
	else if (r < 0)
		find(&finding, FAILS, "%s: %s", path, strerror(-r));
	doctor_report(d, "sink", name, finding.verdict, "%s", finding.detail);
	return finding.verdict == WORKS;
}

static bool check_directory(struct doctor *d, const char *name, const char *path, enum dir_use use)
{
	const struct place place = { path, use };

	return check_apart(d, name, path, look_at_directory, &place);
}

/* The sinks of sinks.def that send to a socket. */
static void check_sockets(struct doctor *d)
{
	for (unsigned int i = 0; i < SINK_COUNT; i++) {
		const struct sink *sink = sinks_table[i];
		const char *path = sink->socket ? sink->socket(d->config) : NULL;
		struct stat st;

		if (!path)
			continue;
		if (!sink->is_used(d->config, false))
			doctor_report(d, "sink", sink->name, WORKS, "disabled by %s.enabled",
				sink->section);
		else if (stat(path, &st) == 0 && S_ISSOCK(st.st_mode))
			doctor_report(d, "sink", sink->name, WORKS, "%s", path);
		else
			doctor_report(d, "sink", sink->name, DEGRADED,
				"%s is not a socket, so nothing receives messages there", path);
	}
}

static void look_at_hook(const void *arg, struct finding *ret_finding)
{
	const struct config_hook *hook = arg;
	const char *path = *hook->command ? hook->command : hook->socket;
	struct stat st;

	if (stat(path, &st) < 0)
		find(ret_finding, DEGRADED, "%s: %s", path, strerror(errno));
	else if (*hook->command ? !S_ISREG(st.st_mode) || !(st.st_mode & 0111)
				: !S_ISSOCK(st.st_mode))
		find(ret_finding, DEGRADED, "%s is not %s", path,
			*hook->command ? "a program" : "a socket");
	else
		find(ret_finding, WORKS, "%s", path);
}

static void check_hooks(struct doctor *d)
{
	for (unsigned int i = 0; i < d->config->hooks_count; i++) {
		const struct config_hook *hook = &d->config->hooks[i];
		const char *path = *hook->command ? hook->command : hook->socket;

		if (*path)
			check_apart(d, hook->section, path, look_at_hook, hook);
		else
			doctor_report(d, "sink", hook->section, WORKS,
				"off: neither command nor socket is set");
	}
}

bool doctor_check_sinks(struct doctor *d)
{
	bool can_record = check_directory(d, "spool", d->config->record.spool_dir, DIR_SPOOL);

	check_directory(d, "record", d->config->record.dir, DIR_DURABLE);
	check_sockets(d);
	check_hooks(d);
	return can_record;
}
