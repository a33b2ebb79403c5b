/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What a page says about disks, the disks below them, and the processes that used them. */
#include <stdio.h>

#include "test_page_setup.h"

static struct record_device *make_device(struct page_fixture *f, uint32_t minor, const char *name,
	const char *below)
{
	struct record_device *d = &f->record.device;

	data_device(&f->record);
	d->dev = (struct record_dev){ 7, minor };
	text_copy(d->dev_name, sizeof(d->dev_name), name);
	text_copy(d->below, sizeof(d->below), below);
	d->in_flight = 0;
	d->no_completion_ns = 0;
	d->final = true;
	d->read_busy_ns = 10 * NSEC_PER_SEC;
	d->write_busy_ns = d->discard_busy_ns = d->flush_busy_ns = d->before_busy_ns = 0;
	return d;
}

static void add_device(struct page_fixture *f, uint32_t minor, const char *name, const char *below)
{
	make_device(f, minor, name, below);
	add(f);
}

static void add_user(struct page_fixture *f, const char *by, const char *name, int32_t pid,
	uint64_t read_bytes, double share_pct)
{
	struct record_io_by *b = &f->record.io_by;

	data_io_by(&f->record);
	b->by = record_enum_find(&record_by_enum, by);
	/* A later one of the same list. */
	b->rank = 2;
	b->pid = pid;
	text_copy(b->comm, sizeof(b->comm), b->by == RECORD_BY_process ? name : "");
	text_copy(b->path, sizeof(b->path), b->by == RECORD_BY_file ? name : "");
	b->read_bytes = b->bytes = read_bytes;
	b->write_bytes = 0;
	b->busy_ns = (uint64_t)(share_pct * 10) * 10 * NSEC_PER_MSEC;
	b->before_busy_ns = 0;
	add(f);
}

/* A verdict about disk sdb, 8:16. */
static void add_verdict(struct page_fixture *f)
{
	data_verdict(&f->record);
	add(f);
}

static void add_part(struct record_verdict *v, enum record_what what, const char *text)
{
	struct record_verdict_part *part = &v->parts[v->parts_count++];

	part->what = what;
	part->basis = RECORD_BASIS_measured;
	text_copy(part->text, sizeof(part->text), text);
}

/* The trouble of a loop device comes from the disk that has its file: it is named. */
static void test_disks_below_and_above_are_named(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	page_make_operation(f, RECORD_STALL, 5, 1000, 500)->dev = (struct record_dev){ 7, 1 };
	text_copy(f->record.operation.dev_name, sizeof(f->record.operation.dev_name), "loop1");
	add(f);
	text_copy(f->record.open.trigger.device, sizeof(f->record.open.trigger.device), "");
	add_device(f, 1, "loop1", "loop0p2");
	make_device(f, 0, "loop0", "dm-0\nvdz")->no_completion_ns = 2400 * NSEC_PER_MSEC;
	add(f);
	add_device(f, 2, "dm-0", "");
	page_make_sample(f, 1000, 88);
	f->record.sample.reading.devices[0].dev = (struct record_dev){ 7, 2 };
	add(f);
	add_device(f, 3, "vdx", "");
	add_device(f, 4, "vdy", "loop1");
	print(f, 100);
	assert_has(f,
		"\n  it stands on loop0: no completions for at least 2.40 s, 1234 requests, ");
	assert_has(f, "\n  it stands on dm-0: util at most 88 %, ");
	assert_has(f, "\n  on it stands vdy: ");
	assert_has(f, "\nDISKS  also used: vdx\n");
}

static void test_disks_that_are_left_out_are_named(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	add_verdict(f);
	for (unsigned int i = 0; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof(name), "vd%c", (char)('a' + i));
		add_device(f, i, name, "");
	}
	print(f, 100);
	assert_has(f, "\nDISKS  also used: vda, vdb, vdc, vdd and 4 more\n");
}

/* A disk that people know by another name; a pause that nobody notices. */
static void test_a_disk_with_a_label(void **state)
{
	struct page_fixture *f = *state;
	struct record_stacked *s;

	page_make_open(f);
	s = &f->record.open.stack[0];
	f->record.open.stack_count = 1;
	text_copy(s->dev_name, sizeof(s->dev_name), "dm-0");
	text_copy(s->label, sizeof(s->label), "vg0-mysql");
	text_copy(s->below, sizeof(s->below), "sdb");
	text_copy(f->record.open.trigger.device, sizeof(f->record.open.trigger.device), "dm-0");
	add(f);
	make_device(f, 3, "dm-0", "sdb")->no_completion_ns = 170 * NSEC_PER_USEC;
	add(f);
	print(f, 100);
	assert_has(f, "\nDISK dm-0 (vg0-mysql)  1234 requests, ");
	make_device(f, 3, "dm-0", "sdb")->no_completion_ns = NSEC_PER_SEC;
	add(f);
	print(f, 80);
	assert_has(f,
		"\nDISK dm-0 (vg0-mysql)  no completions for at least 1.00 s, 1234 requests, ");
}

static void test_involved_disks_without_a_row(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	text_copy(f->record.open.trigger.device, sizeof(f->record.open.trigger.device), "");
	for (unsigned int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "vd%c", (char)('a' + i));
		add_device(f, i, name, "");
		page_make_operation(f, RECORD_STALL, 5 + (int)i, 1000, 500)->dev =
			(struct record_dev){ 7, i };
		text_copy(f->record.operation.dev_name, sizeof(f->record.operation.dev_name), name);
		add(f);
	}
	add_device(f, 4, "vde", "");
	print(f, 100);
	assert_has(f, "\nDISKS  also involved: vd");
	assert_has(f, "\nDISKS  also used: vde\n");
}

/* Whatever a record says: a disk that stands on itself, and a circle. */
static void test_a_circle_of_disks(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	add_device(f, 1, "loop1", "loop1\nloop2");
	add_device(f, 2, "loop2", "loop1\n\nloop2");
	page_make_operation(f, RECORD_STALL, 5, 1000, 500)->dev = (struct record_dev){ 7, 1 };
	add(f);
	print(f, 100);
	assert_has(f, "\n  it stands on loop2: ");
	assert_lacks(f, "on it stands");
}

static void test_shares_have_a_title_and_a_rest(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	make_device(f, 0, "sdb", "")->read_bytes = 1000 << 20;
	f->record.device.dev = (struct record_dev){ 8, 16 };
	f->record.device.write_bytes = 0;
	add(f);
	add_verdict(f);
	add_user(f, "process", "mariadbd", 2211, 690 << 20, 69);
	add_user(f, "process", "rsync", 99, 10 << 20, 1);
	add_user(f, "file", "/srv/big", 0, 1000 << 20, 100);
	print(f, 100);
	assert_has(f,
		"\n  share of its time by process                       share of its time by file\n");
	assert_has(f, "\n   69 %  mariadbd[2211] inferred  read 690.0 MiB     100 %  /srv/big ");
	assert_has(f, "\n   30 %  others, or before tracing\n");
	for (int32_t pid = 100; pid < 108; pid++)
		add_user(f, "process", "cp", pid, 1 << 20, 0.1);
	print(f, 100);
	assert_has(f, "\n   30 %  others, or before tracing\n");
	print(f, 80);
	assert_has(f, "\n  share of its time by process\n");
	assert_has(f, "\n  share of its time by file\n");
}

/* What fstrim gives back has not been written. */
static void test_discards_are_not_writes(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	add_device(f, 16, "sdb", "");
	page_make_operation(f, RECORD_STALL, 5, 1000, 500)->dev = (struct record_dev){ 7, 16 };
	add(f);
	add_user(f, "process", "fstrim", 12, 3 << 20, 90);
	f->record.io_by.dev = (struct record_dev){ 7, 16 };
	f->record.io_by.discard_bytes = 5 << 20;
	add(f);
	print(f, 100);
	assert_has(f, "  read 3.0 MiB, discarded 5.0 MiB\n");
}

/* Two lists stand side by side only where that leaves room for who and which file. */
static void test_lists_leave_room_for_names(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	make_device(f, 0, "sdb", "")->dev = (struct record_dev){ 8, 16 };
	add(f);
	add_verdict(f);
	add_user(f, "process", "mariadbd", 2211, 690 << 20, 69);
	f->record.io_by.write_bytes = 691 << 20;
	f->record.io_by.bytes = f->record.io_by.read_bytes + f->record.io_by.write_bytes;
	add(f);
	add_user(f, "file", "/srv/big", 0, 1000 << 20, 100);
	print(f, 100);
	assert_has(f, "  mariadbd[2211] inferred ");
	assert_has(f, "  read 690.0 MiB, written 691.0 MiB\n");
	assert_has(f, "\n  share of its time by file\n");
	print(f, 160);
	assert_has(f, " by process ");
	assert_has(f, "  mariadbd[2211] inferred ");
}

/* A thread may have another name than its process; the page says both, the same way everywhere. */
static void test_one_name_for_a_process(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	page_make_operation(f, RECORD_STALL, 41, 1000, 500)->pid = 40;
	text_copy(f->record.operation.comm, sizeof(f->record.operation.comm), "GC Thread");
	text_copy(f->record.operation.exe, sizeof(f->record.operation.exe),
		"/opt/jdk/java (deleted)");
	add(f);
	print(f, 100);
	assert_has(f, " java/GC Thread[40]  ");
	make_device(f, 0, "sdb", "")->dev = (struct record_dev){ 8, 16 };
	add(f);
	add_user(f, "process", "elasticsearch", 40, 19 << 20, 97);
	print(f, 100);
	assert_has(f, " elasticsearch[40] ");
}

static void test_the_ends_of_a_histogram(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	make_device(f, 0, "sdb", "")->dev = (struct record_dev){ 8, 16 };
	add(f);
	add_verdict(f);
	print(f, 100);
	assert_has(f, "\n  time in queue: from 2 us ▁█ to 450 ms, median 12 us\n");
	assert_has(f, "\n  time in device: from 1 us ▁  █ to 4.20 s, median 340 ms\n");
	print(f, 160);
	assert_has(f, ", median 12 us  time in device: from ");
}

/* The timeline has the longest time, which stands among the disks, too. */
static void test_no_completions_has_one_length(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	page_make_sample(f, 1000, 100);
	f->record.sample.reading.devices[0].no_completion_ns = NSEC_PER_SEC;
	add(f);
	make_device(f, 0, "sdb", "")->dev = (struct record_dev){ 8, 16 };
	f->record.device.no_completion_ns = 1720 * NSEC_PER_MSEC;
	f->record.device.final = false;
	f->record.mono_ns = AT(900);
	add(f);
	print(f, 100);
	assert_has(f, " NO COMPLETIONS for 1.72 s\n");
	assert_has(f, "  no completions for at least 1.72 s, ");
	assert_lacks(f, "NO COMPLETIONS for 1.00 s");
	make_device(f, 0, "loop0", "")->no_completion_ns = 2 * NSEC_PER_SEC;
	f->record.mono_ns = AT(900);
	add(f);
	print(f, 100);
	assert_has(f, " NO COMPLETIONS on loop0 for 2.00 s\n");
}

/* The sentence and the entry of the disk have what the part about the device says. */
static void test_nothing_is_said_twice(void **state)
{
	const struct page_style verbose = { .columns = 100, .verbose = true };
	struct page_fixture *f = *state;

	add_open(f);
	data_verdict(&f->record);
	add_part(&f->record.verdict, RECORD_WHAT_device, "sdb: util 100 %");
	add(f);
	print(f, 100);
	assert_has(f, "\ndevice    sdb: util 100 % (measured)\n");
	make_device(f, 0, "sdb", "")->dev = (struct record_dev){ 8, 16 };
	add(f);
	print(f, 100);
	assert_lacks(f, "\ndevice    ");
	assert_has(f, "\nculprit   ");
	text_reset(&f->out);
	page_print(f->page, &verbose, false, &f->out);
	assert_has(f, "\ndevice    ");
}

static void test_a_cause_stands_first(void **state)
{
	struct page_fixture *f = *state;
	struct record_verdict *v = &f->record.verdict;

	add_open(f);
	data_verdict(&f->record);
	add_part(v, RECORD_WHAT_cause,
		"kernel thread kworker/0:1 pid 77 waited 2.10 s for a frozen file system");
	add(f);
	print(f, 100);
	assert_true(strstr(f->buf, "\ncause     kernel thread kworker/0:1 pid 77 waited 2.10 s") <
		strstr(f->buf, "\nculprit   "));
	assert_has(f, "\ncause     kernel thread");
}

/* Words, not the record's values. */
static void test_how_it_ended(void **state)
{
	static const struct {
		enum record_reason reason;
		const char *text;
	} ends[] = {
		{ RECORD_REASON_clear, ", ended when all was clear again\n" },
		{ RECORD_REASON_max_time, ", ended by incident.max_time\n" },
		{ RECORD_REASON_stopped, ", ended because iostall was stopped\n" },
		{ RECORD_REASON_NONE, ", for 9.00 s\n" },
	};
	struct page_fixture *f = *state;

	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		add_open(f);
		page_make_close(f, 9000);
		f->record.close.reason = ends[i].reason;
		add(f);
		print(f, 100);
		assert_has(f, ends[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAGE(test_disks_below_and_above_are_named),
		WITH_PAGE(test_disks_that_are_left_out_are_named),
		WITH_PAGE(test_a_disk_with_a_label),
		WITH_PAGE(test_involved_disks_without_a_row),
		WITH_PAGE(test_a_circle_of_disks),
		WITH_PAGE(test_shares_have_a_title_and_a_rest),
		WITH_PAGE(test_discards_are_not_writes),
		WITH_PAGE(test_lists_leave_room_for_names),
		WITH_PAGE(test_one_name_for_a_process),
		WITH_PAGE(test_the_ends_of_a_histogram),
		WITH_PAGE(test_no_completions_has_one_length),
		WITH_PAGE(test_nothing_is_said_twice),
		WITH_PAGE(test_a_cause_stands_first),
		WITH_PAGE(test_how_it_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
