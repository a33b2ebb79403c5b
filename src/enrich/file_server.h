/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who has to answer before threads can go on: the process behind a FUSE file system, that which
 * allows files to be opened (fanotify), or the audit daemon, with its state; and the server of an
 * NFS mount.
 * Called by enrich.c while an incident is open.
 * Never looks at other processes on the event loop; its thread does, which may hang.
 */
#ifndef IOSTALL_ENRICH_FILE_SERVER_H
#define IOSTALL_ENRICH_FILE_SERVER_H

#include "enrich/mounts.h"
#include "record/record.h"

/* Whoever has no answer after this time hangs or has no CPU. */
#define FILE_SERVER_LIMIT_NS 2000000000ULL

struct file_server;

/* The descriptor must stay open as long as the owner lives. 0 or a negative errno. */
int file_server_new(int procfs_fd, struct file_server **ret_server);
/* Returns at once. NULL is accepted; returns NULL. */
struct file_server *file_server_free(struct file_server *server);

/*
 * Makes another thread in place of one that has not answered for FILE_SERVER_LIMIT_NS. Allocates:
 * only while no incident is open. If it cannot, the next call tries again.
 */
void file_server_replace_hung(struct file_server *server, uint64_t now_ns);

struct file_server_question {
	const struct mounts *mounts;
	uint32_t major;
	uint32_t minor;
	enum record_cause waits_for;
	uint64_t incident_ns; /* when it began */
	uint64_t now_ns;
};

/* Begins a search. Call it about once a second while threads wait, and not after that. */
void file_server_find(struct file_server *server, const struct file_server_question *question);
/* What the last one has found; not filled in: there was none in this incident. */
void file_server_get(struct file_server *server, uint64_t incident_ns, uint64_t now_ns,
	struct record_file_server *ret_found);

#endif
