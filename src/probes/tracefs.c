/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

#define TRACEFS_DIR "/sys/kernel/tracing"
/* KRETPROBE_MAXACTIVE_MAX in kernel/trace/trace_kprobe.c */
#define TRACEFS_MAXACTIVE 4096

int tracefs_mount(void)
{
	if (access(TRACEFS_DIR "/events", F_OK) == 0)
		return 0;
	if (mount("tracefs", TRACEFS_DIR, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	return 0;
}

void tracefs_event_name(const struct tracefs_event *event, char ret_name[TRACEFS_EVENT_SIZE])
{
	snprintf(ret_name, TRACEFS_EVENT_SIZE, "%s_%s_%u_%d", event->function,
		event->is_return ? "return" : "entry", event->generation, getpid());
}

static int write_command(const char *command)
{
	/* Not O_TRUNC: that would remove the events of everybody. */
	_cleanup_close_ int fd =
		open(TRACEFS_DIR "/kprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return file_write_all(fd, command, strlen(command));
}

int tracefs_create_event(const struct tracefs_event *event)
{
	char command[256], name[TRACEFS_EVENT_SIZE], path[256];

	tracefs_event_name(event, name);
	snprintf(path, sizeof(path), TRACEFS_DIR "/events/" TRACEFS_GROUP "/%s", name);
	if (access(path, F_OK) == 0)
		return 0;
	if (event->is_return)
		snprintf(command, sizeof(command), "r%d:%s/%s %s", TRACEFS_MAXACTIVE,
			TRACEFS_GROUP, name, event->function);
	else
		snprintf(command, sizeof(command), "p:%s/%s %s", TRACEFS_GROUP, name,
			event->function);
	return write_command(command);
}

int tracefs_remove_event(const struct tracefs_event *event)
{
	char command[256], name[TRACEFS_EVENT_SIZE];

	tracefs_event_name(event, name);
	snprintf(command, sizeof(command), "-:%s/%s", TRACEFS_GROUP, name);
	return write_command(command);
}

uint64_t tracefs_event_misses(const struct tracefs_event *event)
{
	_cleanup_fclose_ FILE *f = fopen(TRACEFS_DIR "/kprobe_profile", "re");
	char wanted[TRACEFS_EVENT_SIZE], line[256], name[128];
	unsigned long long hits, misses;

	if (!f)
		return 0;
	tracefs_event_name(event, wanted);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %127s %llu %llu", name, &hits, &misses) == 3 &&
			strcmp(name, wanted) == 0)
			return misses;
	return 0;
}

/* Whether the process that an event's name ends with is a living iostall other than this one. */
static bool event_is_in_use(const char *event)
{
	const char *pid = strrchr(event, '_');
	char path[64], comm[32];

	if (!pid || atoi(pid + 1) <= 0 || atoi(pid + 1) == getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/comm", atoi(pid + 1));
	if (file_read_at(AT_FDCWD, path, comm, sizeof(comm)) < 0)
		return false;
	return strcmp(comm, "iostall\n") == 0;
}

/* Removing while reading shifts what the next read finds, so the caller repeats this. */
static int clear_stale_once(void)
{
	_cleanup_fclose_ FILE *f = fopen(TRACEFS_DIR "/kprobe_events", "re");
	char line[512], event[TRACEFS_EVENT_SIZE * 2];
	int removed = 0;

	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (fgets(line, sizeof(line), f)) {
		char command[256];
		int r;

		/* "p:iostall/vfs_read_entry_1234 vfs_read" or "r4096:iostall/..." */
		if (sscanf(line, "%*[pr0-9]:" TRACEFS_GROUP "/%127s", event) != 1 ||
			event_is_in_use(event))
			continue;
		snprintf(command, sizeof(command), "-:%s/%s", TRACEFS_GROUP, event);
		r = write_command(command);
		if (r < 0)
			log_warning("tracefs event %s of a dead process cannot be removed: %s", event,
				strerror(-r));
		else
			removed++;
	}
	return removed;
}

int tracefs_clear_stale(void)
{
	int removed = 0, r;

	while ((r = clear_stale_once()) > 0)
		removed += r;
	return r < 0 ? r : removed;
}
