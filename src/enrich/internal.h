/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of enrich share. */
#ifndef IOSTALL_ENRICH_INTERNAL_H
#define IOSTALL_ENRICH_INTERNAL_H

#include "enrich/below.h"
#include "enrich/enrich.h"
#include "enrich/members.h"
#include "enrich/mounts.h"
#include "enrich/mounts_reader.h"
#include "enrich/process.h"
#include "enrich/symbols_reader.h"

struct enrich {
	int procfs_fd;
	int mountinfo_fd; /* -1: there is none */
	const struct watch *watch;
	struct symbols_reader symbols_reader;
	struct symbols *symbols; /* NULL: they are not known, or not yet */
	/* Mount namespaces of this process and of process 1; a service may have its own. */
	uint32_t home_mount_ns[2];
	struct enrich_users users;
	struct mounts_reader mounts_reader;
	struct mounts mounts;
	bool mounts_logged; /* that some were left out */
	struct process_cache processes;
	struct writers *writers;
	struct file_server *file_server;
	struct titles *titles;
	unsigned int disks_age; /* calls since the stack of disks was read */
	bool disks_changed;
	uint32_t disks_generation;
	struct members members;
	struct below below;
	bool below_logged; /* that some were left out */
};

#endif
