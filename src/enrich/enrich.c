/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "enrich/file_server.h"
#include "enrich/internal.h"
#include "enrich/stack.h"
#include "enrich/titles.h"
#include "enrich/waits.h"
#include "enrich/writers.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "watch/watch.h"

/* How long a start waits for the mounts, without which files of FUSE and NFS have no server. */
#define MOUNTS_WAIT_NS NSEC_PER_SEC
/* The same for the symbols, which took 0.1 s, and some seconds on an emulated CPU. */
#define SYMBOLS_WAIT_NS (10 * NSEC_PER_SEC)

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
			"mounts beyond the maximum of %d, of other namespaces than the first %d, or too long to "
			"be read all, are not known: %u or more; who waits for a file there may be no victim of "
			"a disk",
			MOUNTS_MAX, MOUNTS_NAMESPACES_MAX, e->mounts.left_out);
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

	if (poll(&changed, 1, 0) > 0 && (changed.revents & (POLLPRI | POLLERR)))
		mounts_reader_want(&e->mounts_reader);
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
