/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The pages of real records: they begin with the verdict and stay within their lines. */
#include <fcntl.h>
#include <stdio.h>

#include "record/reader.h"
#include "test_page_setup.h"
#include "util/cleanup.h"

#define RECORDS "tests/fixtures/records/"

static void print_file(struct page_fixture *f, const char *name, unsigned int columns)
{
	struct record_reader *reader;
	struct record_line line;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), RECORDS "%s.jsonl", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(record_reader_new(fd, &reader), 0);
	while (record_reader_next(reader, &f->record, &line) > 0)
		if (line.decoded)
			add(f);
	record_reader_free(reader);
	close(fd);
	print(f, columns);
}

static void assert_begins(const struct page_fixture *f, const char *expected)
{
	if (strncmp(f->buf, expected, strlen(expected)) != 0)
		fail_msg("not \"%s\" at the beginning of:\n%s", expected, f->buf);
}

/* What `make demo` records. */
static void test_the_demo(void **state)
{
	struct page_fixture *f = *state;

	print_file(f, "demo", 100);
	assert_begins(f, "VERDICT: slow (measured)\nDisk loop3 was slow");
	assert_in_range(lines(f), 30, 40);
	assert_has(f, "\n  it stands on loop2: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAGE(test_the_demo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
