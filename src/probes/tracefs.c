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
#include "watch/thread_status.h"

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
	/* O_TRUNC would remove the events of all programs. */
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
		snprintf(command, sizeof(command), "r%d:%s/%s %s", TRACEFS_MAXACTIVE, TRACEFS_GROUP,
			name, event->function);
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

uint64_t tracefs_count_misses(unsigned int generation)
{
	_cleanup_fclose_ FILE *f = fopen(TRACEFS_DIR "/kprobe_profile", "re");
	char ending[32], line[256], name[128];
	unsigned long long hits, misses;
	uint64_t sum = 0;
	int len = snprintf(ending, sizeof(ending), "_%u_%d", generation, getpid());

	while (f && fgets(line, sizeof(line), f)) {
		size_t name_len;

		if (sscanf(line, " %127s %llu %llu", name, &hits, &misses) != 3)
			continue;
		name_len = strlen(name);
		if (name_len > (size_t)len && strcmp(name + name_len - (size_t)len, ending) == 0)
			sum += misses;
	}
	return sum;
}

/*
 * Whether a running iostall has made the event, whose name ends with generation and process id.
 * This process has made those of older generations; others with its id are of a process that has
 * ended.
 */
static bool event_is_in_use(const char *event, unsigned int generation)
{
	const char *pid = strrchr(event, '_');
	const char *number = pid ? memrchr(event, '_', (size_t)(pid - event)) : NULL;
	struct watch_thread_status status;
	char path[64];

	if (!number || atoi(pid + 1) <= 0)
		return false;
	if (atoi(pid + 1) == getpid())
		return (unsigned int)atoi(number + 1) < generation;
	snprintf(path, sizeof(path), "/proc/%d/status", atoi(pid + 1));
	if (thread_status_read_at(AT_FDCWD, path, &status) < 0)
		return false;
	/* Killed, but another of its threads hangs in the kernel: it uses nothing any more. */
	return strcmp(status.comm, "iostall") == 0 && status.state != 'Z' && status.state != 'X';
}

/* Removing an event shifts what the next read returns, so the caller repeats this. */
static int clear_stale_once(unsigned int generation)
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
			event_is_in_use(event, generation))
			continue;
		snprintf(command, sizeof(command), "-:%s/%s", TRACEFS_GROUP, event);
		r = write_command(command);
		if (r < 0)
			log_warning(
				"cannot remove the tracefs event %s of a process that has ended: %s",
				event, strerror(-r));
		else
			removed++;
	}
	return removed;
}

int tracefs_clear_stale(unsigned int generation)
{
	int removed = 0, r;

	while ((r = clear_stale_once(generation)) > 0)
		removed += r;
	return r < 0 ? r : removed;
}
