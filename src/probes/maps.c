/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/parse.h"

void trace_maps_close(struct trace_maps *maps)
{
#define MAP(owner, name, ...) maps->name = close_fd(maps->name);
	TRACE_MAPS(MAP)
#undef MAP
	free(maps->cpu_values);
	maps->cpu_values = NULL;
}

/* The error of the first map that could not be created; 0 when there was none. */
static int find_error(const struct trace_maps *maps)
{
	const int fds[] = {
#define MAP(owner, name, ...) maps->name,
		TRACE_MAPS(MAP)
#undef MAP
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] < 0)
			return fds[i];
	return 0;
}

enum owner { SHARED, OWN };

/* For each CPU a number, of which an incident asks the kernel without asking for memory. */
static int make_cpu_values(struct trace_maps *maps)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return cpus;
	maps->cpu_values = calloc((size_t)cpus, sizeof(*maps->cpu_values));
	return maps->cpu_values ? 0 : -ENOMEM;
}

static int copy_fd(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 ? -errno : copy;
}

int trace_maps_share(const struct trace_maps *maps, struct trace_maps *ret_maps)
{
	struct trace_maps copy = {
#define MAP(owner, name, ...) .name = owner == SHARED ? copy_fd(maps->name) : -1,
		TRACE_MAPS(MAP)
#undef MAP
	};
	int made = make_cpu_values(&copy);

	if (made < 0) {
		trace_maps_close(&copy);
		return made;
	}
#define MAP(owner, name, ...)                                                                      \
	if (owner == SHARED && copy.name < 0) {                                                    \
		int r = copy.name;                                                                 \
                                                                                                   \
		trace_maps_close(&copy);                                                           \
		return r;                                                                          \
	}
	TRACE_MAPS(MAP)
#undef MAP
	copy.cpus = maps->cpus;
	*ret_maps = copy;
	return 0;
}

static int copy_or_create(enum owner owner, int shared, enum bpf_map_type type, const char *name,
	size_t key_size, size_t value_size, uint64_t entries)
{
	if (owner == SHARED && shared >= 0)
		return copy_fd(shared);
	return bpf_map_create(type, name, (uint32_t)key_size, (uint32_t)value_size,
		(uint32_t)entries, NULL);
}

int trace_maps_new(const struct trace_maps_sizes *sizes, const struct trace_maps *shared,
	struct trace_maps *ret_maps)
{
	const struct trace_maps from = shared ? *shared : TRACE_MAPS_NONE;
	struct trace_maps maps = {
#define MAP(owner, map, type, key_size, value_size, entries)                                       \
	.map = copy_or_create(owner, from.map, BPF_MAP_TYPE_##type, #map, key_size, value_size,    \
		entries),
		TRACE_MAPS(MAP)
#undef MAP
	};
	int r = find_error(&maps);

	if (r == 0)
		r = make_cpu_values(&maps);
	if (r < 0) {
		trace_maps_close(&maps);
		return r;
	}
	maps.cpus = sizes->cpus;
	*ret_maps = maps;
	return 0;
}

/* The object's own ones. */
static int make_room_in_lru_maps(const struct trace_maps *maps, struct bpf_object *object)
{
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, object) if (r == 0 && !trace_maps_have(bpf_map__name(map)) &&
		bpf_map__type(map) == BPF_MAP_TYPE_LRU_HASH) r = bpf_map__set_max_entries(map,
		bpf_map__max_entries(map) + (uint32_t)TRACE_MAPS_LRU_ROOM(maps->cpus));
	return r;
}

int trace_maps_reuse(const struct trace_maps *maps, struct bpf_object *object)
{
	const struct {
		const char *name;
		int fd;
	} shared[] = {
#define MAP(owner, name, ...) { #name, maps->name },
		TRACE_MAPS(MAP)
#undef MAP
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(shared); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, shared[i].name);
		int r;

		if (!map)
			continue;
		r = bpf_map__reuse_fd(map, shared[i].fd);
		if (r < 0)
			return r;
	}
	return make_room_in_lru_maps(maps, object);
}

bool trace_maps_have(const char *name)
{
	static const char *const names[] = {
#define MAP(owner, name, ...) #name,
		TRACE_MAPS(MAP)
#undef MAP
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

uint64_t trace_fd_bytes(int fd)
{
	char path[32], buf[1024];
	struct cursor c = { buf, buf };
	const char *line;
	uint64_t bytes;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	n = file_read_at(AT_FDCWD, path, buf, sizeof(buf) - 1);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	line = strstr(buf, "\nmemlock:");
	if (!line)
		return 0;
	c = (struct cursor){ line + strlen("\nmemlock:"), buf + n };
	return cursor_u64(&c, &bytes) < 0 ? 0 : bytes;
}

uint64_t trace_maps_bytes(const struct trace_maps *maps)
{
	uint64_t bytes = 0;

#define MAP(owner, name, ...) bytes += trace_fd_bytes(maps->name);
	TRACE_MAPS(MAP)
#undef MAP
	return bytes;
}

int trace_maps_read_losses(const struct trace_maps *maps, uint64_t ret_losses[EVENT_LOSS_COUNT])
{
	int cpus = libbpf_num_possible_cpus();

	for (uint32_t i = 0; i < EVENT_LOSS_COUNT; i++) {
		int r = bpf_map_lookup_elem(maps->losses, &i, maps->cpu_values);

		if (r < 0)
			return r;
		ret_losses[i] = 0;
		for (int cpu = 0; cpu < cpus; cpu++)
			ret_losses[i] += maps->cpu_values[cpu];
	}
	return 0;
}

static int add_member(int map, uint32_t key, uint8_t value)
{
	return bpf_map_update_elem(map, &key, &value, BPF_ANY);
}

int trace_maps_add_pid(const struct trace_maps *maps, uint32_t pid)
{
	return add_member(maps->filter_pids, pid, 1);
}

int trace_maps_add_dev(const struct trace_maps *maps, uint32_t major, uint32_t minor)
{
	return add_member(maps->filter_devs, major << 20 | minor, maps->filter.filling);
}

int trace_maps_set_cgroup(const struct trace_maps *maps, uint32_t index, int cgroup_fd)
{
	struct stat st;
	uint64_t id;
	int r;

	/* The inode number of a cgroup's directory is the id of the cgroup. */
	if (fstat(cgroup_fd, &st) < 0)
		return -errno;
	id = st.st_ino;
	r = bpf_map_update_elem(maps->filter_cgroups, &index, &cgroup_fd, BPF_ANY);
	if (r == 0)
		r = bpf_map_update_elem(maps->filter_cgids, &index, &id, BPF_ANY);
	return r;
}

static int remove_key(int map, const void *key)
{
	int r = bpf_map_delete_elem(map, key);

	return r == -ENOENT ? 0 : r;
}

int trace_maps_remove_pid(const struct trace_maps *maps, uint32_t pid)
{
	return remove_key(maps->filter_pids, &pid);
}

int trace_maps_remove_old_devs(const struct trace_maps *maps)
{
	uint32_t kept, key;
	bool has_kept = false;
	uint8_t filling;
	int r;

	/* Without a key to start from the kernel returns the first. */
	while ((r = bpf_map_get_next_key(maps->filter_devs, has_kept ? &kept : NULL, &key)) == 0) {
		if (bpf_map_lookup_elem(maps->filter_devs, &key, &filling) == 0 &&
			filling == maps->filter.filling) {
			kept = key;
			has_kept = true;
			continue;
		}
		r = remove_key(maps->filter_devs, &key);
		if (r < 0)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}

int trace_maps_clear_cgroup(const struct trace_maps *maps, uint32_t index)
{
	uint64_t none = 0;

	bpf_map_update_elem(maps->filter_cgids, &index, &none, BPF_ANY);
	return remove_key(maps->filter_cgroups, &index);
}
