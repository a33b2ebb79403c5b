/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The thread that writes records must never call the allocator. */
#include "test_alloc.h"
#include "test_sinks_dirs.h"

static void test_writing_never_allocates(void **state)
{
	struct dirs *d = *state;
	static struct record records[RECORD_TYPE_COUNT];
	struct sinks *sinks;
	unsigned long before;
	void *volatile probe;
	int ends[2];

	counting_setup();
	before = allocations;
	probe = malloc(1);
	assert_int_equal(allocations, before + 1);
	free(probe);

	/* Neither socket has a receiver, and the spool and the output become full. */
	d->config.journal.enabled = true;
	d->config.syslog.enabled = true;
	text_copy(d->config.journal.socket, sizeof(d->config.journal.socket), "/nonexistent/a");
	text_copy(d->config.syslog.socket, sizeof(d->config.syslog.socket), "/nonexistent/b");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	sinks = dirs_start(d, (1U << SINK_COUNT) - 1, ends[1], false);
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		data_any(&records[type], type);
	dirs_flush(sinks);
	before = allocations;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
			record_make_id(DATA_REAL_NS, round, records[type].incident);
		sinks_write(sinks, &records[RECORD_OPEN]);
		for (unsigned int i = 0; i < 1000; i++)
			sinks_write(sinks, &records[RECORD_SAMPLE + i % 3]);
		sinks_tick(sinks, clock_mono_ns());
		sinks_dropped(sinks, records[RECORD_CLOSE].close.lost);
		sinks_write(sinks, &records[RECORD_CLOSE]);
	}
	assert_int_equal(allocations, before);
	sinks_free(sinks);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_writing_never_allocates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
