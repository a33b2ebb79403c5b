/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How full the mounted file systems are that have a disk behind them.
 * Called by the statvfs worker, which is a thread of its own, and by `doctor`.
 * Never called by the event loop: fs_usage_read() waits for each file system that it asks.
 */
#ifndef IOSTALL_WATCH_FS_USAGE_H
#define IOSTALL_WATCH_FS_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "config/config.h"
#include "record/structs.h"
#include "util/parse.h"

#define WATCH_FILESYSTEMS_MAX 64

struct fs_usage_table {
	bool is_missing; /* the list of mounts could not be read */
	uint32_t count;
	uint32_t
		left_out; /* did not fit into the table, or have a longer path than there is room */
	struct record_file_system list[WATCH_FILESYSTEMS_MAX];
};

/* So many file systems that do not answer can be passed over. */
#define FS_USAGE_SKIP_MAX 4

/* A file system that is not asked and has no numbers. */
struct fs_usage_skip {
	uint64_t key;		       /* of fs_usage_question.asking; 0: none */
	char mount[RECORD_MOUNT_SIZE]; /* filled in where it is still mounted */
};

struct fs_usage_question {
	struct config_list patterns; /* of mount points */
	struct fs_usage_skip skip[FS_USAGE_SKIP_MAX];
	/*
	 * Stands for the mount that is being asked; 0: none is. Atomic, so that another thread may
	 * look where a question hangs.
	 */
	uint64_t asking;
	bool abandoned; /* atomic: the answer is not wanted any more, so no other mount is asked */
	char buf[4096]; /* for mountinfo; lines that do not fit into it are passed over */
	struct fs_usage_table table;
};

/* One mount; the path has no escapes any more. */
struct fs_usage_mount {
	uint64_t id;
	uint32_t major;
	uint32_t minor;
	char point[256];
};

/*
 * A line of mountinfo, see proc_pid_mountinfo(5). Returns 0, -EINVAL (no such line), -ENAMETOOLONG,
 * or -ENODEV for what is not asked: it has no disk, is a FUSE server or is read-only. Pure.
 */
int fs_usage_parse_mount(struct cursor line, struct fs_usage_mount *ret_mount);

/* Percentages of what statvfs(3) says, counted as df(1) does. NAN where nothing can be counted. */
void fs_usage_set(struct record_file_system *fs, const struct statvfs *st);

/*
 * Asks all file systems whose mount point matches a pattern, as process 1 sees them, or as this
 * process does where that is not possible; the answers go to the table. Waits for the file systems.
 * 0 or a negative errno.
 */
int fs_usage_read(int procfs_fd, struct fs_usage_question *question);

#endif
