/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hand-over between the thread that asks file systems and the loop, and what the loop keeps. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "watch/filesystems.h"

/* Locked with all memory, so no larger than it needs: a path and fnmatch(3). */
#ifdef __SANITIZE_ADDRESS__
#define STACK_BYTES (256 * 1024)
#else
#define STACK_BYTES (24 * 1024)
#endif
#define BUFFER_SIZE 4096

/* Shared by the thread and the loop; whoever leaves last frees it. */
struct filesystems_asker {
	int references;
	int wake_fd;
	bool stopping;
	bool answered; /* the table is the loop's, else the thread's */
	struct config_list patterns;
	struct filesystems_table table;
	int procfs_fd;
	char buf[BUFFER_SIZE];
};

static void asker_unref(struct filesystems_asker *a)
{
	if (__atomic_sub_fetch(&a->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	close_fd(a->wake_fd);
	close_fd(a->procfs_fd);
	free(a);
}

static void *asker_run(void *arg)
{
	struct filesystems_asker *a = arg;
	eventfd_t ignored;

	for (;;) {
		/* Blocks until it is asked for something. */
		if (eventfd_read(a->wake_fd, &ignored) < 0 && errno != EINTR)
			break;
		if (__atomic_load_n(&a->stopping, __ATOMIC_ACQUIRE))
			break;
		if (__atomic_load_n(&a->answered, __ATOMIC_ACQUIRE))
			continue;
		if (filesystems_read(a->procfs_fd, &a->patterns, a->buf, sizeof(a->buf), &a->table) <
			0)
			a->table.count = 0;
		__atomic_store_n(&a->answered, true, __ATOMIC_RELEASE);
	}
	asker_unref(a);
	return NULL;
}

static int asker_start(struct filesystems_asker *a)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r = pthread_attr_init(&attr);

	if (r != 0)
		return -r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Signals belong to the event loop's signalfd. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	a->references++;
	r = pthread_create(&thread, &attr, asker_run, a);
	if (r != 0)
		a->references--;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

/* The value is far below the limit at which a write to an eventfd would wait. */
static void put_question(struct filesystems *f, uint64_t now_ns)
{
	f->asking = true;
	f->asked_ns = now_ns;
	__atomic_store_n(&f->asker->answered, false, __ATOMIC_RELEASE);
	eventfd_write(f->asker->wake_fd, 1);
}

void filesystems_stop(struct filesystems *f)
{
	struct filesystems_asker *a = TAKE_PTR(f->asker);

	if (!a)
		return;
	__atomic_store_n(&a->stopping, true, __ATOMIC_RELEASE);
	eventfd_write(a->wake_fd, 1);
	asker_unref(a);
}

int filesystems_start(struct filesystems *f, int procfs_fd, const struct config_list *patterns,
	uint64_t now_ns)
{
	struct filesystems_asker *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->references = 1;
	a->patterns = *patterns;
	a->procfs_fd = fcntl(procfs_fd, F_DUPFD_CLOEXEC, 0);
	a->wake_fd = eventfd(0, EFD_CLOEXEC);
	r = a->wake_fd < 0 || a->procfs_fd < 0 ? -errno : asker_start(a);
	if (r < 0) {
		asker_unref(a);
		return r;
	}
	filesystems_stop(f);
	f->asker = a;
	put_question(f, now_ns);
	return 0;
}

static struct filesystems_slot *find_slot(struct filesystems *f, const struct watch_filesystem *fs)
{
	for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++) {
		struct filesystems_slot *slot = &f->slots[i];

		if (slot->used && slot->view.major == fs->major && slot->view.minor == fs->minor)
			return slot;
	}
	return NULL;
}

static bool table_has(const struct filesystems_table *table, const struct watch_filesystem *fs)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (table->list[i].major == fs->major && table->list[i].minor == fs->minor)
			return true;
	return false;
}

/* A slot stays that of its file system, since rules keep their state by it. */
static void take_answer(struct filesystems *f, const struct filesystems_table *table)
{
	for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++)
		if (f->slots[i].used && !table_has(table, &f->slots[i].view))
			f->slots[i].used = false;
	for (uint32_t i = 0; i < table->count; i++) {
		struct filesystems_slot *slot = find_slot(f, &table->list[i]);

		if (!slot) {
			/* There is one: the table is as large as the slots are many. */
			for (slot = f->slots; slot->used; slot++)
				;
			slot->used = true;
			slot->serial = ++f->serial;
		}
		slot->view = table->list[i];
	}
	f->left_out = table->left_out;
}

static void forget_values(struct filesystems *f)
{
	for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++) {
		f->slots[i].view.used_pct = NAN;
		f->slots[i].view.inodes_pct = NAN;
	}
}

void filesystems_update(struct filesystems *f, uint64_t now_ns)
{
	if (!f->asker)
		return;
	if (f->asking && __atomic_load_n(&f->asker->answered, __ATOMIC_ACQUIRE)) {
		take_answer(f, &f->asker->table);
		f->answered_ns = f->asked_ns;
		f->asking = false;
	}
	if (!f->asking && now_ns - f->asked_ns >= FILESYSTEMS_PERIOD_NS)
		put_question(f, now_ns);
	if (now_ns - f->answered_ns > FILESYSTEMS_UNKNOWN_AFTER_NS)
		forget_values(f);
}

static double fullness(const struct watch_filesystem *fs)
{
	double pct = isnan(fs->used_pct) ? -1 : fs->used_pct;

	return fs->inodes_pct > pct ? fs->inodes_pct : pct;
}

void filesystems_fill_limits(const struct filesystems *f, struct watch_limits *limits)
{
	const struct watch_filesystem *top[WATCH_LIMITS_FILESYSTEMS_MAX];
	uint32_t count = 0;

	for (unsigned int i = 0; i < WATCH_FILESYSTEMS_MAX; i++) {
		const struct watch_filesystem *fs = &f->slots[i].view;
		uint32_t at = count;

		if (!f->slots[i].used)
			continue;
		while (at > 0 && fullness(fs) > fullness(top[at - 1]))
			at--;
		if (at == WATCH_LIMITS_FILESYSTEMS_MAX)
			continue;
		if (count < WATCH_LIMITS_FILESYSTEMS_MAX)
			count++;
		memmove(top + at + 1, top + at, (count - at - 1) * sizeof(top[0]));
		top[at] = fs;
	}
	for (uint32_t i = 0; i < count; i++)
		limits->filesystems[i] = *top[i];
	limits->filesystems_count = count;
}
