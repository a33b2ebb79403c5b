/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* BLOCKED TIME of a page: which stacks are told, in which order, and with which statement. */
#include <stdio.h>
#include <string.h>

#include "test_page_setup.h"

static const char *print_blocked(struct page_fixture *f)
{
	const struct page_style style = { .columns = 100 };
	const char *begin, *end;

	text_reset(&f->out);
	page_print(f->page, &style, false, &f->out);
	assert_false(f->out.overflow);
	begin = strstr(f->buf, "BLOCKED TIME");
	end = begin ? strstr(begin, "\n\n") : NULL;
	if (end)
		f->buf[end + 1 - f->buf] = '\0';
	return begin ? begin : "";
}

static void add_stack(struct page_fixture *f, const char *comm, char state, uint64_t ms,
	const char *kstack, const char *ustack)
{
	struct record_offcpu *o = &f->record.offcpu;

	data_offcpu(&f->record);
	f->record.mono_ns = AT(15000);
	text_copy(o->comm, sizeof(o->comm), comm);
	o->state = state;
	o->time_ns = ms * NSEC_PER_MSEC;
	o->longest_ns = 400 * NSEC_PER_MSEC;
	o->start_mono_ns = AT(1000);
	o->waits_for = state == 'D' ? RECORD_CAUSE_memory_map_lock : RECORD_CAUSE_NONE;
	text_copy(o->kstack, sizeof(o->kstack), kstack);
	text_copy(o->ustack, sizeof(o->ustack), ustack);
	page_add(f->page, &f->record);
}

static void test_nothing(void **state)
{
	struct page_fixture *f = *state;

	page_make_open(f);
	page_add(f->page, &f->record);
	assert_string_equal(print_blocked(f), "");
}

static void test_stacks(void **state)
{
	struct page_fixture *f = *state;

	page_make_open(f);
	page_add(f->page, &f->record);
	page_make_statement(f, 2290, 1200, 1100, "SELECT a FROM t");
	page_add(f->page, &f->record);
	/* Two windows of one stack. */
	for (unsigned int i = 0; i < 2; i++)
		add_stack(f, "one_connection", 'D', 2000,
			"rwsem_down_write_slowpath+0x2ab\ndown_write_killable+0x51\nvm_mmap_pgoff+0xc1\n"
			"do_syscall_64+0x55",
			"mmap64\nos_mem_alloc");
	add_stack(f, "purge", 'S', 9000, "futex_do_wait+0x1\nfutex_wait+0x2",
		"__lll_lock_wait\n5b1f9e6c3f0a1b7d2c4e8f9a0b1c2d3e4f506172+0x11d2a7");
	add_stack(f, "reader", 'R', 50, "", "");
	add_stack(f, "early", 'S', 20, "", "");
	/* Those that wait for work. */
	add_stack(f, "poll", 'S', 60000, "ep_poll+0x1\ndo_epoll_wait+0x2", "");
	add_stack(f, "epoll", 'S', 60000, "do_epoll_wait+0x2", "");
	add_stack(f, "signals", 'S', 60000, "do_sigtimedwait.isra.0+0x1", "");
	add_stack(f, "timer", 'S', 60000, "futex_do_wait+0x1", "pthread_cond_timedwait");
	assert_string_equal(print_blocked(f),
		"BLOCKED TIME  of threads of watched processes: together, longest, state, threads\n"
		"    9.00 s   400 ms  S   16  mariadbd/purge  futex_wait < __lll_lock_wait < 5b1f9e6c+0x11d2a7\n"
		"                             SELECT a FROM t\n"
		"    4.00 s   400 ms  D   16  mariadbd/one_connection  memory map lock < mmap64 < os_mem_alloc\n"
		"                             SELECT a FROM t\n"
		"     50 ms   400 ms  R   16  mariadbd/reader  (waits for a CPU)\n"
		"                             SELECT a FROM t\n"
		"     20 ms   400 ms  S   16  mariadbd/early  (stack not known)\n");
}

static void test_many(void **state)
{
	struct page_fixture *f = *state;
	unsigned int lines = 0;
	char comm[16];

	page_make_open(f);
	page_add(f->page, &f->record);
	for (unsigned int i = 0; i < 300; i++) {
		snprintf(comm, sizeof(comm), "thread %u", i);
		add_stack(f, comm, 'D', 300 - i, "io_schedule+0x1", "");
	}
	for (const char *p = strstr(print_blocked(f), "thread "); p; p = strstr(p + 1, "thread "))
		lines++;
	assert_int_equal(lines, 10);
	assert_string_equal(strstr(f->buf, "  left out"),
		"  left out here:  42.20 s with other stacks\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing, page_setup, page_teardown),
		cmocka_unit_test_setup_teardown(test_stacks, page_setup, page_teardown),
		cmocka_unit_test_setup_teardown(test_many, page_setup, page_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
