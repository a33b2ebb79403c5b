/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "util/cleanup.h"

void trace_maps_close(struct trace_maps *maps)
{
	maps->events = close_fd(maps->events);
	maps->losses = close_fd(maps->losses);
	maps->filter_pids = close_fd(maps->filter_pids);
	maps->filter_devs = close_fd(maps->filter_devs);
	maps->filter_cgroups = close_fd(maps->filter_cgroups);
	maps->filter_cgroup_ids = close_fd(maps->filter_cgroup_ids);
	inflight_pairs_close(&maps->inflight);
	maps->sleeps = close_fd(maps->sleeps);
	maps->faults = close_fd(maps->faults);
	maps->thread_files = close_fd(maps->thread_files);
}

int trace_maps_new(uint64_t ring_bytes, uint64_t inflight_max, struct trace_maps *ret_maps)
{
	struct trace_maps maps = {
		.events = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "events", 0, 0,
			(uint32_t)ring_bytes, NULL),
		.losses = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "losses", sizeof(uint32_t),
			sizeof(uint64_t), EVENT_LOSS_COUNT, NULL),
		.filter_pids = bpf_map_create(BPF_MAP_TYPE_HASH, "filter_pids", sizeof(uint32_t),
			sizeof(uint8_t), EVENT_FILTER_ENTRIES_MAX, NULL),
		.filter_devs = bpf_map_create(BPF_MAP_TYPE_HASH, "filter_devs", sizeof(uint32_t),
			sizeof(uint8_t), EVENT_FILTER_ENTRIES_MAX, NULL),
		.filter_cgroups = bpf_map_create(BPF_MAP_TYPE_CGROUP_ARRAY, "filter_cgroups",
			sizeof(uint32_t), sizeof(uint32_t), EVENT_FILTER_CGROUPS_MAX, NULL),
		.filter_cgroup_ids = bpf_map_create(BPF_MAP_TYPE_ARRAY, "filter_cgids",
			sizeof(uint32_t), sizeof(uint64_t), EVENT_FILTER_CGROUPS_MAX, NULL),
		.inflight = INFLIGHT_MAP_NONE,
		.sleeps = bpf_map_create(BPF_MAP_TYPE_HASH, "sleeps", sizeof(uint32_t),
			sizeof(struct event_sleep), (uint32_t)inflight_max, NULL),
		.faults = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "faults", sizeof(uint32_t),
			sizeof(struct event_fault), (uint32_t)inflight_max, NULL),
		.thread_files = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "thread_files",
			sizeof(uint32_t), sizeof(struct event_thread_file),
			EVENT_THREAD_FILES_MAX, NULL),
	};
	int r = inflight_pairs_new(inflight_max, &maps.inflight);

	if (r == 0 && maps.events < 0)
		r = maps.events;
	else if (maps.losses < 0)
		r = maps.losses;
	else if (maps.filter_pids < 0)
		r = maps.filter_pids;
	else if (maps.filter_devs < 0)
		r = maps.filter_devs;
	else if (maps.filter_cgroups < 0)
		r = maps.filter_cgroups;
	else if (maps.filter_cgroup_ids < 0)
		r = maps.filter_cgroup_ids;
	else if (maps.sleeps < 0)
		r = maps.sleeps;
	else if (maps.faults < 0)
		r = maps.faults;
	else if (maps.thread_files < 0)
		r = maps.thread_files;
	if (r < 0) {
		trace_maps_close(&maps);
		return r;
	}
	*ret_maps = maps;
	return 0;
}

int trace_maps_lend(const struct trace_maps *maps, struct bpf_object *object)
{
	const struct {
		const char *name;
		int fd;
	} shared[] = {
		{ "events", maps->events },
		{ "losses", maps->losses },
		{ "filter_pids", maps->filter_pids },
		{ "filter_devs", maps->filter_devs },
		{ "filter_cgroups", maps->filter_cgroups },
		{ "filter_cgids", maps->filter_cgroup_ids },
		{ "inflight", maps->inflight.slots_fd },
		{ "inflight_more", maps->inflight.fd },
		{ "sleeps", maps->sleeps },
		{ "faults", maps->faults },
		{ "thread_files", maps->thread_files },
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
	return 0;
}

int trace_maps_read_losses(const struct trace_maps *maps, uint64_t ret_losses[EVENT_LOSS_COUNT])
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *values = NULL;

	if (cpus < 0)
		return cpus;
	values = calloc((size_t)cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < EVENT_LOSS_COUNT; i++) {
		int r = bpf_map_lookup_elem(maps->losses, &i, values);

		if (r < 0)
			return r;
		ret_losses[i] = 0;
		for (int cpu = 0; cpu < cpus; cpu++)
			ret_losses[i] += values[cpu];
	}
	return 0;
}

static int add_member(int map, uint32_t key)
{
	uint8_t member = 1;

	return bpf_map_update_elem(map, &key, &member, BPF_ANY);
}

int trace_maps_add_pid(const struct trace_maps *maps, uint32_t pid)
{
	return add_member(maps->filter_pids, pid);
}

int trace_maps_add_dev(const struct trace_maps *maps, uint32_t major, uint32_t minor)
{
	return add_member(maps->filter_devs, major << 20 | minor);
}

int trace_maps_set_cgroup(const struct trace_maps *maps, uint32_t index, int cgroup_fd)
{
	struct stat st;
	uint64_t id;
	int r;

	/* The inode of a cgroup's directory has its id for a number. */
	if (fstat(cgroup_fd, &st) < 0)
		return -errno;
	id = st.st_ino;
	r = bpf_map_update_elem(maps->filter_cgroups, &index, &cgroup_fd, BPF_ANY);
	if (r == 0)
		r = bpf_map_update_elem(maps->filter_cgroup_ids, &index, &id, BPF_ANY);
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

int trace_maps_clear_devs(const struct trace_maps *maps)
{
	uint32_t key;
	int r;

	/* No key to start from is the first one. */
	while ((r = bpf_map_get_next_key(maps->filter_devs, NULL, &key)) == 0) {
		r = remove_key(maps->filter_devs, &key);
		if (r < 0)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}

int trace_maps_clear_cgroup(const struct trace_maps *maps, uint32_t index)
{
	uint64_t none = 0;

	bpf_map_update_elem(maps->filter_cgroup_ids, &index, &none, BPF_ANY);
	return remove_key(maps->filter_cgroups, &index);
}
