/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What doctor says of the destinations of records. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "sinks/dir.h"
#include "sinks/sink.h"
#include "util/cleanup.h"
#include "util/file.h"

/*
 * Creates the directory and a file in it, since access() allows root everything, and removes both.
 */
static bool check_directory(struct doctor *d, const char *name, const char *path, enum dir_use use)
{
	bool made = mkdir(path, 0750) == 0;
	_cleanup_close_ int dir_fd = dir_open_or_make(path, use, FILE_NO_GROUP);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	int error = fd < 0 && errno != EOPNOTSUPP ? errno : 0;
	bool is_fit = error || use != DIR_SPOOL || file_is_in_memory(path);

	if (made)
		rmdir(path);
	if (error) {
		doctor_report(d, "sink", name, FAILS, "%s: %s", path, strerror(error));
		return false;
	}
	if (dir_fd < 0) {
		doctor_report(d, "sink", name, FAILS, "%s: %s", path, dir_strerror(dir_fd));
		return false;
	}
	if (!is_fit) {
		doctor_report(d, "sink", name, FAILS,
			"%s is not on tmpfs; mount a tmpfs there, with `mount -t tmpfs -o mode=0750 "
			"tmpfs %s`",
			path, path);
		return false;
	}
	if (made)
		doctor_report(d, "sink", name, WORKS, "%s does not exist yet and can be created",
			path);
	else
		doctor_report(d, "sink", name, WORKS, "%s", path);
	return true;
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

static void check_hooks(struct doctor *d)
{
	for (unsigned int i = 0; i < d->config->hooks_count; i++) {
		const struct config_hook *hook = &d->config->hooks[i];
		const char *path = *hook->command ? hook->command : hook->socket;
		struct stat st;

		if (!*path)
			doctor_report(d, "sink", hook->section, WORKS,
				"off: neither command nor socket is set");
		else if (stat(path, &st) < 0)
			doctor_report(d, "sink", hook->section, DEGRADED, "%s: %s", path,
				strerror(errno));
		else if (*hook->command ? !S_ISREG(st.st_mode) || !(st.st_mode & 0111)
					: !S_ISSOCK(st.st_mode))
			doctor_report(d, "sink", hook->section, DEGRADED, "%s is not %s", path,
				*hook->command ? "a program" : "a socket");
		else
			doctor_report(d, "sink", hook->section, WORKS, "%s", path);
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
