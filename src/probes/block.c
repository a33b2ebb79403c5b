/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `block`: the user side of bpf/block.bpf.c. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "block.skel.h"
#include "probes/block_sum.h"
#include "probes/decode.h"
#include "probes/list.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/sort.h"
#include "util/text.h"

/* Entries that one system call reads. */
#define BATCH 128
/* A disk that finishes nothing for so long is worth a line, and at most so many in one incident. */
#define SILENT_NS NSEC_PER_SEC
#define SILENT_LINES_MAX 10
/* Requests looked at one by one, 2 us each; those beyond are taken to be in flight. */
#define CHECKS_MAX 2048
/* The disks that moved the most get lines about who loaded them. */
#define TOP_DEVICES_MAX 8

static_assert(EVENT_BLOCK_THREADS_MAX >= EVENT_BLOCK_FILES_MAX, "one array serves for both");

/* What is known of one disk while a report is made, and what was said of it before. */
struct device_state {
	uint32_t dev;
	struct event_block_device value;
	uint64_t in_flight;
	struct event_block_request oldest; /* when anything is in flight */
};

struct silence {
	uint32_t dev;
	uint32_t lines;
	uint64_t reported_ns; /* 0: it has finished something since */
};

struct block {
	struct block_bpf *skeleton;
	unsigned int devices_count;
	struct device_state devices[EVENT_BLOCK_DEVICES_MAX];
	unsigned int silences_count;
	struct silence silences[EVENT_BLOCK_DEVICES_MAX];
	struct block_item items[EVENT_BLOCK_THREADS_MAX];
	union {
		struct event_block_request requests[BATCH];
		struct event_block_thread threads[BATCH];
		struct event_block_file files[BATCH];
	} batch;
};

static struct device_state *find_device(struct block *block, uint32_t dev)
{
	for (unsigned int i = 0; i < block->devices_count; i++)
		if (block->devices[i].dev == dev)
			return &block->devices[i];
	return NULL;
}

static struct device_state *add_device(struct block *block, uint32_t dev)
{
	struct device_state *device = find_device(block, dev);

	if (device || block->devices_count == ARRAY_SIZE(block->devices))
		return device;
	device = &block->devices[block->devices_count++];
	*device = (struct device_state){ .dev = dev };
	return device;
}

static int compare_devices(const void *a, const void *b)
{
	const struct device_state *x = a, *y = b;
	uint64_t x_bytes = block_load_bytes(&x->value.load), y_bytes = block_load_bytes(&y->value.load);

	return (x_bytes < y_bytes) - (x_bytes > y_bytes);
}

static void read_devices(struct block *block)
{
	int map = bpf_map__fd(block->skeleton->maps.devices);
	uint32_t key, *previous = NULL;

	block->devices_count = 0;
	while (block->devices_count < ARRAY_SIZE(block->devices) &&
		bpf_map_get_next_key(map, previous, &key) == 0) {
		struct device_state *device = add_device(block, key);

		if (device && bpf_map_lookup_elem(map, &key, &device->value) < 0)
			memset(&device->value, 0, sizeof(device->value));
		previous = &key;
	}
	sort_in_place(block->devices, block->devices_count, sizeof(block->devices[0]), compare_devices);
}

/* Requests */

struct request_walk {
	unsigned int checks;
	uint64_t since_ns; /* those that began before are looked at one by one */
};

/* A request that was merged into another, or whose end came after the detach, is no longer there. */
static bool is_in_flight(const struct block *block, uint64_t address, uint64_t stamp)
{
	uint64_t args[2] = { address, stamp };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(bpf_program__fd(block->skeleton->progs.block_request_check),
		       &opts) == 0 && opts.retval == 1;
}

static void take_request(struct block *block, uint64_t address, const struct event_block_request *r,
	struct request_walk *walk)
{
	struct device_state *device = add_device(block, r->dev);

	if (!device)
		return;
	if (r->start_ns < walk->since_ns && walk->checks < CHECKS_MAX) {
		walk->checks++;
		if (!is_in_flight(block, address, r->stamp))
			return;
	}
	if (device->in_flight++ == 0 || r->start_ns < device->oldest.start_ns)
		device->oldest = *r;
}

static int read_requests(struct block *block, uint64_t since_ns)
{
	int map = bpf_map__fd(block->skeleton->maps.requests);
	struct request_walk walk = { .since_ns = since_ns };
	uint64_t keys[BATCH];
	uint32_t cursor, *in = NULL;
	int r = 0;

	while (r == 0) {
		uint32_t count = BATCH;

		r = bpf_map_lookup_batch(map, in, &cursor, keys, block->batch.requests, &count, NULL);
		if (r < 0 && r != -ENOENT)
			return r;
		in = &cursor;
		for (uint32_t i = 0; i < count; i++)
			take_request(block, keys[i], &block->batch.requests[i], &walk);
	}
	return 0;
}

/* Lines about a disk */

static uint64_t silent_ns(const struct device_state *device, uint64_t now_ns)
{
	uint64_t since_ns = device->oldest.start_ns;

	if (device->in_flight == 0)
		return 0;
	if (device->value.completed_ns > since_ns)
		since_ns = device->value.completed_ns;
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* The path of a file's entry, which may end within a name. */
static bool describe_path(const struct event_block_file_key *key, const struct event_block_file *file,
	char *path, size_t size, struct probe_line_names *names)
{
	uint32_t len = file->path_len < EVENT_BLOCK_PATH_SIZE ? file->path_len : EVENT_BLOCK_PATH_SIZE;
	bool truncated;

	names->fs_major = key->fs_dev >> 20;
	names->fs_minor = key->fs_dev & 0xfffff;
	if (key->inode == 0) {
		text_copy(path, size, "(metadata)");
		return false;
	}
	while (len > 0 && file->path[len - 1] != '\0')
		len--;
	truncated = event_join_path(file->path, len, file->flags, path, size);
	names->path_in_fs = (file->flags & EVENT_PATH_IN_FS) && (file->flags & EVENT_PATH_COMPLETE);
	return truncated && *path;
}

static void describe_oldest(const struct block *block, const struct event_block_request *oldest,
	uint64_t now_ns, struct record_device *d, struct probe_line_names *names)
{
	const struct event_block_thread_key key = { oldest->dev, oldest->tid };
	struct event_block_thread thread;
	struct event_block_file file;

	d->oldest_age_ns = now_ns > oldest->start_ns ? now_ns - oldest->start_ns : 0;
	if (oldest->tid && bpf_map_lookup_elem(bpf_map__fd(block->skeleton->maps.threads), &key,
				   &thread) == 0) {
		d->oldest_tid = (int32_t)oldest->tid;
		d->oldest_pid = (int32_t)thread.pid;
		text_copy(d->oldest_comm, sizeof(d->oldest_comm), thread.comm);
	}
	if (oldest->has_file && bpf_map_lookup_elem(bpf_map__fd(block->skeleton->maps.files),
					&oldest->file, &file) == 0)
		describe_path(&oldest->file, &file, d->oldest_path, sizeof(d->oldest_path), names);
}

static void write_device(const struct block *block, const struct device_state *device,
	const struct probe_report *report)
{
	struct record_device *d = &report->begin(report->userdata, RECORD_DEVICE)->device;
	struct probe_line_names names = {};

	block_fill_device(device->dev, &device->value, d);
	d->final = report->final;
	d->in_flight = device->in_flight;
	d->no_completion_ns = silent_ns(device, report->now_ns);
	if (device->in_flight > 0)
		describe_oldest(block, &device->oldest, report->now_ns, d, &names);
	report->write(report->userdata, &names);
}

static struct silence *find_silence(struct block *block, uint32_t dev)
{
	for (unsigned int i = 0; i < block->silences_count; i++)
		if (block->silences[i].dev == dev)
			return &block->silences[i];
	if (block->silences_count == ARRAY_SIZE(block->silences))
		return NULL;
	block->silences[block->silences_count] = (struct silence){ .dev = dev };
	return &block->silences[block->silences_count++];
}

/* Each second up to 5 s, then whenever it has grown by half: as for operations that hang. */
static bool silence_is_due(struct silence *silence, uint64_t ns)
{
	uint64_t grown = silence->reported_ns / 2;

	if (ns < SILENT_NS) {
		silence->reported_ns = 0;
		return false;
	}
	if (silence->lines == SILENT_LINES_MAX)
		return false;
	if (silence->reported_ns < 5 * NSEC_PER_SEC)
		grown = NSEC_PER_SEC / 2;
	return silence->reported_ns == 0 || ns >= silence->reported_ns + grown;
}

static void report_silence(struct block *block, const struct probe_report *report)
{
	for (unsigned int i = 0; i < block->devices_count; i++) {
		const struct device_state *device = &block->devices[i];
		struct silence *silence = find_silence(block, device->dev);
		uint64_t ns = silent_ns(device, report->now_ns);

		if (!silence || !silence_is_due(silence, ns))
			continue;
		silence->reported_ns = ns;
		silence->lines++;
		write_device(block, device, report);
	}
}

/* Lines about who loaded a disk */

static size_t read_threads(struct block *block)
{
	int map = bpf_map__fd(block->skeleton->maps.threads);
	struct event_block_thread_key keys[BATCH];
	uint32_t cursor, *in = NULL;
	size_t total = 0;
	int r = 0;

	while (r == 0) {
		uint32_t count = BATCH;

		r = bpf_map_lookup_batch(map, in, &cursor, keys, block->batch.threads, &count, NULL);
		in = &cursor;
		for (uint32_t i = 0; (r == 0 || r == -ENOENT) && i < count; i++) {
			const struct event_block_thread *thread = &block->batch.threads[i];
			struct block_item *item = &block->items[total];

			if (total == ARRAY_SIZE(block->items) || !block_load_bytes(&thread->load))
				continue;
			total++;
			*item = (struct block_item){
				.dev = keys[i].dev,
				.pid = thread->pid,
				.tid = keys[i].tid,
				.cgroup_id = thread->cgroup_id,
				.load = thread->load,
			};
			memcpy(item->comm, thread->comm, sizeof(item->comm));
			memcpy(item->process_comm, thread->process_comm, sizeof(item->comm));
		}
	}
	return total;
}

static size_t read_files(struct block *block)
{
	int map = bpf_map__fd(block->skeleton->maps.files);
	struct event_block_file_key keys[BATCH];
	uint32_t cursor, *in = NULL;
	size_t total = 0;
	int r = 0;

	while (r == 0) {
		uint32_t count = BATCH;

		r = bpf_map_lookup_batch(map, in, &cursor, keys, block->batch.files, &count, NULL);
		in = &cursor;
		for (uint32_t i = 0; (r == 0 || r == -ENOENT) && i < count; i++) {
			const struct event_block_file *file = &block->batch.files[i];

			if (total == ARRAY_SIZE(block->items) || !block_load_bytes(&file->load))
				continue;
			block->items[total++] = (struct block_item){
				.dev = keys[i].dev,
				.file = keys[i],
				.load = file->load,
			};
		}
	}
	return total;
}

static void write_item(const struct block *block, enum block_by by, const struct block_item *item,
	uint64_t device_bytes, const struct probe_report *report)
{
	struct record_io_by *b = &report->begin(report->userdata, RECORD_IO_BY)->io_by;
	struct probe_line_names names = {};
	struct event_block_cgroup cgroup;
	struct event_block_file file;

	block_fill_io_by(by, item, device_bytes, b);
	if (by == BLOCK_BY_FILE) {
		if (bpf_map_lookup_elem(bpf_map__fd(block->skeleton->maps.files), &item->file,
			    &file) == 0)
			b->path_truncated = describe_path(&item->file, &file, b->path,
				sizeof(b->path), &names);
	} else if (bpf_map_lookup_elem(bpf_map__fd(block->skeleton->maps.cgroups), &item->cgroup_id,
			   &cgroup) == 0) {
		memcpy(names.cgroup_names, cgroup.names, sizeof(names.cgroup_names));
	}
	report->write(report->userdata, &names);
}

static void report_by(struct block *block, enum block_by by, const struct probe_report *report)
{
	size_t count = by == BLOCK_BY_FILE ? read_files(block) : read_threads(block);
	unsigned int written = 0;

	count = block_sum_items(by, block->items, count);
	for (size_t i = 0; i < count; i++) {
		const struct block_item *item = &block->items[i];
		const struct device_state *device = find_device(block, item->dev);

		if (i == 0 || item->dev != block->items[i - 1].dev)
			written = 0;
		if (!device || device - block->devices >= TOP_DEVICES_MAX || written == BLOCK_TOP_MAX)
			continue;
		written++;
		write_item(block, by, item, block_load_bytes(&device->value.load), report);
	}
}

static void clear_map(const struct bpf_map *map)
{
	int fd = bpf_map__fd(map);
	uint64_t key[2], next[2];
	int r = bpf_map_get_next_key(fd, NULL, next);

	/* The next is asked for before this one goes: behind a deleted key the search starts anew. */
	while (r == 0) {
		memcpy(key, next, sizeof(key));
		r = bpf_map_get_next_key(fd, key, next);
		if (bpf_map_delete_elem(fd, key) < 0)
			return;
	}
}

static void block_reset(struct probe *probe)
{
	struct block *block = probe->skeleton;

	clear_map(block->skeleton->maps.requests);
	clear_map(block->skeleton->maps.devices);
	clear_map(block->skeleton->maps.threads);
	clear_map(block->skeleton->maps.files);
	clear_map(block->skeleton->maps.cgroups);
	/* Shared, but nobody else reads it. */
	clear_map(block->skeleton->maps.thread_files);
	block->silences_count = 0;
}

static void block_summarize(struct probe *probe, const struct probe_report *report)
{
	struct block *block = probe->skeleton;
	int r;

	read_devices(block);
	r = read_requests(block, report->final ? UINT64_MAX : report->now_ns - SILENT_NS);
	if (r < 0)
		log_warning("the requests in flight cannot be read: %s", strerror(-r));
	if (!report->final) {
		report_silence(block, report);
		return;
	}
	for (unsigned int i = 0; i < block->devices_count; i++)
		if (block_load_requests(&block->devices[i].value.load) || block->devices[i].in_flight)
			write_device(block, &block->devices[i], report);
	for (enum block_by by = 0; by < BLOCK_BY_COUNT; by++)
		report_by(block, by, report);
	/* Now, so that the next arming finds little to clear. */
	block_reset(probe);
}

/* The probe */

static const struct probe_program programs[] = {
	{ "block_rq_complete_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "block_rq_complete" },
	{ "block_rq_issue_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "block_rq_issue" },
	{ "block_rq_insert_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "block_rq_insert" },
	{ "block_request_check", PROBE_ATTACH_NONE, NULL },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_TRACEPOINT, "tracepoint", programs, ARRAY_SIZE(programs), true },
};

static int block_open(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_skeleton, struct bpf_object **ret_object)
{
	struct block *block = calloc(1, sizeof(*block));

	(void)backend;
	if (!block)
		return -ENOMEM;
	block->skeleton = block_bpf__open();
	if (!block->skeleton) {
		int r = -errno;

		free(block);
		return r;
	}
	block->skeleton->rodata->cfg_filter_pid = settings->filter_pid;
	block->skeleton->rodata->cfg_filter_dev = settings->filter_dev;
	block->skeleton->rodata->cfg_filter_cgroups = settings->filter_cgroups_count;
	block->skeleton->rodata->cfg_probe = CONFIG_PROBE_block;
	/* iostall's own requests are load like any other: cfg_self_pid stays 0, which is nobody. */
	bpf_map__set_max_entries(block->skeleton->maps.requests, (uint32_t)settings->inflight_max);
	*ret_skeleton = block;
	*ret_object = block->skeleton->obj;
	return 0;
}

static void block_destroy(void *skeleton)
{
	struct block *block = skeleton;

	block_bpf__destroy(block->skeleton);
	free(block);
}

static const char *const paths[] = { "block", NULL };

const struct probe_ops probe_block_ops = {
	.name = "block",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.open = block_open,
	.destroy = block_destroy,
	.reset = block_reset,
	.summarize = block_summarize,
};
