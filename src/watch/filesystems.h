/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How full the file systems with a disk behind them are, asked by a thread of its own.
 * Used by the watch room; filesystems_read() also by `doctor`.
 * Never lets the loop wait for a file system: what is not answered grows old and is not known.
 */
#ifndef IOSTALL_WATCH_FILESYSTEMS_H
#define IOSTALL_WATCH_FILESYSTEMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "config.h"
#include "util/parse.h"
#include "watch/sample.h"

#define WATCH_FILESYSTEMS_MAX 64
/* Full is what a disk becomes within minutes, and asking takes 10 us each. */
#define FILESYSTEMS_PERIOD_NS (10 * NSEC_PER_SEC)
#define FILESYSTEMS_UNKNOWN_AFTER_NS (60 * NSEC_PER_SEC)

struct filesystems_table {
	uint32_t count;
	uint32_t left_out; /* beyond the table, or with too long a path */
	struct watch_filesystem list[WATCH_FILESYSTEMS_MAX];
};

struct filesystems_slot {
	bool used;
	uint32_t serial; /* another one for each appearance */
	struct watch_filesystem view;
};

struct filesystems_asker;

struct filesystems {
	struct filesystems_asker *asker; /* NULL: nothing is asked */
	bool asking;
	uint64_t asked_ns;
	uint64_t answered_ns; /* when the question was put whose answer is in the slots; 0: none */
	uint32_t serial;
	uint32_t left_out;
	struct filesystems_slot slots[WATCH_FILESYSTEMS_MAX];
};

/*
 * Asks at once. What was known before stays until the first answer. The descriptor stays the caller's. May
 * allocate. 0 or a negative errno.
 */
int filesystems_start(struct filesystems *f, int procfs_fd, const struct config_list *patterns,
	uint64_t now_ns);
/* Does not wait for the thread, which may hang: it ends by itself. */
void filesystems_stop(struct filesystems *f);

/* Takes the answer if there is one, and asks again when it is time. */
void filesystems_update(struct filesystems *f, uint64_t now_ns);

/* The fullest. */
void filesystems_fill_limits(const struct filesystems *f, struct watch_limits *limits);

/* A line of mountinfo, proc_pid_mountinfo(5). Paths as they are, without escapes. */
struct filesystems_mount {
	uint64_t id;
	uint32_t major;
	uint32_t minor;
	char point[256];
};

/* 0; -EINVAL: no such line; -ENAMETOOLONG; -ENODEV: no disk, a FUSE server or never written to. Pure. */
int filesystems_parse_mount(struct cursor line, struct filesystems_mount *ret_mount);

/* Percentages of what statvfs(3) says, as df(1) counts. */
void filesystems_set_usage(struct watch_filesystem *fs, const struct statvfs *st);

/*
 * All of them as process 1 sees them, else as this one does. Waits for the file systems. buf is for
 * reading, lines that do not fit are passed over. 0 or a negative errno.
 */
int filesystems_read(int procfs_fd, const struct config_list *patterns, char *buf, size_t size,
	struct filesystems_table *ret_table);

#endif
