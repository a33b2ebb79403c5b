/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe `block`: the user side of bpf/block.bpf.c. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/block_journal.h"
#include "probes/block_tables.h"
#include "enrich/decode.h"
#include "probes/probe_open.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/number.h"
#include "util/sort.h"
#include "util/text.h"

/* After iostall/event.h, whose types it uses. */
#include "block.skel.h"

/*
 * A disk with requests in flight gets a line when none has completed for this long, and at most
 * this many lines in one incident.
 */
#define NO_COMPLETION_NS NSEC_PER_SEC
#define NO_COMPLETION_LINES_MAX 10
/* Requests that are checked one by one, at 2 us each. Any more count as in flight unchecked. */
#define CHECKS_MAX 2048
/* Only the disks that were busy for longest get lines about who loaded them. */
#define TOP_DEVICES_MAX 8

/* One disk while a report is made. */
struct device_state {
	uint32_t dev;
	struct event_block_device value;
	uint64_t in_flight;
	struct event_block_request oldest; /* only when in_flight is not 0 */
};

struct stalled_device {
	uint32_t dev;
	uint32_t lines;
	uint64_t reported_ns; /* of the last line; 0: a request has completed since */
};

struct block {
	struct block_bpf *skeleton;
	unsigned int devices_count;
	struct device_state devices[EVENT_BLOCK_DEVICES_MAX];
	unsigned int stalled_count;
	struct stalled_device stalled[EVENT_BLOCK_DEVICES_MAX];
	struct block_tables tables;
	struct block_journal_user journal_users[EVENT_JOURNAL_USERS_MAX];
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
	uint64_t x_ns = block_load_busy_ns(&x->value.load),
		 y_ns = block_load_busy_ns(&y->value.load);

	return (x_ns < y_ns) - (x_ns > y_ns);
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
	sort_in_place(block->devices, block->devices_count, sizeof(block->devices[0]),
		compare_devices);
}

/* Requests */

struct request_scan {
	unsigned int checks;
	uint64_t since_ns; /* requests that began earlier are checked one by one */
};

/* An entry is stale when its request was merged into another or has completed after the detach. */
static bool is_in_flight(const struct block *block, uint64_t address, uint64_t stamp)
{
	uint64_t args[2] = { address, stamp };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(bpf_program__fd(block->skeleton->progs.block_request_check),
		       &opts) == 0 &&
		opts.retval == 1;
}

static void take_request(struct block *block, uint64_t address, const struct event_block_request *r,
	struct request_scan *scan)
{
	struct device_state *device = add_device(block, r->dev);

	if (!device)
		return;
	if (r->start_ns < scan->since_ns && scan->checks < CHECKS_MAX) {
		scan->checks++;
		if (!is_in_flight(block, address, r->stamp))
			return;
	}
	if (device->in_flight++ == 0 || r->start_ns < device->oldest.start_ns)
		device->oldest = *r;
}

static int read_requests(struct block *block, uint64_t since_ns)
{
	struct block_tables *t = &block->tables;
	struct block_cursor cursor = { .map = t->requests };
	struct request_scan scan = { .since_ns = since_ns };
	int count;

	while ((count = block_tables_read(t, &cursor)) > 0)
		for (int i = 0; i < count; i++)
			take_request(block, t->keys.requests[i], &t->values.requests[i], &scan);
	return count;
}

/* Lines about a disk */

static uint64_t no_completion_ns(const struct device_state *device, uint64_t now_ns)
{
	uint64_t since_ns = device->oldest.start_ns;

	if (device->in_flight == 0)
		return 0;
	if (device->value.completed_ns > since_ns)
		since_ns = device->value.completed_ns;
	return minus(now_ns, since_ns);
}

/*
 * Writes the path of a file. Its entry may have been cut off within a name. Returns whether the
 * beginning of the path is missing.
 */
static bool describe_path(const struct event_block_file_key *key,
	const struct event_block_file *file, char *path, size_t size,
	struct probe_line_names *names)
{
	uint32_t len =
		file->path_len < EVENT_BLOCK_PATH_SIZE ? file->path_len : EVENT_BLOCK_PATH_SIZE;
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
	const struct event_block_thread_key key = { oldest->dev, oldest->tid,
		oldest->thread_start_ns, 0 };
	struct event_block_thread thread;
	struct event_block_file file;

	d->oldest.age_ns = minus(now_ns, oldest->start_ns);
	if (oldest->tid && bpf_map_lookup_elem(block->tables.threads, &key, &thread) == 0) {
		d->oldest.tid = (int32_t)oldest->tid;
		d->oldest.pid = (int32_t)thread.who.pid;
		text_copy(d->oldest.comm, sizeof(d->oldest.comm), thread.who.comm);
	}
	if (oldest->has_file && bpf_map_lookup_elem(block->tables.files, &oldest->file, &file) == 0)
		describe_path(&oldest->file, &file, d->oldest.path, sizeof(d->oldest.path), names);
}

static void write_device(const struct block *block, const struct device_state *device,
	const struct probe_report *report)
{
	struct record_device *d = &report->begin(report->userdata, RECORD_DEVICE)->device;
	struct probe_line_names names = {};

	block_fill_device(device->dev, &device->value, d);
	d->final = report->final;
	d->in_flight = device->in_flight;
	d->no_completion_ns = no_completion_ns(device, report->now_ns);
	if (device->in_flight > 0)
		describe_oldest(block, &device->oldest, report->now_ns, d, &names);
	report->write(report->userdata, &names);
}

static struct stalled_device *find_stalled(struct block *block, uint32_t dev)
{
	for (unsigned int i = 0; i < block->stalled_count; i++)
		if (block->stalled[i].dev == dev)
			return &block->stalled[i];
	if (block->stalled_count == ARRAY_SIZE(block->stalled))
		return NULL;
	block->stalled[block->stalled_count] = (struct stalled_device){ .dev = dev };
	return &block->stalled[block->stalled_count++];
}

/* Every second up to 5 s, then whenever it has grown by half, as for operations that are stuck. */
static bool no_completion_is_due(struct stalled_device *stalled, uint64_t ns)
{
	uint64_t grown = stalled->reported_ns / 2;

	if (ns < NO_COMPLETION_NS) {
		stalled->reported_ns = 0;
		return false;
	}
	if (stalled->lines == NO_COMPLETION_LINES_MAX)
		return false;
	if (stalled->reported_ns < 5 * NSEC_PER_SEC)
		grown = NSEC_PER_SEC / 2;
	return stalled->reported_ns == 0 || ns >= stalled->reported_ns + grown;
}

static void report_no_completion(struct block *block, const struct probe_report *report)
{
	for (unsigned int i = 0; i < block->devices_count; i++) {
		const struct device_state *device = &block->devices[i];
		struct stalled_device *stalled = find_stalled(block, device->dev);
		uint64_t ns = no_completion_ns(device, report->now_ns);

		if (!stalled || !no_completion_is_due(stalled, ns))
			continue;
		stalled->reported_ns = ns;
		stalled->lines++;
		write_device(block, device, report);
	}
}

/* Lines about who loaded a disk */

static void write_item(const struct block *block, enum record_by by, uint32_t rank,
	const struct block_item *item, const struct device_state *device,
	const struct probe_report *report)
{
	struct record_io_by *b = &report->begin(report->userdata, RECORD_IO_BY)->io_by;
	struct probe_line_names names = {};
	struct event_block_cgroup cgroup;
	struct event_block_file file;

	block_fill_io_by(by, rank, item, &device->value, b);
	b->final = report->final;
	if (by == RECORD_BY_process || by == RECORD_BY_thread || by == RECORD_BY_statement)
		block_tables_find_name(&block->tables, by, item, b->comm, sizeof(b->comm));
	if (by == RECORD_BY_file) {
		if (bpf_map_lookup_elem(block->tables.files, &item->file, &file) == 0)
			b->path_truncated =
				describe_path(&item->file, &file, b->path, sizeof(b->path), &names);
	} else if (bpf_map_lookup_elem(bpf_map__fd(block->skeleton->maps.cgroups), &item->cgroup_id,
			   &cgroup) == 0) {
		memcpy(names.cgroup_names, cgroup.names, sizeof(names.cgroup_names));
	}
	report->write(report->userdata, &names);
}

static void report_by(struct block *block, enum record_by by, const struct probe_report *report)
{
	const uint32_t most = report->final ? BLOCK_TOP_MAX : BLOCK_TOP_SO_FAR;
	struct block_item *items = block->tables.items;
	size_t count = block_tables_read_items(&block->tables, by);
	uint32_t written = 0;

	if (by == RECORD_BY_statement)
		count = block_find_statements(items, count, report);
	count = block_sum_items(by, items, count);
	for (size_t i = 0; i < count; i++) {
		const struct block_item *item = &items[i];
		const struct device_state *device = find_device(block, item->dev);

		if (i == 0 || item->dev != items[i - 1].dev)
			written = 0;
		if (!device || device - block->devices >= TOP_DEVICES_MAX || written == most)
			continue;
		written++;
		write_item(block, by, written, item, device, report);
	}
}

static void clear_map(struct block *block, const struct bpf_map *map)
{
	block_tables_clear(&block->tables, bpf_map__fd(map), bpf_map__name(map),
		bpf_map__key_size(map), bpf_map__value_size(map));
}

static void block_reset(struct probe *probe)
{
	struct block *block = probe->skeleton;

	clear_map(block, block->skeleton->maps.devices);
	clear_map(block, block->skeleton->maps.threads);
	clear_map(block, block->skeleton->maps.files);
	clear_map(block, block->skeleton->maps.cgroups);
	clear_map(block, block->skeleton->maps.dirtiers);
	clear_map(block, block->skeleton->maps.flushers);
	clear_map(block, block->skeleton->maps.journals);
	clear_map(block, block->skeleton->maps.journal_users);
	/* The map is shared, but no other probe reads it. */
	clear_map(block, block->skeleton->maps.thread_files);
	/* The last, so that whatever is noted here has its entries in the other tables. */
	clear_map(block, block->skeleton->maps.block_requests);
	block->stalled_count = 0;
	block->tables.fold.count = 0;
	block->tables.fold.is_full = false;
}

static void block_summarize(struct probe *probe, const struct probe_report *report)
{
	struct block *block = probe->skeleton;
	int r;

	block->tables.threads = bpf_map__fd(block->skeleton->maps.threads);
	block->tables.files = bpf_map__fd(block->skeleton->maps.files);
	block->tables.requests = bpf_map__fd(block->skeleton->maps.block_requests);
	read_devices(block);
	r = read_requests(block, report->whole ? UINT64_MAX : report->now_ns - NO_COMPLETION_NS);
	if (r < 0)
		log_warning("the requests in flight cannot be read: %s", strerror(-r));
	if (!report->final)
		block_tables_make_room(&block->tables, report);
	if (!report->whole) {
		report_no_completion(block, report);
		return;
	}
	/* What is repeated is about those that are busiest. */
	for (unsigned int i = 0; i < block->devices_count && (report->final || i < TOP_DEVICES_MAX);
		i++)
		if (block_load_requests(&block->devices[i].value.load) ||
			block->devices[i].in_flight)
			write_device(block, &block->devices[i], report);
	for (enum record_by by = RECORD_BY_NONE + 1; by < RECORD_BY_COUNT; by++)
		report_by(block, by, report);
	block_journal_report(bpf_map__fd(block->skeleton->maps.journals),
		bpf_map__fd(block->skeleton->maps.journal_users), block->journal_users, report);
	/* Clearing the maps now makes the next arming faster. */
	if (report->final)
		block_reset(probe);
}

/* The probe */

static const struct probe_program programs[] = {
	{ "block_rq_complete_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "block_rq_complete" },
	{ "block_rq_issue_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "block_rq_issue" },
	{ "block_begin_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "block_io_start|block_rq_insert" },
	{ "block_dirty_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT,
		"writeback_dirty_folio|writeback_dirty_page" },
	{ "block_flush_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "block_bio_queue" },
	{ "block_request_check", PROBE_ATTACH_NONE, NULL },
	{ "journal_start_tp", PROBE_ATTACH_TRACEPOINT, "jbd2/jbd2_start_commit" },
	{ "journal_stats_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "jbd2_run_stats" },
	{ "journal_end_tp", PROBE_ATTACH_TRACEPOINT, "jbd2/jbd2_end_commit" },
	{ "journal_handle_raw_tp", PROBE_ATTACH_RAW_TRACEPOINT, "jbd2_handle_stats" },
};

static const struct probe_backend backends[] = {
	{ CONFIG_BACKEND_TRACEPOINT, RECORD_BACKEND_tracepoint, programs, ARRAY_SIZE(programs),
		true, NULL, NULL },
};

static uint64_t find_address(const struct probe_settings *settings, const char *function)
{
	uint64_t address = 0;

	kernel_types_find_address(settings->types, function, &address);
	return address;
}

static int block_configure(struct block_bpf *skeleton, const struct probe_settings *settings,
	const struct probe_backend *backend)
{
	(void)backend;
	/* iostall's own requests load a disk like any others. */
	skeleton->rodata->cfg_common.self_pid = 0;
	skeleton->rodata->cfg_iomap_dio_bio_end_io = find_address(settings, "iomap_dio_bio_end_io");
	skeleton->rodata->cfg_bio_chain_endio = find_address(settings, "bio_chain_endio");
	skeleton->rodata->cfg_end_swap_bio_read = find_address(settings, "end_swap_bio_read");
	skeleton->rodata->cfg_md_end_flush = find_address(settings, "md_end_flush");
	return 0;
}

PROBE_OPEN(block, block_configure)

/* The skeleton, with the state that the reports need. */
static int block_new(const struct probe_settings *settings, const struct probe_backend *backend,
	void **ret_block, struct bpf_object **ret_object)
{
	struct block *block = calloc(1, sizeof(*block));
	void *skeleton = NULL;
	int r;

	if (!block)
		return -ENOMEM;
	r = block_open(settings, backend, &skeleton, ret_object);
	if (r < 0) {
		free(block);
		return r;
	}
	block->skeleton = skeleton;
	*ret_block = block;
	return 0;
}

static void block_free(void *userdata)
{
	struct block *block = userdata;

	block_destroy(block->skeleton);
	free(block);
}

/* A host without ext4 has no jbd2. */
static const struct probe_part parts[] = {
	{ "journal_", RECORD_IO_PATH_NONE, "commits of the journal of ext4 are not seen", NULL },
};

static const enum record_io_path paths[] = { RECORD_IO_PATH_block, RECORD_IO_PATH_NONE };

const struct probe_ops probe_block_ops = {
	.name = "block",
	.paths = paths,
	.backends = backends,
	.backends_count = ARRAY_SIZE(backends),
	.parts = parts,
	.parts_count = ARRAY_SIZE(parts),
	.elf = block_elf,
	.open = block_new,
	.destroy = block_free,
	.reset = block_reset,
	.summarize = block_summarize,
};
