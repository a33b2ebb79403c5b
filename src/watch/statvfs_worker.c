/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/statvfs_worker.h"

#include <errno.h>
#include <stdlib.h>

#include "util/log.h"
#include "util/renewable_worker.h"

/* The deepest calls hold a path and run fnmatch(3). */
#define THREAD_STACK_BYTES (24 * 1024)

_Static_assert(FS_USAGE_SKIP_MAX == RENEWABLE_WORKER_HUNG_MAX,
	"each thread that hangs has a file system that is passed over");

struct statvfs_worker {
	struct renewable_worker worker; /* its state is a struct fs_usage_question */
	struct config_list patterns;
	/* What the threads hang in, by their places in the worker. */
	struct fs_usage_skip skip[FS_USAGE_SKIP_MAX];
	bool warned; /* that too many hang */
};

static void run(void *state, const int *fds)
{
	struct fs_usage_question *q = state;

	q->table.is_missing = fs_usage_read(fds[0], q) < 0;
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct fs_usage_question),
	.limit_ns = STATVFS_WORKER_LIMIT_NS,
};

int statvfs_worker_new(int procfs_fd, const struct config_list *patterns,
	struct statvfs_worker **ret_worker)
{
	struct statvfs_worker *w = renewable_worker_new(sizeof(*w), &kind, procfs_fd);

	if (!w)
		return -errno;
	w->patterns = *patterns;
	*ret_worker = w;
	return 0;
}

struct statvfs_worker *statvfs_worker_free(struct statvfs_worker *w)
{
	return renewable_worker_free(w);
}

/* What has answered by now is asked again. */
static void forget_answered(struct statvfs_worker *w)
{
	for (unsigned int i = 0; i < FS_USAGE_SKIP_MAX; i++) {
		struct fs_usage_skip *skip = &w->skip[i];

		if (renewable_worker_hangs_at(&w->worker, i))
			continue;
		if (skip->mount[0])
			log_notice("watch: the file system on %s answers again", skip->mount);
		*skip = (struct fs_usage_skip){ 0 };
	}
}

void statvfs_worker_ask(struct statvfs_worker *w, uint64_t now_ns)
{
	struct fs_usage_question *q = w->worker.state;

	forget_answered(w);
	q->patterns = w->patterns;
	for (unsigned int i = 0; i < FS_USAGE_SKIP_MAX; i++)
		q->skip[i] = (struct fs_usage_skip){ .key = w->skip[i].key };
	renewable_worker_start(&w->worker, now_ns);
}

/* The thread that has passed over a file system knows its name. */
static void log_hanging(struct statvfs_worker *w, const struct fs_usage_question *q)
{
	for (unsigned int i = 0; i < FS_USAGE_SKIP_MAX; i++) {
		struct fs_usage_skip *skip = &w->skip[i];

		if (!skip->key || skip->mount[0] || !q->skip[i].mount[0] ||
			!renewable_worker_hangs_at(&w->worker, i))
			continue;
		*skip = q->skip[i];
		log_warning(
			"watch: the file system on %s does not answer; the rules space and inodes skip "
			"it until it does",
			skip->mount);
	}
}

const struct fs_usage_table *statvfs_worker_answer(struct statvfs_worker *w)
{
	const struct fs_usage_question *q = w->worker.state;

	if (renewable_worker_is_busy(&w->worker))
		return NULL;
	log_hanging(w, q);
	return &q->table;
}

bool statvfs_worker_replace_hung(struct statvfs_worker *w, uint64_t now_ns)
{
	struct fs_usage_question *q = w->worker.state;
	uint64_t key = __atomic_load_n(&q->asking, __ATOMIC_RELAXED);
	int place;

	forget_answered(w);
	place = renewable_worker_renew(&w->worker, now_ns);
	if (place == -EBUSY && !w->warned)
		log_warning(
			"watch: %d threads hang in file systems that do not answer; the rules space and "
			"inodes are not checked until one does",
			FS_USAGE_SKIP_MAX + 1);
	w->warned = place == -EBUSY || (w->warned && place == -EAGAIN);
	if (place < 0)
		return false;
	__atomic_store_n(&q->abandoned, true, __ATOMIC_RELAXED);
	w->skip[place].key = key;
	return true;
}
