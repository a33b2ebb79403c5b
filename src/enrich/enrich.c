/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/enrich.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "enrich/below.h"
#include "enrich/file_server.h"
#include "enrich/members.h"
#include "enrich/mounts.h"
#include "enrich/mounts_reader.h"
#include "enrich/process.h"
#include "enrich/stack.h"
#include "enrich/symbols_reader.h"
#include "enrich/titles.h"
#include "enrich/waits.h"
#include "enrich/writers.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/disk_name.h"
#include "util/file.h"
#include "util/log.h"
#include "watch/watch.h"

/* How long a start waits for the mounts, without which files of FUSE and NFS have no server. */
#define MOUNTS_WAIT_NS NSEC_PER_SEC
/* The same for the symbols, which took 0.1 s, and some seconds on an emulated CPU. */
#define SYMBOLS_WAIT_NS (10 * NSEC_PER_SEC)
/* What disks stand on changes rarely: once a minute, or when a disk appears or is mounted. */
#define LEARN_DISKS_EACH 60
/* FILESYSTEM_MAX_STACK_DEPTH of the kernel. */
#define OVERLAYS_MAX 2

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

static void add_user(void *userdata, const struct passwd_user *user)
{
	struct enrich_users *users = userdata;

	if (users->count < ENRICH_USERS_MAX)
		users->users[users->count++] = *user;
}

void enrich_read_users(const char *path, struct enrich_users *ret_users)
{
	ret_users->count = 0;
	/* Whoever is not found has a number instead of a name. */
	(void)passwd_read(path, add_user, ret_users);
}

void enrich_set_users(struct enrich *e, const struct enrich_users *users)
{
	if (users->count > 0)
		e->users = *users;
}

static void log_left_out(struct enrich *e)
{
	if (e->mounts.left_out && !e->mounts_logged)
		log_warning(
			"mounts beyond the maximum of %d, or too long to be read all, are not known: %u or more; "
			"who waits for a file there may be no victim of a disk",
			MOUNTS_MAX, e->mounts.left_out);
	e->mounts_logged |= e->mounts.left_out > 0;
}

/*
 * poll() on an open mountinfo tells whether it has changed since the last call, see
 * proc_pid_mounts(5), and takes no lock.
 */
void enrich_refresh(struct enrich *e)
{
	struct pollfd changed = { .fd = e->mountinfo_fd, .events = POLLPRI };
	struct symbols *symbols = symbols_reader_take(&e->symbols_reader);

	if (poll(&changed, 1, 0) > 0 && (changed.revents & (POLLPRI | POLLERR))) {
		mounts_reader_want(&e->mounts_reader);
	}
	if (mounts_reader_take(&e->mounts_reader, &e->mounts, &e->members, clock_mono_ns())) {
		e->disks_changed = true;
		log_left_out(e);
	}
	if (symbols) {
		log_debug("the kernel's modules have changed; kernel symbols have been read again");
		symbols_free(e->symbols);
		e->symbols = symbols;
	}
	writers_replace_hung(e->writers, clock_mono_ns());
	file_server_replace_hung(e->file_server, clock_mono_ns());
	titles_replace_hung(e->titles, clock_mono_ns());
}

void enrich_find_writer(struct enrich *e, const char *mount, uint64_t incident_ns,
	struct record_writer *ret_writer)
{
	const struct writers_question question = {
		.mounts = &e->mounts,
		.mount = mount,
		.incident_ns = incident_ns,
		.now_ns = clock_mono_ns(),
	};

	writers_find(e->writers, &question, ret_writer);
}

void enrich_find_file_server(struct enrich *e, uint32_t major, uint32_t minor,
	enum record_cause waits_for, uint64_t incident_ns)
{
	const struct file_server_question question = {
		.mounts = &e->mounts,
		.major = major,
		.minor = minor,
		.waits_for = waits_for,
		.incident_ns = incident_ns,
		.now_ns = clock_mono_ns(),
	};

	file_server_find(e->file_server, &question);
}

void enrich_get_file_server(struct enrich *e, uint64_t incident_ns,
	struct record_file_server *ret_found)
{
	file_server_get(e->file_server, incident_ns, clock_mono_ns(), ret_found);
}

const char *enrich_find_role(struct enrich *e, int32_t pid, uint64_t incident_ns)
{
	return titles_find(e->titles, pid, incident_ns, clock_mono_ns());
}

void enrich_learn_processes(struct enrich *e)
{
	unsigned int count;
	const struct watch_process *list = watch_processes(e->watch, &count);

	process_learn(&e->processes, list, count);
}

int enrich_new(const char *procfs, const struct watch *watch, struct enrich **ret_enrich)
{
	struct enrich *e = calloc(1, sizeof(*e));
	struct stat st;
	int r;

	if (!e)
		return -ENOMEM;
	e->watch = watch;
	e->procfs_fd = open(procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->procfs_fd < 0) {
		r = -errno;
		free(e);
		return r;
	}
	r = writers_new(e->procfs_fd, &e->writers);
	if (r == 0)
		r = file_server_new(e->procfs_fd, &e->file_server);
	if (r == 0)
		r = titles_new(e->procfs_fd, &e->titles);
	if (r == 0)
		r = process_cache_init(&e->processes, e->procfs_fd);
	if (r == 0)
		r = symbols_reader_init(&e->symbols_reader, e->procfs_fd);
	if (r < 0) {
		process_cache_done(&e->processes);
		titles_free(e->titles);
		file_server_free(e->file_server);
		writers_free(e->writers);
		close(e->procfs_fd);
		free(e);
		return r;
	}
	r = symbols_reader_wait(&e->symbols_reader, SYMBOLS_WAIT_NS, &e->symbols);
	if (r < 0)
		log_warning("%s/kallsyms: %s%s; kernel stacks will show addresses instead of names",
			procfs, strerror(-r), symbols_hint(r));
	if (fstatat(e->procfs_fd, "self/ns/mnt", &st, 0) == 0)
		e->home_mount_ns[0] = (uint32_t)st.st_ino;
	if (fstatat(e->procfs_fd, "1/ns/mnt", &st, 0) == 0)
		e->home_mount_ns[1] = (uint32_t)st.st_ino;
	e->mountinfo_fd = openat(e->procfs_fd, "1/mountinfo", O_RDONLY | O_CLOEXEC);
	if (e->mountinfo_fd < 0)
		e->mountinfo_fd = openat(e->procfs_fd, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	enrich_read_users(PASSWD_FILE, &e->users);
	mounts_reader_init(&e->mounts_reader, e->procfs_fd, watch);
	if (!mounts_reader_wait(&e->mounts_reader, &e->mounts, &e->members, MOUNTS_WAIT_NS))
		log_warning("%s/1/mountinfo: not read yet; mount points are not known", procfs);
	log_left_out(e);
	*ret_enrich = e;
	return 0;
}

struct enrich *enrich_free(struct enrich *e)
{
	if (e) {
		symbols_reader_done(&e->symbols_reader);
		symbols_free(e->symbols);
		mounts_reader_done(&e->mounts_reader);
		mounts_done(&e->mounts);
		process_cache_done(&e->processes);
		titles_free(e->titles);
		file_server_free(e->file_server);
		writers_free(e->writers);
		close_fd(e->mountinfo_fd);
		close(e->procfs_fd);
		free(e);
	}
	return NULL;
}

static void set_user(const struct enrich *e, uint32_t uid, struct record_operation *op)
{
	op->user[0] = '\0';
	/* No user has this number; the BPF side sends it when the process had ended already. */
	if (uid == UINT32_MAX)
		return;
	for (unsigned int i = 0; i < e->users.count; i++) {
		if (e->users.users[i].uid == uid) {
			text_copy(op->user, sizeof(op->user), e->users.users[i].name);
			return;
		}
	}
	snprintf(op->user, sizeof(op->user), "%u", uid);
}

static void set_device(const struct enrich *e, struct record_operation *op)
{
	enrich_device(e, op->dev.major, op->dev.minor, op->dev_name, sizeof(op->dev_name));
}

/* "sda2" of "/dev/sda2", "dm-0" of "/dev/mapper/vg0-mysql"; NULL: not known. */
static const char *disk_of_source(const struct enrich *e, const char *source)
{
	if (strncmp(source, "/dev/mapper/", strlen("/dev/mapper/")) == 0) {
		for (uint32_t i = 0; i < e->below.count; i++)
			if (strcmp(e->below.list[i].label, source + strlen("/dev/mapper/")) == 0)
				return e->below.list[i].dev_name;
		return NULL;
	}
	return strncmp(source, "/dev/", strlen("/dev/")) == 0 ? source + strlen("/dev/") : NULL;
}

/* What the disk did in the last sample, or that of the partition; NULL: nothing that is known. */
static const struct record_disk *find_view(const struct enrich *e, const char *name)
{
	uint32_t serial;

	for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
		const struct record_disk *disk = watch_disk_in_slot(e->watch, slot, &serial);

		if (disk && disk_name_is_on(name, disk->dev_name))
			return disk;
	}
	return NULL;
}

static bool does_more(const struct record_disk *a, const struct record_disk *b)
{
	if (!a || !b)
		return a && !b;
	if (a->no_completion_ns != b->no_completion_ns)
		return a->no_completion_ns > b->no_completion_ns;
	if (a->util_pct < b->util_pct || a->util_pct > b->util_pct)
		return a->util_pct > b->util_pct;
	return a->inflight > b->inflight;
}

/*
 * Whoever waits for a file system with several disks waits for any of them: most likely for one
 * that completes nothing, or else is the busiest.
 */
static const char *choose_member(const struct enrich *e, const char *name)
{
	const struct members_set *set = name ? members_find(&e->members, name) : NULL;
	const struct record_disk *best = set ? find_view(e, name) : NULL;

	for (unsigned int i = 0; set && i < set->count; i++) {
		const struct record_disk *disk = find_view(e, set->names[i]);

		if (!does_more(disk, best))
			continue;
		best = disk;
		name = set->names[i];
	}
	return name;
}

/* Of the pool that has the dataset, "tank/data". */
static const char *find_disk_of_pool(const struct enrich *e, const char *dataset)
{
	char pool[MOUNTS_SOURCE_SIZE];
	const struct members_set *set;

	text_copy(pool, sizeof(pool), dataset);
	pool[strcspn(pool, "/@")] = '\0';
	set = members_find_pool(&e->members, pool);
	return set ? choose_member(e, set->names[0]) : NULL;
}

/* The disk of a file system whose number is not that of a disk. */
static const char *find_disk_of_mount(const struct enrich *e, const struct mount *m)
{
	const char *name = NULL;

	/* An overlay that stands on overlays, as containers in a container have it. */
	for (unsigned int depth = 0; m && m->stands_on_other && depth < OVERLAYS_MAX; depth++) {
		name = watch_disk_name(e->watch, m->other_major, m->other_minor);
		m = name ? NULL : mounts_find_device(&e->mounts, m->other_major, m->other_minor);
	}
	if (m && m->source_is_pool)
		return find_disk_of_pool(e, m->source);
	return m && m->source_is_disk ? choose_member(e, disk_of_source(e, m->source)) : name;
}

/* The disk with that number, or of the file system with it; NULL: it has none, or not known. */
static const char *find_disk(const struct enrich *e, uint32_t major, uint32_t minor)
{
	const char *name = watch_disk_name(e->watch, major, minor);

	return name ? name : find_disk_of_mount(e, mounts_find_device(&e->mounts, major, minor));
}

static const char *find_disk_below(const void *userdata, uint32_t major, uint32_t minor)
{
	return find_disk(userdata, major, minor);
}

static struct below_options below_options(const struct enrich *e, const char *sysfs)
{
	return (struct below_options){ .sysfs = sysfs,
		.mounts = &e->mounts,
		.find_disk = find_disk_below,
		.userdata = e };
}

void enrich_learn_disks(struct enrich *e, const char *sysfs, const char *udev, uint32_t generation)
{
	const struct below_options options = below_options(e, sysfs);
	bool is_due = e->disks_age++ % LEARN_DISKS_EACH == 0 || generation != e->disks_generation;

	mounts_reader_set_paths(&e->mounts_reader, sysfs, udev);
	/* A pool may have got a disk, and a container that is new may have mounts of its own. */
	if (is_due)
		mounts_reader_want(&e->mounts_reader);
	if (!is_due && !e->disks_changed)
		return;
	e->disks_changed = false;
	e->disks_generation = generation;
	below_learn(&options, &e->below);
	if (e->below.left_out && !e->below_logged)
		log_warning("of more than %d disks that stand on others it is not known on which",
			BELOW_MAX);
	e->below_logged |= e->below.left_out > 0;
}

static bool is_at_work(const struct record_disk *disk)
{
	return disk->util_pct > 0 || disk->inflight || disk->suspended || disk->no_completion_ns;
}

/* The busiest disks of the last sample. Returns how many. */
static uint32_t find_busy(const struct enrich *e, const char *ret_names[static RECORD_STACKED_MAX])
{
	const struct record_disk *busy[RECORD_STACKED_MAX];
	uint32_t count = 0, serial;

	for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
		const struct record_disk *disk = watch_disk_in_slot(e->watch, slot, &serial);
		uint32_t i;

		if (!disk || !is_at_work(disk))
			continue;
		if (count < RECORD_STACKED_MAX)
			count++;
		else if (!does_more(disk, busy[count - 1]))
			continue;
		for (i = count - 1; i > 0 && does_more(disk, busy[i - 1]); i--)
			busy[i] = busy[i - 1];
		busy[i] = disk;
	}
	for (uint32_t i = 0; i < count; i++)
		ret_names[i] = busy[i]->dev_name;
	return count;
}

void enrich_choose_stack(const struct enrich *e,
	struct record_stacked ret_stack[static RECORD_STACKED_MAX], uint32_t *ret_count,
	uint32_t *ret_left_out)
{
	const char *busy[RECORD_STACKED_MAX];
	uint32_t busy_count = e->below.count > RECORD_STACKED_MAX ? find_busy(e, busy) : 0;

	below_choose(&e->below, busy, busy_count, &e->mounts, ret_stack, ret_count);
	*ret_left_out = e->below.count - *ret_count + e->below.left_out;
}

void enrich_device(const struct enrich *e, uint32_t major, uint32_t minor, char *ret_name,
	size_t size)
{
	const char *name = find_disk(e, major, minor);
	const struct mount *m = name ? NULL : mounts_find_device(&e->mounts, major, minor);

	if (m)
		name = m->source;
	text_copy(ret_name, size, name ? name : "");
}

static bool is_path_of(const char *name, const char *disk)
{
	char of_path[RECORD_DISK_NAME_SIZE];

	return disk_name_of_path(name, of_path, sizeof(of_path)) && strcmp(of_path, disk) == 0;
}

/* The name of a disk that is given by its number; it may have none. */
static const char *name_of(const struct enrich *e, const char *disk)
{
	uint32_t major, minor;
	const char *name;

	if (sscanf(disk, "%" SCNu32 ":%" SCNu32, &major, &minor) != 2)
		return disk;
	name = watch_disk_name(e->watch, major, minor);
	return name ? name : disk;
}

/* Whether that disk, or one that has the same file system, is the wanted one. */
static bool has_member_on(const struct enrich *e, const char *name, const char *disk)
{
	const struct members_set *set = members_find(&e->members, name);

	if (strcmp(name, disk) == 0 || disk_name_is_partition_of(name, disk))
		return true;
	for (unsigned int i = 0; set && i < set->count; i++)
		if (strcmp(set->names[i], disk) == 0 ||
			disk_name_is_partition_of(set->names[i], disk))
			return true;
	return false;
}

uint32_t enrich_numbers_of_disk(const struct enrich *e, const char *disk,
	struct record_dev *ret_numbers, uint32_t max)
{
	uint32_t count = 0, at = 0;
	struct record_dev dev;
	const char *name;

	disk = name_of(e, disk);
	/* On 5.10 the number of what is hidden is 0:0. */
	while (count < max && watch_next_disk(e->watch, &at, &dev, &name))
		if (is_path_of(name, disk) && (dev.major || dev.minor))
			ret_numbers[count++] = dev;
	for (unsigned int i = 0; i < e->mounts.count && count < max; i++) {
		const struct mount *m = &e->mounts.list[i];

		if (m->major != 0)
			continue;
		name = find_disk_of_mount(e, m);
		if (name && has_member_on(e, name, disk))
			ret_numbers[count++] = (struct record_dev){ m->major, m->minor };
	}
	return count;
}

void enrich_below(const struct enrich *e, uint32_t major, uint32_t minor, char *ret_names,
	size_t size)
{
	*ret_names = '\0';
	for (uint32_t i = 0; i < e->below.count; i++) {
		if (e->below.list[i].dev.major != major || e->below.list[i].dev.minor != minor)
			continue;
		text_copy(ret_names, size, e->below.list[i].below);
		return;
	}
}

void enrich_unit(const char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE],
	char *ret_unit, size_t size)
{
	process_unit_of_names(cgroup_names[0], cgroup_names[1], ret_unit, size);
}

bool enrich_path_in_fs(const struct enrich *e, uint32_t major, uint32_t minor, char *path,
	size_t size)
{
	size_t len;

	if (strncmp(path, ".../", 4) != 0)
		return false;
	len = strlen(path + 3);
	memmove(path, path + 3, len + 1);
	if (mounts_add_point(&e->mounts, major, minor, path, size))
		return true;
	memmove(path + 3, path, len + 1);
	memcpy(path, "...", 3);
	return false;
}

/*
 * While a process executes a program, it may hold its exec_update_lock until a file closes that
 * hangs, and its links could not be read.
 */
static bool may_hold_exec_lock(const struct record_operation *op)
{
	return op->syscall == SYS_execve || op->syscall == SYS_execveat;
}

/*
 * The BPF programs follow at most 64 names up to the root; /proc/TID/fd/FD has the whole path. The
 * descriptor may be another file's by now, so its path is used only if it ends with the same names.
 */
static void complete_path(struct enrich *e, struct record_operation *op)
{
	char path[RECORD_PATH_SIZE];
	size_t tail_len = strlen(op->path + 3), len;

	if (!op->path_truncated || op->fd < 0 || may_hold_exec_lock(op) ||
		strncmp(op->path, ".../", 4) != 0 ||
		!process_read_fd(&e->processes, (int32_t)op->tid, op->fd, path, sizeof(path)))
		return;
	len = strlen(path);
	if (len < tail_len || strcmp(path + len - tail_len, op->path + 3) != 0)
		return;
	memcpy(op->path, path, len + 1);
	op->path_truncated = false;
}

void enrich_kernel_stack(const struct enrich *e, const uint64_t *addresses, uint32_t count,
	bool asleep, char ret_stack[RECORD_STACK_SIZE])
{
	stack_write(e->symbols, addresses, count, asleep, ret_stack);
}

/* What else takes a descriptor, such as flock(2), may wait for a program. */
static bool is_about_file(const struct record_operation *op)
{
	return op->op != RECORD_OP_other && op->op != RECORD_OP_kernel;
}

/* mounts, mountinfo and mountstats of /proc/PID */
static bool lists_mounts(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && strncmp(name, "/mount", strlen("/mount")) == 0;
}

enum record_cause enrich_cause(const struct enrich *e, const struct record_operation *op)
{
	enum record_cause cause = waits_for(op->kstack);
	const struct mount *m;

	/* Two functions m_start() begin to list what is mapped, and what is mounted. */
	if (cause == RECORD_CAUSE_memory_map_lock && waits_for_map_of_other(op->kstack) &&
		lists_mounts(op->path))
		return RECORD_CAUSE_read_write_lock;
	/* Without a stack the request of a thread that goes on is known to be under way. */
	if (!is_about_file(op) || (op->kstack[0] == '\0' && !record_probe_has_requests(op->probe)))
		return cause;
	m = mounts_find_device(&e->mounts, op->dev.major, op->dev.minor);
	return m && m->server ? waits_at_server(cause, m->server) : cause;
}

static bool fuse_is_mounted(const struct enrich *e)
{
	for (unsigned int i = 0; i < e->mounts.count; i++)
		if (e->mounts.list[i].server == RECORD_CAUSE_fuse_server)
			return true;
	return false;
}

bool enrich_find_server_waits(const struct enrich *e, struct event_server_waits *ret_waits)
{
	*ret_waits = (struct event_server_waits){ 0 };
	return e->symbols && symbols_find_server_waits(e->symbols, ret_waits) &&
		(ret_waits->count > 0 || !fuse_is_mounted(e));
}

uint64_t enrich_names_unread(const struct enrich *e)
{
	return e->processes.unread;
}

void enrich_process(struct enrich *e, int32_t pid, uint64_t start_ns,
	char ret_exe[RECORD_LIST_SIZE], char ret_unit[RECORD_LIST_SIZE])
{
	const struct process_program *p = process_lookup(&e->processes, pid, start_ns);

	text_copy(ret_exe, RECORD_LIST_SIZE, p ? p->exe : "");
	text_copy(ret_unit, RECORD_LIST_SIZE, p ? p->unit : "");
}

void enrich_operation(struct enrich *e, const struct decoded_operation *decoded,
	struct record_operation *op)
{
	const struct process_program *p = NULL;

	if (may_hold_exec_lock(op))
		e->processes.unread++;
	else
		p = process_lookup(&e->processes, (int32_t)op->pid, decoded->process_start_ns);
	process_unit_of_names(decoded->cgroup_names[0], decoded->cgroup_names[1], op->unit,
		sizeof(op->unit));
	if (p) {
		text_copy(op->exe, sizeof(op->exe), p->exe);
		if (!op->unit[0])
			text_copy(op->unit, sizeof(op->unit), p->unit);
	}
	if (op->mount_ns == e->home_mount_ns[0] || op->mount_ns == e->home_mount_ns[1])
		op->mount_ns = 0;
	set_user(e, decoded->uid, op);
	set_device(e, op);
	if (decoded->path_in_fs &&
		enrich_path_in_fs(e, op->dev.major, op->dev.minor, op->path, sizeof(op->path)))
		op->path_truncated = false;
	complete_path(e, op);
	enrich_kernel_stack(e, decoded->stack, decoded->stack_len, decoded->stack_asleep,
		op->kstack);
	if (decoded->stack_asleep)
		op->kstack_while_blocked = op->kstack[0] != '\0';
	if (decoded->stack_asleep || record_probe_has_requests(op->probe))
		op->waits_for = enrich_cause(e, op);
}
