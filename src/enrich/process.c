/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "iostall/event.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"
#include "watch/parsers.h"

#define CONTAINER_ID_LEN 64

static bool ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len > n && memcmp(s + len - n, suffix, n) == 0;
}

static const char *find_container_id(const char *s, size_t len)
{
	size_t run = 0;

	for (size_t i = 0; i < len; i++) {
		run = isxdigit((unsigned char)s[i]) ? run + 1 : 0;
		if (run == CONTAINER_ID_LEN)
			return s + i + 1 - CONTAINER_ID_LEN;
	}
	return NULL;
}

static void unit_of_path(const char *path, size_t len, struct text *unit)
{
	const char *id = find_container_id(path, len), *end = path + len;

	if (id) {
		text_add(unit, "container:");
		text_add_bytes(unit, id, 12);
		return;
	}
	while (end > path) {
		const char *name = end;

		while (name > path && name[-1] != '/')
			name--;
		len = (size_t)(end - name);
		if (ends_with(name, len, ".service") || ends_with(name, len, ".scope") ||
			ends_with(name, len, ".slice")) {
			text_add_bytes(unit, name, len);
			return;
		}
		end = name > path ? name - 1 : path;
	}
}

void process_parse_cgroup(const char *buf, size_t len, char *ret_unit, size_t size)
{
	struct text unit = { .buf = ret_unit, .size = size };
	struct cursor c = { buf, buf + len }, line;

	text_reset(&unit);
	/*
	 * "0::/system.slice/mariadb.service"; on cgroup v1 also "1:name=systemd:/..." and others.
	 */
	while (unit.len == 0 && cursor_line(&c, &line)) {
		const char *colon = memchr(line.p, ':', (size_t)(line.end - line.p));

		if (colon)
			colon = memchr(colon + 1, ':', (size_t)(line.end - colon - 1));
		if (colon)
			unit_of_path(colon + 1, (size_t)(line.end - colon - 1), &unit);
	}
}

void process_unit_of_names(const char *leaf, const char *parent, char *ret_unit, size_t size)
{
	char path[2 * EVENT_CGROUP_NAME_SIZE + 1];
	struct text unit = { .buf = ret_unit, .size = size };
	int len = snprintf(path, sizeof(path), "%s/%s", parent, leaf);

	text_reset(&unit);
	if (len <= 0 || (size_t)len >= sizeof(path))
		return;
	/* When the name is cut off, its parent would be taken for the unit. */
	if (strlen(leaf) < EVENT_CGROUP_NAME_SIZE - 1 || find_container_id(path, (size_t)len))
		unit_of_path(path, (size_t)len, &unit);
}

static bool is_start_of(int procfs_fd, int32_t pid, uint64_t start_ticks)
{
	char path[32], buf[1024];
	struct watch_thread_stat stat;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/stat", pid);
	n = file_read_at(procfs_fd, path, buf, sizeof(buf));
	return n > 0 && watch_parse_thread_stat(buf, (size_t)n, &stat) == 0 &&
		stat.start_ticks == start_ticks;
}

static void read_exe(int procfs_fd, struct process *p)
{
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/exe", p->pid);
	n = readlinkat(procfs_fd, path, p->exe, sizeof(p->exe) - 1);
	p->exe[n > 0 ? n : 0] = '\0';
}

static void read_unit(int procfs_fd, struct process *p)
{
	char path[32], buf[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/cgroup", p->pid);
	n = file_read_at(procfs_fd, path, buf, sizeof(buf));
	if (n == -ENOBUFS)
		n = sizeof(buf) - 1;
	process_parse_cgroup(buf, n > 0 ? (size_t)n : 0, p->unit, sizeof(p->unit));
	p->unit_known = true;
}

/* The entry of the process, or the one to replace: it has not been used for the longest time. */
static struct process *find_entry(struct process_cache *cache, int32_t pid, uint64_t start_ticks)
{
	struct process *oldest = &cache->entries[0];

	for (unsigned int i = 0; i < PROCESS_CACHE_MAX; i++) {
		struct process *p = &cache->entries[i];

		if (p->pid == pid && p->start_ticks == start_ticks)
			return p;
		if (p->used < oldest->used)
			oldest = p;
	}
	return oldest;
}

const struct process *process_lookup(struct process_cache *cache, int procfs_fd, int32_t pid,
	uint64_t start_ns, bool armed)
{
	uint64_t ticks = start_ns / (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
	struct process *entry = find_entry(cache, pid, ticks), p = *entry;
	bool known = entry->pid == pid && entry->start_ticks == ticks;

	cache->clock++;
	if (known)
		entry->used = cache->clock;
	if (known && (armed || entry->unit_known))
		return entry;
	if (!known) {
		p = (struct process){ .pid = pid, .start_ticks = ticks };
		read_exe(procfs_fd, &p);
	}
	if (!armed)
		read_unit(procfs_fd, &p);
	/* Checked last: the process may have ended meanwhile, and another one may have its pid. */
	if (!is_start_of(procfs_fd, pid, ticks))
		return known ? entry : NULL;
	p.used = cache->clock;
	*entry = p;
	return entry;
}
