/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which rules open no incident after one that was about the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "session/cooldown.h"
#include "util/clock.h"
#include "util/cleanup.h"
#include "model/model.h"

#define COOLDOWN_NS (60 * NSEC_PER_SEC)
#define END_NS (1000 * NSEC_PER_SEC)
#define LATER_NS (END_NS + 10 * NSEC_PER_SEC)

static struct model_disks disks;
static struct record_reading sample;
static struct cooldown cooldown;

/* The last incident was about a volume on a disk. */
static int setup(void **state)
{
	const struct record_trigger trigger = { .rule = "utilisation", .device = "dm-0" };

	(void)state;
	memset(&disks, 0, sizeof(disks));
	memset(&sample, 0, sizeof(sample));
	memset(&cooldown, 0, sizeof(cooldown));
	model_disks_note_below(&disks, "dm-0", "vg0-mysql", "sda3");
	model_disks_note_below(&disks, "loop0", "", "sdc1");
	cooldown_note_trigger(&cooldown, &trigger);
	cooldown_begin(&cooldown, END_NS, COOLDOWN_NS, true);
	return 0;
}

static bool holds(const char *rule, const char *device, const char *subject, enum rules_scope scope,
	uint64_t now_ns)
{
	struct record_trigger trigger = { 0 };

	text_copy(trigger.rule, sizeof(trigger.rule), rule);
	text_copy(trigger.device, sizeof(trigger.device), device);
	text_copy(trigger.subject, sizeof(trigger.subject), subject);
	return cooldown_holds_back(&cooldown, &disks, &sample, &trigger, scope, now_ns);
}

static bool holds_disk(const char *name)
{
	return holds("await", name, "", RULES_SCOPE_device, LATER_NS);
}

static void test_the_same_disk(void **state)
{
	(void)state;
	assert_true(holds_disk("dm-0"));
	/* It stands on this one. */
	assert_true(holds_disk("sda"));
	assert_false(holds_disk("sdb"));
	assert_false(holds_disk("loop0"));
	cooldown_note_disk(&cooldown, "sdc");
	cooldown_begin(&cooldown, END_NS, COOLDOWN_NS, true);
	assert_true(holds_disk("loop0"));
	/* Requests are on a path of an NVMe disk, and so are the rules about it. */
	assert_false(holds_disk("nvme0c1n1"));
	cooldown_note_disk(&cooldown, "nvme0c1n1");
	cooldown_begin(&cooldown, END_NS, COOLDOWN_NS, true);
	assert_true(holds_disk("nvme0c1n1"));
}

static void test_each_cause_has_its_own_end(void **state)
{
	(void)state;
	cooldown_note_disk(&cooldown, "sdb");
	cooldown_begin(&cooldown, LATER_NS, COOLDOWN_NS, true);
	assert_true(holds("hung", "sda", "", RULES_SCOPE_device, END_NS + COOLDOWN_NS - 1));
	assert_false(holds("hung", "sda", "", RULES_SCOPE_device, END_NS + COOLDOWN_NS));
	assert_true(holds("hung", "sdb", "", RULES_SCOPE_device, END_NS + COOLDOWN_NS));
	assert_false(holds("hung", "sdb", "", RULES_SCOPE_device, LATER_NS + COOLDOWN_NS));
}

static void test_the_host_has_no_other_subject(void **state)
{
	(void)state;
	assert_true(holds("iowait", "", "", RULES_SCOPE_host, LATER_NS));
	assert_true(holds("psi_io_full", "", "", RULES_SCOPE_host, LATER_NS));
}

static void test_other_subjects(void **state)
{
	(void)state;
	cooldown_note_subject(&cooldown, "main");
	cooldown_begin(&cooldown, END_NS, COOLDOWN_NS, true);
	assert_true(holds("sql_unanswered", "", "main", RULES_SCOPE_database, LATER_NS));
	assert_false(holds("sql_unanswered", "", "orders", RULES_SCOPE_database, LATER_NS));
	assert_false(holds("space", "", "/srv", RULES_SCOPE_filesystem, LATER_NS));
}

/* While the disk is at work again, they are probably its victims again. */
static void test_what_may_be_a_victim(void **state)
{
	(void)state;
	assert_false(holds("blocked", "", "", RULES_SCOPE_process, LATER_NS));
	sample.devices_count = 1;
	text_copy(sample.devices[0].dev_name, sizeof(sample.devices[0].dev_name), "dm-0");
	assert_false(holds("blocked", "", "", RULES_SCOPE_process, LATER_NS));
	sample.devices[0].util_pct = 99;
	assert_true(holds("blocked", "", "", RULES_SCOPE_process, LATER_NS));
	assert_true(holds("health", "", "127.0.0.1:80", RULES_SCOPE_service, LATER_NS));
	assert_false(holds("space", "", "/srv", RULES_SCOPE_filesystem, LATER_NS));
	/* Without a disk that was the reason, nothing says that they wait for something else. */
	sample.devices[0].util_pct = 0;
	cooldown_begin(&cooldown, END_NS, COOLDOWN_NS, false);
	assert_true(holds("blocked", "", "", RULES_SCOPE_process, LATER_NS));
	assert_false(holds("health", "", "127.0.0.1:80", RULES_SCOPE_service, LATER_NS));
}

static void test_too_many_causes_hold_everything_back(void **state)
{
	char name[RECORD_DISK_NAME_SIZE];

	(void)state;
	for (unsigned int i = 1; i < COOLDOWN_CAUSES_MAX; i++) {
		snprintf(name, sizeof(name), "nvme%un1", i);
		assert_false(holds_disk(name));
		cooldown_note_disk(&cooldown, name);
		cooldown_begin(&cooldown, END_NS, COOLDOWN_NS, true);
	}
	assert_true(holds_disk("sdb"));
	cooldown_begin(&cooldown, END_NS + COOLDOWN_NS, COOLDOWN_NS, true);
	assert_false(holds_disk("sdb"));
}

/* A table that is full of what is over has room for what the open incident is about. */
static void test_what_is_over_gives_way(void **state)
{
	const uint64_t hours_ns = 10000 * NSEC_PER_SEC;
	char name[RECORD_DISK_NAME_SIZE];

	(void)state;
	for (unsigned int i = 0; i < COOLDOWN_CAUSES_MAX; i++) {
		snprintf(name, sizeof(name), "nvme%un1", i);
		cooldown_note_disk(&cooldown, name);
	}
	cooldown_begin(&cooldown, END_NS, COOLDOWN_NS, true);
	cooldown_note_disk(&cooldown, "sdz");
	cooldown_begin(&cooldown, END_NS + hours_ns, COOLDOWN_NS, true);
	assert_true(holds("await", "sdz", "", RULES_SCOPE_device, LATER_NS + hours_ns));
	assert_false(holds("await", "nvme3n1", "", RULES_SCOPE_device, LATER_NS + hours_ns));
}

static void test_what_was_held_back(void **state)
{
	const struct record_trigger disk = { .rule = "utilisation", .device = "sdb" };
	const struct record_trigger host = { .rule = "iowait" };
	char buf[256];
	struct text t = TEXT_ON(buf);

	(void)state;
	text_reset(&t);
	assert_false(cooldown_take_held(&cooldown, &t));
	cooldown_count(&cooldown, &disk);
	cooldown_count(&cooldown, &host);
	cooldown_count(&cooldown, &disk);
	assert_true(cooldown_take_held(&cooldown, &t));
	assert_string_equal(buf, "utilisation of sdb 2 times, iowait 1 time");
	assert_false(cooldown_take_held(&cooldown, &t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_same_disk, setup),
		cmocka_unit_test_setup(test_each_cause_has_its_own_end, setup),
		cmocka_unit_test_setup(test_the_host_has_no_other_subject, setup),
		cmocka_unit_test_setup(test_other_subjects, setup),
		cmocka_unit_test_setup(test_what_may_be_a_victim, setup),
		cmocka_unit_test_setup(test_too_many_causes_hold_everything_back, setup),
		cmocka_unit_test_setup(test_what_is_over_gives_way, setup),
		cmocka_unit_test_setup(test_what_was_held_back, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
