/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
#include "test_watch_tree.h"
#include "watch/disks.h"

#define assert_real(a, b) assert_float_equal((float)(a), (float)(b), 1e-4f)

struct row {
	const char *name;
	uint32_t major, minor;
	uint64_t reads, read_sectors, read_ms, writes, write_sectors, write_ms;
	uint64_t inflight, io_ms, weighted_ms, flushes;
};

static void put_rows(struct tree *t, const struct row *rows, size_t count)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (size_t i = 0; i < count; i++) {
		const struct row *r = &rows[i];

		fprintf(f, "%4u %7u %s %lu 0 %lu %lu %lu 0 %lu %lu %lu %lu %lu 0 0 0 0 %lu 0\n",
			r->major, r->minor, r->name, r->reads, r->read_sectors, r->read_ms,
			r->writes, r->write_sectors, r->write_ms, r->inflight, r->io_ms,
			r->weighted_ms, r->flushes);
	}
	fclose(f);
	tree_put_bytes(t, "proc/diskstats", text, size);
	free(text);
}

static const struct record_disk *find_disk(const struct record_reading *s, const char *name)
{
	for (uint32_t i = 0; i < s->devices_count; i++)
		if (strcmp(s->devices[i].dev_name, name) == 0)
			return &s->devices[i];
	return NULL;
}

/* Any judged disk, kept in the sample or not. */
static const struct record_disk *find_slot(const struct watch *w, const char *name,
	uint32_t *ret_serial)
{
	for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
		const struct record_disk *disk = watch_disk_in_slot(w, slot, ret_serial);

		if (disk && strcmp(disk->dev_name, name) == 0)
			return disk;
	}
	return NULL;
}

static void test_rates(void **state)
{
	struct tree *t = *state;
	struct row row = { "sda", 8, 0, 100, 800, 500, 50, 400, 250, 0, 1000, 2000, 7 };
	const struct record_disk *disk;
	struct watch *w;

	put_rows(t, &row, 1);
	w = tree_watch(t);
	disk = find_disk(tree_sample(t, w, 0), "sda");
	assert_non_null(disk);
	assert_int_equal(disk->dev.major, 8);
	assert_int_equal(disk->dev.minor, 0);
	assert_real(disk->util_pct, 0);
	assert_real(disk->queue, 0);
	assert_int_equal(disk->read_bytes, 0);

	row = (struct row){ "sda", 8, 0, 110, 880, 700, 54, 416, 270, 3, 1500, 6000, 9 };
	put_rows(t, &row, 1);
	/* Measured, not nominal: 2 s passed between two samples of a 1 s watch. */
	disk = find_disk(tree_sample(t, w, 2000), "sda");
	assert_real(disk->util_pct, 25);
	assert_int_equal(disk->inflight, 3);
	assert_real(disk->read_await_ms, 20);
	assert_real(disk->write_await_ms, 5);
	assert_real(disk->queue, 2);
	assert_int_equal(disk->read_bytes, 80 * 512);
	assert_int_equal(disk->write_bytes, 16 * 512);
	assert_int_equal(disk->reads, 10);
	assert_int_equal(disk->writes, 4);
	assert_int_equal(disk->discards, 0);
	assert_int_equal(disk->flushes, 2);
	assert_int_equal(disk->read_ticks_ms, 200);
	assert_int_equal(disk->write_ticks_ms, 20);

	/* Nothing finished: no await. More busy time than time: 100 %. */
	row.io_ms += 1030;
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_real(disk->util_pct, 100);
	assert_real(disk->read_await_ms, 0);
	watch_free(w);
}

static void test_wrap_of_milliseconds(void **state)
{
	struct tree *t = *state;
	struct row row = { "sda", 8, 0, 10, 80, 4294967290, 0, 0, 0, 1, 4294966796, 4294965296, 0 };
	const struct record_disk *disk;
	struct watch *w;

	put_rows(t, &row, 1);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	row = (struct row){ "sda", 8, 0, 12, 96, 14, 0, 0, 0, 1, 0, 500, 0 };
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_real(disk->read_await_ms, 10);
	assert_real(disk->util_pct, 50);
	assert_real(disk->queue, 2.5);

	/* A small step back is no wrap: the sums of the CPUs were read out of order. */
	row.reads++;
	row.weighted_ms -= 2;
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_real(disk->queue, 0);
	assert_real(disk->util_pct, 0);
	watch_free(w);
}

static void test_reappearance(void **state)
{
	struct tree *t = *state;
	struct row rows[] = {
		{ "sda", 8, 0, 1000, 8000, 500, 0, 0, 0, 1, 1000, 2000, 0 },
		{ "sdb", 8, 16, 1000, 8000, 500, 0, 0, 0, 1, 1000, 2000, 0 },
	};
	const struct record_disk *disk;
	uint32_t serial_a, serial_b, serial;
	struct watch *w;

	put_rows(t, rows, 2);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	tree_sample(t, w, 2000);
	assert_int_equal(find_slot(w, "sda", &serial_a)->no_completion_ns, 2 * NSEC_PER_SEC);
	assert_non_null(find_slot(w, "sdb", &serial_b));
	assert_int_not_equal(serial_a, serial_b);

	/* Fewer requests than before: another device under the same number. */
	rows[0].reads = 5;
	rows[0].read_sectors = 40;
	put_rows(t, rows, 2);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_real(disk->util_pct, 0);
	assert_int_equal(disk->read_bytes, 0);
	assert_int_equal(disk->no_completion_ns, 0);
	assert_non_null(find_slot(w, "sda", &serial));
	assert_int_not_equal(serial, serial_a);

	/* Gone, and back with higher counters: still another one, without rates at first. */
	put_rows(t, rows, 1);
	assert_null(find_disk(tree_sample(t, w, 1000), "sdb"));
	assert_null(find_slot(w, "sdb", &serial));
	assert_null(watch_disk_name(w, 8, 16));
	rows[1].reads = 2000;
	put_rows(t, rows, 2);
	disk = find_disk(tree_sample(t, w, 1000), "sdb");
	assert_real(disk->read_await_ms, 0);
	assert_non_null(find_slot(w, "sdb", &serial));
	assert_int_not_equal(serial, serial_b);
	watch_free(w);
}

static void test_number_given_to_another_device(void **state)
{
	struct tree *t = *state;
	struct row row = { "nvme0n1", 259, 0, 1000, 8000, 500, 0, 0, 0, 1, 1000, 2000, 0 };
	struct row rows[2] = { row };
	const struct record_disk *disk;
	struct watch *w;

	put_rows(t, &row, 1);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	row.name = "nvme1n1";
	row.io_ms += 1000;
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 1000), "nvme1n1");
	assert_non_null(disk);
	assert_real(disk->util_pct, 0);
	assert_string_equal(watch_disk_name(w, 259, 0), "nvme1n1");
	/* The new owner may be a partition. */
	rows[0].name = "nvme2n1";
	rows[0].minor = 1;
	rows[1] = row;
	rows[1].name = "nvme2n1p1";
	put_rows(t, rows, 2);
	assert_int_equal(tree_sample(t, w, 1000)->devices_count, 1);
	assert_string_equal(watch_disk_name(w, 259, 0), "nvme2n1p1");
	/* And one whose disk is not there is a disk, as a guest of Xen may have it. */
	rows[1].minor = 2;
	put_rows(t, &rows[1], 1);
	assert_non_null(find_disk(tree_sample(t, w, 1000), "nvme2n1p1"));
	watch_free(w);
}

/* Nobody looks while no incident is open. */
static void test_a_volume_that_is_suspended(void **state)
{
	static const struct row rows[] = { { .name = "dm-0", .major = 253 },
		{ .name = "dm-1", .major = 253, .minor = 1 } };
	const struct record_disk *disk;
	struct tree *t = *state;
	struct watch *w;

	put_rows(t, rows, 2);
	tree_put(t, "sys/dev/block/253:0/dm/suspended", "0\n");
	tree_put(t, "sys/dev/block/253:1/dm/suspended", "1\n");
	w = tree_watch(t);
	disk = find_disk(tree_sample(t, w, 0), "dm-1");
	assert_false(disk->suspended);
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_true(find_disk(watch_last(w), "dm-1")->suspended);
	assert_false(find_disk(watch_last(w), "dm-0")->suspended);
	tree_put(t, "sys/dev/block/253:1/dm/suspended", "0\n");
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_false(find_disk(watch_last(w), "dm-1")->suspended);
	/* Nothing is looked up in an incident. */
	tree_put(t, "sys/dev/block/253:1/dm/suspended", "1\n");
	tree_remove(t, "sys/dev/block/253:1");
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_true(find_disk(watch_last(w), "dm-1")->suspended);
	watch_free(w);
}

static void test_which_rows_are_judged(void **state)
{
	static const struct row rows[] = {
		{ .name = "loop0", .major = 7, .minor = 0 },
		{ .name = "sda", .major = 8, .minor = 0 },
		{ .name = "sda1", .major = 8, .minor = 1 },
		{ .name = "nvme0n1", .major = 259, .minor = 0 },
		{ .name = "nvme0n1p1", .major = 259, .minor = 1 },
		{ .name = "dm-0", .major = 254, .minor = 0 },
		{ .name = "md127", .major = 9, .minor = 127 },
		{ .name = "zram0", .major = 253, .minor = 0 },
	};
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch_options options;
	struct watch *w;

	tree_list_add(&t->device_ignore, "zram*");
	put_rows(t, rows, sizeof(rows) / sizeof(rows[0]));
	w = tree_watch(t);
	s = tree_sample(t, w, 0);
	assert_int_equal(s->devices_count, 5);
	assert_non_null(find_disk(s, "loop0"));
	assert_non_null(find_disk(s, "sda"));
	assert_non_null(find_disk(s, "nvme0n1"));
	assert_non_null(find_disk(s, "dm-0"));
	assert_non_null(find_disk(s, "md127"));
	assert_string_equal(watch_disk_name(w, 8, 1), "sda1");
	assert_string_equal(watch_disk_name(w, 253, 0), "zram0");
	assert_null(watch_disk_name(w, 8, 2));

	options = tree_options(t);
	t->device = (struct config_list){ 0 };
	tree_list_add(&t->device, "nvme*");
	tree_list_add(&t->device, "zram0");
	t->device_ignore.count = 0;
	assert_int_equal(watch_reload(w, &options), 0);
	s = tree_sample(t, w, 1000);
	assert_int_equal(s->devices_count, 2);
	assert_non_null(find_disk(s, "nvme0n1"));
	assert_non_null(find_disk(s, "zram0"));
	watch_free(w);
}

/* Before 6.2 the disk itself counts nothing. */
static void test_paths_of_a_disk_are_judged(void **state)
{
	static const struct row rows[] = {
		{ .name = "nvme0c0n1", .major = 259, .minor = 0 },
		{ .name = "nvme0n1", .major = 259, .minor = 1 },
		{ .name = "nvme1c0n1", .major = 259, .minor = 2 },
		{ .name = "nvme2c0n1", .major = 259, .minor = 3 },
	};
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w;

	t->device = (struct config_list){ 0 };
	tree_list_add(&t->device, "nvme0n1");
	tree_list_add(&t->device, "nvme2n1");
	tree_list_add(&t->device_ignore, "nvme2n1");
	put_rows(t, rows, sizeof(rows) / sizeof(rows[0]));
	w = tree_watch(t);
	s = tree_sample(t, w, 0);
	assert_int_equal(s->devices_count, 2);
	assert_non_null(find_disk(s, "nvme0n1"));
	assert_non_null(find_disk(s, "nvme0c0n1"));
	watch_free(w);
}

/* Before 6.3 such a volume counts what begins: writers that come are no sign of life. */
static void test_hung_volume(void **state)
{
	struct tree *t = *state;
	struct row row = { "dm-0", 253, 0, 100, 800, 500, 0, 0, 0, 0, 1000, 2000, 0 };
	struct watch *w;

	put_rows(t, &row, 1);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	row.inflight = 2;
	for (unsigned int i = 0; i < 4; i++) {
		row.inflight++;
		row.reads++;
		put_rows(t, &row, 1);
		tree_sample(t, w, 1000);
	}
	assert_true(find_disk(watch_last(w), "dm-0")->no_completion_ns >= 3 * NSEC_PER_SEC);
	/* It completes, and nothing begins; then as many begin as are completed. */
	row.inflight--;
	put_rows(t, &row, 1);
	assert_int_equal(find_disk(tree_sample(t, w, 1000), "dm-0")->no_completion_ns, 0);
	for (unsigned int i = 0; i < 3; i++) {
		row.reads += 10;
		put_rows(t, &row, 1);
		assert_int_equal(find_disk(tree_sample(t, w, 1000), "dm-0")->no_completion_ns, 0);
	}
	watch_free(w);
}

static void test_hung_device(void **state)
{
	struct tree *t = *state;
	/* Utilisation stays 0, as on 5.10 while a device is stuck. */
	struct row row = { "sda", 8, 0, 100, 800, 500, 0, 0, 0, 0, 1000, 2000, 0 };
	const struct record_disk *disk;
	struct watch *w;

	put_rows(t, &row, 1);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	row.inflight = 4;
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_int_equal(disk->no_completion_ns, 0);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_int_equal(disk->no_completion_ns, NSEC_PER_SEC);
	assert_real(disk->util_pct, 0);
	row.inflight = 9;
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 2500), "sda");
	assert_int_equal(disk->no_completion_ns, 3500 * NSEC_PER_MSEC);

	/* One that finishes starts the count anew, a flush as well as a read. */
	row.flushes++;
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_int_equal(disk->no_completion_ns, 0);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_int_equal(disk->no_completion_ns, NSEC_PER_SEC);

	row.inflight = 0;
	put_rows(t, &row, 1);
	disk = find_disk(tree_sample(t, w, 1000), "sda");
	assert_int_equal(disk->no_completion_ns, 0);
	watch_free(w);
}

static void test_three_hundred_disks(void **state)
{
	struct tree *t = *state;
	struct row rows[300] = { 0 };
	char names[300][16];
	const struct record_reading *s;
	struct watch_left_out left_out;
	uint32_t serial;
	struct watch *w;

	for (uint32_t i = 0; i < 300; i++) {
		snprintf(names[i], sizeof(names[i]), "sd%u", i);
		rows[i] = (struct row){ .name = names[i], .major = 8, .minor = i, .io_ms = 5 };
	}
	put_rows(t, rows, 300);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	/* Utilisation rises with the number; the one that hangs says more than all of them. */
	for (uint32_t i = 0; i < 300; i++)
		rows[i].io_ms += i;
	rows[3].inflight = 1;
	put_rows(t, rows, 300);
	tree_sample(t, w, 1000);
	for (uint32_t i = 0; i < 300; i++)
		rows[i].io_ms += i;
	put_rows(t, rows, 300);
	s = tree_sample(t, w, 1000);
	assert_int_equal(s->devices_count, RECORD_DEVICES_MAX);
	assert_int_equal(s->devices_left_out, 256 - RECORD_DEVICES_MAX);
	assert_string_equal(s->devices[0].dev_name, "sd3");
	/* sd0 has done nothing: sd256 has its place. */
	assert_string_equal(s->devices[1].dev_name, "sd256");
	assert_real(s->devices[1].util_pct, 25.6);
	assert_string_equal(s->devices[7].dev_name, "sd250");
	assert_null(find_slot(w, "sd0", &serial));
	assert_real(find_slot(w, "sd17", &serial)->util_pct, 1.7);
	watch_get_left_out(w, &left_out);
	assert_int_equal(left_out.disks, 299 - 256);

	/* Room that is made is taken. */
	put_rows(t, rows + 100, 200);
	tree_sample(t, w, 1000);
	tree_sample(t, w, 1000);
	assert_non_null(find_slot(w, "sd299", &serial));
	watch_get_left_out(w, &left_out);
	assert_int_equal(left_out.disks, 0);
	watch_free(w);
}

/* The disk that all is about is not hidden by devices that nobody uses. */
static void test_idle_disks_that_were_used(void **state)
{
	enum { DISKS = RECORD_DEVICES_MAX + 2 };
	struct tree *t = *state;
	struct row rows[DISKS] = { 0 };
	char names[DISKS][16];
	const struct record_reading *s;
	struct watch *w;

	for (uint32_t i = 0; i < DISKS; i++) {
		snprintf(names[i], sizeof(names[i]), "loop%u", i);
		rows[i] = (struct row){ .name = names[i], .major = 7, .minor = i };
	}
	rows[DISKS - 1] = (struct row){ .name = "sda", .major = 8, .io_ms = 70000 };
	put_rows(t, rows, DISKS);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	s = tree_sample(t, w, 1000);
	assert_int_equal(s->devices_left_out, 2);
	assert_string_equal(s->devices[0].dev_name, "sda");
	assert_string_equal(s->devices[1].dev_name, "loop0");
	watch_free(w);
}

static void test_two_thousand_rows(void **state)
{
	struct tree *t = *state;
	struct row *rows = calloc(2000, sizeof(*rows));
	struct watch_left_out left_out;
	char(*names)[16] = calloc(2000, sizeof(*names));
	struct watch *w;

	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(names[i], sizeof(names[i]), "sd%u", i);
		rows[i] = (struct row){ .name = names[i], .major = 8, .minor = i };
	}
	put_rows(t, rows, 2000);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	tree_sample(t, w, 1000);
	watch_get_left_out(w, &left_out);
	/* Nobody uses those that have no place. */
	assert_int_equal(left_out.disks, 0);
	assert_string_equal(watch_disk_name(w, 8, 1023), "sd1023");
	assert_string_equal(watch_disk_name(w, 8, 1999), "sd1999");
	assert_null(watch_disk_name(w, 8, 2000));
	watch_free(w);
	free(names);
	free(rows);
}

#define MANY 10000

struct many {
	struct row rows[MANY];
	char names[MANY][16];
};

/* 10,000 disks that nobody uses, and the counters of a host without I/O. */
static struct watch *watch_many(struct tree *t, struct many **ret_many)
{
	struct many *m = calloc(1, sizeof(*m));
	struct watch *w;

	assert_non_null(m);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(m->names[i], sizeof(m->names[i]), "sd%u", i);
		m->rows[i] = (struct row){ .name = m->names[i],
			.major = 8 + i / 256,
			.minor = i % 256,
			.reads = 1000 + i,
			.io_ms = 120 };
	}
	put_rows(t, m->rows, MANY);
	tree_put(t, "proc/stat", "cpu  0 0 0 0 0 0 0 0\nprocs_blocked 0\n");
	tree_put(t, "proc/vmstat", "pgpgin 100\npgpgout 200\n");
	w = tree_watch(t);
	/* The table grows after the first one. */
	tree_sample(t, w, 0);
	tree_sample(t, w, 1000);
	*ret_many = m;
	return w;
}

/* Somebody has sent I/O, so the next sample reads all rows. */
static void put_many(struct tree *t, const struct many *m, unsigned int kib)
{
	tree_put(t, "proc/vmstat", "pgpgin %u\npgpgout 200\n", 100 + kib);
	put_rows(t, m->rows, MANY);
}

/* Whichever disk hangs, it is in the first sample that can have it. */
static void test_the_last_of_ten_thousand_disks_hangs(void **state)
{
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch_left_out left_out;
	uint32_t serial, again;
	struct many *m;
	struct watch *w = watch_many(t, &m);

	assert_null(find_slot(w, "sd9999", &serial));
	m->rows[MANY - 1].inflight = 1;
	put_many(t, m, 1);
	s = tree_sample(t, w, 1000);
	assert_string_equal(s->devices[0].dev_name, "sd9999");
	assert_int_equal(s->devices[0].inflight, 1);
	assert_non_null(find_slot(w, "sd9999", &serial));
	/* Nothing is sent any more, and what hangs is still looked at. */
	s = tree_sample(t, w, 5000);
	assert_int_equal(s->devices[0].no_completion_ns, 5 * NSEC_PER_SEC);
	/* All others work: none of them takes its place, and those that have none are counted. */
	for (unsigned int i = 0; i < MANY - 1; i++) {
		m->rows[i].reads++;
		m->rows[i].io_ms += 10;
	}
	put_many(t, m, 2);
	s = tree_sample(t, w, 1000);
	assert_string_equal(s->devices[0].dev_name, "sd9999");
	assert_int_equal(s->devices[0].no_completion_ns, 6 * NSEC_PER_SEC);
	assert_non_null(find_slot(w, "sd9999", &again));
	assert_int_equal(again, serial);
	watch_get_left_out(w, &left_out);
	assert_int_equal(left_out.disks, MANY - 256);
	watch_free(w);
	free(m);
}

/* A place is given away with a new serial, so that rules begin anew. */
static void test_a_place_goes_to_who_works(void **state)
{
	struct tree *t = *state;
	uint32_t first, second, serial;
	struct many *m;
	struct watch *w = watch_many(t, &m);

	assert_non_null(find_slot(w, "sd0", &first));
	for (unsigned int i = 1; i < 256; i++)
		m->rows[i].reads++;
	put_many(t, m, 1);
	tree_sample(t, w, 1000);
	m->rows[9000].reads += 8;
	put_many(t, m, 2);
	tree_sample(t, w, 1000);
	assert_null(find_slot(w, "sd0", &serial));
	assert_non_null(find_slot(w, "sd9000", &second));
	assert_true(second > first);
	/* From then on it has rates. */
	m->rows[9000].reads += 8;
	m->rows[9000].io_ms += 500;
	put_many(t, m, 3);
	tree_sample(t, w, 1000);
	assert_real(find_slot(w, "sd9000", &serial)->util_pct, 50);
	assert_int_equal(serial, second);
	assert_int_equal(find_slot(w, "sd9000", &serial)->reads, 8);
	/* And none when it has stopped. */
	put_many(t, m, 4);
	tree_sample(t, w, 1000);
	assert_real(find_slot(w, "sd9000", &serial)->util_pct, 0);
	assert_int_equal(find_slot(w, "sd9000", &serial)->reads, 0);
	watch_free(w);
	free(m);
}

/* What /proc/diskstats says is not asked for while nobody sends I/O or waits for it. */
static void test_ten_thousand_disks_at_rest(void **state)
{
	struct tree *t = *state;
	uint32_t serial;
	struct many *m;
	struct watch *w = watch_many(t, &m);

	m->rows[7].reads++;
	put_rows(t, m->rows, MANY);
	tree_sample(t, w, 1000);
	assert_int_equal(find_slot(w, "sd7", &serial)->reads, 0);
	/* A thread waits for I/O. */
	tree_put(t, "proc/stat", "cpu  0 0 0 0 0 0 0 0\nprocs_blocked 1\n");
	tree_sample(t, w, 1000);
	assert_int_equal(find_slot(w, "sd7", &serial)->reads, 1);
	tree_put(t, "proc/stat", "cpu  0 0 0 0 0 0 0 0\nprocs_blocked 0\n");
	/* An incident is open. */
	m->rows[7].reads++;
	put_rows(t, m->rows, MANY);
	t->now_ns += NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_int_equal(find_slot(w, "sd7", &serial)->reads, 1);
	/* The counters cannot be read. */
	m->rows[7].reads++;
	put_rows(t, m->rows, MANY);
	tree_put(t, "proc/vmstat", "nothing 1\n");
	tree_sample(t, w, 1000);
	assert_int_equal(find_slot(w, "sd7", &serial)->reads, 1);
	tree_put(t, "proc/vmstat", "pgpgin 100\npgpgout 200\n");
	tree_sample(t, w, 1000);
	/* What is not among the I/O that is counted is seen after a minute. */
	m->rows[7].reads++;
	put_rows(t, m->rows, MANY);
	tree_sample(t, w, 1000);
	assert_int_equal(find_slot(w, "sd7", &serial)->reads, 0);
	tree_sample(t, w, 59000);
	assert_int_equal(find_slot(w, "sd7", &serial)->reads, 1);
	watch_free(w);
	free(m);
}

static void read_many(struct disks *d, const struct many *m, uint64_t now_ns)
{
	char text[128];

	disks_begin_reading(d, now_ns);
	for (unsigned int i = 0; i < MANY; i++) {
		int len = snprintf(text, sizeof(text), "%u %u %s %lu 0 0 0 0 0 0 0 0 0 0",
			m->rows[i].major, m->rows[i].minor, m->names[i], m->rows[i].reads);

		disks_take_line(d, (struct cursor){ text, text + len });
	}
	disks_end_reading(d, false);
}

/* A reading looks at each row once, and at few others where it has changed. */
static void test_work_of_a_reading(void **state)
{
	struct disks *d = calloc(1, sizeof(*d));
	struct many *m = calloc(1, sizeof(*m));
	uint64_t visits;

	(void)state;
	assert_non_null(d);
	assert_non_null(m);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(m->names[i], sizeof(m->names[i]), "sd%u", i);
		m->rows[i] = (struct row){ .major = 8 + i / 256, .minor = i % 256 };
	}
	assert_int_equal(disks_init(d, -1, NULL, NULL), 0);
	read_many(d, m, 1);
	read_many(d, m, 2);
	visits = d->rows.visits;
	read_many(d, m, 3);
	assert_int_equal(d->rows.visits - visits, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		m->rows[i].reads++;
	visits = d->rows.visits;
	read_many(d, m, 4);
	assert_in_range(d->rows.visits - visits, MANY, 2 * MANY);
	/* A disk that goes makes no search for those behind it. */
	memmove(m->names + 5, m->names + 6, (MANY - 6) * sizeof(m->names[0]));
	memmove(m->rows + 5, m->rows + 6, (MANY - 6) * sizeof(m->rows[0]));
	visits = d->rows.visits;
	read_many(d, m, 5);
	assert_in_range(d->rows.visits - visits, MANY, MANY + 20);
	assert_int_equal(d->rows.count, MANY - 1);
	disks_done(d);
	free(m);
	free(d);
}

/* Hidden disks have no number on 5.10. */
static void test_disks_with_the_same_number(void **state)
{
	struct row rows[] = {
		{ "nvme0c1n1", 0, 0, 492, 57408, 6119, 0, 0, 0, 1, 5980, 6211, 0 },
		{ "nvme0c0n1", 0, 0, 10, 80, 20, 0, 0, 0, 0, 20, 20, 0 },
	};
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w;

	put_rows(t, rows, 2);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	rows[1].reads += 3;
	put_rows(t, rows, 2);
	s = tree_sample(t, w, 1000);
	assert_int_equal(find_disk(s, "nvme0c1n1")->no_completion_ns, NSEC_PER_SEC);
	assert_int_equal(find_disk(s, "nvme0c0n1")->reads, 3);
	watch_free(w);
}

static void test_garbage_and_devices_named_twice(void **state)
{
	struct tree *t = *state;
	const struct record_reading *s;
	struct watch *w;

	tree_put(t, "proc/diskstats",
		"garbage\n\n   8 0 sda\n"
		"   8 0 sda 9 0 9 9 9 0 9 9 1 9 9\n"
		"   8 0 sda 1 0 1 1 1 0 1 1 0 1 1\n"
		"   8 16 sdb 1 0 1 1 1 0 1 1 0 1 1");
	w = tree_watch(t);
	tree_sample(t, w, 0);
	s = tree_sample(t, w, 1000);
	assert_int_equal(s->devices_count, 2);
	assert_int_equal(find_disk(s, "sda")->no_completion_ns, NSEC_PER_SEC);
	tree_put(t, "proc/diskstats", "%s", "");
	assert_int_equal(tree_sample(t, w, 1000)->devices_count, 0);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_rates),
		tree_test(test_wrap_of_milliseconds),
		tree_test(test_reappearance),
		tree_test(test_number_given_to_another_device),
		tree_test(test_a_volume_that_is_suspended),
		tree_test(test_which_rows_are_judged),
		tree_test(test_paths_of_a_disk_are_judged),
		tree_test(test_hung_device),
		tree_test(test_hung_volume),
		tree_test(test_three_hundred_disks),
		tree_test(test_idle_disks_that_were_used),
		tree_test(test_two_thousand_rows),
		tree_test(test_the_last_of_ten_thousand_disks_hangs),
		tree_test(test_a_place_goes_to_who_works),
		tree_test(test_ten_thousand_disks_at_rest),
		tree_test(test_disks_with_the_same_number),
		cmocka_unit_test(test_work_of_a_reading),
		tree_test(test_garbage_and_devices_named_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
