/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/namer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/record.h"
#include "sinks/preallocator.h"
#include "util/detached_worker.h"
#include "util/log.h"
#include "util/text.h"

/* The whole stack is locked in memory; the deepest frames are those of a log line. */
#define THREAD_STACK_BYTES (24 * 1024)

/* The thread's while it is busy. */
struct naming {
	char file[PREALLOCATOR_NAME_SIZE];
	char incident[RECORD_ID_SIZE];
	int result;
};

struct namer {
	struct detached_worker *worker;
	struct naming *naming;
};

static void run(void *state, const int *fds)
{
	struct naming *n = state;
	char record[RECORD_FILE_SIZE];

	snprintf(record, sizeof(record), "%s" RECORD_FILE_SUFFIX, n->incident);
	n->result = 0;
	if (renameat2(fds[0], n->file, fds[0], record, RENAME_NOREPLACE) == 0)
		return;
	n->result = -errno;
	log_warning("incident %s is not recorded: cannot rename its file in record.spool_dir: %s",
		n->incident, strerror(-n->result));
	unlinkat(fds[0], n->file, 0);
}

int namer_new(int spool_fd, struct namer **ret_namer)
{
	const struct detached_worker_options options = { .run = run,
		.stack_bytes = THREAD_STACK_BYTES,
		.fds = { spool_fd },
		.fds_count = 1,
		.done_fd = -1 };
	struct namer *namer = calloc(1, sizeof(*namer));
	int r = -ENOMEM;

	if (!namer)
		return r;
	namer->naming = calloc(1, sizeof(*namer->naming));
	if (namer->naming)
		r = detached_worker_new(&options, namer->naming, &namer->worker);
	if (r < 0) {
		free(namer);
		return r;
	}
	*ret_namer = namer;
	return 0;
}

struct namer *namer_free(struct namer *namer)
{
	if (namer)
		detached_worker_free(namer->worker);
	free(namer);
	return NULL;
}

void namer_start(struct namer *namer, const char *file, const char *incident)
{
	text_copy(namer->naming->file, sizeof(namer->naming->file), file);
	text_copy(namer->naming->incident, sizeof(namer->naming->incident), incident);
	detached_worker_start(namer->worker);
}

int namer_result(const struct namer *namer)
{
	return detached_worker_is_busy(namer->worker) ? -EINPROGRESS : namer->naming->result;
}
