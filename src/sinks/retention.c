/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "record/reader.h"
#include "sinks/dir.h"
#include "sinks/hook_output.h"
#include "sinks/lock.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"

struct kept_file {
	char name[RECORD_FILE_SIZE];
	uint64_t bytes;
	uint64_t mono_ns; /* when it was opened; 0: not in this boot, or not known */
	bool continues;	  /* another record has the beginning of it */
	bool too_old;
};

struct kept_list {
	struct kept_file *files;
	size_t count;
	size_t room;
	uint64_t bytes;
};

static void cleanup_list(struct kept_list *list)
{
	free(list->files);
}

void retention_read_clock(struct retention_clock *ret_clock)
{
	struct timex timex = { .modes = 0 };
	struct timespec boot;
	int state = adjtimex(&timex);

	*ret_clock = (struct retention_clock){
		.mono_ns = clock_mono_ns(),
		.real_ns = clock_real_ns(),
		/*
		 * Whoever sets the clock by hand ends this state, see settimeofday(2) in the
		 * kernel.
		 */
		.synchronised = state >= 0 && state != TIME_ERROR && !(timex.status & STA_UNSYNC),
	};
	if (clock_gettime(CLOCK_BOOTTIME, &boot) == 0)
		ret_clock->uptime_ns =
			(uint64_t)boot.tv_sec * NSEC_PER_SEC + (uint64_t)boot.tv_nsec;
	if (file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", ret_clock->boot_id,
		    sizeof(ret_clock->boot_id)) < 0)
		ret_clock->boot_id[0] = '\0';
	ret_clock->boot_id[strcspn(ret_clock->boot_id, "\n")] = '\0';
}

/* Opens a regular file that has the name and first line of a record; else a negative errno. */
static int open_record(int dir_fd, const char *name, struct stat *ret_stat)
{
	/* Without O_NONBLOCK, opening a FIFO of that name would wait for a writer. */
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode) || record_fd_check(fd, name) < 0)
		return -EINVAL;
	return TAKE_FD(fd);
}

static void cleanup_reader(struct record_reader **reader)
{
	record_reader_free(*reader);
}

/*
 * What the record says of itself: nothing, where it cannot be read or has no complete `open` line.
 * -ENOMEM: not read.
 */
static int describe(int fd, const struct retention_clock *clock, struct kept_file *file)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	_cleanup_(cleanup_reader) struct record_reader *reader = NULL;
	struct record_line line;

	file->mono_ns = 0;
	file->continues = false;
	if (!r || record_reader_new(fd, &reader) == -ENOMEM)
		return -ENOMEM;
	if (!reader || record_reader_next(reader, r, &line) <= 0 || !line.decoded ||
		r->type != RECORD_OPEN)
		return 0;
	file->continues = *r->open.continues;
	if (*clock->boot_id && strcmp(r->open.boot_id, clock->boot_id) == 0)
		file->mono_ns = r->mono_ns;
	return 0;
}

static uint64_t age_ns(const struct kept_file *file, const struct stat *st,
	const struct retention_clock *clock)
{
	uint64_t made_ns = record_id_real_ns(file->name), written_ns = 0;

	if (file->mono_ns)
		return minus(clock->mono_ns, file->mono_ns);
	if (!clock->synchronised)
		return clock->uptime_ns;
	/* The clock may have been behind when the incident opened. */
	if (st->st_mtim.tv_sec > 0)
		written_ns = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC;
	return minus(clock->real_ns, written_ns > made_ns ? written_ns : made_ns);
}

static int list_add(struct kept_list *list, const struct kept_file *file)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct kept_file *files = reallocarray(list->files, room, sizeof(*files));

		if (!files)
			return -ENOMEM;
		list->files = files;
		list->room = room;
	}
	list->files[list->count++] = *file;
	list->bytes += file->bytes;
	return 0;
}

/* Without a record, nothing tells whether it is of this boot. */
static uint64_t output_age_ns(const struct kept_file *file, const struct stat *st,
	const struct retention_clock *clock)
{
	uint64_t age = age_ns(file, st, clock), by_file;

	if (clock->synchronised || st->st_mtim.tv_sec <= 0)
		return age;
	by_file = minus(clock->real_ns, (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC);
	return by_file < age ? by_file : age;
}

/*
 * Outputs of hooks whose record somebody has removed, or that was never stored. That of the present
 * incident is not there yet, either, so only their age counts.
 */
static void remove_left_behind(int dir_fd, const char *name, const struct retention_limits *limits,
	const struct retention_clock *clock)
{
	struct kept_file file = { 0 };
	struct stat st;

	if (limits->max_age_ns && hook_output_is_name(name, file.name) &&
		fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		faccessat(dir_fd, file.name, F_OK, 0) < 0 &&
		output_age_ns(&file, &st, clock) > limits->max_age_ns)
		hook_output_remove(dir_fd, file.name);
}

static int list_read(int dir_fd, const struct retention_limits *limits,
	const struct retention_clock *clock, struct kept_list *list)
{
	_cleanup_closedir_ DIR *dir = dir_list(dir_fd);
	const struct dirent *entry;

	if (!dir)
		return -errno;
	for (;;) {
		_cleanup_close_ int record_fd = -1;
		struct kept_file file;
		struct stat st;
		int r;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		remove_left_behind(dir_fd, entry->d_name, limits, clock);
		if (!record_file_name_is_valid(entry->d_name))
			continue;
		record_fd = open_record(dir_fd, entry->d_name, &st);
		if (record_fd < 0)
			continue;
		memcpy(file.name, entry->d_name, RECORD_FILE_SIZE);
		file.bytes = (uint64_t)st.st_size + hook_output_bytes(dir_fd, entry->d_name);
		r = describe(record_fd, clock, &file);
		if (r < 0)
			return r;
		file.too_old = limits->max_age_ns && age_ns(&file, &st, clock) > limits->max_age_ns;
		r = list_add(list, &file);
		if (r < 0)
			return r;
	}
}

/*
 * The id begins with the time, so the order by name is that by age, whatever the files' mtimes are.
 * The clock may have been behind since the boot, or ahead before it: what was opened since comes
 * last, in the order of the monotonic clock.
 */
static int compare_ages(const void *a, const void *b)
{
	const struct kept_file *x = a, *y = b;

	if (x->mono_ns != y->mono_ns)
		return x->mono_ns > y->mono_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/*
 * In the order in which they are removed. A hang that lasts for days has many records, of which the
 * first has what came before it: those that continue another one go first.
 */
static int compare_worth(const void *a, const void *b)
{
	const struct kept_file *x = a, *y = b;

	if (x->too_old != y->too_old)
		return x->too_old ? -1 : 1;
	if (x->continues != y->continues)
		return x->continues ? -1 : 1;
	return compare_ages(a, b);
}

/* 1 when it is removed, 0 when it is being written, -errno. */
static int remove_record(int dir_fd, int lock_fd, const char *name)
{
	struct stat st;
	_cleanup_close_ int fd = open_record(dir_fd, name, &st);

	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	if (lock_fd >= 0 && lock_is_taken(lock_fd, st.st_ino))
		return 0;
	if (unlinkat(dir_fd, name, 0) < 0)
		return -errno;
	hook_output_remove(dir_fd, name);
	return 1;
}

int retention_apply(int dir_fd, int lock_fd, const struct retention_limits *limits,
	const struct retention_clock *clock)
{
	_cleanup_(cleanup_list) struct kept_list list = { 0 };
	size_t left;
	int removed = 0, error = 0, r;

	r = list_read(dir_fd, limits, clock, &list);
	if (r < 0)
		return r;
	if (list.count == 0)
		return 0;
	qsort(list.files, list.count, sizeof(*list.files), compare_ages);
	/* The last of a hang has its end, or is what it has come to. */
	list.files[list.count - 1].continues = false;
	qsort(list.files, list.count, sizeof(*list.files), compare_worth);
	left = list.count;
	for (size_t i = 0; i < list.count; i++) {
		const struct kept_file *file = &list.files[i];

		if (!(limits->max_count && left > limits->max_count) &&
			!(limits->max_bytes && list.bytes > limits->max_bytes) && !file->too_old)
			continue;
		r = remove_record(dir_fd, lock_fd, file->name);
		/* One that must stay, as with chattr +i, does not keep the others. */
		if (r < 0)
			error = r;
		if (r <= 0)
			continue;
		removed++;
		left--;
		list.bytes -= file->bytes;
	}
	return error < 0 ? error : removed;
}
