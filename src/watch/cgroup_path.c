/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/cgroup_path.h"
#include "util/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "memory" in "cpu,memory,pids" */
static bool has_controller(const char *list, const char *end, const char *controller)
{
	while (list < end) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		const char *word_end = comma ? comma : end;

		if (word_is(list, (size_t)(word_end - list), controller))
			return true;
		list = word_end + 1;
	}
	return false;
}

int cgroup_path_parse(const char *buf, size_t len, const char *controller, int sysfs_fd,
	struct cgroup_path *ret_path)
{
	struct cursor c = { buf, buf + len }, line;
	bool has_v1 = false;
	int r = -ENOENT;

	/* "0::/system.slice/mariadb.service", the last line; on v1 also "4:memory:/..." */
	while (cursor_line(&c, &line)) {
		const char *list = memchr(line.p, ':', (size_t)(line.end - line.p)), *path;
		bool v1;

		if (!list)
			continue;
		path = memchr(list + 1, ':', (size_t)(line.end - list - 1));
		if (!path || path + 1 == line.end || path[1] != '/')
			continue;
		v1 = has_controller(list + 1, path, controller);
		has_v1 = has_v1 || path != list + 1;
		if (!v1 && path != list + 1)
			continue;
		*ret_path = (struct cgroup_path){ .path = { path + 1, line.end }, .v1 = v1 };
		r = 0;
		if (v1)
			break;
	}
	/* One hierarchy of version 1 may also be mounted somewhere else. */
	ret_path->is_apart = r == 0 && !ret_path->v1 && has_v1 &&
		faccessat(sysfs_fd, "fs/cgroup/cgroup.procs", F_OK, 0) < 0;
	return r;
}

bool cgroup_path_is_reachable(const struct cgroup_path *path)
{
	const char *p = path->path.p;
	size_t len = (size_t)(path->path.end - p);

	return !memmem(p, len, "/../", 4) && (len < 3 || memcmp(p + len - 3, "/..", 3) != 0);
}

bool cgroup_path_ascend(struct cgroup_path *path)
{
	const char *p = path->path.p;
	const char *slash = memrchr(p, '/', (size_t)(path->path.end - p));

	if (!slash || slash == p)
		return false;
	path->path.end = slash;
	return true;
}

uint64_t cgroup_path_hash(const struct cgroup_path *path)
{
	return hash_bytes(HASH_BEGIN ^ path->v1, path->path.p,
		(size_t)(path->path.end - path->path.p));
}

int cgroup_path_name(const struct cgroup_path *path, const char *controller, const char *name,
	char *buf, size_t size)
{
	const char *hierarchy = path->v1 ? controller : path->is_apart ? "unified" : "";
	int n = snprintf(buf, size, "fs/cgroup%s%s%.*s/%s", *hierarchy ? "/" : "", hierarchy,
		(int)(path->path.end - path->path.p), path->path.p, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

uint64_t cgroup_path_id(const struct cgroup_path *path, int sysfs_fd)
{
	char directory[PATH_MAX];
	struct stat st;

	if (path->v1 || cgroup_path_name(path, "", "", directory, sizeof(directory)) < 0 ||
		fstatat(sysfs_fd, directory, &st, 0) < 0)
		return 0;
	return st.st_ino;
}

int cgroup_path_open(const struct cgroup_path *path, int sysfs_fd, const char *controller,
	const char *name)
{
	char file[PATH_MAX];
	int fd, r = cgroup_path_name(path, controller, name, file, sizeof(file));

	if (r < 0)
		return r;
	fd = openat(sysfs_fd, file, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
